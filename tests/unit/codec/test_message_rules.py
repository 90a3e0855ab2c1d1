"""docs/protocol.md, "Messages": what is protobuf and what is not."""

import pytest

from patchlog.codec.options import Limits
from patchlog.errors import InvalidTerm, LimitExceeded, MalformedFrame, UnexpectedRow, UnknownLookupEntry
from patchlog.model import TransactionStart

TRIPLE = ("_:s", "<p>", "_:o")

NOT_A_FIELD = {
    "the tag is cut short": b"\x80",
    "the tag takes more than 32 bits": b"\x80\x80\x80\x80\x10\x00",
    "the tag takes eleven bytes": b"\xd2\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00\x00",
    "field 0": b"\x00\x00",
    "field 0 with a length": b"\x02\x00",
    "a group begins": b"\x53",
    "a group ends": b"\x54",
    "wire type 6": b"\x56\x00",
    "wire type 7": b"\x57\x00",
    "the number is missing": b"\xa0\x06",
    "the number is cut short": b"\xa0\x06\x80",
    "the number takes eleven bytes": b"\xa0\x06" + b"\x80" * 10 + b"\x00",
    "the length is missing": b"\xa2\x06",
    "the bytes are cut short": b"\xa2\x06\x02o",
    "the length is enormous": b"\xa2\x06" + b"\xff" * 9 + b"\x01",
    "eight bytes are cut short": b"\xa1\x06" + bytes(7),
    "four bytes are cut short": b"\xa5\x06" + bytes(3),
}

UNKNOWN_FIELDS = {
    "a number": b"\xa0\x06\x01",
    "a number of 64 bits": b"\xa0\x06" + b"\xff" * 9 + b"\x01",
    "bytes": b"\xa2\x06\x01x",
    "eight bytes": b"\xa1\x06" + bytes(8),
    "four bytes": b"\xa5\x06" + bytes(4),
    "the largest field number": b"\xf8\xff\xff\xff\x0f\x01",
    "a tag that takes more bytes than it needs": b"\xa0\x86\x80\x00\x01",
}


def streams_with(rdf, field):
    """Streams of a triple with a field added to one of the messages, and the row in which that is."""
    options = rdf.options(rdf_star=1)
    names, datatype = [rdf.name("p"), rdf.name("o")], rdf.datatype("d")
    literal = rdf.literal("o", datatype=1)
    quoted = rdf.terms(s_bnode="s", p_iri={}, o_bnode="o")

    def triple(object_field, content):
        return {2: [(2, "s"), (5, rdf.iri(name=1)), (object_field, content)]}

    yield "frame", rdf.frame(options) + field, None
    yield "row", rdf.frame(options, rdf.row(rdf.message(names[0]) + field)), 1
    yield "options", rdf.frame({1: rdf.message(options[1]) + field}), 0
    yield "name", rdf.frame(options, {9: rdf.message(names[0][9]) + field}), 1
    yield "triple", rdf.frame(options, *names, {2: rdf.message({2: "s", 5: {}, 10: "o"}) + field}), 3
    yield "IRI", rdf.frame(options, *names, triple(9, rdf.message({2: 2}) + field)), 3
    yield "literal", rdf.frame(options, *names, datatype, triple(11, rdf.message(literal) + field)), 4
    yield "quoted triple", rdf.frame(options, *names, triple(12, rdf.message(quoted) + field)), 3
    yield "namespace", rdf.frame(options, *names, {6: rdf.message({1: "", 2: {}}) + field}), 3
    yield "metadata", rdf.frame(options) + rdf.metadata(rdf.message({1: "key"}) + field), None


@pytest.mark.parametrize("field", NOT_A_FIELD.values(), ids=NOT_A_FIELD.keys())
def test_a_message_with_what_is_no_field_is_malformed(codec, rdf, refusal, field):
    for where, frame, row in streams_with(rdf, field):
        assert (where, *refusal(codec.RdfDecoder(), rdf.stream(frame))) == (where, MalformedFrame, 0, row)


@pytest.mark.parametrize("field", UNKNOWN_FIELDS.values(), ids=UNKNOWN_FIELDS.keys())
def test_unknown_fields_are_skipped(codec, rdf, read, field):
    for (where, frame, _), (_, plain, _) in zip(streams_with(rdf, field), streams_with(rdf, b""), strict=True):
        assert (where, read(codec.RdfDecoder(), rdf.stream(frame))) == (
            where,
            read(codec.RdfDecoder(), rdf.stream(plain)),
        )


