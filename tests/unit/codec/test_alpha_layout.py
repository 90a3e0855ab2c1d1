"""docs/protocol.md, "Alpha layout of Jelly-RDF"."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchlog.codec.alpha import AlphaDecoder, AlphaEncoder, looks_like_alpha
from patchlog.codec.options import LogicalType, PatchOptions, PhysicalType, RdfOptions, Tables
from patchlog.errors import (
    CodecError,
    InvalidTerm,
    LimitExceeded,
    MalformedFrame,
    UnexpectedRow,
    UnknownLookupEntry,
    UnsupportedOption,
)
from patchlog.model import TransactionStart
from patchlog.pure import PatchEncoder, RdfDecoder, RdfEncoder

TABLES = Tables(8, 4, 4)
REPEAT = {10: {}}


def options_row(**changes):
    """name 1, type 2, generalized 3, use_repeat 4, rdf_star 5, tables 9 to 11, logical type 14, version 15."""
    return {1: {2: 1, 4: 1, 9: 8, 10: 4, 11: 4, 15: 1} | {int(field[1:]): value for field, value in changes.items()}}


def iri(prefix=0, name=0):
    return {1: {1: prefix, 2: name}}


def triple(*terms):
    return {2: dict(enumerate(terms, 1))}


def quad(*terms):
    return {3: dict(enumerate(terms, 1))}


@pytest.fixture
def lookups(rdf):
    return [rdf.prefix("http://a/", 1), rdf.name("b", 1), rdf.name("c", 2), rdf.datatype("d", 1)]


def test_terms_are_messages_of_their_own(rdf, lookups, statements):
    quoted = {1: {2: "s"}, 2: iri(1, 1), 3: {3: {1: "o", 4: 1}}}
    stream = rdf.stream(
        [
            options_row(f5=1),
            *lookups,
            triple(iri(1, 1), iri(1, 2), {3: {1: "plain", 2: {}}}),
            triple({2: "b"}, iri(1, 2), {3: {1: "text", 3: "en"}}),
            triple({4: quoted}, iri(1, 2), {3: {1: "1", 4: 1}}),
        ]
    )

    assert statements(AlphaDecoder(), stream) == [
        ("<http://a/b>", "<http://a/c>", '"plain"'),
        ("_:b", "<http://a/c>", '"text"@en'),
        ('<<( _:s <http://a/b> "o"^^<d> )>>', "<http://a/c>", '"1"^^<d>'),
    ]


def test_id_0_is_an_empty_prefix_or_name(rdf, lookups, statements):
    stream = rdf.stream(
        [options_row(), *lookups, triple(iri(1, 1), iri(0, 2), iri(1, 0)), triple(iri(0, 2), iri(0, 2), REPEAT)]
    )

    assert statements(AlphaDecoder(), stream) == [("<http://a/b>", "<c>", "<http://a/>"), ("<c>", "<c>", "<http://a/>")]


def test_a_repeated_term_says_so(rdf, lookups, statements):
    rows = [
        quad({2: "s"}, iri(0, 1), {2: "o"}, {1: {1: 1, 2: 1}}),
        quad(REPEAT, REPEAT, {2: "p"}, REPEAT),
        quad(REPEAT, REPEAT, REPEAT, {4: {}}),
        quad({2: "t"}, REPEAT, REPEAT, {2: "g"}),
    ]

    assert statements(AlphaDecoder(), rdf.stream([options_row(f2=2), *lookups, *rows])) == [
        ("_:s", "<b>", "_:o", "<http://a/b>"),
        ("_:s", "<b>", "_:p", "<http://a/b>"),
        ("_:s", "<b>", "_:p", ""),
        ("_:t", "<b>", "_:p", "_:g"),
    ]


def test_graphs_are_read(rdf, lookups, statements):
    rows = [
        {4: {1: {2: "g"}}},
        triple({2: "s"}, iri(0, 1), {2: "o"}),
        {5: {}},
        {4: {1: {4: {}}}},
        triple(*[REPEAT] * 3),
    ]

    assert statements(AlphaDecoder(), rdf.stream([options_row(f2=3), *lookups, *rows])) == [
        ("_:s", "<b>", "_:o", "_:g"),
        ("_:s", "<b>", "_:o", ""),
    ]


def test_options_are_read(rdf, read):
    decoder = AlphaDecoder()

    read(decoder, rdf.stream([options_row(f1="name", f2=2, f3=1, f5=1, f14=14)]))

    assert decoder.options == RdfOptions(
        stream_name="name",
        physical_type=PhysicalType.QUADS,
        generalized_statements=True,
        rdf_star=True,
        logical_type=LogicalType.NAMED_GRAPHS,
        version=1,
    ).with_tables(TABLES)


def test_options_of_the_first_release_have_the_type_in_field_1(rdf, read):
    decoder = AlphaDecoder()

    read(decoder, rdf.stream([{1: {1: 3, 2: 1, 3: 1, 9: 2, 10: 4, 11: 4}}]))

    assert decoder.options == RdfOptions(
        physical_type=PhysicalType.GRAPHS, generalized_statements=True, rdf_star=True, max_name_table_size=2
    ).with_tables(Tables(2, 4, 4))


def test_the_first_release_marked_plain_literals_by_a_bool(rdf, lookups, statements):
    stream = rdf.stream([{1: {1: 1, 9: 8, 10: 4}}, *lookups[:3], triple({2: "s"}, iri(0, 1), {3: {1: "o", 2: 1}})])

    assert statements(AlphaDecoder(), stream) == [("_:s", "<b>", '"o"')]


REFUSED = {
    "no options": ([triple({2: "s"}, {2: "p"}, {2: "o"})], (UnexpectedRow, 0, 0)),
    "unknown type": ([options_row(f2=4)], (UnsupportedOption, 0, 0)),
    "no type": ([options_row(f2=0)], (UnsupportedOption, 0, 0)),
    "unknown logical type": ([options_row(f14=5)], (UnsupportedOption, 0, 0)),
    "giant table": ([options_row(f9=1 << 30)], (UnsupportedOption, 0, 0)),
    "name is not UTF-8": ([options_row(f1=b"\xff")], (MalformedFrame, 0, 0)),
    "entry without id": ([options_row(), {9: {2: "a"}}], (UnknownLookupEntry, 0, 1)),
    "namespaces came later": ([options_row(), {6: {1: "ns", 2: {}}}], (UnexpectedRow, 0, 1)),
    "quad among triples": ([options_row(), quad({2: "s"})], (UnexpectedRow, 0, 1)),
    "no subject": ([options_row(f3=1), {2: {2: {2: "p"}, 3: {2: "o"}}}], (InvalidTerm, 0, 1)),
    "empty subject": ([options_row(f3=1), triple({}, {2: "p"}, {2: "o"})], (InvalidTerm, 0, 1)),
    "nothing to repeat": ([options_row(f3=1), triple(REPEAT, {2: "p"}, {2: "o"})], (InvalidTerm, 0, 1)),
    "empty IRI": ([options_row(f3=1), triple({1: {}}, {2: "p"}, {2: "o"})], (InvalidTerm, 0, 1)),
    "unknown name": ([options_row(f3=1), triple(iri(0, 1), {2: "p"}, {2: "o"})], (UnknownLookupEntry, 0, 1)),
    "unknown prefix": ([options_row(f3=1), triple(iri(1, 0), {2: "p"}, {2: "o"})], (UnknownLookupEntry, 0, 1)),
    "undeclared predicate": ([options_row(), triple({2: "s"}, {2: "p"}, {2: "o"})], (InvalidTerm, 0, 1)),
    "undeclared quoted triple": (
        [options_row(f3=1), triple({4: {1: {2: "a"}, 2: {2: "b"}, 3: {2: "c"}}}, {2: "p"}, {2: "o"})],
        (InvalidTerm, 0, 1),
    ),
    "repeated in a quoted triple": (
        [options_row(f3=1, f5=1), triple({4: {1: REPEAT, 2: {2: "b"}, 3: {2: "c"}}}, {2: "p"}, {2: "o"})],
        (InvalidTerm, 0, 1),
    ),
    "graph start without graph": ([options_row(f2=3), {4: {}}], (InvalidTerm, 0, 1)),
    "graph start that repeats": ([options_row(f2=3), {4: {1: REPEAT}}], (InvalidTerm, 0, 1)),
}


@pytest.mark.parametrize(("rows", "place"), REFUSED.values(), ids=REFUSED.keys())
def test_what_breaks_the_rules_is_refused(rdf, refusal, rows, place):
    assert refusal(AlphaDecoder(), rdf.stream(rows)) == place


def test_nesting_is_limited(rdf, refusal):
    quoted = {1: {2: "a"}, 2: {2: "b"}, 3: {2: "c"}}
    for _ in range(64):
        quoted = {1: {2: "a"}, 2: {2: "b"}, 3: {4: quoted}}

    stream = rdf.stream([options_row(f3=1, f5=1), triple({4: quoted}, {2: "p"}, {2: "o"})])

    assert refusal(AlphaDecoder(), stream) == (LimitExceeded, 0, 1)


def test_a_frame_has_no_metadata(rdf, read):
    assert len(read(AlphaDecoder(), rdf.stream(rdf.frame(options_row()) + rdf.metadata({1: b"\xff"})))) == 1


def test_the_bytes_are_those_of_the_layout(rdf):
    encoder = AlphaEncoder(RdfOptions(rdf_star=True).with_tables(TABLES))

    encoder.statement("<http://a/b>", "<http://a/>", '"o"@en', "_:g")
    encoder.statement("<http://a/b>", "<http://a/>", '""', "")
    encoder.statement("<<( _:s <b> _:o )>>", "<http://a/>", '"1"^^<d>')

    quoted = {1: {2: "s"}, 2: {1: {2: 1}}, 3: {2: "o"}}
    assert encoder.finish() == rdf.stream(
        [
            {1: {2: 2, 4: 1, 5: 1, 9: 8, 10: 4, 11: 4, 15: 1}},
            {10: {1: 1, 2: "http://a/"}},
            {9: {1: 1, 2: "b"}},
            quad({1: {1: 1, 2: 1}}, {1: {1: 1}}, {3: {1: "o", 3: "en"}}, {2: "g"}),
            quad(REPEAT, REPEAT, {3: {2: {}}}, {4: {}}),
            {11: {1: 1, 2: "d"}},
            quad({4: quoted}, REPEAT, {3: {1: "1", 4: 1}}, REPEAT),
        ]
    )


def test_what_the_layout_does_not_have_is_left_out(rdf):
    encoder = AlphaEncoder(RdfOptions().with_tables(TABLES))

    encoder.namespace("ns", "<http://a/>")
    encoder.end_frame({"key": b"value"})

    assert encoder.finish() == rdf.stream([{1: {2: 2, 4: 1, 9: 8, 10: 4, 11: 4, 15: 1}}])


def test_the_empty_iri_cannot_be_written():
    with pytest.raises(InvalidTerm):
        AlphaEncoder(RdfOptions()).statement("_:s", "<>", "_:o")


resources = st.sampled_from(["<http://a/b>", "<http://a/>", "<a>", "<a:b#c>", "<a:b#>", "_:b", "_:"])
terms = resources | st.sampled_from(['"a"', '""@en', '"1"^^<a:d>', "<<( <a> <a:b#c> <<( _:b <a> _:c )>> )>>"])
quads = st.tuples(terms, terms, terms, resources | st.just(""))


@pytest.mark.parametrize("physical_type", list(PhysicalType)[1:])
@given(st.lists(quads, max_size=12), st.sampled_from([1, 4, 256]), st.booleans())
def test_statements_survive_a_round_trip(statements, physical_type, quads, rows_per_frame, delimited):
    given_statements = [quad[:3] if physical_type == PhysicalType.TRIPLES else quad for quad in quads]
    options = RdfOptions(physical_type=physical_type, rdf_star=True, generalized_statements=True)
    options = options.with_tables(Tables(16, 4, 4))
    encoder = AlphaEncoder(options, rows_per_frame=rows_per_frame, delimited=delimited)

    encoder.statements(given_statements)
    written = encoder.finish()

    decoder = AlphaDecoder()
    assert statements(decoder, written) == given_statements
    assert decoder.options == options
    assert looks_like_alpha(written) == bool(given_statements)


class TestRecognition:
    def test_a_type_in_field_1_of_the_options_is_alpha(self, rdf):
        assert looks_like_alpha(rdf.stream([{1: {1: 1, 9: 8}}]))
        assert not looks_like_alpha(rdf.stream([{1: {1: "name", 2: 1, 9: 8}}]))

    def test_a_first_statement_of_three_terms_is_alpha(self, rdf):
        assert looks_like_alpha(rdf.stream([options_row()], [], [triple(REPEAT, REPEAT, REPEAT)]))
        assert looks_like_alpha(rdf.stream([options_row(), quad(REPEAT, REPEAT, REPEAT)]))
        assert not looks_like_alpha(
            rdf.stream([options_row(), {2: {1: {}, 5: {}, 9: {}}}, triple(REPEAT, REPEAT, REPEAT)])
        )

    def test_jelly_patch_is_not(self):
        patch = PatchEncoder(PatchOptions())
        patch.accept(TransactionStart())

        assert not looks_like_alpha(patch.finish())

    @pytest.mark.parametrize("delimited", [True, False])
    def test_a_stream_of_the_final_layout_is_not(self, delimited):
        encoder = RdfEncoder(RdfOptions(stream_name="name"), delimited=delimited)
        encoder.statement("<http://a/b>", "<http://a/c>", '"o"@en', "_:g")

        assert not looks_like_alpha(encoder.finish())

    @pytest.mark.parametrize("delimited", [True, False])
    def test_the_first_bytes_are_enough(self, delimited):
        encoder = AlphaEncoder(RdfOptions(), rows_per_frame=0, delimited=delimited)
        encoder.statements([("_:s", "<p>", f"_:{i}") for i in range(100)])

        written = encoder.finish()

        assert looks_like_alpha(written[:100])
        assert not looks_like_alpha(written[:20])

    @pytest.mark.parametrize("data", [b"", b"\x00", b"\xff" * 20, b"@prefix a: <b> .", b"\x0a\x02\x12\x00"])
    def test_anything_else_is_not(self, data):
        assert not looks_like_alpha(data)

    @given(st.binary(max_size=60))
    def test_no_bytes_are_an_error(self, data):
        assert looks_like_alpha(data) in (True, False)


@given(st.lists(quads, min_size=1, max_size=5), st.data())
def test_changed_bytes_raise_documented_errors_only(read, quads, data):
    encoder = AlphaEncoder(RdfOptions(rdf_star=True, generalized_statements=True))
    encoder.statements(quads)
    written = bytearray(encoder.finish())

    for _ in range(3):
        written[data.draw(st.integers(0, len(written) - 1))] = data.draw(st.integers(0, 255))

    try:
        read(AlphaDecoder(), bytes(written))
        read(RdfDecoder(), bytes(written))
    except CodecError:
        pass
