"""Forgets the bytes of old patches, some at a time: appends go on in between."""

from __future__ import annotations

from typing import Final

from sqlalchemy import func, select, update

from patchlog.log.batch import Batch
from patchlog.log.consumers import check_truncation, default_truncation
from patchlog.log.sql_steps import clear_some
from patchlog.log.tables import CONSUMER, LOG, PATCH, SNAPSHOT

__all__ = ["clear_truncated", "truncate_some"]

_MOST: Final = 10_000


def truncate_some(batch: Batch, name: str, version: int | None, *, force: bool) -> int | None:
    """Forget at most some of the patches below a version that are still kept, or delete some bytes of forgotten ones.

    The version below which all bytes are gone; None where there is nothing left to do. Without a version, of those
    patches that nobody needs. Raises TruncationRefused.
    """
    log = batch.log(name)
    connection = batch.connection
    row = connection.execute(select(LOG).where(LOG.c.key == log.key)).one()
    first = row.first_version
    consumers = connection.execute(select(CONSUMER.c.name, CONSUMER.c.version).where(CONSUMER.c.log == row.key))
    places = [(consumer.name, consumer.version) for consumer in consumers]
    snapshots = connection.execute(select(SNAPSHOT.c.version).where(SNAPSHOT.c.log == row.key)).scalars().all()
    if version is None:
        version = default_truncation(places, snapshots)
    wanted = min(version, row.head_version + 1)
    check_truncation(wanted, first, places, snapshots, force=force)
    if (cleared := clear_truncated(batch, name)) is not None:
        return cleared
    until = min(wanted, first + _MOST)
    if until <= first:
        return None
    forgotten = (PATCH.c.log == row.key) & (PATCH.c.version >= first) & (PATCH.c.version < until)
    operations, size = connection.execute(
        select(func.sum(PATCH.c.operations), func.sum(PATCH.c.bytes)).where(forgotten)
    ).one()
    connection.execute(
        update(LOG)
        .where(LOG.c.key == row.key)
        .values(
            first_version=until,
            cleared_version=first,
            operations=LOG.c.operations - int(operations),
            bytes=LOG.c.bytes - int(size),
        )
    )
    return int(first)


def clear_truncated(batch: Batch, name: str) -> int | None:
    """Delete some bytes of patches that were forgotten. The version below which all are gone; None where all are."""
    log = batch.log(name)
    connection = batch.connection
    row = connection.execute(select(LOG.c.first_version, LOG.c.cleared_version).where(LOG.c.key == log.key)).one()
    if row.cleared_version is None or row.cleared_version >= row.first_version:
        return None
    cleared = clear_some(connection, log.key, row.cleared_version, row.first_version)
    connection.execute(update(LOG).where(LOG.c.key == log.key).values(cleared_version=cleared))
    return cleared
