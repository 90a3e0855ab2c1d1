"""What is known of the snapshots of a log in a database. All changes are made under the lock of the log."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection, and_, delete, insert, select, update

from patchlog.errors import LogNotFound
from patchlog.log.batch import Batch
from patchlog.log.database import Database
from patchlog.log.records import EMPTY_HEAD, Snapshot, SnapshotBuild, time_of
from patchlog.log.rows import AnyRow, id_text, now_ms, options_of
from patchlog.log.snapshots.index import (
    DEAD_MS,
    Begun,
    Filed,
    LogState,
    check_begin,
    check_complete,
    check_delete,
    lost,
)
from patchlog.log.snapshots.writing import Written
from patchlog.log.tables import LOG, PATCH, SNAPSHOT, SNAPSHOT_BUILD, SNAPSHOT_TRASH
from patchlog.log.writer import Job, Writer

__all__ = ["SqlSnapshotIndex", "throw_files_away"]

_FORMAT_VERSION: Final = Snapshot.__dataclass_fields__["format_version"].default


class SqlSnapshotIndex:
    """The snapshots of one log."""

    def __init__(self, database: Database, writer: Writer, log: str, place: Callable[[str], str]) -> None:
        self._database = database
        self._writer = writer
        self._log = log
        self._place = place

    def list(self) -> list[Filed]:
        """All that are complete, by version."""
        with self._database.reading() as connection:
            found = list(connection.execute(_filed().where(LOG.c.name == self._log)))
        if not found:
            raise LogNotFound(f"there is no log {self._log!r}")
        return [_filed_of(row) for row in found if row.version is not None]

    def pending(self) -> SnapshotBuild | None:
        """The one that is being made, or the last that could not be made."""
        with self._database.reading() as connection:
            row = connection.execute(
                select(LOG.c.key, SNAPSHOT_BUILD)
                .select_from(LOG.outerjoin(SNAPSHOT_BUILD, SNAPSHOT_BUILD.c.log == LOG.c.key))
                .where(LOG.c.name == self._log)
            ).first()
        if row is None:
            raise LogNotFound(f"there is no log {self._log!r}")
        if row.version is None:
            return None
        if row.error is None and _is_dead(row):
            return SnapshotBuild(row.version, "the process that made it has ended")
        return SnapshotBuild(row.version, row.error)

    def begin(self, version: int | None, *, is_given: bool = False) -> Begun | Filed:
        """Begin a snapshot."""

        def run(batch: Batch) -> Begun | Filed:
            key, log, connection = _locked(batch, self._log)
            wanted = log.head_version if version is None else version
            build = connection.execute(select(SNAPSHOT_BUILD).where(SNAPSHOT_BUILD.c.log == key)).first()
            is_busy = build is not None and build.error is None and not _is_dead(build)
            there = _there(connection, key)
            busy = build.version if build is not None and is_busy else None
            same, base = check_begin(log, wanted, there, busy, is_given=is_given)
            if same is not None:
                return same
            if build is not None:
                _throw_away(connection, [build.location])
                connection.execute(delete(SNAPSHOT_BUILD).where(SNAPSHOT_BUILD.c.log == key))
            owner = uuid.uuid4()
            location = self._place(f"{log.id}/{wanted}-{owner.hex[:8]}.jelly")
            connection.execute(
                insert(SNAPSHOT_BUILD).values(
                    log=key, owner=owner.bytes, version=wanted, location=location, seen_ms=batch.now_ms, error=None
                )
            )
            return Begun(wanted, owner.bytes, location, log.options, base)

        return self._writer.do(Job(run, self._log))

    def renew(self, begun: Begun) -> None:
        """Say that it is still being made."""
        self._change(begun, seen_ms=now_ms())

    def complete(self, begun: Begun, written: Written) -> Snapshot:
        """Its file is durable."""

        def run(batch: Batch) -> Snapshot:
            key, log, connection = _locked(batch, self._log)
            check_complete(log, begun.version)
            mine = (SNAPSHOT_BUILD.c.log == key) & (SNAPSHOT_BUILD.c.owner == begun.owner)
            if connection.execute(delete(SNAPSHOT_BUILD).where(mine)).rowcount == 0:
                raise lost(begun.version)
            connection.execute(
                insert(SNAPSHOT).values(
                    log=key,
                    version=begun.version,
                    location=begun.location,
                    bytes=written.bytes,
                    sha256=written.sha256,
                    quads=written.quads,
                    namespaces=written.namespaces,
                    created_ms=batch.now_ms,
                    format_version=_FORMAT_VERSION,
                )
            )
            return next(filed for filed in _there(connection, key) if filed.location == begun.location).snapshot

        return self._writer.do(Job(run, self._log))

    def fail(self, begun: Begun, reason: str) -> None:
        """It could not be made."""
        self._change(begun, error=reason)

    def remove(self, version: int) -> None:
        """Forget a snapshot, and put its file in the trash."""

        def run(batch: Batch) -> None:
            key, log, connection = _locked(batch, self._log)
            gone = check_delete(log, version, _there(connection, key))
            connection.execute(delete(SNAPSHOT).where(SNAPSHOT.c.log == key, SNAPSHOT.c.version == version))
            _throw_away(connection, [gone.location])

        self._writer.do(Job(run, self._log))

    def trash(self) -> Sequence[str]:
        """The files that are to be deleted, of all logs."""
        with self._database.reading() as connection:
            return list(connection.execute(select(SNAPSHOT_TRASH.c.location)).scalars())

    def emptied(self, locations: Sequence[str]) -> None:
        """These files were deleted."""

        def run(batch: Batch) -> None:
            location = SNAPSHOT_TRASH.c.location
            # What another process takes out at this moment is left to it: who empties the trash waits for nobody.
            mine = select(location).where(location.in_(locations)).with_for_update(skip_locked=True)
            batch.connection.execute(delete(SNAPSHOT_TRASH).where(location.in_(mine)))

        self._writer.do(Job(run))

    def _change(self, begun: Begun, **values: Any) -> None:
        def run(batch: Batch) -> None:
            key = batch.log(self._log).key
            mine = (SNAPSHOT_BUILD.c.log == key) & (SNAPSHOT_BUILD.c.owner == begun.owner)
            if batch.connection.execute(update(SNAPSHOT_BUILD).where(mine).values(**values)).rowcount == 0:
                raise lost(begun.version)

        self._writer.do(Job(run, self._log))


def throw_files_away(batch: Batch, log: str) -> None:
    """Put the files of all snapshots of a log, which is about to be deleted, in the trash."""
    key = batch.log(log).key
    connection = batch.connection
    for table in (SNAPSHOT, SNAPSHOT_BUILD):
        _throw_away(connection, connection.execute(select(table.c.location).where(table.c.log == key)).scalars().all())


def _throw_away(connection: Connection, locations: Sequence[str]) -> None:
    known = set(connection.execute(select(SNAPSHOT_TRASH.c.location)).scalars())
    if new := [{"location": location} for location in locations if location not in known]:
        connection.execute(insert(SNAPSHOT_TRASH), new)


def _locked(batch: Batch, name: str) -> tuple[int, LogState, Connection]:
    key = batch.log(name).key
    connection = batch.connection
    row = connection.execute(select(LOG).where(LOG.c.key == key)).one()
    return key, LogState(str(UUID(bytes=row.id)), options_of(row), row.head_version, row.first_version), connection


def _there(connection: Connection, key: int) -> list[Filed]:
    rows = connection.execute(_filed().where(LOG.c.key == key))
    return [_filed_of(row) for row in rows if row.version is not None]


def _filed() -> Any:
    """One row a snapshot; a log that has none is a row without a version."""
    return (
        select(SNAPSHOT, PATCH.c.id.label("patch_id"), PATCH.c.chain_hash, LOG.c.id.label("log_id"))
        .select_from(
            LOG.outerjoin(SNAPSHOT, SNAPSHOT.c.log == LOG.c.key).outerjoin(
                PATCH, and_(PATCH.c.log == LOG.c.key, PATCH.c.version == SNAPSHOT.c.version)
            )
        )
        .order_by(SNAPSHOT.c.version)
    )


def _filed_of(row: AnyRow) -> Filed:
    snapshot = Snapshot(
        version=row.version,
        id=id_text(row.patch_id),
        sha256=row.sha256,
        bytes=row.bytes,
        quads=row.quads,
        namespaces=row.namespaces,
        created=time_of(row.created_ms),
        log_id=str(UUID(bytes=row.log_id)),
        hash=EMPTY_HEAD.hash if row.chain_hash is None else row.chain_hash,
        format_version=row.format_version,
    )
    return Filed(snapshot, row.location)


def _is_dead(build: AnyRow) -> bool:
    return bool(now_ms() - build.seen_ms > DEAD_MS)
