"""The snapshots of a log: list them, have one made, get it, start a log with a dataset."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import JSONResponse

from api.access import may
from api.answers import Streamed
from api.bodies import pulled
from api.conditions import check_named, has_current, tag
from api.documents import (
    BuildDocument,
    SnapshotDeletionDocument,
    SnapshotDocument,
    SnapshotsDocument,
    SnapshotVerificationDocument,
)
from api.errors import Refusal
from api.jobs import Job, client_is_gone
from api.negotiation import JELLY_QUADS, JSON, chosen, coding_of_answer, coding_of_body
from api.outgoing import Compressor
from api.parameters import MOST_VERSION
from api.service import Service, service_of
from api.snapshot_forms import FORMS, as_form, part_of, taken_as, taken_from
from api.tracing import working
from patchlog.errors import SnapshotBusy, SnapshotNotFound
from patchlog.log.documents import build_document, snapshot_document
from patchlog.log.position import Position
from patchlog.log.records import Snapshot, SnapshotBuild
from patchlog.log.snapshots.index import Begun
from patchlog.log.snapshots.store import LocalSnapshots

__all__ = ["router"]

router = APIRouter(tags=["snapshots"])

_NO_STORE: Final = {"Cache-Control": "no-store"}
_PREFERRED_WAIT: Final = re.compile(r"(?:^|[,;\s])wait=(\d{1,9})")
_BODIES: Final[dict[str, Any]] = {form.media_type: {"schema": {"type": "string", "format": "binary"}} for form in FORMS}
_Which = Annotated[str, Path(description="Its version, or `latest`.", pattern=r"^([0-9]{1,18}|latest)$")]


@router.get(
    "/logs/{log}/snapshots",
    summary="List the snapshots",
    response_model=SnapshotsDocument,
    dependencies=[may("read")],
)
async def list_snapshots(request: Request, log: str) -> Response:
    """List the snapshots by version, and behind them one that is being made or could not be made."""
    service = service_of(request)
    snapshots = _snapshots(service, log)

    def documents() -> list[dict[str, Any]]:
        pending = snapshots.pending()  # before the list: what is complete by then is in that
        there = snapshots.list()
        found = [snapshot_document(snapshot) for snapshot in there]
        if pending is None or any(snapshot.version == pending.version for snapshot in there):
            return found
        return [*found, build_document(pending)]

    return JSONResponse({"snapshots": await service.run(documents)}, headers=_NO_STORE)


@router.post(
    "/logs/{log}/snapshots",
    summary="Have a snapshot made",
    status_code=202,
    response_model=SnapshotDocument,
    responses={
        200: {"model": SnapshotDocument, "description": "It is there"},
        201: {"model": SnapshotDocument, "description": "It was made while the request waited"},
    },
    dependencies=[may("append")],
)
async def build_snapshot(
    request: Request,
    log: str,
    wanted: BuildDocument | None = None,
    wait: Annotated[float, Query(ge=0, description="Seconds to wait for it.")] = 0,
) -> Response:
    """Have the snapshot at a version made in the background, or at the head. `Location` says where its state is.

    With `wait`, or the header `Prefer: wait=…`, the answer comes when it is made, or when the time is up.
    """
    service = service_of(request)
    snapshots = _snapshots(service, log)
    version = None if wanted is None else wanted.version
    service.jobs.check_room()
    try:
        begun = await service.commit(lambda: snapshots.begin(version))
    except SnapshotBusy as error:
        if version is None:
            version = (await service.run(service.log(log).head)).version
        if error.version != version:
            raise
        if under_way := service.jobs.running("build", log):
            under_way.is_kept = True  # whoever else leaves
        return _accepted(log, version)
    if isinstance(begun, Snapshot):
        return _described(log, begun, 200)
    seconds = min(max(wait, _preferred_wait(request)), service.settings.max_wait_seconds)
    job = _build(service, log, snapshots, begun)
    job.is_kept = seconds == 0
    if seconds and await service.jobs.wait(job, client_is_gone(request), seconds):
        return _described(log, job.result(), 201)
    job.is_kept = True
    return _accepted(log, begun.version)


@router.get(
    "/logs/{log}/snapshots/{snapshot}",
    summary="Get a snapshot",
    response_class=Response,
    responses={
        200: {"content": _BODIES | {"application/json": {"schema": SnapshotDocument.model_json_schema()}}},
        206: {"content": _BODIES, "description": "The bytes that were asked for"},
        304: {"description": "The client has it"},
    },
    dependencies=[may("read")],
)
async def read_snapshot(request: Request, log: str, snapshot: _Which) -> Response:
    """Get the dataset at a version. As Jelly-RDF it is what is stored, and comes in parts too; in JSON it is described.

    `Patchlog-Position` says from where to go on with the patches: log id, version and chain hash.
    """
    service = service_of(request)
    form = chosen(request, (*FORMS, JSON))
    snapshots = _snapshots(service, log)
    found = await service.run(lambda: _found(snapshots, snapshot, described=form is JSON))
    if isinstance(found, SnapshotBuild):
        return JSONResponse(build_document(found), headers=_NO_STORE | {"Retry-After": "1"})
    if form is JSON:
        return _described(log, found, 200)
    coding = None if form is JELLY_QUADS else coding_of_answer(request)
    variant = "".join(f"-{part}" for part in (None if form is JELLY_QUADS else form.names[0], coding) if part)
    current = tag(found.sha256.hex() + variant)
    headers = _headers(service, log, found, is_numbered=snapshot != "latest") | {"ETag": current}
    if has_current(request, current):
        return Response(status_code=304, headers=headers)
    if form is JELLY_QUADS:
        return await _stored(request, service, snapshots, found, headers, current)
    if coding is not None:
        headers["Content-Encoding"] = coding
    chunks = as_form(await service.stream(lambda: snapshots.read(found.version)), form)
    return Streamed(_compressed(service, chunks, Compressor(coding)), form.media_type, headers)


@router.put(
    "/logs/{log}/snapshots/{snapshot}",
    summary="Start a log with a dataset",
    status_code=201,
    response_model=SnapshotDocument,
    responses={200: {"model": SnapshotDocument, "description": "It is what the log says"}},
    openapi_extra={"requestBody": {"required": True, "content": _BODIES}},
    dependencies=[may("admin")],
)
async def put_snapshot(request: Request, log: str, snapshot: Annotated[int, Path(ge=0, le=MOST_VERSION)]) -> Response:
    """Take a dataset in. At version 0 of an empty log it is what the log starts with.

    At another version it is compared with what the log says, and becomes no part of it.
    """
    service = service_of(request)
    snapshots = _snapshots(service, log)
    sent_as, format = taken_as(request)
    has_come = asyncio.Event()
    checks: list[Callable[[], object]] = []

    def check() -> None:
        for one in checks:
            one()

    body = taken_from(pulled(request, service.settings, coding_of_body(request), has_come.set, check), sent_as)
    was_there = await service.run(lambda: snapshots.find(snapshot)) is not None

    async def is_gone() -> None:
        await has_come.wait()  # until then it is the body that breaks off
        await client_is_gone(request)

    def take(job: Job) -> Snapshot:
        checks.append(job.check)
        return snapshots.put(snapshot, body, format, job.check)

    job = service.jobs.begin(service.takings, "put", log, take)
    await service.jobs.wait(job, is_gone())
    taken: Snapshot = job.result()
    return _described(log, taken, 200 if was_there else 201)


@router.delete(
    "/logs/{log}/snapshots/{snapshot}",
    summary="Delete a snapshot",
    status_code=204,
    dependencies=[may("admin")],
)
async def delete_snapshot(
    request: Request,
    log: str,
    snapshot: Annotated[int, Path(ge=0, le=MOST_VERSION)],
    document: SnapshotDeletionDocument,
) -> Response:
    """Delete a snapshot that stands for nothing that is gone. The document names it: `{"delete": VERSION}`."""
    check_named(document.delete, snapshot)
    service = service_of(request)
    await service.commit(lambda: _snapshots(service, log).delete(snapshot))
    return Response(status_code=204)


@router.get(
    "/logs/{log}/snapshots/{snapshot}/verify",
    summary="Check a snapshot",
    response_model=SnapshotVerificationDocument,
    dependencies=[may("read")],
)
async def verify_snapshot(request: Request, log: str, snapshot: _Which) -> Response:
    """Compute the hash of all bytes anew and compare it with the one that was stored."""
    service = service_of(request)
    snapshots = _snapshots(service, log)

    def verified(job: Job) -> dict[str, Any]:
        found = _found(snapshots, snapshot, described=False)
        assert isinstance(found, Snapshot)
        job.progress(0, found.bytes)
        return {
            "version": found.version,
            "sound": snapshots.verify(found.version, job.progress),
            "sha256": found.sha256.hex(),
        }

    document = await service.jobs.do(service.works, "verify-snapshot", log, verified, request)
    return JSONResponse(document, headers=_NO_STORE)


def _snapshots(service: Service, log: str) -> LocalSnapshots:
    snapshots: Any = service.log(log).snapshots
    local: LocalSnapshots = snapshots
    return local


def _found(snapshots: LocalSnapshots, which: str, *, described: bool) -> Snapshot | SnapshotBuild:
    """The snapshot, or for who wants a description, what is known of one that is not there."""
    pending = snapshots.pending() if described else None  # before the list: what is complete by then is in that
    there = snapshots.list()
    if which == "latest":
        if there:
            return there[-1]
        raise SnapshotNotFound("the log has no snapshots yet")
    version = int(which)
    for snapshot in there:
        if snapshot.version == version:
            return snapshot
    if pending is not None and pending.version == version:
        return pending
    raise SnapshotNotFound(f"the log has no snapshot at version {version}")


def _build(service: Service, log: str, snapshots: LocalSnapshots, begun: Begun) -> Job:
    """Have a snapshot made that was begun. What is wrong with it is kept with its state, which can be asked for."""

    def built(job: Job) -> Snapshot:
        with working("make snapshot", log):
            return snapshots.build_begun(begun, job.check)

    def dropped(reason: str) -> None:
        service.commits.submit(lambda: snapshots.give_up(begun, reason))

    try:
        return service.jobs.begin(service.builds, "build", log, built, dropped=dropped)
    except Refusal as refusal:
        dropped(refusal.detail)
        raise


def _preferred_wait(request: Request) -> int:
    found = _PREFERRED_WAIT.search(request.headers.get("prefer", ""))
    return int(found[1]) if found else 0


def _accepted(log: str, version: int) -> Response:
    place = f"/logs/{log}/snapshots/{version}?format=json"
    headers = _NO_STORE | {"Location": place, "Retry-After": "1"}
    return JSONResponse(build_document(SnapshotBuild(version)), 202, headers)


def _described(log: str, snapshot: Snapshot, status: int) -> Response:
    headers = _NO_STORE | {"Location": f"/logs/{log}/snapshots/{snapshot.version}", "ETag": tag(snapshot.sha256.hex())}
    return JSONResponse(snapshot_document(snapshot), status, headers)


def _headers(service: Service, log: str, snapshot: Snapshot, *, is_numbered: bool) -> dict[str, str]:
    scope = "public" if service.access.is_open else "private"
    after = {"after": snapshot.version, "hash": snapshot.hash.hex(), "log_id": snapshot.log_id}
    headers = {
        "Cache-Control": f"{scope}, max-age=31536000, immutable" if is_numbered else "no-cache",
        "Vary": "Accept, Accept-Encoding",
        "Patchlog-Version": str(snapshot.version),
        "Patchlog-Position": str(Position.of(snapshot)),
        "Link": f'</logs/{log}/stream?{urlencode(after)}>; rel="next"',
    }
    return headers if snapshot.id is None else headers | {"Patchlog-Id": snapshot.id}


async def _stored(
    request: Request,
    service: Service,
    snapshots: LocalSnapshots,
    snapshot: Snapshot,
    headers: dict[str, str],
    current: str,
) -> Response:
    part = part_of(request, snapshot.bytes, current)
    begin, end = part or (0, snapshot.bytes)
    headers |= {"Accept-Ranges": "bytes", "Content-Length": str(end - begin)}
    if part is not None:
        headers["Content-Range"] = f"bytes {begin}-{end - 1}/{snapshot.bytes}"
    chunks = _first(await service.stream(lambda: snapshots.read(snapshot.version, start=begin)), end - begin)
    answer = Streamed(_compressed(service, chunks, Compressor(None)), JELLY_QUADS.media_type, headers)
    answer.status_code = 200 if part is None else 206
    return answer


def _first(chunks: Iterator[bytes], left: int) -> Iterator[bytes]:
    with closing(chunks):  # type: ignore[type-var]  # all are generators
        for chunk in chunks:
            yield chunk[:left]
            left -= len(chunk)
            if left <= 0:
                return


async def _compressed(service: Service, chunks: Iterator[bytes], compressor: Compressor) -> AsyncIterator[bytes]:
    """Yield a stream. Reading, converting and compressing are done in threads."""

    def following() -> bytes | None:
        chunk = next(chunks, None)
        return None if chunk is None else compressor.compress(chunk)

    while (data := await service.stream(following)) is not None:
        if data:
            yield data
    if rest := compressor.finish():
        yield rest