def test_known_fields_of_another_wire_type_are_skipped(codec, rdf, statements):
    stream = rdf.stream(
        [
            rdf.options(),
            {9: {1: "id", 2: "p"}},
            {2: [(2, "s"), (2, 1), (5, {1: "prefix", 2: "name"}), (10, "o"), (10, 1)]},
        ]
    )

    assert statements(codec.RdfDecoder(), stream) == [TRIPLE]


def test_of_several_fields_of_a_oneof_the_last_counts(codec, rdf, statements):
    stream = rdf.stream(
        [
            rdf.options(),
            [(10, {1: 1, 2: "not a prefix"}), (9, {2: "p"})],
            {2: [(1, {2: 7}), (2, "first"), (2, "s"), (5, {}), (10, "x"), (11, {1: "o"})]},
        ]
    )

    assert statements(codec.RdfDecoder(), stream) == [("_:s", "<p>", '"o"')]


def test_nothing_is_merged_with_what_a_later_field_replaces(codec, rdf, statements):
    stream = rdf.stream(
        [
            rdf.options(),
            rdf.name("p"),
            {2: [(2, "s"), (5, {}), (11, {1: "lost", 2: "en"}), (11, {2: "de"})]},
        ]
    )

    assert statements(codec.RdfDecoder(), stream) == [("_:s", "<p>", '""@de')]


def test_of_the_kinds_of_a_literal_the_last_counts(codec, rdf, statements):
    stream = rdf.stream(
        [
            rdf.options(),
            rdf.name("p"),
            rdf.datatype("d"),
            {2: [(2, "s"), (5, {}), (11, [(3, 1), (2, "en")])]},
            {2: {11: [(2, "en"), (3, 1)]}},
        ]
    )

    assert statements(codec.RdfDecoder(), stream) == [("_:s", "<p>", '""@en'), ("_:s", "<p>", '""^^<d>')]


def test_what_is_replaced_is_not_looked_into(codec, rdf, statements):
    stream = rdf.stream(
        [
            rdf.options(),
            [(2, b"\x00"), (9, {2: "p"})],
            {2: [(1, b"\x00"), (2, b"\xff"), (2, "s"), (5, {}), (10, "o")]},
        ]
    )

    assert statements(codec.RdfDecoder(), stream) == [TRIPLE]


@pytest.mark.parametrize("sink", ["jelly-patch", "canonical-patch", "rdf-patch"])
def test_what_is_replaced_leaves_no_trace_in_what_is_written(codec, patch, sink):
    """The last term of a place repeats the one before, though the first, which does not count, is another."""

    def written(fields):
        first = patch.add(s_bnode="a", p_iri={2: 1}, o_bnode="o", g_iri={})
        rows = [patch.options(patch.QUADS), patch.name("p"), patch.name("g"), first, {2: fields}]
        converter = codec.Converter("jelly-patch", sink)
        return converter.feed(patch.stream([*rows, patch.punctuation()])) + converter.finish()

    replaced = [(2, "b"), (2, "a"), (13, {2: 1}), (13, {2: 2})]

    assert written(replaced) == written([(2, "a"), (13, {2: 2})])


def test_what_is_replaced_is_in_no_dictionary(codec, rdf):
    pa = pytest.importorskip("pyarrow")
    rows = [rdf.options(), rdf.name("p"), {2: [(1, {2: 1}), (2, "s"), (5, {2: 1}), (10, "o")]}]
    decoder = codec.ArrowDecoder("jelly")

    (batch,) = (pa.record_batch(batch) for batch in [*decoder.feed(rdf.stream(rows)), *decoder.finish()])

    assert batch.column("subject").dictionary.to_pylist() == ["_:s"]


def test_fields_may_stand_in_any_order(codec, rdf, statements):
    stream = rdf.stream(
        [
            rdf.options(),
            rdf.name("a"),
            rdf.name("b"),
            rdf.name("c"),
            {2: [(9, {}), (5, {}), (1, {})]},
        ]
    )

    assert statements(codec.RdfDecoder(), stream) == [("<a>", "<b>", "<c>")]


