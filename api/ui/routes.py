"""The pages, under /ui. They only look; what changes anything is the API's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Annotated, Any, Final
from urllib.parse import parse_qs

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import FileResponse, JSONResponse, RedirectResponse

from api.access import COOKIE, check_right, principal_of
from api.errors import Refusal, detail_of, problem_of
from api.jobs import checked_log
from api.parameters import LAST_NAME, MOST_VERSION
from api.rdf_delta.door import door_of
from api.routes.jobs import readable_jobs
from api.service import Service, service_of
from api.ui.pages import STATIC, answered, page, wants_json
from api.ui.views import chart_of, comparison_of, history_of, keys_of, log_view, logs_view, patch_view
from patchlog.errors import PatchLogError
from patchlog.log.contract import PatchLog

__all__ = ["router"]

router = APIRouter(prefix="/ui", include_in_schema=False)

_Version = Annotated[int | None, Query(ge=0, le=MOST_VERSION)]
_ASSETS: Final = {
    "app.js": "text/javascript",
    "htmx.min.js": "text/javascript",
    "style.css": "text/css",
    "uplot.min.css": "text/css",
    "uplot.min.js": "text/javascript",
}


@router.get("/static/{name}")
async def asset(name: str) -> Response:
    """A script or a style sheet."""
    if name not in _ASSETS:
        return Response(status_code=404)
    return FileResponse(STATIC / name, media_type=_ASSETS[name], headers={"Cache-Control": "public, max-age=3600"})


@router.get("")
@router.get("/")
async def logs(request: Request, after: Annotated[str, Query(pattern=LAST_NAME)] = "") -> Response:
    """All logs, from the one behind `after` on."""
    service = service_of(request)

    async def view() -> dict[str, Any]:
        principal = await principal_of(request)
        return await service.stream(lambda: logs_view(service.store, principal, after))

    return await _shown(request, "logs.html", view)


@router.post("/login")
async def login(request: Request) -> Response:
    """Keep a key in the browser, for the pages and what they load."""
    service = service_of(request)
    key = parse_qs((await request.body()).decode("utf-8", "replace")).get("key", [""])[0]
    try:
        await service.access.principal(f"Bearer {key.strip()}")
    except Refusal as refusal:
        return page(request, "login.html", {"reason": refusal.detail}, refusal.problem.status)
    response = RedirectResponse("/ui", 303)
    # TLS is spoken by the proxy. Who lies about it does so about the own cookie.
    is_over_tls = request.headers.get("X-Forwarded-Proto") == "https"
    response.set_cookie(COOKIE, key.strip(), httponly=True, samesite="strict", secure=is_over_tls, path="/")
    return response


@router.post("/logout")
async def logout() -> Response:
    """Forget the key."""
    response = RedirectResponse("/ui", 303)
    response.delete_cookie(COOKIE, path="/")
    return response


@router.get("/keys")
async def keys(request: Request) -> Response:
    """The keys of the service."""
    service = service_of(request)
    database = getattr(service.store, "database", None)

    async def view() -> dict[str, Any]:
        await check_right(request, "admin", "*")
        document = await service.run(lambda: keys_of(database))
        return document | {"are_asked_for": not service.access.is_open}

    return await _shown(request, "keys.html", view)


@router.get("/jobs")
async def jobs(request: Request) -> Response:
    """The long work of this process."""
    service = service_of(request)

    async def view() -> dict[str, Any]:
        principal = await principal_of(request)
        return {"jobs": [job.document() for job in readable_jobs(service.jobs.list(), principal)]}

    return await _shown(request, "jobs.html", view)


@router.get("/logs/{log}")
async def one_log(request: Request, log: str, before: _Version = None) -> Response:
    """A log."""
    locks = door_of(request).locks
    return await _answered(request, log, "log.html", lambda found: log_view(found, before, locks))


@router.get("/logs/{log}/chart")
async def chart(request: Request, log: str) -> Response:
    """Adds and deletes over time, for the chart of a log."""
    service = service_of(request)
    await check_right(request, "read", log)
    return JSONResponse(await service.stream(lambda: chart_of(service.log(log))))


@router.get("/logs/{log}/patches/{patch}")
async def one_patch(request: Request, log: str, patch: str) -> Response:
    """A patch."""
    wanted: int | str = int(patch) if patch.isascii() and patch.isdigit() and len(patch) < 19 else patch
    return await _answered(request, log, "patch.html", lambda found: patch_view(found, wanted))


@router.get("/logs/{log}/compare")
async def compare(
    request: Request,
    log: str,
    from_version: Annotated[int | None, Query(alias="from", ge=0, le=MOST_VERSION)] = None,
    to_version: Annotated[int | None, Query(alias="to", ge=0, le=MOST_VERSION)] = None,
) -> Response:
    """Two versions side by side."""
    return await _answered(
        request, log, "compare.html", lambda found: comparison_of(found, from_version, to_version), is_long=True
    )


@router.get("/logs/{log}/history")
async def history(request: Request, log: str, subject: str = "") -> Response:
    """The history of a resource."""
    return await _answered(request, log, "history.html", lambda found: history_of(found, subject.strip()), is_long=True)


@router.get("/logs/{log}/tail")
async def tail(request: Request, log: str) -> Response:
    """Patches as they come."""
    return await _answered(request, log, "tail.html", lambda found: {"log": found.name, "head": found.head().version})


async def _answered(
    request: Request, name: str, template: str, view: Callable[[PatchLog], dict[str, Any]], *, is_long: bool = False
) -> Response:
    service: Service = service_of(request)

    async def read() -> dict[str, Any]:
        await check_right(request, "read", name)
        log = service.log(name)
        if not is_long:
            return await service.stream(lambda: view(log))
        return await service.jobs.do(
            service.works, "view", name, lambda job: view(checked_log(log, job.check)), request, is_listed=False
        )

    return await _shown(request, template, read)


async def _shown(request: Request, template: str, view: Callable[[], Awaitable[dict[str, Any]]]) -> Response:
    """A page; where it is refused a program gets the problem document, and a person a page about it."""
    try:
        return answered(request, template, await view())
    except (PatchLogError, Refusal) as error:
        if wants_json(request):
            raise
        problem, detail = (
            (error.problem, error.detail) if isinstance(error, Refusal) else (problem_of(error), detail_of(error))
        )
        if problem.status == HTTPStatus.UNAUTHORIZED:
            return page(request, "login.html", {"reason": detail if COOKIE in request.cookies else ""}, 401)
        return page(request, "problem.html", {"title": problem.title, "detail": detail}, problem.status)
