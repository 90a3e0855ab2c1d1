import gzip
import io
import socket
import subprocess
import sys
import threading

import pytest

import patchlog
from patchlog import rdf
from patchlog.errors import (
    InvalidTerm,
    LimitExceeded,
    MalformedFrame,
    MissingExtra,
    UnexpectedRow,
    UnsupportedOption,
    UsageError,
)

A, B, C, G = "<http://ex.org/a>", "<http://ex.org/b>", "<http://ex.org/c>", "<http://ex.org/g>"
TRIPLES = [(A, B, C), (A, B, '"01"^^<http://www.w3.org/2001/XMLSchema#integer>'), ("_:x", B, '"é\\n"@en-US')]
QUADS = [(*triple, graph) for triple in TRIPLES for graph in ("", G)]


def jelly(statements, **options):
    out = io.BytesIO()
    rdf.write(out, statements, **options)
    return out.getvalue()


@pytest.mark.parametrize("name", ["data.jelly", "data.jelly.gz", "data.nq", "data.trig", "data.nq.gz"])
def test_statements_are_read_as_they_were_written(tmp_path, name):
    path = tmp_path / name

    rdf.write(path, QUADS)

    expected = [(s, p, o.replace("en-US", "en-us"), g) for s, p, o, g in QUADS] if name == "data.trig" else QUADS
    found = [(*statement, "")[:4] for statement in rdf.read(path)]
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize("name", ["data.jelly", "data.nt", "data.ttl"])
def test_triples_stay_triples(tmp_path, name):
    path = tmp_path / name

    rdf.write(path, TRIPLES[:2])

    assert list(rdf.read(path)) == TRIPLES[:2]


def test_bytes_without_a_name_are_jelly():
    assert list(rdf.read(jelly(TRIPLES))) == TRIPLES


def test_options_suit_the_first_statement():
    triples, quads = rdf.read_options(jelly(TRIPLES)), rdf.read_options(jelly(QUADS))

    assert (triples.physical_type, triples.logical_type) == (rdf.PhysicalType.TRIPLES, rdf.LogicalType.FLAT_TRIPLES)
    assert (quads.physical_type, quads.logical_type) == (rdf.PhysicalType.QUADS, rdf.LogicalType.FLAT_QUADS)


def test_nothing_is_written_as_an_empty_stream():
    data = jelly([])

    assert list(rdf.read(data)) == []
    assert rdf.read_options(data).physical_type is rdf.PhysicalType.QUADS


def test_quoted_triple_has_to_be_declared():
    star = [(f"<<( {A} {B} {C} )>>", B, C)]

    with pytest.raises(InvalidTerm):
        jelly(star)
    options = rdf.RdfOptions(physical_type=rdf.PhysicalType.TRIPLES, rdf_star=True)
    assert list(rdf.read(jelly(star, options=options))) == star


def test_rows_per_frame_cuts_a_flat_stream():
    frames = list(rdf.read_frames(jelly(TRIPLES * 100, rows_per_frame=20)))

    assert len(frames) > 5
    assert [one for frame in frames for one in frame.statements] == TRIPLES * 100


def test_frames_keep_their_statements_namespaces_and_metadata():
    out = io.BytesIO()
    frames = [
        rdf.RdfFrame(0, TRIPLES, [("ex", "<http://ex.org/>")], {"seq": b"\x01"}),
        rdf.RdfFrame(1),
        rdf.RdfFrame(2, TRIPLES[:1]),
    ]

    rdf.write_frames(out, frames, namespace_declarations=True)

    assert list(rdf.read_frames(out.getvalue())) == frames
    assert rdf.read_options(out.getvalue()).logical_type is rdf.LogicalType.GRAPHS


def test_lists_of_statements_are_frames_too():
    out = io.BytesIO()

    rdf.write_frames(out, [QUADS[:2], iter(QUADS[2:])])

    assert [frame.statements for frame in rdf.read_frames(out.getvalue())] == [QUADS[:2], QUADS[2:]]
    assert rdf.read_options(out.getvalue()).logical_type is rdf.LogicalType.DATASETS