def test_numbers_keep_their_low_32_bits(codec, rdf, statements):
    stream = rdf.stream(
        [
            rdf.options(version=(1 << 32) + 1, names=(1 << 63) + 8),
            rdf.name("p", entry_id=(1 << 32) + 2),
            rdf.triple(s_bnode="s", p_iri={2: (5 << 32) + 2}, o_bnode="o"),
        ]
    )

    assert statements(codec.RdfDecoder(), stream) == [TRIPLE]


def test_a_claim_is_true_when_any_of_its_bits_is_set(codec, rdf, read):
    decoder = codec.RdfDecoder()

    read(decoder, rdf.stream([rdf.options(rdf_star=1 << 40, generalized=2)]))

    assert decoder.options.rdf_star
    assert decoder.options.generalized_statements


@pytest.mark.parametrize("is_strict", [True, False])
def test_text_that_is_not_utf8_is_refused_or_replaced(codec, rdf, read, refusal, is_strict):
    stream = rdf.stream(
        [
            rdf.options(stream_name=b"\xff", rdf_star=0),
            {9: {2: b"p\xe2\x82"}},
            rdf.triple(s_bnode=b"\xc0\xaf", p_iri={}, o_literal={1: b"\xed\xa0\x80", 2: b"\xf0\x9f\x98en"}),
            {6: {1: b"\xfe", 2: {2: 1}}},
        ]
    )
    decoder = codec.RdfDecoder(strict=is_strict)

    if is_strict:
        assert refusal(decoder, stream) == (MalformedFrame, 0, 0)
        return
    [frame] = read(decoder, stream)

    assert decoder.options.stream_name == "\ufffd"
    assert frame.statements == [("_:\ufffd\ufffd", "<p\ufffd>", '"\ufffd\ufffd\ufffd"@\ufffden')]
    assert frame.namespaces == [("\ufffd", "<p\ufffd>")]


def test_an_error_in_a_lookup_entry_is_found_at_the_entry(codec, rdf, refusal):
    stream = rdf.stream([rdf.options(), {9: {2: b"\xff"}}])

    assert refusal(codec.RdfDecoder(), stream) == (MalformedFrame, 0, 1)


def test_the_value_of_an_entry_is_used_before_its_id(codec, rdf, refusal):
    stream = rdf.stream([rdf.options(), {9: {1: 9, 2: b"\xff"}}])

    assert refusal(codec.RdfDecoder(), stream) == (MalformedFrame, 0, 1)


def test_a_lexical_form_is_used_before_its_language_and_datatype(codec, rdf, refusal):
    with_language = rdf.stream(
        [rdf.options(), rdf.name("p"), rdf.triple(s_bnode="", p_iri={}, o_literal={1: b"\xff", 2: ""})]
    )
    with_datatype = rdf.stream(
        [rdf.options(), rdf.name("p"), rdf.triple(s_bnode="", p_iri={}, o_literal={1: b"\xff", 3: 9})]
    )

    assert refusal(codec.RdfDecoder(), with_language) == (MalformedFrame, 0, 2)
    assert refusal(codec.RdfDecoder(), with_datatype) == (MalformedFrame, 0, 2)


def test_a_message_is_parsed_to_its_end_before_its_terms_are_read(codec, rdf, refusal):
    unknown_subject_then_no_field = {2: b"\x0a\x02\x10\x07" + b"\x00\x00"}
    unknown_subject_then_malformed_object = rdf.triple(s_iri=rdf.iri(name=7), p_bnode="", o_iri=b"\x00\x00")

    assert refusal(codec.RdfDecoder(), rdf.stream([rdf.options(), unknown_subject_then_no_field])) == (
        MalformedFrame,
        0,
        1,
    )
    assert refusal(codec.RdfDecoder(), rdf.stream([rdf.options(), unknown_subject_then_malformed_object])) == (
        UnknownLookupEntry,
        0,
        1,
    )


def test_whether_a_row_is_allowed_is_known_before_its_message_is_parsed(codec, rdf, refusal):
    assert refusal(codec.RdfDecoder(), rdf.stream([{2: b"\x00\x00"}])) == (UnexpectedRow, 0, 0)
    assert refusal(codec.RdfDecoder(), rdf.stream([rdf.options(), {3: b"\x00\x00"}])) == (UnexpectedRow, 0, 1)


