"""Compaction, clustering, and forgetting of what time travel needs no more."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from pyspark.sql import SparkSession

from patchlog.errors import UsageError
from spark.conflicts import again_after_conflicts
from spark.tables import MOST_TRANSACTIONS, LogTable, Tables, quoted, settings

__all__ = ["SAFE_HOURS", "Optimized", "optimize"]

SAFE_HOURS: Final = 168
"""Delta's own: no job and no reader is expected to take a week."""
_HOURS: Final = {"week": 168.0, "day": 24.0, "hour": 1.0, "minute": 1 / 60, "second": 1 / 3600}
_INTERVAL: Final = re.compile(r"([0-9.]+) (week|day|hour|minute|second)")
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
    allow_unsafe_retention: bool = False,
    tell_refused: Callable[[LogTable, int], object] = lambda _table, _tried: None,
) -> list[Optimized]:
    """Compact and cluster all tables, of shared ones what is of the log; then delete files that nobody needs.

    Those are older than so many hours, which the tables keep in mind, or than Delta's own limit, and no version within
    that time needs them. What is older, `changes` give. Jobs may be at work meanwhile; where one was quicker, a table
    is compacted anew, and `tell_refused` is told how often that was tried.

    Raises UsageError where less than Delta's safe age would be kept, unless that is allowed: VACUUM then deletes files
    of commits that are under way.
    """
    for table in () if allow_unsafe_retention else tables.all:
        hours = _kept_hours(table) if keep_hours is None else keep_hours
        if hours < SAFE_HOURS:
            raise UsageError(
                f"{table.identifier} would keep files for {hours:g} hours, and Delta's safe age is {SAFE_HOURS}: "
                "VACUUM may delete what running jobs and readers still need. Say --keep-hours 168, or, if nothing else "
                "works on the tables, --allow-unsafe-retention"
            )
    return [_optimized(session, table, keep_hours, partial(tell_refused, table)) for table in tables.all]


def _optimized(
    session: SparkSession, table: LogTable, keep_hours: int | None, tell_refused: Callable[[int], object]
) -> Optimized:
    before = table.files()
    part = f" WHERE log = {quoted(table.log.name)}" if table.is_shared else ""
    with settings(session, MOST_TRANSACTIONS):
        again_after_conflicts(lambda: session.sql(f"OPTIMIZE {table.identifier}{part}"), tell_refused)
    if keep_hours is not None:
        # Delta takes no notice of `VACUUM … RETAIN`, and refuses time travel beyond what a table is to keep.
        kept = {_RETENTION: f"interval {keep_hours} hours"}
        again_after_conflicts(lambda: table.set_properties(kept), tell_refused)
    with settings(session, MOST_TRANSACTIONS):
        session.sql(f"VACUUM {table.identifier}")
    return Optimized(table.table.name, before, table.files())


def _kept_hours(table: LogTable) -> float:
    """For how long a table is to keep files, as it says itself."""
    said = table.properties(_RETENTION).get(_RETENTION, "").lower()
    found = [float(count) * _HOURS[unit] for count, unit in _INTERVAL.findall(said)]
    return sum(found) if found else SAFE_HOURS
