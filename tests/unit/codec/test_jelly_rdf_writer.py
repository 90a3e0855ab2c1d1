"""docs/protocol.md, "Writing IRIs and lookups" and "Writing messages": the very bytes that a writer writes."""

from dataclasses import replace

import pytest

from patchlog.codec.options import Limits, LogicalType, PhysicalType, RdfOptions, Tables
from patchlog.errors import InvalidTerm, UnsupportedOption

TRIPLES = RdfOptions(physical_type=PhysicalType.TRIPLES)
MIB = 1 << 20


@pytest.fixture
def wrote(rdf):
    """Whether an encoder wrote these rows after the options, in one delimited frame."""

    def check(encoder, *rows, options=None):
        first = rdf.options(names=4000, prefixes=150, datatypes=32) if options is None else options
        assert encoder.finish() == rdf.stream([first, *rows])

    return check


def name(text, entry_id=0):
    return {9: {1: entry_id, 2: text} if entry_id else {2: text}}


def prefix(text, entry_id=0):
    return {10: {1: entry_id, 2: text} if entry_id else {2: text}}


def datatype(text, entry_id=0):
    return {11: {1: entry_id, 2: text} if entry_id else {2: text}}


def test_lookup_entries_stand_right_before_the_row_that_needs_them(codec, rdf, wrote):
    encoder = codec.RdfEncoder(TRIPLES)

    encoder.statement("<http://a/s>", "<http://b#p>", '"1"^^<http://d>')
    encoder.statement("<http://a/s>", "<http://b#q>", "<http://a/s>")

    wrote(
        encoder,
        prefix("http://a/"),
        name("s"),
        prefix("http://b#"),
        name("p"),
        datatype("http://d"),
        rdf.triple(s_iri=rdf.iri(1), p_iri=rdf.iri(2), o_literal={1: "1", 3: 1}),
        name("q"),
        rdf.triple(p_iri=rdf.iri(name=0), o_iri=rdf.iri(1, 1)),
    )


@pytest.mark.parametrize(
    ("iri", "parts"),
    [
        ("http://a/b#c/d", ("http://a/b#", "c/d")),
        ("http://a/b:c", ("http://a/", "b:c")),
        ("urn:a:b", ("urn:a:", "b")),
        ("mailto:b", (None, "mailto:b")),
        ("http://a/", ("http://a/", None)),
        ("#", ("#", None)),
        ("none", (None, "none")),
        ("", (None, None)),
        ("http://a/ é", ("http://a/", " é")),
    ],
)
def test_an_iri_is_split_after_its_last_hash_slash_or_inner_colon(codec, rdf, wrote, iri, parts):
    encoder = codec.RdfEncoder(TRIPLES)

    encoder.statement("_:s", f"<{iri.replace(' ', chr(92) + 'u0020')}>", "_:o")

    before, after = parts
    entries = [{10: {2: before} if before else {}}, {9: {2: after} if after else {}}]
    wrote(encoder, *entries, rdf.triple(s_bnode="s", p_iri=rdf.iri(1), o_bnode="o"))


def test_quoted_triples_may_nest_as_deep_as_text_can(codec, statements):
    term = "_:o"
    for _ in range(512):
        term = f"<<( _:s _:p {term} )>>"
    options = replace(TRIPLES, rdf_star=True, generalized_statements=True)

    encoder = codec.RdfEncoder(options)
    encoder.statement("_:s", "_:p", term)

    decoder = codec.RdfDecoder(limits=Limits(max_nesting_depth=512))
    assert statements(decoder, encoder.finish()) == [("_:s", "_:p", term)]
    with pytest.raises(InvalidTerm):
        codec.RdfEncoder(options).statement("_:s", "_:p", f"<<( _:s _:p {term} )>>")


@pytest.mark.parametrize("size", [0, 1, 3])
def test_a_prefix_table_of_fewer_than_four_entries_is_not_used(codec, rdf, wrote, size):
    encoder = codec.RdfEncoder(TRIPLES.with_tables(Tables(8, size, 0)))

    encoder.statement("<http://a/s>", "<http://a/s>", "<http://a/o>")

    wrote(
        encoder,
        name("http://a/s"),
        name("http://a/o"),
        rdf.triple(s_iri={}, p_iri=rdf.iri(name=1), o_iri={}),
        options=rdf.options(names=8, prefixes=size, datatypes=0),
    )


def test_ids_that_the_reader_will_guess_are_left_out(codec, rdf, wrote):
    encoder = codec.RdfEncoder(TRIPLES)

    encoder.statement("<a/1>", "<a/2>", "<a/3>")
    encoder.statement("<b/1>", "<b/2>", "<a/2>")

    wrote(
        encoder,
        prefix("a/"),
        name("1"),
        name("2"),
        name("3"),
        rdf.triple(s_iri=rdf.iri(1), p_iri={}, o_iri={}),
        prefix("b/"),
        rdf.triple(s_iri=rdf.iri(2, 1), p_iri={}, o_iri=rdf.iri(1, 2)),
    )


