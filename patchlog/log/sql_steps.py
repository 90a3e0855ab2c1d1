"""Deletes what is not needed any more in bounded steps, each a job of the writer: appends go on in between.

What is large is first marked, in a transaction of its own: from then on it is gone for all who ask. Then its rows are
deleted some at a time, by rows and by bytes. A process that ends in between leaves the mark, and any other goes on.

    log     has a name that no log can have, and the time of its deletion
    patch   is below `first_version`; the bytes of those from `cleared_version` on are still to be deleted
    stage   has begun at no time
"""

from __future__ import annotations

import uuid
from typing import Final

from sqlalchemy import ColumnElement, Connection, Select, and_, delete, func, or_, select, tuple_, update

from patchlog.errors import LogNotFound, UsageError
from patchlog.log.batch import Batch, Hold
from patchlog.log.database import Database
from patchlog.log.records import ANY_HEAD, ExpectedHead
from patchlog.log.snapshots.sql_index import throw_files_away
from patchlog.log.staging import MAX_PATCHES
from patchlog.log.succession import check_head
from patchlog.log.tables import LOG, PATCH, PATCH_CHUNK, SNAPSHOT, SNAPSHOT_BUILD, STAGE, body_of_stage

__all__ = [
    "check_stage",
    "clear_some",
    "delete_some_of_log",
    "delete_some_of_stage",
    "mark_log_deleted",
    "mark_old_stages",
    "unfinished_logs",
    "unfinished_stages",
]

_MOST_BYTES: Final = 8 << 20
"""In one step, which is about what the writer writes in a round; a chunk more, where that is larger."""
_MOST_CHUNKS: Final = 1000
_MOST_PATCHES: Final = 5000

_STAGE_LIVES_MS: Final = 24 * 60 * 60 * 1000
"""What is older belongs to an upload that was cut off with its process."""
_SWEPT: Final = -1
"""When a stage began that nobody takes into a log any more."""


def mark_log_deleted(batch: Batch, name: str, expected_head: ExpectedHead = ANY_HEAD) -> None:
    """Have the log gone, and its name free. Raises LogNotFound, and HeadMismatch where it has another head."""
    log = batch.log(name, Hold.WHOLE)
    check_head(expected_head, log.head)
    throw_files_away(batch, name)
    connection = batch.connection
    for table in (SNAPSHOT, SNAPSHOT_BUILD, STAGE):  # few rows; without its stage no upload ends in the log
        connection.execute(delete(table).where(table.c.log == log.key))
    mark = uuid.uuid4()  # the id is free too: a log may be restored
    connection.execute(
        update(LOG)
        .where(LOG.c.key == log.key)
        .values(name=f"/{mark.hex}", id=mark.bytes, deleted_ms=batch.now_ms, reserved_by=None, reserved_until_ms=None)
    )
    batch.changed.add(name)


def delete_some_of_log(batch: Batch, mark: str) -> bool:
    """Delete some rows of a log that was marked. Whether there are none left."""
    try:
        log = batch.log(mark, Hold.WHOLE)
    except LogNotFound:
        return True  # another process was faster
    connection = batch.connection
    if not _delete_chunks(connection, PATCH_CHUNK.c.log == log.key):
        return False
    of_log = PATCH.c.log == log.key
    some = select(PATCH.c.version).where(of_log).order_by(PATCH.c.version).limit(_MOST_PATCHES).subquery()
    last = connection.execute(select(func.max(some.c.version))).scalar()
    if last is not None:
        connection.execute(delete(PATCH).where(of_log, PATCH.c.version <= last))
        return False
    connection.execute(delete(LOG).where(LOG.c.key == log.key))
    return True


def clear_some(connection: Connection, log: int, cleared: int, first: int) -> int:
    """Delete some chunks of the patches from `cleared` on, and below `first`. The version from which on are others."""
    rows = connection.execute(
        select(PATCH.c.version, PATCH.c.bytes, PATCH.c.body)
        .where(PATCH.c.log == log, PATCH.c.version >= cleared, PATCH.c.version < first)
        .order_by(PATCH.c.version)
        .limit(_MOST_CHUNKS)
    ).all()
    if not rows:
        return first
    size = count = 0
    version: int
    for row in rows:
        if count and size + row.bytes > _MOST_BYTES:
            break
        size += row.bytes
        count += 1
    bodies = [row.body for row in rows[:count]]
    of_bodies = and_(PATCH_CHUNK.c.log == log, PATCH_CHUNK.c.body.in_(bodies))
    if size > _MOST_BYTES:  # it is one patch
        version = rows[0].version
        return version + 1 if _delete_chunks(connection, of_bodies) else version
    connection.execute(delete(PATCH_CHUNK).where(of_bodies))
    version = rows[count - 1].version
    return version + 1


