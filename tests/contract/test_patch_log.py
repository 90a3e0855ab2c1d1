"""What every patch log does, whatever keeps it."""

from hashlib import sha256

import pytest

from patchlog.codec.fields import read_varint
from patchlog.codec.ingest import header_frame
from patchlog.codec.options import PatchOptions, StreamType
from patchlog.engine import PatchDecoder
from patchlog.errors import (
    CodecError,
    HeadMismatch,
    InvalidTerm,
    MalformedFrame,
    PatchAlreadyExists,
    PositionGone,
    TransactionError,
    UnexpectedRow,
    UsageError,
)
from patchlog.log.records import EMPTY_HEAD, LogOptions
from patchlog.log.succession import chain_hash
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

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


def stored(log, after=0, **bounds):
    """The bytes of the patches, laid end to end."""
    return b"".join(chunk for logged in log.read(after, **bounds) for chunk in logged.chunks)


def operations(data):
    decoder = PatchDecoder()
    return [*decoder.feed(data), *decoder.finish()]


def versions(log, after=0, **bounds):
    return [logged.record.version for logged in log.read(after, **bounds)]


# Appending


def test_versions_are_1_2_3(patch_log, patches):
    appended = [patch_log.append(patches.one(subject)) for subject in "abc"]

    assert [(answer.first_version, answer.version) for answer in appended] == [(1, 1), (2, 2), (3, 3)]
    assert patch_log.head().version == 3
    assert patch_log.head().id == appended[-1].id
    assert versions(patch_log) == [1, 2, 3]


def test_missing_id_and_prev_are_filled_in(patch_log, patches):
    first = patch_log.append(patches.one("a"))
    second = patch_log.append(patches.one("b", id=patches.B))

    assert second.id == patches.B
    assert [operation for operation in operations(stored(patch_log)) if isinstance(operation, Header)] == [
        Header("id", f"<urn:uuid:{first.id}>"),
        Header("id", f"<urn:uuid:{patches.B}>"),
        Header("prev", f"<urn:uuid:{first.id}>"),
    ]


def test_what_is_read_is_what_was_appended(patch_log, patches):
    sent = [
        NamespaceAdd("ex", "<http://example.org/>"),
        Header("who", '"me"'),
        TransactionStart(),
        Add("_:b0", "<p>", '"01"^^<http://www.w3.org/2001/XMLSchema#integer>', "<g>"),
        Delete("_:b0", "<p>", '"Ä\\n"@EN-gb', ""),
        TransactionCommit(),
        TransactionStart(),
        Add("<<( <a> <b> _:c )>>", "<p>", '" x "', "_:g"),
        TransactionAbort(),
        NamespaceDelete("ex", None, ""),
    ]
    options = PatchOptions(rdf_star=True)

    answer = patch_log.append(patches.stream(sent, options=options))

    read = operations(stored(patch_log))
    assert read == [
        Header("id", f"<urn:uuid:{answer.id}>"),
        NamespaceAdd("ex", "<http://example.org/>", ""),
        *sent[1:],
        Punctuation(),
    ]
    assert answer.operations == len(sent)


def test_record_says_what_the_bytes_are(patch_log, patches):
    answers = [patch_log.append(patches.one(subject, id=id)) for subject, id in (("a", patches.A), ("b", patches.B))]

    before = bytes(32)
    for version, logged in enumerate(patch_log.read(), 1):
        record, data = logged.record, b"".join(logged.chunks)
        header = header_frame(record.id, record.prev, LogOptions().patch_options)
        assert record == patch_log.find(version) == patch_log.find(record.id)
        assert data.startswith(header)
        assert record.body_hash == sha256(data[len(header) :]).digest()
        assert record.content_hash == sha256(data).digest()
        assert record.chain_hash == chain_hash(before, record.content_hash)
        assert (record.bytes, record.operations, record.adds, record.transactions) == (len(data), 3, 1, 1)
        assert answers[version - 1].bytes == record.bytes
        before = record.chain_hash
    assert patch_log.head().hash == before
    assert [patch_log.find(version).prev for version in (1, 2)] == [None, patches.A]


@pytest.mark.parametrize("stream_type", list(StreamType)[1:])
def test_every_kind_of_stream_is_stored_alike(patch_log, patches, stream_type):
    sent = patches.operations(values=['"1"', '"2"'])

    patch_log.append(patches.stream(sent, options=PatchOptions(stream_type=stream_type)))
    patch_log.append(patches.stream(sent, format="rdf-patch"), format="rdf-patch")

    assert patch_log.find(1).body_hash == patch_log.find(2).body_hash


