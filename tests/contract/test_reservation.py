"""A large upload gets its place though others append all the time, and is never hashed where others have to wait."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait as wait_for

import pytest
from sqlalchemy import update

from api.rounds import Rounds
from patchlog.errors import HeadMismatch, StorageError
from patchlog.log import reservation
from patchlog.log.memory import MemoryLogStore
from patchlog.log.records import Appended
from patchlog.log.reservation import PlaceReserved
from patchlog.log.rows import now_ms
from patchlog.log.sql import SqlLogStore
from patchlog.log.staging import Staging
from patchlog.log.tables import LOG
from tests.waiting import wait_until

LARGE = [f'"{number}{"x" * 4000}"' for number in range(600)]


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def store(request, tmp_path):
    if request.param == "memory":
        yield MemoryLogStore()
        return
    url = f"sqlite:///{tmp_path}/l.db"
    opened = SqlLogStore(request.getfixturevalue("postgresql_url") if request.param == "postgresql" else url)
    yield opened
    opened.close()


@pytest.fixture
def log(store, patches):
    for name in ("people", "others"):
        store.create(name)
    store.log("people").append(patches.one("first"))
    return store.log("people")


@pytest.fixture
def while_hashing(monkeypatch):
    """Have something done each time that a large patch is hashed."""
    calls = []
    content_hash = Staging._content_hash

    def hooked(self, header, patch, on_chunk=None):
        if patch.size > 1 << 20 and calls:
            calls[0]()
        return content_hash(self, header, patch, on_chunk)

    monkeypatch.setattr(Staging, "_content_hash", hooked)
    return calls


def test_large_upload_gets_its_place_while_others_append(store, log, patches, while_hashing):
    """After three moved heads its gigabytes were hashed in the writer's transaction, and every log waited."""
    names, others, waited = [], [], []
    with ThreadPoolExecutor() as threads:

        def hook():
            number = len(names)
            names.append(threading.current_thread().name)
            # No other log waits, whatever happens to this one.
            threads.submit(store.log("others").append, patches.one(f"o{number}")).result(30)
            others.append(threads.submit(log.append, patches.one(f"s{number}")))
            waited.append(bool(wait_for([others[-1]], 1).not_done))

        while_hashing.append(hook)
        appended = log.append(patches.one("large", values=LARGE))
        versions = [other.result(30).version for other in others]

    assert waited == [False, False, False, True]
    assert "patchlog-writer" not in names
    assert sorted([*versions, appended.version]) == [2, 3, 4, 5, 6]
    assert appended.version == 5
    assert store.log("others").head().version == 4
    assert log.verify().is_sound


def test_upload_that_was_built_on_another_head_is_refused_without_a_place(log, patches, while_hashing):
    head = log.head().id
    while_hashing.append(lambda: log.append(patches.one("s")))

    with pytest.raises(HeadMismatch):
        log.append(patches.one("large", values=LARGE), expected_head=head)
    assert log.head().version == 2


def test_upload_that_takes_too_long_gives_its_place_back(log, patches, while_hashing, monkeypatch):
    monkeypatch.setattr(reservation, "_MOST_SECONDS", 0)
    count = []

    def hook():
        count.append(1)
        if len(count) < 4:
            log.append(patches.one(f"s{len(count)}"))

    while_hashing.append(hook)

    with pytest.raises(StorageError, match="in parts") as raised:
        log.append(patches.one("large", values=LARGE))

    assert raised.value.is_transient
    begun = time.monotonic()
    assert log.append(patches.one("next")).version == 5
    assert time.monotonic() - begun < reservation.RESERVED_MS / 1000
    assert log.verify().is_sound


def test_place_is_kept_for_longer_while_the_work_goes_on(log, patches, while_hashing, monkeypatch):
    monkeypatch.setattr(reservation, "_RENEW_SECONDS", 0)
    count = []
    while_hashing.append(lambda: count.append(1) or (len(count) < 4 and log.append(patches.one(f"s{len(count)}"))))

    assert log.append(patches.one("large", values=LARGE)).version == 5
    assert log.append(patches.one("next")).version == 6


@pytest.mark.parametrize("lasts_ms", [-1, 1500])
def test_place_of_a_process_that_has_died_is_soon_free(store, log, patches, lasts_ms):
    if isinstance(store, MemoryLogStore):
        store.found("people").reserved = object(), time.monotonic() + lasts_ms / 1000
    else:
        with store.database.writing() as connection:
            connection.execute(update(LOG).values(reserved_by=10**9, reserved_until_ms=now_ms() + lasts_ms))
    begun = time.monotonic()

    assert log.append(patches.one("large", values=LARGE)).version == 2
    assert log.append(patches.one("small")).version == 3
    assert time.monotonic() - begun >= lasts_ms / 1000 - 0.3


def test_retry_is_answered_while_another_upload_has_the_place(store, log, patches):
    sent = patches.one("again", id=patches.A)
    version = log.append(sent).version
    if isinstance(store, MemoryLogStore):
        store.found("people").reserved = object(), time.monotonic() + 60
    else:
        with store.database.writing() as connection:
            connection.execute(update(LOG).values(reserved_by=10**9, reserved_until_ms=now_ms() + 60_000))

    assert (log.append(sent).version, log.append(sent).is_retry) == (version, True)


def test_append_does_not_wait_for_ever(store, log, patches, monkeypatch):
    monkeypatch.setattr(reservation, "PATIENCE_SECONDS", 0.2)
    if isinstance(store, MemoryLogStore):
        store.found("people").reserved = object(), time.monotonic() + 60
    else:
        with store.database.writing() as connection:
            connection.execute(update(LOG).values(reserved_by=10**9, reserved_until_ms=now_ms() + 60_000))

    with pytest.raises(StorageError, match="send this again") as raised:
        log.append(patches.one("small"))
    assert raised.value.is_transient


def test_round_answers_the_others_and_comes_back_for_who_has_to_wait():
    answer = Appended(first_version=1, version=1, id="x", operations=1, bytes=1)
    rounds = []

    class Prepared:
        size = 1

    async def run():
        waiting, other = Prepared(), Prepared()

        def submit(appends, told):
            rounds.append(list(appends))
            told([PlaceReserved() if one is waiting and len(rounds) < 4 else answer for one in appends])

        made = Rounds(submit)
        first = asyncio.ensure_future(made.append(waiting))
        assert await made.append(other) is answer
        assert not first.done()
        assert await asyncio.wait_for(first, 20) is answer
        return waiting

    waiting = asyncio.run(run())
    assert sum(waiting in one for one in rounds) >= 2
    assert wait_until(lambda: len(rounds) >= 4)
