"""What every request over HTTP passes before any route: where it comes from, who makes it, and how much they may ask.

    request ──Host, Origin──▶ preflight of an allowed page: answered
                └──────────▶ key ──▶ limits ──▶ routes, which ask the principal for rights
                              └─ none where one is needed: 401, whatever the path is

So a route that is added is closed until somebody opens it, and who has no key learns nothing of what there is. What
may change something is written to the audit log when it is over.
"""

from __future__ import annotations

import json
import re
from contextlib import ExitStack, suppress
from typing import Any, Final

from fastapi import Request, Response
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.access import COOKIE, PRINCIPAL, authorization_of
from api.errors import PROBLEM_JSON, Refusal, refused
from api.limits import Limits, identity_of
from api.origins import SAFE_METHODS, preflight_headers
from api.rdf_delta.port import PREFIX
from api.service import Service
from api.telemetry import EXCHANGE, Exchange

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

_COOKIE: Final = re.compile(rb"(?:^|;) ?%b=([A-Za-z0-9_-]{1,200})(?=;|$)" % COOKIE.encode())
_LIVE: Final = re.compile(r"/logs/[^/]+/stream")
_EXPOSED: Final = "ETag, Link, Location, Patchlog-Id, Patchlog-Position, Patchlog-Version, Retry-After, X-Request-Id"


class Entrance:
    """Middleware of ASGI."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope["headers"] = _with_own_cookie(scope["headers"])
        service: Service = scope["app"].state.service
        if not service.audit.is_on or scope["method"] in SAFE_METHODS:
            await self._handle(service, scope, receive, send)
            return
        entry = service.audit.begin(_door(scope["path"]), _address(scope))
        answer = _Answer(send)
        try:
            await self._handle(service, scope, receive, answer.send)
        finally:
            # The entry may have it already, of those who know better.
            known = _known_of(scope) | entry
            service.audit.end(known | answer.fields(), scope.get(PRINCIPAL), answer.status)

    async def _handle(self, service: Service, scope: Scope, receive: Receive, send: Send) -> None:
        with ExitStack() as held:
            try:
                origin = service.origins.check(scope["method"], scope["path"], scope["headers"])
                if service.origins.has_allowed:
                    send = _for_pages(service, origin, send)
                    if origin is not None and service.origins.allows_origin(origin) and _is_preflight(scope):
                        answer = Response(status_code=204, headers=preflight_headers(scope["headers"]))
                        await answer(scope, receive, send)
                        return
                await self._authenticate(service, scope)
                if service.limits is not None and PRINCIPAL in scope:
                    receive = _limited(service.limits, scope, receive, held)
            except Refusal as refusal:
                await refused(refusal)(scope, receive, send)
                return
            await self._app(scope, receive, send)

    async def _authenticate(self, service: Service, scope: Scope) -> None:
        path: str = scope["path"]
        if path in PUBLIC or scope["method"] == "OPTIONS":
            return
        try:
            principal = await service.access.principal(authorization_of(Request(scope)))
        except Refusal:
            if not (path == _PAGES or path.startswith(f"{_PAGES}/")):
                raise
            return
        scope[PRINCIPAL] = principal
        exchange: Exchange = scope[EXCHANGE]
        exchange.principal = principal.owner


class _Answer:
    """What an answer says of a request: its status, and the kind of problem that it is."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0
        self._problem: str | None = None
        self._is_problem = False

    async def send(self, message: Message) -> None:
        """Pass a message on."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self._is_problem = (b"content-type", PROBLEM_JSON.encode()) in message["headers"]
        elif self._is_problem and self._problem is None:
            with suppress(ValueError, KeyError):
                kind: str = json.loads(message["body"])["type"]
                self._problem = kind.rpartition(":")[2]
        await self._send(message)

    def fields(self) -> dict[str, Any]:
        """What the audit log says of it."""
        return {"problem": self._problem}


def _with_own_cookie(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers with no cookie but that of the pages, which has no quotes.

    Others of the same host are not for us. FastAPI takes all of them apart for each route, and Python needs half a
    minute to do so with 60 KiB of backslashes, which anybody may send.
    """
    cookies = [value for name, value in headers if name == b"cookie"]
    if not cookies:
        return headers
    found = _COOKIE.search(b";".join(cookies))
    own = [(b"cookie", b"%b=%b" % (COOKIE.encode(), found[1]))] if found else []
    return [field for field in headers if field[0] != b"cookie"] + own


def _known_of(scope: Scope) -> dict[str, Any]:
    """What the audit log says of a request."""
    route = scope.get("route")
    exchange: Exchange = scope[EXCHANGE]
    return {
        "action": f"{scope['method']} {scope['path']}" if route is None else route.name.removeprefix("_"),
        "log": scope.get("path_params", {}).get("log"),
        "request": exchange.id,
    }


def _door(path: str) -> str:
    if path.startswith(PREFIX):
        return "rdf-delta"
    return "ui" if path.startswith(f"{_PAGES}/") else "http"


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return client[0] if client else ""


def _limited(limits: Limits, scope: Scope, receive: Receive, held: ExitStack) -> Receive:
    """Count a request, and what it uploads. Raises Refusal where that is too much."""
    identity = identity_of(scope[PRINCIPAL], _address(scope))
    if scope["method"] in SAFE_METHODS:
        limits.begin(identity)
        if scope["method"] == "GET" and _LIVE.fullmatch(scope["path"]):
            held.enter_context(limits.stream(identity))
        return receive
    length = next((value for name, value in scope["headers"] if name == b"content-length"), None)
    if length is not None and not int(length):
        limits.begin(identity)
        return receive
    limits.begin(identity, None)

    async def receive_counted() -> Message:
        message = await receive()
        limits.received(identity, len(message.get("body", b"")))
        return message

    return receive_counted


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
