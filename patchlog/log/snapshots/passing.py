"""Snapshots of logs that keep none, such as files: worked out when they are asked for, and gone afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import RLock
from typing import Final, overload

from patchlog.errors import UsageError
from patchlog.log.contract import PatchLog
from patchlog.log.records import Head, PatchRecord
from patchlog.log.snapshots.files import StoredFiles
from patchlog.log.snapshots.memory_index import KnownSnapshots, MemorySnapshotIndex
from patchlog.log.snapshots.store import LocalSnapshots
from patchlog.log.upload import DEFAULT_LIMITS

__all__ = ["passing_snapshots"]


@contextmanager
def passing_snapshots(log: PatchLog) -> Iterator[LocalSnapshots]:
    """Give the snapshots of a log as it is now, kept in a temporary folder for as long as the block lasts."""
    described = _Described(log)
    with TemporaryDirectory(prefix="patchlog-") as folder:
        index = MemorySnapshotIndex(RLock(), lambda: described)
        yield LocalSnapshots(log, index, StoredFiles(None, Path(folder)), limits=DEFAULT_LIMITS)


class _Described:
    """What a log has to tell its snapshots."""

    def __init__(self, log: PatchLog) -> None:
        description = log.describe()
        self.id = description.id
        self.options = description.options
        self.first_version = description.first_version
        self.head: Final[Head] = description.head
        self.snapshots = KnownSnapshots()
        self.records: Final[Sequence[PatchRecord]] = _Records(log, description.head.version)


class _Records(Sequence[PatchRecord]):
    """The records of all patches, each looked up when it is asked for."""

    def __init__(self, log: PatchLog, size: int) -> None:
        self._log = log
        self._size = size

    @overload
    def __getitem__(self, index: int) -> PatchRecord: ...

    @overload
    def __getitem__(self, index: slice) -> list[PatchRecord]: ...

    def __getitem__(self, index: int | slice) -> PatchRecord | list[PatchRecord]:
        if isinstance(index, slice):
            return [self[one] for one in range(*index.indices(self._size))]
        record = self._log.find(index + 1)
        if record is None:
            raise UsageError(f"the log {self._log.name!r} was changed meanwhile")
        return record

    def __len__(self) -> int:
        return self._size
