"""Services as processes of their own, on a socket of this machine."""

import os
import re
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from patchlog.engine import PatchDecoder
from patchlog.log.database import Database
from patchlog.log.migration import migrate
from tests.service.delta_clients import DeltaClient
from tests.waiting import wait_until

HOUSE = Path(__file__).parents[2]
JELLY = {"Content-Type": "application/x-jelly-rdf-patch"}
TEXT = {"Content-Type": "application/rdf-patch"}
JSON = {"Accept": "application/json"}


class ServiceProcess:
    """A service, and a client of it. `program` is what Python runs."""

    def __init__(self, folder, database, program=("-m", "api"), **settings):
        self.database = database
        self._log = folder / f"service-{time.monotonic_ns()}.log"
        options = {"port": "0", "database": database, "data-dir": str(folder / "data")}
        options |= {name.replace("_", "-"): str(value) for name, value in settings.items()}
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    *program,
                    *[word for name, value in options.items() for word in (f"--{name}", value)],
                ],
                cwd=folder,
                env={name: value for name, value in os.environ.items() if not name.startswith("PATCHLOG_")}
                | {"PYTHONPATH": str(HOUSE)},
                stdout=log,
                stderr=log,
            )
        self.port = self._awaited_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.client = httpx.Client(base_url=self.url, timeout=60, headers={"Accept-Encoding": "identity"})

    @property
    def log_text(self):
        return self._log.read_text()

    @property
    def open_tails(self):
        """The tails and long polls that go on."""
        return float(re.search(r"^patchlog_tails (\S+)$", self.client.get("/metrics").text, re.MULTILINE)[1])

    @property
    def peak_bytes(self):
        """The most memory that was resident since `forget_peak`."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024

    def forget_peak(self):
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    @property
    def resident_bytes(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) * 1024

    @property
    def cpu_seconds(self):
        """How long it has worked so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise
        self.client.close()

    def _awaited_port(self):
        def port():
            assert self.process.poll() is None, self.log_text
            return re.search(r"running on http://[^ ]*:(\d+)", self.log_text)

        return int(wait_until(port, pause=0.02)[1])


@pytest.fixture
def start(tmp_path):
    """Start a service with settings of its own."""
    started = []

    def start_one(database=None, **settings):
        started.append(ServiceProcess(tmp_path, database or f"sqlite:///{tmp_path}/log.db", **settings))
        return started[-1]

    yield start_one
    for one in started:
        one.end()


@contextmanager
def running(folder, database):
    one = ServiceProcess(folder, database, poll_seconds=0.3)
    try:
        yield one
    finally:
        one.end()


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def service(request, tmp_path_factory):
    """A service on each database, shared by all tests: they have logs of their own."""
    folder = tmp_path_factory.mktemp("service")
    url = f"sqlite:///{folder}/log.db"
    if request.param == "postgresql":
        url = request.getfixturevalue("postgresql_server").new_database()
        database = Database(url)
        migrate(database)
        database.close()
    with running(folder, url) as one:
        yield one


@pytest.fixture(scope="session")
def sqlite_service(tmp_path_factory):
    """For what does not depend on the database."""
    folder = tmp_path_factory.mktemp("service")
    with running(folder, f"sqlite:///{folder}/log.db") as one:
        yield one


@pytest.fixture(scope="session")
def soak_seconds():
    """How long a slice of what could go on for ever is: `make soak` has long ones."""
    return float(os.environ.get("PATCHLOG_SOAK_SECONDS", "10"))


_NAMES = iter(range(1_000_000))


class HttpLog:
    """A log of a service, and what is done with it."""

    def __init__(self, service):
        self.name = f"log-{os.getpid()}-{next(_NAMES)}"
        self.path = f"/logs/{self.name}"
        self.service = service
        self.client = service.client
        assert self.client.put(self.path).status_code == 201

    def append(self, chunks, *, headers=(), **more):
        return self.client.post(f"{self.path}/patches", content=b"".join(chunks), headers=JELLY | dict(headers), **more)

    def append_text(self, text, *, headers=()):
        return self.client.post(f"{self.path}/patches", content=text, headers=TEXT | dict(headers))

    def delete(self, **more):
        return self.client.request("DELETE", self.path, json={"delete": self.name}, **more)

    def get(self, rest="", **more):
        return self.client.get(f"{self.path}{rest}", **more)


@pytest.fixture
def log(service):
    return HttpLog(service)


@pytest.fixture
def sqlite_log(sqlite_service):
    return HttpLog(sqlite_service)


@pytest.fixture(scope="session")
def new_log():
    return HttpLog


@pytest.fixture
def delta_client():
    """Make a client of RDF Delta's API, with an address of its own."""
    made = []

    def make(*arguments, **named):
        made.append(DeltaClient(*arguments, **named))
        return made[-1]

    yield make
    for one in made:
        one.client.close()


@pytest.fixture(scope="session")
def operations():
    """The operations in the bytes of a Jelly-Patch stream."""

    def decoded(data):
        decoder = PatchDecoder()
        return [*decoder.feed(data), *decoder.finish()]

    return decoded
