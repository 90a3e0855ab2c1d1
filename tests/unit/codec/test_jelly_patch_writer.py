"""docs/protocol.md, "Jelly-Patch", Writer, and "The canonical patch": the very bytes that are written."""

from itertools import pairwise

import pytest

from patchlog.codec.fields import read_varint
from patchlog.codec.options import CANONICAL_PATCH, PatchOptions, StatementType, StreamType
from patchlog.errors import InvalidTerm, TransactionError, UnexpectedRow, UnsupportedOption
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

MIB = 1 << 20
QUADS = PatchOptions()
TRIPLES = PatchOptions(statement_type=StatementType.TRIPLES)
FRAME = PatchOptions(stream_type=StreamType.FRAME)
FLAT = PatchOptions(stream_type=StreamType.FLAT)

BIG = {"names": 4000, "prefixes": 150, "datatypes": 32}


def write(encoder, *operations):
    for operation in operations:
        encoder.accept(operation)
    return encoder.finish()


def name(text, entry_id=0):
    return {11: {1: entry_id, 2: text} if entry_id else {2: text}}


def prefix(text, entry_id=0):
    return {12: {1: entry_id, 2: text} if entry_id else {2: text}}


def test_all_operations_become_rows(codec, patch):
    written = write(
        codec.PatchEncoder(QUADS),
        Header("id", "<ns/a>"),
        TransactionStart(),
        NamespaceAdd("ns", "<ns/b>", "_:g"),
        NamespaceDelete("", None, ""),
        Add("_:s", "<ns/a>", '"o"', None),
        Delete("_:s", "<ns/a>", '"o"', "_:g"),
        TransactionCommit(),
        TransactionStart(),
        TransactionAbort(),
        Punctuation(),
    )

    assert written == patch.stream(
        [
            patch.options(patch.QUADS, **BIG),
            prefix("ns/"),
            name("a"),
            patch.header("id", s_iri=patch.iri(1)),
            patch.start(),
            name("b"),
            patch.namespace_add("ns", {}, g_bnode="g"),
            {5: {5: {}}},
            patch.add(s_bnode="s", p_iri=patch.iri(name=1), o_literal={1: "o"}),
            patch.delete(g_bnode="g"),
            patch.commit(),
            patch.start(),
            patch.abort(),
            patch.punctuation(),
        ]
    )


def test_a_stream_of_triples_has_no_graphs(codec, patch):
    written = write(
        codec.PatchEncoder(TRIPLES), Add("_:s", "<p>", "_:o"), Delete("_:s", "<p>", "_:o", ""), NamespaceDelete("ns")
    )

    assert written == patch.stream(
        [
            patch.options(**BIG),
            {12: {}},
            name("p"),
            patch.add(s_bnode="s", p_iri=patch.iri(1), o_bnode="o"),
            patch.delete(),
            patch.namespace_delete("ns"),
            patch.punctuation(),
        ]
    )


@pytest.mark.parametrize(
    "operation", [Add("_:s", "<p>", "_:o", "_:g"), Delete("_:s", "<p>", "_:o", "<g>"), NamespaceAdd("", "<a>", "<g>")]
)
def test_a_stream_of_triples_refuses_a_named_graph(codec, operation):
    with pytest.raises(InvalidTerm):
        codec.PatchEncoder(TRIPLES).accept(operation)


def test_a_frame_stream_has_a_frame_for_each_patch(codec, patch):
    written = write(
        codec.PatchEncoder(FRAME, rows_per_frame=1),
        TransactionStart(),
        TransactionCommit(),
        Punctuation(),
        Punctuation(),
        TransactionStart(),
    )

    options = patch.options(patch.QUADS, patch.FRAME, **BIG)
    assert written == patch.stream([options, patch.start(), patch.commit()], [], [patch.start()])


