"""Consumers of a log: named positions of those who follow it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from api.access import may, principal_of
from api.documents import AdvanceDocument, ConsumerDocument, ConsumersDocument
from api.parameters import position_of
from api.service import service_of
from patchlog.errors import ConsumerNotFound, ConsumerOwned
from patchlog.log.consumers import Mover
from patchlog.log.documents import consumer_document
from patchlog.log.records import Consumer

__all__ = ["router"]

router = APIRouter(tags=["consumers"])

_Result = TypeVar("_Result")

_HEADERS = {"Cache-Control": "no-store"}


@router.get(
    "/logs/{log}/consumers",
    summary="List the consumers",
    response_model=ConsumersDocument,
    dependencies=[may("read")],
)
async def list_consumers(request: Request, log: str) -> Response:
    """List those who follow the log by name, and how far behind they are."""
    service = service_of(request)
    found = await service.run(service.log(log).consumers.list)
    return JSONResponse({"consumers": [consumer_document(consumer) for consumer in found]}, headers=_HEADERS)


@router.get(
    "/logs/{log}/consumers/{consumer}",
    summary="Describe a consumer",
    response_model=ConsumerDocument,
    dependencies=[may("read")],
)
async def describe_consumer(request: Request, log: str, consumer: str) -> Response:
    """Say how far a consumer has read."""
    service = service_of(request)
    found = await service.run(lambda: service.log(log).consumers.find(consumer))
    if found is None:
        raise ConsumerNotFound(f"there is no consumer {consumer!r}")
    return JSONResponse(consumer_document(found), headers=_HEADERS)


@router.put(
    "/logs/{log}/consumers/{consumer}",
    summary="Say how far a consumer has read",
    response_model=ConsumerDocument,
    dependencies=[may("read")],
)
async def advance_consumer(request: Request, log: str, consumer: str, place: AdvanceDocument) -> Response:
    """Keep the position of a consumer. A new name is a new consumer, of the key that makes it. It goes back by `force`.

    It belongs to that key as long as there is that key: others need the right `admin` to move it.
    `hash` and `log_id` are compared with the log's: 409 where the reader has read another history.
    """
    service = service_of(request)

    def advance(mover: Mover) -> Consumer:
        position = position_of(place.version, place.hash, place.log_id)
        return service.log(log).consumers.advance(consumer, position, force=place.force, mover=mover)

    return JSONResponse(consumer_document(await _moved(request, log, advance)), headers=_HEADERS)


@router.delete(
    "/logs/{log}/consumers/{consumer}",
    summary="Forget a consumer",
    status_code=204,
    dependencies=[may("read")],
)
async def forget_consumer(request: Request, log: str, consumer: str) -> Response:
    """Forget a consumer: truncation need not wait for it any more. That of another key needs the right `admin`."""
    service = service_of(request)
    await _moved(request, log, lambda mover: service.log(log).consumers.forget(consumer, mover=mover))
    return Response(status_code=204)


async def _moved(request: Request, log: str, move: Callable[[Mover], _Result]) -> _Result:
    """Move a consumer in the name of the principal of a request."""
    service = service_of(request)
    principal = await principal_of(request)
    mover = Mover(principal.owner, principal.allows("admin", log))
    try:
        return await service.commit(lambda: move(mover))
    except ConsumerOwned as error:
        owner = error.owner
        if owner is None or not await service.access.is_gone(owner):
            raise
        return await service.commit(lambda: move(replace(mover, gone=frozenset({owner}))))
