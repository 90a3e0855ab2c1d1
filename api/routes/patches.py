"""The patches of a log, to be read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Final, NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import JSONResponse

from api.access import may
from api.answers import Outgoing, answer_patches
from api.conditions import has_current, immutable, tag
from api.documents import PatchDocument, PatchesDocument
from api.errors import NO_PATCH, Refusal
from api.negotiation import (
    BODIES_OF_PATCHES,
    JELLY_PATCHES,
    JSON,
    PATCH_TEXT,
    chosen,
    coding_of_answer,
)
from api.parameters import MOST_VERSION, Hash, LogId, StreamType, Version, check_stream_type, position_of
from api.service import Service, service_of
from patchlog.errors import PositionGone
from patchlog.log.documents import Document, record_document
from patchlog.log.history import headers_of
from patchlog.log.position import Position
from patchlog.log.records import LoggedPatch, PatchRecord

__all__ = ["router"]

router = APIRouter(tags=["patches"])

_JSON_PAGE: Final = 1000
_OF_THIS_PAGE: Final = frozenset({"after", "limit", "hash"})
_SMALLEST_COMPRESSED: Final = 1024
_PATCHES_SCHEMA: Final = PatchesDocument.model_json_schema(ref_template="#/components/schemas/{model}")


@router.get(
    "/logs/{log}/patches",
    summary="Get a range of patches",
    response_class=Response,
    responses={200: {"content": BODIES_OF_PATCHES | {"application/json": {"schema": _PATCHES_SCHEMA}}}},
    dependencies=[may("read")],
)
async def read_patches(
    request: Request,
    log: str,
    after: Version = 0,
    until: Annotated[int | None, Query(ge=0, le=MOST_VERSION)] = None,
    limit: Annotated[int | None, Query(ge=0, le=MOST_VERSION)] = None,
    hash: Hash = None,
    log_id: LogId = None,
    stream_type: StreamType = None,
) -> Response:
    """Get the patches after a version, up to the head, `limit` of them, or version `until`.

    With `hash`, the chain hash at `after`, and `log_id` the log is checked first: the answer is 409 where it is, or has
    become, another one.

    They come as one Jelly-Patch stream, as one RDF Patch text, or as a list of descriptions in JSON. Where there are
    more than `limit`, the header `Link` says where the rest is.
    """
    service = service_of(request)
    form = chosen(request, (JELLY_PATCHES, PATCH_TEXT, JSON))
    check_stream_type(stream_type, is_jelly=form is JELLY_PATCHES)
    if form is JSON:
        limit = min(limit if limit is not None else _JSON_PAGE, _JSON_PAGE)
    wanted = _Wanted(form is JSON, stream_type)
    position = position_of(after, hash, log_id)
    found = await service.stream(lambda: _range_of(service, log, position, until, limit, wanted))
    headers = {"Cache-Control": "no-cache", "Vary": "Accept, Accept-Encoding"}
    following = None
    if found.last < found.end and limit != 0:  # of which every page would lead to itself
        kept = [(name, value) for name, value in request.query_params.multi_items() if name not in _OF_THIS_PAGE]
        parameters = [("after", str(found.last)), ("limit", str(limit)), *kept]
        following = f"/logs/{log}/patches?{urlencode(parameters)}"
        headers["Link"] = f'<{following}>; rel="next"'
    if found.outgoing is None:
        return JSONResponse({"patches": found.documents, "next": following}, headers=headers)
    return answer_patches(service, request, found.outgoing, form, headers)


@router.get(
    "/logs/{log}/patches/{patch}",
    summary="Get a patch",
    response_class=Response,
    responses={
        200: {"content": BODIES_OF_PATCHES | {"application/json": {"schema": PatchDocument.model_json_schema()}}},
        304: {"description": "The client has it"},
    },
    dependencies=[may("read")],
)
async def read_patch(
    request: Request,
    log: str,
    patch: Annotated[str, Path(description="Its version or its id.")],
    stream_type: StreamType = None,
) -> Response:
    """Get one patch, which never changes. As Jelly-Patch it is a whole stream; in JSON it is described."""
    service = service_of(request)
    form = chosen(request, (JELLY_PATCHES, PATCH_TEXT, JSON))
    check_stream_type(stream_type, is_jelly=form is JELLY_PATCHES)
    wanted = _Wanted(form is JSON, stream_type)
    record, outgoing, document = await service.run(lambda: _one(service, log, patch, wanted))
    coding = coding_of_answer(request) if record.bytes >= _SMALLEST_COMPRESSED and form is not JSON else None
    kind = {JELLY_PATCHES: stream_type or "punctuated", PATCH_TEXT: "text", JSON: "json"}[form]
    variant = "" if kind == "punctuated" else f"-{kind}"
    current = tag(f"{record.content_hash.hex()}{variant}{f'-{coding}' if coding else ''}")
    headers = {
        "ETag": current,
        "Cache-Control": immutable(is_open=service.access.is_open),
        "Vary": "Accept, Accept-Encoding",
        "Patchlog-Version": str(record.version),
    }
    if has_current(request, current):
        return Response(status_code=304, headers=headers)
    if outgoing is None:
        return JSONResponse(document, headers=headers)
    if kind == "punctuated" and coding is None:
        headers["Content-Length"] = str(record.bytes)
    return answer_patches(service, request, outgoing, form, headers, compressible=coding is not None)


class _Wanted(NamedTuple):
    """Patches themselves, or what there is to say of them."""

    is_described: bool
    stream_type: str | None


@dataclass(slots=True)
class _Range:
    """Patches that were asked for, up to `last`; `end` is the last that there is, or that was asked for."""

    last: int
    end: int
    outgoing: Outgoing | None = None
    documents: list[Document] = field(default_factory=list)


def _range_of(
    service: Service, name: str, position: Position, until: int | None, limit: int | None, wanted: _Wanted
) -> _Range:
    log = service.log(name)
    after = position.version
    head = log.head().version
    end = head if until is None else min(head, until)
    last = end if limit is None else min(end, after + limit)
    if wanted.is_described:
        return _Range(last, end, documents=[_described(logged) for logged in log.read(position, until=last)])
    if wanted.stream_type in (None, "punctuated"):
        return _Range(last, end, Outgoing.of_stored(log.read_stored(position, until=last)))
    return _Range(last, end, Outgoing.of(log, log.read(position, until=last), max(0, last - after), wanted.stream_type))


def _one(
    service: Service, name: str, patch: str, wanted: _Wanted
) -> tuple[PatchRecord, Outgoing | None, Document | None]:
    log = service.log(name)
    record: PatchRecord | None = None
    version = int(patch) if patch.isascii() and patch.isdigit() and len(patch) < 19 else None
    if version is None or wanted.is_described:
        record = log.find(patch if version is None else version)
        version = 0 if record is None else record.version
    # To read a patch says all that there is to know of it.
    try:
        logged = next(log.read(version - 1, limit=1), None) if version else None
    except PositionGone:
        if record is None or not wanted.is_described:
            raise
        # What is known of a patch that was truncated away is there still.
        return record, None, record_document(record) | {"headers": None}
    if logged is None:
        raise Refusal(NO_PATCH, f"the log {name!r} has no patch {patch}; its head is {log.head().version}")
    if wanted.is_described:
        return logged.record, None, _described(logged)
    return logged.record, Outgoing.of(log, [logged], 1, wanted.stream_type, is_alone=True), None


def _described(logged: LoggedPatch) -> Document:
    return record_document(logged.record) | {"headers": headers_of(logged)}
