"""A position that is lost, or is of another history than the log, stops the job: no patch is applied twice or mixed."""

import json
import re
import shutil
import time
from contextlib import contextmanager, nullcontext
from unittest.mock import MagicMock

import pytest

from patchlog.client import HttpLogStore
from patchlog.log.history import operations_of
from patchlog.model import Add, Delete, NamespaceAdd, NamespaceDelete
from spark.commit_history import Content, content_of
from spark.origin import Origin
from spark.tables import LogTable, Tables, settings
from spark.verification import verify
from tests.apply.conftest import History, places_of, running_service

Q = ("<http://example.org/s>", "<http://example.org/p>", '"o"', "")
RETENTION = "delta.setTransactionRetentionDuration"


def grow(history, count):
    """Patches that each change all three tables."""
    for _ in range(count):
        number = history.model.version
        history.append(
            [
                Add("<a:s>", "<a:p>", f'"{number}"', ""),
                Delete("<a:s>", "<a:p>", f'"{number - 2}"', ""),
                NamespaceAdd("ex", f"<http://example.org/{number}#>", ""),
                NamespaceDelete("last", None, "") if number % 2 else NamespaceAdd("last", "<a:>", ""),
            ]
        )


@pytest.mark.parametrize("metadata", ['{"log" is what I write', '{"log": ' + "[" * 100_000])
def test_metadata_that_others_write_are_no_position(metadata):
    table = MagicMock()
    line = json.dumps({"commitInfo": {"operation": "WRITE", "userMetadata": metadata}})
    table.store().readAsIterator().next.return_value = line
    table.store().read().mkString.return_value = line

    assert content_of(table, 0, MagicMock(), "patchlog", "a log") == Content(-1)


@pytest.fixture
def place(history, warehouse):
    return places_of(history, warehouse)


def tables_of(history, warehouse):
    origin = Origin.of(history.url, history.name)
    with origin.opened() as log:
        return Tables(warehouse.session, warehouse.folder, origin.identity(log))


def differences(history, warehouse):
    found = verify(warehouse.session, Origin.of(history.url, history.name), tables_of(history, warehouse))
    return [str(difference) for difference in found.differences]


def run(warehouse, statement):
    """Run SQL in which the tables are `changes`, `quads` and `namespaces`."""
    warehouse.session.sql(
        re.sub(r"\b(changes|quads|namespaces)\b", lambda name: f"delta.`{warehouse.folder}/{name[0]}`", statement)
    )


def said_by(warehouse, table):
    """What the last commit of a table with user metadata says."""
    history = warehouse.session.sql(f"DESCRIBE HISTORY delta.`{warehouse.folder}/{table}`")
    return json.loads(history.where("userMetadata IS NOT NULL").orderBy("version", ascending=False).first()[-2])


def test_each_commit_keeps_the_whole_position_in_its_own_metadata(history, apply, warehouse):
    grow(history, 2)
    apply(history)
    history.append([Delete(*Q)])
    apply(history)

    description = history.log.describe()
    for table, version in (("changes", 3), ("quads", 3), ("namespaces", 2)):
        said = said_by(warehouse, table)
        assert (said["log_id"], said["to"]) == (description.id, version)
        assert said["hash"] == history.log.position(version).hash.hex()


@pytest.mark.parametrize("is_default_of_session", [True, False], ids=["session", "table"])
def test_transactions_that_expire_never_have_history_appended_twice(
    history, apply, warehouse, in_process, place, session, is_default_of_session
):
    default = {f"spark.databricks.delta.properties.defaults.{RETENTION[6:]}": "interval 1 second"}
    with settings(session, default if is_default_of_session else {}):
        grow(history, 5)
        apply(history)
        if not is_default_of_session:
            run(warehouse, f"ALTER TABLE changes SET TBLPROPERTIES ({RETENTION} = 'interval 1 second')")
        time.sleep(1.5)
        grow(history, 1)
        code, _, said = in_process("apply", *place)

    if not is_default_of_session:
        assert code == 1
        assert f"UNSET TBLPROPERTIES ('{RETENTION}')" in said
        assert said.count("\n") == 1
        run(warehouse, f"ALTER TABLE changes UNSET TBLPROPERTIES ('{RETENTION}')")
        code, _, said = in_process("apply", *place)
    assert code == 0, said
    warehouse.check(history.model)
    assert differences(history, warehouse) == []


