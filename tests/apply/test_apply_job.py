"""Logs of a real service in real Delta tables: the same as a plain set, however work is cut and wherever it dies."""

import pytest

from patchlog.model import Add, Delete, NamespaceAdd, NamespaceDelete, TransactionCommit, TransactionStart
from spark import faults
from spark.job import ApplyJob, Sizes
from spark.origin import Origin
from spark.tables import Tables

Q = ("<http://example.org/s>", "<http://example.org/p>", '"o"', "")


@pytest.fixture
def large(monkeypatch):
    """Have tables merged into as large ones are: `large(True)`."""
    return lambda is_large: monkeypatch.setattr("spark.merging.SMALL_BYTES", 0 if is_large else 8 << 20)


def test_random_history_in_batches_of_any_size_is_the_plain_set(history, apply, warehouse, large):
    for patches, size, is_large in ((20, 11, False), (1, 1, False), (30, 100, True)):
        large(is_large)
        history.grow(patches)
        apply(history, versions_per_batch=size)
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


@pytest.mark.parametrize("is_large", [False, True])
def test_add_of_a_quad_that_is_there_keeps_its_since(history, apply, warehouse, large, is_large):
    large(is_large)
    history.append([Add(*Q)])
    apply(history)

    history.append([TransactionStart(), Delete(*Q), Add(*Q), TransactionCommit()])
    history.append([Add(*Q), NamespaceAdd("ex", "<http://example.org/#>", "")])
    apply(history)

    warehouse.check(history.model)
    assert warehouse.quads() == {Q: 1}


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


def test_job_that_died_anywhere_is_taken_up_where_the_tables_are(history, apply, warehouse, monkeypatch, large):
    history.append([Add(*Q), NamespaceAdd("ex", "<http://example.org/1#>", "")])
    apply(history)

    for number, point in enumerate(faults.POINTS[2:]):
        is_of_namespaces = number % 4 == 1
        history.append([Delete(*Q), *[NamespaceAdd("ex", f"<http://example.org/{number}#>", "")] * is_of_namespaces])
        history.append([Add(*Q), Add("<a:s>", "<a:p>", f'"{number}"', "")])
        die_at(point, monkeypatch)
        large(number % 2)
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


def test_two_jobs_at_once_do_each_patch_once(history, apply, warehouse, session, monkeypatch, large):
    """The second works in the middle of each step of the first, as far as the log is then, which is further."""
    large(True)
    history.append([Add(*Q)])
    apply(history)
    history.append([Delete(*Q)])
    origin = Origin.of(history.url, history.name)
    with origin.opened() as log:
        tables = Tables(session, warehouse.folder, origin.identity(log))
    others = iter(["planned", "reduced", "deletes-committed", "adds-ready"])
    waited = next(others)
    is_inside = False

    def let_other_work(_, point):
        nonlocal waited, is_inside
        if point == waited and not is_inside:
            waited, is_inside = next(others, None), True
            history.append([Add(*Q), Add("<a:s>", "<a:p>", f'"{point}"', "")])
            ApplyJob(session, origin, tables, Sizes()).run_available()
            history.append([Delete(*Q)])
            is_inside = False

    for module in ("spark.job", "spark.merging"):
        monkeypatch.setattr(f"{module}.may_die", let_other_work)
    for _ in range(3):
        apply(history)
    monkeypatch.undo()
    apply(history)

    warehouse.check(history.model)
