"""Where the bytes of snapshots are: files of this machine, or of any storage that fsspec knows.

A location is an absolute path, the URL of a file in such a storage, or a path below the folder that stands beside the
database: so a database may be moved together with that folder. A file is there whole or not at all.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Final, Protocol, TypeAlias, cast
from weakref import finalize

from patchlog.errors import MissingExtra, StorageError, StorageFull, UsageError

__all__ = ["Files", "MemoryFiles", "StoredFiles", "Write", "errors_of_files", "temporary_file"]

Write: TypeAlias = Callable[[bytes], object]
_PART: Final = ".part"


class Files(Protocol):
    """Files that are written once."""

    @property
    def folder(self) -> Path | None:
        """Where there is room on this machine; None for where temporary files usually are."""

    def place(self, name: str) -> str:
        """Where a new file of that name is to be."""

    def create(self, location: str) -> Any:
        """A context in which a file is written. It is durable behind it, and not there where the context fails."""

    def open(self, location: str) -> IO[bytes]:
        """Open a file to read and to seek in. Raises StorageError."""

    def delete(self, location: str) -> None:
        """Delete a file, if it is there."""


class MemoryFiles:
    """Files in memory."""

    folder: Final = None

    def __init__(self) -> None:
        self._files: dict[str, bytes] = {}

    def place(self, name: str) -> str:
        """Where a new file of that name is to be."""
        return name

    @contextmanager
    def create(self, location: str) -> Iterator[Write]:
        """A context in which a file is written."""
        data = BytesIO()
        yield data.write
        self._files[location] = data.getvalue()

    def open(self, location: str) -> IO[bytes]:
        """Open a file to read."""
        if location not in self._files:
            raise _missing(location)
        return BytesIO(self._files[location])

    def delete(self, location: str) -> None:
        """Delete a file, if it is there."""
        self._files.pop(location, None)


class StoredFiles:
    """Files that last: new ones below a root, and others wherever they were written."""

    def __init__(self, root: str | None, beside: Path) -> None:
        """Without a root new files go to the folder beside the database."""
        self._root = root
        self._beside = beside

    @property
    def folder(self) -> Path | None:
        """Where there is room on this machine."""
        if self._root is not None and _is_remote(self._root):
            return None
        folder = self._beside if self._root is None else Path(self._root)
        with errors_of_files():
            folder.mkdir(parents=True, exist_ok=True)
        return folder

    def place(self, name: str) -> str:
        """Where a new file of that name is to be."""
        if self._root is None:
            return name
        return f"{self._root.rstrip('/')}/{name}" if _is_remote(self._root) else str(Path(self._root).absolute() / name)

    @contextmanager
    def create(self, location: str) -> Iterator[Write]:
        """A context in which a file is written."""
        with ExitStack() as writing:
            with errors_of_files():
                file = _remote_file(location) if _is_remote(location) else _local_file(self._path(location))
                write = writing.enter_context(file)

            def translated(data: bytes) -> None:
                with errors_of_files():
                    write(data)

            yield translated  # what else fails there is no error of this file
            with errors_of_files():
                writing.close()

    def open(self, location: str) -> IO[bytes]:
        """Open a file to read and to seek in."""
        with errors_of_files():
            try:
                if _is_remote(location):
                    storage, path = _storage_of(location)
                    return cast("IO[bytes]", storage.open(path, "rb"))
                return self._path(location).open("rb")
            except FileNotFoundError:
                raise _missing(location) from None

    def delete(self, location: str) -> None:
        """Delete a file, if it is there."""
        with errors_of_files(), suppress(FileNotFoundError):
            if _is_remote(location):
                storage, path = _storage_of(location)
                storage.rm_file(path)
                return
            file = self._path(location)
            file.with_name(file.name + _PART).unlink(missing_ok=True)
            file.unlink(missing_ok=True)
            with suppress(OSError):
                file.parent.rmdir()  # where it was the last one of its log

    def _path(self, location: str) -> Path:
        return self._beside / location


@contextmanager
def _local_file(path: Path) -> Iterator[Write]:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + _PART)
    try:
        with part.open("wb") as file:
            yield file.write
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        _sync_folder(path.parent)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":
        return  # there a folder cannot be opened, and its entries are durable
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


@contextmanager
def _remote_file(location: str) -> Iterator[Write]:
    """A file of another storage, which shows it when it is closed."""
    # A transaction belongs to the object, and two snapshots may be written at once.
    storage, path = _storage_of(location, skip_instance_cache=True)
    storage.makedirs(path.rpartition("/")[0], exist_ok=True)
    with storage.transaction, storage.open(path, "wb") as file:
        yield file.write


def _is_remote(location: str) -> bool:
    return "://" in location


def _storage_of(location: str, **options: Any) -> tuple[Any, str]:
    try:
        import fsspec
    except ImportError:
        raise MissingExtra("fsspec", "fsspec") from None
    try:
        storage, path = fsspec.url_to_fs(location, **options)
    except (ImportError, ValueError) as error:
        raise UsageError(f"{location} cannot be opened by fsspec: {error}") from error
    return storage, path


@contextmanager
def errors_of_files() -> Iterator[None]:
    """Let the errors of files, temporary ones too, come out as ours."""
    try:
        yield
    except OSError as error:
        reason = f"a snapshot could not be read or written: {error.strerror or error}"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageFull(reason) from error
        raise StorageError(reason) from error


def temporary_file(owner: object, folder: Path | None) -> IO[bytes]:
    """A file without a name, which is gone when nobody knows its owner any more."""
    with errors_of_files():
        file: IO[bytes] = TemporaryFile(dir=folder)  # noqa: SIM115  it lives as long as its owner
    finalize(owner, _let_go, file)
    return file


def _let_go(file: IO[bytes]) -> None:
    with suppress(OSError):  # what a full disk had no room for, and nobody needs any more
        file.close()


def _missing(location: str) -> StorageError:
    return StorageError(f"the file of a snapshot is not there: {location}")
