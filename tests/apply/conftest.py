"""Spark and Delta, real ones: one session for all tests here, and services as processes of their own."""

import gc
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import warnings
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from zlib import crc32

import pytest

from patchlog.client import HttpLogStore
from patchlog.effect import apply_effect, effect
from patchlog.model import (
    Add,
    Delete,
    NamespaceAdd,
    NamespaceDelete,
    Punctuation,
    TransactionAbort,
    TransactionCommit,
    TransactionStart,
)
from patchlog.patch import canonical

HOUSE = Path(__file__).parents[2]
# Data of a few rows: to compile for them, in Spark or in the JVM, takes longer than they do.
SMALL = {
    # The cache of code is 48 MB with one compiler only, and Spark does not fit in.
    "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC "
    "-Xms1g -Xmn400m",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "1",
}


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            # A session takes a JVM, so one process runs them all, where tests are spread over processes.
            item.add_marker(pytest.mark.xdist_group("spark"))
            # Spark leaves the sockets to its JVM to the collector of garbage.
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))
            item.add_marker(
                pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
            )


@pytest.fixture(scope="session")
def session():
    """The Spark session. Its settings are those of the commands, for small data."""
    if shutil.which("java") is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("Java is not on this machine")
    from spark.session import opened_session

    with opened_session("local[2]", memory="1g", settings=SMALL) as opened:
        yield opened
        context = type(opened.sparkContext)
    jvm = context._gateway.proc
    context._gateway.shutdown()
    context._gateway = context._jvm = None
    jvm.stdin.close()
    jvm.wait(20)
    collect_sockets()


@pytest.fixture(autouse=True)
def _no_sockets_are_left():
    """What Spark leaves to the collector is collected here, before a test elsewhere is told of it."""
    yield
    collect_sockets()


def collect_sockets():
    with warnings.catch_warnings(action="ignore", category=ResourceWarning):
        gc.collect()


@pytest.fixture(scope="session")
def service(tmp_path_factory):
    """The URL of a service on a port of its own."""
    folder = tmp_path_factory.mktemp("service")
    with running_service(folder, f"sqlite:///{folder}/log.db") as url:
        yield url


@contextmanager
def running_service(folder, database, *options):
    output = folder / "output"
    arguments = ["--port", "0", "--database", database, "--data-dir", str(folder / "data"), *options]
    with output.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "api", *arguments], cwd=folder, env=environment(), stdout=log, stderr=log
        )
    try:
        deadline = time.monotonic() + 60
        while not (found := re.search(r"running on (http://[^ ]*:\d+)", output.read_text())):
            assert process.poll() is None, output.read_text()
            assert time.monotonic() < deadline, output.read_text()
            time.sleep(0.05)
        yield found[1]
    finally:
        process.terminate()
        process.wait(20)


def environment(**more):
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PATCHLOG_SPARK_DIE")}
    return ours | {"PYTHONPATH": str(HOUSE)} | more


@dataclass
class Model:
    """What the tables have to hold: a plain dict for each, kept by the rules of `patchlog.effect`."""

    quads: dict = field(default_factory=dict)
    namespaces: dict = field(default_factory=dict)
    changes: set = field(default_factory=set)
    version: int = 0

    def apply(self, operations):
        self.version += 1
        change = effect(operations)
        self.changes |= {(self.version, "+", *quad) for quad in change.adds}
        self.changes |= {(self.version, "-", *quad) for quad in change.deletes}
        quads, namespaces = set(self.quads), {key: iri for key, (iri, _) in self.namespaces.items()}
        apply_effect(quads, namespaces, change)
        self.quads = {quad: self.quads.get(quad, self.version) for quad in quads}
        kept = {key: since for key, (iri, since) in self.namespaces.items() if namespaces.get(key) == iri}
        self.namespaces = {key: (iri, kept.get(key, self.version)) for key, iri in namespaces.items()}


class History:
    """A log of a service, patches made at random, and what they come to."""

    def __init__(self, url, name, seed):
        self.url, self.name = url, name
        self.model = Model()
        self.random = Random(seed)
        store = HttpLogStore(url)
        store.create(name)
        self.log = store.log(name)

    def append(self, operations):
        self.log.append([canonical([*operations, Punctuation()])])
        self.model.apply(operations)

    def grow(self, patches):
        for _ in range(patches):
            self.append(self.random_patch())

    def random_patch(self):
        operations = []
        for _ in range(self.random.randrange(3)):
            operations += self._some()
        for _ in range(self.random.randrange(3)):
            ends = [TransactionCommit(), TransactionCommit(), TransactionAbort()]
            operations += [TransactionStart(), *self._some(), self.random.choice(ends)]
        return operations

    def _some(self):
        return [self._one() for _ in range(self.random.randrange(8))]

    def _one(self):
        choose = self.random.choice
        graph = choose(["", "", "<http://example.org/g>", "_:g"])
        if self.random.random() < 0.15:
            name = choose(["", "ex", "foaf"])
            kind = choose([NamespaceAdd, NamespaceAdd, NamespaceDelete])
            return kind(name, choose(["<http://example.org/1#>", "<http://example.org/2#>"]), graph)
        subject = choose(
            ["<http://example.org/a>", "_:b", "<< <a:s> <a:p> <a:o> >>".replace("<<", "<<(").replace(">>", ")>>")]
        )
        object_ = choose(
            ['"x"', '"x"@en', '"1"^^<http://www.w3.org/2001/XMLSchema#int>', '"a\\"\\nü 𝄞"', "<http://example.org/a>"]
        )
        return choose([Add, Delete])(
            subject, choose(["<http://example.org/p>", "<http://example.org/q>"]), object_, graph
        )


