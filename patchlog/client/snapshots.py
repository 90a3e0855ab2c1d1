"""The snapshots of a log of a service, for programs that block."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from hashlib import sha256

from patchlog.client.connection import Connection, translated
from patchlog.client.exchange import Failures
from patchlog.client.snapshot_calls import SnapshotCalls, bytes_before, check_complete
from patchlog.errors import StorageError
from patchlog.log.contract import SnapshotFormat
from patchlog.log.records import Snapshot, SnapshotBuild

__all__ = ["HttpSnapshots"]


class HttpSnapshots:
    """The snapshots of one log."""

    def __init__(self, connection: Connection, log_path: str) -> None:
        self._connection = connection
        self._calls = SnapshotCalls(log_path)

    def list(self) -> list[Snapshot]:
        """All snapshots, by version."""
        return self._connection.carry_out(self._calls.list())

    def find(self, version: int) -> Snapshot | None:
        """The snapshot at a version."""
        return self._connection.carry_out(self._calls.find(version))

    def pending(self) -> SnapshotBuild | None:
        """The snapshot that is being made, or the last that could not be made."""
        return self._connection.carry_out(self._calls.pending())

    def build(self, version: int | None = None) -> Snapshot:
        """Have the service make the snapshot at a version, or at the head, and return when it is durable."""
        return self._connection.carry_out(self._calls.build(version))

    def put(self, version: int, chunks: Iterable[bytes], format: SnapshotFormat = "jelly") -> Snapshot:
        """Send a dataset."""
        return self._connection.carry_out(self._calls.put(version, iter(chunks), format))

    def read(self, version: int, *, start: int = 0) -> Iterator[bytes]:
        """The bytes of a snapshot, from a place on. Where the answer breaks they are asked for from there on."""
        return self._read(self._connection.carry_out(self._calls.found(version)), start)

    def delete(self, version: int) -> None:
        """Delete a snapshot."""
        self._connection.carry_out(self._calls.delete(version))

    def verify(self, version: int) -> bool:
        """Whether the bytes of a snapshot, as they come here, have the hash that they were stored with."""
        snapshot = self._connection.carry_out(self._calls.found(version))
        digest = sha256()
        for chunk in self._read(snapshot, 0):
            digest.update(chunk)
        return digest.digest() == snapshot.sha256

    def _read(self, snapshot: Snapshot, place: int) -> Iterator[bytes]:
        failures = Failures()
        while place < snapshot.bytes:
            try:
                for chunk in self._answer(snapshot, place):
                    place += len(chunk)
                    failures.forget()
                    yield chunk
                check_complete(snapshot, place)
            except StorageError as error:
                time.sleep(failures.pause_after(error))

    def _answer(self, snapshot: Snapshot, place: int) -> Iterator[bytes]:
        with self._connection.answer(self._calls.bytes_behind(snapshot.version, place)) as response:
            before = bytes_before(place, response, snapshot)
            with translated(self._connection.url):
                for chunk in response.iter_bytes():
                    yield chunk[before:]
                    before -= min(before, len(chunk))
