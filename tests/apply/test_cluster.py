"""Where one machine is not enough: a real standalone cluster, with PostgreSQL behind the service."""

import os
import pickle
import re
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest

from patchlog.model import Add, Delete
from spark import jars
from spark.origin import Origin
from spark.tables import Tables
from spark.verification import verify

HOUSE = Path(__file__).parents[2]
SPARK = Path(pyspark.__path__[0])
ENVIRONMENT = os.environ | {
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    "PYSPARK_PYTHON": sys.executable,
    "SPARK_DAEMON_MEMORY": "128m",
    "SPARK_LOCAL_IP": "127.0.0.1",
}
# Data of a few rows: to compile for them takes longer than they do.
JVM = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC"
SETTINGS = {
    "spark.driver.defaultJavaOptions": JVM,
    "spark.driver.host": "127.0.0.1",
    "spark.executor.defaultJavaOptions": JVM,
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.databricks.delta.snapshotPartitions": "1",
}
CONF = [part for name, value in SETTINGS.items() for part in ("--conf", f"{name}={value}")]


class Cluster:
    """A master and two workers with one core each, processes of this test."""

    def __init__(self, folder):
        self.folder = folder
        self.url = None

    @contextmanager
    def running(self):
        with ExitStack() as processes:
            master = processes.enter_context(self._daemon("master", "--host", "127.0.0.1", "--port", "0"))
            self.url = self._said(master, r"Starting Spark master at (\S+)")
            for number in (1, 2):
                work = self.folder / f"worker{number}"
                sizes = ("--cores", "1", "--memory", "600m", "--work-dir", work)
                worker = processes.enter_context(self._daemon("worker", "--host", "127.0.0.1", *sizes, self.url))
                self._said(worker, r"Successfully registered (with master)")
            yield self

    def executors(self):
        """How many executors each worker has had."""
        return [len(list((self.folder / f"worker{number}").glob("app-*/*"))) for number in (1, 2)]

    @contextmanager
    def _daemon(self, kind, *arguments):
        output = self.folder / f"{kind}{len(list(self.folder.glob(f'{kind}*.log')))}.log"
        program = f"org.apache.spark.deploy.{kind}.{kind.title()}"
        command = [SPARK / "bin" / "spark-class", program, "--webui-port", "0", *arguments]
        with output.open("wb") as log:
            process = subprocess.Popen(command, env=ENVIRONMENT, stdout=log, stderr=log)
        try:
            yield process, output
        finally:
            process.terminate()
            process.wait(30)

    def _said(self, daemon, pattern):
        process, output = daemon
        deadline = time.monotonic() + 60
        while not (found := re.search(pattern, output.read_text())):
            assert process.poll() is None, output.read_text()
            assert time.monotonic() < deadline, output.read_text()
            time.sleep(0.1)
        return found[1]


@pytest.fixture
def cluster(tmp_path):
    with Cluster(tmp_path).running() as cluster:
        yield cluster


@pytest.mark.slow
def test_tables_of_a_cluster_equal_the_log(session, cluster, history_in_postgresql, warehouse):
    history = history_in_postgresql
    for number in range(8):
        history.append([Delete(*quad(number - 1)), Add(*quad(number)), Add(*quad(number + 100))])
    place = ["--source", history.url, "--log", history.name, "--warehouse", warehouse.folder]

    run([sys.executable, "-m", "spark", "apply", "--master", cluster.url, "--memory", "512m", *CONF, *place])

    warehouse.check(history.model)
    origin = Origin.of(history.url, history.name)
    with origin.opened() as log:
        tables = Tables(session, warehouse.folder, origin.identity(log))
    report = verify(session, origin, tables)
    assert (report.versions, report.differences) == (8, ())
    assert cluster.executors() == [1, 1]


@pytest.mark.slow
def test_spark_submit_applies_a_log(history, warehouse):
    """Master, memory and JARs are what spark-submit was told."""
    history.append([Add(*quad(1)), Add(*quad(2))])
    script = HOUSE / "deploy" / "spark" / "patchlog_spark.py"
    told = ["--master", "local[1]", "--driver-memory", "512m", "--jars", ",".join(map(str, jars.installed())), *CONF]
    place = ["--source", history.url, "--log", history.name, "--warehouse", warehouse.folder]

    run([SPARK / "bin" / "spark-submit", *told, script, "apply", *place])

    assert set(warehouse.quads()) == {quad(1), quad(2)}


def test_key_in_the_environment_of_the_driver_travels_with_the_origin(monkeypatch):
    monkeypatch.setenv("PATCHLOG_TOKEN", "a key")
    origin = Origin.of("http://127.0.0.1:1", "people")
    monkeypatch.delenv("PATCHLOG_TOKEN")

    assert pickle.loads(pickle.dumps(origin)).token == "a key"
    assert Origin.from_options(origin.options()).token == "a key"


def quad(number):
    return f"<http://example.org/{number}>", "<http://example.org/p>", f'"{number}"', ""


def run(command):
    command = list(map(str, command))
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
