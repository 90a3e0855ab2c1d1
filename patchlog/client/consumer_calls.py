"""What can be asked about the consumers of a log of a service, and what the answers mean."""

from __future__ import annotations

from patchlog.client.exchange import Exchange, Request, asked
from patchlog.client.problems import read_answer
from patchlog.errors import ConsumerNotFound
from patchlog.log.documents import position_document, read_consumer
from patchlog.log.position import After, as_position
from patchlog.log.records import Consumer, check_consumer_name

__all__ = ["ConsumerCalls"]


class ConsumerCalls:
    """The calls of `patchlog.log.contract.Consumers` as exchanges with a service."""

    def __init__(self, log_path: str) -> None:
        self._path = f"{log_path}/consumers"

    def list(self) -> Exchange[list[Consumer]]:
        """All consumers, by name."""
        response = yield from asked(Request("GET", self._path))
        return read_answer(response, lambda page: [read_consumer(document) for document in page["consumers"]])

    def find(self, name: str) -> Exchange[Consumer | None]:
        """The consumer of that name."""
        try:
            response = yield from asked(Request("GET", self._path_of(name)))
        except ConsumerNotFound:
            return None
        return read_answer(response, read_consumer)

    def advance(self, name: str, version: After, *, force: bool) -> Exchange[Consumer]:
        """Say that all patches up to a version were read."""
        known = position_document(as_position(version)).items()
        place = {"force": force} | {name: value for name, value in known if value is not None}
        response = yield from asked(Request("PUT", self._path_of(name), json=place))
        return read_answer(response, read_consumer)

    def forget(self, name: str) -> Exchange[None]:
        """The consumer reads no more."""
        yield from asked(Request("DELETE", self._path_of(name), is_repeatable=False))

    def _path_of(self, name: str) -> str:
        return f"{self._path}/{check_consumer_name(name)}"
