"""Hears of appends by other processes on one PostgreSQL, and wakes those who wait for them here."""

from __future__ import annotations

from threading import Event, Thread
from typing import Final

from patchlog.errors import StorageError
from patchlog.log.database import Database
from patchlog.log.wakeups import Wakeups
from patchlog.log.writer import CHANNEL

__all__ = ["Listener"]

_POLL_SECONDS: Final = 0.5


class Listener:
    """Listens in a thread of its own, on a connection of its own; where that breaks, on the next one."""

    def __init__(self, database: Database, wakeups: Wakeups) -> None:
        self._database = database
        self._wakeups = wakeups
        self._closed = Event()
        self._thread = Thread(target=self._listen, name="patchlog-listener", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        self._closed.set()
        self._thread.join()

    def _listen(self) -> None:
        while not self._closed.is_set():
            try:
                self._hear()
            except StorageError:
                self._closed.wait(_POLL_SECONDS)

    def _hear(self) -> None:
        with self._database.listening(CHANNEL) as notifications:
            self._wakeups.announce_all()  # what was said before we listened
            while not self._closed.is_set():
                for name in notifications(_POLL_SECONDS):
                    self._wakeups.announce(name)
