"""Places where a job can be made to die as by `kill -9`, so that tests can show that nothing is lost or done twice.

`PATCHLOG_SPARK_DIE_AT=changes-committed` kills the driver and its JVM there, `changes-committed:3` at the third time.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from typing import Final

from pyspark.sql import SparkSession

__all__ = ["CAPTURE_POINTS", "POINTS", "may_die"]

POINTS: Final = (
    "started",
    "tables-created",
    "planned",
    "namespaces-committed",
    "changes-read",
    "changes-committed",
    "reduced",
    "looking-up",
    "deletes-written",
    "adds-written",
    "quads-committed",
    "position-reported",
    "ended",
)
CAPTURE_POINTS: Final = ("capture-ready", "captured")
_passed: Counter[str] = Counter()


def may_die(session: SparkSession, point: str) -> None:
    """Die here, if that was asked for."""
    assert point in POINTS + CAPTURE_POINTS
    wanted, _, times = os.environ.get("PATCHLOG_SPARK_DIE_AT", "").partition(":")
    if wanted != point:
        return
    _passed[point] += 1
    if _passed[point] == int(times or 1):
        jvm = session.sparkContext._jvm  # noqa: SLF001  the only way to the JVM's process
        assert jvm is not None
        os.kill(jvm.java.lang.ProcessHandle.current().pid(), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)
