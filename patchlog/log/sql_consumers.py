"""The consumers of a log in a database. They move under the lock of the log, as truncation does."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from sqlalchemy import Connection, and_, bindparam, delete, select
from sqlalchemy.dialects import postgresql, sqlite

from patchlog.errors import ConsumerNotFound, LogNotFound, StorageError
from patchlog.log.batch import Batch, LockedLog
from patchlog.log.consumers import ANYONE, Mover, check_advance, consumer_of
from patchlog.log.database import Database
from patchlog.log.position import After, Position, as_position, check_position
from patchlog.log.records import EMPTY_HEAD, Consumer, check_consumer_name
from patchlog.log.rows import AnyRow, log_id_of, now_ms
from patchlog.log.tables import CONSUMER, LOG, PATCH
from patchlog.log.writer import Job, Writer

__all__ = ["SqlConsumers"]

# A log without consumers is a row without a name.
_LAST: Final = PATCH.alias("last")
_NEXT: Final = PATCH.alias("next")
_CONSUMERS: Final = (
    select(
        CONSUMER.c.name,
        CONSUMER.c.version,
        CONSUMER.c.updated_ms,
        CONSUMER.c.owner,
        LOG.c.id,
        LOG.c.head_version,
        _LAST.c.chain_hash,
        _NEXT.c.time_ms.label("next_ms"),
    )
    .select_from(
        LOG.outerjoin(CONSUMER, CONSUMER.c.log == LOG.c.key)
        .outerjoin(_LAST, and_(_LAST.c.log == LOG.c.key, _LAST.c.version == CONSUMER.c.version))
        .outerjoin(_NEXT, and_(_NEXT.c.log == LOG.c.key, _NEXT.c.version == CONSUMER.c.version + 1))
    )
    .where(LOG.c.name == bindparam("wanted"))
)


class SqlConsumers:
    """Named positions of one log."""

    def __init__(self, database: Database, writer: Writer, log: str) -> None:
        self._database = database
        self._writer = writer
        self._log = log

    def list(self) -> list[Consumer]:
        """All consumers, by name."""
        found = (_consumer(row) for row in _rows(self._database, self._log) if row.name is not None)
        return sorted(found, key=lambda consumer: consumer.name)

    def find(self, name: str) -> Consumer | None:
        """The consumer of that name."""
        check_consumer_name(name)
        return next((consumer for consumer in self.list() if consumer.name == name), None)

    def advance(self, name: str, version: After, *, force: bool = False, mover: Mover = ANYONE) -> Consumer:
        """Say that all patches up to a version were read."""
        check_consumer_name(name)
        position = as_position(version)
        insert = sqlite.insert if self._database.is_sqlite else postgresql.insert

        def run(batch: Batch) -> Consumer:
            log = batch.log(self._log)
            connection = batch.connection
            _check(position, self._log, log, connection)
            version = position.version
            before = connection.execute(
                select(CONSUMER.c.version, CONSUMER.c.owner).where(CONSUMER.c.log == log.key, CONSUMER.c.name == name)
            ).first()
            owner = mover.owner if before is None else mover.owner_after_advance(name, before.owner, force=force)
            check_advance(name, before and before.version, version, log.head.version, force=force)
            place = {"version": version, "updated_ms": batch.now_ms, "owner": owner}
            connection.execute(
                insert(CONSUMER)
                .values(log=log.key, name=name, **place)
                .on_conflict_do_update(index_elements=[CONSUMER.c.log, CONSUMER.c.name], set_=place)
            )
            row = connection.execute(_CONSUMERS.where(CONSUMER.c.name == name), {"wanted": self._log}).one()
            return _consumer(row)

        return self._writer.do(Job(run, self._log))

    def forget(self, name: str, *, mover: Mover = ANYONE) -> None:
        """The consumer reads no more."""
        check_consumer_name(name)

        def run(batch: Batch) -> None:
            log = batch.log(self._log)
            is_it = and_(CONSUMER.c.log == log.key, CONSUMER.c.name == name)
            found = batch.connection.execute(select(CONSUMER.c.owner).where(is_it)).first()
            if found is None:
                raise ConsumerNotFound(f"there is no consumer {name!r}")
            mover.check_forget(name, found.owner)
            batch.connection.execute(delete(CONSUMER).where(is_it))

        self._writer.do(Job(run, self._log))


def _rows(database: Database, log: str) -> list[AnyRow]:
    with database.reading() as connection:
        rows = list(connection.execute(_CONSUMERS, {"wanted": log}))
    if not rows:
        raise LogNotFound(f"there is no log {log!r}")
    return rows


def _check(position: Position, name: str, log: LockedLog, connection: Connection) -> None:
    def hash_at(version: int) -> bytes:
        found: bytes | None = connection.execute(
            select(PATCH.c.chain_hash).where(PATCH.c.log == log.key, PATCH.c.version == version)
        ).scalar()
        if found is None:
            raise StorageError(f"the record of version {version} is missing: verify the log {name!r}")
        return found

    if position.log_id is not None or position.hash is not None:
        id = connection.execute(select(LOG.c.id).where(LOG.c.key == log.key)).scalar_one()
        check_position(position, name, str(UUID(bytes=id)), log.head, hash_at)


def _consumer(row: AnyRow) -> Consumer:
    return consumer_of(
        row.name,
        row.version,
        row.updated_ms,
        head_version=row.head_version,
        next_ms=row.next_ms,
        now_ms=now_ms(),
        log_id=log_id_of(row),
        hash=EMPTY_HEAD.hash if row.chain_hash is None else row.chain_hash,
        owner=row.owner,
    )
