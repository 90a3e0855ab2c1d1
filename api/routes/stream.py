"""Live tails: patches as they are appended."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Final

from fastapi import APIRouter, Header, Query, Request, Response

from api.access import check_still, may
from api.answers import Streamed, sent
from api.errors import Refusal
from api.negotiation import BODIES_OF_PATCHES, EVENTS, JELLY_PATCHES, PATCH_TEXT, Representation, chosen
from api.outgoing import Compressor, Outflow, as_events, as_stored, as_text, cut
from api.parameters import MOST_VERSION, Hash, LogId, StreamType, Version, check_stream_type, position_of
from api.service import service_of
from api.tails import checked_head
from patchlog.log.contract import StagingPatchLog
from patchlog.log.position import Position

__all__ = ["router"]

router = APIRouter(tags=["patches"])

_HEADERS: Final = {"Cache-Control": "no-store", "Vary": "Accept", "X-Accel-Buffering": "no"}


@router.get(
    "/logs/{log}/stream",
    summary="Follow a log",
    response_class=Response,
    responses={
        200: {"content": BODIES_OF_PATCHES | {"text/event-stream": {"schema": {"type": "string"}}}},
        204: {"description": "Nothing came while the request waited"},
    },
    dependencies=[may("read")],
)
async def follow(
    request: Request,
    log: str,
    after: Version = 0,
    wait: Annotated[float | None, Query(ge=0, description="Seconds to wait at most, for one answer that ends.")] = None,
    hash: Hash = None,
    log_id: LogId = None,
    stream_type: StreamType = None,
    last_event_id: Annotated[int | None, Header(ge=0, le=MOST_VERSION)] = None,
) -> Response:
    """Get all patches after a version, and then each new one when it is durable, without end.

    With `hash`, the chain hash at `after`, and `log_id` the log is checked first: the answer is 409 where it is, or has
    become, another one. `hash` is not looked at where a header `Last-Event-ID` names another version.

    A Jelly-Patch stream has empty frames as heartbeats, an RDF Patch text empty comments. Of server-sent events each is
    a patch, its id the version, so that a browser goes on where it was. With `wait` the answer ends with the patches
    that are there as soon as there is one, and is 204 when none came in time.
    """
    service = service_of(request)
    form = chosen(request, (JELLY_PATCHES, PATCH_TEXT, EVENTS))
    check_stream_type(stream_type, is_jelly=form is JELLY_PATCHES, is_live=True)
    if last_event_id is not None and last_event_id != after:
        after, hash = last_event_id, None
    position = position_of(after, hash, log_id)
    patch_log = service.log(log)
    head = await service.run(lambda: checked_head(patch_log, position))
    if wait is None:
        return Streamed(_live(request, patch_log, head, after, _outflow(form)), form.media_type, _HEADERS)
    if head.version <= after:
        with service.tails.feed(patch_log, head) as feed:
            if not await feed.wait(after, min(wait, service.settings.max_wait_seconds)):
                return Response(status_code=204, headers=_HEADERS)
        await check_still(request)
    pieces = await service.stream(lambda: cut(patch_log.read(position)))
    first = await service.stream(lambda: next(pieces, []))
    return Streamed(sent(service.stream, first, pieces, _outflow(form), Compressor(None)), form.media_type, _HEADERS)


def _outflow(form: Representation) -> Outflow:
    if form is EVENTS:
        return as_events()
    return as_text() if form is PATCH_TEXT else as_stored()


async def _live(
    request: Request, log: StagingPatchLog, head: Position, after: int, outflow: Outflow
) -> AsyncIterator[bytes]:
    service = service_of(request)
    with service.tails.feed(log, head) as feed:
        async for pieces in feed.patches(after, service.settings.heartbeat_seconds):
            try:
                await check_still(request)
            except Refusal:
                return  # who comes again is told why
            yield outflow.encode(pieces) if pieces else outflow.heartbeat
