import gzip
import io
import re

import pytest

from patchlog import rdf
from patchlog.codec.alpha import looks_like_alpha
from patchlog.codec.options import LogicalType, PhysicalType
from patchlog.text.lines import MAX_LINE_BYTES

EX = "http://ex.org/"
TRIPLES = f"""\
<{EX}a> <{EX}b> "01"^^<http://www.w3.org/2001/XMLSchema#integer> .
<{EX}a> <{EX}b> "x"@en-US .
_:x <{EX}b> <{EX}c> .
"""
QUADS = f"""\
<{EX}a> <{EX}b> "01"^^<http://www.w3.org/2001/XMLSchema#integer> <{EX}g> .
<{EX}a> <{EX}b> "x"@en-US .
_:x <{EX}b> <{EX}c> _:g .
"""
STAR = f'<< <{EX}a> <{EX}b> "x" >> <{EX}b> <{EX}c> .\n'
GENERALIZED = f'"literal" _:p <{EX}c> "graph" .\n'
TURTLE = f'@prefix ex: <{EX}> . ex:a ex:b "01"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'


@pytest.fixture
def files(folder):
    (folder / "a.nt").write_text(TRIPLES)
    (folder / "a.nq").write_text(QUADS)
    (folder / "a.ttl").write_text(TURTLE)
    return folder


def options_of(path):
    return rdf.read_options(path)


@pytest.mark.parametrize("name", ["a.nt", "a.nq"])
def test_lines_go_to_jelly_and_back_unchanged(done, files, name):
    done("rdf", "to-jelly", name, "--to", "a.jelly")

    assert done("rdf", "from-jelly", "a.jelly", "--to", f"b{name[1:]}").out == b""
    assert (files / f"b{name[1:]}").read_text() == (files / name).read_text()


def test_pipes_are_the_default(done):
    jelly = done("rdf", "to-jelly", stdin=QUADS.encode()).out

    assert done("rdf", "from-jelly", stdin=jelly).text == QUADS


def test_dash_is_a_pipe_too(done):
    jelly = done("rdf", "to-jelly", "-", "--to", "-", "--in-format", "nt", stdin=TRIPLES.encode()).out

    assert done("rdf", "from-jelly", "-", "--output-file", "-", stdin=jelly).text == TRIPLES


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("name", "physical", "logical", "generalized"),
    [
        ("a.nt", PhysicalType.TRIPLES, LogicalType.FLAT_TRIPLES, True),
        ("a.nq", PhysicalType.QUADS, LogicalType.FLAT_QUADS, True),
        ("a.ttl", PhysicalType.TRIPLES, LogicalType.FLAT_TRIPLES, False),
    ],
)
def test_format_of_the_input_says_the_types(done, name, physical, logical, generalized):
    done("rdf", "to-jelly", name, "--to", "o.jelly")

    assert options_of("o.jelly") == rdf.RdfOptions(
        physical_type=physical, logical_type=logical, generalized_statements=generalized, rdf_star=True
    )


@pytest.mark.parametrize("line", [STAR, GENERALIZED], ids=["RDF-star", "generalized"])
def test_lines_may_hold_anything(done, line):
    jelly = done("rdf", "to-jelly", stdin=line.encode()).out

    assert done("rdf", "from-jelly", stdin=jelly).text == line


@pytest.mark.parametrize(
    ("option", "line", "message"),
    [
        ("--opt.rdf-star", STAR, "standard input: .*RDF-star"),
        ("--opt.generalized-statements", GENERALIZED, "standard input: .*generalized"),
    ],
)
def test_stream_that_does_not_declare_it_refuses_it(failed, option, line, message):
    assert re.match(message, failed("rdf", "to-jelly", option, "false", "--to", "o.jelly", stdin=line.encode()))


