"""docs/protocol.md, "Options": what a stream says of itself, and what a reader makes of it."""

import pytest

from patchlog.codec.options import (
    Limits,
    LogicalType,
    PatchOptions,
    PhysicalType,
    RdfOptions,
    StatementType,
    StreamType,
)
from patchlog.errors import UnexpectedRow, UnsupportedOption
from patchlog.model import Add, Punctuation, TransactionStart

REFUSED = (UnsupportedOption, 0, 0)
UNKNOWN = (5, 115)


def test_options_of_jelly_rdf_are_read(codec, rdf, read):
    decoder = codec.RdfDecoder()
    assert decoder.options is None
    fields = {
        "stream_name": "name",
        "physical": rdf.QUADS,
        "generalized": 1,
        "rdf_star": 1,
        "names": 9,
        "prefixes": 10,
        "datatypes": 11,
        "logical": 114,
        "version": 2,
    }

    read(decoder, rdf.stream([rdf.options(**fields)]))

    assert decoder.options == RdfOptions(
        stream_name="name",
        physical_type=PhysicalType.QUADS,
        generalized_statements=True,
        rdf_star=True,
        max_name_table_size=9,
        max_prefix_table_size=10,
        max_datatype_table_size=11,
        logical_type=LogicalType.TIMESTAMPED_NAMED_GRAPHS,
        version=2,
    )


def test_options_of_jelly_patch_are_read(codec, patch, read):
    decoder = codec.PatchDecoder()
    assert decoder.options is None
    fields = {"generalized": 1, "rdf_star": 1, "names": 9, "prefixes": 10, "datatypes": 11}

    read(decoder, patch.stream([patch.options(patch.QUADS, patch.FLAT, **fields)]))

    assert decoder.options == PatchOptions(
        statement_type=StatementType.QUADS,
        stream_type=StreamType.FLAT,
        generalized_statements=True,
        rdf_star=True,
        max_name_table_size=9,
        max_prefix_table_size=10,
        max_datatype_table_size=11,
        version=1,
    )


@pytest.mark.parametrize("row", ["triple", "graph_end", "namespace", "name"])
def test_any_other_row_before_the_options_of_jelly_rdf_is_refused(codec, rdf, refusal, row):
    rows = {
        "triple": rdf.triple(),
        "graph_end": rdf.graph_end(),
        "namespace": rdf.namespace("a"),
        "name": rdf.name("a"),
    }

    for strict in (True, False):
        assert refusal(codec.RdfDecoder(strict=strict), rdf.stream([rows[row]])) == (UnexpectedRow, 0, 0)


@pytest.mark.parametrize("row", ["add", "header", "start", "name", "punctuation"])
def test_any_other_row_before_the_options_of_jelly_patch_is_refused(codec, patch, refusal, row):
    rows = {
        "add": patch.add(),
        "header": patch.header("key", s_bnode="v"),
        "start": patch.start(),
        "name": patch.name("a"),
        "punctuation": patch.punctuation(),
    }

    for strict in (True, False):
        assert refusal(codec.PatchDecoder(strict=strict), patch.stream([], [rows[row]])) == (UnexpectedRow, 1, 0)


@pytest.mark.parametrize(
    "values",
    [
        {"physical": 0},
        {"physical": 4},
        {"version": 3},
        {"version": 10001},
        {"names": 0},
        {"names": 7},
        {"names": 4097},
        {"names": (1 << 32) - 1},
        {"prefixes": 1025},
        {"datatypes": 257},
        {"datatypes": 1_000_000_000},
    ],
    ids=repr,
)
def test_options_of_jelly_rdf_that_no_reading_takes(codec, rdf, refusal, values):
    stream = rdf.stream([rdf.options(**values)])

    assert refusal(codec.RdfDecoder(), stream) == REFUSED
    assert refusal(codec.RdfDecoder(strict=False), stream) == REFUSED


