"""One Spark session with Delta, set up for the jobs here: quiet, in UTC, with the Python that runs this."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from patchlog.errors import UsageError
from spark import jars
from spark.jvm_output import JvmOutput
from spark.source import register

__all__ = ["opened_session", "start_session"]

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_LOGGING: Final = Path(__file__).parent / "log4j2.properties"
_SETTINGS: Final = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Delta's default of 50 is for tables of millions of files.
    "spark.databricks.delta.snapshotPartitions": "2",
    # Nobody sees the plans, which Spark writes down for its pages.
    "spark.sql.ui.explainMode": "simple",
    # A merge has some sixty pieces of generated code: with what else a job does, more than the hundred that are kept.
    "spark.sql.codegen.cache.maxEntries": "2000",
}
_JAVA_OPTIONS: Final = (
    # Spark's classes fill more than 160 MB, and the JVM collects all of its garbage at each step on the way there.
    "-XX:MetaspaceSize=256m",
    # Half of what small jobs cost is the JVM's compiling of plans and of Delta, which are run a few times each. So the
    # best compiler is left for what runs four times as often as usual, and what it made is not thrown away for room.
    "-XX:Tier4InvocationThreshold=20000",
    "-XX:Tier4MinInvocationThreshold=5000",
    "-XX:Tier4CompileThreshold=60000",
    "-XX:ReservedCodeCacheSize=512m",
)


def start_session(
    master: str | None = None, *, memory: str = "2g", settings: Mapping[str, str] = _NOTHING
) -> SparkSession:
    """Start a session, or take the one that runs. Under spark-submit, master, memory and JARs are what it was told.

    Raises UsageError where Java or Delta's JARs are missing.
    """
    # Nothing of the pandas that it speaks of is used here.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    wanted = {"spark.app.name": "patchlog"} | _SETTINGS | _local_settings(memory) | dict(settings)
    if not _is_submitted():
        jars.check_java()
        # Workers that run another Python than the driver do not connect back.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        wanted |= {"spark.master": master or "local[*]", "spark.jars": ",".join(map(str, jars.installed()))}
    builder = SparkSession.Builder()
    for name, value in wanted.items():
        builder.config(name, value)
    try:
        if not _is_submitted():
            _start_jvm(wanted)
        session = builder.getOrCreate()
    except RuntimeError as error:
        raise UsageError(f"Spark does not start: {error}") from error
    register(session)
    return session


@contextmanager
def opened_session(
    master: str | None = None, *, memory: str = "2g", settings: Mapping[str, str] = _NOTHING
) -> Iterator[SparkSession]:
    """Start a session and stop it in the end."""
    session = start_session(master, memory=memory, settings=settings)
    try:
        yield session
    finally:
        session.stop()


def _start_jvm(settings: Mapping[str, str]) -> None:
    """Start the JVM as Spark does, unless one runs, and have an eye on what it prints."""
    if SparkContext._gateway is not None:  # noqa: SLF001  Spark has no other way to be given a JVM
        return
    output = JvmOutput()
    output.start()
    conf = SparkConf().setAll(list(settings.items()))
    try:
        gateway: Any = launch_gateway(conf, {"stdout": output.descriptor, "stderr": output.descriptor})  # type: ignore[no-untyped-call]
    except RuntimeError as error:
        os.close(output.descriptor)
        said = next(filter(None, output.held_back()), str(error))
        raise UsageError(f"Spark does not start: {said}") from error
    os.close(output.descriptor)
    output.let_go()
    SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001


def _is_submitted() -> bool:
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _local_settings(memory: str) -> dict[str, str]:
    if _is_submitted():
        return {}
    return {
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": " ".join((f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}", *_JAVA_OPTIONS)),
        "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
        # VACUUM lists a folder in as many tasks, of which Spark's default are ten thousand.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(2 * (os.cpu_count() or 1)),
    }