@pytest.mark.usefixtures("files")
def test_all_options_can_be_chosen(done):
    done(
        "rdf",
        "to-jelly",
        "a.nq",
        "--to",
        "o.jelly",
        *("--opt.stream-name", "a name"),
        *("--opt.physical-type", "graphs"),
        *("--opt.logical-type", "DATASETS"),
        *("--opt.generalized-statements", "false"),
        *("--opt.rdf-star", "false"),
        *("--opt.max-name-table-size", "8"),
        *("--opt.max-prefix-table-size", "0"),
        *("--opt.max-datatype-table-size", "1"),
    )

    assert options_of("o.jelly") == rdf.RdfOptions(
        stream_name="a name",
        physical_type=PhysicalType.GRAPHS,
        logical_type=LogicalType.DATASETS,
        max_name_table_size=8,
        max_prefix_table_size=0,
        max_datatype_table_size=1,
    )
    assert done("rdf", "from-jelly", "o.jelly").text == QUADS


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("FLAT_QUADS", LogicalType.FLAT_QUADS),
        ("flat_quads", LogicalType.FLAT_QUADS),
        ("https://w3id.org/stax/ontology#flatQuadStream", LogicalType.FLAT_QUADS),
        ("https://w3id.org/stax/ontology#timestampedNamedGraphStream", LogicalType.TIMESTAMPED_NAMED_GRAPHS),
        ("https://w3id.org/stax/ontology#datasetStream", LogicalType.DATASETS),
    ],
)
def test_logical_type_is_a_name_or_an_iri(done, value, expected):
    done("rdf", "to-jelly", "a.nq", "--to", "o.jelly", "--opt.logical-type", value)

    assert options_of("o.jelly").logical_type is expected


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    "arguments",
    [
        ("--opt.logical-type", "https://w3id.org/stax/ontology#stream"),
        ("--opt.logical-type", "UNSPECIFIED"),
        ("--opt.physical-type", "CUBES"),
        ("--opt.rdf-star", "perhaps"),
        ("--opt.max-name-table-size", "7"),
        ("--rows-per-frame", "0"),
        ("--delimited", "either"),
        ("--no-such-option",),
    ],
)
def test_wrong_value_is_wrong_usage(call, arguments):
    ended = call("rdf", "to-jelly", "a.nq", *arguments)

    assert (ended.code, ended.out) == (2, b"")
    assert ended.err.startswith("error: ")
    assert "Usage: patchlog rdf to-jelly" in ended.err


@pytest.mark.usefixtures("files")
def test_types_that_contradict_each_other_are_refused(failed):
    message = failed("rdf", "to-jelly", "a.nq", "--opt.logical-type", "FLAT_TRIPLES", "--to", "o.jelly")

    assert message == "logical type FLAT_TRIPLES does not go with physical type QUADS"


@pytest.mark.usefixtures("files")
def test_options_are_taken_from_a_file_and_overridden(done):
    done(
        "rdf", "to-jelly", "a.nq", "--to", "o.jelly", "--opt.stream-name", "from file", "--opt.max-name-table-size", 16
    )

    done("rdf", "to-jelly", "a.nq", "--to", "p.jelly", "--options-from", "o.jelly", "--opt.max-name-table-size", 32)

    options = options_of("p.jelly")
    assert (options.stream_name, options.max_name_table_size) == ("from file", 32)


def test_rows_per_frame_cuts_frames(done, files):
    (files / "b.nt").write_text(TRIPLES * 50)

    done("rdf", "to-jelly", "b.nt", "--to", "o.jelly", "--rows-per-frame", "10")

    assert all(len(frame.statements) <= 10 for frame in rdf.read_frames("o.jelly"))


def test_output_that_is_not_delimited_is_one_frame(done, files):
    done("rdf", "to-jelly", "a.nq", "--to", "o.jelly", "--delimited", "false")

    assert (files / "o.jelly").read_bytes()[0] == 0x0A
    assert done("rdf", "from-jelly", "o.jelly").text == QUADS


@pytest.mark.parametrize("names", [["a.nt", "b.nt", "c.nt"], ["a.ttl", "b.nt", "c.nt"]])
def test_each_input_can_be_a_frame(done, files, names):
    (files / "b.nt").write_text("")
    (files / "c.nt").write_text(TRIPLES * 200)

    done("rdf", "to-jelly", *names, "--frame-per-input", "--to", "o.jelly")

    assert [len(frame.statements) for frame in rdf.read_frames("o.jelly")] == [1 if "a.ttl" in names else 3, 0, 600]
    assert options_of("o.jelly").logical_type is LogicalType.GRAPHS


@pytest.mark.usefixtures("files")
def test_inputs_without_frames_of_their_own_are_one_stream(done):
    done("rdf", "to-jelly", "a.nt", "a.nq", "--to", "o.jelly")

    assert done("rdf", "from-jelly", "o.jelly").text == TRIPLES + QUADS


