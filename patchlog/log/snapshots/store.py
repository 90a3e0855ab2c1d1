"""The snapshots of a log of this process: made, taken in, read, verified and deleted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from logging import getLogger
from typing import Final, Protocol, TypeAlias, TypeVar

from patchlog.codec.options import Limits
from patchlog.effect import Effect, NamespaceKey, apply_effect
from patchlog.errors import (
    CodecError,
    InvalidTerm,
    PatchLogError,
    SnapshotNotFound,
    SnapshotRefused,
    StorageError,
    UsageError,
)
from patchlog.log.contract import SnapshotFormat
from patchlog.log.records import LoggedPatch, LogOptions, Snapshot, SnapshotBuild
from patchlog.log.snapshots.changes import MEMORY_BYTES, Line, QuadChanges, Spilling, resolved
from patchlog.log.snapshots.distinct import Distinct
from patchlog.log.snapshots.files import Files
from patchlog.log.snapshots.index import Begun, Filed, SnapshotIndex
from patchlog.log.snapshots.reading import changes_of, namespaces_of, pieces_of, quads_of
from patchlog.log.snapshots.replay import Replay
from patchlog.log.snapshots.writing import PLAIN, Written, texts_of, write_snapshot
from patchlog.model import Term

__all__ = ["Check", "LocalSnapshots"]

Check: TypeAlias = Callable[[], object]
_Lines: TypeAlias = list[Line]
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_logger: Final = getLogger(__name__)

_CHUNK_BYTES: Final = 256 << 10
_RENEW_SECONDS: Final = 10.0


class _ReadLog(Protocol):
    def read(self, after: int = 0, *, limit: int | None = None, until: int | None = None) -> Iterator[LoggedPatch]:
        """The patches behind a version."""


def _go_on() -> None:
    """Nothing stops the work."""


class LocalSnapshots:
    """The snapshots of one log. Making one is work of this thread; nothing else waits for it."""

    def __init__(
        self, log: _ReadLog, index: SnapshotIndex, files: Files, *, limits: Limits, memory_bytes: int = MEMORY_BYTES
    ) -> None:
        self._log = log
        self._index = index
        self._files = files
        self._limits = limits
        self._memory_bytes = memory_bytes

    def list(self) -> list[Snapshot]:
        """All snapshots, by version."""
        return [filed.snapshot for filed in self._index.list()]

    def find(self, version: int) -> Snapshot | None:
        """The snapshot at a version."""
        return next((snapshot for snapshot in self.list() if snapshot.version == version), None)

    def pending(self) -> SnapshotBuild | None:
        """The snapshot that is being made, or the last that could not be made."""
        return self._index.pending()

    def build(self, version: int | None = None, check: Check = _go_on) -> Snapshot:
        """Make the snapshot at a version, or at the head, and return when it is durable.

        `check` as of `build_begun`.
        """
        begun = self.begin(version)
        return begun if isinstance(begun, Snapshot) else self.build_begun(begun, check)

    def begin(self, version: int | None = None) -> Begun | Snapshot:
        """The first half of `build`, which takes no time: `build_begun` is the other."""
        begun = self._index.begin(version)
        return begun.snapshot if isinstance(begun, Filed) else begun

    def give_up(self, begun: Begun, reason: str) -> None:
        """Say that what was begun is not made."""
        self._give_up(begun, reason)

    def build_begun(self, begun: Begun, check: Check = _go_on) -> Snapshot:
        """Make what was begun. `check` is called all the time; what it raises ends the work."""
        return self._made(begun, check, lambda keep: self._written(begun, self._changes_until(begun, keep), keep))

    def put(
        self, version: int, chunks: Iterable[bytes], format: SnapshotFormat = "jelly", check: Check = _go_on
    ) -> Snapshot:
        """Take a dataset in, or compare it with what the log says. `check` as of `build_begun`."""
        if format not in ("jelly", "nquads"):
            raise UsageError(f"{format!r} is not a format of snapshots; there are jelly and nquads")
        if version != 0:
            return self._checked(self.build(version, check), chunks, format, check)
        begun = self._index.begin(0, is_given=True)
        if isinstance(begun, Filed):
            return self._checked(begun.snapshot, chunks, format, check)
        return self._made(begun, check, lambda keep: self._written_as_sent(begun, chunks, format, keep))

    def read(self, version: int, *, start: int = 0) -> Iterator[bytes]:
        """The bytes of a snapshot, from a place on."""
        return self._chunks(self._filed(version), start)

    def delete(self, version: int) -> None:
        """Delete a snapshot."""
        self._index.remove(version)
        self.sweep()

    def verify(self, version: int, on_read: Callable[[int], object] | None = None) -> bool:
        """Whether the bytes of a snapshot have the hash that they were stored with.

        `on_read` gets the number of bytes that were read so far, all the time; what it raises ends the work.
        """
        filed = self._filed(version)
        digest = sha256()
        size = 0
        for chunk in self._chunks(filed):
            digest.update(chunk)
            size += len(chunk)
            if on_read is not None:
                on_read(size)
        return digest.digest() == filed.snapshot.sha256

    def sweep(self) -> None:
        """Delete the files that are in the trash. One that cannot be deleted stays there for the next time."""
        if deleted := [location for location in self._index.trash() if self._is_deleted(location)]:
            self._index.emptied(deleted)

    def _is_deleted(self, location: str) -> bool:
        """Delete a file, and say whether that was possible."""
        try:
            self._files.delete(location)
        except Exception as error:  # noqa: BLE001  storages have errors of their own, and no work depends on this
            _logger.warning("the file of a snapshot that is not needed stays for now: %s: %s", location, error)
            return False
        return True

    def _made(self, begun: Begun, check: Check, write: Callable[[_Keep], Written]) -> Snapshot:
        keep = _Keep(self._index, begun, check)
        try:
            self.sweep()
            return self._index.complete(begun, self._written_for(begun, write, keep))
        except BaseException as error:
            reason = str(error) if isinstance(error, PatchLogError) else type(error).__name__
            self._give_up(begun, reason)
            raise

    def _written_for(self, begun: Begun, write: Callable[[_Keep], Written], keep: _Keep) -> Written:
        try:
            return write(keep)
        except StorageError:
            # Who deletes the log, or takes this process for dead, deletes the file: then that is what is to be told.
            self._index.renew(begun)
            raise

    def _give_up(self, begun: Begun, reason: str) -> None:
        """Leave nothing. Where the log is gone, or taken over, nobody need be told."""
        with suppress(PatchLogError):
            self._index.fail(begun, reason)
        self._is_deleted(begun.location)  # else it is known by its location, and thrown away with the next one

    def _changes_until(self, begun: Begun, keep: _Keep) -> QuadChanges:
        after = 0 if begun.base is None else begun.base.snapshot.version
        patches = self._log.read(after, until=begun.version)
        chunks = (chunk for logged in patches for chunk in logged.chunks)
        return changes_of(chunks, "jelly-patch", self._spilling, on_progress=keep)

    def _taken(self, chunks: Iterable[bytes], format: SnapshotFormat, keep: Check) -> QuadChanges:
        """A dataset that was sent, as what it adds to nothing."""
        namespaces: dict[NamespaceKey, Term] = {}
        if format == "jelly":
            namespaces, chunks = namespaces_of(chunks, self._limits)
        changes = changes_of(chunks, format, self._spilling, limits=self._limits, on_progress=keep)
        changes.namespaces.update(namespaces)
        return changes

    def _written_as_sent(self, begun: Begun, chunks: Iterable[bytes], format: SnapshotFormat, keep: _Keep) -> Written:
        """Write a dataset in the order in which it comes, and only where it has a quad twice begin once more."""
        sent = Replay(chunks, self._files.folder)
        written = _plain_first(begun, lambda options: self._copied(options, begun, sent, format, keep))
        return self._written(begun, self._taken(sent, format, keep), keep) if written is None else written

    def _copied(
        self, options: LogOptions, begun: Begun, sent: Iterable[bytes], format: SnapshotFormat, keep: _Keep
    ) -> Written | None:
        """Write what was sent; None where it has a quad twice, and the file is of no use."""
        namespaces, chunks = namespaces_of(sent, self._limits) if format == "jelly" else ({}, iter(sent))
        distinct = Distinct(self._memory_bytes, self._files.folder)
        with self._files.create(begun.location) as write:
            pieces = keep.through(pieces_of(chunks))
            written = write_snapshot(
                pieces, namespaces, options, write, source=format, limits=self._limits, take_hashes=distinct.add
            )
        return written if distinct.are_all() else None

    def _written(self, begun: Begun, changes: QuadChanges, keep: _Keep) -> Written:
        """Write what a dataset is changed to."""
        return _plain_first(begun, lambda options: self._written_as(options, begun, changes, keep))

    def _written_as(self, options: LogOptions, begun: Begun, changes: QuadChanges, keep: _Keep) -> Written:
        namespaces, base = ({}, iter(())) if begun.base is None else self._dataset(begun.base)
        apply_effect(set(), namespaces, Effect(namespaces=changes.namespaces))
        quads = resolved(base, changes, self._spilling)
        with self._files.create(begun.location) as write:
            return write_snapshot(texts_of(keep.through(quads)), namespaces, options, write)

    def _checked(self, snapshot: Snapshot, chunks: Iterable[bytes], format: SnapshotFormat, check: Check) -> Snapshot:
        """The snapshot that is there, where what was sent has its quads and no others."""
        taken = self._taken(chunks, format, check)
        _, mine = self._dataset(self._filed(snapshot.version))
        both = sum(map(len, _checked_each(resolved(mine, taken, self._spilling), check)))
        sent = sum(map(len, _checked_each(resolved((), taken, self._spilling), check)))
        if not both == sent == snapshot.quads:
            raise SnapshotRefused(
                f"the dataset has other quads than the log at version {snapshot.version}: "
                f"{both - snapshot.quads} more, and {both - sent} fewer"
            )
        return snapshot

    @property
    def _spilling(self) -> Spilling:
        return Spilling(self._memory_bytes, self._files.folder)

    def _filed(self, version: int) -> Filed:
        for filed in self._index.list():
            if filed.snapshot.version == version:
                return filed
        raise SnapshotNotFound(f"the log has no snapshot at version {version}")

    def _chunks(self, filed: Filed, start: int = 0) -> Iterator[bytes]:
        with self._files.open(filed.location) as file:
            file.seek(start)
            while chunk := file.read(_CHUNK_BYTES):
                yield chunk

    def _dataset(self, filed: Filed) -> tuple[dict[NamespaceKey, Term], Iterator[_Lines]]:
        """The namespaces and the quads of a snapshot. Raises StorageError where they are not those that were stored."""
        with _damage_told(filed):
            namespaces, chunks = namespaces_of(self._sound_chunks(filed))
        return namespaces, _quads(filed, chunks)

    def _sound_chunks(self, filed: Filed) -> Iterator[bytes]:
        digest = sha256()
        for chunk in self._chunks(filed):
            digest.update(chunk)
            yield chunk
        if digest.digest() != filed.snapshot.sha256:
            raise _damaged(filed)


def _plain_first(begun: Begun, write: Callable[[LogOptions], _Result]) -> _Result:
    """Write as plain RDF 1.1 what is that, for readers that know no more, and else as the log allows it."""
    try:
        return write(PLAIN)
    except InvalidTerm:
        if begun.options == PLAIN:
            raise
        return write(begun.options)


def _checked_each(items: Iterable[_Item], check: Check) -> Iterator[_Item]:
    for item in items:
        check()
        yield item


def _quads(filed: Filed, chunks: Iterable[bytes]) -> Iterator[_Lines]:
    with _damage_told(filed):
        yield from quads_of(chunks)


@contextmanager
def _damage_told(filed: Filed) -> Iterator[None]:
    """What the codec complains of in a file of ours is no fault of who asks."""
    try:
        yield
    except CodecError as error:
        raise _damaged(filed) from error


def _damaged(filed: Filed) -> StorageError:
    return StorageError(f"the file of the snapshot at version {filed.snapshot.version} is damaged: delete it")


class _Keep:
    """Says from time to time that a snapshot is still being made."""

    def __init__(self, index: SnapshotIndex, begun: Begun, check: Check) -> None:
        self._index = index
        self._begun = begun
        self._check = check
        self._next = 0.0  # it may have waited for a thread

    def __call__(self) -> None:
        self._check()
        if time.monotonic() > self._next:
            self._index.renew(self._begun)
            self._next = time.monotonic() + _RENEW_SECONDS

    def through(self, items: Iterable[_Item]) -> Iterator[_Item]:
        """Say so with each item."""
        for item in items:
            self()
            yield item