def test_chunks_of_any_size_are_taken(patch_log, patches):
    [data] = patches.one()

    patch_log.append([data[i : i + 1] for i in range(len(data))])
    patch_log.append([b"", data, b""])

    assert patch_log.find(1).body_hash == patch_log.find(2).body_hash


@pytest.mark.parametrize("stream_type", [StreamType.FRAME, StreamType.PUNCTUATED])
def test_patches_of_one_upload_get_versions_one_after_the_other(patch_log, patches, stream_type):
    patch_log.append(patches.one())
    sent = [patches.operations(f"s{i}") for i in range(5)]

    answer = patch_log.append(patches.stream(*sent, options=PatchOptions(stream_type=stream_type)))

    assert (answer.first_version, answer.version, answer.operations) == (2, 6, 15)
    assert versions(patch_log) == [1, 2, 3, 4, 5, 6]
    assert [patch_log.find(version).prev for version in range(2, 7)] == [
        patch_log.find(version).id for version in range(1, 6)
    ]
    assert patch_log.verify().is_sound


def test_text_of_several_patches_is_an_upload(patch_log):
    answer = patch_log.append([b'A <s> <p> "1" .\nZ .\nA <s> <p> "2" .\n'], format="rdf-patch")

    assert (answer.first_version, answer.version) == (1, 2)


def test_punctuation_alone_is_a_patch_without_operations(patch_log, patches):
    answer = patch_log.append(patches.stream([]))

    assert (answer.version, answer.operations) == (1, 0)
    assert operations(stored(patch_log)) == [Header("id", f"<urn:uuid:{answer.id}>"), Punctuation()]


def test_unknown_format_is_refused(patch_log):
    with pytest.raises(UsageError, match="not a format of patches"):
        patch_log.append([b""], format="turtle")


# What is refused leaves nothing


def test_input_without_a_patch_is_refused(patch_log):
    with pytest.raises(UsageError, match="no patch"):
        patch_log.append([b"# nothing\n"], format="rdf-patch")
    with pytest.raises(UnexpectedRow):
        patch_log.append([])

    assert patch_log.head() == EMPTY_HEAD


def test_jelly_that_is_cut_anywhere_leaves_nothing(patch_log, patches):
    [data] = patches.stream(*(patches.operations(f"s{i}") for i in range(2)))

    cut_at = [size for size in range(len(data)) if refused(patch_log, data[:size])]

    # Between the patches nothing shows that there were more of them.
    assert len(data) - len(cut_at) == 1
    assert patch_log.head().version == 1


def refused(log, data):
    try:
        log.append([data])
    except CodecError:
        return True
    return False


def test_stream_may_lack_its_last_punctuation(patch_log):
    """Jelly-JVM's writer leaves it out. The stored bytes have it."""
    from patchlog.codec.frame_writer import FrameWriter
    from patchlog.codec.operation_writer import OperationWriter

    frames = FrameWriter(rows_per_frame=0)
    OperationWriter(PatchOptions(), frames).write(Add("<s>", "<p>", "<o>"))
    frames.end_frame()

    patch_log.append([frames.take()])

    decoded = operations(stored(patch_log))
    assert [one for one in decoded if not isinstance(one, Header)] == [Add("<s>", "<p>", "<o>", ""), Punctuation()]


def test_stored_patch_that_is_cut_between_its_frames_is_refused(patch_log, patches):
    """Its headers have a frame of their own, by which it is known that it ends with a punctuation."""
    patch_log.append(patches.one(id=patches.A))
    whole = stored(patch_log)
    size, start = read_varint(whole, 0, len(whole))

    with pytest.raises(UnexpectedRow, match="ends inside a patch"):
        patch_log.append([whole[: start + size]])

    assert patch_log.head().version == 1


def test_text_that_ends_inside_a_transaction_is_refused(patch_log):
    with pytest.raises(TransactionError):
        patch_log.append([b"TX .\nA <s> <p> <o> .\n"], format="rdf-patch")

    assert patch_log.head() == EMPTY_HEAD


def test_one_bad_patch_keeps_its_whole_upload_out(patch_log, patches):
    [good] = patches.stream(*(patches.operations(f"s{i}") for i in range(3)))

    with pytest.raises(MalformedFrame) as raised:
        patch_log.append([good, b"\x05\xff\xff\xff\xff\xff"])

    assert raised.value.frame == 3
    assert patch_log.head() == EMPTY_HEAD


@pytest.mark.parametrize("header", ["id", "prev"])
def test_id_that_is_no_uuid_is_refused(patch_log, header):
    with pytest.raises(InvalidTerm, match="not a patch id"):
        patch_log.append([f"H {header} <http://example.org/1> .\nA <s> <p> <o> .\n".encode()], format="rdf-patch")


