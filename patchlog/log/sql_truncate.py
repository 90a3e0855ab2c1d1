"""Forgets the bytes of old patches, some at a time: appends go on in between."""

from __future__ import annotations

from typing import Final

from sqlalchemy import delete, func, select, update

from patchlog.log.batch import Batch
from patchlog.log.tables import LOG, PATCH, PATCH_CHUNK

__all__ = ["truncate_some"]

_MOST: Final = 10_000


def truncate_some(batch: Batch, name: str, version: int) -> bool:
    """Forget at most some of the patches below a version that are still kept. Whether there are none left."""
    log = batch.log(name)
    connection = batch.connection
    row = connection.execute(select(LOG).where(LOG.c.key == log.key)).one()
    first = row.first_version
    until = min(version, row.head_version + 1, first + _MOST)
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
