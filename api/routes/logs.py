"""Logs by name: list, create, describe, delete, truncate, verify."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse

from api.access import may, principal_of, readable_logs
from api.conditions import check_named, tag
from api.documents import (
    LogDeletionDocument,
    LogDocument,
    LogsDocument,
    NewLogDocument,
    PositionDocument,
    TruncationDocument,
    VerificationDocument,
)
from api.jobs import Job
from api.parameters import LAST_NAME, MOST_VERSION, Hash, LogId, position_of
from api.rdf_delta.door import door_of
from api.service import Service, service_of
from patchlog.errors import LogAlreadyExists
from patchlog.log.documents import description_document, position_document, verification_document
from patchlog.log.position import Position
from patchlog.log.records import LogDescription, LogOptions, Verification

__all__ = ["router"]

router = APIRouter(tags=["logs"])

_PAGE = 100
_MOST = 1000


@router.get("/logs", summary="List the logs", response_model=LogsDocument)
async def list_logs(
    request: Request,
    after: Annotated[str, Query(pattern=LAST_NAME, description="The last name of the page before.")] = "",
    limit: Annotated[int, Query(ge=1, le=_MOST)] = _PAGE,
) -> Response:
    """List the logs that the key may read, by name, a page at a time."""
    service = service_of(request)
    principal = await principal_of(request)
    found = await service.run(lambda: readable_logs(service.store, principal, after, limit + 1))
    page = found[:limit]
    following = None
    if len(found) > limit:
        following = f"/logs?{urlencode({'after': page[-1].name, 'limit': limit})}"
    document = {"logs": [description_document(log) for log in page], "next": following}
    headers = {"Link": f'<{following}>; rel="next"'} if following else {}
    return JSONResponse(document, headers=headers)


@router.put(
    "/logs/{log}",
    summary="Create a log",
    response_model=LogDocument,
    responses={201: {"model": LogDocument, "description": "It is new"}},
    dependencies=[may("admin")],
)
async def create_log(request: Request, log: str, document: NewLogDocument | None = None) -> Response:
    """Create a log. One that is there already stays as it is; where other options are asked for, that is a conflict."""
    service = service_of(request)
    description, is_new = await service.commit(lambda: _created(service, log, document or NewLogDocument()))
    return _described(description, 201 if is_new else 200)


@router.get("/logs/{log}", summary="Describe a log", response_model=LogDocument, dependencies=[may("read")])
async def describe_log(request: Request, log: str) -> Response:
    """Describe a log as it stands. The entity tag is the id of its head."""
    service = service_of(request)
    return _described(await service.run(lambda: service.log(log).describe()))


@router.get(
    "/logs/{log}/position",
    summary="Get or check a position",
    response_model=PositionDocument,
    dependencies=[may("read")],
)
async def log_position(
    request: Request,
    log: str,
    version: Annotated[int | None, Query(ge=0, le=MOST_VERSION, description="The head, where it is missing.")] = None,
    hash: Hash = None,
    log_id: LogId = None,
) -> Response:
    """Get the id of the log and the chain hash at a version: what a reader keeps of how far it has read.

    With `hash` and `log_id` the log is checked: the answer is 409 where it is another one, was restored to an older
    state, or has another history.
    """
    service = service_of(request)

    def found() -> Position:
        patch_log = service.log(log)
        if version is not None:
            patch_log.check(position_of(version, hash, log_id))
            return patch_log.position(version)
        position = patch_log.position()
        patch_log.check(position_of(position.version, hash, log_id))
        return position

    return JSONResponse(position_document(await service.run(found)), headers={"Cache-Control": "no-store"})


@router.delete("/logs/{log}", summary="Delete a log", status_code=204, dependencies=[may("admin")])
async def delete_log(request: Request, log: str, document: LogDeletionDocument) -> Response:
    """Delete a log with all of its patches. The document names it: `{"delete": "NAME"}`.

    Its name is free at once; its room is given back by a job.
    """
    check_named(document.delete, log)
    service = service_of(request)
    service.log(log)  # which checks the name
    await service.delete(log)
    return Response(status_code=204)


@router.post(
    "/logs/{log}/truncate",
    summary="Forget old patches",
    response_model=LogDocument,
    dependencies=[may("admin")],
)
async def truncate_log(request: Request, log: str, truncation: TruncationDocument) -> Response:
    """Forget the bytes of all patches below a version. Their versions, ids and hashes stay.

    A snapshot has to stand for them, and no consumer to need them still, unless by `force`. The document says which:
    `{"before": V}`, or `{"before": null}` for all that nobody needs.
    """
    service = service_of(request)
    await door_of(request).positions.expire(log)

    def truncate(job: Job) -> LogDescription:
        return service.log(log).truncate_before(truncation.before, force=truncation.force, meanwhile=job.progress)

    return _described(await service.jobs.do(service.builds, "truncate", log, truncate, request))


@router.get(
    "/logs/{log}/verify",
    summary="Check the chain",
    response_model=VerificationDocument,
    dependencies=[may("read")],
)
async def verify_log(request: Request, log: str) -> Response:
    """Compute all hashes anew and name the first version that is bad."""
    service = service_of(request)
    verification = await service.jobs.do(service.works, "verify", log, lambda job: _verified(service, job), request)
    return JSONResponse(verification_document(verification), headers={"Cache-Control": "no-store"})


def _described(description: LogDescription, status: int = 200) -> Response:
    headers = {"Cache-Control": "no-cache"}
    if description.head.id is not None:
        headers["ETag"] = tag(description.head.id)
    if status == 201:
        headers["Location"] = f"/logs/{description.name}"
    return JSONResponse(description_document(description), status, headers)


def _verified(service: Service, job: Job) -> Verification:
    log = service.log(job.log)
    described = log.describe()
    job.progress(0, described.patches)
    return log.verify(meanwhile=job.progress)


def _created(service: Service, name: str, document: NewLogDocument) -> tuple[LogDescription, bool]:
    try:
        return service.store.create(name, document.of(LogOptions())), True
    except LogAlreadyExists:
        description = service.log(name).describe()
        if document.of(description.options) != description.options:
            raise LogAlreadyExists(
                f"there is a log {name!r} already, with other options; they are fixed when it is created"
            ) from None
        return description, False
