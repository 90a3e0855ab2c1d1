"""When a store commits by itself: after each call, after so many changes, or after so many seconds."""

from __future__ import annotations

import threading
from collections.abc import Callable

from patchlog.errors import PatchLogError

__all__ = ["Batching"]


class Batching:
    """Calls `commit` when it is time. Its owner calls all methods under a lock that `commit` takes too."""

    def __init__(self, commit: Callable[[], object], *, every: int | None, after_seconds: float | None) -> None:
        self._commit = commit
        self._every = every
        self._after_seconds = after_seconds
        self._timer: threading.Timer | None = None
        self._error: PatchLogError | None = None

    def changed(self, changes: int) -> None:
        """There are so many changes to commit. Raises what a commit in the background has raised."""
        self.raise_error()
        if not changes:
            return
        if self._every is not None and changes >= self._every:
            self._commit()
        elif self._after_seconds is not None and self._timer is None:
            self._timer = threading.Timer(self._after_seconds, self._in_background)
            self._timer.daemon = True
            self._timer.start()

    def committed(self) -> None:
        """There is nothing to commit."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def raise_error(self) -> None:
        """Raise what a commit in the background has raised, once. Its changes are still uncommitted."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _in_background(self) -> None:
        self._timer = None
        try:
            self._commit()
        except PatchLogError as error:
            self._error = error