def test_upload_that_is_given_up_leaves_nothing(staging_log, patches):
    with staging_log.stage() as upload:
        upload.write(*patches.one(values=[f'"{i}{"x" * 1000}"' for i in range(3000)]))

    assert staging_log.head() == EMPTY_HEAD
    assert staging_log.append(patches.one()).version == 1
    assert staging_log.verify().is_sound


# Retries


def test_retry_answers_with_the_version_again(patch_log, patches):
    first = patch_log.append(patches.one(id=patches.A))
    patch_log.append(patches.one("b"))

    again = patch_log.append(patches.one(id=patches.A))

    assert not first.is_retry
    assert again.is_retry
    assert (again.first_version, again.version, again.id) == (1, 1, patches.A)
    assert (again.operations, again.bytes) == (first.operations, first.bytes)
    assert patch_log.head().version == 2


def test_retry_is_known_by_its_operations_whatever_their_bytes(patch_log, patches):
    patch_log.append(patches.one(id=patches.A))

    again = patch_log.append(
        patches.stream(patches.operations(id=patches.A.upper()), format="rdf-patch"), format="rdf-patch"
    )

    assert (again.version, again.is_retry) == (1, True)


def test_retry_with_the_head_of_then_is_a_retry(patch_log, patches):
    patch_log.append(patches.one(id=patches.A), expected_head=None)
    patch_log.append(patches.one("b", id=patches.B, prev=patches.A), expected_head=patches.A)
    patch_log.append(patches.one("c"))

    assert patch_log.append(patches.one(id=patches.A), expected_head=None).version == 1
    assert patch_log.append(patches.one("b", id=patches.B, prev=patches.A), expected_head=patches.A).version == 2
    assert patch_log.append(patches.one("b", id=patches.B)).version == 2


def test_retry_of_several_patches_answers_again(patch_log, patches):
    patch_log.append(patches.one())
    sent = [patches.operations(id, id=id) for id in (patches.A, patches.B)]
    patch_log.append(patches.stream(*sent))

    again = patch_log.append(patches.stream(*sent))

    assert (again.first_version, again.version, again.is_retry) == (2, 3, True)


def test_known_id_with_other_operations_is_refused(patch_log, patches):
    patch_log.append(patches.one())
    patch_log.append(patches.one(id=patches.A))

    with pytest.raises(PatchAlreadyExists) as raised:
        patch_log.append(patches.one("other", id=patches.A))

    assert (raised.value.id, raised.value.version) == (patches.A, 2)
    assert patch_log.head().version == 2


def test_known_id_on_another_patch_is_refused(patch_log, patches):
    patch_log.append(patches.one(id=patches.A))
    patch_log.append(patches.one("b", id=patches.B))

    with pytest.raises(PatchAlreadyExists):
        patch_log.append(patches.one("b", id=patches.B, prev=patches.C))


@pytest.mark.parametrize("order", ["AC", "CA", "BA", "AxB"])
def test_upload_that_is_there_in_part_or_in_another_order_is_refused(patch_log, patches, order):
    sent = {
        "A": patches.operations("a", id=patches.A),
        "B": patches.operations("b", id=patches.B),
        "C": patches.operations("c", id=patches.C),
        "x": patches.operations("x"),
    }
    patch_log.append(patches.stream(sent["A"], sent["B"]))

    with pytest.raises(PatchAlreadyExists):
        patch_log.append(patches.stream(*(sent[name] for name in order)))

    assert patch_log.head().version == 2


def test_two_patches_of_an_upload_with_one_id_are_refused(patch_log, patches):
    with pytest.raises(UnexpectedRow, match="two patches"):
        patch_log.append(patches.stream(*(patches.operations(s, id=patches.A) for s in "ab")))


# The head that a writer built on


def test_expected_head_lets_the_patch_in(patch_log, patches):
    patch_log.append(patches.one(id=patches.A), expected_head=None)
    patch_log.append(patches.one("b", id=patches.B), expected_head=patches.A.upper())
    patch_log.append(patches.one("c", prev=patches.B), expected_head=patches.B)

    assert patch_log.head().version == 3


