"""What is large is deleted in bounded steps: appends go on in between, and a crash in between is finished later."""

import signal
import subprocess
import sys

import pytest
from sqlalchemy import func, select

from patchlog.errors import LogNotFound, PositionGone
from patchlog.log import sql_steps, sql_truncate
from patchlog.log.memory import MemoryLogStore
from patchlog.log.sql import SqlLogStore
from patchlog.log.tables import LOG, PATCH, PATCH_CHUNK, STAGE
from patchlog.log.writer import Writer
from tests.waiting import wait_until

LARGE = [f'"{number}{"x" * 4000}"' for number in range(3000)]


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    return request.getfixturevalue("postgresql_url") if request.param == "postgresql" else f"sqlite:///{tmp_path}/l.db"


@pytest.fixture
def store(url):
    opened = SqlLogStore(url)
    yield opened
    opened.close()


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def any_store(request, tmp_path):
    if request.param == "memory":
        yield MemoryLogStore()
        return
    url = f"sqlite:///{tmp_path}/l.db"
    opened = SqlLogStore(request.getfixturevalue("postgresql_url") if request.param == "postgresql" else url)
    yield opened
    opened.close()


def extent(store):
    """Chunks, their bytes, and patches that there are."""
    with store.database.reading() as connection:
        chunks = connection.execute(select(func.count(), func.sum(func.length(PATCH_CHUNK.c.bytes)))).one()
        return chunks[0], int(chunks[1] or 0), connection.execute(select(func.count()).select_from(PATCH)).scalar()


def rows(store, table):
    with store.database.reading() as connection:
        return connection.execute(select(func.count()).select_from(table)).scalar()


@pytest.fixture
def transactions(store, monkeypatch):
    """What each transaction of the writer has deleted: chunks, bytes, patches."""
    deleted = []
    together = Writer._do_together

    def measured(self, submissions):
        before = extent(store)
        together(self, submissions)
        deleted.append(tuple(was - now for was, now in zip(before, extent(store), strict=True)))

    monkeypatch.setattr(Writer, "_do_together", measured)
    return deleted


@pytest.fixture
def filled(store, patches):
    """A log with a large patch, and many small ones."""
    store.create("people")
    log = store.log("people")
    for start in range(0, 300, 100):
        log.append(patches.stream(*[patches.operations(f"s{number}") for number in range(start, start + 100)]))
    log.append(patches.one(values=LARGE))
    log.append(patches.one("last"))
    return log


@pytest.fixture
def small_steps(monkeypatch):
    monkeypatch.setattr(sql_steps, "_MOST_BYTES", 3 << 20)
    monkeypatch.setattr(sql_steps, "_MOST_CHUNKS", 50)
    monkeypatch.setattr(sql_steps, "_MOST_PATCHES", 40)
    monkeypatch.setattr(sql_truncate, "_MOST", 70)


CHUNK = (1 << 20) + 8


@pytest.mark.usefixtures("small_steps", "filled")
def test_log_is_deleted_in_steps(store, transactions):
    """One transaction deleted all rows of the log, and every other log waited for it."""
    total = extent(store)

    store.delete("people")

    assert tuple(map(sum, zip(*transactions, strict=True))) == total
    assert max(chunks for chunks, _, _ in transactions) <= 50
    assert max(size for _, size, _ in transactions) <= (3 << 20) + CHUNK
    assert max(count for _, _, count in transactions) <= 40
    assert extent(store) == (0, 0, 0)
    assert rows(store, LOG) == 0


@pytest.mark.usefixtures("small_steps", "filled")
def test_others_append_between_the_steps_of_a_deletion(store, patches):
    store.create("others")
    counts = []

    def meanwhile(count):
        store.log("others").append(patches.one())
        counts.append(count)

    store.begin_delete("people")
    store.sweep(meanwhile)

    assert len(counts) > 10
    assert store.log("others").head().version == len(counts)
    assert store.log("others").verify().is_sound


@pytest.mark.usefixtures("small_steps")
def test_truncation_is_bounded_by_bytes_and_by_patches(store, filled, transactions):
    """Ten thousand patches a transaction, whatever their size, were up to all that there is."""
    filled.snapshots.build()
    transactions.clear()

    described = filled.truncate_before(302)

    assert (described.first_version, described.patches) == (302, 1)
    assert max(chunks for chunks, _, _ in transactions) <= 50
    assert max(size for _, size, _ in transactions) <= (3 << 20) + CHUNK
    assert len(transactions) > 10
    assert extent(store)[2] == 302
    assert filled.verify().is_sound
    assert len(list(filled.read(301))) == 1


@pytest.mark.usefixtures("small_steps")
def test_truncation_that_is_cancelled_is_finished_later(store, filled, url):
    filled.snapshots.build()

    def meanwhile(_):
        raise InterruptedError

    with pytest.raises(InterruptedError):
        filled.truncate_before(302, meanwhile=meanwhile)
    first = filled.describe().first_version
    assert first == 71
    with pytest.raises(PositionGone):
        filled.read(0)
    assert filled.verify().is_sound
    assert [logged.record.version for logged in filled.read(70, limit=3)] == [71, 72, 73]

    again = SqlLogStore(url)
    with again.database.reading() as connection:
        wait_until(lambda: connection.execute(select(LOG.c.cleared_version)).scalar() == first)
    again.close()
    assert filled.truncate_before(302).first_version == 302
    assert extent(store)[::2] == (1, 302)