@pytest.mark.parametrize(
    "values",
    [
        {"version": 0},
        {"logical": 5},
        {"logical": 115},
        {"physical": 1, "logical": 2},
        {"physical": 1, "logical": 4},
        {"physical": 2, "logical": 1},
        {"physical": 2, "logical": 3},
        {"physical": 3, "logical": 13},
    ],
    ids=repr,
)
def test_options_of_jelly_rdf_that_only_lenient_reading_takes(codec, rdf, read, refusal, values):
    stream = rdf.stream([rdf.options(**values)])
    lenient = codec.RdfDecoder(strict=False)

    assert refusal(codec.RdfDecoder(), stream) == REFUSED
    assert len(read(lenient, stream)) == 1
    assert lenient.options.logical_type == LogicalType(
        0 if values.get("logical") in UNKNOWN else values.get("logical", 0)
    )


@pytest.mark.parametrize(
    ("physical", "logical"), [(1, 0), (1, 1), (1, 3), (1, 13), (2, 2), (2, 4), (2, 14), (3, 2), (3, 114)]
)
def test_logical_types_that_go_with_a_physical_type(codec, rdf, read, physical, logical):
    assert len(read(codec.RdfDecoder(), rdf.stream([rdf.options(physical, logical=logical)]))) == 1


@pytest.mark.parametrize(
    "values",
    [
        {"statements": 0},
        {"statements": 3},
        {"stream": 0},
        {"stream": 4},
        {"version": 2},
        {"names": 7},
        {"prefixes": 1025},
    ],
    ids=repr,
)
def test_options_of_jelly_patch_that_no_reading_takes(codec, patch, refusal, values):
    stream = patch.stream([patch.options(**values)])

    assert refusal(codec.PatchDecoder(), stream) == REFUSED
    assert refusal(codec.PatchDecoder(strict=False), stream) == REFUSED


def test_version_0_of_jelly_patch_is_for_lenient_reading(codec, patch, read, refusal):
    stream = patch.stream([patch.options(version=0)])

    assert refusal(codec.PatchDecoder(), stream) == REFUSED
    assert read(codec.PatchDecoder(strict=False), stream) == []


def test_limits_of_the_tables_can_be_raised(codec, rdf, read):
    limits = Limits(max_name_table_size=1 << 20, max_prefix_table_size=1 << 20, max_datatype_table_size=1 << 20)
    options = rdf.options(names=1 << 20, prefixes=1 << 20, datatypes=1 << 20)

    assert len(read(codec.RdfDecoder(limits=limits), rdf.stream([options]))) == 1


def test_the_same_options_may_come_again_anywhere(codec, rdf, statements):
    options = rdf.options()
    triple = rdf.triple(s_bnode="s", p_iri=rdf.iri(), o_bnode="o")

    stream = rdf.stream([options, options, rdf.name("p"), triple], [options, rdf.triple(), options])

    assert statements(codec.RdfDecoder(), stream) == [("_:s", "<p>", "_:o")] * 2


@pytest.mark.parametrize("change", [{"stream_name": "other"}, {"rdf_star": 1}, {"names": 9}, {"version": 2}], ids=repr)
def test_other_options_later_are_refused(codec, rdf, refusal, change):
    stream = rdf.stream([rdf.options()], [rdf.name("a"), rdf.options(**change)])

    assert refusal(codec.RdfDecoder(), stream) == (UnsupportedOption, 1, 1)


def test_options_that_differ_in_unknown_fields_are_the_same(codec, rdf, read):
    same = {1: rdf.message(rdf.options()[1]) + b"\xa0\x06\x01"}

    assert len(read(codec.RdfDecoder(), rdf.stream([rdf.options(), same]))) == 1


def test_lenient_reading_takes_over_flags_and_types_and_keeps_the_tables(codec, rdf, read):
    stream = rdf.stream(
        [
            rdf.options(),
            rdf.name("p"),
            rdf.triple(s_bnode="s", p_iri=rdf.iri(), o_bnode="o"),
            rdf.options(rdf.QUADS, names=4000, rdf_star=1),
            rdf.quad(g_bnode="g"),
        ]
    )
    decoder = codec.RdfDecoder(strict=False)

    [frame] = read(decoder, stream)

    assert frame.statements == [("_:s", "<p>", "_:o"), ("_:s", "<p>", "_:o", "_:g")]
    assert decoder.options == RdfOptions(
        physical_type=PhysicalType.QUADS,
        rdf_star=True,
        max_name_table_size=8,
        max_prefix_table_size=4,
        max_datatype_table_size=4,
    )