@pytest.mark.usefixtures("files")
def test_namespace_declarations_are_kept_where_asked_for(done):
    done("rdf", "to-jelly", "a.ttl", "--to", "without.jelly")
    done("rdf", "to-jelly", "a.ttl", "--to", "with.jelly", "--enable-namespace-declarations")

    assert [pair for frame in rdf.read_frames("without.jelly") for pair in frame.namespaces] == []
    assert [pair for frame in rdf.read_frames("with.jelly") for pair in frame.namespaces] == [("ex", f"<{EX}>")]
    assert options_of("with.jelly").version == 2
    assert done("rdf", "from-jelly", "with.jelly", "--out-format", "ttl").text.startswith(
        f"@prefix ex: <{EX}> .\nex:a ex:b"
    )


def test_base_resolves_relative_iris(done):
    jelly = done("rdf", "to-jelly", "--in-format", "ttl", "--base", f"{EX}x", stdin=b"<a> <#b> <> .").out

    assert done("rdf", "from-jelly", "--out-format", "nt", stdin=jelly).text == f"<{EX}a> <{EX}x#b> <{EX}x> .\n"


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("out_format", ["nq", "nt", "ttl", "trig", "rdfxml", "jsonld"])
def test_every_format_comes_out_and_goes_in(done, out_format):
    done("rdf", "to-jelly", "a.ttl", "--to", "a.jelly")

    text = done("rdf", "from-jelly", "a.jelly", "--out-format", out_format).out
    jelly = done("rdf", "to-jelly", "--in-format", out_format, stdin=text).out

    assert done("rdf", "from-jelly", "--out-format", "nt", stdin=jelly).text == TRIPLES.splitlines(keepends=True)[0]


def test_jelly_text_goes_out_and_in_unchanged(done, files):
    done("rdf", "to-jelly", "a.nq", "--to", "a.jelly", "--rows-per-frame", "5")

    done("rdf", "from-jelly", "a.jelly", "--to", "a.jelly.txt")
    done("rdf", "to-jelly", "a.jelly.txt", "--to", "b.jelly")

    assert (files / "a.jelly.txt").read_text().count("# Frame ") > 1
    assert (files / "b.jelly").read_bytes() == (files / "a.jelly").read_bytes()


def test_jelly_text_is_not_mixed_with_other_formats(failed, files):
    (files / "a.jelly.txt").write_text("")

    assert "cannot be mixed" in failed("rdf", "to-jelly", "a.jelly.txt", "a.nq", "--to", "o.jelly")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        ("0..1", [0]),
        ("..2", [0, 1]),
        ("..=2", [0, 1, 2]),
        ("2..", [2, 3]),
        ("1..3", [1, 2]),
        ("1..=1", [1]),
        ("3", [3]),
        ("..", [0, 1, 2, 3]),
        ("9..", []),
    ],
)
@pytest.mark.parametrize("out_format", ["nt", "ttl", "jelly-text"])
def test_frames_are_taken_as_ranges_say(done, frames, expected, out_format):
    rdf.write_frames("a.jelly", [[(f"<{EX}{index}>", f"<{EX}p>", f"<{EX}o>")] for index in range(4)])

    text = done("rdf", "from-jelly", "a.jelly", "--out-format", out_format, "--take-frames", frames).text

    if out_format == "jelly-text":
        assert [line for line in text.splitlines() if line.startswith("#")] == [
            f"# Frame {index}" for index in expected
        ]
    else:
        assert text == "".join(f"<{EX}{index}> <{EX}p> <{EX}o> .\n" for index in expected)


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("frames", ["", "x", "5..3", "2..2", "-1", "1...3", "..=", "1.5"])
def test_range_that_is_none_is_wrong_usage(call, frames):
    assert call("rdf", "from-jelly", "a.jelly", "--take-frames", frames).code == 2


@pytest.mark.parametrize("out_format", ["nt", "ttl", "rdfxml"])
def test_named_graphs_need_to_be_merged_for_triples(failed, done, files, out_format):
    done("rdf", "to-jelly", "a.nq", "--to", "a.jelly")

    failed("rdf", "from-jelly", "a.jelly", "--out-format", out_format, "--to", "o")
    text = done("rdf", "from-jelly", "a.jelly", "--out-format", out_format, "--merge-graphs").out

    assert len(list(rdf.read(text, out_format))) == 3
    assert not (files / "o").exists()


def test_name_of_the_output_says_its_format(done, files):
    done("rdf", "to-jelly", "a.nt", "--to", "a.jelly.gz")

    done("rdf", "from-jelly", "a.jelly.gz", "--to", "b.nt.gz")

    assert gzip.decompress((files / "b.nt.gz").read_bytes()).decode() == TRIPLES


