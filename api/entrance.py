"""What every request over HTTP passes before any route: where it comes from, and who makes it.

    request ──Host, Origin──▶ preflight of an allowed page: answered
                └──────────▶ key ──▶ routes, which ask the principal for rights
                              └─ none where one is needed: 401, whatever the path is

So a route that is added is closed until somebody opens it, and who has no key learns nothing of what there is.
"""

from __future__ import annotations

from typing import Final

from fastapi import Request, Response
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.access import PRINCIPAL, authorization_of
from api.errors import Refusal, refused
from api.origins import preflight_headers
from api.rdf_delta.port import PREFIX
from api.service import Service

__all__ = ["PUBLIC", "Entrance"]

PUBLIC: Final = frozenset(
    {
        "/",
        "/docs",
        "/healthz",
        "/openapi.json",
        "/readyz",
        PREFIX,
        f"{PREFIX}/",
        f"{PREFIX}/$/ping",
    }
)
"""Paths that say nothing of what is in the logs."""

_PAGES: Final = "/ui"
"""Below it a person is asked for a key by a page of its own."""

_EXPOSED: Final = "ETag, Link, Location, Patchlog-Id, Patchlog-Version, Retry-After, X-Request-Id"


class Entrance:
    """Middleware of ASGI."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        service: Service = scope["app"].state.service
        try:
            origin = service.origins.check(scope["method"], scope["path"], scope["headers"])
            if service.origins.has_allowed:
                send = _for_pages(service, origin, send)
                if origin is not None and service.origins.allows_origin(origin) and _is_preflight(scope):
                    await Response(status_code=204, headers=preflight_headers(scope["headers"]))(scope, receive, send)
                    return
            await self._authenticate(service, scope)
        except Refusal as refusal:
            await refused(refusal)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    async def _authenticate(self, service: Service, scope: Scope) -> None:
        path: str = scope["path"]
        if path in PUBLIC or scope["method"] == "OPTIONS":
            return
        try:
            scope[PRINCIPAL] = await service.access.principal(authorization_of(Request(scope)))
        except Refusal:
            if not (path == _PAGES or path.startswith(f"{_PAGES}/")):
                raise


def _is_preflight(scope: Scope) -> bool:
    return scope["method"] == "OPTIONS" and any(
        name == b"access-control-request-method" for name, _ in scope["headers"]
    )


def _for_pages(service: Service, origin: str | None, send: Send) -> Send:
    """Say which pages may read the answer."""

    async def send_on(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = list(message["headers"])
            headers = MutableHeaders(scope=message)
            headers.add_vary_header("Origin")
            if origin is not None and service.origins.allows_origin(origin):
                headers["Access-Control-Allow-Origin"] = origin
                headers["Access-Control-Expose-Headers"] = _EXPOSED
        await send(message)

    return send_on