PROCESS = """
import sys, time
from patchlog.log import sql_steps, sql_truncate
from patchlog.log.sql import SqlLogStore

sql_steps._MOST_BYTES, sql_steps._MOST_CHUNKS, sql_steps._MOST_PATCHES, sql_truncate._MOST = 3 << 20, 50, 40, 70
url, what, steps = sys.argv[1:]
store = SqlLogStore(url)

def meanwhile(count):
    if len(counts) == int(steps):
        print("killed now", flush=True)
        time.sleep(600)
    counts.append(count)

counts = []
if what == "delete":
    store.begin_delete("people")
    meanwhile(0)
    store.sweep(meanwhile)
else:
    store.log("people").truncate_before(302, meanwhile=meanwhile)
print("done", flush=True)
"""


@pytest.mark.parametrize("steps", [0, 1, 4, 9])
def test_process_that_is_killed_over_a_deletion_leaves_nothing(url, store, filled, patches, steps):
    reading = filled.read()
    next(reading)
    with subprocess.Popen(
        [sys.executable, "-c", PROCESS, url, "delete", str(steps)], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"killed now\n"
        process.send_signal(signal.SIGKILL)

    assert store.list() == []
    with pytest.raises(LogNotFound):
        filled.describe()
    store.create("people")
    assert store.log("people").append(patches.one()).version == 1
    again = SqlLogStore(url)
    wait_until(lambda: rows(again, LOG) == 1)
    assert extent(again)[::2] == (1, 1)
    assert again.log("people").verify().is_sound
    again.close()
    with pytest.raises(LogNotFound):
        sum(len(chunk) for logged in reading for chunk in logged.chunks)


@pytest.mark.parametrize("steps", [0, 3, 8])
def test_process_that_is_killed_over_a_truncation_leaves_a_sound_log(url, store, filled, steps):
    filled.snapshots.build()
    with subprocess.Popen(
        [sys.executable, "-c", PROCESS, url, "truncate", str(steps)], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"killed now\n"
        process.send_signal(signal.SIGKILL)

    assert filled.verify().is_sound
    first = filled.describe().first_version
    assert [logged.record.version for logged in filled.read(first - 1, limit=2)] == [first, first + 1]
    assert filled.truncate_before(302).first_version == 302
    assert extent(store)[::2] == (1, 302)
    assert filled.verify().is_sound


def test_upload_to_a_log_that_was_deleted_and_made_again_is_refused(store, patches):
    """Its chunks are those of the other log: a patch without them would have been in the new one."""
    store.create("people")
    upload = store.log("people").stage()
    upload.write(*patches.one(values=LARGE[:1000]))
    store.begin_delete("people")
    store.create("people")

    with pytest.raises(LogNotFound):
        upload.append()
    assert store.log("people").head().version == 0
    store.sweep()
    assert extent(store) == (0, 0, 0)


@pytest.mark.parametrize("is_made_again", [False, True])
def test_reader_of_a_log_that_is_deleted_is_told_so(any_store, patches, is_made_again):
    any_store.create("people")
    log = any_store.log("people")
    for _ in range(1200):
        log.append(patches.one(values=['"' + "x" * 1000 + '"']))
    patch_iterator, stored = log.read(), log.read_stored()
    next(patch_iterator)
    next(stored)

    any_store.delete("people")
    if is_made_again:
        any_store.create("people")
        any_store.log("people").append(patches.one("other"))

    with pytest.raises(LogNotFound):
        list(patch_iterator)
    with pytest.raises(LogNotFound):
        list(stored)


def test_deleted_log_is_nowhere_while_its_rows_are_deleted(any_store, patches):
    for name in ("a", "people", "z"):
        any_store.create(name)
    any_store.log("people").append(patches.one())
    id = any_store.log("people").describe().id
    any_store.begin_delete("people")

    assert [log.name for log in any_store.list()] == ["a", "z"]
    assert any_store.head_versions(["a", "people", "z"]) == {"a": 0, "z": 0}
    with pytest.raises(LogNotFound):
        any_store.log("people").head()
    with pytest.raises(LogNotFound):
        any_store.begin_delete("people")
    assert any_store.create("people").head.version == 0
    assert any_store.create(id).name == id  # which no log has any more
    any_store.delete(id)
    any_store.sweep()
    assert [log.name for log in any_store.list()] == ["a", "people", "z"]


def test_stage_that_is_swept_is_taken_into_no_log(store, patches, monkeypatch):
    """Half of its chunks may be gone by then."""
    monkeypatch.setattr(sql_steps, "_MOST_CHUNKS", 1)
    store.create("people")
    upload = store.log("people").stage()
    upload.write(*patches.one(values=LARGE[:1000]))
    with store.database.writing() as connection:
        connection.execute(STAGE.update().values(begun_ms=0))
    with pytest.raises(InterruptedError):
        store.sweep(fail)
    assert rows(store, STAGE) == 1

    with pytest.raises(Exception, match="swept"):
        upload.append()
    store.sweep()
    assert (rows(store, STAGE), extent(store)) == (0, (0, 0, 0))


def fail(_):
    raise InterruptedError
