"""Snapshots of databases: their files, crashes and damage, other storages, and several processes at once."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from sqlalchemy import text

from patchlog.errors import LogNotFound, SnapshotBusy, SnapshotRefused, StorageError, UsageError
from patchlog.log.snapshots.index import DEAD_MS
from patchlog.log.sql import SqlLogStore
from patchlog.model import Add

NQUADS = b'<http://example.org/a> <http://example.org/p> "v" .\n'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PATCHLOG_SNAPSHOTS", str(tmp_path / "snapshots"))
    return tmp_path / "snapshots"


@pytest.fixture
def kept(folder, sql_log, patches):  # noqa: ARG001  it has to be set before the store is opened
    """A log of three patches; its snapshots are in `folder`."""
    for subject in "abc":
        sql_log.append(patches.one(subject))
    return sql_log


def files(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def rows(store, table):
    with store.database.reading() as connection:
        return connection.execute(text(f"SELECT count(*) FROM {table}")).scalar()


def test_snapshot_is_a_file_of_its_log(folder, kept):
    snapshot = kept.snapshots.build()

    (file,) = files(folder)
    assert file.parent.name == kept.describe().id
    assert file.name.startswith("3-")
    assert file.stat().st_size == snapshot.bytes


def test_files_go_with_what_they_are_of(folder, kept, sql_store):
    kept.snapshots.build(1)
    kept.snapshots.build(2)

    kept.snapshots.delete(1)
    assert len(files(folder)) == 1
    sql_store.delete("people")

    assert list(folder.rglob("*")) == []
    assert [rows(sql_store, table) for table in ("snapshot", "snapshot_build", "snapshot_trash")] == [0, 0, 0]


@pytest.mark.parametrize("how", ["delete", "give up"])
def test_file_that_cannot_be_deleted_is_left_for_later(folder, kept, sql_store, caplog, how):
    """Every snapshot of every log failed for one such file."""
    kept.snapshots.build(1)
    if how == "delete":
        (stuck,) = files(folder)
        spoil(stuck)
        kept.snapshots.delete(1)
    else:
        begun = kept.snapshots.begin(2)
        stuck = Path(f"{begun.location}.part")
        with pytest.raises(StorageError, match="enough"):
            kept.snapshots.build_begun(begun, lambda: fail_with(stuck))

    sql_store.create("others")
    assert sql_store.log("others").snapshots.put(0, [NQUADS], "nquads").quads == 1
    assert kept.snapshots.build(3).quads == 3
    assert rows(sql_store, "snapshot_trash") == 1
    assert str(stuck.name.removesuffix(".part")) in caplog.text

    (stuck / "one").unlink()
    stuck.rmdir()
    kept.snapshots.sweep()
    assert rows(sql_store, "snapshot_trash") == 0
    assert kept.snapshots.verify(3)


def fail_with(stuck):
    spoil(stuck)
    raise StorageError("enough")


def spoil(file):
    """Have something there that cannot be deleted as a file, for root either."""
    file.unlink(missing_ok=True)
    file.mkdir(parents=True)
    (file / "one").write_bytes(b"")


def test_snapshots_of_sqlite_are_beside_it_and_move_with_it(tmp_path, patches):
    (tmp_path / "here").mkdir()
    store = SqlLogStore(f"sqlite:///{tmp_path}/here/people.db")
    store.create("people")
    store.log("people").append(patches.one())
    store.log("people").snapshots.build()
    store.close()
    assert len(files(tmp_path / "here" / "people.db.snapshots")) == 1

    (tmp_path / "here").rename(tmp_path / "there")

    store = SqlLogStore(f"sqlite:///{tmp_path}/there/people.db")
    assert store.log("people").snapshots.verify(1)
    store.close()


def test_snapshot_stays_where_it_is_when_new_ones_go_elsewhere(tmp_path, patches):
    for number, place in enumerate(("one", "two"), 1):
        store = SqlLogStore(f"sqlite:///{tmp_path}/log.db", snapshots=str(tmp_path / place))
        if number == 1:
            store.create("people")
        log = store.log("people")
        log.append(patches.one(place))
        log.snapshots.build()
        assert [log.snapshots.verify(snapshot.version) for snapshot in log.snapshots.list()] == [True] * number
        store.close()

    assert len(files(tmp_path / "one")) == len(files(tmp_path / "two")) == 1


@pytest.mark.parametrize("damage", ["flipped", "shorter", "gone"])
def test_damaged_file_is_found(folder, kept, damage):
    kept.snapshots.build(2)
    (file,) = files(folder)
    data = bytearray(file.read_bytes())
    data[-3] ^= 1

    match damage:
        case "flipped":
            file.write_bytes(data)
        case "shorter":
            file.write_bytes(data[:-10])
        case "gone":
            file.unlink()

    if damage == "gone":
        with pytest.raises(StorageError, match="not there"):
            kept.snapshots.verify(2)
    else:
        assert not kept.snapshots.verify(2)
    with pytest.raises(StorageError, match=r"damaged|not there") as raised:
        kept.snapshots.build(3)
    assert [snapshot.version for snapshot in kept.snapshots.list()] == [2]
    assert kept.snapshots.pending().error == str(raised.value)
    kept.snapshots.delete(2)
    assert kept.snapshots.build(3).quads == 3


def test_dataset_that_breaks_off_leaves_no_file(folder, sql_log, sql_store):
    def chunks():
        yield NQUADS
        raise OSError("the connection broke")

    with pytest.raises(OSError, match="broke"):
        sql_log.snapshots.put(0, chunks(), "nquads")

    assert files(folder) == []
    assert sql_log.snapshots.pending().error == "OSError"
    assert sql_log.snapshots.put(0, [NQUADS], "nquads").quads == 1
    assert sql_log.snapshots.pending() is None
    assert rows(sql_store, "snapshot_trash") == 0


def test_folder_that_cannot_be_written_is_an_error(tmp_path, patches):
    (tmp_path / "file").write_text("")
    store = SqlLogStore(f"sqlite:///{tmp_path}/log.db", snapshots=str(tmp_path / "file" / "below"))
    store.create("people")
    store.log("people").append(patches.one())

    with pytest.raises(StorageError, match="could not be"):
        store.log("people").snapshots.build()

    store.close()


def test_one_snapshot_of_a_log_is_made_at_a_time(sql_backend, sql_log):
    begun, go_on = threading.Event(), threading.Event()

    def slow():
        yield NQUADS
        begun.set()
        assert go_on.wait(60)

    made = []
    thread = threading.Thread(target=lambda: made.append(sql_log.snapshots.put(0, slow(), "nquads")))
    thread.start()
    assert begun.wait(60)
    other = sql_backend.open().log("people")

    with pytest.raises(SnapshotBusy) as raised:
        other.snapshots.put(0, [NQUADS], "nquads")

    assert raised.value.version == 0
    assert (other.snapshots.pending().version, other.snapshots.pending().error) == (0, None)
    go_on.set()
    thread.join()
    assert other.snapshots.list() == made
    assert other.snapshots.pending() is None


def test_patch_that_comes_first_keeps_a_dataset_out(folder, sql_log, patches):
    def chunks():
        yield NQUADS
        sql_log.append(patches.one())

    with pytest.raises(Exception, match="patches meanwhile"):
        sql_log.snapshots.put(0, chunks(), "nquads")

    assert (sql_log.snapshots.list(), files(folder)) == ([], [])
    assert sql_log.snapshots.build().quads == 1


def test_log_that_is_deleted_meanwhile_leaves_nothing(folder, sql_store, sql_log):
    def chunks():
        yield NQUADS
        sql_store.delete("people")

    with pytest.raises(LogNotFound):
        sql_log.snapshots.put(0, chunks(), "nquads")

    assert files(folder) == []
    assert rows(sql_store, "snapshot_trash") == 0


MAKER = """
import sys, time
from patchlog.log.sql import SqlLogStore