def test_position_that_delta_has_forgotten_for_good_is_taken_from_the_metadata_of_the_last_commit(
    history, apply, warehouse, session
):
    grow(history, 3)
    apply(history)
    run(warehouse, f"ALTER TABLE changes SET TBLPROPERTIES ({RETENTION} = 'interval 1 second')")
    time.sleep(1.5)
    table = tables_of(history, warehouse).changes
    table._delta_log.checkpoint()
    run(warehouse, f"ALTER TABLE changes UNSET TBLPROPERTIES ('{RETENTION}')")
    session._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    assert tables_of(history, warehouse).changes.number() == -1
    grow(history, 1)

    apply(history)

    warehouse.check(history.model)


def test_rows_without_any_position_are_refused_and_rebuilt_on_demand(
    history, apply, warehouse, session, in_process, place, tmp_path
):
    """A shallow clone has no transactions, and neither the commits of what it was made of."""
    grow(history, 4)
    apply(history)
    clone = type(warehouse)(session, tmp_path / "clone")
    for table in ("changes", "quads", "namespaces"):
        session.sql(f"CREATE TABLE delta.`{clone.folder}/{table}` SHALLOW CLONE delta.`{warehouse.folder}/{table}`")
    grow(history, 2)
    place = [*place[:-1], clone.folder]

    code, _, said = in_process("apply", *place)

    assert code == 1
    assert "--rebuild" in said
    assert len(clone.changes()) < len(history.model.changes)
    assert in_process("apply", "--rebuild", *place)[0] == 0
    clone.check(history.model)
    grow(history, 1)
    assert in_process("apply", *place)[0] == 0
    clone.check(history.model)
    assert differences(history, clone) == []


@pytest.mark.parametrize("table", ["changes", "quads", "namespaces"])
def test_restored_table_is_noticed_and_caught_up(history, apply, warehouse, in_process, place, table):
    for count in (2, 1, 2):
        grow(history, count)
        apply(history)
    run(warehouse, f"RESTORE TABLE {table} TO VERSION AS OF 2")
    if table != "namespaces":
        code, _, said = in_process("at", *place, "--version", 5)
        assert (code, "RESTORE has taken" in said) == (1, True)

    code, _, said = in_process("apply", *place)

    assert code == 0, said
    assert f"{table}: RESTORE has taken it back to version 3" in said
    warehouse.check(history.model)
    grow(history, 1)
    apply(history)
    warehouse.check(history.model)
    assert differences(history, warehouse) == []


def test_table_that_was_restored_to_before_its_first_patch_is_filled_again(history, apply, warehouse):
    grow(history, 3)
    apply(history)
    for table in ("changes", "quads", "namespaces"):
        run(warehouse, f"RESTORE TABLE {table} TO VERSION AS OF 0")

    apply(history)

    warehouse.check(history.model)


def test_restore_by_time_is_refused_where_nobody_knows_what_it_left(history, apply, warehouse, in_process, place):
    grow(history, 2)
    apply(history)
    moment = warehouse.session.sql(f"DESCRIBE HISTORY delta.`{warehouse.folder}/changes` LIMIT 1").first().timestamp
    time.sleep(1)
    grow(history, 1)
    apply(history)
    run(warehouse, f"RESTORE TABLE changes TO TIMESTAMP AS OF '{moment}'")

    code, _, said = in_process("apply", *place)

    assert code == 0 or "--rebuild" in said
    assert in_process("apply", "--rebuild", *place)[0] == 0
    warehouse.check(history.model)