def test_a_full_table_reuses_the_entry_that_was_used_least_recently(codec, rdf, wrote):
    encoder = codec.RdfEncoder(TRIPLES.with_tables(Tables(8, 0, 0)))

    for number in range(0, 8, 2):
        encoder.statement("_:s", f"<{number}>", f"<{number + 1}>")
    encoder.statement("_:s", "<0>", "_:o")
    encoder.statement("_:s", "<8>", "<9>")
    encoder.statement("_:s", "<10>", "_:o")

    wrote(
        encoder,
        *(name("0"), name("1"), rdf.triple(s_bnode="s", p_iri={}, o_iri={})),
        *(name("2"), name("3"), rdf.triple(p_iri={}, o_iri={})),
        *(name("4"), name("5"), rdf.triple(p_iri={}, o_iri={})),
        *(name("6"), name("7"), rdf.triple(p_iri={}, o_iri={})),
        rdf.triple(p_iri=rdf.iri(name=1), o_bnode="o"),
        *(name("8", 2), name("9"), rdf.triple(p_iri={}, o_iri={})),
        *(name("10"), rdf.triple(p_iri={}, o_bnode="o")),
        options=rdf.options(prefixes=0, datatypes=0),
    )


def test_a_row_that_needs_more_entries_than_a_table_has_is_refused(codec):
    nine_names = "<<( <0> <1> <<( <2> <3> <<( <4> <5> <<( <6> <7> <8> )>> )>> )>> )>>"
    options = RdfOptions(physical_type=PhysicalType.TRIPLES, rdf_star=True).with_tables(Tables(8, 0, 0))
    encoder = codec.RdfEncoder(options)

    with pytest.raises(UnsupportedOption, match="name table"):
        encoder.statement(nine_names, "<0>", "<1>")


def test_a_row_may_use_all_entries_of_a_table(codec, statements):
    options = RdfOptions(physical_type=PhysicalType.TRIPLES, rdf_star=True).with_tables(Tables(8, 0, 0))
    triples = [(f"<<( <{i}> <1> <<( <2> <3> <<( <4> <5> <6> )>> )>> )>>", "<1>", "<7>") for i in (0, 8, 9)]
    encoder = codec.RdfEncoder(options)

    encoder.statements(triples)

    assert statements(codec.RdfDecoder(), encoder.finish()) == triples


@pytest.mark.parametrize("term", ['"1"^^<d>', '<<( <a> <b> "1"^^<d> )>>'])
def test_a_typed_literal_needs_a_datatype_table(codec, term):
    options = RdfOptions(physical_type=PhysicalType.TRIPLES, rdf_star=True).with_tables(Tables(8, 0, 0))

    with pytest.raises(UnsupportedOption, match="datatype"):
        codec.RdfEncoder(options).statement("<a>", "<b>", term)


def test_a_term_that_repeats_is_left_out_but_not_in_quoted_triples(codec, rdf, wrote):
    options = RdfOptions(rdf_star=True)
    encoder = codec.RdfEncoder(options)

    encoder.statement("_:s", "<p>", "_:o", "")
    encoder.statement("_:s", "<p>", "_:o", "")
    encoder.statement("_:s", "<p>", "<<( _:s <p> _:o )>>", "_:g")

    quoted = rdf.terms(s_bnode="s", p_iri=rdf.iri(name=1), o_bnode="o")
    wrote(
        encoder,
        {10: {}},
        name("p"),
        rdf.quad(s_bnode="s", p_iri=rdf.iri(1), o_bnode="o", g_default={}),
        rdf.quad(),
        rdf.quad(o_triple=quoted, g_bnode="g"),
        options=rdf.options(rdf.QUADS, rdf_star=1, names=4000, prefixes=150, datatypes=32),
    )


def test_literals_and_blank_nodes_are_written_unescaped(codec, rdf, wrote):
    encoder = codec.RdfEncoder(TRIPLES)

    encoder.statement("_:a\\u0020b", "<p>", '"\\n\\u0000é"@en')
    encoder.statement("_:", "<p>", '""')

    wrote(
        encoder,
        {10: {}},
        name("p"),
        rdf.triple(s_bnode="a b", p_iri=rdf.iri(1), o_literal={1: "\n\x00é", 2: "en"}),
        rdf.triple(s_bnode="", o_literal={}),
    )


