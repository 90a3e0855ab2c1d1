"""A function as the target: it gets each change, and keeps the position itself if it has to outlive the process.

At least once: a function that fails gets the same change again when it is called anew.
"""

from __future__ import annotations

from collections.abc import Callable

from patchlog.errors import UsageError
from patchlog.followers.contract import Change, Dataset
from patchlog.log.records import LogDescription

__all__ = ["CallbackTarget"]


class CallbackTarget:
    """Calls a function with each `Change`, and another with a snapshot where the log begins with one."""

    def __init__(self, on_change: Callable[[Change], object], on_dataset: Callable[[Dataset], object] | None) -> None:
        self._on_change = on_change
        self._on_dataset = on_dataset

    def begin(self, log: LogDescription) -> None:
        """A function does not say."""
        del log

    def apply(self, change: Change) -> None:
        """Hand the change over."""
        self._on_change(change)

    def load(self, dataset: Dataset) -> None:
        """Hand the snapshot over."""
        if self._on_dataset is None:
            raise UsageError(
                f"the patches up to version {dataset.version} are only there as a snapshot: pass on_dataset=, a "
                "function that takes one"
            )
        self._on_dataset(dataset)

    def close(self) -> None:
        """Nothing is held."""
