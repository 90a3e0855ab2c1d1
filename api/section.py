"""Paths with a common beginning, each a plain route: looked at only where a path begins so.

FastAPI looks at its routes one by one, and makes more of each request than what only reads and answers has need of.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from starlette.routing import BaseRoute, Match, Route
from starlette.types import Receive, Scope, Send

from api.tracing import tell_route

__all__ = ["Section"]


class Section(BaseRoute):
    """Routes below a path."""

    def __init__(self, prefix: str, routes: Sequence[Route]) -> None:
        self._prefix: Final = prefix
        self.routes: Final = routes

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Look for the route of a request; else for one of another method."""
        found: tuple[Match, Scope] = Match.NONE, {}
        if scope["type"] == "http" and scope["path"].startswith(self._prefix):
            for route in self.routes:
                match, of_route = route.matches(scope)
                if match.value > found[0].value:
                    found = match, {**of_route, "route": route}
                    # A path that is written out is not one with parameters, whatever the method is.
                    if match is Match.FULL or not route.param_convertors:
                        break
        return found

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request that was matched."""
        route: Route = scope["route"]
        tell_route(scope["method"], route.path)
        await route.handle(scope, receive, send)
