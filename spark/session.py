"""One Spark session with Delta: on this machine set up for the jobs here, elsewhere as it was started."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from patchlog.errors import UsageError
from spark import jars
from spark.jvm_output import JvmOutput
from spark.source import register

__all__ = ["is_on_this_machine", "opened_session", "start_session"]

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_LOGGING: Final = Path(__file__).parent / "log4j2.properties"
_EXTENSION: Final = "io.delta.sql.DeltaSparkSessionExtension"
_EXTENSIONS: Final = "spark.sql.extensions"
_CATALOG: Final = "spark.sql.catalog.spark_catalog"
_DELTA: Final = {_EXTENSIONS: _EXTENSION, _CATALOG: "org.apache.spark.sql.delta.catalog.DeltaCatalog"}
_LAPTOP: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Delta's default of 50 is for tables of millions of files.
    "spark.databricks.delta.snapshotPartitions": "2",
    # Nobody sees the plans, which Spark writes down for its pages.
    "spark.sql.ui.explainMode": "simple",
    # A merge has some sixty pieces of generated code: with what else a job does, more than the hundred that are kept.
    "spark.sql.codegen.cache.maxEntries": "2000",
    "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
    # VACUUM lists a folder in as many tasks, of which Spark's default are ten thousand.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(2 * (os.cpu_count() or 1)),
}
"""What suits a session on this machine, where nothing else is said."""

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
    """Start a session, or take one of our own in the Spark that runs, which stays as it is.

    Under spark-submit master, memory, JARs and all settings are those that it was given; Delta's extension and catalog
    are added where there are none. On a cluster only what is asked for here is set; on this machine also what suits a
    small job. Nothing replaces what `spark-defaults.conf` or `settings` say.

    Raises UsageError where Java or something of Delta's is missing.
    """
    # Nothing of the pandas that it speaks of is used here.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    running = _running_session()
    session = _session_beside(running, settings) if running else _new_session(master, memory, settings)
    register(session)
    return session


@contextmanager
def opened_session(
    master: str | None = None, *, memory: str = "2g", settings: Mapping[str, str] = _NOTHING
) -> Iterator[SparkSession]:
    """Start a session and stop Spark in the end, unless it was running before."""
    is_running = _running_session() is not None
    session = start_session(master, memory=memory, settings=settings)
    try:
        yield session
    finally:
        if not is_running:
            session.stop()


def _running_session() -> SparkSession | None:
    # A session whose Spark was stopped is none.
    context = SparkContext._active_spark_context  # noqa: SLF001  Spark starts one where it is asked for it
    return None if context is None else SparkSession.Builder().getOrCreate()


def _session_beside(running: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """A session with the settings of another one, but of its own from now on."""
    _check_delta(running.conf.get)
    session = SparkSession(running.sparkContext, running._jsparkSession.cloneSession())  # noqa: SLF001
    for name, value in settings.items():
        # Spark has been started, and some can be chosen only then.
        if session.conf.isModifiable(name):
            session.conf.set(name, value)
    return session


def _new_session(master: str | None, memory: str, settings: Mapping[str, str]) -> SparkSession:
    wanted = {} if _is_submitted() else _wanted(master, memory) | dict(settings)
    try:
        if not _is_submitted():
            _start_jvm(wanted)
        else:
            SparkContext._ensure_initialized()  # noqa: SLF001
        given = SparkConf()
        _check_jars()
        wanted = wanted or dict(settings)
        for name, value in (_DELTA | (_LAPTOP if is_on_this_machine(master) else {})).items():
            if not given.contains(name):
                wanted.setdefault(name, value)
        extensions = wanted.get(_EXTENSIONS) or given.get(_EXTENSIONS, "") or ""
        if _EXTENSION not in extensions.split(","):
            wanted[_EXTENSIONS] = f"{extensions},{_EXTENSION}"
        builder = SparkSession.Builder()
        for name, value in wanted.items():
            builder.config(name, value)
        return builder.getOrCreate()
    except RuntimeError as error:
        raise UsageError(f"Spark does not start: {error}") from error


def _wanted(master: str | None, memory: str) -> dict[str, str]:
    """What the JVM is started with."""
    jars.check_java()
    # Workers that run another Python than the driver do not connect back.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    options = (f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}", *_JAVA_OPTIONS)
    return {
        "spark.app.name": "patchlog",
        "spark.master": master or "local[*]",
        "spark.jars": ",".join(map(str, jars.installed())),
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": " ".join(options),
    }


def is_on_this_machine(master: str | None) -> bool:
    """Whether a session of this master would be one of this machine alone, set up here."""
    return not _is_submitted() and (master is None or master.startswith("local"))


def _check_jars() -> None:
    jvm: Any = SparkContext._jvm  # noqa: SLF001  there is a JVM, and no context yet
    try:
        jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(_EXTENSION)
    except Py4JJavaError:
        raise UsageError(
            "this Spark has no Delta: start it with --packages "
            f"{jars.PACKAGE}, or with --jars and the files that `python -m spark setup` fetches"
        ) from None


def _check_delta(setting: Callable[..., Any]) -> None:
    """Raise UsageError where a session has been started without Delta."""
    _check_jars()
    missing = [
        f"--conf {name}={value}"
        for name, value in _DELTA.items()
        if (_EXTENSION not in str(setting(name, "")) if name == _EXTENSIONS else not setting(name, None))
    ]
    if missing:
        raise UsageError(
            f"this Spark session has been started without Delta: start it with {' '.join(missing)}, which cannot be "
            "set later"
        )


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