def chunks():
    yield b'<http://example.org/a> <http://example.org/p> "v" .\\n'
    if sys.argv[2] == "reading":
        print("begun", flush=True)
        time.sleep(60)

store = SqlLogStore(sys.argv[1])
snapshots = store.log("people").snapshots
if sys.argv[2] == "written":
    def complete(begun, written):
        print("begun", flush=True)
        time.sleep(60)
    snapshots._index.complete = complete
snapshots.put(0, chunks(), "nquads")
"""


@pytest.mark.parametrize("moment", ["reading", "written"])
def test_what_a_killed_process_leaves_is_cleaned_up(folder, sql_backend, sql_store, sql_log, moment):
    with subprocess.Popen(
        [sys.executable, "-c", MAKER, sql_backend.url, moment],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout.readline() == b"begun\n"
        process.send_signal(signal.SIGKILL)
    assert [path.suffix for path in files(folder)] == [".jelly" if moment == "written" else ".part"]
    with pytest.raises(SnapshotBusy):
        sql_log.snapshots.put(0, [NQUADS], "nquads")

    with sql_store.database.writing() as connection:
        connection.execute(text(f"UPDATE snapshot_build SET seen_ms = seen_ms - {DEAD_MS}"))

    assert "ended" in sql_log.snapshots.pending().error
    assert sql_log.snapshots.put(0, [NQUADS], "nquads").quads == 1
    assert len(files(folder)) == 1
    assert [rows(sql_store, table) for table in ("snapshot_build", "snapshot_trash")] == [0, 0]


def test_process_that_was_taken_for_dead_gives_up(folder, sql_backend, sql_store, sql_log):
    def chunks():
        yield NQUADS
        with sql_store.database.writing() as connection:
            connection.execute(text(f"UPDATE snapshot_build SET seen_ms = seen_ms - {DEAD_MS}"))
        sql_backend.open().log("people").snapshots.put(0, [NQUADS], "nquads")

    with pytest.raises(SnapshotRefused, match="taken for dead"):
        sql_log.snapshots.put(0, chunks(), "nquads")

    assert sql_log.snapshots.verify(0)
    assert len(files(folder)) == 1


def test_snapshot_larger_than_its_memory_is_made_on_disk(tmp_path, patches):
    """A tenth of the memory that the quads would take; most patches change what is there."""
    store = SqlLogStore(f"sqlite:///{tmp_path}/log.db", snapshot_memory_bytes=200_000)
    store.create("people")
    log = store.log("people")
    for begin in (0, 5000, 2500):
        quads = [
            (f"<http://example.org/{n}>", "<http://example.org/p>", f'"{n}"', "") for n in range(begin, begin + 5000)
        ]
        log.append(patches.stream([Add(*quad) for quad in quads]))

    first = log.snapshots.build(1)
    last = log.snapshots.build()

    assert (first.quads, last.quads) == (5000, 10_000)
    assert [path.suffix for path in files(tmp_path / "log.db.snapshots")] == [".jelly"] * 2
    store.close()


def test_snapshots_are_kept_in_another_storage(tmp_path, patches):
    fsspec = pytest.importorskip("fsspec")
    root = f"memory://{tmp_path}/snapshots"
    store = SqlLogStore(f"sqlite:///{tmp_path}/log.db", snapshots=root)
    store.create("people")
    log = store.log("people")
    log.append(patches.one())

    snapshot = log.snapshots.build()

    storage, path = fsspec.url_to_fs(root)
    (file,) = storage.find(path)
    assert storage.cat_file(file) == b"".join(log.snapshots.read(1))
    assert b"".join(log.snapshots.read(1, start=5)) == storage.cat_file(file)[5:]
    assert log.snapshots.verify(1)
    assert snapshot.bytes == storage.size(file)
    store.delete("people")
    assert storage.find(path) == []
    store.close()


def test_storage_shows_no_snapshot_that_was_not_finished(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    root = f"memory://{tmp_path}/snapshots"
    store = SqlLogStore(f"sqlite:///{tmp_path}/log.db", snapshots=root)
    store.create("people")

    with pytest.raises(Exception, match=r"term|line"):
        store.log("people").snapshots.put(0, [NQUADS, b"nonsense"], "nquads")

    storage, path = fsspec.url_to_fs(root)
    assert storage.find(path) == []
    store.close()


def test_storage_that_nobody_knows_is_refused(tmp_path, patches):
    pytest.importorskip("fsspec")
    store = SqlLogStore(f"sqlite:///{tmp_path}/log.db", snapshots="nowhere://bucket/snapshots")
    store.create("people")
    store.log("people").append(patches.one())

    with pytest.raises(UsageError, match="fsspec"):
        store.log("people").snapshots.build()

    store.close()
