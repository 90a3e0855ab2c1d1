"""Logs in memory: for examples, for tests, and for what need not survive its process."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import RLock
from typing import Any, Final

from patchlog.codec.ingest import IngestedPatch, header_frame
from patchlog.codec.options import Limits
from patchlog.codec.patch_ids import PatchId, parse_patch_id
from patchlog.errors import LogAlreadyExists, LogNotFound, PositionGone
from patchlog.log.consumers import check_truncation, default_truncation
from patchlog.log.contract import PatchFormat, PreparedAppend, Told, Upload
from patchlog.log.memory_consumers import MemoryConsumers
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
    time_of,
)
from patchlog.log.reservation import RESERVED_MS, PlaceReserved, Reserved, Steps, patiently, place
from patchlog.log.snapshots.files import MemoryFiles
from patchlog.log.snapshots.memory_index import KnownSnapshots, MemorySnapshotIndex
from patchlog.log.snapshots.store import LocalSnapshots
from patchlog.log.staging import StagedPatch, Staging
from patchlog.log.succession import (
    LoggedContent,
    answer_again,
    answer_for,
    check_expected_head,
    check_head,
    head_after,
    last_version,
    next_records,
    verify_chain,
)
from patchlog.log.upload import DEFAULT_LIMITS, LocalUpload, WholeUploads, append_all
from patchlog.log.wakeups import Wakeups

__all__ = ["MemoryLogStore", "MemoryPatchLog"]


@dataclass(slots=True)
class _Log:
    id: str
    options: LogOptions
    created: str
    records: list[PatchRecord] = field(default_factory=list)
    chunks: list[list[bytes]] = field(default_factory=list)
    """Of each record; empty where they were forgotten."""
    versions: dict[PatchId, int] = field(default_factory=dict)
    first_version: int = 1
    consumers: dict[str, tuple[int, int, str | None]] = field(default_factory=dict)
    """Their places, and when they came there."""
    snapshots: KnownSnapshots = field(default_factory=KnownSnapshots)
    reserved: tuple[Staging, float] | None = None
    """The upload that has the next place, and until when."""

    @property
    def head(self) -> Head:
        return head_after(self.records[-1]) if self.records else EMPTY_HEAD

    def hash_at(self, version: int) -> bytes:
        return self.records[version - 1].chain_hash


class MemoryLogStore:
    """A set of logs in memory."""

    def __init__(self, *, limits: Limits = DEFAULT_LIMITS) -> None:
        self.limits: Final = limits
        self.lock: Final = RLock()
        self.wakeups: Final = Wakeups()
        self.files: Final = MemoryFiles()
        self._logs: dict[str, _Log] = {}

    def create(self, name: str, options: LogOptions = LogOptions()) -> LogDescription:  # noqa: B008  it is frozen
        """Create an empty log."""
        check_log_name(name)
        with self.lock:
            if name in self._logs:
                raise LogAlreadyExists(f"there is a log {name!r} already")
            if any(log.id == id_in(name) for log in self._logs.values()):
                raise name_is_id(name)
            self._logs[name] = _Log(str(uuid.uuid4()), options, _now())
            return self.log(name).describe()

    def log(self, name: str) -> MemoryPatchLog:
        """The log of that name, whether it is there or not."""
        return MemoryPatchLog(self, check_log_name(name))

    def submit(self, appends: Sequence[PreparedAppend], told: Told) -> None:
        """Append what was prepared for logs of this store, and tell it at once."""
        prepared: Any = appends
        told([append.outcome() for append in prepared])

    def list(self, *, after: str = "", limit: int | None = None) -> list[LogDescription]:
        """Describe the logs, in the order of their names."""
        with self.lock:
            names = sorted(name for name in self._logs if name > after)
            return [self.log(name).describe() for name in names[:limit]]

    def delete(self, name: str) -> None:
        """Delete a log and all of its patches."""
        self.begin_delete(name)

    def sweep(self, meanwhile: Callable[[int], object] | None = None) -> None:
        """A log that was deleted leaves nothing."""

    def begin_delete(self, name: str, expected_head: ExpectedHead = ANY_HEAD) -> None:
        """Delete a log and all of its patches, which takes no time."""
        with self.lock:
            check_head(expected_head, self.found(name).head)
            for filed in self.found(name).snapshots.there.values():
                self.files.delete(filed.location)
            del self._logs[name]
        self.wakeups.announce(name)

    def head_versions(self, names: Collection[str]) -> Mapping[str, int]:
        """The version of the head of each of these logs that is there."""
        with self.lock:
            return {name: self._logs[name].head.version for name in names if name in self._logs}

    def listen(self) -> None:
        """No other process appends."""

    def close(self) -> None:
        """Nothing is held open."""

    def found(self, name: str) -> _Log:
        """The log of that name, to be touched under the lock."""
        try:
            return self._logs[name]
        except KeyError:
            raise LogNotFound(f"there is no log {name!r}") from None


class MemoryPatchLog:
    """One log in memory."""

    def __init__(self, store: MemoryLogStore, name: str) -> None:
        self._store = store
        self._name = name

    @property
    def name(self) -> str:
        """The name of the log."""
        return self._name

    def describe(self) -> LogDescription:
        """Describe the log as it stands."""
        with self._store.lock:
            log = self._store.found(self._name)
            kept = log.records[log.first_version - 1 :]
            return LogDescription(
                name=self._name,
                id=log.id,
                options=log.options,
                created=log.created,
                head=log.head,
                first_version=log.first_version,
                operations=sum(record.operations for record in kept),
                bytes=sum(record.bytes for record in kept),
            )

    def head(self) -> Head:
        """The last patch."""
        with self._store.lock:
            return self._store.found(self._name).head

    def stage(self, format: PatchFormat = "jelly-patch") -> LocalUpload:
        """Begin an upload."""
        with self._store.lock:
            options = self._store.found(self._name).options
        return LocalUpload(format, options.patch_options, partial(self._place, options), limits=self._store.limits)

    def prepare(self, data: bytes, format: PatchFormat = "jelly-patch") -> MemoryAppend | None:
        """Check an upload that came whole."""
        with self._store.lock:
            options = self._store.found(self._name).options
        staging = WholeUploads(options.patch_options, self._store.limits).stage(data, format)
        return None if staging is None else MemoryAppend(staging, partial(self._place_small, options))

    def append(
        self,
        chunks: Iterable[bytes],
        *,
        format: PatchFormat = "jelly-patch",
        expected_head: ExpectedHead = ANY_HEAD,
    ) -> Appended:
        """Append the patches of a stream, all or none."""
        upload: Upload = self.stage(format)
        return append_all(upload, chunks, expected_head)

    def position(self, version: int | None = None) -> Position:
        """Return the position at a version, or at the head."""
        with self._store.lock:
            log = self._store.found(self._name)
            return position_at(version, log.id, log.head, log.hash_at)

    def check(self, position: Position) -> None:
        """Raise HistoryMismatch where this log does not have the history of the position."""
        with self._store.lock:
            log = self._store.found(self._name)
            check_position(position, self._name, log.id, log.head, log.hash_at)

    def read(self, after: After = 0, *, limit: int | None = None, until: int | None = None) -> Iterator[LoggedPatch]:
        """Yield the patches after a version."""
        position = as_position(after)
        with self._store.lock:
            log = self._store.found(self._name)
            check_position(position, self._name, log.id, log.head, log.hash_at)
            last = last_version(log.head.version, position.version, limit, until)
            self._check_kept(position.version + 1, last)
        return self._read(log.id, range(position.version + 1, last + 1))

    def read_stored(self, after: After = 0, *, until: int | None = None) -> Iterator[bytes]:
        """Yield the bytes of the patches after a version."""
        return in_pieces(chunk for logged in self.read(after, until=until) for chunk in logged.chunks)

    def _read(self, log_id: str, versions: range) -> Iterator[LoggedPatch]:
        for version in versions:
            with self._store.lock:
                log = self._check_kept(version, version)
                if log.id != log_id:
                    raise LogNotFound(f"the log {self._name!r} was replaced by another one while it was read")
                logged = LoggedPatch(log.records[version - 1], tuple(log.chunks[version - 1]))
            yield logged

    def _check_kept(self, first: int, last: int) -> _Log:
        with self._store.lock:
            log = self._store.found(self._name)
            if first <= last and first < log.first_version:
                raise PositionGone(first, log.first_version)
            return log

    def find(self, patch: PatchId | int) -> PatchRecord | None:
        """What is known of a patch by its id or version."""
        with self._store.lock:
            log = self._store.found(self._name)
            version = log.versions.get(parse_patch_id(patch), 0) if isinstance(patch, str) else patch
            return log.records[version - 1] if 0 < version <= len(log.records) else None

    def has_deletes(self, after: int, until: int) -> bool:
        """Whether a patch after a version, until another, deletes statements."""
        with self._store.lock:
            return any(record.deletes for record in self._store.found(self._name).records[after:until])

    def verify(self, *, meanwhile: Callable[[int], object] | None = None) -> Verification:
        """Compute all hashes anew."""
        with self._store.lock:
            log = self._store.found(self._name)
            first = log.first_version
            before = head_after(log.records[first - 2]) if first > 1 else EMPTY_HEAD
            options = log.options.patch_options
            kept = list(zip(log.records[first - 1 :], log.chunks[first - 1 :], strict=True))
            head = log.head
        contents = (
            LoggedContent(record, header_frame(record.id, record.prev, options), chunks) for record, chunks in kept
        )
        return verify_chain(contents, before, head, meanwhile)

    def truncate_before(
        self,
        version: int | None = None,
        *,
        force: bool = False,
        meanwhile: Callable[[int], object] | None = None,  # noqa: ARG002  it takes no time
    ) -> LogDescription:
        """Forget the bytes of all patches below a version."""
        with self._store.lock:
            log = self._store.found(self._name)
            places = [(name, place) for name, (place, _, _) in log.consumers.items()]
            if version is None:
                version = default_truncation(places, log.snapshots.there)
            first = max(log.first_version, min(version, log.head.version + 1))
            check_truncation(first, log.first_version, places, log.snapshots.there, force=force)
            for index in range(log.first_version - 1, first - 1):
                log.chunks[index] = []
            log.first_version = first
            return self.describe()

    @property
    def consumers(self) -> MemoryConsumers:
        """How far those who follow the log have read."""
        return MemoryConsumers(self._name, self._store.lock, lambda: self._store.found(self._name))

    @property
    def snapshots(self) -> LocalSnapshots:
        """The whole dataset at some versions."""
        index = MemorySnapshotIndex(self._store.lock, lambda: self._store.found(self._name))
        return LocalSnapshots(self, index, self._store.files, limits=self._store.limits)

    def wait_for(self, version: int, timeout_seconds: float) -> Head:
        """Return the head once it has reached a version, or as it is when the time is up."""
        deadline = time.monotonic() + timeout_seconds
        while True:
            ticket = self._store.wakeups.ticket(self._name)
            head = self.head()
            left = deadline - time.monotonic()
            if head.version >= version or left <= 0:
                return head
            self._store.wakeups.wait(self._name, ticket, left)

    def _place(self, options: LogOptions, staging: Staging, expected_head: ExpectedHead) -> Steps[Appended]:
        """Append, however large it is, and whoever has the next place."""
        append = _MemoryPlace(self, options, staging, expected_head)
        return place(staging, append) if staging.is_large else patiently(append.append_small)

    def _place_small(self, options: LogOptions, staging: Staging, expected_head: ExpectedHead) -> Appended:
        """Append what is small, at once. Raises PlaceReserved."""
        return _MemoryPlace(self, options, staging, expected_head).append_small()

    def found_for(self, options: LogOptions) -> _Log:
        """The log, if it is still one with these options. To be touched under the lock."""
        log = self._store.found(self._name)
        if log.options != options:
            raise LogNotFound(f"the log {self._name!r} was replaced by another one during an upload to it")
        return log

    @property
    def store(self) -> MemoryLogStore:
        """The store that it is in."""
        return self._store


class _MemoryPlace:
    """A `Place` for an upload."""

    def __init__(self, log: MemoryPatchLog, options: LogOptions, staging: Staging, expected_head: ExpectedHead) -> None:
        self._log = log
        self._options = options
        self._staging = staging
        self._expected_head = expected_head

    def head_id(self) -> PatchId | None:
        return self._log.head().id

    def append_small(self) -> Appended:
        """Append what is hashed in a moment. Raises PlaceReserved."""
        with self._log.store.lock:
            log = self._log.found_for(self._options)
            if answer := self._answer_or_check(log):
                return answer
            return self._write(log, self._staging.first_content_hash(log.head.id))

    def append(self, hashes: Mapping[PatchId | None, bytes]) -> Appended | None:
        with self._log.store.lock:
            log = self._log.found_for(self._options)
            if answer := self._answer_or_check(log):
                return answer
            content_hash = hashes.get(log.head.id)
            return None if content_hash is None else self._write(log, content_hash)

    def reserve(self) -> Reserved | Appended:
        with self._log.store.lock:
            log = self._log.found_for(self._options)
            if answer := self._answer_or_check(log):
                return answer
            log.reserved = self._staging, time.monotonic() + RESERVED_MS / 1000
            return Reserved(log.head.id)

    def release(self) -> None:
        with self._log.store.lock:
            log = self._log.found_for(self._options)
            if log.reserved is not None and log.reserved[0] is self._staging:
                log.reserved = None

    def _answer_or_check(self, log: _Log) -> Appended | None:
        """The answer to a retry; else all that may be refused is refused here."""
        staging = self._staging
        known = {
            patch.id: log.records[log.versions[patch.id] - 1] for patch in staging.patches if patch.id in log.versions
        }
        if answer := answer_again(staging.patches, known):
            return answer
        check_expected_head(staging.patches, self._expected_head, log.head)
        if log.reserved is not None and log.reserved[0] is not staging and log.reserved[1] > time.monotonic():
            raise PlaceReserved
        return None

    def _write(self, log: _Log, content_hash: bytes) -> Appended:
        staging = self._staging
        first_header = staging.first_header(log.head.id)
        records = next_records(staging, log.head, content_hash, _now())
        log.records += records
        log.chunks += (_stored(patch, first_header) for patch in staging.patches)
        log.versions |= {record.id: record.version for record in records}
        log.reserved = None
        self._log.store.wakeups.announce(self._log.name)
        return answer_for(records)


@dataclass(slots=True)
class MemoryAppend:
    """A `PreparedAppend`."""

    staging: Staging
    place: Callable[[Staging, ExpectedHead], Appended]
    expected_head: ExpectedHead = ANY_HEAD

    @property
    def patches(self) -> Sequence[IngestedPatch]:
        """What is known of the patches."""
        return self.staging.ingested

    @property
    def size(self) -> int:
        """Bytes of the patches."""
        return self.staging.held_bytes

    def outcome(self) -> Appended | BaseException:
        """Append, and return what came of it."""
        try:
            return self.place(self.staging, self.expected_head)
        except Exception as error:  # noqa: BLE001  those before it are in the log, whatever it is
            return error


def _stored(patch: StagedPatch, first_header: bytes) -> list[bytes]:
    return patch.chunks if patch.content_hash else [first_header, *patch.chunks]


def _now() -> str:
    return time_of(time.time_ns() // 1_000_000)
