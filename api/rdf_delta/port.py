"""RDF Delta's API at the root of a port of its own: what comes there is sent on to `/rdf-delta/…`."""

from __future__ import annotations

from typing import Final

from fastapi import Request
from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["PREFIX", "RdfDeltaPort", "asked_path", "is_on_own_port"]

PREFIX: Final = "/rdf-delta"
_ASKED: Final = "patchlog.asked_path"


class RdfDeltaPort:
    """Middleware of ASGI. The port is known when it is bound: `app.state.rdf_delta_port`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] == "http" and (port := scope["app"].state.rdf_delta_port) is not None:
            server = scope.get("server")
            if server is not None and server[1] == port:
                # In place, so that what is around all requests finds the route that was matched.
                path = scope[_ASKED] = scope["path"]
                scope["path"], scope["raw_path"] = PREFIX + path, PREFIX.encode() + scope["raw_path"]
        await self._app(scope, receive, send)


def asked_path(request: Request) -> str:
    """The path that the client knows."""
    path: str = request.scope.get(_ASKED) or request.url.path
    return path


def is_on_own_port(request: Request) -> bool:
    """Whether a request came to the port that has RDF Delta's API only."""
    return _ASKED in request.scope
