"""docs/protocol.md, "Jelly-Patch": which rows may stand where, and what they mean."""

import pytest

from patchlog.errors import InvalidTerm, TransactionError, UnexpectedRow, UnknownLookupEntry
from patchlog.model import (
    Add,
    Delete,
    Header,
    NamespaceAdd,
    NamespaceDelete,
    Punctuation,
    TransactionAbort,
    TransactionCommit,
    TransactionStart,
)

QUAD = {"s_bnode": "s", "p_bnode": "p", "o_bnode": "o", "g_bnode": "g"}
TRIPLE = {"s_bnode": "s", "p_bnode": "p", "o_bnode": "o"}


@pytest.fixture
def operations(patch, read):
    """The operations of a stream of quads with the names `a` to `d`, in one frame."""

    def read_operations(decoder, *rows, statements=patch.QUADS):
        options = patch.options(statements, generalized=1, rdf_star=1)
        return read(decoder, patch.stream([options, *(patch.name(name) for name in "abcd"), *rows]))

    return read_operations


def test_all_kinds_of_rows_become_operations(codec, patch, operations):
    rows = [
        patch.header("id", s_iri={}),
        patch.start(),
        patch.namespace_add("ns", {}, g_bnode="g"),
        patch.namespace_delete("ns", {}, g_default={}),
        patch.namespace_delete("ns", g_bnode="g"),
        patch.add(**QUAD),
        patch.delete(**QUAD),
        patch.commit(),
        patch.start(),
        patch.abort(),
        patch.punctuation(),
    ]

    assert operations(codec.PatchDecoder(), *rows) == [
        Header("id", "<a>"),
        TransactionStart(),
        NamespaceAdd("ns", "<b>", "_:g"),
        NamespaceDelete("ns", "<c>", ""),
        NamespaceDelete("ns", None, "_:g"),
        Add("_:s", "_:p", "_:o", "_:g"),
        Delete("_:s", "_:p", "_:o", "_:g"),
        TransactionCommit(),
        TransactionStart(),
        TransactionAbort(),
        Punctuation(),
    ]


@pytest.mark.parametrize(
    ("value", "term"),
    [
        ({"s_iri": {2: 2}}, "<b>"),
        ({"s_bnode": "h"}, "_:h"),
        ({"s_literal": {1: "text", 2: "en"}}, '"text"@en'),
        ({"s_triple": {2: "s", 5: {2: 1}, 11: {1: "o"}}}, '<<( _:s <a> "o" )>>'),
    ],
)
def test_a_header_has_a_value_of_any_kind(codec, patch, operations, value, term):
    assert operations(codec.PatchDecoder(), patch.header("", **value)) == [Header("", term)]


def test_adds_and_deletes_share_the_terms_that_they_repeat(codec, patch, operations):
    found = operations(codec.PatchDecoder(), patch.add(**QUAD), patch.delete(), patch.add(s_bnode="x"), patch.delete())

    assert found == [
        Add("_:s", "_:p", "_:o", "_:g"),
        Delete("_:s", "_:p", "_:o", "_:g"),
        Add("_:x", "_:p", "_:o", "_:g"),
        Delete("_:x", "_:p", "_:o", "_:g"),
    ]


def test_the_graph_of_a_namespace_is_repeated_by_statements_and_namespaces(codec, patch, operations):
    found = operations(
        codec.PatchDecoder(),
        patch.namespace_add("ns", {}, g_bnode="g"),
        patch.add(**TRIPLE),
        patch.add(g_default={}),
        patch.namespace_delete("ns"),
    )

    assert [operation.graph for operation in found] == ["_:g", "_:g", "", ""]


def test_headers_and_namespace_values_are_not_repeated_and_move_the_ids(codec, patch, operations):
    found = operations(
        codec.PatchDecoder(),
        patch.add(s_iri={}, p_bnode="p", o_bnode="o", g_default={}),
        patch.header("key", s_iri={}),
        patch.namespace_add("ns", {}),
        patch.add(o_iri={}),
    )

    assert found[-1] == Add("<a>", "_:p", "<d>", "")


def test_the_value_of_a_namespace_is_read_before_its_graph(codec, operations):
    graph_first = {4: [(3, {}), (2, {}), (1, "ns")]}

    assert operations(codec.PatchDecoder(), graph_first) == [NamespaceAdd("ns", "<a>", "<b>")]


@pytest.mark.parametrize("is_strict", [True, False])
def test_a_header_without_value_is_refused(codec, patch, refusal, is_strict):
    stream = patch.stream([patch.options(), patch.header("id")])

    assert refusal(codec.PatchDecoder(strict=is_strict), stream) == (InvalidTerm, 0, 1)


