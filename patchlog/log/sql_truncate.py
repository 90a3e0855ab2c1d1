"""Forgets the bytes of old patches, some at a time: appends go on in between."""

from __future__ import annotations

from typing import Final

from sqlalchemy import delete, func, select, update

from patchlog.log.batch import Batch
from patchlog.log.consumers import check_truncation, default_truncation
from patchlog.log.tables import CONSUMER, LOG, PATCH, PATCH_CHUNK, SNAPSHOT

__all__ = ["truncate_some"]

_MOST: Final = 10_000


def truncate_some(batch: Batch, name: str, version: int | None, *, force: bool) -> bool:
    """Forget at most some of the patches below a version that are still kept. Whether there are none left.

    Without a version, of those that nobody needs. Raises TruncationRefused.
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
    until = min(wanted, first + _MOST)
    if until <= first:
        return True
    forgotten = (PATCH.c.log == row.key) & (PATCH.c.version >= first) & (PATCH.c.version < until)
    operations, size = connection.execute(
        select(func.sum(PATCH.c.operations), func.sum(PATCH.c.bytes)).where(forgotten)
    ).one()
    connection.execute(
        delete(PATCH_CHUNK).where(
            PATCH_CHUNK.c.log == row.key, PATCH_CHUNK.c.body.in_(select(PATCH.c.body).where(forgotten))
        )
    )
    connection.execute(
        update(LOG)
        .where(LOG.c.key == row.key)
        .values(
            first_version=until,
            operations=LOG.c.operations - int(operations),
            bytes=LOG.c.bytes - int(size),
        )
    )
    return False
