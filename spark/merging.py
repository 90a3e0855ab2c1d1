"""`changes` into `quads`, at a cost that follows the batch as far as it can.

Delta's own MERGE that deletes and inserts makes an outer join, for which the whole table is shuffled. So it is done in
two commits, each with a join for which only the batch is sent around:

    1. what is deleted, or deleted and added again, is taken out (a MERGE that only deletes)
    2. what is added and not there is put in (a MERGE that only inserts, and reads nothing of the table but what came
       behind this batch's begin, which is there only if another job did the same work)

Of a table so small that it is sent around itself, all is read for the second.

Both numbers of a batch are told apart from all others (`spark.tables`). A job that dies in between leaves a table of
which nobody says that it stands for a version, and the next one does the same batch again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as everybody has it

from spark.faults import may_die
from spark.origin import Range
from spark.reduction import IS_AGAIN, QUAD, added_again, last_quads
from spark.tables import LogTable, Tables

__all__ = ["SMALL_BYTES", "Merged", "append_changes", "merge_namespaces", "merge_quads"]

_BROADCAST_ROWS: Final = 500_000
"""Batches up to this size are sent to all executors whole."""

SMALL_BYTES: Final = 8 << 20
"""Tables up to this size are sent to all executors whole, and so are looked through by one join instead of two."""

_HASHES: Final = "xxhash64({0}.graph, {0}.subject, {0}.predicate, {0}.object)"
# A join on one number costs less than one on four strings. Spark joins on all that is said to be equal, so of the
# strings, which are looked at where the hashes are equal, it is said that none is the greater.
_SAME_QUAD: Final = " AND ".join(
    [
        f"{_HASHES.format('quads')} = {_HASHES.format('batch')}",
        *(f"quads.{name} <= batch.{name} AND quads.{name} >= batch.{name}" for name in QUAD),
    ]
)
_IS_OUT: Final = "NOT is_added OR deleted IS NOT NULL"


@dataclass(frozen=True, slots=True)
class _Batch:
    """The last words on quads, and how many rows of each kind there are."""

    quads: DataFrame
    total: int
    outs: int
    adds: int

    def rows(self, condition: str, count: int) -> DataFrame:
        """Some of them, small enough to be sent around or not."""
        found = self.quads.where(condition)
        return F.broadcast(found) if count <= _BROADCAST_ROWS else found


@dataclass(frozen=True, slots=True)
class Merged:
    """What was merged: these versions, with so many quads that are different behind them."""

    versions: Range
    operations: int


def merge_quads(session: SparkSession, tables: Tables) -> Merged | None:
    """Finish what a job has left half done, else bring `quads` to where `changes` is; None where it is there."""
    position = tables.quads_position()
    if position.is_pending:
        # Behind the last batch that was finished, or behind nothing where the history does not say: to merge more of
        # the past than needed changes nothing.
        whole = Range(next((said["to"] for _, said in tables.quads.said()), -1), position.version)
    else:
        whole = Range(position.version, tables.changes.number())
    if whole.until <= whole.after:
        return None
    changes = tables.changes.read().where(f"version > {whole.after} AND version <= {whole.until}")
    reduced = last_quads(changes).persist()
    try:
        total, outs, adds, again = _counts(reduced)
        may_die(session, "reduced")
        batch = _Batch(added_again(changes, reduced) if again else reduced, total, outs, adds)
        _commit(session, tables, batch, whole)
    finally:
        reduced.unpersist()
    return Merged(whole, batch.total)


def _commit(session: SparkSession, tables: Tables, batch: _Batch, whole: Range) -> None:
    first, last = 2 * whole.until, 2 * whole.until + 1
    says = {"log": tables.log.name, "from": whole.after, "to": whole.until}
    quads = tables.quads
    size = quads.bytes()
    is_new, is_small = size == 0, size <= SMALL_BYTES
    if batch.outs and not is_new:
        may_die(session, "deletes-ready")
        with quads.transaction(first if batch.adds else last, says=None if batch.adds else says):
            _take_out(quads, batch.rows(_IS_OUT, batch.outs))
        may_die(session, "deletes-committed")
        if not batch.adds:
            return
    fresh = batch.rows("is_added", batch.adds)
    if not is_small:
        # What this batch has deleted is not there any more.
        kept = fresh.where("deleted IS NULL")
        there = quads.read().alias("quads").join(kept.alias("batch"), F.expr(_SAME_QUAD)).select("batch.*")
        fresh = fresh.join(F.broadcast(there) if batch.adds <= _BROADCAST_ROWS else there, [*QUAD], "left_anti")
    may_die(session, "adds-ready")
    with quads.transaction(last, says=says):
        _put_in(quads, fresh.select(*QUAD, "since"), None if is_small else whole.after)
    may_die(session, "quads-committed")


def _take_out(quads: LogTable, outs: DataFrame) -> None:
    quads.merge(outs.select(*QUAD), _SAME_QUAD).whenMatchedDelete().execute()


def _put_in(quads: LogTable, fresh: DataFrame, after: int | None) -> None:
    is_recent = "" if after is None else f"quads.since > {after} AND "
    quads.merge(fresh, is_recent + _SAME_QUAD).whenNotMatchedInsertAll().execute()


def append_changes(changes: LogTable, rows: DataFrame, whole: Range) -> None:
    """Append a batch of operations, but those that another job has appended since this one looked."""
    condition = (
        f"changes.version > {whole.after} AND changes.version = batch.version AND changes.position = batch.position"
    )
    with changes.transaction(whole.until, is_from_log=True):
        changes.merge(rows, condition).whenNotMatchedInsertAll().execute()


def merge_namespaces(namespaces: LogTable, batch: DataFrame, until: int) -> None:
    """Bring `namespaces` to a version, by rows of `spark.reduction.last_namespaces`."""
    merge = namespaces.merge(batch, "namespaces.graph = batch.graph AND namespaces.name = batch.name")
    with namespaces.transaction(until, is_from_log=True):
        (
            merge.whenMatchedDelete("batch.iri IS NULL")
            .whenMatchedUpdate(
                "batch.was_other OR namespaces.iri != batch.iri",
                {"iri": "batch.iri", "since": "batch.since"},
            )
            .whenNotMatchedInsert(
                "batch.iri IS NOT NULL",
                {name: f"batch.{name}" for name in namespaces.columns},
            )
            .execute()
        )


def _counts(reduced: DataFrame) -> tuple[int, int, int, int]:
    again = F.expr(f"coalesce({IS_AGAIN}, false)")
    row: Any = reduced.agg(
        F.count("*"), F.count_if(F.expr(_IS_OUT)), F.count_if(F.col("is_added")), F.count_if(again)
    ).first()
    return tuple(row)
