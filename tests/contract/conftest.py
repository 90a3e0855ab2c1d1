"""The back ends that keep the contract, each on real storage."""

import os
import signal
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest

from patchlog.client import HttpLogStore
from patchlog.log.memory import MemoryLogStore
from patchlog.log.sql import SqlLogStore

HOUSE = Path(__file__).parents[2]


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
        self._opened.append(HttpLogStore(self.url) if self.kind == "http" else SqlLogStore(self.url))
        return self._opened[-1]

    def close(self):
        for store in self._opened:
            store.close()


@pytest.fixture(params=["memory", "sqlite", "postgresql", "http"])
def backend(request, tmp_path):
    yield from _backend(request.param, request, tmp_path)


@pytest.fixture(params=["sqlite", "postgresql"])
def sql_backend(request, tmp_path):
    yield from _backend(request.param, request, tmp_path)


def _backend(kind, request, tmp_path):
    url = {
        "memory": lambda: None,
        "sqlite": lambda: f"sqlite:///{tmp_path}/log.db",
        "postgresql": lambda: request.getfixturevalue("postgresql_url"),
        "http": lambda: request.getfixturevalue("service_url"),
    }[kind]()
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
def staging_log(backend, patch_log):
    """A log that takes bytes as they come."""
    if backend.kind == "http":
        pytest.skip("a client hands over chunks as a whole")
    return patch_log


@pytest.fixture
def sql_store(sql_backend):
    return sql_backend.open()


@pytest.fixture
def sql_log(sql_store):
    sql_store.create("people")
    return sql_store.log("people")


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
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "api", "--port", str(port), "--database", "sqlite:///log.db"],
            env=os.environ | {"PYTHONPATH": str(HOUSE)},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        _wait_until_ready(url, process, folder / "output")
        yield url
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)


def _wait_until_ready(url, process, output):
    deadline = time.monotonic() + 20
    while process.poll() is None and time.monotonic() < deadline:
        try:
            if httpx.get(f"{url}/readyz").is_success:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    pytest.fail(f"the service does not start:\n{output.read_text()}")