@pytest.mark.parametrize(
    "arguments",
    [
        ("rdf", "from-jelly", "--out-format"),
        ("rdf", "to-jelly", "--in-format"),
        ("rdf", "validate", "--compare-to-format"),
        ("patch", "from-jelly", "--out-format"),
        ("patch", "to-jelly", "--in-format"),
        ("patch", "validate", "--compare-to-format"),
        ("patch", "apply", "--patch-format"),
        ("patch", "diff", "--out-format"),
    ],
)
def test_unknown_format_is_wrong_usage_and_lists_those_that_there_are(call, arguments):
    ended = call(*arguments, "html")

    assert (ended.code, ended.out) == (2, b"")
    assert "unknown format 'html'; the formats here are " in ended.err


def test_format_may_have_any_of_its_names(done):
    jelly = done("rdf", "to-jelly", "--in-format", "N-Triples", stdin=TRIPLES.encode()).out

    assert done("rdf", "from-jelly", "--out-format", "ntriples", stdin=jelly).text == TRIPLES


def test_lax_reading_takes_what_strict_reading_refuses(done, failed):
    jelly = done("rdf", "to-jelly", "--opt.rdf-star", "true", stdin=STAR.encode()).out
    undeclared = jelly.replace(b"\x20\x01", b"\x20\x00", 1)

    assert "RDF-star" in failed("rdf", "from-jelly", "--to", "o", stdin=undeclared)
    assert done("rdf", "from-jelly", "--lax", stdin=undeclared).text == STAR


def test_limits_can_be_lifted(done, failed):
    jelly = done("rdf", "to-jelly", "--opt.max-name-table-size", "10000", stdin=QUADS.encode()).out

    assert "Limits.max_name_table_size" in failed("rdf", "from-jelly", "--to", "o", stdin=jelly)
    assert done("rdf", "from-jelly", "--no-limits", stdin=jelly).text == QUADS


def test_concatenated_files_are_read_where_asked_for(done, failed):
    jelly = done("rdf", "to-jelly", stdin=QUADS.encode()).out
    jelly += done("rdf", "to-jelly", "--in-format", "nt", stdin=TRIPLES.encode()).out

    failed("rdf", "from-jelly", "--to", "o", stdin=jelly)
    assert done("rdf", "from-jelly", "--concatenated", stdin=jelly).text == QUADS + TRIPLES


def test_error_says_file_frame_and_row(failed, folder):
    (folder / "bad.jelly").write_bytes(b"\x04\x0a\x02\x12\x00")

    assert failed("rdf", "from-jelly", "bad.jelly", "--to", "o").startswith("bad.jelly: frame 0, row 0: ")


def test_error_says_file_and_line(failed, folder):
    (folder / "bad.nq").write_text(f"{QUADS}<a> .\n")

    assert failed("rdf", "to-jelly", "bad.nq", "--to", "o").startswith("bad.nq: line 4: ")


def stream(frames, **options):
    out = io.BytesIO()
    rdf.write_frames(out, frames, **options)
    return out.getvalue()


A_STATEMENT = (f"<{EX}a>", f"<{EX}b>", f"<{EX}c>")


def test_transcoding_keeps_frames_metadata_and_namespaces(done):
    frames = [
        rdf.RdfFrame(0, [A_STATEMENT], [("ex", f"<{EX}>")], {"key": b"value"}),
        rdf.RdfFrame(1, []),
        rdf.RdfFrame(2, [A_STATEMENT]),
    ]
    data = stream(frames, namespace_declarations=True)

    found = done("rdf", "transcode", "--opt.max-name-table-size", "8", stdin=data).out

    assert list(rdf.read_frames(found)) == frames
    assert rdf.read_options(found).max_name_table_size == 8
    assert rdf.read_options(found).logical_type is LogicalType.GRAPHS


def test_transcoding_regroups_rows_where_asked_for(done):
    data = stream([[A_STATEMENT]] * 10)

    found = done("rdf", "transcode", "--rows-per-frame", "1000", stdin=data).out

    assert [len(frame.statements) for frame in rdf.read_frames(found)] == [10]


