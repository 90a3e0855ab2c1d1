"""A bar on the terminal for work that takes a while. Without a terminal, and for short work, there is none."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    import rich.progress

__all__ = ["Progress"]

_SHOW_AFTER_SECONDS: Final = 0.5


class Progress:
    """Counts the bytes that are read, and shows them on standard error once the work has taken half a second."""

    def __init__(self) -> None:
        self.is_wanted = sys.stderr is not None and sys.stderr.isatty()
        self._done = 0
        self._total: int | None = 0
        self._begin = time.monotonic()
        self._bar: rich.progress.Progress | None = None
        self._task: rich.progress.TaskID | None = None

    def expect(self, size: int | None) -> None:
        """Say how much an input has; None where that is not known."""
        self._total = None if self._total is None or size is None else self._total + size

    def advance(self, size: int) -> None:
        """Say that so much more was read."""
        self._done += size
        if not self.is_wanted:
            return
        if self._bar is None:
            if time.monotonic() - self._begin < _SHOW_AFTER_SECONDS:
                return
            self._show()
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self._done, total=self._total)

    def pause(self) -> None:
        """Take the bar away, so that a line can be written; it comes back by itself."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.pause()

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        self._bar = Progress(
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task("", completed=self._done, total=self._total)
        self._bar.start()