def test_stale_head_is_refused_with_the_present_one(patch_log, patches):
    patch_log.append(patches.one(id=patches.A))
    patch_log.append(patches.one("b", id=patches.B))

    with pytest.raises(HeadMismatch) as by_caller:
        patch_log.append(patches.one("c"), expected_head=patches.A)
    with pytest.raises(HeadMismatch) as by_patch:
        patch_log.append(patches.one("c", prev=patches.A))
    with pytest.raises(HeadMismatch) as by_empty:
        patch_log.append(patches.one("c"), expected_head=None)

    assert (by_caller.value.expected_head, by_caller.value.actual_head) == (patches.A, patches.B)
    assert (by_patch.value.expected_head, by_patch.value.actual_head) == (patches.A, patches.B)
    assert (by_empty.value.expected_head, by_empty.value.actual_head) == (None, patches.B)
    assert patch_log.head().version == 2


def test_head_of_an_empty_log_is_none(patch_log, patches):
    with pytest.raises(HeadMismatch) as by_caller:
        patch_log.append(patches.one(), expected_head=patches.A)
    with pytest.raises(HeadMismatch):
        patch_log.append(patches.one(prev=patches.A))

    assert by_caller.value.actual_head is None


def test_patches_of_an_upload_follow_each_other(patch_log, patches):
    a = patches.operations("a", id=patches.A)

    with pytest.raises(HeadMismatch) as raised:
        patch_log.append(patches.stream(a, patches.operations("b", prev=patches.C)))
    patch_log.append(patches.stream(a, patches.operations("b", prev=patches.A)))

    assert (raised.value.expected_head, raised.value.actual_head) == (patches.C, patches.A)
    assert patch_log.head().version == 2


# Reading


def test_a_range_is_read(patch_log, patches):
    patch_log.append(patches.stream(*(patches.operations(f"s{i}") for i in range(7))))

    assert versions(patch_log, 2) == [3, 4, 5, 6, 7]
    assert versions(patch_log, 2, limit=2) == [3, 4]
    assert versions(patch_log, 2, until=5) == [3, 4, 5]
    assert versions(patch_log, 2, until=5, limit=9) == [3, 4, 5]
    assert versions(patch_log, 7) == versions(patch_log, 99) == versions(patch_log, 0, limit=0) == []
    assert versions(patch_log, 3, until=3) == versions(patch_log, 3, until=2) == []


def test_every_range_is_one_stream_of_its_patches(patch_log, patches):
    patch_log.append(patches.stream(*(patches.operations(f"s{i}") for i in range(5))))

    for after in range(5):
        read = operations(stored(patch_log, after))
        subjects = [operation.subject for operation in read if isinstance(operation, Add)]
        assert subjects == [f"<http://example.org/s{i}>" for i in range(after, 5)]


def test_negative_position_is_refused(patch_log):
    with pytest.raises(UsageError):
        patch_log.read(-1)


def test_unknown_patch_is_none(patch_log, patches):
    patch_log.append(patches.one())

    assert patch_log.find(patches.A) is None
    assert [patch_log.find(version) for version in (-1, 0, 2, 1 << 70)] == [None] * 4
    assert list(patch_log.read(1 << 70)) == []
    with pytest.raises(InvalidTerm):
        patch_log.find("1")


def test_read_ends_at_the_head_of_its_beginning(patch_log, patches):
    patch_log.append(patches.stream(*(patches.operations(f"s{i}") for i in range(3))))

    reading = patch_log.read()
    patch_log.append(patches.one())

    assert [logged.record.version for logged in reading] == [1, 2, 3]


# Large patches


def large(patches, megabytes, **headers):
    values = [f'"{i:04}{"x" * 4092}"' for i in range(megabytes << 8)]
    return patches.operations("large", values=values, **headers)


def test_large_patch_is_kept_in_chunks_of_a_mebibyte(patch_log, patches):
    sent = large(patches, 5, id=patches.A)

    answer = patch_log.append(patches.stream(sent))

    [logged] = patch_log.read()
    sizes = [len(chunk) for chunk in logged.chunks]
    assert len(sizes) > 4
    assert max(sizes) < (1 << 20) + 512
    assert sum(sizes) == answer.bytes
    assert len(operations(stored(patch_log))) == len(sent) + 1
    assert patch_log.verify().is_sound
    assert patch_log.append(patches.stream(sent)).is_retry
    with pytest.raises(PatchAlreadyExists):
        patch_log.append(patches.stream([*sent, Add("<s>", "<p>", "<o>")]))
    assert patch_log.append(patches.one("b")).version == 2


def test_row_larger_than_a_chunk_is_kept_in_several(patch_log, patches):
    value = f'"{"x" * (3 << 20)}"'

    patch_log.append(patches.one(values=[value]))

    [logged] = patch_log.read()
    assert max(len(chunk) for chunk in logged.chunks) < (1 << 20) + 512
    assert any(isinstance(operation, Add) and operation.object == value for operation in operations(stored(patch_log)))