@pytest.mark.parametrize("is_strict", [True, False])
def test_a_namespace_add_without_iri_is_refused(codec, patch, refusal, is_strict):
    stream = patch.stream([patch.options(), patch.namespace_add("ns")])

    assert refusal(codec.PatchDecoder(strict=is_strict), stream) == (InvalidTerm, 0, 1)


def test_a_missing_graph_is_none_to_lenient_reading(codec, patch, refusal, read):
    rows = [patch.add(**TRIPLE), patch.namespace_delete("ns"), patch.add(g_bnode="g"), patch.delete()]
    stream = patch.stream([patch.options(patch.QUADS, generalized=1), *rows])

    assert refusal(codec.PatchDecoder(), stream) == (InvalidTerm, 0, 1)
    assert [operation.graph for operation in read(codec.PatchDecoder(strict=False), stream)] == [
        None,
        None,
        "_:g",
        "_:g",
    ]


def test_a_namespace_before_any_graph_is_of_the_default_graph(codec, patch, operations):
    """Jena leaves the default graph out, also in the first row of a stream of quads."""
    rows = [
        patch.namespace_delete("ns"),
        patch.namespace_add("ns", {}),
        patch.add(**TRIPLE),
        patch.namespace_add("ns", {}, g_bnode="g"),
        patch.namespace_delete("ns"),
    ]

    found = operations(codec.PatchDecoder(), *rows, statements=patch.QUADS)

    assert found == [
        NamespaceDelete("ns", None, ""),
        NamespaceAdd("ns", "<a>", ""),
        Add("_:s", "_:p", "_:o", ""),
        NamespaceAdd("ns", "<b>", "_:g"),
        NamespaceDelete("ns", None, "_:g"),
    ]


def test_a_statement_before_any_graph_needs_one_in_a_stream_of_quads(codec, patch, refusal):
    stream = patch.stream([patch.options(patch.QUADS, generalized=1), patch.add(**TRIPLE)])

    assert refusal(codec.PatchDecoder(), stream) == (InvalidTerm, 0, 1)


def test_a_statement_of_a_stream_of_triples_has_no_graph(codec, patch, operations):
    found = operations(codec.PatchDecoder(), patch.add(**TRIPLE), patch.delete(), statements=patch.TRIPLES)

    assert found == [Add("_:s", "_:p", "_:o"), Delete("_:s", "_:p", "_:o")]


@pytest.mark.parametrize(
    "graph", [{"g_iri": {2: 1}}, {"g_iri": {2: 99}}, {"g_iri": b"\x00"}, {"g_bnode": b"\xff"}, {"g_literal": b"\x00"}]
)
@pytest.mark.parametrize("is_strict", [True, False])
def test_the_graph_of_a_statement_of_a_stream_of_triples_is_skipped(codec, patch, operations, graph, is_strict):
    decoder = codec.PatchDecoder(strict=is_strict)

    found = operations(
        decoder, patch.add(s_iri={}, p_bnode="p", o_bnode="o", **graph), patch.add(o_iri={}), statements=patch.TRIPLES
    )

    assert found == [Add("<a>", "_:p", "_:o"), Add("<a>", "_:p", "<b>")]


def test_a_namespace_of_a_stream_of_triples_has_no_graph(codec, patch, operations):
    rows = [patch.namespace_add("ns", {}), patch.namespace_delete("ns")]

    found = operations(codec.PatchDecoder(), *rows, statements=patch.TRIPLES)

    assert found == [NamespaceAdd("ns", "<a>"), NamespaceDelete("ns")]


def test_the_graph_of_a_namespace_of_a_stream_of_triples_is_for_lenient_reading(codec, patch, read, refusal):
    rows = [
        patch.namespace_add("ns", {}, g_iri={}),
        patch.namespace_delete("ns"),
        patch.add(**TRIPLE),
        patch.add(s_iri={}),
    ]
    names = [patch.name("a"), patch.name("b"), patch.name("c")]
    stream = patch.stream([patch.options(generalized=1), *names, *rows])

    assert refusal(codec.PatchDecoder(), stream) == (InvalidTerm, 0, 4)
    assert read(codec.PatchDecoder(strict=False), stream) == [
        NamespaceAdd("ns", "<a>", "<b>"),
        NamespaceDelete("ns"),
        Add("_:s", "_:p", "_:o"),
        Add("<c>", "_:p", "_:o"),
    ]


