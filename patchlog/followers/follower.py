"""A follower: takes the patches of a log to a target, in their order, each once.

It begins where the target stands. A target that has nothing yet begins with the newest snapshot where there is one, and
goes on with the patches after it. Where the log was truncated meanwhile, it begins again from a snapshot.

A position is log id, version and chain hash. It is compared with the log whenever work goes on, and with the target at
the start, after each error, at the end of each batch, and every few seconds while there is nothing to do. A target that
went back is brought up from where it is; a log that became another one, or went back, is an error.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final, Self, TypeAlias

from patchlog.errors import HistoryMismatch, PositionGone, StorageError, UsageError
from patchlog.followers.contract import Dataset, Target, TargetMoved
from patchlog.followers.positions import DamagedRecord, OtherPart
from patchlog.log.contract import PatchLog
from patchlog.log.position import After, Position, as_position
from patchlog.log.records import EMPTY_HEAD, check_consumer_name

__all__ = ["FindSnapshot", "Follower", "no_snapshot"]

_logger: Final = logging.getLogger(__name__)

_WAIT_SECONDS: Final = 0.5
"""How long `stop` may not be heard: who waits for a log hears nothing else."""
_REPORT_SECONDS: Final = 5.0
"""How often a follower that has much to do makes sure of its position, and reports it."""
_CHECK_SECONDS: Final = 10.0
"""How often a follower that has nothing to do looks whether its target is where it was left."""
_TRIES: Final = 6
"""How often a target may be found elsewhere before any patch has got there."""
_REMEDY: Final = (
    "start the target again from this log with --replace (replace=True), follow into a new one, or restore the log "
    "that has this history"
)
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
        after: After | None = None,
        consumer: str | None = None,
        replace: bool = False,
    ) -> None:
        """Ask the target where it stands; `after` is for a target that does not know.

        As a named `consumer` it reports its position to the log, which keeps what it still needs from being truncated.
        With `replace` a target that cannot go on is started again from the log.

        Raises HistoryMismatch where the target has another history than the log.
        """
        if consumer is not None:
            check_consumer_name(consumer)
        self.log: Final = log
        self._target = target
        self._find_snapshot = find_snapshot
        self._consumer = consumer
        self._after = after
        self._reported_at = self._checked_at = time.monotonic()
        self._is_unsure = False
        self._starts_again = False
        self._opened = ExitStack()
        self._opened.callback(target.close)
        description = log.describe()
        self._start: Final = Position(description.id, 0, EMPTY_HEAD.hash)
        self._position: Position | None = None
        target.begin(description)
        try:
            self._settle()
        except (HistoryMismatch, OtherPart, DamagedRecord):
            if not replace:
                raise
            self._starts_again = True

    @property
    def position(self) -> int:
        """The last version that the target has; 0 for none."""
        return self.full_position.version

    @property
    def full_position(self) -> Position:
        """The position that the target has, with the id of the log and the chain hash."""
        return self._position or self._start

    def catch_up(self, until: int | None = None) -> int:
        """Bring the target to the head of this moment, or to version `until`, and return its position.

        Raises UsageError where the log has no version `until`, or the target is beyond it.
        """
        if until is not None:
            self._check_reachable(until)
        failures = 0
        while True:
            before = self.position
            try:
                if self._is_unsure and not self._starts_again:
                    self._settle()
                self._bring(until)
            except TargetMoved:
                failures = 0 if self.position > before else failures + 1
                if failures == _TRIES:
                    raise UsageError(
                        "the target does not keep the position that is written to it: is another follower writing to "
                        "it, or are its queries answered by another store?"
                    ) from None
                _logger.warning("the target is not where it was left, at version %d: reading its position", before)
                self._is_unsure = True
                time.sleep(_FIRST_PAUSE_SECONDS * failures)
            except BaseException:
                self._is_unsure = True
                raise
            else:
                return self.position

    def run(self, stop: threading.Event | None = None) -> None:
        """Go on with each patch as it comes, until `stop` is set.

        While the log or the target cannot be reached they are tried again. A target that was restarted or restored is
        brought up from where it is. Raises HistoryMismatch where the log becomes another one.
        """
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
                self._is_unsure = True
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

    def _settle(self) -> None:
        """Read where the target is, compare that with the log, and go on from there."""
        try:
            found = self._target.position()
            if found is None and self._after is not None:
                found = as_position(self._after)
            self._position = None if found is None else self._checked(found)
        except HistoryMismatch as error:
            error.remedy = _REMEDY
            raise
        self._target.keep(self._position)
        self._is_unsure = False

    def _checked(self, position: Position) -> Position:
        """Compare a position with the log, and complete what is not known of it."""
        if position.log_id is None and position.hash is None:
            position = Position(self._start.log_id, position.version, None)
        self.log.check(position)
        return self.log.position(position.version)

    def _check_reachable(self, until: int) -> None:
        head = self.log.head().version
        if until > head:
            raise UsageError(f"the log {self.log.name!r} has no version {until}; its head is {head}")
        if until < self.position:
            raise UsageError(
                f"the target has version {self.position} already, and a follower does not go back to {until}: follow "
                "into a new target"
            )

    def _bring(self, until: int | None) -> None:
        if self._starts_again:
            self._start_again(self._find_snapshot(0, until) or Dataset(self._start, (), {}))
        elif self._position is None:
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
                self._report()
                return

    def _is_at_head(self) -> bool:
        """Whether there is nothing new, after a short while of waiting for it."""
        here = self.full_position
        head = self.log.wait_for(here.version + 1, _WAIT_SECONDS)
        if head.version > here.version:
            return False
        if (head.version, head.hash) != (here.version, here.hash):
            self.log.check(here)
        if time.monotonic() > self._checked_at + _CHECK_SECONDS:
            self._checked_at = time.monotonic()
            try:
                self._target.check()
            except TargetMoved:
                _logger.warning("the target is not where it was left, at version %d", here.version)
                self._is_unsure = True
                return False
        return True

    def _go_on(self, until: int | None) -> None:
        position = self.full_position
        for logged in self.log.read(position, until=until):
            after = position.follow(logged.record)
            self._target.take(logged)
            self._position = position = after
            if time.monotonic() > self._reported_at + _REPORT_SECONDS:
                self._report()

    def _report(self) -> None:
        """Make sure of what the target has, and let the log know."""
        self._target.check()
        self._reported_at = self._checked_at = time.monotonic()
        if self._consumer is not None and self._position is not None:
            self.log.consumers.advance(self._consumer, self._position, force=True)

    def _start_again(self, snapshot: Dataset) -> None:
        """Take away what the target has, once it is certain that the log can give it all."""
        for _ in self.log.read(snapshot.position, limit=1):
            break  # PositionGone where what follows was truncated away
        self._target.start_again()
        self._target.keep(None)
        self._load(snapshot)
        self._is_unsure = False

    def _load(self, snapshot: Dataset) -> None:
        self.log.check(snapshot.position)
        self._target.load(snapshot)
        self._position = snapshot.position
        self._starts_again = False
