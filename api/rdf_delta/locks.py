"""RDF Delta's advisory locks: writers who ask for them take turns. They bind nobody, and end with the process.

    free ──lock──▶ held ──refresh: one more tick──▶ held
                     └──unlock, broken, not refreshed for `LOCK_SECONDS`──▶ free

A lock ticks each time that its holder refreshes it, every second. A waiter that has seen no tick in 60 looks, a second
apart, takes the lock by `grab`; so a lock that was not refreshed for as long is nobody's here either.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from api.rdf_delta.clients import Client

__all__ = ["LOCK_SECONDS", "Lock", "Locks"]

LOCK_SECONDS: Final = 60.0
"""How long a lock is held after it was taken or refreshed. RDF Delta's clients wait as long before they grab one."""


@dataclass(slots=True)
class Lock:
    """The holder proves that it is by `ref`. Times are milliseconds since 1970."""

    ref: str
    holder: Client
    since_ms: int
    refreshed_ms: int
    expires: float
    """By the clock of the locks."""
    ticks: int = 1


class Locks:
    """The locks that are held, by the ids of their logs. Changed in one event loop, read anywhere."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._held: dict[str, Lock] = {}

    def lock(self, log_id: str, client: Client) -> str | None:
        """Take a lock and return its ref; None where it is held."""
        return None if self.read(log_id) is not None else self._take(log_id, client)

    def read(self, log_id: str) -> Lock | None:
        """The lock that is held."""
        held = self._held.get(log_id)
        return None if held is None or held.expires <= self._clock() else held

    def refresh(self, log_id: str, ref: str) -> bool:
        """Say that the holder still lives. False where it does not hold the lock any more."""
        held = self._held_by(log_id, ref)
        if held is None:
            return False
        held.ticks += 1
        held.refreshed_ms, held.expires = _now_ms(), self._clock() + LOCK_SECONDS
        return True

    def grab(self, log_id: str, ref: str, client: Client) -> str | None:
        """Take a lock from the holder with this ref; None where there is no such holder."""
        return None if self._held_by(log_id, ref) is None else self._take(log_id, client)

    def unlock(self, log_id: str, ref: str) -> None:
        """Let go of a lock. Where it is another's, nothing happens."""
        if self._held_by(log_id, ref) is not None:
            del self._held[log_id]

    def break_lock(self, log_id: str, holder: Client | None = None) -> Lock | None:
        """Take a lock away from its holder, whatever it does; with a `holder` only from that one."""
        held = self.read(log_id)
        if held is None or holder not in (None, held.holder):
            return None
        return self._held.pop(log_id)

    def _held_by(self, log_id: str, ref: str) -> Lock | None:
        held = self.read(log_id)
        return held if held is not None and held.ref == ref else None

    def _take(self, log_id: str, client: Client) -> str:
        ref, now = str(uuid.uuid4()), _now_ms()
        self._held[log_id] = Lock(ref, client, now, now, self._clock() + LOCK_SECONDS)
        return ref


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
