"""Stores by their URL, and the parts of logs that need no storage."""

import re
import subprocess
import sys
import threading
from dataclasses import replace

import pytest

from patchlog.codec.ingest import PatchIngest, header_frames, stored_options
from patchlog.errors import LimitExceeded, MissingExtra, UsageError
from patchlog.log import staging
from patchlog.log.database import Database
from patchlog.log.memory import MemoryLogStore
from patchlog.log.migration import MIGRATIONS
from patchlog.log.records import EMPTY_HEAD, Verification, time_of
from patchlog.log.sql import SqlLogStore
from patchlog.log.staging import Staging
from patchlog.log.stores import open_store
from patchlog.log.tables import REVISION
from patchlog.log.wakeups import Wakeups
from patchlog.model import Add, Punctuation


def test_memory_is_opened_by_its_name():
    assert isinstance(open_store("memory:"), MemoryLogStore)


def test_file_is_opened_and_migrated(tmp_path):
    store = open_store(f"sqlite:///{tmp_path}/log.db")

    assert isinstance(store, SqlLogStore)
    assert store.create("people").head == EMPTY_HEAD
    store.close()


@pytest.mark.parametrize("url", ["", "people.db", "mysql://localhost/logs", "oracle://x", "nothing://x", "http://x"])
def test_other_urls_are_refused(url):
    with pytest.raises((UsageError, MissingExtra)):
        Database(url)


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:"])
def test_sqlite_in_memory_is_refused(url):
    with pytest.raises(UsageError, match="name a file"):
        Database(url)


@pytest.mark.parametrize("url", ["postgresql://user@host/logs", "postgresql+psycopg://user@host/logs"])
def test_postgresql_goes_by_psycopg(url):
    database = Database(url)

    assert database.url.drivername == "postgresql+psycopg"
    assert not database.is_sqlite


def test_missing_driver_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)

    with pytest.raises(MissingExtra, match=r"patchlog\[postgres\]"):
        Database("postgresql://host/logs")


def test_tables_are_those_of_the_newest_migration():
    numbers = sorted(re.match(r"\d{4}", path.name)[0] for path in (MIGRATIONS / "versions").glob("*.py"))

    assert numbers[-1] == REVISION
    assert numbers == [f"{i:04}" for i in range(1, len(numbers) + 1)]


def test_contract_and_memory_load_no_database():
    code = "import sys, patchlog.log.stores; print(*sys.modules)"

    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()

    assert "patchlog.log.memory" in loaded
    assert not {"sqlalchemy", "alembic", "psycopg", "sqlite3"} & set(loaded)


def test_times_are_utc_with_milliseconds():
    assert time_of(0) == "1970-01-01T00:00:00.000Z"
    assert time_of(1_794_998_400_007) == "2026-11-18T10:40:00.007Z"


def test_verification_is_sound_without_a_bad_version():
    sound = Verification(EMPTY_HEAD, checked=3)

    assert sound.is_sound
    assert not replace(sound, first_bad_version=2).is_sound


def test_upload_of_too_many_patches_is_refused(monkeypatch):
    monkeypatch.setattr(staging, "MAX_PATCHES", 3)
    waiting = Staging(header_frames(stored_options()), None)
    ingest = PatchIngest()

    def stage_one(subject):
        ingest.accept(Add(subject, "<p>", "<o>", ""))
        ended = ingest.accept(Punctuation())
        waiting.add(ingest.take())
        waiting.add(ended)

    for subject in ("<a>", "<b>", "<c>"):
        stage_one(subject)
    with pytest.raises(LimitExceeded, match="more than 3 patches"):
        stage_one("<d>")

    assert len(waiting.patches) == 3


class TestWakeups:
    def test_change_after_the_ticket_is_not_slept_through(self):
        wakeups = Wakeups()
        ticket = wakeups.ticket("a")
        wakeups.announce("a")

        wakeups.wait("a", ticket, 30)

    def test_change_of_all_wakes_everybody(self):
        wakeups = Wakeups()
        ticket = wakeups.ticket("a")
        threading.Timer(0.05, wakeups.announce_all).start()

        wakeups.wait("a", ticket, 30)

        assert wakeups.ticket("a") != ticket

    def test_change_of_another_log_wakes_nobody(self):
        wakeups = Wakeups()
        ticket = wakeups.ticket("a")
        wakeups.announce("b")

        wakeups.wait("a", ticket, 0.01)

        assert wakeups.ticket("a") == ticket
