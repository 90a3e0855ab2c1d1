"""What only logs in databases do: survive crashes, share waits for the disk, and be written by several processes."""

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from alembic import command
from sqlalchemy import event, text

from patchlog.errors import LogNotFound, PatchLogError, PositionGone, StorageError, StorageFull, UsageError
from patchlog.log.database import Database
from patchlog.log.migration import alembic_on, check_migrated, current_revision, migrate, migrate_down
from patchlog.log.records import LogOptions
from patchlog.log.sql import SqlLogStore, SqlPatchLog
from patchlog.log.tables import METADATA, PATCH_CHUNK, REVISION, STAGE
from tests.waiting import wait_until

APPENDER = textwrap.dedent(
    """
    import sys
    from patchlog.log.sql import SqlLogStore
    from patchlog.patch import canonical
    from patchlog.model import Add

    url, name, who, count = sys.argv[1:]
    log = SqlLogStore(url).log(name)
    print("ready", flush=True)
    sys.stdin.readline()
    for i in range(int(count)):
        answer = log.append([canonical([Add(f"<http://example.org/{who}-{i}>", "<p>", '"v"', "")])])
        print(answer.version, answer.id, flush=True)
    """
)

KILLED_APPENDERS = textwrap.dedent(
    """
    import os, signal, sys, time
    from itertools import count
    from threading import Thread
    from patchlog.log.sql import SqlLogStore
    from patchlog.patch import canonical
    from patchlog.model import Add

    def append(log, who, answers):
        try:
            for i in count():
                answer = log.append([canonical([Add(f"<http://example.org/{who}-{i}>", "<p>", '"v"', "")])])
                os.write(answers, f"{answer.version} {answer.id}\\n".encode())
        finally:
            os._exit(1)

    url = sys.argv[1]
    for line in sys.stdin:
        who, seconds = line.split()
        reading, writing = os.pipe()
        appender = os.fork()
        if not appender:
            os.close(reading)
            log = SqlLogStore(url).log("people")
            for thread in range(3):
                Thread(target=append, args=(log, f"{who}-{thread}", writing)).start()
            signal.pause()
        os.close(writing)
        with open(reading) as answers:
            first = answers.readline()
            time.sleep(float(seconds))
            os.kill(appender, signal.SIGKILL)
            os.waitpid(appender, 0)
            print(first + answers.read() + "killed", flush=True)
    """
)
"""For each line a process of three writers, killed a while after its first answer: it tells all that were answered."""


def start_appender(url, who, count):
    return subprocess.Popen(
        [sys.executable, "-c", APPENDER, url, "people", who, str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def go(appender):
    assert appender.stdout.readline() == "ready\n"
    appender.stdin.write("\n")
    appender.stdin.flush()


def acknowledged(lines):
    whole = [line.split() for line in lines if line.endswith("\n")]
    return {int(version): id for version, id in whole}


def chunk_rows(store, table=PATCH_CHUNK):
    with store.database.reading() as connection:
        return connection.execute(text(f"SELECT count(*) FROM {table.name}")).scalar()


# Durability


def test_many_appends_share_a_commit(sql_store, sql_log, patches):
    commits = []
    event.listen(sql_store.database._writing, "commit", commits.append)
    sent = [patches.one(f"s{i}") for i in range(200)]

    with ThreadPoolExecutor(20) as threads:
        list(threads.map(sql_log.append, sent))

    assert sql_log.head().version == 200
    assert len(commits) < 100


def test_commits_of_sqlite_wait_for_the_disk(tmp_path):
    database = Database(f"sqlite:///{tmp_path}/log.db")

    with database.writing() as connection:
        settings = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }

    assert settings == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 30_000}
    database.close()


def test_commits_of_postgresql_wait_for_the_disk(postgresql_url):
    database = Database(postgresql_url)

    with database.writing() as connection:
        settings = {
            name: connection.exec_driver_sql(f"SHOW {name}").scalar()
            for name in ("fsync", "synchronous_commit", "lock_timeout")
        }

    assert settings == {"fsync": "on", "synchronous_commit": "on", "lock_timeout": "30s"}
    database.close()


