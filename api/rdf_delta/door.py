"""What the routes of RDF Delta's API share: the service, its data sources, the locks; and who may do what."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

from fastapi import FastAPI, Request

from api.access import FORBIDDEN, check_right, principal_of
from api.audit import note
from api.errors import Problem, Refusal
from api.keys import Right
from api.principal import Principal
from api.rdf_delta.documents import Source
from api.rdf_delta.locks import Locks
from api.rdf_delta.positions import ClientPositions
from api.rdf_delta.sources import LENGTH_OF_IDS, Sources
from api.service import Service, service_of
from patchlog.errors import PatchLogError
from patchlog.log.records import LogDescription

__all__ = ["NOT_FOUND", "Door", "close_door", "door_of"]

_Result = TypeVar("_Result")

NOT_FOUND: Final = Problem(404, "log-not-found", "There is no such log")


class Door:
    """RDF Delta's API of one service."""

    def __init__(self, service: Service) -> None:
        self.service: Final = service
        self.sources: Final = Sources(service.store)
        self.locks: Final = Locks()
        self.positions: Final = ClientPositions(service)

    async def run(self, call: Callable[[], _Result]) -> _Result:
        """Do in a thread what reads or writes the database."""
        return await self.service.run(call)

    def log(self, principal: Principal, right: Right, name_or_id: str) -> LogDescription:
        """The log of a name, else of an id, if the principal has a right on it. Blocks; for threads.

        Raises Refusal: the same one, whether there is such a log that is not for the principal, or none.
        """
        is_for_it = principal.allows(right, name_or_id)
        if is_for_it or len(name_or_id) == LENGTH_OF_IDS:
            log = self.sources.log(name_or_id)
            if log is not None and principal.allows(right, log.name):
                return log
        if is_for_it:
            raise Refusal(NOT_FOUND, f"there is no log {name_or_id!r}, by name or by id")
        raise _forbidden(right, name_or_id)

    async def source(self, request: Request, right: Right, id: str) -> Source | None:
        """The data source with an id; None where there is none, for those alone who have the right on all logs.

        Raises Refusal: for others the same one, whether there is such a log that is not for them, or none.
        """
        return await self._allowed(request, right, id, lambda _: self.sources.with_id(id))

    async def source_with_uri(self, request: Request, right: Right, uri: str) -> Source | None:
        """The same by the URI of a data source."""
        return await self._allowed(request, right, uri, lambda is_for_it: self.sources.with_uri(uri, is_for_it))

    async def source_named(self, request: Request, right: Right, name: str) -> Source | None:
        """The data source of a name. Raises Refusal."""
        await check_right(request, right, name)
        return await self.run(lambda: self.sources.named(name))

    async def check_all(self, request: Request, right: Right) -> None:
        """Raise Refusal where the principal of a request does not have a right on all logs."""
        await check_right(request, right, "*")

    async def _allowed(
        self, request: Request, right: Right, wanted: str, find: Callable[[Callable[[str], bool]], Source | None]
    ) -> Source | None:
        principal = await principal_of(request)

        def is_for_it(name: str) -> bool:
            return principal.allows(right, name)

        source = await self.run(lambda: find(is_for_it))
        if source is not None and is_for_it(source.log.name):
            note(log=source.log.name)
            return source
        if is_for_it("*"):
            return None
        raise _forbidden(right, wanted)


def _forbidden(right: Right, wanted: str) -> Refusal:
    return Refusal(FORBIDDEN, f"this needs the right {right!r} on the log {wanted!r}")


def door_of(request: Request) -> Door:
    """The door of the service that a request came to."""
    service = service_of(request)
    state: Any = request.app.state
    door: Door | None = getattr(state, "rdf_delta", None)
    if door is None or door.service is not service:
        door = state.rdf_delta = Door(service)
    return door


async def close_door(app: FastAPI) -> None:
    """Write what is known of the clients, before the service ends."""
    door: Door | None = getattr(app.state, "rdf_delta", None)
    if door is not None:
        with suppress(PatchLogError):  # they are where they were written to be for certain
            await door.positions.flush()
