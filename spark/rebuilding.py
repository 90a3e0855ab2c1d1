"""`apply --rebuild`: tables that are damaged, or of another history than the log, go back to what both have.

    quads        are emptied, and merged again from `changes`
    namespaces   are compared with the log again
    changes      keep the versions that the log has too, each operation once; the files with others are written again

In this order, so that a rebuild that died half way is found by the next job, or does no harm. Then the job goes on as
always, from the last common version.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  as everybody has it

from patchlog.codec.patch_ids import parse_patch_id
from patchlog.errors import UsageError
from patchlog.log.contract import PatchLog
from spark.conflicts import again_after_conflicts
from spark.origin import Origin
from spark.reconciling import last_common_version
from spark.tables import Tables
from spark.verification import PLACE, doubled_versions, first_bad_version

__all__ = ["rebuild"]


@dataclass(frozen=True, slots=True)
class _Plan:
    """The last common version, and the last that `changes` has."""

    common: int
    last: int


def rebuild(
    session: SparkSession,
    origin: Origin,
    tables: Tables,
    log: PatchLog,
    *,
    may_lose: bool,
    tell: Callable[[str], object] = id,
) -> None:
    """Take the tables back to the last version that they have in common with the log.

    Raises UsageError where rows would be lost that the log cannot give again, unless that is allowed.
    """
    plan = _planned(session, origin, tables, log)
    is_ours = all(table.is_of_this_log for table in tables.all)
    first = log.describe().first_version
    if not may_lose:
        what = None
        if not is_ours:
            what = f"what is of another log, after version {plan.common}"
        elif plan.common < min(first - 1, plan.last):
            what = f"versions after {plan.common}, of which the log has forgotten those before {first}"
        elif (lost := _last_patch(tables, plan.common)) is not None and not _has(log, lost):
            what = f"versions after {plan.common} up to {plan.last}, whose patches the log does not have ({lost})"
        if what is not None:
            raise UsageError(f"to rebuild {tables.changes.identifier} deletes {what}: allow it by --yes")
    for table in tables.all:
        if not table.is_of_this_log:
            again_after_conflicts(table.own)
    tell(f"rebuild: the tables and the log are the same up to version {plan.common}")
    again_after_conflicts(tables.quads.clear)
    if plan.common == 0:
        again_after_conflicts(tables.namespaces.clear)
        again_after_conflicts(tables.changes.clear)
        return
    position = tables.log.position(plan.common, log.position(plan.common).hash)
    again_after_conflicts(lambda: tables.namespaces.note(position, is_reset=True))
    unwanted = F.col("version") > plan.common
    doubled = doubled_versions(tables)
    if doubled:
        unwanted |= F.col("version").between(doubled[0], doubled[-1])
    again_after_conflicts(
        lambda: tables.changes.keep_only(
            lambda rows: rows.where(f"version <= {plan.common}").dropDuplicates([*PLACE]), unwanted, position
        )
    )


def _last_patch(tables: Tables, after: int) -> str | None:
    """The id of the last patch that has rows after a version."""
    rows = tables.changes.read().where(f"version > {after}").orderBy(F.desc("version")).select("patch_id").limit(1)
    return next((row.patch_id for row in rows.collect()), None)


def _has(log: PatchLog, patch_id: str) -> bool:
    """Whether the log has the patch. Rows that others wrote, with an id of no patch, are nobody's loss."""
    try:
        return log.find(parse_patch_id(patch_id)) is not None
    except UsageError:
        return True


def _planned(session: SparkSession, origin: Origin, tables: Tables, log: PatchLog) -> _Plan:
    last = tables.changes.last_row_version()
    head = log.head().version
    common = last_common_version(tables, log, min(last, head))
    bad = first_bad_version(session, origin, tables, common)
    return _Plan(common if bad is None else max(0, bad - 1), last)
