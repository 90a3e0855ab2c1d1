"""A position names its history: the id of the log, a version, and the chain hash at that version."""

import pytest

from patchlog.errors import HistoryMismatch, UsageError
from patchlog.log.position import Position, last_common_version
from patchlog.log.tailing import tail

ELSEWHERE = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def grown(patch_log, patches):
    patch_log.append(patches.stream(*(patches.operations(s) for s in "abc")))
    return patch_log


def made_again(store, patches, subjects):
    store.delete("people")
    store.create("people")
    log = store.log("people")
    log.append(patches.stream(*(patches.operations(s) for s in subjects)))
    return log


def versions(log, after):
    return [logged.record.version for logged in log.read(after) if [*logged.chunks]]


def test_position_names_log_version_and_chain_hash(grown):
    description = grown.describe()

    assert grown.position() == Position(description.id, 3, description.head.hash)
    assert grown.position(2) == Position(description.id, 2, grown.find(2).chain_hash)
    assert grown.position(0) == Position(description.id, 0, bytes(32))


def test_position_of_an_empty_log_is_its_beginning(patch_log):
    assert patch_log.position() == patch_log.position(0) == Position(patch_log.describe().id, 0, bytes(32))


@pytest.mark.parametrize("version", [4, -1])
def test_there_is_no_position_where_there_is_no_version(grown, version):
    with pytest.raises(UsageError):
        grown.position(version)


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_own_positions_are_right(grown, version):
    position = grown.position(version)

    grown.check(position)

    assert versions(grown, position) == [*range(version + 1, 4)]


def test_bare_version_is_not_checked(grown):
    grown.check(Position(None, 99, None))

    assert versions(grown, 1) == [2, 3]


def test_position_follows_the_records_of_the_log(grown):
    position = grown.position(0)

    for logged in grown.read(position):
        position = position.follow(logged.record)

    assert position == grown.position()


def test_record_that_does_not_continue_a_position_is_refused(grown):
    first, third = grown.find(1), grown.find(3)

    with pytest.raises(HistoryMismatch):
        grown.position(1).follow(third)
    with pytest.raises(HistoryMismatch):
        Position(None, 0, bytes(range(32))).follow(first)


def test_other_history_at_the_same_version_is_refused(grown, store, patches):
    store.create("others")
    other = store.log("others")
    other.append(patches.stream(*(patches.operations(s) for s in "xyz")))
    fork = Position(grown.describe().id, 2, other.position(2).hash)

    for use in (grown.check, grown.read):
        with pytest.raises(HistoryMismatch) as raised:
            use(fork)

        assert (raised.value.version, raised.value.last_common) == (2, None)
        assert "people" in str(raised.value)


def test_version_above_the_head_of_a_rewound_log_is_refused(grown):
    ahead = Position(grown.describe().id, 4, bytes(range(32)))

    for use in (grown.check, grown.read):
        with pytest.raises(HistoryMismatch, match="restored to an older state") as raised:
            use(ahead)

        assert raised.value.head_version == 3


def test_log_that_was_made_again_is_another_one(grown, store, patches, backend):
    if backend.kind == "file":
        pytest.skip("a file is known by its content")
    position = grown.position(2)

    log = made_again(store, patches, "xyz")

    for use in (log.check, log.read):
        with pytest.raises(HistoryMismatch, match="deleted and created again") as raised:
            use(position)
        assert raised.value.last_common is None
        assert raised.value.log_id == log.describe().id


def test_log_that_was_made_again_of_the_same_patches_names_the_last_common_version(grown, store, backend):
    if backend.kind == "file":
        pytest.skip("a file is known by its content")
    position = grown.position(2)
    stream = b"".join(chunk for logged in grown.read() for chunk in logged.chunks)
    store.delete("people")
    store.create("people")
    store.log("people").append([stream])

    with pytest.raises(HistoryMismatch, match="the same up to version 2") as raised:
        store.log("people").check(position)

    assert raised.value.last_common == 2


def test_positions_below_a_truncation_are_known_still(grown, backend):
    if backend.kind == "file":
        pytest.skip("a file keeps all of its patches")
    position = grown.position(1)
    grown.snapshots.build()
    grown.truncate_before(4)

    grown.check(position)

    assert grown.position(1) == position


def test_tail_ends_where_its_log_is_made_again(grown, store, patches):
    tailing = tail(grown, grown.position(0))
    for _ in range(3):
        next(tailing)

    made_again(store, patches, "wxyz")

    with pytest.raises(HistoryMismatch):
        next(tailing)


def test_reader_in_the_middle_of_a_log_that_is_made_again_gets_nothing_of_the_other(patch_log, store, patches, backend):
    if backend.kind == "file":
        pytest.skip("who reads a file has it open, and goes on with what it was")
    patch_log.append(patches.stream(*(patches.operations(f"a{n}") for n in range(1500))))
    reading = patch_log.read(0)
    read = [next(reading).record.id]

    other = made_again(store, patches, [f"b{n}" for n in range(1500)])
    with pytest.raises(Exception):  # noqa: B017, PT011  which one depends on how far the reader was
        read += [logged.record.id for logged in reading if b"".join(logged.chunks)]

    assert not {record.record.id for record in other.read()} & set(read)


def test_consumer_says_which_history_it_has_read(grown, backend):
    if backend.kind == "file":
        pytest.skip("a file keeps no consumers")
    position = grown.position(2)

    consumer = grown.consumers.advance("reader", position)

    assert Position(consumer.log_id, consumer.version, consumer.hash) == position
    assert [(c.log_id, c.hash) for c in grown.consumers.list()] == [(position.log_id, position.hash)]


def test_consumer_of_another_history_is_refused(grown, backend):
    if backend.kind == "file":
        pytest.skip("a file keeps no consumers")
    for position in (Position(grown.describe().id, 2, bytes(32)), Position(ELSEWHERE, 2, grown.find(2).chain_hash)):
        with pytest.raises(HistoryMismatch):
            grown.consumers.advance("reader", position)

    assert grown.consumers.list() == []


def test_last_common_version_is_found_by_hashes(grown, store, patches):
    store.create("others")
    other = store.log("others")
    shared = b"".join(chunk for logged in grown.read(until=2) for chunk in logged.chunks)
    other.append([shared])
    other.append(patches.one("z"))

    def hash_at(log):
        return lambda version: log.find(version).chain_hash

    assert last_common_version(hash_at(grown), hash_at(other), 3) == 2


def test_text_of_a_position_reads_back():
    positions = [Position(ELSEWHERE, 7, bytes(range(32))), Position(None, 3, None), Position(ELSEWHERE, 0, None)]

    assert [Position.parse(str(position)) for position in positions] == positions
    for wrong in ("", "7", f"{ELSEWHERE}:-1:", f"{ELSEWHERE}:1:00", "x:1:", ":\u0665:", f":{1 << 63}:", ":1:\n"):
        with pytest.raises(UsageError):
            Position.parse(wrong)
