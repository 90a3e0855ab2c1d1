"""Patches of a stream read as if they were a log: they are versions 1, 2, 3 and so on."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NoReturn

from patchlog.codec.patch_ids import PatchId, parse_patch_id
from patchlog.errors import UsageError
from patchlog.log.contract import PatchFormat
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
    time_of,
)
from patchlog.log.scanning import CutOff, ScannedPatch, scanned
from patchlog.log.succession import head_after, last_version

__all__ = ["StreamPatchLog"]

_OPTIONS: Final = LogOptions()
_UNBOUNDED: Final = 1 << 62


class StreamPatchLog:
    """The patches of a stream. Each call takes its bytes anew: a stream that can be taken once serves one call."""

    def __init__(self, name: str, chunks: Callable[[], Iterable[bytes]], format: PatchFormat) -> None:
        self._name = name
        self._chunks = chunks
        self._format = format
        self._time = time_of(time.time_ns() // 1_000_000)

    @property
    def name(self) -> str:
        """What the stream is called."""
        return self._name

    def describe(self) -> LogDescription:
        """Describe all patches of the stream."""
        head, operations, size = EMPTY_HEAD, 0, 0
        for logged in self.read():
            head = head_after(logged.record)
            operations += logged.record.operations
            size += logged.record.bytes
        return LogDescription(
            name=self._name,
            id=_log_id(head),
            options=_OPTIONS,
            created=self._time,
            head=head,
            first_version=1,
            operations=operations,
            bytes=size,
        )

    def head(self) -> Head:
        """The last patch."""
        return self.describe().head

    def position(self, version: int | None = None) -> Position:
        """Return the position at a version, or at the head."""
        head = self.head()
        return position_at(version, _log_id(head), head, self._hash_at)

    def check(self, position: Position) -> None:
        """Raise HistoryMismatch where this stream does not have the history of the position."""
        if position.log_id is not None or position.hash is not None:
            head = self.head()
            # A stream has no name that lasts: its content says which history it is.
            known = Position(None, position.version, position.hash)
            check_position(known, self._name, _log_id(head), head, self._hash_at)

    def read(self, after: After = 0, *, limit: int | None = None, until: int | None = None) -> Iterator[LoggedPatch]:
        """Yield the patches after a version."""
        position = as_position(after)
        self.check(position)
        return self._read(position.version, last_version(_UNBOUNDED, position.version, limit, until))

    def find(self, patch: PatchId | int) -> PatchRecord | None:
        """What is known of a patch by its id or version."""
        wanted = parse_patch_id(patch) if isinstance(patch, str) else patch
        records = (logged.record for logged in self.read())
        return next((record for record in records if wanted in (record.id, record.version)), None)

    def verify(self) -> Verification:
        """Read all patches. A stream has no hashes of its own: it is sound where its patches can be read."""
        description = self.describe()
        return Verification(description.head, description.patches)

    def wait_for(self, version: int, timeout_seconds: float) -> Head:
        """Return the head: a stream does not grow."""
        del version, timeout_seconds
        return self.head()

    def append(
        self,
        chunks: Iterable[bytes],
        *,
        format: PatchFormat = "jelly-patch",
        expected_head: ExpectedHead = ANY_HEAD,
    ) -> Appended:
        """Nothing can be appended to a stream."""
        del chunks, format, expected_head
        self._refuse()

    def truncate_before(self, version: int | None = None, *, force: bool = False) -> NoReturn:
        """Nothing can be taken away from a stream."""
        del version, force
        self._refuse()

    @property
    def consumers(self) -> NoReturn:
        """A stream has no place for positions."""
        self._refuse()

    @property
    def snapshots(self) -> NoReturn:
        """A stream has no place for snapshots."""
        self._refuse()

    def _read(self, after: int, last: int) -> Iterator[LoggedPatch]:
        if last <= after:
            return
        for patch in self._patches():
            with patch.body:
                if patch.record.version > after:
                    yield LoggedPatch(patch.record, patch.chunks())
            if patch.record.version == last:
                return

    def _hash_at(self, version: int) -> bytes:
        [record] = [logged.record for logged in self._read(version - 1, version)]
        return record.chain_hash

    def _patches(self) -> Iterator[ScannedPatch]:
        try:
            yield from scanned(self._chunks(), self._format, _OPTIONS.patch_options, EMPTY_HEAD, 0, self._time)
        except CutOff as cut_off:
            raise cut_off.reason from None

    def _refuse(self) -> NoReturn:
        raise UsageError(f"{self._name} can be read as a log, but not changed")


def _log_id(head: Head) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, head.hash.hex()))
