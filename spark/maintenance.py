"""Compaction, clustering, and forgetting of what time travel needs no more."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from spark.tables import LogTable, Tables

__all__ = ["Optimized", "optimize"]


@dataclass(frozen=True, slots=True)
class Optimized:
    """What became of a table: files that were taken away and made."""

    table: str
    files_before: int
    files_after: int


def optimize(session: SparkSession, tables: Tables, *, keep_hours: int | None = None) -> list[Optimized]:
    """Compact and cluster all tables; then delete files that are older than so many hours, or than Delta's own limit.

    Jobs may be at work meanwhile. What time travel gives within that time it gives afterwards; beyond it, `changes` do.
    """
    return [_optimized(session, table, keep_hours) for table in (tables.changes, tables.namespaces, tables.quads)]


def _optimized(session: SparkSession, table: LogTable, keep_hours: int | None) -> Optimized:
    before = table.files()
    session.sql(f"OPTIMIZE {table.identifier}")
    retain = "" if keep_hours is None else f" RETAIN {keep_hours} HOURS"
    session.sql(f"VACUUM {table.identifier}{retain}")
    return Optimized(table.table.name, before, table.files())
