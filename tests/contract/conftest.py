"""The back ends that keep the contract, each on real storage."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from patchlog.log.database import Database
from patchlog.log.memory import MemoryLogStore
from patchlog.log.migration import migrate
from patchlog.log.sql import SqlLogStore
from patchlog.model import Add, Header, Punctuation, TransactionCommit, TransactionStart
from patchlog.patch import write


class Backend:
    """A place for logs that can be closed and opened again."""

    def __init__(self, kind, url=None):
        self.kind = kind
        self.url = url
        self._memory = MemoryLogStore() if url is None else None
        self._opened = []

    def open(self):
        if self._memory is not None:
            return self._memory
        self._opened.append(SqlLogStore(self.url))
        return self._opened[-1]

    def close(self):
        for store in self._opened:
            store.close()


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def backend(request, tmp_path):
    yield from _backend(request.param, request, tmp_path)


@pytest.fixture(params=["sqlite", "postgresql"])
def sql_backend(request, tmp_path):
    yield from _backend(request.param, request, tmp_path)


def _backend(kind, request, tmp_path):
    url = {"memory": lambda: None, "sqlite": lambda: f"sqlite:///{tmp_path}/log.db"}.get(
        kind, lambda: request.getfixturevalue("postgresql_url")
    )()
    backend = Backend(kind, url)
    yield backend
    backend.close()


@pytest.fixture
def store(backend):
    return backend.open()


@pytest.fixture
def patch_log(store):
    store.create("people")
    return store.log("people")


@pytest.fixture
def sql_store(sql_backend):
    return sql_backend.open()


@pytest.fixture
def sql_log(sql_store):
    sql_store.create("people")
    return sql_store.log("people")


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
def postgresql_server():
    """A server of our own, which ends with the tests."""
    programs = _postgresql_programs()
    if programs is None:
        reason = "PostgreSQL (initdb, pg_ctl) is not on this machine"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    server = PostgresqlServer(programs)
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
        self._run("pg_ctl", "start", "-w", "-D", self._data, "-l", self._folder / "log", "-o", self._options)

    def end(self):
        if (self._data / "postmaster.pid").exists():
            self._run("pg_ctl", "stop", "-m", "fast", "-D", self._data)
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
    def _data(self):
        return self._folder / "data"

    @property
    def _options(self):
        return f"-k {self._folder} -c listen_addresses= -c max_connections=60"

    def _url(self, name):
        return f"postgresql+psycopg://patchlog@/{name}?host={self._folder}"

    def _run(self, program, *arguments):
        done = subprocess.run(
            [*self._as_user, self._programs / program, *arguments],
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # the server keeps it open
            stderr=subprocess.DEVNULL,
            check=False,
        )
        assert done.returncode == 0, f"{program} failed"


def _postgresql_programs():
    on_path = shutil.which("initdb")
    folders = [Path(on_path).parent] if on_path else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


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
