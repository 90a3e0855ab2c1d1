"""Logs in SQLite or PostgreSQL."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from threading import Lock
from typing import Any, Final

from sqlalchemy import bindparam, select
from sqlalchemy.dialects import postgresql, sqlite

from patchlog.codec.ingest import header_frame
from patchlog.codec.options import Limits
from patchlog.codec.patch_ids import PatchId, parse_patch_id
from patchlog.errors import LogAlreadyExists, LogNotFound, PositionGone, StorageError
from patchlog.log.batch import Batch, Hold
from patchlog.log.chunks import logged_patches, stored_patches
from patchlog.log.contract import PatchFormat, PreparedAppend, Told
from patchlog.log.database import Database
from patchlog.log.driver import DriverStatement
from patchlog.log.listener import Listener
from patchlog.log.migration import check_migrated, migrate
from patchlog.log.pieces import in_pieces
from patchlog.log.position import After, Position, as_position, check_position, position_at
from patchlog.log.records import (
    ANY_HEAD,
    EMPTY_HEAD,
    Appended,
    ExpectedHead,
    Head,
    LogDescription,
    LoggedPatch,
    LogOptions,
    PatchRecord,
    Verification,
    check_log_name,
    id_in,
    name_is_id,
)
from patchlog.log.reservation import Steps
from patchlog.log.rows import AnyRow, description_of, head_of, id_bytes, log_id_of, options_of, record_of
from patchlog.log.snapshots.changes import MEMORY_BYTES
from patchlog.log.snapshots.places import files_for
from patchlog.log.snapshots.sql_index import SqlSnapshotIndex
from patchlog.log.snapshots.store import LocalSnapshots
from patchlog.log.sql_append import StagedAppend
from patchlog.log.sql_consumers import SqlConsumers
from patchlog.log.sql_spool import SqlSpool
from patchlog.log.sql_steps import mark_log_deleted
from patchlog.log.sql_truncate import truncate_some
from patchlog.log.staging import Staging
from patchlog.log.succession import (
    LoggedContent,
    head_after,
    last_version,
    verify_chain,
)
from patchlog.log.sweeper import Sweeper
from patchlog.log.tables import LOG, PATCH
from patchlog.log.upload import DEFAULT_LIMITS, LocalUpload, WholeUploads, append_all
from patchlog.log.wakeups import Wakeups
from patchlog.log.writer import Job, Writer

__all__ = ["SqlLogStore", "SqlPatchLog"]

_LOG_BY_NAME: Final = DriverStatement(select(LOG).where(LOG.c.name == bindparam("wanted")))
_HEAD_VERSIONS: Final = select(LOG.c.name, LOG.c.head_version).where(LOG.c.name.in_(bindparam("names", expanding=True)))

_ANY: Final = "_"
"""The trash of snapshots is that of all logs."""
_MOST_NAMES: Final = 1000
_MOST_LOGS: Final = 1 << 31
_POLL_SECONDS: Final = 1.0
"""How long another process can change a log without being heard of: SQLite tells nobody, and a listener may be down."""


class SqlLogStore:
    """A set of logs in a database. SQLite is migrated when it is opened, PostgreSQL by `migrate` only."""

    def __init__(
        self,
        url: str,
        *,
        limits: Limits = DEFAULT_LIMITS,
        snapshots: str | None = None,
        snapshot_memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        """`snapshots` is the folder, or the URL, where new snapshots go; docs/snapshots.md says what it is else."""
        self.limits: Final = limits
        self.snapshot_memory_bytes: Final = snapshot_memory_bytes
        self.database: Final = _opened(url)
        self.files: Final = files_for(self.database, snapshots)
        self.wakeups: Final = Wakeups()
        self.writer: Final = Writer(self.database, self.wakeups)
        self._options: dict[str, LogOptions] = {}
        self._whole_uploads: dict[LogOptions, WholeUploads] = {}
        """By options, of which there are few: they keep the tables of the codec."""
        self._listening = Lock()
        self._listener: Listener | None = None
        self._sweeper = Sweeper(self.database, self.writer)

    def create(self, name: str, options: LogOptions = LogOptions()) -> LogDescription:  # noqa: B008  it is frozen
        """Create an empty log."""
        check_log_name(name)
        insert = sqlite.insert if self.database.is_sqlite else postgresql.insert

        def run(batch: Batch) -> LogDescription:
            if (id := id_in(name)) is not None:
                is_id = select(LOG.c.key).where(LOG.c.id == id_bytes(id), LOG.c.name != name)
                if batch.connection.execute(is_id).first() is not None:
                    raise name_is_id(name)
            row = batch.connection.execute(
                insert(LOG)
                .values(
                    name=name,
                    id=uuid.uuid4().bytes,
                    rdf_star=options.rdf_star,
                    generalized_statements=options.generalized_statements,
                    created_ms=batch.now_ms,
                    head_version=0,
                    head_hash=EMPTY_HEAD.hash,
                    first_version=1,
                    operations=0,
                    bytes=0,
                )
                .on_conflict_do_nothing()
                .returning(LOG)
            ).first()
            if row is None:
                raise LogAlreadyExists(f"there is a log {name!r} already")
            batch.made(name)
            return description_of(row)

        return self.writer.do(Job(run, name, hold=Hold.NAME))

    def log(self, name: str) -> SqlPatchLog:
        """The log of that name, whether it is there or not."""
        return SqlPatchLog(self, name if name in self._options else check_log_name(name))

    def submit(self, appends: Sequence[PreparedAppend], told: Told) -> None:
        """Append what was prepared for logs of this store, and tell it in the thread that writes."""
        writes: Any = appends
        self.writer.submit(writes, told)

    def list(self, *, after: str = "", limit: int | None = None) -> list[LogDescription]:
        """Describe the logs, in the order of their names."""
        with self.database.reading() as connection:
            # By code points: PostgreSQL would go by the language of the server.
            name = LOG.c.name if self.database.is_sqlite else LOG.c.name.collate("C")
            rows = connection.execute(
                select(LOG)
                .where(name > after, LOG.c.deleted_ms.is_(None))
                .order_by(name)
                .limit(None if limit is None else min(limit, _MOST_LOGS))
            )
            return [description_of(row) for row in rows]

    def delete(self, name: str) -> None:
        """Delete a log and all of its patches."""
        self.begin_delete(name)
        with suppress(StorageError):  # the log is gone, and so will be its rows when there is a next time
            self.sweep()

    def begin_delete(self, name: str, expected_head: ExpectedHead = ANY_HEAD) -> None:
        """Have the log gone, and its name free; `sweep` deletes what it has left."""
        self.writer.do(Job(lambda batch: mark_log_deleted(batch, name, expected_head), name, hold=Hold.WHOLE))
        self.forget(name)

    def sweep(self, meanwhile: Callable[[int], object] | None = None) -> None:
        """Delete what is left of logs that were deleted, and of others that is not needed.

        `meanwhile` is called at each step, with their number so far; what it raises leaves the rest for another time.
        """
        self.log(_ANY).snapshots.sweep()
        self._sweeper.sweep(meanwhile)

    def close(self) -> None:
        """Finish what is being written, and close all connections."""
        self._sweeper.close()
        self.writer.close()
        if self._listener is not None:
            self._listener.close()
        self.database.close()

    def head_versions(self, names: Collection[str]) -> Mapping[str, int]:
        """The version of the head of each of these logs that is there."""
        found: dict[str, int] = {}
        wanted = sorted(names)
        for start in range(0, len(wanted), _MOST_NAMES):
            with self.database.reading() as connection:
                rows = connection.execute(_HEAD_VERSIONS, {"names": wanted[start : start + _MOST_NAMES]})
                found |= {row.name: row.head_version for row in rows}
        return found

    def listen(self) -> None:
        """Hear of appends by other processes from now on."""
        with self._listening:
            if self._listener is None and not self.database.is_sqlite:
                self._listener = Listener(self.database, self.wakeups)

    def row(self, name: str) -> AnyRow:
        """The row of a log."""
        with self.database.reading() as connection:
            rows: list[AnyRow] = _LOG_BY_NAME.rows(connection, {"wanted": name})
        if not rows:
            raise LogNotFound(f"there is no log {name!r}")
        return rows[0]

    def options(self, name: str) -> LogOptions:
        """The options of a log, as they were when they were asked for; who appends compares them under the lock."""
        if name not in self._options:
            self._options[name] = options_of(self.row(name))
        return self._options[name]

    def known_options(self, name: str) -> LogOptions | None:
        """The options of a log that were asked for before."""
        return self._options.get(name)

    def whole_uploads(self, options: LogOptions) -> WholeUploads:
        """What takes uploads to logs with these options that came whole."""
        uploads = self._whole_uploads.get(options)
        if uploads is None:
            uploads = self._whole_uploads[options] = WholeUploads(options.patch_options, self.limits)
        return uploads

    def forget(self, name: str) -> None:
        """Ask for the options of a log anew next time."""
        self._options.pop(name, None)


def _opened(url: str) -> Database:
    database = Database(url)
    try:
        (migrate if database.is_sqlite else check_migrated)(database)
    except BaseException:
        database.close()
        raise
    return database


class SqlPatchLog:
    """One log in a database."""

    def __init__(self, store: SqlLogStore, name: str) -> None:
        self._store = store
        self._name = name

    @property
    def name(self) -> str:
        """The name of the log."""
        return self._name

    def describe(self) -> LogDescription:
        """Describe the log as it stands."""
        return description_of(self._store.row(self._name))

    def head(self) -> Head:
        """The last patch."""
        return head_of(self._store.row(self._name))

    def stage(self, format: PatchFormat = "jelly-patch") -> LocalUpload:
        """Begin an upload."""
        options = self._store.options(self._name)
        spool = SqlSpool(self._store.database, self._store.writer, self._name)

        def place(staging: Staging, expected_head: ExpectedHead) -> Steps[Appended]:
            append = StagedAppend(self._name, options, staging, self._forget_options, spool, expected_head)
            return append.append(self._store.writer, self.head)

        return LocalUpload(format, options.patch_options, place, spool=spool, limits=self._store.limits)

    def prepare(self, data: bytes, format: PatchFormat = "jelly-patch") -> StagedAppend | None:
        """Check an upload that came whole, unless that would mean to wait for the database."""
        options = self._store.known_options(self._name)
        if options is None:
            return None
        staging = self._store.whole_uploads(options).stage(data, format)
        return None if staging is None else StagedAppend(self._name, options, staging, self._forget_options)

    def _forget_options(self) -> None:
        self._store.forget(self._name)

    def append(
        self,
        chunks: Iterable[bytes],
        *,
        format: PatchFormat = "jelly-patch",
        expected_head: ExpectedHead = ANY_HEAD,
    ) -> Appended:
        """Append the patches of a stream, all or none."""
        return append_all(self.stage(format), chunks, expected_head)

    def position(self, version: int | None = None) -> Position:
        """Return the position at a version, or at the head."""
        row = self._store.row(self._name)
        return position_at(version, log_id_of(row), head_of(row), lambda at: self._record_at(row.key, at).chain_hash)

    def check(self, position: Position) -> None:
        """Raise HistoryMismatch where this log does not have the history of the position."""
        self._check(position, self._store.row(self._name))

    def _check(self, position: Position, row: AnyRow) -> None:
        check_position(
            position,
            self._name,
            log_id_of(row),
            head_of(row),
            lambda version: self._record_at(row.key, version).chain_hash,
        )

    def read(self, after: After = 0, *, limit: int | None = None, until: int | None = None) -> Iterator[LoggedPatch]:
        """Yield the patches after a version."""
        return self._read(*self._wanted(after, limit, until))

    def read_stored(self, after: After = 0, *, until: int | None = None) -> Iterator[bytes]:
        """Yield the bytes of the patches after a version."""
        return in_pieces(self._read_stored(*self._wanted(after, None, until)))

    def has_deletes(self, after: int, until: int) -> bool:
        """Whether a patch after a version, until another, deletes statements."""
        row = self._store.row(self._name)
        deletes = select(PATCH.c.version).where(
            PATCH.c.log == row.key, PATCH.c.version > after, PATCH.c.version <= until, PATCH.c.deletes > 0
        )
        with self._store.database.reading() as connection:
            return connection.execute(deletes.limit(1)).first() is not None

    def _wanted(self, after: After, limit: int | None, until: int | None) -> tuple[int, range]:
        """The key of the log, and the versions that a read yields."""
        row = self._store.row(self._name)
        position = as_position(after)
        self._check(position, row)
        version = position.version
        last = last_version(row.head_version, version, limit, until)
        if version < last and version + 1 < row.first_version:
            raise PositionGone(version + 1, row.first_version)
        return row.key, range(version + 1, last + 1)

    def find(self, patch: PatchId | int) -> PatchRecord | None:
        """What is known of a patch by its id or version."""
        row = self._store.row(self._name)
        if isinstance(patch, int):
            return self._record_at(row.key, patch) if 0 < patch <= row.head_version else None
        with self._store.database.reading() as connection:
            found = connection.execute(
                select(PATCH).where(PATCH.c.log == row.key, PATCH.c.id == id_bytes(parse_patch_id(patch)))
            ).first()
        return None if found is None else record_of(found)

    def verify(self, *, meanwhile: Callable[[int], object] | None = None) -> Verification:
        """Compute all hashes anew."""
        while True:
            row = self._store.row(self._name)
            options = options_of(row).patch_options
            before = (
                head_after(self._record_at(row.key, row.first_version - 1)) if row.first_version > 1 else EMPTY_HEAD
            )
            contents = (
                LoggedContent(logged.record, header_frame(logged.record.id, logged.record.prev, options), logged.chunks)
                for logged in logged_patches(
                    self._store.database, row.key, range(row.first_version, row.head_version + 1)
                )
            )
            found = verify_chain(contents, before, head_of(row), meanwhile)
            # What is bad because it was truncated or deleted meanwhile is not bad.
            if found.is_sound or self._same_log(row.key).first_version == row.first_version:
                return found

    def truncate_before(
        self,
        version: int | None = None,
        *,
        force: bool = False,
        meanwhile: Callable[[int], object] | None = None,
    ) -> LogDescription:
        """Forget the bytes of all patches below a version."""
        step = Job(lambda batch: truncate_some(batch, self._name, version, force=force), self._name)
        while (cleared := self._store.writer.do(step)) is not None:
            if meanwhile is not None:
                meanwhile(cleared)
        return self.describe()

    @property
    def consumers(self) -> SqlConsumers:
        """How far those who follow the log have read."""
        return SqlConsumers(self._store.database, self._store.writer, self._name)

    @property
    def snapshots(self) -> LocalSnapshots:
        """The whole dataset at some versions."""
        store = self._store
        index = SqlSnapshotIndex(store.database, store.writer, self._name, store.files.place)
        return LocalSnapshots(self, index, store.files, limits=store.limits, memory_bytes=store.snapshot_memory_bytes)

    def wait_for(self, version: int, timeout_seconds: float) -> Head:
        """Return the head once it has reached a version, or as it is when the time is up."""
        self._store.listen()
        deadline = time.monotonic() + timeout_seconds
        while True:
            ticket = self._store.wakeups.ticket(self._name)
            head = self.head()
            left = deadline - time.monotonic()
            if head.version >= version or left <= 0:
                return head
            self._store.wakeups.wait(self._name, ticket, min(left, _POLL_SECONDS))

    def _read(self, log: int, versions: range) -> Iterator[LoggedPatch]:
        missing = versions.start
        for logged in logged_patches(self._store.database, log, versions):
            if logged.record.version != missing:
                break
            yield LoggedPatch(logged.record, self._complete(log, logged))
            missing += 1
        if missing in versions:
            raise self._not_there(log, missing)

    def _read_stored(self, log: int, versions: range) -> Iterator[bytes]:
        missing = versions.start
        for found in stored_patches(self._store.database, log, versions):
            if found.versions.start != missing:
                break
            left = found.size
            for chunk in found.chunks:
                left -= len(chunk)
                yield chunk
            if left:
                raise self._not_there(log, missing)
            missing = found.versions.stop
        if missing in versions:
            raise self._not_there(log, missing)

    def _complete(self, log: int, logged: LoggedPatch) -> Iterable[bytes]:
        """The chunks, with an error behind them where they are not all there."""
        left = logged.record.bytes
        for chunk in logged.chunks:
            left -= len(chunk)
            yield chunk
        if left:
            raise self._not_there(log, logged.record.version)

    def _same_log(self, log: int) -> AnyRow:
        """The row of the log with that key. Raises LogNotFound where the log was deleted, or is another one by now."""
        row = self._store.row(self._name)
        if row.key != log:
            raise LogNotFound(f"the log {self._name!r} was deleted while it was read; another one has its name")
        return row

    def _not_there(self, log: int, version: int) -> PositionGone | StorageError:
        """Why something of a version is not there. Raises LogNotFound where the log is not there either."""
        first_version = self._same_log(log).first_version
        if version < first_version:
            return PositionGone(version, first_version)
        return StorageError(f"something of version {version} is missing: verify the log {self._name!r}")

    def _record_at(self, log: int, version: int) -> PatchRecord:
        with self._store.database.reading() as connection:
            row = connection.execute(select(PATCH).where(PATCH.c.log == log, PATCH.c.version == version)).first()
        if row is None:  # and records are not truncated
            self._same_log(log)
            raise StorageError(f"the record of version {version} is missing: verify the log {self._name!r}")
        return record_of(row)