def test_rows_are_taken_in_order(codec, rdf, refusal):
    not_allowed_then_malformed = rdf.stream(rdf.frame(rdf.options(), {3: {}}) + b"\x00\x00")

    assert refusal(codec.RdfDecoder(), not_allowed_then_malformed) == (UnexpectedRow, 0, 1)


@pytest.mark.parametrize(
    "row", [{}, {7: {}}, {16: {}}, {2: 1}], ids=["empty", "reserved", "unknown", "another wire type"]
)
def test_a_row_with_nothing_set_is_refused(codec, rdf, patch, refusal, row):
    assert refusal(codec.RdfDecoder(), rdf.stream([rdf.options(), row])) == (UnexpectedRow, 0, 1)
    reserved = {9: {}, 10: {}} if row == {7: {}} else row
    assert refusal(codec.PatchDecoder(), patch.stream([patch.options(), reserved])) == (UnexpectedRow, 0, 1)


def test_rows_are_counted_with_lookups_and_without_other_fields(codec, rdf, refusal):
    stream = rdf.stream([rdf.options(), b"\x78\x00", rdf.name("a"), b"\x78\x00", {}])

    assert refusal(codec.RdfDecoder(), stream) == (UnexpectedRow, 0, 2)


def test_more_rows_than_the_limit_are_refused_before_they_are_parsed(codec, rdf, read, refusal):
    limits = Limits(max_rows_per_frame=2)
    two_rows = [rdf.options(), rdf.name("a")]

    assert len(read(codec.RdfDecoder(limits=limits), rdf.stream(two_rows, [rdf.options()] * 2))) == 2
    assert refusal(codec.RdfDecoder(limits=limits), rdf.stream([*two_rows, rdf.row(b"\x00\x00")])) == (
        LimitExceeded,
        0,
        2,
    )


def test_long_rows_and_messages_are_read_like_short_ones(codec, rdf, statements):
    label = "x" * 20000
    stream = rdf.stream(
        [
            rdf.options(),
            rdf.name("p" * 300),
            rdf.triple(s_bnode="s" * 126, p_iri={}, o_bnode="o" * 127),
            rdf.triple(s_bnode="s" * 128, o_literal={1: label}),
        ]
    )

    assert statements(codec.RdfDecoder(), stream) == [
        (f"_:{'s' * 126}", f"<{'p' * 300}>", f"_:{'o' * 127}"),
        (f"_:{'s' * 128}", f"<{'p' * 300}>", f'"{label}"'),
    ]


def test_metadata_is_read(codec, rdf, read):
    frame = rdf.frame(rdf.options()) + b"".join(
        rdf.metadata(entry) for entry in ({1: "a", 2: b"\xff"}, {2: b"no key"}, {1: "empty"}, {1: "a", 2: b"last"}, {})
    )

    [read_frame] = read(codec.RdfDecoder(), rdf.stream(frame))

    assert read_frame.metadata == {"a": b"last", "": b"", "empty": b""}


def test_a_metadata_key_that_is_not_utf8_is_refused_without_a_row(codec, rdf, refusal):
    stream = rdf.stream(rdf.frame(rdf.options()) + rdf.metadata({1: b"\xff"}))

    assert refusal(codec.RdfDecoder(), stream) == (MalformedFrame, 0, None)


def test_a_patch_frame_has_no_metadata(codec, patch, read):
    stream = patch.stream(patch.frame(patch.options(), patch.start()) + b"\x7a\x03\x0a\x01\xff")

    assert len(read(codec.PatchDecoder(), stream)) == 1


def test_of_a_frame_with_an_error_nothing_is_given(codec, patch):
    operations = codec.PatchDecoder().feed(patch.stream([patch.options(), patch.start()], [patch.commit(), {}]))

    assert next(operations) == TransactionStart()
    with pytest.raises(UnexpectedRow):
        next(operations)


def test_an_error_reads_as_its_place_and_its_reason(codec, rdf):
    decoder = codec.RdfDecoder()
    stream = rdf.stream([rdf.options()], [rdf.triple()])

    with pytest.raises(InvalidTerm, match=r"^frame 1, row 0: there is no subject to repeat$") as refusal:
        list(decoder.feed(stream))

    assert refusal.value.reason == "there is no subject to repeat"
