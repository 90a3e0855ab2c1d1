"""What is known of the snapshots of a log in memory."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from patchlog.log.records import EMPTY_HEAD, Head, LogOptions, PatchRecord, Snapshot, SnapshotBuild, time_of
from patchlog.log.snapshots.index import (
    Begun,
    Filed,
    LogState,
    check_begin,
    check_complete,
    check_delete,
    lost,
)
from patchlog.log.snapshots.writing import Written

__all__ = ["KnownSnapshots", "MemorySnapshotIndex", "SnapshotLog"]


@dataclass(slots=True)
class KnownSnapshots:
    """What a log keeps of its snapshots."""

    there: dict[int, Filed] = field(default_factory=dict)
    begun: Begun | None = None
    failed: SnapshotBuild | None = None
    trash: set[str] = field(default_factory=set)


class SnapshotLog(Protocol):
    """What a log has to tell its snapshots."""

    id: str
    options: LogOptions
    first_version: int
    snapshots: KnownSnapshots

    @property
    def head(self) -> Head:
        """The last patch."""

    @property
    def records(self) -> Sequence[PatchRecord]:
        """What is known of all patches."""


class MemorySnapshotIndex:
    """The snapshots of one log. A process that dies takes all with it, so nothing here is taken over."""

    def __init__(self, lock: AbstractContextManager[object], found: Callable[[], SnapshotLog]) -> None:
        self._lock = lock
        self._found = found

    def list(self) -> list[Filed]:
        """All that are complete, by version."""
        with self._lock:
            return _sorted(self._found())

    def pending(self) -> SnapshotBuild | None:
        """The one that is being made, or the last that could not be made."""
        with self._lock:
            known = self._found().snapshots
            return known.failed if known.begun is None else SnapshotBuild(known.begun.version)

    def begin(self, version: int | None, *, is_given: bool = False) -> Begun | Filed:
        """Begin a snapshot."""
        with self._lock:
            log = self._found()
            known = log.snapshots
            wanted = log.head.version if version is None else version
            busy = None if known.begun is None else known.begun.version
            same, base = check_begin(_state(log), wanted, _sorted(log), busy, is_given=is_given)
            if same is not None:
                return same
            known.begun = Begun(wanted, uuid.uuid4().bytes, f"{log.id}/{wanted}", log.options, base)
            known.failed = None
            return known.begun

    def renew(self, begun: Begun) -> None:
        """Raise an error where the log is another one by now."""
        with self._lock:
            if self._found().snapshots.begun is not begun:
                raise lost(begun.version)

    def complete(self, begun: Begun, written: Written) -> Snapshot:
        """Its file is durable."""
        with self._lock:
            self.renew(begun)
            log = self._found()
            check_complete(_state(log), begun.version)
            last = log.records[begun.version - 1] if begun.version else None
            snapshot = Snapshot(
                version=begun.version,
                id=None if last is None else last.id,
                log_id=log.id,
                hash=EMPTY_HEAD.hash if last is None else last.chain_hash,
                sha256=written.sha256,
                bytes=written.bytes,
                quads=written.quads,
                namespaces=written.namespaces,
                created=time_of(time.time_ns() // 1_000_000),
            )
            log.snapshots.there[begun.version] = Filed(snapshot, begun.location)
            log.snapshots.begun = None
            return snapshot

    def fail(self, begun: Begun, reason: str) -> None:
        """It could not be made."""
        with self._lock:
            known = self._found().snapshots
            if known.begun is begun:
                known.begun = None
                known.failed = SnapshotBuild(begun.version, reason)
                known.trash.add(begun.location)

    def remove(self, version: int) -> None:
        """Forget a snapshot."""
        with self._lock:
            log = self._found()
            gone = check_delete(_state(log), version, _sorted(log))
            del log.snapshots.there[version]
            log.snapshots.trash.add(gone.location)

    def trash(self) -> Sequence[str]:
        """The files that are to be deleted."""
        with self._lock:
            return sorted(self._found().snapshots.trash)

    def emptied(self, locations: Sequence[str]) -> None:
        """These files were deleted."""
        with self._lock:
            self._found().snapshots.trash.difference_update(locations)


def _state(log: SnapshotLog) -> LogState:
    return LogState(log.id, log.options, log.head.version, log.first_version)


def _sorted(log: SnapshotLog) -> list[Filed]:
    return [filed for _, filed in sorted(log.snapshots.there.items())]
