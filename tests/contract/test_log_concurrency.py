"""Who waits for a log, and many who write at once: what every patch log does, whatever keeps it."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from patchlog.errors import HeadMismatch, LogNotFound
from patchlog.log.records import EMPTY_HEAD

# Waiting


def test_waiting_ends_with_the_version(patch_log, patches):
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(patch_log.wait_for, 2, 3600)
        patch_log.append(patches.one("a"))
        time.sleep(0.1)
        assert not waiting.done()
        patch_log.append(patches.one("b"))

        assert waiting.result(60).version == 2


def test_waiting_ends_with_the_time(patch_log):
    begun = time.monotonic()

    assert patch_log.wait_for(1, 0.2) == EMPTY_HEAD

    assert time.monotonic() - begun >= 0.2


def test_nobody_waits_for_what_is_there(patch_log, patches):
    patch_log.append(patches.one())

    assert patch_log.wait_for(1, 30).version == 1


def test_waiting_ends_when_the_log_is_deleted(store, patch_log):
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(patch_log.wait_for, 1, 3600)
        store.delete("people")

        with pytest.raises(LogNotFound):
            waiting.result(60)


# Many writers


def test_reader_who_has_seen_a_version_never_finds_something_new_below(patch_log, patches):
    """With numbers from a sequence, 8 can be there before 7, and who reads on after 8 never sees 7."""
    writers, each = 8, 20
    seen, done = [], threading.Event()

    def tail():
        position = 0
        while not (done.is_set() and patch_log.head().version == position):
            for logged in patch_log.read(position):
                seen.append((logged.record.version, logged.record.id))
                position = logged.record.version

    with ThreadPoolExecutor(writers + 1) as threads:
        tailing = threads.submit(tail)
        writing = [
            threads.submit(lambda i=i: [patch_log.append(patches.one(f"s{i}-{j}")) for j in range(each)])
            for i in range(writers)
        ]
        acknowledged = {(answer.version, answer.id) for future in writing for answer in future.result(120)}
        done.set()
        tailing.result(120)

    assert [version for version, _ in seen] == list(range(1, writers * each + 1))
    assert set(seen) == acknowledged
    assert patch_log.verify().is_sound


def test_of_writers_on_one_head_one_wins(patch_log, patches):
    writers, rounds = 8, 8

    def append(head, subject):
        try:
            return patch_log.append(patches.one(subject), expected_head=head).version
        except HeadMismatch:
            return None

    with ThreadPoolExecutor(writers) as threads:
        for round in range(1, rounds + 1):
            head = patch_log.head().id
            versions = list(threads.map(lambda i, head=head: append(head, f"s{i}"), range(writers)))
            assert [version for version in versions if version] == [round]


def test_retries_at_the_same_time_are_one_version(patch_log, patches):
    ids = [f"{i:08}-0000-4000-8000-000000000000" for i in range(10)]

    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(lambda i: patch_log.append(patches.one(id=ids[i % 10])), range(80)))

    assert {answer.id: answer.version for answer in answers}.keys() == set(ids)
    assert len({(answer.id, answer.version) for answer in answers}) == 10
    assert sum(not answer.is_retry for answer in answers) == 10
    assert patch_log.head().version == 10


def test_writers_of_several_logs_do_not_disturb_each_other(store, patches):
    names = ["a", "b", "c"]
    for name in names:
        store.create(name)

    with ThreadPoolExecutor(9) as threads:
        list(threads.map(lambda i: store.log(names[i % 3]).append(patches.one(f"s{i}")), range(60)))

    for name in names:
        assert [logged.record.version for logged in store.log(name).read()] == list(range(1, 21))
        assert store.log(name).verify().is_sound
