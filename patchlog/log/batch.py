"""One transaction for many appends: what all need is asked for at once, and what all write is written at the end.

Within a batch an append sees those before it. An append that is refused has written nothing, so the others go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final
from uuid import UUID
from zlib import crc32

from sqlalchemy import Connection, bindparam, delete, select, update

from patchlog.codec.patch_ids import PatchId
from patchlog.errors import LogNotFound
from patchlog.log.driver import DriverStatement, Rows, execute, insert_rows, marks
from patchlog.log.records import Appended, Head, LogOptions, PatchRecord, time_of
from patchlog.log.rows import head_of, id_bytes, id_text, now_ms, options_of, patch_row
from patchlog.log.staging import StagedPatch
from patchlog.log.succession import KnownPatch, head_after
from patchlog.log.tables import LOG, PATCH, PATCH_CHUNK, STAGE, body_of_stage

__all__ = ["Batch", "Hold", "LockedLog"]

_MOST_ROWS: Final = 1000
"""That wait to be written."""
_MOST_IDS: Final = 1000
"""In one query; SQLite allows 32,766 parameters."""


class Hold(IntEnum):
    """How firmly a transaction holds a log. What is stronger holds off what is weaker, except that the first two agree.

    All logs of a batch are locked when it begins, in one order, so that no two processes wait for each other.
    """

    PRESENCE = 1
    """The log stays where it is: rows that refer to it are added."""
    CHANGE = 2
    """Its head, its consumers and its snapshots change here only."""
    WHOLE = 3
    """It is deleted."""
    NAME = 4
    """Nobody else gives that name to a log, whether there is such a log or not."""


_LOG_NAMED: Final = select(
    LOG.c.key,
    LOG.c.rdf_star,
    LOG.c.generalized_statements,
    LOG.c.head_version,
    LOG.c.head_id,
    LOG.c.head_hash,
    LOG.c.head_ms,
    LOG.c.reserved_by,
    LOG.c.reserved_until_ms,
).where(LOG.c.name == bindparam("wanted"))
_WHOLE: Final = DriverStatement(_LOG_NAMED.with_for_update())
_LOCK_LOG: Final = {
    Hold.PRESENCE: DriverStatement(_LOG_NAMED.with_for_update(read=True, key_share=True)),
    # NO KEY: staged chunks, which refer to the row, need not wait for it.
    Hold.CHANGE: DriverStatement(_LOG_NAMED.with_for_update(key_share=True)),
    Hold.WHOLE: _WHOLE,
    Hold.NAME: _WHOLE,
}
_LOG_AGAIN: Final = DriverStatement(_LOG_NAMED)
_NAMES_LOCK: Final = 0x6E616D65
"""Any number, so long as all processes take the same: the first half of the locks of names."""
# For three ids and more SQLite would walk through the whole log, as it does not know how long that is.
_INDEX_OF_IDS: Final = {"sqlite": "INDEXED BY sqlite_autoindex_patch_2", "postgresql": ""}
_UPDATE_LOG: Final = DriverStatement(
    update(LOG)
    .where(LOG.c.key == bindparam("b_log"))
    .values(
        head_version=bindparam("b_version"),
        head_id=bindparam("b_id"),
        head_hash=bindparam("b_hash"),
        head_ms=bindparam("b_ms"),
        operations=LOG.c.operations + bindparam("more_operations"),
        bytes=LOG.c.bytes + bindparam("more_bytes"),
    )
)


@dataclass(slots=True)
class LockedLog:
    """A log whose row this transaction has locked, with what was appended in the batch."""

    key: int
    name: str
    options: LogOptions
    head: Head
    reserved_by: int | None = None
    """The stage that has the next place, or has had it."""
    reserved_until_ms: int | None = None
    known: dict[PatchId, KnownPatch | PatchRecord] = field(default_factory=dict)
    asked: set[PatchId] = field(default_factory=set)
    operations: int = 0
    bytes: int = 0


class Batch:
    """The writes of one transaction."""

    def __init__(self, connection: Connection) -> None:
        self.changed: set[str] = set()
        """The logs that those who wait for them have to look at."""
        self.now_ms: Final = now_ms()
        self.time: Final = time_of(self.now_ms)
        self._connection = connection
        self._holds: dict[str, Hold] = {}
        self._there: set[str] = set()
        """The logs that are held and there."""
        self._logs: dict[str, LockedLog] = {}
        self._patches: list[tuple[object, ...]] = []
        self._chunks: list[tuple[object, ...]] = []

    @property
    def connection(self) -> Connection:
        """The connection, to be written to directly. What waited is written first, and the logs are asked for anew."""
        self.flush()
        self._logs.clear()
        return self._connection

    def lock(self, wanted: Mapping[str, Hold]) -> None:
        """Lock all logs that the writes of the batch will ask for, in an order that is the same in all processes.

        Once a batch, before anything is written: a lock that is taken later could close a circle of processes that wait
        for each other.
        """
        assert not self._holds, "the logs of a batch are locked once, when it begins"
        self._holds = dict(wanted)
        if self._connection.dialect.name == "postgresql":  # SQLite has one writer at a time
            new = (_name_key(name) for name, hold in wanted.items() if hold is Hold.NAME)
            for key in sorted(set(new)):
                execute(self._connection, "SELECT pg_advisory_xact_lock(%s, %s)", (_NAMES_LOCK, key))
        for name in sorted(wanted):
            self._found(name, _LOCK_LOG[wanted[name]])

    def made(self, name: str) -> None:
        """Say that a log, whose name is held, was created in the batch."""
        assert self._holds.get(name) is Hold.NAME, f"the name of the log {name!r} is not held"
        self._there.add(name)

    def _found(self, name: str, statement: DriverStatement) -> None:
        for row in statement.rows(self._connection, {"wanted": name}):
            self._there.add(name)
            log = LockedLog(row.key, name, options_of(row), head_of(row), row.reserved_by, row.reserved_until_ms)
            self._logs[name] = log

    def locked(self) -> Iterable[LockedLog]:
        """The logs that are locked."""
        return self._logs.values()

    def log(self, name: str, hold: Hold = Hold.CHANGE) -> LockedLog:
        """A log that the write has said it would ask for. Raises LogNotFound."""
        held = self._holds.get(name)
        assert held is not None, f"a write asks for the log {name!r} and has not said so: it is not locked"
        assert held >= hold, f"a write asks for {hold.name} of the log {name!r} and has said {held.name}"
        if name not in self._logs and name in self._there:
            self._found(name, _LOG_AGAIN)
        try:
            return self._logs[name]
        except KeyError:
            raise LogNotFound(f"there is no log {name!r}") from None

    def ask(self, log: LockedLog, ids: Iterable[PatchId]) -> None:
        """Find out which of the ids the log has."""
        unknown = sorted(set(ids) - log.asked)
        log.asked |= set(unknown)
        for start in range(0, len(unknown), _MOST_IDS):
            some = [id_bytes(patch_id) for patch_id in unknown[start : start + _MOST_IDS]]
            for id, version, prev, body_hash, size, operations in self._known(log, some):
                log.known[str(UUID(bytes=id))] = KnownPatch(version, id_text(prev), body_hash, size, operations)

    def _known(self, log: LockedLog, ids: Sequence[bytes]) -> Rows:
        connection = self._connection
        hint = _INDEX_OF_IDS[connection.dialect.name]
        one, all_of_them = marks(connection, 1), marks(connection, len(ids))
        text = (
            f"SELECT id, version, prev, body_hash, bytes, operations FROM patch {hint} "  # noqa: S608 - constants
            f"WHERE log = {one} AND id IN ({all_of_them})"
        )
        return execute(connection, text, (log.key, *ids))

    def known(self, log: LockedLog, ids: Sequence[PatchId]) -> Mapping[PatchId, KnownPatch | PatchRecord]:
        """Those of the ids that the log has."""
        if not log.asked.issuperset(ids):
            self.ask(log, ids)
        return {patch_id: log.known[patch_id] for patch_id in ids if patch_id in log.known}

    def add(
        self,
        log: LockedLog,
        patches: Sequence[StagedPatch],
        records: Iterable[PatchRecord],
        first_header: bytes,
        stage: int | None,
    ) -> Appended:
        """Append patches with the records that they are to have. The bodies of those in a spool are in that stage."""
        before, operations, size = log.head.version, log.operations, log.bytes
        for patch, record in zip(patches, records, strict=True):
            body = self._add_chunks(log, patch, record.version, first_header, stage)
            self._patches.append(patch_row(log.key, record, self.now_ms, body))
            log.known[record.id] = record
            log.operations += record.operations
            log.bytes += record.bytes
            log.head = head_after(record)
            if len(self._patches) >= _MOST_ROWS:
                self._insert()
        self.changed.add(log.name)
        assert log.head.id is not None
        return Appended(
            first_version=before + 1,
            version=log.head.version,
            id=log.head.id,
            operations=log.operations - operations,
            bytes=log.bytes - size,
        )

    def claim_stage(self, log: LockedLog, stage: int) -> bool:
        """Take the chunks of a stage into their log; False where they are of another log, or are swept away."""
        claimed = delete(STAGE).where(STAGE.c.key == stage, STAGE.c.log == log.key, STAGE.c.begun_ms >= 0)
        return self._connection.execute(claimed).rowcount == 1

    def reserve(self, log: LockedLog, stage: int | None, until_ms: int | None) -> None:
        """Give the next place of a log to a stage for a while; without one, to whoever comes."""
        log.reserved_by, log.reserved_until_ms = stage, until_ms
        values = {"reserved_by": stage, "reserved_until_ms": until_ms}
        self._connection.execute(update(LOG).where(LOG.c.key == log.key).values(**values))

    def flush(self) -> None:
        """Write what waits."""
        self._insert()
        grown = [log for log in self._logs.values() if log.bytes]
        if grown:
            _UPDATE_LOG.do(self._connection, map(self._log_row, grown))
        for log in grown:
            log.operations = log.bytes = 0

    def _insert(self) -> None:
        if self._patches:
            insert_rows(self._connection, PATCH, self._patches)
        if self._chunks:
            insert_rows(self._connection, PATCH_CHUNK, self._chunks)
        self._patches.clear()
        self._chunks.clear()

    def _add_chunks(
        self, log: LockedLog, patch: StagedPatch, version: int, first_header: bytes, stage: int | None
    ) -> int:
        """Add the chunks that are not written yet, and return the body that they have."""
        is_sealed = patch.content_hash is not None
        if patch.spooled:
            assert stage is not None
            body = body_of_stage(stage, patch.ordinal)
            chunks = {} if is_sealed else {0: first_header}
        else:
            body = version
            first, *rest = patch.chunks
            chunks = dict(enumerate([first if is_sealed else first_header + first, *rest], 1))
        self._chunks += ((log.key, body, number, data) for number, data in chunks.items())
        return body

    def _log_row(self, log: LockedLog) -> dict[str, Any]:
        assert log.head.id is not None
        return {
            "b_log": log.key,
            "b_version": log.head.version,
            "b_id": id_bytes(log.head.id),
            "b_hash": log.head.hash,
            "b_ms": self.now_ms,
            "more_operations": log.operations,
            "more_bytes": log.bytes,
        }


def _name_key(name: str) -> int:
    """A number of 32 bits for a name. Names that share one wait for each other."""
    return crc32(name.encode()) - (1 << 31)
