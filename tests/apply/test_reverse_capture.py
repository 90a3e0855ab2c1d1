"""What others commit to a Delta table becomes patches of a log: for each version of the table, the log has the same."""

import re
import shutil
from pathlib import Path

import pytest

from patchlog.client import HttpLogStore
from patchlog.effect import apply_effect, effect
from patchlog.errors import InvalidTerm, UsageError
from patchlog.log.history import headers_of, operations_of
from patchlog.places import open_log
from spark import faults
from spark.capture import ReverseCapture
from spark.change_feed import QuadTable
from spark.origin import LogIdentity
from spark.tables import Tables

COLUMNS = "graph STRING, subject STRING, predicate STRING, object STRING, note STRING"
FEED = "delta.enableChangeDataFeed = true"


class OthersTable:
    """A Delta table that others write, with a column of their own."""

    def __init__(self, session, folder):
        self.session, self.folder = session, str(folder)
        self.name = f"delta.`{self.folder}`"

    def create(self, columns=COLUMNS, properties=FEED):
        self.session.sql(f"CREATE TABLE {self.name} ({columns}) USING delta TBLPROPERTIES ({properties})")
        return self

    def run(self, statement):
        """Run SQL in which the table is `quads`."""
        self.session.sql(re.sub(r"\bquads\b", self.name, statement))

    def insert(self, *objects, subject="<a:s>", graph="''", note="n"):
        self.run(
            "INSERT INTO quads VALUES "
            + ", ".join(f"({graph}, '{subject}', '<a:p>', '{o}', '{note}')" for o in objects)
        )

    def versions(self, first):
        """The quads of the versions from the first on."""
        newest = self.session.sql(f"DESCRIBE HISTORY {self.name} LIMIT 1").first().version
        found = {version: set() for version in range(first, newest + 1)}
        each = (f"SELECT {version} AS version, * FROM {self.name} VERSION AS OF {version}" for version in found)
        for row in self.session.sql(" UNION ALL ".join(each)).collect():
            found[row.version].add((row.subject, row.predicate, row.object, row.graph or ""))
        return found

    def capture(self, log, **how):
        ReverseCapture(self.session, QuadTable(self.session, self.folder), log, **how).run_available()


@pytest.fixture
def others(session, tmp_path):
    return OthersTable(session, tmp_path / "others").create()


@pytest.fixture
def log(service, log_name):
    store = HttpLogStore(service)
    store.create(log_name)
    yield store.log(log_name)
    store.close()


def check(log, others, *, begins_at):
    """Each patch brings the dataset to the next version of the table, and says so."""
    wanted = others.versions(begins_at)
    quads = set()
    for logged, version in zip(log.read(), wanted, strict=True):
        operations = list(operations_of([logged]))
        apply_effect(quads, {}, effect(operations))
        assert quads == wanted[version], f"version {version}"
        assert dict(headers(operations))["delta-version"].startswith(f'"{version}"^^')


def headers(operations):
    return ((operation.key, operation.value) for operation in operations if hasattr(operation, "key"))


def test_every_commit_is_a_patch_whatever_it_was_made_by(others, log):
    others.insert('"a"', '"a"', '"b"', '"ü \\\\n"@de')
    others.capture(log)
    assert log.head().version == 1

    others.insert('"a"', "_:c", '"1"^^<http://www.w3.org/2001/XMLSchema#int>')
    others.run("UPDATE quads SET object = if(object = '\"b\"', '\"B\"', object), note = 'other'")
    others.run("DELETE FROM quads WHERE object = '_:c'")
    others.insert("<a:o>", graph="CAST(NULL AS STRING)")
    others.insert('"x"', subject="<<( <a:s> <a:p> <a:o> )>>", graph="'<a:g>'")
    others.run(
        "MERGE INTO quads USING (SELECT explode(array('\"B\"', '\"new\"')) AS object) AS batch "
        "ON quads.object = batch.object WHEN MATCHED THEN DELETE "
        "WHEN NOT MATCHED THEN INSERT (graph, subject, predicate, object) VALUES ('', '<a:s>', '<a:p>', batch.object)"
    )
    others.run("INSERT OVERWRITE quads SELECT * FROM quads WHERE object != '<a:o>' LIMIT 4")
    others.run("ALTER TABLE quads SET TBLPROPERTIES (some = 'thing')")
    others.capture(log, versions_per_batch=5)
    others.capture(log)

    check(log, others, begins_at=1)
    [last] = map(headers_of, log.read(log.head().version - 1))
    assert last["delta-operation"] == '"SET TBLPROPERTIES"'
    assert last["delta-table"] == f'"file:{others.folder}"'


