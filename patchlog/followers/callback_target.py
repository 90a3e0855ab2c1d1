"""A function as the target: it gets each change, and keeps the position itself if it has to outlive the process.

At least once: a function that fails gets the same change again when it is called anew.
"""

from __future__ import annotations

from collections.abc import Callable

from patchlog.errors import UsageError
from patchlog.followers.contract import Change, Dataset
from patchlog.log.position import Position
from patchlog.log.records import LogDescription

__all__ = ["CallbackTarget"]


class CallbackTarget:
    """Calls a function with each `Change`, and another with a snapshot where the log begins with one."""

    def __init__(self, on_change: Callable[[Change], object], on_dataset: Callable[[Dataset], object] | None) -> None:
        self._on_change = on_change
        self._on_dataset = on_dataset
        self._log_id = ""
        self._kept: Position | None = None

    def begin(self, log: LogDescription, part: str) -> None:
        """Say which log this is; a function does not say which part it has."""
        del part
        self._log_id = log.id

    def position(self) -> Position | None:
        """What was kept: a function does not say."""
        return self._kept

    def keep(self, position: Position | None) -> None:
        """Go on from a position."""
        self._kept = position

    def check(self) -> None:
        """A function is where it was."""

    def start_again(self) -> None:
        """Raise UsageError: what a function has done is its own."""
        raise UsageError("a function cannot be started again from here: call follow with after=0, or on_dataset=")

    def apply(self, change: Change) -> None:
        """Hand the change over."""
        self._on_change(change)
        self._kept = Position(self._log_id, change.record.version, change.record.chain_hash)

    def load(self, dataset: Dataset) -> None:
        """Hand the snapshot over."""
        if self._on_dataset is None:
            raise UsageError(
                f"the patches up to version {dataset.version} are only there as a snapshot: pass on_dataset=, a "
                "function that takes one"
            )
        self._on_dataset(dataset)
        self._kept = dataset.position

    def close(self) -> None:
        """Nothing is held."""
