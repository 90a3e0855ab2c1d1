"""The routes. A module of routes offers `router`; it is served when it stands in `ROUTERS`."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter

from api.routes import append, changes, consumers, jobs, lock, logs, patches, snapshots, stream, system
from api.ui import reference
from api.ui import routes as ui

__all__ = ["ROUTERS"]

ROUTERS: Final[tuple[APIRouter, ...]] = (
    logs.router,
    append.router,
    patches.router,
    changes.router,
    stream.router,
    snapshots.router,
    consumers.router,
    lock.router,
    jobs.router,
    system.router,
    ui.router,
    reference.router,
)