def test_graphs_begin_and_end_when_the_graph_changes(codec, rdf, wrote):
    encoder = codec.RdfEncoder(RdfOptions(physical_type=PhysicalType.GRAPHS))

    encoder.statement("_:s", "<p>", "_:o")
    encoder.statement("_:t", "<p>", "_:o", "")
    encoder.statement("_:t", "<p>", "_:o", "<p>")

    wrote(
        encoder,
        rdf.graph_start(g_default={}),
        {10: {}},
        name("p"),
        rdf.triple(s_bnode="s", p_iri=rdf.iri(1), o_bnode="o"),
        rdf.triple(s_bnode="t"),
        rdf.graph_end(),
        rdf.graph_start(g_iri=rdf.iri(name=1)),
        rdf.triple(),
        rdf.graph_end(),
        options=rdf.options(rdf.GRAPHS, names=4000, prefixes=150, datatypes=32),
    )


def test_a_graph_stays_open_over_a_cut_and_not_over_the_end_of_a_frame(codec, rdf):
    options = RdfOptions(physical_type=PhysicalType.GRAPHS)
    encoder = codec.RdfEncoder(options, rows_per_frame=1)

    encoder.statement("_:s", "<p>", "_:o", "_:g")
    encoder.statement("_:t", "<p>", "_:o", "_:g")
    encoder.end_frame()
    encoder.statement("_:t", "<p>", "_:o", "_:g")

    first = [{10: {}}, name("p"), rdf.triple(s_bnode="s", p_iri=rdf.iri(1), o_bnode="o")]
    assert encoder.finish() == rdf.stream(
        [rdf.options(rdf.GRAPHS, names=4000, prefixes=150, datatypes=32), rdf.graph_start(g_bnode="g"), *first],
        [rdf.triple(s_bnode="t")],
        [rdf.graph_end()],
        [rdf.graph_start(g_bnode="g"), rdf.triple()],
        [rdf.graph_end()],
    )


def test_all_options_are_written(codec, rdf):
    options = RdfOptions(
        physical_type=PhysicalType.QUADS,
        logical_type=LogicalType.TIMESTAMPED_NAMED_GRAPHS,
        stream_name="é",
        generalized_statements=True,
        rdf_star=True,
        max_name_table_size=300,
        max_prefix_table_size=0,
        max_datatype_table_size=1 << 20,
        version=2,
    )

    written = codec.RdfEncoder(options).finish()

    fields = {1: "é", 2: 2, 3: 1, 4: 1, 9: 300, 11: 1 << 20, 14: 114, 15: 2}
    assert written == rdf.stream([{1: fields}])


def test_an_empty_stream_is_one_frame_with_the_options(codec, rdf):
    encoder = codec.RdfEncoder(TRIPLES)

    assert encoder.take() == b""
    assert encoder.finish() == rdf.stream([rdf.options(names=4000, prefixes=150, datatypes=32)])


@pytest.mark.parametrize(
    "options",
    [
        RdfOptions(physical_type=PhysicalType.UNSPECIFIED),
        RdfOptions(physical_type=PhysicalType.TRIPLES, logical_type=LogicalType.DATASETS),
        RdfOptions(version=0),
        RdfOptions(version=3),
        RdfOptions(max_name_table_size=7),
    ],
    ids=repr,
)
def test_options_that_no_reader_takes_are_not_written(codec, options):
    with pytest.raises(UnsupportedOption):
        codec.RdfEncoder(options)


@pytest.mark.parametrize(
    ("rows_per_frame", "sizes"), [(1, [4, 1, 1, 1]), (5, [5, 2]), (4, [4, 3]), (0, [7]), (7, [7]), (8, [7])]
)
def test_a_frame_is_cut_after_a_statement_when_it_has_enough_rows(codec, rdf, rows_per_frame, sizes):
    encoder = codec.RdfEncoder(TRIPLES, rows_per_frame=rows_per_frame)

    encoder.statements([("_:s", "<p>", f"_:{i}") for i in range(4)])
    written = encoder.finish()

    triples = [rdf.triple(o_bnode=str(i)) for i in range(1, 4)]
    first = rdf.triple(s_bnode="s", p_iri=rdf.iri(1), o_bnode="0")
    rows = [rdf.options(names=4000, prefixes=150, datatypes=32), {10: {}}, name("p"), first, *triples]
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    assert written == rdf.stream(*(rows[end - size : end] for size, end in zip(sizes, ends, strict=True)))


def test_a_frame_is_cut_when_it_has_one_mebibyte(codec, read):
    def frames(rows_per_frame):
        encoder = codec.RdfEncoder(TRIPLES, rows_per_frame=rows_per_frame)
        encoder.statements([("_:s", "<p>", f'"{i}{"x" * 100_000}"') for i in range(25)])
        return [len(frame.statements) for frame in read(codec.RdfDecoder(), encoder.finish())]

    assert frames(256) == [11, 11, 3]
    assert frames(0) == [25]


