"""The log of a captured store, opened: the place, the way to it, and what the store has of it."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import Final

from patchlog.errors import LogNotFound
from patchlog.outbox import Delivery, DirectDelivery, Outbox, OutboxDelivery, default_path
from patchlog.places import OpenLog, open_log, place_of
from patchlog.rdflib_hook.capture.replica import Replica
from patchlog.rdflib_hook.capture.settings import Settings

__all__ = ["Connection"]

_SERVICE: Final = ("http://", "https://")
_NAME: Final = "dataset"


class Connection:
    """What is open as long as the store is."""

    def __init__(self, settings: Settings) -> None:
        with ExitStack() as stack:
            log = settings.log
            if isinstance(log, str | os.PathLike):
                where = os.fspath(log)
                opened = stack.enter_context(_opened(where, settings))
            else:
                where, opened = "", log
            outbox = _outbox(settings, where)
            if outbox is not None:
                stack.callback(outbox.close)
            delivery: Delivery = (
                DirectDelivery(opened)
                if outbox is None
                else OutboxDelivery(opened, outbox, where.rstrip("/"), settings.conflicts)
            )
            stack.callback(delivery.close)
            self.replica: Final = Replica(opened, delivery)
            self._stack = stack.pop_all()

    def close(self) -> None:
        """Close all of it. What waits in the outbox goes on waiting."""
        self._stack.close()


def _opened(where: str, settings: Settings) -> OpenLog:
    try:
        return open_log(where, token=settings.token, creates=settings.create)
    except LogNotFound:
        place = place_of(where)
        if not settings.create or place.store_url is None or place.name is not None:
            raise
        # A database without a log, and without a word about its name.
        return open_log(f"{where}#{_NAME}", token=settings.token, creates=True)


def _outbox(settings: Settings, where: str) -> Outbox | None:
    """The outbox: of a service there is one unless it is not wanted; what is on this machine needs none."""
    if settings.outbox is False or not where.startswith(_SERVICE):
        return None
    path = default_path() if settings.outbox in (None, True) else settings.outbox
    bounds = {"max_patches": settings.outbox_max_patches, "max_bytes": settings.outbox_max_bytes}
    return Outbox(str(path), **{name: bound for name, bound in bounds.items() if bound is not None})
