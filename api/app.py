"""Puts the service together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

import patchlog
from api.bodies import SmallBodies
from api.documents import ProblemDocument
from api.entrance import Entrance
from api.errors import PROBLEM_JSON, answer_problems
from api.methods import Methods
from api.rdf_delta import routes as rdf_delta
from api.rdf_delta.door import close_door
from api.rdf_delta.port import RdfDeltaPort
from api.routes import ROUTERS
from api.service import Service
from api.settings import Settings
from api.tails import LocalLogStore
from api.telemetry import Telemetry
from api.tracing import OF_REQUESTS, is_tracing
from patchlog.errors import PatchLogError
from patchlog.log.records import NAME
from patchlog.log.stores import open_store

__all__ = ["create_app"]

_DESCRIPTION: Final = "Patch logs over HTTP: append, download, follow and verify the changes of RDF datasets."
_NAMES: Final = ("log", "consumer")
_NAME_PATTERN: Final = f"^{NAME.pattern}$"


class _App(FastAPI):
    """An app whose telemetry sees all answers, those to errors of ours too; and whose short ways are short."""

    is_traced = True
    """Whether FastAPI is to look if a request is to be traced. It is known when the app has started."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        take = super().__call__ if self.is_traced or scope["type"] != "http" else super(FastAPI, self).__call__
        await take(scope, receive, send)

    def build_middleware_stack(self) -> ASGIApp:
        """Put what looks at each request around all that FastAPI does with it."""
        return Telemetry(RdfDeltaPort(Entrance(super().build_middleware_stack())))


def create_app(settings: Settings | None = None, store: LocalLogStore | None = None) -> FastAPI:
    """Make the app. It opens the database when it starts, and closes it when it ends; a given store stays open."""
    chosen = settings or Settings()

    @asynccontextmanager
    async def lifespan(app: _App) -> AsyncIterator[None]:
        async with AsyncExitStack() as closing:
            try:
                opened = store
                if opened is None:
                    opened = await asyncio.to_thread(_open, chosen)
                    closing.push_async_callback(asyncio.to_thread, opened.close)
                app.state.service = service = Service(chosen, opened)
            except PatchLogError as error:
                app.state.failure = error
                raise
            closing.push_async_callback(asyncio.to_thread, service.close)
            closing.push_async_callback(close_door, app)
            app.is_traced = is_tracing()
            yield

    app = _App(
        title="patchlog",
        version=patchlog.__version__,
        description=_DESCRIPTION,
        lifespan=lifespan,
        telemetry=OF_REQUESTS,
        redirect_slashes=False,
        docs_url=None,  # it loads scripts from elsewhere; api.ui.reference has a page of ours
        redoc_url=None,
        responses={"default": {"model": ProblemDocument, "description": "Refused"}},
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.rdf_delta_port = None
    app.router.routes.append(rdf_delta.ROUTES)
    for router in ROUTERS:
        app.include_router(router)
    answer_problems(app)
    app.add_middleware(SmallBodies)
    app.add_middleware(Methods)
    _tell_truly(app)
    return app


def _open(settings: Settings) -> LocalLogStore:
    store: Any = open_store(
        settings.database, snapshots=settings.snapshot_root, snapshot_memory_bytes=settings.snapshot_memory_bytes
    )
    local: LocalLogStore = store
    return local


def _tell_truly(app: FastAPI) -> None:
    """Have OpenAPI say what FastAPI does not know: the type of problems, keys, names, and that there is no 422."""
    generate = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is not None:
            return app.openapi_schema
        schema = generate()
        schema["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        schema["security"] = [{}, {"key": []}]
        for unused in ("HTTPValidationError", "ValidationError"):
            schema["components"]["schemas"].pop(unused, None)
        for operations in schema["paths"].values():
            for operation in operations.values():
                for parameter in operation.get("parameters", []):
                    if parameter["name"] in _NAMES:
                        parameter["schema"]["pattern"] = _NAME_PATTERN
                operation["responses"].pop("422", None)
                content = operation["responses"]["default"]["content"]
                operation["responses"]["default"]["content"] = {PROBLEM_JSON: content["application/json"]}
        return schema

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way