def test_namespaces_are_declared_where_the_format_can(tmp_path):
    rdf.write(tmp_path / "data.ttl", TRIPLES[:1], namespaces={"ex": "<http://ex.org/>"})
    data = jelly(TRIPLES[:1], namespaces={"ex": "<http://ex.org/>"})

    assert (tmp_path / "data.ttl").read_text() == "@prefix ex: <http://ex.org/> .\nex:a ex:b ex:c .\n"
    assert [frame.namespaces for frame in rdf.read_frames(data)] == [[("ex", "<http://ex.org/>")]]


def test_frame_goes_out_before_the_next_is_made():
    ours, theirs = socket.socketpair()
    seen = []

    def frames():
        for triple in TRIPLES:
            yield [triple]
            seen.append(next(received).statements)

    with ours, theirs:
        received = rdf.read_frames(theirs)
        rdf.write_frames(ours, frames())

    assert seen == [[triple] for triple in TRIPLES]


def test_stream_over_a_socket_ends_with_it():
    ours, theirs = socket.socketpair()

    def send():
        with ours:
            rdf.write(ours, QUADS * 1000)

    sender = threading.Thread(target=send)
    sender.start()
    with theirs:
        found = list(rdf.read(theirs))
    sender.join()

    assert found == QUADS * 1000


def test_error_of_the_input_comes_in_its_place():
    statements = rdf.read(jelly(TRIPLES) + b"\x05\x0a")

    assert [next(statements) for _ in TRIPLES] == TRIPLES
    with pytest.raises(MalformedFrame) as raised:
        next(statements)
    assert raised.value.frame == 1


def test_wrong_format_is_refused_when_it_is_asked_for(tmp_path):
    """Not when the first statement is."""
    with pytest.raises(UsageError):
        rdf.read(b"", "no-such-format")
    with pytest.raises(UsageError):
        rdf.read(tmp_path / "data.unknown")
    with pytest.raises(UsageError):
        rdf.write(tmp_path / "data.jellyp", [])


def test_limits_can_be_raised_and_lowered():
    data = jelly(TRIPLES)

    with pytest.raises(LimitExceeded):
        list(rdf.read(data, limits=rdf.Limits(max_rows_per_frame=2)))
    options = rdf.RdfOptions(max_name_table_size=10_000)
    with pytest.raises(UnsupportedOption):
        list(rdf.read(jelly(QUADS, options=options)))
    assert list(rdf.read(jelly(QUADS, options=options), limits=rdf.Limits(max_name_table_size=10_000))) == QUADS


def test_concatenated_streams_are_read_where_allowed():
    data = jelly(TRIPLES) + jelly(QUADS)

    with pytest.raises(UnsupportedOption):
        list(rdf.read(data))
    assert list(rdf.read(data, concatenated=True)) == TRIPLES + QUADS


def test_options_of_a_stream_without_them_are_an_error():
    with pytest.raises(UnexpectedRow):
        rdf.read_options(b"")


def test_options_are_read_from_the_first_frame_only():
    def chunks():
        yield jelly(TRIPLES)
        raise AssertionError

    assert rdf.read_options(chunks()).physical_type is rdf.PhysicalType.TRIPLES


@pytest.mark.parametrize(("source", "sink"), [("a.nq", "b.jelly"), ("a.jelly", "b.nq.gz"), ("a.trig", "b.jelly")])
def test_one_format_is_converted_to_another(tmp_path, source, sink):
    rdf.write(tmp_path / source, QUADS[:4])

    rdf.convert(tmp_path / source, tmp_path / sink)

    assert sorted((*one, "")[:4] for one in rdf.read(tmp_path / sink)) == sorted(QUADS[:4])