def test_row_that_is_left_of_two_keeps_its_quad(others, log):
    """Also where both go in one batch of commits, and where the last row goes before the first."""
    for note in ("first", "second"):
        others.insert('"x"', '"y"', note=note)
    others.capture(log)
    for note in ("second", "first"):
        others.run(f"DELETE FROM quads WHERE note = '{note}'")
    others.insert('"x"')

    others.capture(log)

    check(log, others, begins_at=2)
    assert [logged.record.deletes for logged in log.read()] == [0, 0, 2, 0]


class Died(BaseException):
    """What a crash looks like from inside this process."""


def test_capture_that_died_or_met_another_is_taken_up_where_the_log_is(others, log, monkeypatch):
    def at(point, act):
        monkeypatch.setattr("spark.capture.may_die", lambda _, passed: act() if passed == point else None)

    def die():
        raise Died

    def let_other_work():
        monkeypatch.undo()
        others.insert('"by another"')
        others.capture(log, versions_per_batch=2)

    for number, point in enumerate(faults.CAPTURE_POINTS):
        others.insert(f'"{number}"')
        at(point, die)
        with pytest.raises(Died):
            others.capture(log)
    for number, point in enumerate(faults.CAPTURE_POINTS):
        others.insert(f'"other {number}"')
        others.run(f"DELETE FROM quads WHERE object = '\"{number}\"'")
        others.insert(f'"last {number}"')
        at(point, let_other_work)
        others.capture(log)
    others.capture(log)

    # The first had died before it had begun.
    check(log, others, begins_at=2)


@pytest.mark.slow
def test_killed_driver_and_jvm_leave_nothing_undone_or_done_twice(others, log, service, command):
    def run(**how):
        place = ("--table", others.folder, "--to", service, "--log", log.name, "--max-versions-per-batch", 1)
        return command("capture", *place, "--memory", "1g", "--conf", "spark.sql.shuffle.partitions=1", **how)

    others.insert('"a"')
    others.capture(log)
    others.run("DELETE FROM quads")
    others.insert('"b"')

    run(die_at="captured")
    assert log.head().version == 2
    done = run()

    check(log, others, begins_at=1)
    assert "version 3, 1 operation in " in done.stderr


def test_two_that_begin_at_once_begin_once(others, log, monkeypatch):
    """The other begins at a later version, in which a quad is gone that the first has seen."""
    others.insert('"a"', '"b"')

    def let_other_begin(_, point):
        if point == "capture-ready":
            monkeypatch.undo()
            others.run("DELETE FROM quads WHERE object = '\"a\"'")
            others.capture(log)

    monkeypatch.setattr("spark.capture.may_die", let_other_begin)
    others.capture(log)

    check(log, others, begins_at=2)


def test_row_that_is_no_quad_is_named_and_nothing_of_its_commit_is_captured(others, log, tmp_path):
    others.insert('"a"')
    others.insert('"good"')
    others.capture(log)
    others.insert('"also good"')
    others.insert('"good again"', "not a term")
    others.insert('"behind"')

    with pytest.raises(
        InvalidTerm, match=r"version 4: the row \(.*object not a term\) is no quad: \"not a term\" is not"
    ):
        others.capture(log, versions_per_batch=1)
    assert log.head().version == 2

    others.run("UPDATE quads SET subject = NULL WHERE object = 'not a term'")
    with open_log(tmp_path / "log.jellyp", creates=True) as file, pytest.raises(InvalidTerm, match="subject None"):
        others.capture(file)
    assert not list(file.read())


