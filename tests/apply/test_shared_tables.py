"""Several logs in the same tables, told apart by a column `log`: each as if it had tables of its own."""

import re

import pytest

from patchlog.client import HttpLogStore
from patchlog.errors import UsageError
from patchlog.model import Add, Delete, NamespaceAdd
from spark.looking_back import moment_at, quads_at
from spark.maintenance import optimize
from spark.origin import Origin
from spark.tables import Tables, settings
from spark.verification import verify

VERIFIED = "1 quads (hash) and 1 changes stand for version 1, as in the log\n"
Q = ("<http://example.org/s>", "<http://example.org/p>", '"o"', "")


def tables_of(history, warehouse):
    origin = Origin.of(history.url, history.name)
    with origin.opened() as log:
        return origin, Tables(warehouse.session, warehouse.folder, origin.identity(log))


def test_logs_that_share_tables_are_each_what_they_would_be_alone(
    session, history, other_history, apply, warehouse, monkeypatch
):
    """A job of the other log works between steps of the first, and neither has to take a step again."""
    monkeypatch.setattr("spark.job.again_after_conflicts", lambda step, _: step())
    is_inside = False

    def let_other_work(_, point):
        nonlocal is_inside
        if not is_inside and point in ("changes-read", "deletes-written"):
            is_inside = True
            other_history.append([Delete(*Q), Add("<a:s>", "<a:p>", f'"{point}"', ""), NamespaceAdd("ex", "<a:>", "")])
            other_history.append([Add(*Q)])
            apply(other_history, is_shared=True)
            is_inside = False

    for module in ("spark.job", "spark.merging"):
        monkeypatch.setattr(f"{module}.may_die", let_other_work)
    history.append([Add(*Q), NamespaceAdd("ex", "<b:>", "")])
    apply(history, is_shared=True)
    history.append([Delete(*Q), Add("<b:s>", "<b:p>", "<b:o>", "")])
    tables = apply(history, is_shared=True)

    for one in (history, other_history):
        warehouse.of(one).check(one.model)
        assert verify(session, *tables_of(one, warehouse)).differences == ()
    assert [row.subject for row in quads_at(tables, 1).collect()] == [Q[0]]
    assert moment_at(tables, 2).is_exact


def test_one_log_of_shared_tables_is_compacted_while_the_others_are_left(
    session, history, other_history, apply, warehouse
):
    for number in range(2):
        for one in (history, other_history):
            one.append([Add(*Q), Add("<a:s>", "<a:p>", f'"{number}"', "")])
            apply(one, is_shared=True)

    done = {one.table: one for one in optimize(session, tables_of(history, warehouse)[1])}

    assert (done["changes"].files_before, done["changes"].files_after) == (4, 3)
    history.append([Delete(*Q)])
    apply(history, is_shared=True)
    for one in (history, other_history):
        warehouse.of(one).check(one.model)


def test_tables_of_one_log_and_tables_of_several_are_not_taken_for_each_other(
    session, history, other_history, apply, warehouse, in_process, tmp_path
):
    def command(name, one, *more):
        place = ["--source", one.url, "--log", one.name, "--warehouse", warehouse.folder]
        return in_process(name, *place, *more)

    for one in (history, other_history):
        one.append([Add(*Q)])
    own = type(warehouse)(session, tmp_path / "own")
    apply(history, into=own)
    with pytest.raises(UsageError, match="changes` is of one log, and not --shared: name another warehouse"):
        apply(other_history, into=own, is_shared=True)

    assert command("apply", history, "--shared")[0] == 0
    code, said, _ = command("verify", history)
    assert (code, re.sub("hash [0-9a-f]{32}", "hash", said)) == (0, VERIFIED)
    code, _, said = command("apply", other_history)
    assert code == 1
    assert said.endswith("changes` is shared by several logs: say --shared, or name another warehouse\n")
    code, _, said = command("verify", other_history)
    assert code == 1
    assert f"changes` has nothing of the log {other_history.name}: " in said

    # A log that took the name of one that is in the tables.
    HttpLogStore(history.url).delete(history.name)
    successor = type(history)(history.url, history.name, seed=1)
    successor.append([Add(*Q)])
    with pytest.raises(UsageError, match=f"changes` has another log of the name {history.name}"):
        apply(successor, is_shared=True)
    warehouse.of(history).check(history.model)


def test_positions_of_more_logs_than_delta_notes_by_default_are_found_without_a_job(
    session, history, other_history, apply, warehouse
):
    """Delta's default is 100 logs; from there on each look would make Delta compute its state anew."""
    third = type(history)(history.url, f"{history.name}-3", seed=3)
    with settings(session, {"spark.databricks.delta.setTransactionsInCrc.maxAllowed": "1"}):
        for _ in range(2):
            for one in (history, other_history, third):
                one.append([Add(*Q), NamespaceAdd("ex", "<a:>", "")])
                apply(one, is_shared=True)
        optimize(session, tables_of(third, warehouse)[1])
    session._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    tables = tables_of(history, warehouse)[1]
    session.sparkContext.setJobGroup("positions", "positions")
    try:
        found = [table.number() for table in tables.all]
        found += [table.position().version for table in tables.all]
    finally:
        session.sparkContext.setJobGroup("", "")

    assert found == [2] * 6
    assert list(session.sparkContext.statusTracker().getJobIdsForGroup("positions")) == []


def test_one_log_of_shared_tables_is_rebuilt_while_the_others_are_left(
    session, history, other_history, apply, warehouse, in_process
):
    for one in (history, other_history):
        one.append([Add(*Q), NamespaceAdd("ex", "<a:>", "")])
        one.append([Delete(*Q), Add("<a:s>", "<a:p>", "<a:o>", "")])
        apply(one, is_shared=True)
    session.sql(f"INSERT INTO delta.`{warehouse.folder}/changes` SELECT * FROM delta.`{warehouse.folder}/changes`")
    place = ["--source", history.url, "--log", history.name, "--warehouse", warehouse.folder]

    assert in_process("apply", "--shared", "--rebuild", *place)[0] == 0
    warehouse.of(history).check(history.model)
    assert in_process("verify", *place)[0] == 0

    HttpLogStore(history.url).delete(history.name)
    successor = type(history)(history.url, history.name, seed=1)
    successor.append([Add("<b:s>", "<b:p>", "<b:o>", "")])
    assert in_process("apply", "--shared", *place)[0] == 1
    assert in_process("apply", "--shared", "--rebuild", "--yes", *place)[0] == 0
    warehouse.of(successor).check(successor.model)
    assert warehouse.of(other_history).quads() == other_history.model.quads
