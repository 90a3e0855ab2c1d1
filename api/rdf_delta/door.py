"""What the routes of RDF Delta's API share: the service, its data sources, the locks; and who may do what."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

from fastapi import FastAPI, Request

from api.access import check_right
from api.errors import Problem, Refusal
from api.keys import Right
from api.rdf_delta.documents import Source
from api.rdf_delta.locks import Locks
from api.rdf_delta.positions import ClientPositions
from api.rdf_delta.sources import Sources
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

    def log(self, name_or_id: str) -> LogDescription:
        """The log of a name, else of an id. Blocks; for threads. Raises Refusal."""
        log = self.sources.log(name_or_id)
        if log is None:
            raise Refusal(NOT_FOUND, f"there is no log {name_or_id!r}, by name or by id")
        return log

    async def check(self, request: Request, right: Right, source: Source | None) -> None:
        """Raise Refusal where the key of a request does not allow this; without a source, on all logs."""
        await self.check_log(request, right, "*" if source is None else source.log.name)

    async def check_log(self, request: Request, right: Right, name: str) -> None:
        """Raise Refusal where the key of a request does not allow this on that log."""
        await check_right(request, right, name)


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