def test_a_punctuated_stream_ends_a_frame_after_each_punctuation(codec, patch):
    written = write(
        codec.PatchEncoder(QUADS), TransactionStart(), Punctuation(), Punctuation(), TransactionAbort(), Punctuation()
    )

    options = patch.options(patch.QUADS, **BIG)
    assert written == patch.stream(
        [options, patch.start(), patch.punctuation()], [patch.punctuation()], [patch.abort(), patch.punctuation()]
    )


def test_the_punctuation_that_is_missing_at_the_end_is_written(codec, patch):
    written = write(codec.PatchEncoder(QUADS), TransactionStart())

    assert written == patch.stream([patch.options(patch.QUADS, **BIG), patch.start(), patch.punctuation()])


def test_a_flat_stream_has_no_punctuation(codec, patch):
    written = write(codec.PatchEncoder(FLAT), TransactionStart(), Punctuation())

    assert written == patch.stream([patch.options(patch.QUADS, patch.FLAT, **BIG), patch.start()])


@pytest.mark.parametrize("operation", [TransactionCommit(), Punctuation()], ids=repr)
def test_a_flat_stream_ends_with_its_patch(codec, operation):
    encoder = codec.PatchEncoder(FLAT)
    encoder.accept(Punctuation())

    with pytest.raises(UnexpectedRow):
        encoder.accept(operation)


def test_a_frame_stream_that_is_not_delimited_holds_one_patch(codec, patch):
    encoder = codec.PatchEncoder(FRAME, delimited=False)

    encoder.accept(TransactionStart())
    encoder.accept(Punctuation())
    with pytest.raises(UnexpectedRow):
        encoder.accept(TransactionStart())

    written = write(codec.PatchEncoder(FRAME, delimited=False), TransactionStart(), Punctuation())
    assert written == patch.frame(patch.options(patch.QUADS, patch.FRAME, **BIG), patch.start())


@pytest.mark.parametrize("stream_type", ["FRAME", "FLAT", "PUNCTUATED"])
def test_a_stream_without_operations_is_one_frame_with_the_options(codec, patch, stream_type):
    encoder = codec.PatchEncoder(PatchOptions(stream_type=StreamType[stream_type]))

    assert encoder.finish() == patch.stream([patch.options(patch.QUADS, getattr(patch, stream_type), **BIG)])


@pytest.mark.parametrize("stream_type", [StreamType.FLAT, StreamType.PUNCTUATED])
def test_a_frame_is_cut_after_any_operation(codec, patch, stream_type):
    operations = [TransactionStart(), Header("a", "_:b"), NamespaceDelete("ns", None, ""), TransactionCommit()]
    encoder = codec.PatchEncoder(PatchOptions(stream_type=stream_type), rows_per_frame=2)
    written = [encoder.take()]

    for operation in operations:
        encoder.accept(operation)
        written.append(encoder.take())

    options = patch.options(patch.QUADS, stream_type, **BIG)
    rest = [patch.punctuation()] if stream_type == StreamType.PUNCTUATED else None
    last_two = [patch.namespace_delete("ns", g_default={}), patch.commit()]
    assert written == [
        b"",
        patch.stream([options, patch.start()]),
        b"",
        patch.stream([patch.header("a", s_bnode="b"), last_two[0]]),
        b"",
    ]
    assert encoder.finish() == patch.stream([last_two[1], *(rest or [])])


@pytest.mark.parametrize(
    "options",
    [
        PatchOptions(statement_type=StatementType.UNSPECIFIED),
        PatchOptions(stream_type=StreamType.UNSPECIFIED),
        PatchOptions(version=0),
        PatchOptions(version=2),
        PatchOptions(max_name_table_size=7),
    ],
    ids=repr,
)
def test_options_that_no_reader_takes_are_not_written(codec, options):
    with pytest.raises(UnsupportedOption):
        codec.PatchEncoder(options)


