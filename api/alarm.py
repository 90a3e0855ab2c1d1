"""A timer that is set and unset with each request and seldom goes off.

Most of that asks nothing of the event loop: a timer of the loop that is due too early looks what is wanted now, and
goes to sleep again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["Alarm"]


class Alarm:
    """Does one thing after some time, unless it is told otherwise before."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = 0.0
        self._due = 0.0
        self._action: Callable[[], object] | None = None

    def set(self, seconds: float, action: Callable[[], object]) -> None:
        """Do this then, and nothing else."""
        self._due = self._loop.time() + seconds
        self._action = action
        if self._timer is None or self._timer_due > self._due:
            self._sleep(seconds)

    def unset(self) -> None:
        """Do nothing."""
        self._action = None

    def close(self) -> None:
        """Do nothing, and leave nothing with the loop."""
        self._action = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _sleep(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_due = self._due
        self._timer = self._loop.call_later(seconds, self._wake)

    def _wake(self) -> None:
        self._timer = None
        action = self._action
        if action is None:
            return
        left = self._due - self._loop.time()
        if left > 0:
            self._sleep(left)
        else:
            self._action = None
            action()
