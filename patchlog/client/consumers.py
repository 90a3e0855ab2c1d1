"""The consumers of a log of a service."""

from __future__ import annotations

from patchlog.client.connection import Connection
from patchlog.errors import ConsumerNotFound
from patchlog.log.documents import read_consumer
from patchlog.log.records import Consumer, check_consumer_name

__all__ = ["HttpConsumers"]


class HttpConsumers:
    """Named positions of one log."""

    def __init__(self, connection: Connection, log_path: str) -> None:
        self._connection = connection
        self._path = f"{log_path}/consumers"

    def list(self) -> list[Consumer]:
        """All consumers, by name."""
        return [read_consumer(document) for document in self._connection.ask("GET", self._path).json()["consumers"]]

    def find(self, name: str) -> Consumer | None:
        """The consumer of that name."""
        try:
            return read_consumer(self._connection.ask("GET", self._path_of(name)).json())
        except ConsumerNotFound:
            return None

    def advance(self, name: str, version: int, *, force: bool = False) -> Consumer:
        """Say that all patches up to a version were read."""
        place = {"version": version, "force": force}
        return read_consumer(self._connection.ask("PUT", self._path_of(name), json=place).json())

    def forget(self, name: str) -> None:
        """The consumer reads no more."""
        self._connection.ask("DELETE", self._path_of(name), is_repeatable=False)

    def _path_of(self, name: str) -> str:
        return f"{self._path}/{check_consumer_name(name)}"
