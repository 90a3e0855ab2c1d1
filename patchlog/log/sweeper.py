"""Finishes what was begun to be deleted, by this process or by one that was killed over it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from logging import getLogger
from threading import Event, Thread
from typing import Final

from patchlog.errors import LogNotFound, StorageError
from patchlog.log.batch import Hold
from patchlog.log.database import Database
from patchlog.log.sql_steps import (
    delete_some_of_log,
    delete_some_of_stage,
    mark_old_stages,
    unfinished_logs,
    unfinished_stages,
)
from patchlog.log.sql_truncate import clear_truncated
from patchlog.log.writer import Job, Writer

__all__ = ["Sweeper"]

_logger: Final = getLogger(__name__)

_STEPS_AT_ONCE: Final = 3
"""That who opens a store waits for; a thread takes the others."""


class Sweeper:
    """Sweeps a database when it is opened, and when it is asked to."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer
        self._closing = Event()
        self._thread: Thread | None = None
        steps = self._steps()
        if sum(1 for _ in zip(range(_STEPS_AT_ONCE), steps, strict=False)) == _STEPS_AT_ONCE:
            self._thread = Thread(target=self._work, args=[steps], name="patchlog-sweeper", daemon=True)
            self._thread.start()

    def sweep(self, meanwhile: Callable[[int], object] | None = None) -> None:
        """Delete all that is to be deleted. `meanwhile` is called at each step; what it raises leaves the rest."""
        for count, _ in enumerate(self._steps(), 1):
            if meanwhile is not None:
                meanwhile(count)

    def close(self) -> None:
        """Stop; what is left is for the next time."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join()

    def _work(self, steps: Iterator[None]) -> None:
        try:
            for _ in steps:
                if self._closing.is_set():
                    return
        except StorageError as error:
            _logger.warning("what is left of deleted logs stays for now: %s", error)

    def _steps(self) -> Iterator[None]:
        """Do it all, with a pause for who waits for nothing of it after each step."""
        self._writer.do(Job(mark_old_stages))
        for stage in unfinished_stages(self._database):
            while not self._writer.do(Job(partial(delete_some_of_stage, stage=stage))):
                yield
        deleted, truncated = unfinished_logs(self._database)
        for name in truncated:
            with suppress(LogNotFound):
                while self._writer.do(Job(partial(clear_truncated, name=name), name)) is not None:
                    yield
        for mark in deleted:
            while not self._writer.do(Job(partial(delete_some_of_log, mark=mark), mark, hold=Hold.WHOLE)):
                yield
