"""What operators look at: whether the process lives, whether it can work, and what it does."""

from __future__ import annotations

import logging
from typing import Final

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST

from api.access import may
from api.documents import StatusDocument
from api.errors import Problem, Refusal
from api.service import service_of
from patchlog.errors import StorageError

__all__ = ["router"]

router = APIRouter(tags=["system"])

_logger: Final = logging.getLogger("patchlog.service")

_NOT_READY = Problem(503, "not-ready", "The service cannot take requests now", {"Retry-After": "1"})


@router.get("/healthz", summary="Whether the process lives", response_model=StatusDocument)
async def health() -> dict[str, str]:
    """Answer 200 as long as requests are answered at all."""
    return {"status": "alive"}


@router.get("/readyz", summary="Whether the service can work", response_model=StatusDocument)
async def readiness(request: Request) -> dict[str, str]:
    """Answer 200 when the database can be read, and 503 else and once the service stops."""
    service = service_of(request)
    if service.is_stopping:
        raise Refusal(_NOT_READY, "the service is stopping")
    try:
        await service.run(lambda: service.store.list(limit=1))
    except StorageError as error:
        _logger.warning("the database cannot be read: %s", error)
        raise Refusal(_NOT_READY, "the database cannot be read: the log of the service says why") from None
    return {"status": "ready"}


@router.get("/metrics", summary="Metrics for Prometheus", response_class=Response, dependencies=[may("read")])
async def metrics(request: Request) -> Response:
    """Counters of this process, and the state of the logs."""
    service = service_of(request)
    service.metrics.tails.set(service.tails.open)
    text = await service.stream(lambda: service.metrics.text(service.store))
    return Response(text, media_type=CONTENT_TYPE_LATEST)
