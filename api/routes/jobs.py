"""Long work of this process: what there is, how far it is, and its end before time."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Path, Request, Response
from fastapi.responses import JSONResponse

from api.access import principal_of, require
from api.audit import note
from api.documents import JobDocument, JobsDocument
from api.errors import Problem, Refusal
from api.jobs import Job
from api.principal import Principal
from api.service import service_of

__all__ = ["readable_jobs", "router"]

router = APIRouter(tags=["jobs"])

_NO_STORE: Final = {"Cache-Control": "no-store"}
_NO_JOB: Final = Problem(404, "job-not-found", "There is no such job")
_KEPT: Final = Problem(409, "job-not-cancellable", "The job cannot be cancelled")
_Id = Annotated[str, Path(description="Its id.", pattern=r"^[0-9a-f]{1,32}$")]


@router.get("/jobs", summary="List the jobs", response_model=JobsDocument)
async def list_jobs(request: Request) -> Response:
    """List the long work of this process on the logs that the key may read, the newest first.

    What has ended is listed for an hour.
    """
    principal = await principal_of(request)
    documents = [job.document() for job in readable_jobs(service_of(request).jobs.list(), principal)]
    return JSONResponse({"jobs": documents}, headers=_NO_STORE)


@router.get("/jobs/{job}", summary="Describe a job", response_model=JobDocument)
async def describe_job(request: Request, job: _Id) -> Response:
    """Say how far a job is."""
    found, _ = await _found(request, job)
    return JSONResponse(found.document(), headers=_NO_STORE)


@router.delete("/jobs/{job}", summary="Cancel a job", response_model=JobDocument)
async def cancel_job(request: Request, job: _Id) -> Response:
    """Cancel a job, which ends soon. One that has ended stays as it is. What deletes a log cannot be cancelled."""
    found, principal = await _found(request, job)
    note(log=found.log, job=found.id)
    require(principal, "admin", found.log)
    if not found.can_cancel and found.ended_ms is None:
        raise Refusal(_KEPT, "the log is deleted already, and this job gives its room back")
    service_of(request).jobs.cancel(found, f"by {principal.id}")
    return JSONResponse(found.document(), headers=_NO_STORE)


def readable_jobs(jobs: list[Job], principal: Principal) -> list[Job]:
    """Those on logs that the principal may read."""
    return [job for job in jobs if principal.allows("read", job.log)]


async def _found(request: Request, id: str) -> tuple[Job, Principal]:
    """The job with that id. One on a log that the key may not read is not there for it. Raises Refusal."""
    principal = await principal_of(request)
    job = service_of(request).jobs.find(id)
    if job is None or not principal.allows("read", job.log):
        raise Refusal(_NO_JOB, f"there is no job {id!r}, or it has ended long ago")
    return job, principal
