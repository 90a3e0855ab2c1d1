"""Runs the service in this process until it is told to stop."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
from contextlib import suppress
from importlib.util import find_spec
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

import uvicorn
from fastapi import FastAPI

from api.app import create_app
from api.http_guard import GuardedConfig, GuardedHttp
from api.service import Service
from api.settings import Settings
from api.short_way import ShortWayHttp
from api.tracing import check_tracing
from patchlog.errors import MissingExtra, StorageError

if TYPE_CHECKING:
    from api.grpc_door.server import GrpcDoor

__all__ = ["serve"]

_logger: Final = logging.getLogger("patchlog.service")


class _Server(uvicorn.Server):
    """Tells the service first, so that live tails end and the server need not wait for them."""

    def __init__(self, config: GuardedConfig, app: FastAPI) -> None:
        super().__init__(config)
        self._app = app
        self._settings = config.settings
        self._grpc_door: GrpcDoor | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, on the ports of the other doors too."""
        await super().startup(sockets)
        if self.should_exit:
            return
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        _logger.info("the pages are at http://%s:%d/ui, and what can be asked at /docs", host, port)
        if self._settings.rdf_delta_port is not None:
            await self._open_rdf_delta_port()
        if self._settings.grpc_port is not None:
            await self._open_grpc_door()

    async def _open_rdf_delta_port(self) -> None:
        def protocol() -> asyncio.Protocol:
            kind: Any = GuardedHttp  # there are no short ways below this API
            made: asyncio.Protocol = kind(
                config=self.config, server_state=self.server_state, app_state=self.lifespan.state
            )
            return made

        host, port = self._settings.host, self._settings.rdf_delta_port
        try:
            more = await asyncio.get_running_loop().create_server(protocol, host, port, backlog=self.config.backlog)
        except OSError as error:
            raise StorageError(f"the service could not listen on {host}:{port}: {error.strerror}") from error
        self.servers.append(more)
        self._app.state.rdf_delta_port = port = more.sockets[0].getsockname()[1]
        _logger.info("RDF Delta's API is at http://%s:%d", host, port)

    async def _open_grpc_door(self) -> None:
        from api.grpc_door.server import GrpcDoor, credentials_of

        self._grpc_door = GrpcDoor(self._app.state.service, self._settings, credentials_of(self._settings))
        await self._grpc_door.start()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop; at the second Ctrl+C without waiting."""
        del frame
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True

    async def main_loop(self) -> None:
        """Serve until it is time to stop."""
        gc.collect()
        gc.freeze()  # what is there now stays, and need not be looked through again and again
        await super().main_loop()
        service: Service = self._app.state.service
        service.stop()
        if self._grpc_door is not None:
            await self._grpc_door.stop()


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT. Raises PatchLogError where the service cannot start."""
    if settings.grpc_port is not None and find_spec("grpc") is None:
        raise MissingExtra("grpc", "grpc")
    if settings.grpc_port is not None:
        from api.grpc_door.server import credentials_of

        credentials_of(settings)  # what is wrong with them is said before anybody is listened to
    check_tracing()
    app = create_app(settings)
    server = _Server(GuardedConfig(app, settings, ShortWayHttp), app)

    def is_news(_: logging.LogRecord) -> bool:
        """Uvicorn would log the stack of what is raised below, and told in one line."""
        return getattr(app.state, "failure", None) is None

    logger = logging.getLogger("uvicorn.error")
    logger.addFilter(is_news)
    try:
        with suppress(SystemExit):  # uvicorn's own end where it cannot start
            server.run()
    finally:
        logger.removeFilter(is_news)
    failure: Exception | None = getattr(app.state, "failure", None)
    if failure is not None:
        raise failure
    if not server.started:
        raise StorageError(
            f"the service could not listen on {settings.host}:{settings.port}; if another one does, name a free --port"
        )