def test_conversion_into_what_a_format_cannot_hold_leaves_no_file(tmp_path):
    rdf.write(tmp_path / "a.nq", QUADS)

    with pytest.raises(InvalidTerm):
        rdf.convert(tmp_path / "a.nq", tmp_path / "b.nt")

    assert [path.name for path in tmp_path.iterdir()] == ["a.nq"]


def test_gzip_goes_in_and_comes_out(tmp_path):
    rdf.write(tmp_path / "a.nq.gz", QUADS)

    assert gzip.decompress((tmp_path / "a.nq.gz").read_bytes()).count(b"\n") == len(QUADS)


@pytest.mark.parametrize("dictionary", [True, False])
def test_statements_go_to_arrow_and_back(tmp_path, dictionary):
    pa = pytest.importorskip("pyarrow")

    table = pa.table(rdf.to_arrow(jelly(QUADS), dictionary=dictionary))

    columns = zip(*(table[name].to_pylist() for name in ("subject", "predicate", "object", "graph")), strict=True)
    assert list(columns) == QUADS
    for name in ("back.jelly", "back.nq"):
        rdf.from_arrow(tmp_path / name, table)
        assert [(*one, "")[:4] for one in rdf.read(tmp_path / name)] == QUADS


def test_arrow_stream_is_read_once():
    pa = pytest.importorskip("pyarrow")
    stream = rdf.to_arrow(jelly(TRIPLES))
    pa.table(stream)

    for read_again in (pa.table, list):
        with pytest.raises(UsageError, match="can be read once"):
            read_again(stream)


def test_arrow_comes_batch_by_batch():
    pytest.importorskip("pyarrow")

    batches = list(rdf.to_arrow(jelly(TRIPLES * 100), batch_rows=64))

    assert [batch.num_rows for batch in batches] == [64, 64, 64, 64, 44]
    assert batches[0]["graph"].null_count == 64


@pytest.mark.parametrize("kind", ["a batch", "batches", "a stream"])
def test_arrow_is_written_from_whatever_holds_it(kind):
    pa = pytest.importorskip("pyarrow")
    out = io.BytesIO()
    columns = {"subject": [A, A], "predicate": [B, B], "object": [C, '"x"']}
    batch = pa.record_batch(columns)

    rdf.from_arrow(out, {"a batch": batch, "batches": [batch], "a stream": rdf.to_arrow(jelly(TRIPLES[:1]))}[kind])

    triples = [(A, B, C), (A, B, '"x"')] if kind != "a stream" else [(A, B, C)]
    assert [one[:3] for one in rdf.read(out.getvalue())] == triples


def test_schema_is_known_before_the_data():
    pa = pytest.importorskip("pyarrow")

    schema = pa.schema(rdf.to_arrow(iter([]), dictionary=False))

    assert schema == pa.schema([(name, pa.string()) for name in ("subject", "predicate", "object", "graph")])


def test_without_pyarrow_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    with pytest.raises(MissingExtra, match=r"pip install 'patchlog\[arrow\]'"):
        list(rdf.to_arrow(jelly(TRIPLES)))


def test_text_of_frames_is_read(tmp_path):
    path = tmp_path / "a.jelly.txt"
    path.write_text("""\
# Frame 0
rows { options { physical_type: PHYSICAL_STREAM_TYPE_TRIPLES max_name_table_size: 8 version: 1 } }
rows { name { value: "http://ex.org/b" } }
rows { triple { s_bnode: "a" p_iri {} o_literal { lex: "c" } } }
""")

    assert list(rdf.read(path)) == [("_:a", B, '"c"')]


def test_arrow_is_taken_by_other_libraries():
    polars = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")

    frame = polars.DataFrame(rdf.to_arrow(jelly(QUADS)))

    assert frame["object"].to_list() == [quad[2] for quad in QUADS]


