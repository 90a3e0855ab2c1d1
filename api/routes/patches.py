"""The patches of a log: append them, and get them again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal, TypeAlias
from urllib.parse import urlencode

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import JSONResponse

from api.access import may
from api.answers import Streamed, sent
from api.bodies import Inflow, batches_of
from api.conditions import Precondition, has_current, precondition_of, tag
from api.documents import AppendDocument, PatchDocument, PatchesDocument
from api.errors import PROBLEMS, Problem, Refusal
from api.negotiation import (
    JELLY_PATCHES,
    JSON,
    PATCH_TEXT,
    Representation,
    chosen,
    coding_of_answer,
    coding_of_body,
    format_of_body,
)
from api.outgoing import Compressor, Outflow, Piece, as_stored, as_stream_of, as_text, cut
from api.service import Service, service_of
from patchlog.codec.options import StreamType
from patchlog.errors import HeadMismatch, UsageError
from patchlog.log.contract import PatchFormat, StagingPatchLog, Upload
from patchlog.log.documents import appended_document, head_document, record_document
from patchlog.log.records import Appended, PatchRecord

__all__ = ["MOST_VERSION", "StreamTypeParameter", "Version", "router"]

router = APIRouter(tags=["patches"])

MOST_VERSION: Final = (1 << 63) - 1
Version: TypeAlias = Annotated[int, Query(ge=0, le=MOST_VERSION)]
StreamTypeParameter: TypeAlias = Annotated[
    Literal["frame", "flat", "punctuated"] | None,
    Query(alias="stream-type", description="Of Jelly-Patch. What is stored is punctuated, and goes out as it is."),
]

_JSON_PAGE: Final = 1000
_MOST_FRAME_BYTES: Final = 64 << 20
_SMALLEST_COMPRESSED: Final = 1024

_NO_PATCH: Final = Problem(404, "patch-not-found", "There is no such patch")

_PATCH_BODIES: Final[dict[str, Any]] = {
    media_type: {"schema": {"type": "string", "format": "binary"}}
    for form in (JELLY_PATCHES, PATCH_TEXT)
    for media_type in form.media_types
}
_PATCHES_SCHEMA: Final = PatchesDocument.model_json_schema(ref_template="#/components/schemas/{model}")


@dataclass(frozen=True, slots=True)
class _Arrival:
    """An upload on its way into a log. Its calls are made in threads, one at a time."""

    log: StagingPatchLog
    upload: Upload
    inflow: Inflow
    precondition: Precondition

    def take(self, batch: list[bytes], *, is_last: bool) -> Appended | None:
        """Take some of the body; at its end append it."""
        for chunk in batch:
            self.inflow.feed(chunk)
        if not is_last:
            return None
        self.inflow.finish()
        return self.upload.append(self.precondition.expected_head(self.log))


@router.post(
    "/logs/{log}/patches",
    summary="Append patches",
    status_code=201,
    response_model=AppendDocument,
    responses={200: {"model": AppendDocument, "description": "They were there already: a retry"}},
    openapi_extra={"requestBody": {"required": True, "content": _PATCH_BODIES}},
    dependencies=[may("append")],
)
async def append_patches(request: Request, log: str) -> Response:
    """Append the patches of a stream, all or none, and answer when they are durable.

    `If-Match` names the head that the writer built on, `If-None-Match: *` wants an empty log. With neither, and without
    a header `prev` in the patch, it goes on whatever the head is. A retry answers with the version that there is.
    """
    service = service_of(request)
    try:
        appended = await _appended(service, request, log)
    except HeadMismatch as error:
        head = await service.run(lambda: service.log(log).head())
        tags = {} if head.id is None else {"ETag": tag(head.id)}
        problem = replace(PROBLEMS[HeadMismatch], headers=tags)
        heads = {"expected_head": error.expected_head, "actual_head": error.actual_head}
        raise Refusal(problem, str(error), head=head_document(head), **heads) from error
    service.metrics.count(appended)
    return JSONResponse(
        appended_document(appended),
        200 if appended.is_retry else 201,
        {"Location": f"/logs/{log}/patches/{appended.version}", "ETag": tag(appended.id)},
    )


async def _appended(service: Service, request: Request, name: str) -> Appended:
    format, coding, precondition = format_of_body(request), coding_of_body(request), precondition_of(request)

    def begin(batch: list[bytes], *, is_last: bool) -> tuple[_Arrival, Appended | None]:
        arrival = _begun(service, name, format, coding, precondition)
        try:
            return arrival, arrival.take(batch, is_last=is_last)
        except BaseException:
            arrival.upload.discard()
            raise

    body = batches_of(request, service.settings)
    batch, is_last = await anext(body)
    first = batch
    arrival, appended = await asyncio.wrap_future(service.submit_append(lambda: begin(first, is_last=is_last)))
    work: Future[Appended | None] = Future()
    work.set_result(appended)
    try:
        while appended is None:
            batch, is_last = await anext(body)
            work = service.submit_append(_taking(arrival, batch, is_last=is_last))
            appended = await asyncio.wrap_future(work)
    finally:
        service.metrics.received_bytes.inc(arrival.inflow.written)
        if appended is None:
            # Where the request was cut off, a thread may still be at work on it.
            service.submit_append(lambda: _discard_after(work, arrival.upload))
    return appended


def _begun(service: Service, name: str, format: PatchFormat, coding: Any, precondition: Precondition) -> _Arrival:
    log = service.log(name)
    upload = log.stage(format)
    return _Arrival(log, upload, Inflow(coding, service.settings, upload.write), precondition)


def _discard_after(work: Future[Any], upload: Upload) -> None:
    wait([work])
    upload.discard()


def _taking(arrival: _Arrival, batch: list[bytes], *, is_last: bool) -> Any:
    return lambda: arrival.take(batch, is_last=is_last)


@router.get(
    "/logs/{log}/patches",
    summary="Get a range of patches",
    response_class=Response,
    responses={200: {"content": _PATCH_BODIES | {"application/json": {"schema": _PATCHES_SCHEMA}}}},
    dependencies=[may("read")],
)
async def read_patches(
    request: Request,
    log: str,
    after: Version = 0,
    until: Annotated[int | None, Query(ge=0, le=MOST_VERSION)] = None,
    limit: Annotated[int | None, Query(ge=0, le=MOST_VERSION)] = None,
    stream_type: StreamTypeParameter = None,
) -> Response:
    """Get the patches behind a version, up to the head, `limit` of them, or version `until`.

    They come as one Jelly-Patch stream, as one RDF Patch text, or as a list of descriptions in JSON. Where there are
    more than `limit`, the header `Link` says where the rest is.
    """
    service = service_of(request)
    form = chosen(request, (JELLY_PATCHES, PATCH_TEXT, JSON))
    if form is JSON:
        limit = min(limit if limit is not None else _JSON_PAGE, _JSON_PAGE)
    found = await service.run(lambda: _range_of(service, log, after, until, limit, as_records=form is JSON))
    headers = {"Cache-Control": "no-cache", "Vary": "Accept, Accept-Encoding"}
    following = None
    if found.last < found.end:
        kept = [(name, value) for name, value in request.query_params.multi_items() if name not in ("after", "limit")]
        parameters = [("after", str(found.last)), ("limit", str(limit)), *kept]
        following = f"/logs/{log}/patches?{urlencode(parameters)}"
        headers["Link"] = f'<{following}>; rel="next"'
    if form is JSON:
        document = {"patches": [record_document(record) for record in found.records], "next": following}
        return JSONResponse(document, headers=headers)
    outflow = _outflow(found, form, stream_type)
    return _streamed(service, request, found, form, outflow, headers)


@router.get(
    "/logs/{log}/patches/{patch}",
    summary="Get a patch",
    response_class=Response,
    responses={
        200: {"content": _PATCH_BODIES | {"application/json": {"schema": PatchDocument.model_json_schema()}}},
        304: {"description": "The client has it"},
    },
    dependencies=[may("read")],
)
async def read_patch(
    request: Request,
    log: str,
    patch: Annotated[str, Path(description="Its version or its id.")],
    stream_type: StreamTypeParameter = None,
) -> Response:
    """Get one patch, which never changes. As Jelly-Patch it is a whole stream; in JSON it is described."""
    service = service_of(request)
    form = chosen(request, (JELLY_PATCHES, PATCH_TEXT, JSON))
    found = await service.run(lambda: _one(service, log, patch, as_record=form is JSON))
    record = found.records[0]
    coding = coding_of_answer(request) if record.bytes >= _SMALLEST_COMPRESSED and form is not JSON else None
    kind = {JELLY_PATCHES: stream_type or "punctuated", PATCH_TEXT: "text", JSON: "json"}[form]
    variant = "" if kind == "punctuated" else f"-{kind}"
    current = tag(f"{record.content_hash.hex()}{variant}{f'-{coding}' if coding else ''}")
    scope = "public" if service.access.is_open else "private"
    headers = {
        "ETag": current,
        "Cache-Control": f"{scope}, max-age=31536000, immutable",
        "Vary": "Accept, Accept-Encoding",
        "Patchlog-Version": str(record.version),
    }
    if has_current(request, current):
        return Response(status_code=304, headers=headers)
    if form is JSON:
        return JSONResponse(record_document(record), headers=headers)
    if kind == "punctuated" and coding is None:
        headers["Content-Length"] = str(record.bytes)
    outflow = as_text(punctuated=False) if form is PATCH_TEXT else _outflow(found, form, stream_type)
    return _streamed(service, request, found, form, outflow, headers, compressible=coding is not None)


@dataclass(slots=True)
class _Found:
    """Patches that were asked for: the first of their pieces, and where the rest comes from."""

    log: StagingPatchLog
    last: int
    end: int
    """The last version that there is, or that was asked for."""
    records: list[PatchRecord]
    first: list[Piece]
    rest: Iterator[list[Piece]]
    count: int


def _range_of(
    service: Service, name: str, after: int, until: int | None, limit: int | None, *, as_records: bool
) -> _Found:
    log = service.log(name)
    head = log.head().version
    end = head if until is None else min(head, until)
    last = end if limit is None else min(end, after + limit)
    patches = log.read(after, until=last)
    if as_records:
        records = [logged.record for logged in patches]
        return _Found(log, last, end, records, [], iter(()), len(records))
    pieces = cut(patches)
    return _Found(log, last, end, [], next(pieces, []), pieces, max(0, last - after))


def _one(service: Service, name: str, patch: str, *, as_record: bool) -> _Found:
    log = service.log(name)
    wanted: int | str = int(patch) if patch.isascii() and patch.isdigit() and len(patch) < 19 else patch
    record = log.find(wanted)
    if record is None:
        raise Refusal(_NO_PATCH, f"the log {name!r} has no patch {patch}; its head is {log.head().version}")
    # The record of a patch that was truncated away is there still.
    pieces = iter(()) if as_record else cut(log.read(record.version - 1, until=record.version))
    return _Found(log, record.version, record.version, [record], next(pieces, []), pieces, 1)


def _outflow(found: _Found, form: Representation, stream_type: str | None) -> Outflow:
    if form is PATCH_TEXT:
        return as_text()
    if stream_type in (None, "punctuated"):
        return as_stored()
    if stream_type == "flat":
        if found.count > 1:
            raise UsageError("a flat stream holds one patch: ask for patches one by one, or for stream-type=frame")
        kind = StreamType.FLAT
    else:
        kind = StreamType.FRAME
    found.rest = _frames_checked(found.rest) if kind is StreamType.FRAME else found.rest
    return as_stream_of(kind, found.log.describe().options.patch_options)


def _frames_checked(rest: Iterator[list[Piece]]) -> Iterator[list[Piece]]:
    """A frame is made in memory, so a patch may be too large for one."""
    size = 0
    for pieces in rest:
        for piece in pieces:
            size = 0 if piece.ends_patch else size + len(piece.data)
            if size > _MOST_FRAME_BYTES:
                raise UsageError("a patch is too large for one frame: ask for stream-type=punctuated")
        yield pieces


def _streamed(
    service: Service,
    request: Request,
    found: _Found,
    form: Representation,
    outflow: Outflow,
    headers: dict[str, str],
    *,
    compressible: bool = True,
) -> Response:
    coding = coding_of_answer(request) if compressible else None
    if coding is not None:
        headers = headers | {"Content-Encoding": coding}
    content = sent(service.run, found.first, found.rest, outflow, Compressor(coding))
    return Streamed(content, form.media_type, headers)
