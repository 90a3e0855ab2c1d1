"""Whether the tables are where they say, and on the log's history: found out before work goes on.

Each table says how far it is by Delta's transaction identifier, by the metadata of the last commit of ours that its
content has (`spark.commit_history`), and `changes` by its rows.

    what is found                                        what is done
    nothing says anything, and there are no rows         the table is new
    RESTORE has taken the rows back                      the table goes on from there
    the identifier is lost, its commit is known          it is set again
    rows, and nothing says how far they go               refused
    they contradict each other                           refused
    the log does not have the history of the position    refused, with the last version that both have
    a position without a hash, of an earlier patchlog    compared by the ids of patches, and completed
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any, Final

from pyspark.sql import functions as F  # noqa: N812  as everybody has it

from patchlog.errors import HistoryMismatch, UsageError
from patchlog.log.contract import PatchLog
from patchlog.log.position import Position
from patchlog.log.records import EMPTY_HEAD
from spark.conflicts import again_after_conflicts
from spark.origin import Range
from spark.tables import REBUILD, LogTable, Tables

__all__ = ["last_common_version", "positions_settled", "reconcile"]

_MOST_LISTED: Final = 100_000
"""So many versions and ids of patches are taken to the driver; of more, some."""

_MOST_LOOKED_UP: Final = 1000


def reconcile(tables: Tables, log: PatchLog, tell: Callable[[str], object] = id, *, is_start: bool = True) -> None:
    """Compare the positions of the tables with each other and with the log.

    At the start the rows are looked at, too. Raises UsageError where a table does not know how far it is, and
    HistoryMismatch where it is of another history than the log.
    """
    tables.check()
    positions_settled(tables, tell, is_start=is_start)
    head = log.head().version
    changes = tables.changes.position()
    for table in tables.all:
        position = table.position()
        if position.version < 0:
            continue
        try:
            if position.hash is not None:
                log.check(position)
            else:
                _check_ids(table, tables, log, position, head)
        except HistoryMismatch as error:
            raise _explained(tables, table, error, log, min(position.version, head)) from error
        if position.hash is None:
            whole = table.log.position(position.version, log.position(position.version).hash)
            again_after_conflicts(partial(table.note, whole))
    if changes.version >= 0 and tables.changes.gaps() is None:
        tables.changes.note_gaps(_gaps_before(tables, log, changes.version))
    if tables.quads.number() > changes.version and log.describe().first_version > changes.version + 1:
        raise UsageError(
            f"{tables.quads.identifier} is at version {tables.quads.number()}, `changes` at {changes.version}, and the "
            f"log has forgotten what comes next: {REBUILD}"
        )


def positions_settled(tables: Tables, tell: Callable[[str], object] = id, *, is_start: bool = True) -> None:
    """Have each table's transaction identifier be what its content is. Raises UsageError where nobody knows."""
    for table in tables.all:
        again_after_conflicts(partial(_settle, table, tell))
    number = tables.changes.number()
    if is_start and number >= 0 and (last := tables.changes.last_row_version()) > number:
        raise UsageError(
            f"{tables.changes.identifier} is at version {number}, but has rows of version {last}: others have written "
            f"to it; {REBUILD}"
        )


def _settle(table: LogTable, tell: Callable[[str], object]) -> None:
    number, content = table.number(), table.content()
    if content.version == number:
        return
    if content.version is None:
        if (number < 0 and table.is_empty) or (number >= 0 and not content.is_restored):
            return
        what = "RESTORE has taken it back" if content.is_restored else "it was cloned, or its history is gone"
        raise UsageError(f"nothing says how far {table.identifier} is ({what}): {REBUILD}")
    if not (content.is_restored or number < 0):
        raise UsageError(
            f"{table.identifier} is at version {number} by its transaction identifier, and at version "
            f"{content.version} by its last commit: {REBUILD}"
        )
    if content.is_restored:
        tell(f"{table.table.name}: RESTORE has taken it back to version {max(content.version, 0)}")
    hash = EMPTY_HEAD.hash if content.version < 0 else content.hash
    table.note(table.log.position(content.version, hash), is_reset=content.is_restored)


def _check_ids(table: LogTable, tables: Tables, log: PatchLog, position: Position, head: int) -> None:
    """Compare by the ids of patches. Of `quads` and `namespaces`, which have none, `changes` vouch for the log."""
    if position.version > head:
        log.check(Position(position.log_id, position.version, EMPTY_HEAD.hash))
    if table is not tables.changes:
        return
    last = tables.changes.read().where(f"version <= {position.version}").orderBy(F.desc("version")).first()
    if last is None or last.version == 0:
        return
    record = log.find(last.version)
    if record is None or str(record.id) != last.patch_id:
        raise HistoryMismatch(
            f"version {last.version} is the patch {last.patch_id} in {table.identifier}, and "
            f"{record.id if record else 'none'} in the log {log.name!r}",
            version=last.version,
            head_version=head,
        )


def _explained(tables: Tables, table: LogTable, error: HistoryMismatch, log: PatchLog, until: int) -> HistoryMismatch:
    """The error with the last common version, and the way out."""
    return HistoryMismatch(
        f"{table.identifier} is of another history than the log: {error.reason}; {REBUILD}",
        version=error.version,
        last_common=last_common_version(tables, log, until),
        head_version=error.head_version,
        log_id=error.log_id,
    )


def last_common_version(tables: Tables, log: PatchLog, until: int) -> int:
    """The last version at which `changes` and the log have the same patch, and so all before it."""
    found = _ids(tables, until)

    def is_common(version: int, first: str, last: str) -> bool:
        record = log.find(version)
        return first == last and record is not None and str(record.id) == first

    low, high = 0, len(found)
    while low < high:
        middle = (low + high) // 2
        if is_common(*found[middle]):
            low = middle + 1
        else:
            high = middle
    # Patches that change no quad have no rows, so those in between are not known to be the same.
    return found[low - 1][0] if low else 0


def _ids(tables: Tables, until: int) -> list[tuple[int, str, str]]:
    """Versions, and the least and the greatest id of patches in the rows of each, which is the same in sound tables."""
    step = max(1, until // _MOST_LISTED)
    rows = tables.changes.read().where(f"version BETWEEN 1 AND {until} AND (version % {step} = 0)")
    ids = rows.groupBy("version").agg(F.min("patch_id").alias("first"), F.max("patch_id").alias("last"))
    return [(row.version, row.first, row.last) for row in ids.orderBy("version").collect()]


def _gaps_before(tables: Tables, log: PatchLog, until: int) -> Iterator[Range]:
    """Versions that an earlier patchlog skipped as the log had forgotten them, and noted nowhere."""
    first = log.describe().first_version
    if first == 1:
        return
    rows: Any = tables.changes.read().where(f"version < {first + _MOST_LOOKED_UP}").select("version").distinct()
    present = sorted(row.version for row in rows.collect())
    for after, version in pairwise([0, *(one for one in present if one), min(first, until + 1)]):
        skipped = range(after + 1, min(version, first))
        if any(_has_quads(log, one) for one in skipped[:_MOST_LOOKED_UP]):
            yield Range(after, version)


def _has_quads(log: PatchLog, version: int) -> bool:
    record = log.find(version)
    return record is not None and record.adds + record.deletes > 0