def test_frames_are_taken_when_they_are_ended(codec, rdf):
    encoder = codec.RdfEncoder(TRIPLES)
    encoder.statement("_:s", "<p>", "_:o")

    assert encoder.take() == b""
    encoder.end_frame()
    first = encoder.take()
    encoder.end_frame()

    assert first[1:].startswith(rdf.frame(rdf.options(names=4000, prefixes=150, datatypes=32)))
    assert encoder.take() == b"\0"
    assert encoder.finish() == b""


def test_metadata_stands_after_the_rows_in_its_order(codec, rdf):
    encoder = codec.RdfEncoder(TRIPLES)

    encoder.end_frame({"b": b"\xff", "": b"", "a": b"1"})

    entries = [{1: "b", 2: b"\xff"}, {1: "", 2: b""}, {1: "a", 2: b"1"}]
    options = rdf.options(names=4000, prefixes=150, datatypes=32)
    assert encoder.finish() == rdf.stream(rdf.frame(options, *map(rdf.metadata, entries)))


def test_a_stream_that_is_not_delimited_is_the_same_without_lengths(codec, statements):
    triples = [("_:s", "<p>", f"_:{i}") for i in range(5)]
    encoder = codec.RdfEncoder(TRIPLES, rows_per_frame=2, delimited=False)
    one_frame = codec.RdfEncoder(TRIPLES, rows_per_frame=0)

    encoder.statements(triples)
    one_frame.statements(triples)

    bare = encoder.take() + encoder.finish()
    assert one_frame.finish()[1:] == bare
    assert statements(codec.RdfDecoder(), bare) == triples


def test_namespaces_are_written_where_they_are_enabled(codec, rdf):
    enabled = codec.RdfEncoder(TRIPLES, namespace_declarations=True)
    disabled = codec.RdfEncoder(TRIPLES)

    for encoder in (enabled, disabled):
        encoder.namespace("ex", "<http://a/b>")
        encoder.namespace("", "<http://a/>")

    options = rdf.options(names=4000, prefixes=150, datatypes=32)
    assert disabled.finish() == rdf.stream([options])
    assert enabled.finish() == rdf.stream(
        [
            rdf.options(names=4000, prefixes=150, datatypes=32, version=2),
            prefix("http://a/"),
            name("b"),
            rdf.namespace("ex", rdf.iri(1)),
            {9: {}},
            {6: {2: {}}},
        ]
    )


def test_a_namespace_is_an_iri(codec):
    with pytest.raises(InvalidTerm):
        codec.RdfEncoder(TRIPLES, namespace_declarations=True).namespace("ex", "_:b")


def test_a_statement_in_a_named_graph_is_no_triple(codec):
    encoder = codec.RdfEncoder(TRIPLES)

    encoder.statement("_:s", "<p>", "_:o", "")
    encoder.statement("_:s", "<p>", "_:o", None)
    with pytest.raises(InvalidTerm):
        encoder.statement("_:s", "<p>", "_:o", "_:g")


@pytest.mark.parametrize(
    "statement",
    [
        ('"s"', "<p>", "<o>"),
        ("<s>", "_:p", "<o>"),
        ("<s>", '"p"', "<o>"),
        ("<s>", "<p>", "<o>", '"g"'),
        ("<<( <s> <p> <o> )>>", "<p>", "<o>"),
        ("<s>", "<<( <s> <p> <o> )>>", "<o>"),
        ("<s>", "<p>", "<<( <s> <p> <o> )>>"),
        ("<s>", "<p>", "<o>", "<<( <s> <p> <o> )>>"),
    ],
)
@pytest.mark.parametrize("physical_type", [PhysicalType.QUADS, PhysicalType.GRAPHS])
def test_terms_that_the_options_do_not_declare_are_not_written(codec, statement, physical_type):
    with pytest.raises(InvalidTerm):
        codec.RdfEncoder(RdfOptions(physical_type=physical_type)).statement(*statement)


def test_a_quoted_triple_is_no_graph_whatever_the_options_declare(codec):
    encoder = codec.RdfEncoder(RdfOptions(rdf_star=True, generalized_statements=True))

    with pytest.raises(InvalidTerm):
        encoder.statement("<s>", "<p>", "<o>", "<<( <s> <p> <o> )>>")


@pytest.mark.parametrize(
    "term", ["", "x", "<a b>", "_:a b", '"a', "<<( <s> <p> )>>", '"a"^^<http://www.w3.org/2001/XMLSchema#string>']
)
def test_what_is_not_the_canonical_text_of_a_term_is_not_written(codec, term):
    with pytest.raises(InvalidTerm):
        codec.RdfEncoder(RdfOptions(rdf_star=True)).statement("<s>", "<p>", term)


def test_none_repeats_nothing(codec):
    encoder = codec.RdfEncoder(TRIPLES)

    with pytest.raises(InvalidTerm):
        encoder.statements([("<http://a>", "<http://b>", None)])
