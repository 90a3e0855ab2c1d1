"""Consumers of a log: named positions of those who follow it."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from api.access import may
from api.documents import AdvanceDocument, ConsumerDocument, ConsumersDocument
from api.parameters import position_of
from api.service import service_of
from patchlog.errors import ConsumerNotFound
from patchlog.log.documents import consumer_document
from patchlog.log.records import Consumer

__all__ = ["router"]

router = APIRouter(tags=["consumers"])

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
    """Keep the position of a consumer. A new name is a new consumer. It goes back by `force` only.

    `hash` and `log_id` are compared with the log's: 409 where the reader has read another history.
    """
    service = service_of(request)

    def advance() -> Consumer:
        position = position_of(place.version, place.hash, place.log_id)
        return service.log(log).consumers.advance(consumer, position, force=place.force)

    return JSONResponse(consumer_document(await service.run(advance)), headers=_HEADERS)


@router.delete(
    "/logs/{log}/consumers/{consumer}",
    summary="Forget a consumer",
    status_code=204,
    dependencies=[may("admin")],
)
async def forget_consumer(request: Request, log: str, consumer: str) -> Response:
    """Forget a consumer: truncation need not wait for it any more."""
    service = service_of(request)
    await service.run(lambda: service.log(log).consumers.forget(consumer))
    return Response(status_code=204)
