"""What is told of small appends: once in a turn of the event loop, of all of a round together.

So no client waits while it is told of another, and telling of many takes a fraction.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from api.metrics import Metrics
from api.telemetry import Exchange, tell_all
from patchlog.log.records import Appended

__all__ = ["Ledger"]

_ROUTE: Final = "/logs/{log}/patches"
"""By which small appends are counted."""


@dataclass(slots=True)
class _Entry:
    exchange: Exchange
    received_bytes: int
    appended: Appended | None


class Ledger:
    """Belongs to one event loop."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._waiting: list[_Entry] = []

    def note(self, exchange: Exchange, received_bytes: int = 0, appended: Appended | None = None) -> None:
        """Tell soon of an exchange that is over, and of what it has appended."""
        self._waiting.append(_Entry(exchange, received_bytes, appended))
        if len(self._waiting) == 1:
            asyncio.get_running_loop().call_soon(self._tell)

    def _tell(self) -> None:
        told, self._waiting = self._waiting, []
        self._metrics.received_bytes.inc(sum([entry.received_bytes for entry in told]))
        self._metrics.count([entry.appended for entry in told if entry.appended is not None])
        tell_all([entry.exchange for entry in told], self._metrics, _ROUTE)
