"""A log that cannot be reached for a while: a job that follows it waits until it can, however long that takes."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from patchlog.errors import PatchLogError, StorageError
from spark.failures import explained
from spark.origin import Origin

__all__ = ["Outage"]

_FIRST_PAUSE_SECONDS: Final = 1.0
_LONGEST_PAUSE_SECONDS: Final = 60.0
_MOST_FAILURES: Final = 3
"""So many times in a row Spark may fail though the log answers."""


class Outage:
    """Counts how often a step has failed in a row, and waits longer and longer between."""

    def __init__(self, origin: Origin, warn: Callable[[str], object] = id) -> None:
        self._origin = origin
        self._warn = warn
        self._pause = _FIRST_PAUSE_SECONDS
        self._failures = 0
        self._is_on = False

    @contextmanager
    def survived(self) -> Iterator[None]:
        """Wait where what is in here fails because the log is out of reach; raise all other errors.

        An executor that cannot reach the log makes Spark fail, so then the log is asked.
        """
        try:
            yield
        except StorageError as error:
            if not error.is_transient:
                raise
            self._wait(str(error))
        except (PySparkException, Py4JJavaError) as error:
            if self._is_reachable():
                self._failures += 1
                if self._failures > _MOST_FAILURES:
                    raise
            self._wait(explained(error))

    def is_over(self) -> None:
        """Say that all is well."""
        if self._is_on:
            self._warn("going on")
        self._is_on, self._failures, self._pause = False, 0, _FIRST_PAUSE_SECONDS

    def _wait(self, reason: str) -> None:
        if not self._is_on:
            self._warn(f"waiting, and trying again until it can go on: {reason}")
        self._is_on = True
        time.sleep(self._pause * random.uniform(0.5, 1.0))  # noqa: S311  nothing secret
        self._pause = min(2 * self._pause, _LONGEST_PAUSE_SECONDS)

    def _is_reachable(self) -> bool:
        try:
            with self._origin.opened() as log:
                log.head()
        except StorageError as error:
            return not error.is_transient
        except PatchLogError:
            return True
        return True
