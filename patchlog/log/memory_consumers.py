"""The consumers of a log in memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from patchlog.errors import ConsumerNotFound
from patchlog.log.consumers import ANYONE, Mover, check_advance, consumer_of
from patchlog.log.position import After, as_position, check_position
from patchlog.log.records import EMPTY_HEAD, Consumer, Head, PatchRecord, check_consumer_name, ms_of

__all__ = ["ConsumedLog", "MemoryConsumers"]


class ConsumedLog(Protocol):
    """A log, and where it keeps its consumers: the place of each name, the time of that, and the owner."""

    id: str
    consumers: dict[str, tuple[int, int, str | None]]

    def hash_at(self, version: int) -> bytes:
        """The chain hash at a version."""

    @property
    def head(self) -> Head:
        """The last patch."""

    @property
    def records(self) -> Sequence[PatchRecord]:
        """What is known of all patches."""


class MemoryConsumers:
    """Named positions of one log."""

    def __init__(self, name: str, lock: AbstractContextManager[object], found: Callable[[], ConsumedLog]) -> None:
        self._name = name
        self._lock = lock
        self._found = found

    def list(self) -> list[Consumer]:
        """All consumers, by name."""
        with self._lock:
            log = self._found()
            return [_consumer(log, name) for name in sorted(log.consumers)]

    def find(self, name: str) -> Consumer | None:
        """The consumer of that name."""
        check_consumer_name(name)
        with self._lock:
            log = self._found()
            return _consumer(log, name) if name in log.consumers else None

    def advance(self, name: str, version: After, *, force: bool = False, mover: Mover = ANYONE) -> Consumer:
        """Say that all patches up to a version were read."""
        check_consumer_name(name)
        position = as_position(version)
        version = position.version
        with self._lock:
            log = self._found()
            check_position(position, self._name, log.id, log.head, log.hash_at)
            before = log.consumers.get(name)
            owner = mover.owner if before is None else mover.owner_after_advance(name, before[2], force=force)
            check_advance(name, before and before[0], version, log.head.version, force=force)
            log.consumers[name] = version, _now_ms(), owner
            return _consumer(log, name)

    def forget(self, name: str, *, mover: Mover = ANYONE) -> None:
        """The consumer reads no more."""
        check_consumer_name(name)
        with self._lock:
            consumers = self._found().consumers
            if name not in consumers:
                raise ConsumerNotFound(f"there is no consumer {name!r}")
            mover.check_forget(name, consumers[name][2])
            del consumers[name]


def _consumer(log: ConsumedLog, name: str) -> Consumer:
    version, updated_ms, owner = log.consumers[name]
    next_ms = ms_of(log.records[version].time) if version < log.head.version else None
    return consumer_of(
        name,
        version,
        updated_ms,
        head_version=log.head.version,
        next_ms=next_ms,
        now_ms=_now_ms(),
        log_id=log.id,
        hash=log.hash_at(version) if version else EMPTY_HEAD.hash,
        owner=owner,
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
