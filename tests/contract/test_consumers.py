"""Named positions of those who follow a log, wherever the log is."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from patchlog.errors import ConsumerNotFound, ConsumerRefused, LogNotFound, UsageError


@pytest.fixture
def three(patch_log, patches):
    for subject in "abc":
        patch_log.append(patches.one(subject))
    return patch_log


def test_log_has_no_consumers_at_first(patch_log):
    assert patch_log.consumers.list() == []
    assert patch_log.consumers.find("spark") is None


def test_consumer_keeps_its_position(three):
    told = three.consumers.advance("spark", 2)

    assert (told.name, told.version, told.lag_versions) == ("spark", 2, 1)
    found = three.consumers.find("spark")
    assert (found.version, found.updated) == (2, told.updated)
    assert [consumer.name for consumer in three.consumers.list()] == ["spark"]


def test_consumer_goes_forward(three):
    for version in (0, 1, 1, 3):
        assert three.consumers.advance("spark", version).version == version


def test_consumer_goes_back_by_force_only(three):
    three.consumers.advance("spark", 3)

    with pytest.raises(ConsumerRefused, match="version 3"):
        three.consumers.advance("spark", 1)

    assert three.consumers.find("spark").version == 3
    assert three.consumers.advance("spark", 1, force=True).version == 1


@pytest.mark.parametrize("force", [False, True])
def test_consumer_is_not_beyond_the_head(three, force):
    with pytest.raises(ConsumerRefused, match="head is 3"):
        three.consumers.advance("spark", 4, force=force)

    assert three.consumers.list() == []


def test_lag_is_the_age_of_the_oldest_patch_that_was_not_read(patch_log, patches):
    patch_log.consumers.advance("spark", 0)
    assert patch_log.consumers.find("spark").lag_seconds == 0
    patch_log.append(patches.one("a"))
    time.sleep(0.05)
    before_the_second = time.time()
    patch_log.append(patches.one("b"))

    behind = patch_log.consumers.find("spark")
    nearly = patch_log.consumers.advance("spark", 1)
    since_the_second = time.time() - before_the_second
    done = patch_log.consumers.advance("spark", 2)

    assert (behind.lag_versions, nearly.lag_versions, done.lag_versions) == (2, 1, 0)
    assert behind.lag_seconds >= 0.05
    assert nearly.lag_seconds < since_the_second + 0.01  # times in a log are milliseconds
    assert done.lag_seconds == 0


def test_consumers_are_listed_by_name(three):
    for version, name in enumerate(("c", "B", "a", "_")):
        three.consumers.advance(name, version)

    assert [(consumer.name, consumer.version) for consumer in three.consumers.list()] == [
        ("B", 1),
        ("_", 3),
        ("a", 2),
        ("c", 0),
    ]


def test_forgotten_consumer_is_gone(three):
    three.consumers.advance("spark", 2)

    three.consumers.forget("spark")

    assert three.consumers.find("spark") is None
    with pytest.raises(ConsumerNotFound):
        three.consumers.forget("spark")


def test_consumers_belong_to_their_log(store, three):
    store.create("other")
    three.consumers.advance("spark", 2)

    assert store.log("other").consumers.list() == []
    store.delete("people")
    store.create("people")
    assert store.log("people").consumers.list() == []


@pytest.mark.parametrize("name", ["", ".", "a/b", "a b", "é", "a" * 101])
def test_hostile_names_of_consumers_are_refused(patch_log, name):
    for call in (patch_log.consumers.find, patch_log.consumers.forget, lambda bad: patch_log.consumers.advance(bad, 0)):
        with pytest.raises(UsageError, match="not the name of a consumer"):
            call(name)


def test_consumers_of_a_log_that_is_not_there_are_not_found(store):
    consumers = store.log("nobody").consumers

    for call in (
        consumers.list,
        lambda: consumers.find("a"),
        lambda: consumers.advance("a", 0),
        lambda: consumers.forget("a"),
    ):
        with pytest.raises(LogNotFound):
            call()


def test_consumers_that_move_at_once_do_not_disturb_each_other(three):
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: three.consumers.advance(f"c{number}", 1 + number % 3), range(16)))

    assert {consumer.version for consumer in three.consumers.list()} == {1, 2, 3}
    assert len(three.consumers.list()) == 16


def test_consumers_survive_a_restart(backend, three):
    three.consumers.advance("spark", 2)

    assert backend.open().log("people").consumers.find("spark").version == 2
