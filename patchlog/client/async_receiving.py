"""The bytes of a range of patches, for programs that do not block. See `patchlog.client.receiving`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from typing import Self

from patchlog.client.async_connection import AsyncConnection
from patchlog.client.connection import translated
from patchlog.client.exchange import Failures
from patchlog.client.log_calls import LogCalls
from patchlog.client.receiving import Cutter
from patchlog.errors import StorageError
from patchlog.log.records import PatchRecord

__all__ = ["AsyncPatchBytes"]


class AsyncPatchBytes:
    """Takes patches up to a version from a service, in the order in which they are asked for."""

    def __init__(self, connection: AsyncConnection, calls: LogCalls, last: int, log_id: str) -> None:
        self._connection = connection
        self._calls = calls
        self._last = last
        self._log_id = log_id
        self._answer = AsyncExitStack()
        self._pieces: AsyncIterator[bytes] | None = None
        self._cutter = Cutter()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._pieces is not None and self._cutter.is_behind(self._last):
            # A connection whose answer was read to its end can be used again.
            with suppress(StorageError), translated(self._connection.url):
                await anext(self._pieces, b"")
        await self._hang_up()

    async def chunks(self, record: PatchRecord) -> AsyncIterator[bytes]:
        """Yield the bytes of a patch."""
        given = 0
        failures = Failures()
        while given < record.bytes:
            try:
                if not self._cutter.is_at(record, given):
                    await self._go_to(record.version, given)
                piece = self._cutter.cut(await self._piece(), record, given)
            except StorageError as error:
                await self._hang_up()
                await asyncio.sleep(failures.pause_after(error))
                continue
            failures.forget()
            given += len(piece)
            yield piece

    async def _go_to(self, version: int, place: int) -> None:
        await self._hang_up()
        request = self._calls.bytes_after(version - 1, self._last, self._log_id)
        response = await self._answer.enter_async_context(self._connection.answer(request))
        self._pieces = response.aiter_bytes()
        while place:
            place = self._cutter.skip(await self._piece(), place)

    async def _piece(self) -> bytes:
        piece, self._cutter.rest = self._cutter.rest, b""
        if not piece and self._pieces is not None:
            with translated(self._connection.url):
                piece = await anext(self._pieces, b"")
        return self._cutter.taken(piece)

    async def _hang_up(self) -> None:
        self._cutter.begin()
        self._pieces = None
        await self._answer.aclose()
