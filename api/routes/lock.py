"""The lock of a log that RDF Delta's clients take turns by: see who holds it, and break it."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from api.access import may
from api.documents import LockDocument
from api.rdf_delta.documents import lock_document
from api.rdf_delta.door import door_of
from api.service import service_of

__all__ = ["router"]

router = APIRouter(tags=["RDF Delta"])


@router.get(
    "/logs/{log}/lock",
    summary="Describe the lock of RDF Delta's writers",
    response_model=LockDocument,
    dependencies=[may("read")],
)
async def describe_lock(request: Request, log: str) -> Response:
    """Say which client of RDF Delta's API holds the lock of the log, since when, and when it was refreshed last.

    It is the lock of this process. Appends need none: it only keeps RDF Delta's clients from each other's way.
    """
    service = service_of(request)
    described = await service.run(lambda: service.log(log).describe())
    held = door_of(request).locks.read(described.id)
    document = {"lock": None if held is None else lock_document(held)}
    return JSONResponse(document, headers={"Cache-Control": "no-store"})


@router.delete(
    "/logs/{log}/lock",
    summary="Break the lock of RDF Delta's writers",
    status_code=204,
    dependencies=[may("admin")],
)
async def break_lock(request: Request, log: str) -> Response:
    """Take the lock away from its holder, so that the next client gets it. Where there is none, nothing happens."""
    service = service_of(request)
    described = await service.run(lambda: service.log(log).describe())
    door_of(request).locks.break_lock(described.id)
    return Response(status_code=204)