def test_the_value_of_such_a_namespace_is_read_before_it_is_refused(codec, patch, refusal):
    stream = patch.stream([patch.options(), patch.namespace_add("ns", {2: 7}, g_iri={2: 7})])

    assert refusal(codec.PatchDecoder(), stream) == (UnknownLookupEntry, 0, 1)


class TestPunctuation:
    @pytest.mark.parametrize("stream_type", ["FRAME", "FLAT"])
    @pytest.mark.parametrize("is_strict", [True, False])
    def test_stands_in_punctuated_streams_only(self, codec, patch, refusal, stream_type, is_strict):
        stream = patch.stream([patch.options(stream=getattr(patch, stream_type)), patch.punctuation()])

        assert refusal(codec.PatchDecoder(strict=is_strict), stream) == (UnexpectedRow, 0, 1)

    def test_may_stand_anywhere_in_a_frame(self, codec, patch, read):
        rows = [
            patch.punctuation(),
            patch.start(),
            patch.commit(),
            patch.punctuation(),
            patch.punctuation(),
            patch.start(),
        ]

        operations = read(codec.PatchDecoder(), patch.stream([patch.options(), *rows]))

        assert operations == [
            Punctuation(),
            TransactionStart(),
            TransactionCommit(),
            Punctuation(),
            Punctuation(),
            TransactionStart(),
        ]

    def test_is_the_end_of_each_frame_of_a_frame_stream(self, codec, patch, read):
        stream = patch.stream([patch.options(stream=patch.FRAME)], [], [patch.start(), patch.abort()])

        operations = read(codec.PatchDecoder(), stream)

        assert operations == [Punctuation(), Punctuation(), TransactionStart(), TransactionAbort(), Punctuation()]

    def test_is_not_given_before_the_options_are_known(self, codec, patch, read):
        stream = patch.stream([], [patch.options(stream=patch.FRAME)])

        assert read(codec.PatchDecoder(), stream) == [Punctuation()]

    def test_is_not_given_at_the_end_of_a_flat_stream(self, codec, patch, read):
        stream = patch.stream([patch.options(stream=patch.FLAT)], [patch.start()])

        assert read(codec.PatchDecoder(), stream) == [TransactionStart()]


class TestTransactions:
    @pytest.mark.parametrize(
        ("rows", "row"),
        [
            ("start start", 2),
            ("commit", 1),
            ("abort", 1),
            ("start commit commit", 3),
            ("start abort commit", 3),
            ("start commit abort", 3),
            ("start header start", 3),
        ],
    )
    @pytest.mark.parametrize("stream_type", ["FRAME", "FLAT", "PUNCTUATED"])
    def test_out_of_order_are_for_lenient_reading(self, codec, patch, read, refusal, rows, row, stream_type):
        header = patch.header("key", s_bnode="v")
        made = [header if name == "header" else getattr(patch, name)() for name in rows.split()]
        stream = patch.stream([patch.options(stream=getattr(patch, stream_type)), *made])

        assert refusal(codec.PatchDecoder(), stream) == (TransactionError, 0, row)
        operations = read(codec.PatchDecoder(strict=False), stream)
        assert len(operations) == len(made) + (stream_type == "FRAME")

    @pytest.mark.parametrize("stream_type", ["FLAT", "PUNCTUATED"])
    def test_may_span_frames(self, codec, patch, read, stream_type):
        stream = patch.stream([patch.options(stream=getattr(patch, stream_type)), patch.start()], [], [patch.commit()])

        assert read(codec.PatchDecoder(), stream) == [TransactionStart(), TransactionCommit()]

    def test_span_no_frames_of_a_frame_stream(self, codec, patch, read, refusal):
        stream = patch.stream([patch.options(stream=patch.FRAME)], [patch.start()], [patch.commit()])

        assert refusal(codec.PatchDecoder(), stream) == (TransactionError, 1, None)
        assert len(read(codec.PatchDecoder(strict=False), stream)) == 5

    def test_go_on_after_a_punctuation(self, codec, patch, read, refusal):
        opened = [patch.options(), patch.start(), patch.punctuation()]

        assert len(read(codec.PatchDecoder(), patch.stream([*opened, patch.commit()]))) == 3
        assert refusal(codec.PatchDecoder(), patch.stream([*opened, patch.start()])) == (TransactionError, 0, 3)

    def test_may_be_open_at_the_end(self, codec, patch, read):
        assert read(codec.PatchDecoder(), patch.stream([patch.options(), patch.start()])) == [TransactionStart()]