def mark_old_stages(batch: Batch) -> None:
    """Have the stages of uploads that were cut off taken into no log any more."""
    # What another process takes into a log at this moment is left to it: who sweeps waits for nobody.
    is_old = and_(STAGE.c.begun_ms < batch.now_ms - _STAGE_LIVES_MS, STAGE.c.begun_ms != _SWEPT)
    old = select(STAGE.c.key).where(is_old).with_for_update(skip_locked=True)
    keys = batch.connection.execute(old).scalars().all()
    if keys:
        batch.connection.execute(update(STAGE).where(STAGE.c.key.in_(keys)).values(begun_ms=_SWEPT))


def check_stage(batch: Batch, key: int) -> None:
    """Keep a stage from being swept until the batch is written. Raises UsageError where it was."""
    there = _stage(key).where(STAGE.c.begun_ms != _SWEPT).with_for_update(read=True, key_share=True)
    if batch.connection.execute(there).first() is None:
        raise UsageError("the upload took so long that its beginning was swept away: send it again")


def delete_some_of_stage(batch: Batch, stage: tuple[int, int]) -> bool:
    """Delete some chunks of a stage, by log and key, that goes into no log any more. Whether there are none left."""
    connection = batch.connection
    log, key = stage
    # Only while the row is there are the chunks nobody's: a log that takes them in deletes it in the same transaction,
    # which may be durable though nobody heard so. What another process is at is left to it.
    if connection.execute(_stage(key).with_for_update(skip_locked=True)).first() is None:
        return True
    connection.execute(update(STAGE).where(STAGE.c.key == key, STAGE.c.begun_ms != _SWEPT).values(begun_ms=_SWEPT))
    first, last = body_of_stage(key, MAX_PATCHES - 1), body_of_stage(key, 0)
    if not _delete_chunks(connection, and_(PATCH_CHUNK.c.log == log, PATCH_CHUNK.c.body.between(first, last))):
        return False
    connection.execute(delete(STAGE).where(STAGE.c.key == key))
    return True


def unfinished_logs(database: Database) -> tuple[list[str], list[str]]:
    """The marks of logs that were deleted, and the logs that were truncated, and still have rows or bytes to delete."""
    with database.reading() as connection:
        rows = connection.execute(
            select(LOG.c.name, LOG.c.deleted_ms).where(
                or_(LOG.c.deleted_ms.is_not(None), LOG.c.cleared_version < LOG.c.first_version)
            )
        ).all()
    deleted = [row.name for row in rows if row.deleted_ms is not None]
    return deleted, [row.name for row in rows if row.deleted_ms is None]


def unfinished_stages(database: Database) -> list[tuple[int, int]]:
    """Of stages that are swept, the log and the key."""
    with database.reading() as connection:
        rows = connection.execute(select(STAGE.c.log, STAGE.c.key).where(STAGE.c.begun_ms == _SWEPT))
        return [(row.log, row.key) for row in rows]


def _stage(key: int) -> Select[tuple[int]]:
    return select(STAGE.c.key).where(STAGE.c.key == key)


def _delete_chunks(connection: Connection, which: ColumnElement[bool]) -> bool:
    """Delete the first of some chunks, by their bodies and numbers. Whether there are none left."""
    place = (PATCH_CHUNK.c.body, PATCH_CHUNK.c.number)
    rows = connection.execute(
        select(*place, func.length(PATCH_CHUNK.c.bytes).label("size")).where(which).order_by(*place).limit(_MOST_CHUNKS)
    ).all()
    if not rows:
        return True
    size = 0
    for row in rows:
        last = row
        size += row.size
        if size >= _MOST_BYTES:
            break
    connection.execute(delete(PATCH_CHUNK).where(which, tuple_(*place) <= tuple_(last.body, last.number)))
    return len(rows) < _MOST_CHUNKS and last is rows[-1]
