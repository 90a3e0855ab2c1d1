"""What all tests share."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from sqlalchemy import create_engine, text

from patchlog.client import HttpLogStore
from patchlog.log.database import Database
from patchlog.log.migration import migrate
from patchlog.model import Add, Header, Punctuation, TransactionCommit, TransactionStart
from patchlog.patch import write
from tests.waiting import wait_until

HOUSE = Path(__file__).parents[1]

# What measures the machine fails tests that are right on a busy one.
settings.register_profile("patchlog", parent=settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patchlog")


# The native codec is tested where it is built, and has to be built where `PATCHLOG_REQUIRE_NATIVE=1` says so.
HAS_NATIVE = find_spec("patchlog._native") is not None or os.environ.get("PATCHLOG_REQUIRE_NATIVE") == "1"
IMPLEMENTATIONS = {"pure": "patchlog.pure"} | ({"native": "patchlog._native"} if HAS_NATIVE else {})


def pytest_report_header():
    return f"implementations of the codec: {', '.join(IMPLEMENTATIONS)}"


@pytest.fixture(scope="session", params=IMPLEMENTATIONS.values(), ids=IMPLEMENTATIONS.keys())
def codec(request):
    """Each implementation of the codec in turn; its names are those of `patchlog.engine`."""
    return import_module(request.param)


@pytest.fixture(scope="session")
def both_codecs():
    """Both implementations, to compare them."""
    if not HAS_NATIVE:
        pytest.skip("the native codec is not built here")
    return import_module("patchlog.pure"), import_module("patchlog._native")


def pytest_configure(config):
    folder = os.environ.get("PATCHLOG_SHARED")
    config.shared_data = Path(folder) if folder else config.rootpath.parent / "shared"


@pytest.fixture
def postgresql_url(migrated_postgresql):
    """A migrated database without logs."""
    engine = create_engine(migrated_postgresql)
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM log"))
    engine.dispose()
    return migrated_postgresql


@pytest.fixture(scope="session")
def migrated_postgresql(postgresql_server):
    url = postgresql_server.new_database()
    database = Database(url)
    migrate(database)
    database.close()
    return url


@pytest.fixture(scope="session")
def postgresql_programs():
    programs = _postgresql_programs()
    if programs is None:
        reason = "PostgreSQL (initdb, pg_ctl) is not on this machine"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    return programs


@pytest.fixture(scope="session")
def postgresql_server(postgresql_programs):
    """A server of our own, which ends with the tests."""
    server = PostgresqlServer(postgresql_programs)
    try:
        server.start()
        yield server
    finally:
        server.end()


@pytest.fixture
def own_postgresql_server(postgresql_programs):
    """A server of a test that does it harm."""
    server = PostgresqlServer(postgresql_programs)
    try:
        server.start()
        yield server
    finally:
        server.end()


class PostgresqlServer:
    def __init__(self, programs):
        self._programs = programs
        self._folder = Path(tempfile.mkdtemp(prefix="patchlog-pg-"))
        self._databases = 0
        # PostgreSQL does not run as root.
        self._as_user = []
        if os.geteuid() == 0:
            shutil.chown(self._folder, "postgres", "postgres")
            self._as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]

    def start(self):
        self._run("initdb", "-D", self._data, "-U", "patchlog", "-A", "trust", "-E", "UTF8", "--no-sync")
        self.go_on()

    def go_on(self):
        """Start again after `stop` or `kill`."""
        start = ("pg_ctl", "start", "-w", "-D", self._data, "-l", self._folder / "log", "-o", self._options)
        for _ in range(50):
            if self._try(*start):
                return
            time.sleep(0.1)  # a process that was forked while the server was killed ends by itself
        pytest.fail((self._folder / "log").read_text())

    def stop(self):
        self._run("pg_ctl", "stop", "-m", "fast", "-D", self._data)

    def kill(self):
        """Kill the server and all of its processes, as a power cut would."""
        leader = int((self._data / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{leader}/task/{leader}/children").read_text().split()
        for process in (leader, *map(int, children)):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        while any(_is_alive(process) for process in (leader, *children)):
            time.sleep(0.01)

    def end(self):
        if (self._data / "postmaster.pid").exists():
            self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def restart(self):
        self._run("pg_ctl", "restart", "-w", "-m", "immediate", "-D", self._data, "-l", self._folder / "log")

    def new_database(self):
        self._databases += 1
        name = f"logs{self._databases}"
        engine = create_engine(self._url("postgres"), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text(f"CREATE DATABASE {name}"))
        engine.dispose()
        return self._url(name)

    @property
    def environment(self):
        """What PostgreSQL's own programs find it by."""
        return {"PGHOST": str(self._folder), "PGUSER": "patchlog"}

    @property
    def _data(self):
        return self._folder / "data"

    @property
    def _options(self):
        return f"-k {self._folder} -c listen_addresses= -c max_connections=60"

    def _url(self, name):
        return f"postgresql+psycopg://patchlog@/{name}?host={self._folder}"

    def _run(self, program, *arguments):
        assert self._try(program, *arguments), f"{program} failed"

    def _try(self, program, *arguments):
        done = subprocess.run(
            [*self._as_user, self._programs / program, *arguments],
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # the server keeps it open
            stderr=subprocess.DEVNULL,
            check=False,
        )
        return done.returncode == 0


