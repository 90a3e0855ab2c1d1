"""Golden files of Jelly-Patch: what the JVM implementation writes, what it refuses, and what it lets pass."""

import pytest

from patchlog.codec.options import StreamType
from patchlog.errors import (
    InvalidTerm,
    LimitExceeded,
    MalformedFrame,
    TransactionError,
    UnexpectedRow,
    UnknownLookupEntry,
    UnsupportedOption,
)
from patchlog.model import (
    DEFAULT_GRAPH,
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
from patchlog.text.nquads import NQuadsReader

REFUSED = {
    "neg_dt_entry_oob": UnknownLookupEntry,
    "neg_dt_ref_zero": UnknownLookupEntry,
    "neg_dt_table_too_big": UnsupportedOption,
    "neg_garbage": MalformedFrame,
    "neg_header_no_value": InvalidTerm,
    "neg_jelly_rdf_not_patch": UnsupportedOption,
    "neg_name_entry_oob": UnknownLookupEntry,
    "neg_name_ref_oob": UnknownLookupEntry,
    "neg_name_ref_unset": UnknownLookupEntry,
    "neg_name_table_huge": UnsupportedOption,
    "neg_name_table_too_big": UnsupportedOption,
    "neg_no_options": UnexpectedRow,
    "neg_pa_no_value": InvalidTerm,
    "neg_prefix_ref_oob": UnknownLookupEntry,
    "neg_prefix_ref_unset": UnknownLookupEntry,
    "neg_prefix_row_when_disabled": UnknownLookupEntry,
    "neg_prefix_table_too_big": UnsupportedOption,
    "neg_punct_in_frame": UnexpectedRow,
    "neg_quoted_triple_empty": InvalidTerm,
    "neg_repeat_object_first": InvalidTerm,
    "neg_repeat_predicate_first": InvalidTerm,
    "neg_row_not_set": UnexpectedRow,
    "neg_star_nesting_200": LimitExceeded,
    "neg_statement_type_unspecified": UnsupportedOption,
    "neg_stream_type_unknown": UnsupportedOption,
    "neg_truncated_frame": MalformedFrame,
    "neg_truncated_varint": MalformedFrame,
    "neg_version_10001": UnsupportedOption,
    "neg_version_2": UnsupportedOption,
}

IGNORED_WHEN_STRICT = {"lax_graph_in_triples"}

REFUSED_WHEN_STRICT = {
    "lax_bad_utf8": (MalformedFrame, 0, 2),
    "lax_empty_file": (UnexpectedRow, None, None),
    "lax_frame_len_too_long": (MalformedFrame, 0, None),
    "lax_ns_graph_in_triples": (InvalidTerm, 0, 5),
    "lax_options_changed": (UnsupportedOption, 0, 6),
    "lax_options_changed_statement_type": (UnsupportedOption, 0, 6),
    "lax_repeat_graph_first": (InvalidTerm, 0, 5),
    "lax_star_not_declared": (InvalidTerm, 0, 5),
    "lax_tc_twice": (TransactionError, 0, 3),
    "lax_tc_without_tx": (TransactionError, 0, 1),
    "lax_tx_nested": (TransactionError, 0, 2),
    "lax_tx_spans_frames_in_frame_type": (TransactionError, 0, None),
    "lax_version_0": (UnsupportedOption, 0, 0),
}


def read_term(column):
    match column:
        case "~":
            return None
        case "DEFAULT":
            return DEFAULT_GRAPH
        case _:
            [(_, _, term)] = NQuadsReader().feed(f"_:s _:p {column} .\n".encode())
            return term


def read_operation(line):
    kind, *columns = line.split("\t")
    match kind:
        case "A":
            return Add(*map(read_term, columns))
        case "D":
            return Delete(*map(read_term, columns))
        case "H":
            return Header(columns[0], read_term(columns[1]))
        case "PA":
            return NamespaceAdd(columns[0], *map(read_term, columns[1:]))
        case "PD":
            return NamespaceDelete(columns[0], *map(read_term, columns[1:]))
        case _:
            return {"TX": TransactionStart, "TC": TransactionCommit, "TA": TransactionAbort, "Z": Punctuation}[kind]()


def read_operations(path):
    return [read_operation(line) for line in path.read_text(encoding="utf-8").splitlines()]


def read_stream(codec, data, **settings):
    decoder = codec.PatchDecoder(**settings)
    operations = [*decoder.feed(data), *decoder.finish()]
    return decoder.options, operations


def test_a_stream_has_the_operations_of_its_case(codec, positive_patch):
    _, operations = read_stream(codec, positive_patch.stream.read_bytes())

    assert operations == read_operations(positive_patch.operations)


def test_the_operations_of_a_case_survive_being_written(codec, positive_patch):
    options, operations = read_stream(codec, positive_patch.stream.read_bytes())
    if options.stream_type == StreamType.PUNCTUATED and operations[-1] != Punctuation():
        operations.append(Punctuation())  # a writer never leaves it out
    encoder = codec.PatchEncoder(options)

    for operation in operations:
        encoder.accept(operation)
    written = encoder.finish()

    assert read_stream(codec, written) == (options, operations)


@pytest.mark.parametrize("strict", [True, False], ids=["strict", "lenient"])
def test_what_the_jvm_refuses_is_refused(codec, negative_patch, strict):
    data = negative_patch.stream.read_bytes()

    with pytest.raises(REFUSED[negative_patch.name]):
        read_stream(codec, data, strict=strict)


def test_strict_reading_refuses_what_the_specification_says_to_refuse(codec, lax_patch):
    data = lax_patch.stream.read_bytes()
    if lax_patch.name in IGNORED_WHEN_STRICT:
        assert read_stream(codec, data)[1] == read_operations(lax_patch.operations)
        return
    error_class, frame, row = REFUSED_WHEN_STRICT[lax_patch.name]

    with pytest.raises(error_class) as refusal:
        read_stream(codec, data)

    assert (refusal.value.frame, refusal.value.row) == (frame, row)


def test_lenient_reading_takes_what_the_jvm_takes(codec, lax_patch):
    _, operations = read_stream(codec, lax_patch.stream.read_bytes(), strict=False)

    assert operations == read_operations(lax_patch.operations)
