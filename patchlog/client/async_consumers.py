"""The consumers of a log of a service, for programs that do not block."""

from __future__ import annotations

from patchlog.client.async_connection import AsyncConnection
from patchlog.client.consumer_calls import ConsumerCalls
from patchlog.log.position import After
from patchlog.log.records import Consumer

__all__ = ["AsyncHttpConsumers"]


class AsyncHttpConsumers:
    """Named positions of one log."""

    def __init__(self, connection: AsyncConnection, log_path: str) -> None:
        self._connection = connection
        self._calls = ConsumerCalls(log_path)

    async def list(self) -> list[Consumer]:
        """All consumers, by name."""
        return await self._connection.carry_out(self._calls.list())

    async def find(self, name: str) -> Consumer | None:
        """The consumer of that name."""
        return await self._connection.carry_out(self._calls.find(name))

    async def advance(self, name: str, version: After, *, force: bool = False) -> Consumer:
        """Say that all patches up to a version were read."""
        return await self._connection.carry_out(self._calls.advance(name, version, force=force))

    async def forget(self, name: str) -> None:
        """The consumer reads no more."""
        await self._connection.carry_out(self._calls.forget(name))
