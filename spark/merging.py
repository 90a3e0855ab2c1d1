"""`changes` into `quads`, at a cost that follows the batch as far as it can.

Delta's own MERGE that deletes and inserts makes an outer join, for which the whole table is shuffled, and looks at it
twice more. So what is to be done is found out here, by one look at the table: which quads of the batch it has, and
where they stand. The batch is sent around for it, or only its hashes (`spark.standing`), and the table is not shuffled.
Then one commit takes out what stands there, and puts in what is not there (`spark.row_commit`).

Tables without deletion vectors, as small ones are, have their files written anew, by Delta's MERGE, in one commit too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as everybody has it

from spark.faults import may_die
from spark.loading import Loaded
from spark.origin import Range
from spark.reduction import HASH, IS_AGAIN, QUAD, added_again, last_quads, with_hash
from spark.row_commit import FILE, ROW, RowCommit
from spark.standing import can_look_beside_spark, candidates
from spark.tables import LogTable, Tables

__all__ = ["Merged", "Step", "append_changes", "append_files", "commit_loaded", "merge_namespaces", "merge_quads"]

_BROADCAST_ROWS: Final = 500_000
"""Batches up to this size are sent to all executors whole."""

_IS_OUT: Final = "NOT is_added OR deleted IS NOT NULL"
"""What is deleted, or deleted and added again, so that what stands in the table is not it."""

# A join on one number costs less than one on four texts. Spark joins on all that is said to be equal, so of the texts,
# which are looked at where the numbers are equal, it is said that none is the greater.
_SAME_QUAD: Final = " AND ".join(
    [
        f"quads.{HASH} = batch.{HASH}",
        *(f"quads.{name} <= batch.{name} AND quads.{name} >= batch.{name}" for name in QUAD),
    ]
)
_EQUAL_QUAD: Final = " AND ".join(f"quads.{name} = batch.{name}" for name in QUAD)


@dataclass(frozen=True, slots=True)
class _Batch:
    """The last words on quads, and how many rows of each kind there are."""

    quads: DataFrame
    total: int
    outs: int
    adds: int

    def small(self, rows: DataFrame) -> DataFrame:
        """Rows, no more than those of the batch, to be sent around or not."""
        return F.broadcast(rows) if self.total <= _BROADCAST_ROWS else rows


@dataclass(frozen=True, slots=True)
class Step:
    """Versions that one commit takes, and the chain hash of the log at the last."""

    versions: Range
    hash: bytes | None


@dataclass(frozen=True, slots=True)
class Merged:
    """What was merged: these versions, with so many quads that are different behind them."""

    versions: Range
    operations: int


def merge_quads(session: SparkSession, tables: Tables) -> Merged | None:
    """Bring `quads` to where `changes` is; None where it is there.

    It changes nothing where another job does the same meanwhile: to merge more of the past than needed gives the same.
    """
    position = tables.changes.position()
    step = Step(Range(tables.quads.number(), position.version), position.hash)
    whole = step.versions
    if whole.until <= whole.after:
        return None
    tables.quads.adopt_deletion_vectors()
    changes = tables.changes.read().where(f"version > {whole.after} AND version <= {whole.until}")
    is_one_version = whole.until - whole.after == 1
    reduced = last_quads(changes, is_one_version=is_one_version)
    if not is_one_version:
        reduced.persist()
    try:
        total, outs, adds, again = _counts(reduced)
        may_die(session, "reduced")
        batch = _Batch(added_again(changes, reduced) if again else reduced, total, outs, adds)
        with tables.quads.saying(whole, position.hash):
            is_merged = _merge(session, tables.quads, batch, step)
        may_die(session, "quads-committed")
    finally:
        reduced.unpersist()
    return Merged(whole, batch.total) if is_merged else merge_quads(session, tables)


def _merge(session: SparkSession, quads: LogTable, batch: _Batch, step: Step) -> bool:
    """Merge a batch; False where the table is not where it was when this job looked."""
    has_vectors = quads.has_deletion_vectors
    if has_vectors or not quads.files():
        commit = quads.begin_row_commit()
        if commit.number != step.versions.after:
            return False
        if has_vectors or commit.is_empty:
            _merge_where_they_stand(session, quads, commit, batch, step.versions.until)
            return True
    elif quads.number() != step.versions.after:
        return False
    _merge_files(session, quads, batch, step)
    return True


def _merge_where_they_stand(
    session: SparkSession, quads: LogTable, commit: RowCommit, batch: _Batch, until: int
) -> None:
    fresh = batch.quads.where("is_added")
    with ExitStack() as stack:
        found = None if commit.is_empty else stack.enter_context(_found(session, commit, batch))
        may_die(session, "looking-up")
        if found is not None and batch.outs:
            commit.take_out(found.where("is_out"))
            may_die(session, "deletes-written")
        if found is not None and batch.adds:
            fresh = fresh.join(batch.small(found.where("NOT is_out").select(*QUAD)), [*QUAD], "left_anti")
        if batch.adds:
            commit.put_in(quads.with_all_columns(fresh))
            may_die(session, "adds-written")
        commit.commit(until, source_rows=batch.total)


@contextmanager
def _found(session: SparkSession, commit: RowCommit, batch: _Batch) -> Iterator[DataFrame]:
    """The quads of the batch that are there, whether they are to be taken out, and where they stand."""
    wanted = batch.quads.select(*QUAD, F.expr(_IS_OUT).alias("is_out")).alias("batch")
    files = commit.data_files() if can_look_beside_spark(batch.total) else None
    with ExitStack() as stack:
        if files is not None:
            standing = stack.enter_context(candidates(session, files, wanted))
            same = batch.small(standing).alias("quads").join(wanted, F.expr(_EQUAL_QUAD))
        else:
            standing = with_hash(commit.rows().select(*QUAD, FILE, ROW))
            same = standing.alias("quads").join(batch.small(with_hash(wanted)).alias("batch"), F.expr(_SAME_QUAD))
        found = same.select("batch.*", FILE, ROW).persist()
        stack.callback(found.unpersist)
        yield found


def _merge_files(session: SparkSession, quads: LogTable, batch: _Batch, step: Step) -> None:
    merge = quads.merge(batch.quads, _EQUAL_QUAD)
    may_die(session, "looking-up")
    with quads.transaction(step.versions, step.hash):
        (
            merge.whenMatchedDelete("NOT batch.is_added")
            .whenMatchedUpdate("batch.deleted IS NOT NULL", {"since": "batch.since"})
            .whenNotMatchedInsert("batch.is_added", {name: f"batch.{name}" for name in quads.columns})
            .execute()
        )


def append_changes(changes: LogTable, rows: DataFrame, step: Step) -> bool:
    """Append a batch of operations; False where the table is not where it was when this job looked."""
    commit = changes.begin_row_commit()
    if not _is_at(commit, step.versions.after):
        return False
    commit.put_in(changes.with_all_columns(rows))
    with changes.saying(step.versions, step.hash):
        commit.commit(step.versions.until)
    return True


def append_files(changes: LogTable, adds: Iterable[str], step: Step) -> bool:
    """The same of a batch that is in data files already."""
    commit = changes.begin_row_commit()
    if not _is_at(commit, step.versions.after):
        return False
    commit.put_in_files(adds)
    with changes.saying(step.versions, step.hash):
        commit.commit(step.versions.until)
    return True


def _is_at(commit: RowCommit, version: int) -> bool:
    # A log that begins with nothing has nothing to bring a table to version 0.
    return commit.number == version or (version == 0 and commit.number < 0)


def commit_loaded(session: SparkSession, tables: Tables, loaded: Loaded, step: Step) -> bool:
    """Commit what was loaded for tables that were empty; False where another job has begun one of them meanwhile."""
    if not append_files(tables.changes, loaded.changes, step):
        return False
    may_die(session, "changes-committed")
    if append_files(tables.quads, loaded.quads, step):
        may_die(session, "quads-committed")
    return True


def merge_namespaces(namespaces: LogTable, batch: DataFrame, step: Step) -> None:
    """Bring `namespaces` to a version, by rows of `spark.reduction.last_namespaces`."""
    merge = namespaces.merge(batch, "namespaces.graph = batch.graph AND namespaces.name = batch.name")
    with namespaces.transaction(step.versions, step.hash, is_from_log=True):
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
