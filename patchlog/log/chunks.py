"""The bytes of patches out of the database, a bounded piece at a time and in short transactions.

A reader may be slow: no connection and no transaction waits for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final

from sqlalchemy import LargeBinary, and_, bindparam, case, cast, func, select

from patchlog.log.database import Database
from patchlog.log.driver import DriverStatement
from patchlog.log.records import LoggedPatch
from patchlog.log.rows import AnyRow, record_of
from patchlog.log.tables import PATCH, PATCH_CHUNK

__all__ = ["StoredBody", "StoredPatches", "logged_patches", "stored_patches"]

_MOST_PATCHES: Final = 500
_MOST_AT_ONCE: Final = 1000
_MOST_BYTES: Final = 1 << 20

_BYTES: Final = cast(PATCH_CHUNK.c.bytes, LargeBinary).label("bytes")
"""What has been tampered with may be text to SQLite, such as the sum of two byte strings: it is read, and found out."""

_OF_VERSIONS: Final = and_(
    PATCH.c.log == bindparam("log"), PATCH.c.version.between(bindparam("first"), bindparam("last"))
)
_SUMS: Final = DriverStatement(
    select(func.count(), func.sum(PATCH.c.bytes), func.sum(case((PATCH.c.body == PATCH.c.version, 0), else_=1))).where(
        _OF_VERSIONS
    )
)
_SIZES: Final = select(PATCH.c.version, PATCH.c.bytes, PATCH.c.body).where(_OF_VERSIONS).order_by(PATCH.c.version)
_RECORDS: Final = DriverStatement(select(PATCH).where(_OF_VERSIONS).order_by(PATCH.c.version))
_CHUNKS: Final = DriverStatement(
    select(PATCH.c.version, _BYTES)
    .join(PATCH_CHUNK, and_(PATCH_CHUNK.c.log == PATCH.c.log, PATCH_CHUNK.c.body == PATCH.c.body))
    .where(_OF_VERSIONS)
    .order_by(PATCH.c.version, PATCH_CHUNK.c.number)
)
_CHUNKS_OF_BODIES: Final = DriverStatement(
    select(_BYTES)
    .where(PATCH_CHUNK.c.log == bindparam("log"), PATCH_CHUNK.c.body.between(bindparam("first"), bindparam("last")))
    .order_by(PATCH_CHUNK.c.body, PATCH_CHUNK.c.number)
)


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
                    select(PATCH_CHUNK.c.number, _BYTES)
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


@dataclass(frozen=True, slots=True)
class StoredPatches:
    """Patches one after the other: `size` bytes, if all chunks are there."""

    versions: range
    size: int
    chunks: Iterable[bytes]


def stored_patches(database: Database, log: int, versions: range) -> Iterator[StoredPatches]:
    """Yield what is there of these versions, in groups whose bytes may be in memory together; a large patch is alone.

    They end before a group in which a version is missing.

    This is how many small patches are had fast: nothing is made of each.
    """
    after, last = versions.start - 1, versions.stop - 1
    while after < last:
        before, until = after, min(last, after + _MOST_AT_ONCE)
        together = _together(database, log, after + 1, until)
        for group in _in_groups(database, log, after + 1, until) if together is None else (together,):
            yield group
            after = group.versions[-1]
        if after == before:
            return


def _together(database: Database, log: int, first: int, last: int) -> StoredPatches | None:
    """Patches as one piece; None where they are too large for that, or not all there."""
    parameters = {"log": log, "first": first, "last": last}
    with database.reading() as connection:
        ((count, size, of_stages),) = _SUMS.rows(connection, parameters)
    if count != last - first + 1 or size > _MOST_BYTES or of_stages:
        return None
    with database.reading() as connection:
        chunks = [row.bytes for row in _CHUNKS_OF_BODIES.rows(connection, parameters)]
    return StoredPatches(range(first, last + 1), size, (b"".join(chunks),))


def _in_groups(database: Database, log: int, first: int, last: int) -> Iterator[StoredPatches]:
    """As `stored_patches`, whatever their sizes."""
    with database.reading() as connection:
        rows = connection.execute(_SIZES, {"log": log, "first": first, "last": last}).all()
    for group in _grouped(rows):
        begin, end = group[0], group[-1]
        of_group = range(begin.version, end.version + 1)
        if len(of_group) != len(group):
            return
        size = sum(row.bytes for row in group)
        if begin.bytes > _MOST_BYTES:
            yield StoredPatches(of_group, size, StoredBody(database, log, begin.body))
        elif all(row.body == row.version for row in group):
            parameters = {"log": log, "first": begin.version, "last": end.version}
            with database.reading() as connection:
                chunks = [row.bytes for row in _CHUNKS_OF_BODIES.rows(connection, parameters)]
            yield StoredPatches(of_group, size, chunks)
        else:
            bodies = (StoredBody(database, log, row.body) for row in group)
            yield StoredPatches(of_group, size, chain.from_iterable(bodies))


def logged_patches(database: Database, log: int, versions: range) -> Iterator[LoggedPatch]:
    """Yield the patches that are there of these versions. Chunks that are not there are missing."""
    after, last = versions.start - 1, versions.stop - 1
    while after < last:
        parameters = {"log": log, "first": after + 1, "last": min(last, after + _MOST_PATCHES)}
        with database.reading() as connection:
            rows = _RECORDS.rows(connection, parameters)
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
    parameters = {"log": log, "first": group[0].version, "last": group[-1].version}
    with database.reading() as connection:
        for version, data in _CHUNKS.rows(connection, parameters):
            chunks[version].append(data)
    for row in group:
        yield LoggedPatch(record_of(row), tuple(chunks[row.version]))
