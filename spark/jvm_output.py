"""What the JVM prints, without what nobody can do anything about, so that a command prints what it has to say."""

from __future__ import annotations

import os
import re
from threading import Lock, Thread
from typing import Final

__all__ = ["JvmOutput"]

# Java announces a module that Spark asks for, and VACUUM prints what it counts.
_NOISE: Final = re.compile(rb"WARNING: Using incubator modules: |Deleted \d+ files and directories ")
_STANDARD_ERROR: Final = 2


class JvmOutput(Thread):
    """Passes on to standard error what comes by a pipe. Until the JVM has started, it is held back."""

    def __init__(self) -> None:
        super().__init__(name="output-of-jvm", daemon=True)
        self._reading, self.descriptor = os.pipe()
        self._held: list[bytes] | None = []
        self._lock = Lock()

    def run(self) -> None:
        """Read until the JVM ends."""
        with os.fdopen(self._reading, "rb") as lines:
            for line in lines:
                if not _NOISE.match(line):
                    self._take(line)

    def let_go(self) -> None:
        """Pass on what was held back, and what comes."""
        with self._lock:
            for line in self._held or ():
                os.write(_STANDARD_ERROR, line)
            self._held = None

    def held_back(self) -> list[str]:
        """The lines of a JVM that has not started, and has ended."""
        self.join()
        return [line.decode(errors="replace").strip() for line in self._held or ()]

    def _take(self, line: bytes) -> None:
        with self._lock:
            if self._held is None:
                os.write(_STANDARD_ERROR, line)
            else:
                self._held.append(line)
