"""Compaction, clustering, and forgetting of what time travel needs no more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from pyspark.sql import SparkSession

from spark.conflicts import again_after_conflicts
from spark.tables import LogTable, Tables, quoted

__all__ = ["Optimized", "optimize"]

_RETENTION: Final = "delta.deletedFileRetentionDuration"


@dataclass(frozen=True, slots=True)
class Optimized:
    """What became of a table: files that were taken away and made."""

    table: str
    files_before: int
    files_after: int


def optimize(
    session: SparkSession,
    tables: Tables,
    *,
    keep_hours: int | None = None,
    tell_refused: Callable[[LogTable, int], object] = lambda _table, _tried: None,
) -> list[Optimized]:
    """Compact and cluster all tables, of shared ones what is of the log; then delete files that nobody needs.

    Those are older than so many hours, which the tables keep in mind, or than Delta's own limit, and no version within
    that time needs them. What is older, `changes` give. Jobs may be at work meanwhile; where one was quicker, a table
    is compacted anew, and `tell_refused` is told how often that was tried.
    """
    return [_optimized(session, table, keep_hours, partial(tell_refused, table)) for table in tables.all]


def _optimized(
    session: SparkSession, table: LogTable, keep_hours: int | None, tell_refused: Callable[[int], object]
) -> Optimized:
    before = table.files()
    part = f" WHERE log = {quoted(table.log.name)}" if table.is_shared else ""
    again_after_conflicts(lambda: session.sql(f"OPTIMIZE {table.identifier}{part}"), tell_refused)
    if keep_hours is not None:
        # Delta takes no notice of `VACUUM … RETAIN`, and refuses time travel beyond what a table is to keep.
        kept = {_RETENTION: f"interval {keep_hours} hours"}
        again_after_conflicts(lambda: table.set_properties(kept), tell_refused)
    session.sql(f"VACUUM {table.identifier}")
    return Optimized(table.table.name, before, table.files())