def test_what_was_acknowledged_survives_a_kill(tmp_path):
    """A bounded slice: PATCHLOG_KILLS says how many times."""
    url = f"sqlite:///{tmp_path}/log.db"
    store = SqlLogStore(url)
    store.create("people")
    store.close()
    kills = int(os.environ.get("PATCHLOG_KILLS", "20"))
    seen = 0

    with subprocess.Popen(
        [sys.executable, "-c", KILLED_APPENDERS, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as killer:
        for kill in range(kills):
            killer.stdin.write(f"k{kill} {random.uniform(0, 0.04)}\n")
            killer.stdin.flush()
            known = acknowledged(iter(killer.stdout.readline, "killed\n"))
            store = SqlLogStore(url)
            log = store.log("people")
            found = {logged.record.version: logged.record.id for logged in log.read(seen)}
            assert known
            assert known.items() <= found.items()
            assert list(found) == list(range(seen + 1, seen + len(found) + 1))
            if kill % 1000 == 0 or kill == kills - 1:
                assert log.verify().is_sound
            store.close()
            seen += len(found)


def test_what_was_acknowledged_survives_the_end_of_the_server(postgresql_server, patches):
    url = postgresql_server.new_database()
    migrate_at(url)
    store = SqlLogStore(url)
    store.create("people")
    log = store.log("people")
    answers = [log.append(patches.one(f"s{i}")) for i in range(20)]

    postgresql_server.restart()

    found = {logged.record.version: logged.record.id for logged in log.read()}
    assert found == {answer.version: answer.id for answer in answers}
    assert log.append(patches.one()).version == 21
    assert log.wait_for(21, 5).version == 21
    assert log.verify().is_sound
    store.close()


def test_database_that_is_full_says_so_and_recovers(tmp_path, patches):
    store = SqlLogStore(f"sqlite:///{tmp_path}/log.db")
    store.create("people")
    log = store.log("people")
    event.listen(
        store.database._writing,
        "begin",
        lambda connection: connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}"),
    )
    pages = 100

    with pytest.raises(StorageFull) as raised:
        list(map(log.append, (patches.one(f"s{i}", values=[f'"{"x" * 5000}"']) for i in range(1000))))
    head = log.head().version
    pages = 1_000_000

    assert raised.value.is_transient
    assert log.append(patches.one()).version == head + 1
    assert log.verify().is_sound
    store.close()


@pytest.mark.slow
def test_writers_who_try_again_lose_and_double_nothing_when_the_server_ends(postgresql_server, patches):
    url = postgresql_server.new_database()
    migrate_at(url)
    store = SqlLogStore(url)
    store.create("people")
    log = store.log("people")
    failures, acknowledgements, done = [], Counter(), threading.Event()

    def append_for_sure(subject):
        with log.stage() as upload:
            upload.write(*patches.one(subject))
            for _ in range(600):
                try:
                    return upload.append()
                except StorageError as error:
                    failures.append(error)
                    time.sleep(0.1)
        pytest.fail("the server did not come back")

    def append_until_done(writer):
        answers = []
        while not done.is_set():
            answers.append(append_for_sure(f"s{writer}-{len(answers)}"))
            acknowledgements[writer] += 1
        return answers

    def until_all_have_appended():
        before = acknowledgements.copy()
        wait_until(lambda: all(acknowledgements[writer] > before[writer] for writer in range(6)))

    with ThreadPoolExecutor(6) as threads:
        waiting = [threads.submit(append_until_done, writer) for writer in range(6)]
        for _ in range(2):
            until_all_have_appended()
            postgresql_server.restart()
        until_all_have_appended()
        done.set()
        answers = {answer.version: answer.id for future in waiting for answer in future.result()}

    assert list(range(1, len(answers) + 1)) == sorted(answers)
    assert {logged.record.version: logged.record.id for logged in log.read()} == answers
    assert log.verify().is_sound
    assert failures
    assert all(error.is_transient for error in failures)
    store.close()


# Several processes


@pytest.mark.slow
def test_processes_on_one_database_give_versions_without_gaps(sql_backend, sql_log):
    processes, each = 3, 40
    appenders = [start_appender(sql_backend.url, f"p{i}", each) for i in range(processes)]
    for appender in appenders:
        go(appender)

    seen = []
    while len(seen) < processes * each:
        assert sql_log.wait_for(len(seen) + 1, 60).version > len(seen)
        seen += [(logged.record.version, logged.record.id) for logged in sql_log.read(len(seen))]

    answers = {}
    for appender in appenders:
        answers |= acknowledged(appender.communicate(timeout=60)[0].splitlines(keepends=True))
    assert [version for version, _ in seen] == list(range(1, processes * each + 1))
    assert dict(seen) == answers
    assert sql_log.verify().is_sound


def test_append_by_another_store_wakes_those_who_wait(sql_backend, sql_log, patches, monkeypatch):
    """PostgreSQL tells of it; SQLite is asked each second."""
    if sql_backend.kind == "postgresql":
        monkeypatch.setattr("patchlog.log.sql._POLL_SECONDS", 3600)
    other = sql_backend.open().log("people")
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(other.wait_for, 1, 3600)
        time.sleep(0.3)

        sql_log.append(patches.one())

        assert waiting.result(60).version == 1


# Uploads


@pytest.mark.parametrize("moves", [1, 2, 3, 4])
def test_large_upload_is_hashed_again_as_often_as_the_head_moves(sql_log, patches, monkeypatch, moves):
    """After the third time it is hashed under the lock, where nothing moves."""
    sent = patches.one("large", values=[f'"{i}{"x" * 4000}"' for i in range(1000)])
    head_of, seen = SqlPatchLog.head, []

    def moving_head(log):
        head = head_of(log)
        seen.append(head.version)
        if len(seen) <= moves:
            sql_log.append(patches.one(f"s{len(seen)}"))
        return head

    monkeypatch.setattr(SqlPatchLog, "head", moving_head)

    answer = sql_log.append(sent)

    assert len(seen) == min(moves + 1, 3)
    assert answer.version == min(moves, 3) + 1
    assert sql_log.verify().is_sound


def test_patch_that_is_truncated_while_it_is_read_is_gone(sql_log, patches):
    sql_log.append(patches.one(values=[f'"{i}{"x" * 4000}"' for i in range(1000)]))
    chunks = iter(next(sql_log.read()).chunks)
    next(chunks)
    sql_log.snapshots.build()
    sql_log.truncate_before(2)

    with pytest.raises(PositionGone):
        list(chunks)


def test_upload_that_was_discarded_leaves_no_chunk(sql_store, sql_log, patches):
    [data] = patches.one(values=[f'"{i}{"x" * 4000}"' for i in range(1000)])
    with sql_log.stage() as upload:
        upload.write(data)
        during = chunk_rows(sql_store)

    assert during > 2
    assert chunk_rows(sql_store) == chunk_rows(sql_store, STAGE) == 0


def test_large_retry_leaves_no_second_copy(sql_store, sql_log, patches):
    sent = patches.one(id=patches.A, values=[f'"{i}{"x" * 4000}"' for i in range(1000)])
    sql_log.append(sent)
    rows = chunk_rows(sql_store)

    again = sql_log.stage()
    for chunk in sent:
        again.write(chunk)
    assert again.append().is_retry

    assert (chunk_rows(sql_store), chunk_rows(sql_store, STAGE)) == (rows, 0)


def test_upload_that_is_durable_though_nobody_heard_so_keeps_its_chunks(sql_store, sql_log, patches, monkeypatch):
    """The connection was lost behind the commit, and who cleaned up after the upload deleted the bytes of the log."""
    sent = patches.one(id=patches.A, values=[f'"{i}{"x" * 4000}"' for i in range(1000)])
    upload = sql_log.stage()
    for chunk in sent:
        upload.write(chunk)
    dialect = sql_store.database._writing.dialect
    commit = dialect.do_commit

    def lost(connection):
        commit(connection)
        monkeypatch.undo()
        raise dialect.dbapi.OperationalError("the connection is lost")

    with upload:
        upload.finish()
        monkeypatch.setattr(dialect, "do_commit", lost)
        with pytest.raises(StorageError):
            upload.append()

    assert sql_log.head().version == 1
    assert sql_log.verify().is_sound
    again = sql_log.append(sent)
    assert (again.version, again.is_retry) == (1, True)
    assert (chunk_rows(sql_store, STAGE), sql_log.verify().is_sound) == (0, True)


def test_rest_of_an_upload_that_was_cut_off_is_swept(sql_backend, sql_store, sql_log, patches):
    upload = sql_log.stage()
    upload.write(*patches.one(values=[f'"{i}{"x" * 4000}"' for i in range(1000)]))
    with sql_store.database.writing() as connection:
        connection.execute(text("UPDATE stage SET begun_ms = 0"))

    again = sql_backend.open()

    assert chunk_rows(again) == chunk_rows(again, STAGE) == 0
    with pytest.raises(UsageError, match="swept"):
        upload.append()
    assert again.log("people").append(patches.one()).version == 1


def test_upload_that_was_swept_writes_no_more(sql_backend, sql_store, sql_log, patches):
    [data] = patches.one(values=[f'"{i}{"x" * 4000}"' for i in range(3000)])
    with sql_log.stage() as upload:
        upload.write(data[: len(data) // 2])
        assert chunk_rows(sql_store, STAGE) == 1
        with sql_store.database.writing() as connection:
            connection.execute(text("UPDATE stage SET begun_ms = 0"))
        sql_backend.open()

        with pytest.raises(UsageError, match="swept"):
            upload.write(data[len(data) // 2 :])

    assert chunk_rows(sql_store) == chunk_rows(sql_store, STAGE) == 0


def test_log_that_is_deleted_during_an_upload_is_not_found(sql_store, sql_log, patches):
    large = [f'"{i}{"x" * 4000}"' for i in range(1000)]
    written, ongoing = sql_log.stage(), sql_log.stage()
    written.write(*patches.one(values=large))
    sql_store.delete("people")

    with pytest.raises(LogNotFound):
        written.append()
    with pytest.raises(LogNotFound):
        ongoing.write(*patches.one(values=large))
    assert chunk_rows(sql_store) == 0


def test_verification_ends_when_what_is_done_meanwhile_says_so(sql_log, patches):
    for subject in "abc":
        sql_log.append(patches.one(subject))
    counts = []

    def meanwhile(count):
        counts.append(count)
        if count == 2:
            raise StorageError("the service is stopping")

    with pytest.raises(StorageError, match="stopping"):
        sql_log.verify(meanwhile=meanwhile)
    assert counts == [0, 1, 2]
    assert sql_log.verify().is_sound


@pytest.mark.slow
def test_memory_is_bounded_whatever_the_size_of_a_patch(tmp_path):
    """64 MiB here; the bound does not depend on it."""
    code = textwrap.dedent(
        f"""
        import resource
        from patchlog.log.sql import SqlLogStore
        store = SqlLogStore("sqlite:///{tmp_path}/log.db")
        store.create("people")
        log = store.log("people")
        log.append([b'A <s> <p> <o> .'], format="rdf-patch")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        line = b'A <http://example.org/s%d> <http://example.org/p> "%d' + b"x" * 4096 + b'" .\\n'
        rows = (line % (i, i) for i in range(16384))
        print(log.append(rows, format="rdf-patch").bytes)
        print(sum(len(chunk) for logged in log.read() for chunk in logged.chunks))
        assert log.verify().is_sound
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
        """
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    appended, read, growth = map(int, done.stdout.split())
    assert read > appended > 64 << 20
    assert growth < 40 << 10


# Tampering and damage


@pytest.fixture
def three(sql_log, patches):
    for id in (patches.A, patches.B, patches.C):
        sql_log.append(patches.one(id, id=id))
    return sql_log


@pytest.mark.parametrize(
    ("change", "first_bad"),
    [
        ("DELETE FROM patch WHERE version = 2", 2),
        ("DELETE FROM patch WHERE version = 3", 3),
        ("DELETE FROM patch_chunk WHERE body = 2", 2),
        ("UPDATE patch_chunk SET body = -body WHERE body < 3", 1),
        ("UPDATE patch_chunk SET bytes = bytes || bytes WHERE body = 2", 2),
        ("UPDATE patch SET prev = id WHERE version = 2", 2),
        ("UPDATE patch SET chain_hash = content_hash WHERE version = 2", 2),
        ("UPDATE patch SET content_hash = body_hash WHERE version = 2", 2),
        ("UPDATE patch SET body_hash = content_hash WHERE version = 2", 2),
        ("UPDATE patch SET body = 1 WHERE version = 2", 2),
        ("UPDATE patch SET bytes = bytes + 1 WHERE version = 3", 3),
        ("UPDATE patch SET id = prev WHERE version = 3", None),
        ("UPDATE patch SET id = 'no id' WHERE version = 2", 2),
        ("UPDATE patch SET prev = 'no id' WHERE version = 3", 3),
        ("UPDATE log SET head_hash = head_id", 3),
        ("UPDATE log SET head_version = 4", 4),
    ],
)
def test_tampering_is_found_at_the_first_bad_version(sql_store, three, change, first_bad):
    try:
        with sql_store.database.writing() as connection:
            connection.execute(text(change))
    except StorageError:
        assert first_bad is None  # the database itself does not allow it
        return

    verification = three.verify()

    assert (verification.is_sound, verification.first_bad_version) == (False, first_bad)
    assert verification.checked <= first_bad
    assert verification.reason


def test_every_flipped_bit_of_a_patch_is_found(sql_store, three):
    with sql_store.database.reading() as connection:
        original = connection.execute(text("SELECT bytes FROM patch_chunk WHERE body = 2")).scalar()
    random.seed(1)
    for _ in range(30):
        flipped = bytearray(original)
        flipped[random.randrange(len(flipped))] ^= 1 << random.randrange(8)
        with sql_store.database.writing() as connection:
            connection.execute(text("UPDATE patch_chunk SET bytes = :bytes WHERE body = 2"), {"bytes": bytes(flipped)})

        assert three.verify().first_bad_version == 2


@pytest.mark.parametrize("table", ["patch", "patch_chunk"])
def test_what_is_missing_is_not_passed_over_in_silence(sql_store, three, table):
    column = {"patch": "version", "patch_chunk": "body"}[table]
    with sql_store.database.writing() as connection:
        connection.execute(text(f"DELETE FROM {table} WHERE {column} >= 2"))

    with pytest.raises(StorageError, match="version 2 is missing"):
        [list(logged.chunks) for logged in three.read()]


def test_record_that_is_missing_below_the_kept_ones_is_an_error(sql_store, three):
    three.snapshots.build()
    three.truncate_before(3)
    with sql_store.database.writing() as connection:
        connection.execute(text("DELETE FROM patch WHERE version = 2"))

    with pytest.raises(StorageError, match="record of version 2"):
        three.verify()
    with pytest.raises(StorageError, match="record of version 2"):
        three.find(2)


def test_log_that_is_deleted_while_it_is_read_is_not_found(sql_store, three):
    reading = three.read()
    sql_store.delete("people")

    with pytest.raises(LogNotFound):
        list(reading)


@pytest.mark.slow
def test_torn_database_is_a_clean_prefix_or_found(tmp_path, patches):
    """Each copy is cut, or has a byte flipped, somewhere: never does it answer with something else."""
    store = SqlLogStore(f"sqlite:///{tmp_path}/log.db")
    store.create("people")
    for i in range(30):
        store.log("people").append(patches.one(f"s{i}"))
    expected = [logged.record for logged in store.log("people").read()]
    random.seed(2)
    found = 0
    for attempt in range(40):
        copy = tmp_path / f"copy{attempt}"
        copy.mkdir()
        for name in ("log.db", "log.db-wal"):
            shutil.copy(tmp_path / name, copy / name)
        damaged = copy / random.choice(["log.db", "log.db-wal"])
        data = bytearray(damaged.read_bytes())
        if data and random.random() < 0.5:
            data[random.randrange(len(data))] ^= 0xFF
        elif data:
            del data[random.randrange(len(data)) :]
        damaged.write_bytes(data)

        found += not is_clean_prefix(copy / "log.db", expected)
        shutil.rmtree(copy)
    store.close()

    assert found < 40


def is_clean_prefix(path, expected):
    """Whether a database answers as it would have at some time; anything else has to be an error."""
    try:
        store = SqlLogStore(f"sqlite:///{path}")
    except PatchLogError:
        return False
    try:
        log = store.log("people")
        if not log.verify().is_sound:
            return False
        records = [logged.record for logged in log.read()]
    except PatchLogError:
        return False
    finally:
        store.close()
    assert records == expected[: len(records)]
    return True


# Migrations


def migrate_at(url):
    database = Database(url)
    migrate(database)
    database.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_database(request, tmp_path):
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path}/empty.db"
    else:
        url = request.getfixturevalue("postgresql_server").new_database()
    database = Database(url)
    yield database
    database.close()


def test_migrations_make_the_tables_that_the_code_knows(empty_database):
    migrate(empty_database)

    with alembic_on(empty_database) as config:
        command.check(config)
    assert current_revision(empty_database) == REVISION


def test_migrations_go_down_and_up_again(empty_database):
    migrate(empty_database)
    with alembic_on(empty_database) as config:
        command.downgrade(config, "base")
    left = tables(empty_database)

    migrate(empty_database)

    assert left <= {"alembic_version", "sqlite_sequence"}
    assert set(METADATA.tables) <= tables(empty_database)


def test_database_goes_down_to_an_older_migration_only(empty_database):
    migrate(empty_database)

    migrate_down(empty_database, "0002")

    assert current_revision(empty_database) == "0002"
    assert "snapshot" not in tables(empty_database)
    for revision in ("0002", "0003", "9999", "head"):
        with pytest.raises(UsageError, match="below are 0001"):
            migrate_down(empty_database, revision)


def tables(database):
    from sqlalchemy import inspect

    with database.reading() as connection:
        return set(inspect(connection).get_table_names())


def test_processes_may_migrate_at_once(empty_database):
    databases = [Database(empty_database.url.render_as_string(hide_password=False)) for _ in range(3)]

    with ThreadPoolExecutor() as threads:
        list(threads.map(migrate, databases))

    check_migrated(empty_database)
    for database in databases:
        database.close()


@pytest.mark.parametrize("_attempt", range(30))
def test_new_file_may_be_opened_by_many_at_once(tmp_path, _attempt):
    """SQLite lets one of them turn it to WAL, and refuses the others without waiting: seen in one attempt of ten."""
    together = threading.Barrier(6)

    def create():
        with closing(Database(f"sqlite:///{tmp_path}/log.db")) as database:
            together.wait()
            with database.writing() as connection:
                connection.exec_driver_sql("CREATE TABLE IF NOT EXISTS made (at INTEGER)")

    with ThreadPoolExecutor(6) as threads:
        for done in [threads.submit(create) for _ in range(6)]:
            done.result()


def test_database_that_is_not_migrated_is_refused(postgresql_server):
    with pytest.raises(StorageError, match="migrate it") as raised:
        SqlLogStore(postgresql_server.new_database())

    assert not raised.value.is_transient


def test_database_of_a_newer_release_is_refused(tmp_path):
    url = f"sqlite:///{tmp_path}/log.db"
    SqlLogStore(url).close()
    with sqlite3.connect(tmp_path / "log.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()

    with pytest.raises(StorageError, match="9999, those of a newer release"):
        SqlLogStore(url)


def test_server_that_is_not_there_is_a_transient_error(tmp_path):
    with pytest.raises(StorageError) as raised:
        SqlLogStore(f"postgresql+psycopg://nobody@/none?host={tmp_path}")

    assert raised.value.is_transient


def test_closed_store_takes_no_more(sql_store, sql_log, patches):
    upload = sql_log.stage()
    upload.write(*patches.one())
    sql_store.close()
    sql_store.close()

    with pytest.raises(StorageError, match="closed"):
        upload.append()


def test_log_that_another_process_has_replaced_is_found_again(sql_backend, sql_log, patches):
    sql_log.append(patches.one())
    other = sql_backend.open()
    other.delete("people")
    other.create("people", LogOptions(rdf_star=False))

    with pytest.raises(LogNotFound, match="replaced"):
        sql_log.append(patches.one())
    assert sql_log.append(patches.one()).version == 1