def _is_alive(process):
    status = Path(f"/proc/{process}/stat")
    try:
        return status.read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _postgresql_programs():
    on_path = shutil.which("initdb")
    folders = [Path(on_path).parent] if on_path else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


@pytest.fixture
def service_url(running_service):
    """A service without logs."""
    store = HttpLogStore(running_service)
    for log in store.list():
        store.delete(log.name)
    store.close()
    return running_service


@pytest.fixture(scope="session")
def running_service(tmp_path_factory):
    """A service of our own on SQLite, which ends with the tests."""
    if find_spec("uvicorn") is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("the extra `api` is not installed")
    folder = tmp_path_factory.mktemp("service")
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "api", "--port", "0", "--database", "sqlite:///log.db"],
            env=os.environ | {"PYTHONPATH": str(HOUSE)},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        yield url_of(process, folder / "output")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def url_of(process, output):
    """Where a service listens, as it says in its log."""

    def found():
        assert process.poll() is None, output.read_text()
        return re.search(r"running on (http://[^ ]*:\d+)", output.read_text())

    return wait_until(found)[1]


class Patches:
    """Makes patches, as operations and as bytes."""

    A = "aaaaaaaa-0000-4000-8000-000000000000"
    B = "bbbbbbbb-0000-4000-8000-000000000000"
    C = "cccccccc-0000-4000-8000-000000000000"

    def operations(self, subject="s", *, id=None, prev=None, values=('"v"',)):
        headers = [Header("id", f"<urn:uuid:{id}>")] if id else []
        headers += [Header("prev", f"<urn:uuid:{prev}>")] if prev else []
        adds = [Add(f"<http://example.org/{subject}>", "<http://example.org/p>", value, "") for value in values]
        return [*headers, TransactionStart(), *adds, TransactionCommit()]

    def stream(self, *patches, format="jelly-patch", **options):
        """The bytes of patches, each a list of operations."""
        operations = [operation for patch in patches for operation in [*patch, Punctuation()]]
        sink = _Sink()
        write(sink, operations, format, **options)
        return [bytes(sink.data)]

    def one(self, subject="s", **headers):
        """The bytes of one patch, to be appended."""
        return self.stream(self.operations(subject, **headers))


class _Sink:
    def __init__(self):
        self.data = bytearray()

    def write(self, data):
        self.data += data
        return len(data)


@pytest.fixture(scope="session")
def patches():
    return Patches()