def test_arrow_error_keeps_its_class_while_iterating():
    pytest.importorskip("pyarrow")

    with pytest.raises(MalformedFrame):
        list(rdf.to_arrow(jelly(TRIPLES) + b"\x05"))


@pytest.mark.parametrize("name", ["data.jelly", "data.nq", "data.trig"])
def test_statements_go_to_rdflib_terms_and_back(tmp_path, name):
    rdflib = pytest.importorskip("rdflib")
    rdf.write(tmp_path / name, QUADS[:4])

    found = list(rdf.to_rdflib(tmp_path / name))
    rdf.from_rdflib(tmp_path / f"back-{name}", found)

    integer = rdflib.Literal("01", datatype=rdflib.XSD.integer, normalize=False)
    expected = (rdflib.URIRef("http://ex.org/a"), rdflib.URIRef("http://ex.org/b"), integer, rdflib.URIRef(G[1:-1]))
    assert expected in found
    assert sorted((*one, "")[:4] for one in rdf.read(tmp_path / f"back-{name}")) == sorted(QUADS[:4])


def test_rdflib_triples_are_a_stream_of_triples():
    rdflib = pytest.importorskip("rdflib")
    graph = rdflib.Graph()
    graph.add((rdflib.URIRef("http://ex.org/a"), rdflib.URIRef("http://ex.org/b"), rdflib.URIRef("http://ex.org/c")))
    out = io.BytesIO()

    rdf.from_rdflib(out, graph)

    assert list(rdf.read(out.getvalue())) == [(A, B, C)]
    assert rdf.read_options(out.getvalue()).physical_type is rdf.PhysicalType.TRIPLES


def test_public_names_are_there():
    assert set(patchlog.__all__) <= set(dir(patchlog))
    assert set(rdf.__all__) <= set(dir(rdf))


def test_import_brings_none_of_the_optional_libraries():
    code = "import sys, patchlog; print(*{name.partition('.')[0] for name in sys.modules})"

    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()

    assert not {"rdflib", "pyarrow", "google", "pyoxigraph", "click", "rich", "yaml", "numpy"} & set(loaded)


@pytest.mark.parametrize("format", ["jelly", "nq", "nt", "ttl", "trig", "rdfxml", "jsonld"])
@pytest.mark.parametrize(
    "statement",
    [
        ("a", B, C),
        ("<a b>", B, C),
        (A, B, '"c'),
        (A, B, '"\n"'),
        (A, B, '"\ud800"'),
        (A, B, '"c"@'),
        (A, B, "_:c."),
        (A, B, "<< <a:> <b:> <c:> >>"),
        (A, B, "<<(a b)>>"),
        (A, B, "<<( <a:> <b:> <<(c)>> )>>"),
        (A, B, ""),
        (A, B, None),
    ],
)
def test_what_is_no_term_is_written_in_no_format(format, statement):
    sink = io.BytesIO()

    with pytest.raises(InvalidTerm):
        rdf.write(sink, [(A, B, C), statement], format)


@pytest.mark.parametrize("format", ["nq", "ttl", "rdfxml"])
@pytest.mark.parametrize("statement", [(A,), (A, B), (A, B, C, G, G)])
def test_a_statement_of_another_length_is_not_written(format, statement):
    with pytest.raises(UsageError, match="a statement has three or four terms"):
        rdf.write(io.BytesIO(), [statement], format)


def test_quads_of_any_format_are_the_same(tmp_path):
    lines = b'<http://e/s> <http://e/p> "default" .\n<http://e/s> <http://e/p> "named" <http://e/g> .\n'

    quads = list(rdf.read(lines, "nq"))
    rdf.write(tmp_path / "all.jelly", rdf.read(lines, "nq"))

    assert quads == [
        ("<http://e/s>", "<http://e/p>", '"default"', ""),
        ("<http://e/s>", "<http://e/p>", '"named"', "<http://e/g>"),
    ]
    assert list(rdf.read(tmp_path / "all.jelly")) == quads
