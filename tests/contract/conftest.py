"""The back ends that keep the contract, each on real storage."""

from dataclasses import replace
from pathlib import Path

import pytest

from patchlog.client import HttpLogStore
from patchlog.errors import LogNotFound
from patchlog.log.file import FilePatchLog
from patchlog.log.memory import MemoryLogStore
from patchlog.log.records import LogOptions, check_log_name
from patchlog.log.sql import SqlLogStore

NOT_OF_FILES = (
    "test_log_that_is_not_there_is_not_found[file-truncate_before]",
    "test_large_patch_is_truncated",
    "test_everything_survives_a_restart",  # truncation does
    "test_deleted_log_is_gone_and_its_name_is_free",  # another file may be where it was
)


class NamedFile(FilePatchLog):
    """A file that is known by a name of a log."""

    def describe(self):
        return replace(super().describe(), name=Path(self.name).stem)


class Folder:
    """Files as a store of logs."""

    def __init__(self, folder):
        self._folder = folder
        self._options = {}

    def create(self, name, options=LogOptions()):  # noqa: B008  it is frozen
        self._options[check_log_name(name)] = options
        return self.log(name).create()

    def log(self, name):
        options = self._options.get(check_log_name(name), LogOptions())
        return NamedFile(self._folder / f"{name}.jellyp", options=options)

    def list(self, *, after="", limit=None):
        names = sorted(path.stem for path in self._folder.glob("*.jellyp") if path.stem > after)
        return [self.log(name).describe() for name in names[:limit]]

    def delete(self, name):
        try:
            (self._folder / f"{name}.jellyp").unlink()
        except FileNotFoundError:
            raise LogNotFound(name) from None

    def close(self):
        pass


class Backend:
    """A place for logs that can be closed and opened again."""

    def __init__(self, kind, url=None):
        self.kind = kind
        self.url = url
        self._kept = {"memory": MemoryLogStore, "file": lambda: Folder(url)}.get(kind, lambda: None)()
        self._opened = []

    def open(self):
        if self._kept is not None:
            return self._kept
        self._opened.append(HttpLogStore(self.url) if self.kind == "http" else SqlLogStore(self.url))
        return self._opened[-1]

    def close(self):
        for store in self._opened:
            store.close()


@pytest.fixture(params=["memory", "file", "sqlite", "postgresql", "http"])
def backend(request, tmp_path):
    if request.param == "file" and not is_for_files(request):
        pytest.skip("a file keeps all of its patches, and nothing else")
    yield from _backend(request.param, request, tmp_path)


def is_for_files(request):
    is_about_patches = request.node.path.name in ("test_patch_log.py", "test_positions.py")
    is_truncated = "truncated" in request.fixturenames
    return is_about_patches and not is_truncated and not request.node.name.startswith(NOT_OF_FILES)


@pytest.fixture(params=["sqlite", "postgresql"])
def sql_backend(request, tmp_path):
    yield from _backend(request.param, request, tmp_path)


def _backend(kind, request, tmp_path):
    url = {
        "memory": lambda: None,
        "file": lambda: tmp_path,
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
    if backend.kind in ("file", "http"):
        pytest.skip("a client hands over chunks as a whole")
    return patch_log


@pytest.fixture
def sql_store(sql_backend):
    return sql_backend.open()


@pytest.fixture
def sql_log(sql_store):
    sql_store.create("people")
    return sql_store.log("people")