@pytest.fixture
def log_name(request):
    """The name of the log of this test and no other: they share a service, and tests of two files may have one name."""
    words = re.sub(r"[^A-Za-z0-9]", "-", request.node.name)
    return f"{words[:60]}-{crc32(request.node.nodeid.encode()):08x}"


@pytest.fixture
def history(service, log_name):
    """A new log; its patches differ from test to test, and are the same each time."""
    return History(service, log_name, seed=log_name)


@pytest.fixture
def other_history(history):
    """Another log beside it."""
    return History(history.url, f"{history.name}-2", seed=2)


@pytest.fixture
def history_in_postgresql(migrated_postgresql, tmp_path):
    """A new log of a service of its own, which keeps it in PostgreSQL."""
    folder = tmp_path / "service"
    folder.mkdir()
    with running_service(folder, migrated_postgresql) as url:
        yield History(url, "in-postgresql", seed=1)


class Warehouse:
    """A folder of tables, read back as plain Python; of tables that logs share, what is of one log."""

    def __init__(self, session, folder, log=None):
        self.session, self.folder, self.log = session, str(folder), log

    def of(self, history):
        return Warehouse(self.session, self.folder, history.name)

    def read(self, table):
        rows = self.session.read.format("delta").load(f"{self.folder}/{table}")
        return rows if self.log is None else rows.where(f"log = '{self.log}'").drop("log")

    def quads(self):
        rows = self.read("quads").collect()
        assert len({row[:4] for row in rows}) == len(rows), "a quad stands twice"
        return {(row.subject, row.predicate, row.object, row.graph): row.since for row in rows}

    def namespaces(self):
        rows = self.read("namespaces").collect()
        assert len({row[:2] for row in rows}) == len(rows), "a namespace stands twice"
        return {(row.graph, row.name): (row.iri, row.since) for row in rows}

    def changes(self):
        rows = self.read("changes").collect()
        found = {(r.version, r.operation, r.subject, r.predicate, r.object, r.graph) for r in rows}
        assert len(found) == len(rows), "a change stands twice"
        return found

    def check(self, model):
        for what in ("changes", "quads", "namespaces"):
            found, wanted = getattr(self, what)(), getattr(model, what)
            if isinstance(found, dict):
                found, wanted = set(found.items()), set(wanted.items())
            assert found == wanted, f"{what}: missing {wanted - found}, too many {found - wanted}"


def places_of(history, warehouse):
    """The options of a command that name a log and its tables."""
    return ["--source", history.url, "--log", history.name, "--warehouse", warehouse.folder]


@pytest.fixture
def warehouse(session, tmp_path):
    return Warehouse(session, tmp_path / "warehouse")


@pytest.fixture
def apply(session, warehouse):
    """Run the apply job once in this process: `apply(history, …sizes)`."""
    from spark.job import ApplyJob, Sizes
    from spark.origin import Origin
    from spark.tables import Tables

    def apply_once(history, *, into=warehouse, tell=id, deletion_vectors=True, is_shared=False, **sizes):
        origin = Origin.of(history.url, history.name)
        with origin.opened() as log:
            tables = Tables(session, into.folder, origin.identity(log))
        tables.create(deletion_vectors=deletion_vectors, is_shared=is_shared)
        ApplyJob(session, origin, tables, Sizes(**sizes), tables.consumer_name(), tell).run_available()
        return tables

    return apply_once


@pytest.fixture
def in_process(session, monkeypatch, capsys):
    """Run `python -m spark …` in this process and session: its exit code, and what it printed on both streams."""
    from patchlog.cli.outcome import run
    from spark.cli import root

    monkeypatch.setattr("spark.cli.opened_session", lambda *_, **__: nullcontext(session))

    def run_here(*arguments):
        capsys.readouterr()
        code = run(root, [str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return run_here


@pytest.fixture
def quick():
    """Options that make a command's session as that of the tests."""
    return [word for name, value in SMALL.items() for word in ("--conf", f"{name}={value}")] + ["--memory", "1g"]


@pytest.fixture
def command(tmp_path):
    """Run `python -m spark …` as a process of its own; its session is small."""

    def run(*arguments, die_at=None, check=True):
        variables = {"PATCHLOG_SPARK_DIE_AT": die_at} if die_at else {}
        done = subprocess.run(
            [sys.executable, "-m", "spark", *map(str, arguments)],
            cwd=tmp_path,
            env=environment(**variables),
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        if die_at:
            assert done.returncode == -signal.SIGKILL, done.stderr
        elif check:
            assert done.returncode == 0, done.stderr
        return done

    return run