def test_lenient_reading_keeps_the_stream_type(codec, patch, read):
    stream = patch.stream(
        [
            patch.options(patch.TRIPLES, patch.FLAT),
            patch.name("p"),
            patch.add(s_bnode="s", p_iri=patch.iri(), o_bnode="o"),
            patch.options(patch.QUADS, patch.FRAME),
            patch.add(g_default={}),
        ]
    )

    operations = read(codec.PatchDecoder(strict=False), stream)

    assert operations == [Add("_:s", "<p>", "_:o"), Add("_:s", "<p>", "_:o", "")]


@pytest.mark.parametrize("change", [{"names": 7}, {"version": 9}, {"physical": 0}, {"prefixes": 5000}], ids=repr)
def test_lenient_reading_checks_later_options_as_the_first(codec, rdf, refusal, change):
    stream = rdf.stream([rdf.options()], [rdf.options(**change)])

    assert refusal(codec.RdfDecoder(strict=False), stream) == (UnsupportedOption, 1, 0)


class TestConcatenated:
    """Streams laid end to end: an options row that begins a frame begins a new stream."""

    def test_other_options_begin_a_new_stream(self, codec, rdf, read):
        first = rdf.stream([rdf.options(), rdf.name("p"), rdf.triple(s_bnode="s", p_iri=rdf.iri(), o_bnode="o")])
        second = rdf.stream(
            [rdf.options(rdf.QUADS), rdf.name("q"), rdf.quad(s_bnode="s", p_iri={}, o_bnode="o", g_default={})]
        )
        decoder = codec.RdfDecoder(concatenated=True)

        frames = read(decoder, first + second)

        assert [frame.statements for frame in frames] == [[("_:s", "<p>", "_:o")], [("_:s", "<q>", "_:o", "")]]
        assert [frame.index for frame in frames] == [0, 1]
        assert decoder.options.physical_type == PhysicalType.QUADS

    def test_the_terms_of_the_stream_before_cannot_be_repeated(self, codec, rdf, refusal):
        stream = rdf.stream([rdf.options(), rdf.name("p"), rdf.triple(s_bnode="s", p_iri=rdf.iri(), o_bnode="o")])

        place = refusal(codec.RdfDecoder(concatenated=True), stream + rdf.stream([rdf.options(), rdf.triple()]))

        assert place[1:] == (1, 1)

    def test_an_open_transaction_is_forgotten_and_its_patch_ends(self, codec, patch, read):
        stream = patch.stream([patch.options(), patch.start()])

        assert read(codec.PatchDecoder(concatenated=True), stream * 2) == [
            TransactionStart(),
            Punctuation(),
            TransactionStart(),
        ]

    @pytest.mark.parametrize("stream_type", [1, 2, 3])
    def test_a_patch_ends_with_its_file(self, codec, patch, read, stream_type):
        """Else operations of two files would be one patch, and those of the second in a transaction of the first."""
        rows = [patch.options(stream=stream_type), patch.start(), patch.commit()]
        stream = patch.stream(rows, [patch.start(), patch.commit()])

        found = read(codec.PatchDecoder(concatenated=True), stream + stream)

        ends = [index for index, operation in enumerate(found) if operation == Punctuation()]
        assert ends == ([2, 5, 8, 11] if stream_type == 1 else [4])

    def test_a_patch_that_has_ended_does_not_end_again(self, codec, patch, read):
        stream = patch.stream([patch.options(), patch.start(), patch.commit(), patch.punctuation()])

        assert read(codec.PatchDecoder(concatenated=True), stream * 2).count(Punctuation()) == 2

    def test_an_open_graph_is_forgotten(self, codec, rdf, read):
        stream = rdf.stream([rdf.options(rdf.GRAPHS), rdf.graph_start(g_default={})])

        assert len(read(codec.RdfDecoder(concatenated=True), stream * 2)) == 2

    def test_options_inside_a_frame_belong_to_the_stream(self, codec, rdf, refusal):
        stream = rdf.stream([rdf.options()], [rdf.name("a"), rdf.options(names=9)])

        assert refusal(codec.RdfDecoder(concatenated=True), stream) == (UnsupportedOption, 1, 1)