def test_large_and_small_patches_of_an_upload_stand_in_their_order(patch_log, patches):
    patch_log.append(patches.one())
    sent = [
        patches.operations("a"),
        large(patches, 2),
        patches.operations("b"),
        large(patches, 2),
        patches.operations("c"),
    ]

    patch_log.append(patches.stream(*sent))

    read = operations(stored(patch_log, 1))
    assert [operation for operation in read if isinstance(operation, Add)] == [
        operation for patch in sent for operation in patch if isinstance(operation, Add)
    ]
    assert versions(patch_log) == [1, 2, 3, 4, 5, 6]
    assert patch_log.verify().is_sound


def test_many_small_patches_are_one_upload(patch_log, patches):
    sent = [patches.operations(f"s{i}", values=[f'"{i}{"x" * 500}"']) for i in range(3000)]

    answer = patch_log.append(patches.stream(*sent))

    assert (answer.first_version, answer.version) == (1, 3000)
    assert versions(patch_log) == list(range(1, 3001))
    assert patch_log.verify().checked == 3000


def test_head_that_moves_during_a_large_upload_does_not_matter(staging_log, patches):
    with staging_log.stage() as upload:
        upload.write(*patches.stream(large(patches, 2)))
        staging_log.append(patches.one(id=patches.A))
        answer = upload.append()

    assert answer.version == 2
    assert staging_log.find(2).prev == patches.A
    assert staging_log.verify().is_sound


def test_large_upload_on_a_stale_head_is_refused(staging_log, patches):
    with staging_log.stage() as upload:
        upload.write(*patches.stream(large(patches, 2)))
        staging_log.append(patches.one(id=patches.A))
        with pytest.raises(HeadMismatch):
            upload.append(expected_head=None)

    assert staging_log.head().version == 1


# Truncation


@pytest.fixture
def truncated(patch_log, patches):
    patch_log.append(patches.stream(patches.operations("a", id=patches.A), *(patches.operations(s) for s in "bcd")))
    patch_log.snapshots.build()
    patch_log.truncate_before(3)
    return patch_log


def test_truncated_patches_are_gone(truncated):
    with pytest.raises(PositionGone) as raised:
        truncated.read()

    assert (raised.value.position, raised.value.oldest_kept) == (1, 3)
    with pytest.raises(PositionGone):
        truncated.read(1, limit=1)
    assert versions(truncated, 2) == [3, 4]


def test_truncation_leaves_head_chain_and_records(truncated, patches):
    description = truncated.describe()

    assert (description.first_version, description.patches, description.head.version) == (3, 2, 4)
    assert description.bytes == sum(truncated.find(version).bytes for version in (3, 4))
    assert description.operations == 6
    assert truncated.find(patches.A).version == 1
    verification = truncated.verify()
    assert (verification.is_sound, verification.checked) == (True, 2)
    assert truncated.append(patches.one("e")).version == 5
    assert truncated.verify().checked == 3


def test_retry_of_a_truncated_patch_is_a_retry(truncated, patches):
    assert truncated.append(patches.one("a", id=patches.A)).version == 1


def test_what_was_truncated_stays_so(truncated):
    assert truncated.truncate_before(2).first_version == 3


def test_all_that_there_is_can_be_truncated(truncated, patches):
    description = truncated.truncate_before(99)

    assert (description.first_version, description.patches, description.bytes) == (5, 0, 0)
    assert versions(truncated, 4) == []
    assert truncated.verify().is_sound
    assert truncated.append(patches.one("e")).version == 5
    assert versions(truncated, 4) == [5]


def test_large_patch_is_truncated(patch_log, patches):
    patch_log.append(patches.stream(large(patches, 2)))
    patch_log.append(patches.one())
    patch_log.snapshots.build(1)

    patch_log.truncate_before(2)

    assert versions(patch_log, 1) == [2]
    assert patch_log.verify().is_sound


# Opened again


def test_everything_survives_a_restart(backend, store, patch_log, patches):
    patch_log.append(patches.one("a", id=patches.A))
    patch_log.append(patches.stream(large(patches, 2), patches.operations("b")))
    patch_log.append(patches.one("c", id=patches.C))
    patch_log.snapshots.build(1)
    patch_log.truncate_before(2)
    before = patch_log.describe(), patch_log.head(), stored(patch_log, 1), patch_log.find(patches.A)
    store.close()

    again = backend.open().log("people")

    assert (again.describe(), again.head(), stored(again, 1), again.find(patches.A)) == before
    assert again.append(patches.one("c", id=patches.C)).is_retry
    assert again.append(patches.one("d"), expected_head=patches.C).version == 5
    assert again.verify().is_sound
