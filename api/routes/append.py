"""Patches into a log: the body is decoded, checked and staged as it comes, and appended at its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from api.access import may
from api.bodies import Inflow, batches_of
from api.conditions import head_is_another, precondition_of, tag
from api.documents import AppendDocument
from api.negotiation import BODIES_OF_PATCHES, Coding, coding_of_body, format_of_body
from api.service import Service, service_of
from patchlog.errors import HeadMismatch
from patchlog.log.contract import PatchFormat, StagingPatchLog, Upload
from patchlog.log.documents import appended_document
from patchlog.log.records import Appended
from patchlog.log.reservation import PAUSE_SECONDS, Steps, step

__all__ = ["APPENDED", "Place", "answer_appended", "router", "take_upload"]

Place: TypeAlias = Callable[[StagingPatchLog, Upload], Steps[Appended]]
"""Appends an upload, which has come whole."""

router = APIRouter(tags=["patches"])

APPENDED: Final[dict[int | str, dict[str, Any]]] = {
    200: {"model": AppendDocument, "description": "They were there already: a retry"}
}


@dataclass(slots=True)
class _Arrival:
    """An upload on its way into a log. Its calls are made in threads, one at a time."""

    log: StagingPatchLog
    upload: Upload
    inflow: Inflow
    place: Place
    steps: Steps[Appended] | None = None
    """Of its append."""

    def take(self, batch: list[bytes], *, is_last: bool) -> Appended | None:
        """Take some of the body; at its end append it. None where it is not appended yet."""
        for chunk in batch:
            self.inflow.feed(chunk)
        if not is_last:
            return None
        self.inflow.finish()
        self.steps = self.place(self.log, self.upload)
        return step(self.steps)

    def go_on(self) -> Appended | None:
        """Append it, now that another upload may have left the next place."""
        assert self.steps is not None, "it has not come whole"
        return step(self.steps)


@router.post(
    "/logs/{log}/patches",
    summary="Append patches",
    status_code=201,
    response_model=AppendDocument,
    responses=APPENDED,
    openapi_extra={"requestBody": {"required": True, "content": BODIES_OF_PATCHES}},
    dependencies=[may("append")],
)
async def append_patches(request: Request, log: str) -> Response:
    """Append the patches of a stream, all or none, and answer when they are durable.

    `If-Match` names the head that the writer built on, `If-None-Match: *` wants an empty log. With neither, and without
    a header `prev` in the patch, it goes on whatever the head is. A retry answers with the version that there is.
    """
    service = service_of(request)
    format, coding, precondition = format_of_body(request), coding_of_body(request), precondition_of(request)

    def place(log: StagingPatchLog, upload: Upload) -> Steps[Appended]:
        return upload.appending(precondition.expected_head(log))

    return await answer_appended(service, log, lambda: take_upload(service, request, log, format, coding, place))


async def answer_appended(service: Service, log: str, append: Callable[[], Any]) -> Response:
    """Append, and say where the patches are. Raises Refusal, with the head, where that is another one."""
    try:
        appended: Appended = await append()
    except HeadMismatch as error:
        head = await service.run(lambda: service.log(log).head())
        raise head_is_another(error, head) from error
    service.count_append(log, appended)
    return JSONResponse(
        appended_document(appended),
        200 if appended.is_retry else 201,
        {"Location": f"/logs/{log}/patches/{appended.version}", "ETag": tag(appended.id)},
    )


async def take_upload(
    service: Service, request: Request, name: str, format: PatchFormat, coding: Coding | None, place: Place
) -> Appended:
    """Take the body of a request into a log; `place` appends it when all of it has come."""

    def begin(batch: list[bytes], *, is_last: bool) -> tuple[_Arrival, Appended | None]:
        arrival = _begun(service, name, format, coding, place)
        try:
            return arrival, arrival.take(batch, is_last=is_last)
        except BaseException:
            arrival.upload.discard()
            raise

    body = batches_of(request, service.settings)
    batch, is_last = await anext(body)
    first = batch
    arrival, appended = await service.upload(lambda: begin(first, is_last=is_last))
    work: Future[Appended | None] = Future()
    work.set_result(appended)
    try:
        while appended is None:
            if is_last:  # another upload has the next place: who waits for it has no thread
                await asyncio.sleep(PAUSE_SECONDS)
                work = service.submit_append(arrival.go_on)
            else:
                batch, is_last = await anext(body)
                work = service.submit_append(_taking(arrival, batch, is_last=is_last))
            appended = await asyncio.wrap_future(work)
    finally:
        service.metrics.received_bytes.inc(arrival.inflow.written)
        if appended is None:
            # Where the request was cut off, a thread may still be at work on it.
            service.submit_append(lambda: _discard_after(work, arrival.upload))
    return appended


def _begun(service: Service, name: str, format: PatchFormat, coding: Coding | None, place: Place) -> _Arrival:
    log = service.log(name)
    upload = log.stage(format)
    return _Arrival(log, upload, Inflow(coding, service.settings, upload.write), place)


def _taking(arrival: _Arrival, batch: list[bytes], *, is_last: bool) -> Callable[[], Appended | None]:
    return lambda: arrival.take(batch, is_last=is_last)


def _discard_after(work: Future[Any], upload: Upload) -> None:
    wait([work])
    upload.discard()
