"""What holds of every path: HEAD is GET without the body, OPTIONS says which methods there are, and so does a 405."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Methods"]

_KNOWN: Final = ("GET", "PUT", "POST", "PATCH", "DELETE")


class Methods:
    """Middleware of ASGI."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        method = scope.get("method")
        if method == "HEAD":
            await self._answer_head(scope, receive, send)
        elif method == "OPTIONS" and (allowed := _allowed(scope)):
            await Response(status_code=204, headers={"Allow": allowed})(scope, receive, send)
        else:
            await self._app(scope, receive, _telling_methods(scope, send))

    async def _answer_head(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_head(message: Message) -> None:
            await send(message)
            if message["type"] == "http.response.start":
                await send({"type": "http.response.body"})
                raise _HeadIsSent

        asked = {**scope, "method": "GET"}
        try:
            await self._app(asked, receive, _telling_methods(scope, send_head))
        except _HeadIsSent:
            pass
        finally:
            scope["route"] = asked.get("route")


class _HeadIsSent(Exception):
    """The route need not make the body, which may be large, or have no end."""


def _telling_methods(scope: Scope, send: Send) -> Send:
    """The router names the methods of one of its routes; the path may have several."""

    async def send_telling(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == 405:
            headers = [header for header in message["headers"] if header[0] != b"allow"]
            message["headers"] = [*headers, (b"allow", _allowed(scope).encode())]
        await send(message)

    return send_telling


def _allowed(scope: Scope) -> str:
    """The methods of a path; nothing where there is no such path."""
    routes: list[Any] = scope["app"].router.routes
    found = [
        method
        for method in _KNOWN
        if any(route.matches({**scope, "method": method})[0] is Match.FULL for route in routes)
    ]
    if not found:
        return ""
    return ", ".join([*found, *(["HEAD"] if "GET" in found else []), "OPTIONS"])