def test_changes_that_are_not_known_any_more_are_an_error_that_says_what_to_do(others, log):
    others.insert('"a"')
    others.capture(log)
    others.run("UPDATE quads SET object = '\"b\"'")
    for file in Path(others.folder).glob("_change_data/*"):
        file.unlink()  # as VACUUM does

    with pytest.raises(UsageError, match=r"forgotten changes of the versions 2 to 2 .*capture into a new log"):
        others.capture(log)

    others.run("ALTER TABLE quads SET TBLPROPERTIES (delta.enableChangeDataFeed = false)")
    others.insert('"unseen"')
    with pytest.raises(UsageError, match=r"ALTER TABLE .* SET TBLPROPERTIES \(delta.enableChangeDataFeed = true\)"):
        others.capture(log)

    others.run("ALTER TABLE quads SET TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    with pytest.raises(UsageError, match="no change data feed in some of the versions 2 to 5"):
        others.capture(log)
    assert log.head().version == 1


def test_table_that_was_replaced_is_another_one(session, others, log):
    others.insert('"a"')
    capture = ReverseCapture(session, QuadTable(session, others.folder), log)
    capture.run_available()
    row = "SELECT '' AS graph, '<a:s>' AS subject, '<a:p>' AS predicate, '<a:o>' AS object"
    others.run(f"CREATE OR REPLACE TABLE quads USING delta TBLPROPERTIES ({FEED}) AS {row}")

    with pytest.raises(UsageError, match="was replaced by version 2: capture into a new log"):
        capture.run_available()
    with pytest.raises(UsageError, match="has patches, and none of this table"):
        others.capture(log)


def test_tables_that_are_not_to_be_captured_are_refused(session, tmp_path):
    Tables(session, str(tmp_path), LogIdentity("the id of a log", "people")).create()
    for name in ("quads", "changes"):
        with pytest.raises(UsageError, match="is written by `python -m spark apply`"):
            QuadTable(session, f"{tmp_path}/{name}")
    with pytest.raises(UsageError, match="is not a Delta table"):
        QuadTable(session, str(tmp_path))
    with pytest.raises(UsageError, match="has no column 'predicate'"):
        QuadTable(session, OthersTable(session, tmp_path / "two").create("subject STRING, object STRING").folder)


def test_log_with_patches_of_others_is_captured_into_only_on_demand(others, log):
    others.insert('"a"')
    log.append([b"TX .\nTC .\n"], format="rdf-patch")

    with pytest.raises(UsageError, match="has patches, and none of this table"):
        others.capture(log)
    others.capture(log, on_top=True)

    assert [logged.record.adds for logged in log.read()] == [0, 1]


def test_no_log_is_made_for_what_is_not_a_table(in_process, tmp_path):
    code, _, told = in_process("capture", "--table", tmp_path, "--to", f"sqlite:///{tmp_path}/log.db", "--log", "x")

    assert (code, told) == (1, f"error: {tmp_path} is not a Delta table: name a folder, or a table of the catalog\n")
    assert not (tmp_path / "log.db").exists()


@pytest.mark.parametrize("is_changed", [False, True], ids=["older", "changed"])
def test_table_that_was_put_back_to_an_older_state_is_noticed(session, others, log, tmp_path, is_changed):
    """Its next commits would have the numbers of others that are in the log, and be taken for them."""
    others.insert('"a"')
    others.insert('"b"')
    shutil.copytree(others.folder, tmp_path / "kept")
    others.insert('"c"')
    others.capture(log)
    shutil.rmtree(others.folder)
    shutil.copytree(tmp_path / "kept", others.folder)
    session._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    if is_changed:
        others.insert('"other"', '"and more"')
    before = log.head()

    with pytest.raises(UsageError, match=r"version 3 .* was put back to an older state; capture into a new log"):
        others.capture(log)

    assert log.head() == before


def test_log_that_begins_with_a_dataset_is_captured_into_only_on_demand(others, log):
    others.insert('"a"')
    log.snapshots.put(0, [b'<a:s> <a:p> "of the dataset" .\n'], "nquads")

    with pytest.raises(UsageError, match="begins with a dataset, its snapshot of version 0"):
        others.capture(log)
    assert log.head().version == 0
    others.capture(log, on_top=True)

    assert log.head().version == 1
