"""The bytes of patches out of the database, a bounded piece at a time and in short transactions.

A reader may be slow: no connection and no transaction waits for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from sqlalchemy import and_, select

from patchlog.log.database import Database
from patchlog.log.records import LoggedPatch
from patchlog.log.rows import AnyRow, record_of
from patchlog.log.tables import PATCH, PATCH_CHUNK

__all__ = ["StoredBody", "logged_patches"]

_MOST_PATCHES: Final = 500
_MOST_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class StoredBody:
    """The chunks of one body, fetched one by one."""

    database: Database
    log: int
    body: int

    def __iter__(self) -> Iterator[bytes]:
        number = -1
        while True:
            with self.database.reading() as connection:
                row = connection.execute(
                    select(PATCH_CHUNK.c.number, PATCH_CHUNK.c.bytes)
                    .where(
                        PATCH_CHUNK.c.log == self.log, PATCH_CHUNK.c.body == self.body, PATCH_CHUNK.c.number > number
                    )
                    .order_by(PATCH_CHUNK.c.number)
                    .limit(1)
                ).first()
            if row is None:
                return
            number = row.number
            yield row.bytes


def logged_patches(database: Database, log: int, versions: range) -> Iterator[LoggedPatch]:
    """Yield the patches that are there of these versions. Chunks that are not there are missing."""
    after, last = versions.start - 1, versions.stop - 1
    while after < last:
        with database.reading() as connection:
            rows = connection.execute(
                select(PATCH)
                .where(PATCH.c.log == log, PATCH.c.version > after, PATCH.c.version <= last)
                .order_by(PATCH.c.version)
                .limit(_MOST_PATCHES)
            ).all()
        if not rows:
            return
        for group in _grouped(rows):
            if group[0].bytes > _MOST_BYTES:
                yield LoggedPatch(record_of(group[0]), StoredBody(database, log, group[0].body))
            else:
                yield from _fetched(database, log, group)
        after = rows[-1].version


def _grouped(rows: Iterable[AnyRow]) -> Iterator[list[AnyRow]]:
    """Cut into groups whose bytes may be in memory together; a row of more bytes than that is a group of its own."""
    group: list[AnyRow] = []
    size = 0
    for row in rows:
        if group and size + row.bytes > _MOST_BYTES:
            yield group
            group, size = [], 0
        group.append(row)
        size += row.bytes
    if group:
        yield group


def _fetched(database: Database, log: int, group: list[AnyRow]) -> Iterator[LoggedPatch]:
    chunks: dict[int, list[bytes]] = {row.version: [] for row in group}
    with database.reading() as connection:
        rows = connection.execute(
            select(PATCH.c.version, PATCH_CHUNK.c.bytes)
            .join(PATCH_CHUNK, and_(PATCH_CHUNK.c.log == PATCH.c.log, PATCH_CHUNK.c.body == PATCH.c.body))
            .where(PATCH.c.log == log, PATCH.c.version >= group[0].version, PATCH.c.version <= group[-1].version)
            .order_by(PATCH.c.version, PATCH_CHUNK.c.number)
        )
        for version, data in rows:
            chunks[version].append(data)
    for row in group:
        yield LoggedPatch(record_of(row), tuple(chunks[row.version]))
