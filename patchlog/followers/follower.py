"""A follower: takes the patches of a log to a target, in their order, each once.

It begins where the target stands. A target that has nothing yet begins with the newest snapshot where there is one, and
goes on with the patches behind it. Where the log was truncated meanwhile, it begins again from a snapshot.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final, Self, TypeAlias

from patchlog.errors import PositionGone, StorageError, UsageError
from patchlog.followers.contract import Dataset, Target
from patchlog.log.contract import PatchLog
from patchlog.log.records import check_consumer_name

__all__ = ["FindSnapshot", "Follower", "no_snapshot"]

_logger: Final = logging.getLogger(__name__)

_WAIT_SECONDS: Final = 0.5
"""How long `stop` may not be heard: who waits for a log hears nothing else."""
_TELL_SECONDS: Final = 5.0
"""How often a follower that has much to do says how far it is."""
_FIRST_PAUSE_SECONDS: Final = 0.2
_LONGEST_PAUSE_SECONDS: Final = 15.0

FindSnapshot: TypeAlias = Callable[[int, int | None], Dataset | None]
"""Finds the newest snapshot from one version on and up to another, or to the newest of all."""


def no_snapshot(at_least: int, at_most: int | None) -> None:
    """Find none: for targets that cannot begin with one."""
    del at_least, at_most


class Follower:
    """Takes the patches of a log to a target. One thread at a time drives it."""

    def __init__(
        self,
        log: PatchLog,
        target: Target,
        *,
        find_snapshot: FindSnapshot = no_snapshot,
        after: int | None = None,
        consumer: str | None = None,
    ) -> None:
        """Ask the target where it stands; `after` is for a target that does not know.

        As a named `consumer` it tells the log how far it is, which keeps what it still needs from being truncated.

        Raises UsageError where it has more than the log.
        """
        if consumer is not None:
            check_consumer_name(consumer)
        self.log: Final = log
        self._target = target
        self._find_snapshot = find_snapshot
        self._consumer = consumer
        self._told_at = 0.0
        self._opened = ExitStack()
        self._opened.callback(target.close)
        description = log.describe()
        position = target.begin(description)
        self._position = after if position is None else position
        head = description.head.version
        if self._position is not None and self._position > head:
            raise UsageError(
                f"the target has version {self._position} of the log {description.name!r}, whose head is {head}: the "
                "target is a copy of another log, or this log was put back to an older state and has lost what it has"
            )

    @property
    def position(self) -> int:
        """The last version that the target has; 0 for none."""
        return self._position or 0

    def catch_up(self, until: int | None = None) -> int:
        """Bring the target to the head of this moment, or to version `until`, and return its position."""
        if self._position is None:
            snapshot = self._find_snapshot(0, until)
            if snapshot is not None:
                self._load(snapshot)
        while True:
            try:
                self._go_on(until)
            except PositionGone as gone:
                snapshot = self._find_snapshot(gone.oldest_kept - 1, until)
                if snapshot is None:
                    raise
                _logger.warning("%s: beginning again with the snapshot at %d", gone, snapshot.version)
                self._load(snapshot)
            else:
                self._tell()
                return self.position

    def run(self, stop: threading.Event | None = None) -> None:
        """Go on with each patch as it comes, until `stop` is set. While the log cannot be reached it is tried again."""
        stop = stop or threading.Event()
        pause = _FIRST_PAUSE_SECONDS
        while not stop.is_set():
            try:
                self.catch_up()
                pause = _FIRST_PAUSE_SECONDS
                while not stop.is_set() and self._is_at_head():
                    pass
            except StorageError as error:
                if not error.is_transient:
                    raise
                _logger.warning("at version %d; trying again in %.1f s: %s", self.position, pause, error)
                stop.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def keep(self, opened: ExitStack) -> None:
        """Close this too, at the end."""
        self._opened.push(opened)

    def close(self) -> None:
        """Let go of what the target holds open. A log, store or function that was handed over is its owner's."""
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _is_at_head(self) -> bool:
        """Whether there is nothing new, after a short while of waiting for it."""
        return self.log.wait_for(self.position + 1, _WAIT_SECONDS).version <= self.position

    def _go_on(self, until: int | None) -> None:
        for logged in self.log.read(self.position, until=until):
            self._target.take(logged)
            self._position = logged.record.version
            if time.monotonic() > self._told_at + _TELL_SECONDS:
                self._tell()

    def _tell(self) -> None:
        if self._consumer is not None and self._position is not None:
            self.log.consumers.advance(self._consumer, self._position, force=True)
            self._told_at = time.monotonic()

    def _load(self, snapshot: Dataset) -> None:
        self._target.load(snapshot)
        self._position = snapshot.version
