"""The back ends that keep the contract, each on real storage."""

import pytest

from patchlog.client import HttpLogStore
from patchlog.log.memory import MemoryLogStore
from patchlog.log.sql import SqlLogStore


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