def test_transcoding_joins_files_and_concatenated_ones(done, folder):
    small = rdf.RdfOptions(physical_type=PhysicalType.TRIPLES, max_name_table_size=16, rdf_star=True)
    large = rdf.RdfOptions(physical_type=PhysicalType.TRIPLES, max_name_table_size=64, generalized_statements=True)
    (folder / "a.jelly").write_bytes(stream([[A_STATEMENT]], options=small) * 2)
    (folder / "b.jelly").write_bytes(stream([[A_STATEMENT]], options=large))

    found = done("rdf", "transcode", "--concatenated", "a.jelly", "b.jelly").out

    assert [frame.statements for frame in rdf.read_frames(found)] == [[A_STATEMENT]] * 3
    options = rdf.read_options(found)
    assert options == rdf.RdfOptions(
        physical_type=PhysicalType.TRIPLES, max_name_table_size=64, rdf_star=True, generalized_statements=True
    )


def test_triples_and_quads_are_quads_together(done, folder):
    (folder / "a.jelly").write_bytes(stream([[A_STATEMENT]]))
    (folder / "b.jelly").write_bytes(stream([[(*A_STATEMENT, f"<{EX}g>")]]))

    found = done("rdf", "transcode", "--concatenated", "a.jelly", "b.jelly").out

    assert rdf.read_options(found).physical_type is PhysicalType.QUADS
    assert [frame.statements for frame in rdf.read_frames(found)] == [
        [(*A_STATEMENT, "")],
        [(*A_STATEMENT, f"<{EX}g>")],
    ]


@pytest.mark.parametrize("physical", ["GRAPHS", "QUADS"])
def test_layout_can_be_changed(done, physical):
    data = stream([[A_STATEMENT]])

    found = done("rdf", "transcode", "--opt.physical-type", physical, stdin=data).out

    assert rdf.read_options(found).physical_type is PhysicalType[physical]
    assert list(rdf.read(found)) == [(*A_STATEMENT, "")]


def test_transcoding_nothing_is_an_error(failed):
    assert failed("rdf", "transcode", "--to", "o") == "standard input: the stream has no options row"


def test_alpha_layout_is_written_and_recognised(done, files):
    done("rdf", "to-jelly", "a.nq", "--wire", "alpha", "--to", "old.jelly")

    assert looks_like_alpha((files / "old.jelly").read_bytes())
    assert done("rdf", "from-jelly", "old.jelly").text == QUADS
    assert done("rdf", "from-jelly", "old.jelly", "--wire", "alpha", "--take-frames", "0").text == QUADS
    done("rdf", "validate", "old.jelly", "--compare-to-rdf-file", "a.nq", "--compare-ordered")


@pytest.mark.usefixtures("files")
def test_reader_can_be_told_the_layout(done, failed):
    done("rdf", "to-jelly", "a.nq", "--wire", "alpha", "--to", "old.jelly")

    failed("rdf", "from-jelly", "old.jelly", "--wire", "final", "--to", "o")
    failed("rdf", "validate", "old.jelly", "--wire", "final")


@pytest.mark.usefixtures("files")
def test_layouts_are_transcoded_both_ways_and_mixed(done):
    done("rdf", "to-jelly", "a.nq", "--to", "new.jelly")
    done("rdf", "transcode", "new.jelly", "--wire", "alpha", "--rows-per-frame", "2", "--to", "old.jelly")

    done("rdf", "transcode", "old.jelly", "new.jelly", "--to", "both.jelly")
    done("rdf", "transcode", "old.jelly", "--in-wire", "alpha", "--to", "again.jelly")

    assert done("rdf", "from-jelly", "both.jelly").text == QUADS * 2
    assert done("rdf", "from-jelly", "again.jelly").text == QUADS
    assert len(list(rdf.read_frames("again.jelly"))) > 1
    assert options_of("again.jelly").version == 1


@pytest.mark.parametrize("command", [["inspect"], ["from-jelly", "--out-format", "jelly-text"]])
def test_alpha_layout_is_not_shown_as_messages(done, failed, command):
    old = done("rdf", "to-jelly", "--wire", "alpha", stdin=QUADS.encode()).out

    assert (
        failed("rdf", *command, "--to", "o", stdin=old)
        == "standard input: the stream has the alpha layout; transcode it first"
    )


@pytest.mark.usefixtures("files")
def test_alpha_layout_has_no_namespace_declarations(failed):
    failed("rdf", "to-jelly", "a.ttl", "--wire", "alpha", "--enable-namespace-declarations", "--to", "o")