def test_tables_of_one_warehouse_at_different_versions_come_together(history, apply, warehouse, tmp_path):
    """Folders that were copied by hand, at different times."""
    grow(history, 2)
    apply(history)
    for table in ("changes", "namespaces"):
        shutil.copytree(f"{warehouse.folder}/{table}", tmp_path / table)
    grow(history, 2)
    apply(history)
    shutil.copytree(f"{warehouse.folder}/quads", tmp_path / "quads")
    for first in ("changes", "quads"):
        grow(history, 2)
        apply(history)
        shutil.rmtree(f"{warehouse.folder}/{first}")
        shutil.copytree(tmp_path / first, f"{warehouse.folder}/{first}")
        warehouse.session._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
        apply(history)
        warehouse.check(history.model)
    assert differences(history, warehouse) == []


def test_warehouse_that_was_copied_is_one_of_its_own(history, apply, warehouse, session, tmp_path):
    grow(history, 2)
    apply(history)
    shutil.copytree(warehouse.folder, tmp_path / "copy")
    copy = type(warehouse)(session, tmp_path / "copy")
    grow(history, 2)

    apply(history)
    grow(history, 1)
    apply(history, into=copy)

    copy.check(history.model)
    assert sorted(consumer.version for consumer in history.log.consumers.list()) == [4, 5]


@contextmanager
def restorable(tmp_path):
    """A service whose database can be put back to an earlier state: `begin()` starts it, and gives its URL."""
    folder = tmp_path / "restorable"
    folder.mkdir()
    database = folder / "log.db"

    @contextmanager
    def begin():
        with running_service(folder, f"sqlite:///{database}") as url:
            yield url

    yield database, begin


def keep(database, into):
    into.mkdir()
    for file in database.parent.glob(f"{database.name}*"):
        shutil.copy(file, into)


def put_back(database, kept):
    for file in database.parent.glob(f"{database.name}*"):
        file.unlink()
    for file in kept.iterdir():
        shutil.copy(file, database.parent)


def test_log_that_was_rewound_or_forked_is_noticed_and_the_tables_are_rebuilt(apply, warehouse, in_process, tmp_path):
    with restorable(tmp_path) as (database, begin):
        with begin() as url:
            history = History(url, "people", seed=1)
            grow(history, 3)
        keep(database, tmp_path / "kept")
        with begin() as url:
            history.url, history.log = url, HttpLogStore(url).log("people")
            grow(history, 4)
            apply(history)
        put_back(database, tmp_path / "kept")
        with begin() as url:
            history.url, history.log = url, HttpLogStore(url).log("people")
            place = ["--source", url, "--log", "people", "--warehouse", warehouse.folder]
            before = warehouse.changes()

            code, _, rewound = in_process("apply", *place)
            assert code == 1
            assert "version 7" in rewound
            assert "up to version 3" in rewound
            assert "--rebuild" in rewound
            assert in_process("verify", *place)[0] == 1

            fork = History.__new__(History)
            fork.__dict__ |= {"url": url, "name": "people", "log": history.log, "random": history.random}
            fork.model = type(history.model)()
            replay(fork, history.log)
            for number in range(6):
                fork.append([Add("<b:s>", "<b:p>", f'"{number}"', ""), Delete("<a:s>", "<a:p>", '"2"', "")])

            code, _, forked = in_process("apply", *place)
            assert code == 1
            assert "up to version 3" in forked
            assert warehouse.changes() == before, "nothing was mixed"
            code, found, _ = in_process("verify", *place)
            assert code == 1
            assert "version 4" in found

            code, _, said = in_process("apply", "--rebuild", *place)
            assert code == 1
            assert "deletes versions after 3 up to 7, whose patches the log does not have" in said
            assert warehouse.changes() == before, "the tables may have the only copy"

            code, _, said = in_process("apply", "--rebuild", "--yes", *place)
            assert code == 0, said
            assert "version 3" in said
            warehouse.check(fork.model)
            assert in_process("verify", *place)[0] == 0
            fork.append([Add(*Q)])
            assert in_process("apply", *place)[0] == 0
            warehouse.check(fork.model)


def replay(history, log):
    for logged in log.read():
        history.model.apply([one for one in operations_of([logged]) if not hasattr(one, "key")])


