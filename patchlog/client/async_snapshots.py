"""The snapshots of a log of a service, for programs that do not block."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable

from patchlog.client.async_connection import AsyncConnection
from patchlog.client.connection import translated
from patchlog.client.exchange import Failures
from patchlog.client.snapshot_calls import SnapshotCalls, bytes_before, check_complete
from patchlog.errors import StorageError
from patchlog.log.contract import SnapshotFormat
from patchlog.log.records import Snapshot, SnapshotBuild

__all__ = ["AsyncHttpSnapshots"]


class AsyncHttpSnapshots:
    """The snapshots of one log."""

    def __init__(self, connection: AsyncConnection, log_path: str) -> None:
        self._connection = connection
        self._calls = SnapshotCalls(log_path)

    async def list(self) -> list[Snapshot]:
        """All snapshots, by version."""
        return await self._connection.carry_out(self._calls.list())

    async def find(self, version: int) -> Snapshot | None:
        """The snapshot at a version."""
        return await self._connection.carry_out(self._calls.find(version))

    async def pending(self) -> SnapshotBuild | None:
        """The snapshot that is being made, or the last that could not be made."""
        return await self._connection.carry_out(self._calls.pending())

    async def build(self, version: int | None = None) -> Snapshot:
        """Have the service make the snapshot at a version, or at the head, and return when it is durable."""
        return await self._connection.carry_out(self._calls.build(version))

    async def put(
        self, version: int, chunks: Iterable[bytes] | AsyncIterable[bytes], format: SnapshotFormat = "jelly"
    ) -> Snapshot:
        """Send a dataset."""
        return await self._connection.carry_out(self._calls.put(version, chunks, format))

    async def read(self, version: int, *, start: int = 0) -> AsyncIterator[bytes]:
        """The bytes of a snapshot, from a place on. Where the answer breaks they are asked for from there on."""
        snapshot = await self._connection.carry_out(self._calls.found(version))
        place = start
        failures = Failures()
        while place < snapshot.bytes:
            try:
                async for chunk in self._answer(snapshot, place):
                    place += len(chunk)
                    failures.forget()
                    yield chunk
                check_complete(snapshot, place)
            except StorageError as error:
                await asyncio.sleep(failures.pause_after(error))

    async def delete(self, version: int) -> None:
        """Delete a snapshot."""
        await self._connection.carry_out(self._calls.delete(version))

    async def _answer(self, snapshot: Snapshot, place: int) -> AsyncIterator[bytes]:
        async with self._connection.answer(self._calls.bytes_behind(snapshot.version, place)) as response:
            before = bytes_before(place, response, snapshot)
            with translated(self._connection.url):
                async for chunk in response.aiter_bytes():
                    yield chunk[before:]
                    before -= min(before, len(chunk))