def test_alpha_layout_is_read_from_python_too(done, files):
    done("rdf", "to-jelly", "a.nq", "--wire", "alpha", "--to", "old.jelly")

    rdf.convert("old.jelly", "new.jelly")
    rdf.convert("old.jelly", "b.nq", layout="alpha")

    assert list(rdf.read("old.jelly")) == list(rdf.read("new.jelly")) == [(*one, "")[:4] for one in rdf.read("a.nq")]
    assert (files / "b.nq").read_text() == QUADS
    assert options_of("old.jelly").physical_type is PhysicalType.QUADS


@pytest.mark.parametrize(
    "arguments",
    [
        ("from-jelly", "--take-frames", "9" * 23),
        ("from-jelly", "--take-frames", f"{'9' * 23}.."),
        ("from-jelly", "--take-frames", "\u0663"),
        ("to-jelly", "--rows-per-frame", "9" * 20),
        ("to-jelly", "--opt.max-name-table-size", "9" * 11),
        ("transcode", "--opt.max-prefix-table-size", "9" * 20),
        ("to-jelly", "--opt.stream-name", "a\udcffb"),
        ("to-jelly", "a.nq", "--frame-per-input", "--rows-per-frame", "1"),
        ("to-jelly", "-", "-"),
    ],
)
def test_what_cannot_be_meant_is_wrong_usage(call, arguments):
    ended = call("rdf", *arguments)

    assert (ended.code, ended.out) == (2, b"")
    assert ended.err.startswith("error: ")


@pytest.mark.parametrize("command", ["to-jelly", "transcode"])
def test_jelly_is_not_written_to_a_name_of_another_format(done, failed, files, command):
    done("rdf", "to-jelly", "a.nq", "--to", "a.jelly")
    source = "a.nq" if command == "to-jelly" else "a.jelly"

    assert failed("rdf", command, source, "--to", "a.nq") == "a.nq is N-Quads by its name; what can stand here is jelly"
    assert (files / "a.nq").read_text() == QUADS


def test_options_may_come_from_standard_input(done, files):
    options = done("rdf", "to-jelly", "--opt.max-name-table-size", "9000", stdin=QUADS.encode()).out

    done("rdf", "to-jelly", "a.nq", "--options-from", "-", "--to", "a.jelly", stdin=options)

    assert rdf.read_options(files / "a.jelly", limits=rdf.Limits(max_name_table_size=9000)) == rdf.read_options(
        options, limits=rdf.Limits(max_name_table_size=9000)
    )


def test_error_says_that_the_name_is_of_another_format(done, failed, files):
    (files / "a.rdfp").write_text("A <http://a> <http://b> <http://c> .\n")
    done("patch", "to-jelly", "a.rdfp", "--to", "a.jellyp")

    for name, title in (("a.nq", "N-Quads"), ("a.jellyp", "Jelly-Patch")):
        message = failed("rdf", "from-jelly", name, "--to", "o")
        assert message.startswith(f"{name}: frame 0")
        assert message.endswith(f"(it was read as Jelly-RDF; by its name it is {title})")


def test_long_lines_are_read_without_limits(done, failed):
    line = f'<{EX}a> <{EX}b> "{"x" * MAX_LINE_BYTES}" .\n'.encode()

    assert "(--no-limits reads it" in failed("rdf", "to-jelly", "--to", "o", stdin=line)
    assert len(done("rdf", "to-jelly", "--no-limits", stdin=line).out) > len(line) - 50
    assert len(done("patch", "to-jelly", "--no-limits", stdin=b"A " + line).out) > len(line) - 50


@pytest.mark.parametrize("command", [["inspect"], ["from-jelly", "--out-format", "jelly-text"]])
def test_nesting_that_protobuf_does_not_take_is_said_to_be_its_limit(done, failed, command):
    nested = f"<{EX}a>"
    for _ in range(120):
        nested = f"<< {nested} <{EX}b> <{EX}c> >>"
    jelly = done("rdf", "to-jelly", stdin=f"{nested} <{EX}b> <{EX}c> .\n".encode()).out

    assert "protobuf's own reader" in failed("rdf", *command, "--to", "o", stdin=jelly)


def test_deep_nesting_is_read_without_limits(done, failed):
    nested = f"<{EX}a>"
    for _ in range(200):
        nested = f"<< {nested} <{EX}b> <{EX}c> >>"
    text = f"{nested} <{EX}b> <{EX}c> .\n"
    jelly = done("rdf", "to-jelly", stdin=text.encode()).out

    assert "Limits.max_nesting_depth" in failed("rdf", "from-jelly", "--to", "o", stdin=jelly)
    assert done("rdf", "from-jelly", "--no-limits", stdin=jelly).text == text