@pytest.mark.parametrize(
    "operation",
    [
        Header("key", ""),
        Header("key", "<<( <a> <b> <c> )>>"),
        Header("\ud800", "<a>"),
        NamespaceAdd("ns", '"a"', ""),
        NamespaceAdd("ns", "<a>", '"g"'),
        NamespaceDelete("ns", "_:b", ""),
        Add('"s"', "<p>", "<o>", ""),
        Add("<s>", "_:p", "<o>", ""),
        Delete("<s>", "<p>", "<o>", '"g"'),
    ],
    ids=repr,
)
def test_terms_that_may_not_stand_there_are_not_written(codec, operation):
    with pytest.raises(InvalidTerm):
        codec.PatchEncoder(QUADS).accept(operation)


class TestCanonical:
    """A canonical patch can be laid between any two others."""

    def options(self, patch):
        return patch.options(patch.QUADS, rdf_star=1, generalized=1, **BIG)

    def test_options_are_those_of_every_log(self):
        assert PatchOptions(rdf_star=True, generalized_statements=True) == CANONICAL_PATCH

    def test_each_patch_begins_with_explicit_ids_and_repeats_nothing(self, codec, patch):
        operations = [Add("<a/s>", "<a/p>", '"1"^^<d>', "_:g"), Add("<a/s>", "<a/p>", '"1"^^<d>', "_:g"), Punctuation()]

        written = write(codec.CanonicalPatchEncoder(), *operations, *operations)

        one_patch = [
            self.options(patch),
            prefix("a/", 1),
            name("s", 1),
            name("p"),
            patch.datatype("d", 1),
            patch.add(s_iri=patch.iri(1, 1), p_iri={}, o_literal={1: "1", 3: 1}, g_bnode="g"),
            patch.add(),
            patch.punctuation(),
        ]
        assert written == patch.stream(one_patch, one_patch)

    @pytest.mark.parametrize("flags", [{"rdf_star": False}, {"generalized_statements": False}], ids=repr)
    def test_flags_can_be_left_out(self, codec, patch, flags):
        written = write(codec.CanonicalPatchEncoder(**flags), Punctuation())

        kept = {"rdf_star": 1, "generalized": 1}
        del kept["rdf_star" if "rdf_star" in flags else "generalized"]
        assert written == patch.stream([patch.options(patch.QUADS, **kept, **BIG), patch.punctuation()])

    def test_the_first_statement_and_the_first_namespace_repeat_no_graph(self, codec, patch):
        written = write(
            codec.CanonicalPatchEncoder(),
            NamespaceDelete("ns", None, "_:g"),
            Delete("_:s", "_:p", "_:o", "_:g"),
            NamespaceDelete("ns", None, "_:g"),
            Delete("_:s", "_:p", "_:o", "_:g"),
        )

        terms = {"s_bnode": "s", "p_bnode": "p", "o_bnode": "o", "g_bnode": "g"}
        rows = [
            patch.namespace_delete("ns", g_bnode="g"),
            patch.delete(**terms),
            patch.namespace_delete("ns"),
            patch.delete(),
        ]
        assert written == patch.stream([self.options(patch), *rows, patch.punctuation()])

    def test_a_namespace_after_a_statement_repeats_no_graph(self, codec, patch):
        written = write(
            codec.CanonicalPatchEncoder(), Add("_:s", "_:p", "_:o", "_:g"), NamespaceDelete("ns", None, "_:g")
        )

        terms = {"s_bnode": "s", "p_bnode": "p", "o_bnode": "o", "g_bnode": "g"}
        rows = [patch.add(**terms), patch.namespace_delete("ns", g_bnode="g")]
        assert written == patch.stream([self.options(patch), *rows, patch.punctuation()])

    def test_an_empty_prefix_is_an_entry(self, codec, patch):
        written = write(codec.CanonicalPatchEncoder(), Header("id", "<a>"))

        rows = [{12: {1: 1}}, name("a", 1), patch.header("id", s_iri=patch.iri(1, 1)), patch.punctuation()]
        assert written == patch.stream([self.options(patch), *rows])

    def test_a_transaction_that_is_open_is_aborted(self, codec, patch):
        written = write(codec.CanonicalPatchEncoder(), TransactionStart(), Punctuation(), TransactionStart())

        one_patch = [self.options(patch), patch.start(), patch.abort(), patch.punctuation()]
        assert written == patch.stream(one_patch, one_patch)

    @pytest.mark.parametrize(
        "operations",
        [
            [TransactionCommit()],
            [TransactionAbort()],
            [TransactionStart(), TransactionStart()],
            [TransactionStart(), Punctuation(), TransactionCommit()],
        ],
        ids=repr,
    )
    def test_transactions_out_of_order_are_refused(self, codec, operations):
        with pytest.raises(TransactionError):
            write(codec.CanonicalPatchEncoder(), *operations)

    def test_no_operations_at_all_are_an_empty_patch(self, codec):
        empty = write(codec.CanonicalPatchEncoder(), Punctuation())

        assert codec.CanonicalPatchEncoder().finish() == empty
        assert codec.Converter("rdf-patch", "canonical-patch").finish() == empty
        assert codec.ArrowEncoder("canonical-patch").finish() == empty

    def test_an_empty_patch_has_options_and_punctuation(self, codec, patch):
        assert write(codec.CanonicalPatchEncoder(), Punctuation()) == patch.stream(
            [self.options(patch), patch.punctuation()]
        )

    def test_patches_are_taken_when_they_are_complete(self, codec):
        encoder = codec.CanonicalPatchEncoder()

        encoder.accept(TransactionStart())
        assert encoder.take() == b""
        encoder.accept(Punctuation())

        assert encoder.take() != b""
        assert encoder.finish() == b""

    def frame_sizes(self, data):
        sizes = []
        position = 0
        while position < len(data):
            size, position = read_varint(data, position, len(data))
            sizes.append(size)
            position += size
        return sizes

    def test_frames_have_at_most_one_mebibyte(self, codec, read):
        operations = [Add("_:s", "<p>", f'"{i}{"x" * 99_000}"', "") for i in range(40)]

        written = write(codec.CanonicalPatchEncoder(), *operations)

        sizes = self.frame_sizes(written)
        assert max(sizes) <= MIB
        assert all(first + second > MIB for first, second in pairwise(sizes[:-1]))
        assert read(codec.PatchDecoder(), written) == [*operations, Punctuation()]

    @pytest.mark.parametrize("spare", [0, 1])
    def test_a_row_begins_a_frame_where_it_would_make_it_too_large(self, codec, patch, spare):
        options = len(patch.frame(self.options(patch)))
        head = 1 + 3 + 1 + 3 + (2 + 1) + (2 + 1) + 1 + 3 + 1 + 3 + 2  # tags and lengths down to the lexical form
        lexical = "x" * (MIB - options - head - len(patch.frame(patch.punctuation())) + spare)

        written = write(codec.CanonicalPatchEncoder(), Add("_:s", "_:p", f'"{lexical}"', ""))

        assert self.frame_sizes(written) == ([MIB] if spare == 0 else [MIB - 3, 4])

    def test_a_single_row_may_be_larger(self, codec, patch):
        written = write(codec.CanonicalPatchEncoder(), Header("id", f'"{"x" * MIB}"'))

        sizes = self.frame_sizes(written)
        assert len(sizes) == 3
        assert sizes[0] == len(patch.frame(self.options(patch)))
        assert sizes[1] > MIB
        assert sizes[2] == len(patch.frame(patch.punctuation()))

    def test_a_lookup_entry_is_a_row_like_any_other(self, codec, patch):
        before = len(patch.frame(self.options(patch), {12: {1: 1}}))
        head = 1 + 3 + 1 + 3 + 2 + 1 + 3  # tags and lengths and the id, down to the value of the name entry
        name_that_fills_the_frame = "x" * (MIB - before - head)

        written = write(codec.CanonicalPatchEncoder(), Header("id", f"<{name_that_fills_the_frame}>"))

        header = patch.header("id", s_iri=patch.iri(1, 1))
        assert self.frame_sizes(written) == [MIB, len(patch.frame(header, patch.punctuation()))]
