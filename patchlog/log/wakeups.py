"""Wakes those who wait for a log to change. Says only that something happened: one wakeup too many does no harm."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from threading import Condition
from typing import Final

__all__ = ["Wakeups"]

_ALL: Final = ""
"""No log has this name."""


class Wakeups:
    """Counts the changes of logs by name.

    Take a `ticket`, look at the log, then `wait`: a change after the ticket is not slept through.
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._counts: Counter[str] = Counter()
        self._subscribers: tuple[Callable[[str], object], ...] = ()

    def announce(self, name: str) -> None:
        """Say that a log has changed."""
        with self._changed:
            self._counts[name] += 1
            self._changed.notify_all()
        for told in self._subscribers:
            told(name)

    def subscribe(self, told: Callable[[str], object]) -> None:
        """Have a function called with the name of each log that has changed; an empty name is any log.

        It is called in whichever thread knows of the change, and must neither block nor raise.
        """
        with self._changed:
            self._subscribers = (*self._subscribers, told)

    def unsubscribe(self, told: Callable[[str], object]) -> None:
        """Call it no more."""
        with self._changed:
            self._subscribers = tuple(other for other in self._subscribers if other != told)

    def announce_all(self) -> None:
        """Say that any log may have changed."""
        self.announce(_ALL)

    def ticket(self, name: str) -> int:
        """What `wait` takes."""
        with self._changed:
            return self._count(name)

    def wait(self, name: str, ticket: int, timeout_seconds: float) -> None:
        """Return when the log has changed since the ticket was taken, or when the time is up."""
        with self._changed:
            self._changed.wait_for(lambda: self._count(name) != ticket, timeout_seconds)

    def _count(self, name: str) -> int:
        return self._counts[name] + self._counts[_ALL]
