"""Logs of a real service in real Delta tables: the same as a plain set, however work is cut and wherever it dies."""

import pytest

from patchlog.model import Add, Delete, NamespaceAdd, NamespaceDelete, TransactionCommit, TransactionStart
from spark import faults
from spark.job import ApplyJob, Sizes
from spark.origin import Origin
from spark.tables import Tables

Q = ("<http://example.org/s>", "<http://example.org/p>", '"o"', "")


EITHER_WAY = pytest.mark.parametrize("deletion_vectors", [True, False], ids=["vectors", "files"])


@EITHER_WAY
def test_random_history_in_batches_of_any_size_is_the_plain_set(history, apply, warehouse, deletion_vectors):
    for patches, size in ((20, 11), (1, 1), (30, 100)):
        history.grow(patches)
        apply(history, versions_per_batch=size, deletion_vectors=deletion_vectors)
        warehouse.check(history.model)


def test_quad_that_is_flipped_a_hundred_times_in_a_batch_has_the_last_word(history, apply, warehouse):
    for flip in range(100):
        history.append([(Delete if flip % 2 else Add)(*Q)])
    apply(history)
    warehouse.check(history.model)

    for flip in range(101):
        history.append([(Delete if flip % 2 else Add)(*Q)])
    apply(history)

    warehouse.check(history.model)
    assert warehouse.quads()[Q] == 201


@EITHER_WAY
def test_add_of_a_quad_that_is_there_keeps_its_since(history, apply, warehouse, deletion_vectors):
    history.append([Add(*Q)])
    apply(history, deletion_vectors=deletion_vectors)

    history.append([TransactionStart(), Delete(*Q), Add(*Q), TransactionCommit()])
    history.append([Add(*Q), NamespaceAdd("ex", "<http://example.org/#>", "")])
    apply(history)

    warehouse.check(history.model)
    assert warehouse.quads() == {Q: 1}


def test_each_state_of_quads_stands_for_a_version_and_its_feed_is_the_difference(history, apply, warehouse):
    states = {0: {}}
    for _ in range(3):
        history.append([Add(*Q), Add("<a:s>", "<a:p>", f'"{history.model.version}"', "")])
        history.append([Delete(*Q)])
        history.append([Add(*Q)])
        history.grow(2)
        tables = apply(history)
        states[history.model.version] = history.model.quads

    said = sorted((delta_version, said["from"], said["to"]) for delta_version, said in tables.quads.said())
    assert [version for version, _, _ in said] == [1, 2, 3], "a commit is in between"
    feed = warehouse.session.read.option("readChangeFeed", "true").option("startingVersion", 1)
    rows = feed.format("delta").load(f"{warehouse.folder}/quads").collect()
    for delta_version, before, after in said:
        old, new = (set(states[max(version, 0)].items()) for version in (before, after))
        taken, put = (
            {
                ((row.subject, row.predicate, row.object, row.graph), row.since)
                for row in rows
                if row._commit_version == delta_version and row._change_type == kind
            }
            for kind in ("delete", "insert")
        )
        assert (taken, put) == (old - new, new - old)


def test_namespaces_follow_the_log(history, apply, warehouse):
    history.append(
        [NamespaceAdd("ex", "<http://example.org/1#>", ""), NamespaceAdd("x", "<http://example.org/x#>", "")]
    )
    apply(history)
    history.append([NamespaceAdd("ex", "<http://example.org/2#>", "")])
    history.append([NamespaceAdd("ex", "<http://example.org/1#>", ""), NamespaceDelete("x", None, "")])
    apply(history)

    warehouse.check(history.model)
    assert warehouse.namespaces() == {("", "ex"): ("<http://example.org/1#>", 3)}


class Died(BaseException):
    """What a crash looks like from inside this process."""


def test_job_that_died_anywhere_is_taken_up_where_the_tables_are(history, apply, warehouse, monkeypatch):
    history.append([Add(*Q), NamespaceAdd("ex", "<http://example.org/1#>", "")])
    apply(history)

    for number, point in enumerate(faults.POINTS[2:]):
        is_of_namespaces = number % 4 == 1
        history.append([Delete(*Q), *[NamespaceAdd("ex", f"<http://example.org/{number}#>", "")] * is_of_namespaces])
        history.append([Add(*Q), Add("<a:s>", "<a:p>", f'"{number}"', "")])
        die_at(point, monkeypatch)
        with pytest.raises(Died):
            apply(history, versions_per_batch=2 + number % 3)
    monkeypatch.undo()
    apply(history)

    warehouse.check(history.model)


def die_at(point, monkeypatch):
    def die(session, passed):
        assert session
        if passed == point:
            raise Died(point)

    for module in ("spark.job", "spark.merging"):
        monkeypatch.setattr(f"{module}.may_die", die)


def test_two_jobs_at_once_do_each_patch_once(history, apply, warehouse, session, monkeypatch):
    """The second works in the middle of each step of the first, as far as the log is then, which is further."""
    history.append([Add(*Q)])
    apply(history)
    history.append([Delete(*Q)])
    origin = Origin.of(history.url, history.name)
    with origin.opened() as log:
        tables = Tables(session, warehouse.folder, origin.identity(log))
    others = iter(["planned", "reduced", "looking-up", "deletes-written", "adds-written"])
    waited = next(others)
    is_inside = False

    def let_other_work(_, point):
        nonlocal waited, is_inside
        if point == waited and not is_inside:
            waited, is_inside = next(others, None), True
            history.append([Add(*Q), Add("<a:s>", "<a:p>", f'"{point}"', "")])
            ApplyJob(session, origin, tables, Sizes()).run_available()
            history.append([Delete(*Q), Add("<b:s>", "<b:p>", f'"{point}"', "")])
            is_inside = False

    for module in ("spark.job", "spark.merging"):
        monkeypatch.setattr(f"{module}.may_die", let_other_work)
    for _ in range(5):
        apply(history)
    monkeypatch.undo()
    apply(history)

    warehouse.check(history.model)