def test_log_that_was_deleted_and_made_anew_is_refused_and_its_tables_are_rebuilt_on_demand(
    history, apply, warehouse, in_process, place
):
    grow(history, 3)
    apply(history)
    HttpLogStore(history.url).delete(history.name)
    successor = History(history.url, history.name, seed=7)
    grow(successor, 5)
    successor.append([Add(*Q)])

    code, _, said = in_process("apply", *place)
    assert code == 1
    assert "is of another log" in said
    assert "--rebuild" in said
    warehouse.check(history.model)

    assert in_process("apply", "--rebuild", *place)[0] == 1, "it needs --yes"
    assert in_process("apply", "--rebuild", "--yes", *place)[0] == 0
    warehouse.check(successor.model)
    assert differences(successor, warehouse) == []


def test_tables_of_the_version_before_are_completed_at_first_contact(history, apply, warehouse, monkeypatch):
    grow(history, 3)
    history.append([])
    with monkeypatch.context() as patched:
        legacy(patched)
        apply(history)

    apply(history)

    for table in ("changes", "quads", "namespaces"):
        said = said_by(warehouse, table)
        assert (said["to"], said["hash"]) == (4, history.log.position(4).hash.hex())
    grow(history, 1)
    apply(history)
    warehouse.check(history.model)


def test_tables_of_the_version_before_on_a_forked_log_are_found_by_the_ids_of_patches(
    apply, warehouse, in_process, tmp_path, monkeypatch
):
    with restorable(tmp_path) as (database, begin):
        with begin() as url:
            history = History(url, "people", seed=1)
            grow(history, 2)
        keep(database, tmp_path / "kept")
        with begin() as url:
            history.url, history.log = url, HttpLogStore(url).log("people")
            grow(history, 2)
            with monkeypatch.context() as patched:
                legacy(patched)
                apply(history)
        put_back(database, tmp_path / "kept")
        with begin() as url:
            history.log = HttpLogStore(url).log("people")
            grow(history, 4)

            code, _, said = in_process("apply", "--source", url, "--log", "people", "--warehouse", warehouse.folder)

    assert code == 1
    assert "up to version 2" in said


def legacy(monkeypatch):
    """Have commits say what those of the version before have said."""

    def said_before(table, whole, *_, **__):
        if table.table.name != "quads":
            return nullcontext()
        before = {"log": table.log.name, "from": whole.after, "to": whole.until}
        return settings(table._session, {"spark.databricks.delta.commitInfo.userMetadata": json.dumps(before)})

    monkeypatch.setattr(LogTable, "saying", said_before)


def test_history_that_was_doubled_before_is_found_and_repaired(history, apply, warehouse, in_process, place):
    grow(history, 4)
    apply(history)
    run(warehouse, "INSERT INTO changes SELECT * FROM changes")

    code, found, _ = in_process("verify", *place)
    assert code == 1
    assert "twice" in found

    assert in_process("apply", "--rebuild", *place)[0] == 0
    warehouse.check(history.model)
    assert in_process("verify", *place)[0] == 0


def test_doubled_history_that_the_log_has_forgotten_is_found_and_repaired(history, apply, warehouse, in_process, place):
    grow(history, 4)
    apply(history)
    history.log.snapshots.build(4)
    history.log.truncate_before(4, force=True)
    run(warehouse, "INSERT INTO changes SELECT * FROM changes WHERE version < 3")

    assert in_process("verify", *place)[0] == 1
    assert in_process("apply", "--rebuild", *place)[0] == 0

    warehouse.check(history.model)
    assert in_process("verify", *place)[0] == 0


def test_versions_that_are_missing_are_found_and_repaired(history, apply, warehouse, in_process, place):
    grow(history, 4)
    apply(history)
    run(warehouse, "DELETE FROM changes WHERE version = 2")
    run(warehouse, "DELETE FROM namespaces")

    code, found, _ = in_process("verify", *place)
    assert code == 1
    assert "version 2 has 0 operations in the table" in found
    assert "namespaces: " in found

    assert in_process("apply", "--rebuild", *place)[0] == 0
    warehouse.check(history.model)
    assert in_process("verify", *place)[0] == 0
    assert {consumer.version for consumer in history.log.consumers.list()} == {4}
