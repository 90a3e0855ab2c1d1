"""The consumers of a log of a service, for programs that block."""

from __future__ import annotations

from patchlog.client.connection import Connection
from patchlog.client.consumer_calls import ConsumerCalls
from patchlog.log.position import After
from patchlog.log.records import Consumer

__all__ = ["HttpConsumers"]


class HttpConsumers:
    """Named positions of one log."""

    def __init__(self, connection: Connection, log_path: str) -> None:
        self._connection = connection
        self._calls = ConsumerCalls(log_path)

    def list(self) -> list[Consumer]:
        """All consumers, by name."""
        return self._connection.carry_out(self._calls.list())

    def find(self, name: str) -> Consumer | None:
        """The consumer of that name."""
        return self._connection.carry_out(self._calls.find(name))

    def advance(self, name: str, version: After, *, force: bool = False) -> Consumer:
        """Say that all patches up to a version were read."""
        return self._connection.carry_out(self._calls.advance(name, version, force=force))

    def forget(self, name: str) -> None:
        """The consumer reads no more."""
        self._connection.carry_out(self._calls.forget(name))
