"""RDF Delta's advisory locks: writers who ask for them take turns. They bind nobody, and end with the process.

A lock ticks each time that its holder refreshes it. Who waits and sees no more ticks takes it over by `grab`.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass

__all__ = ["Lock", "Locks"]


@dataclass(slots=True)
class Lock:
    """Who holds it proves so by `ref`."""

    ref: str
    ticks: int = 1


class Locks:
    """The locks that are held, by the ids of their logs. Used in one event loop."""

    def __init__(self) -> None:
        self._held: dict[str, Lock] = {}

    def lock(self, log_id: str) -> str | None:
        """Take a lock and return its ref; None where it is held."""
        if log_id in self._held:
            return None
        return self._take(log_id)

    def read(self, log_id: str) -> Lock | None:
        """The lock that is held."""
        return self._held.get(log_id)

    def refresh(self, log_id: str, ref: str) -> bool:
        """Say that the holder still lives. False where it does not hold the lock any more."""
        held = self._held.get(log_id)
        if held is None or held.ref != ref:
            return False
        held.ticks += 1
        return True

    def grab(self, log_id: str, ref: str) -> str | None:
        """Take a lock over from the holder with this ref; None where there is no such holder."""
        held = self._held.get(log_id)
        return self._take(log_id) if held is not None and held.ref == ref else None

    def unlock(self, log_id: str, ref: str) -> None:
        """Let go of a lock. Where it is another's, nothing happens."""
        held = self._held.get(log_id)
        if held is not None and held.ref == ref:
            del self._held[log_id]

    def forget(self, log_id: str) -> None:
        """The log is gone."""
        self._held.pop(log_id, None)

    def _take(self, log_id: str) -> str:
        ref = str(uuid.uuid4())
        self._held[log_id] = Lock(ref)
        return ref
