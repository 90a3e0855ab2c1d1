"""Files of patches as they grow: one writer at a time, whole patches or none, durable when the call returns.

A writer holds an advisory lock on the file, and readers share it while they look how far the file reaches, so that they
never see half a patch of a writer that is at work. The first byte is written last, when all others are on the disk, and
is zero until then: so what a writer has left that died is told from all else.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Final

from patchlog.errors import LogNotFound, StorageError, StorageFull, UsageError
from patchlog.log.scanning import UNWRITTEN

__all__ = ["create_file", "file_errors_translated", "grow", "locked"]

_BUSY_SECONDS: Final = 30.0
_TRY_AGAIN_SECONDS: Final = 0.01
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def locked(path: Path, *, exclusive: bool) -> Iterator[int]:
    """Open a file under its lock. Raises LogNotFound, and StorageError where another holds the lock for too long."""
    deadline = time.monotonic() + _BUSY_SECONDS
    with file_errors_translated(path):
        while True:
            file = os.open(path, os.O_RDWR if exclusive else os.O_RDONLY)
            try:
                _lock(file, path, deadline, exclusive=exclusive)
                if _is_still_there(file, path):
                    yield file
                    return
            finally:
                os.close(file)


def _lock(file: int, path: Path, deadline: float, *, exclusive: bool) -> None:
    try:
        import fcntl
    except ImportError:
        if exclusive:
            raise UsageError(f"{path} cannot be written here: this system has no locks; use a database") from None
        return
    while True:
        try:
            fcntl.flock(file, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise StorageError(f"{path} was locked by somebody else for too long", is_transient=True) from None
            time.sleep(_TRY_AGAIN_SECONDS)
        else:
            return


def _is_still_there(file: int, path: Path) -> bool:
    """Whether the name stands for the file that was locked, and not for one that took its place meanwhile."""
    return os.path.samestat(os.fstat(file), path.stat())


def create_file(path: Path) -> bool:
    """Make an empty file, durably. Returns whether there was none."""
    with file_errors_translated(path):
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        except FileExistsError:
            return False
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return True


def grow(file: int, at: int, chunks: Iterable[bytes]) -> None:
    """Write behind a place, all or nothing. What is behind it already is what is left of a writer that died."""
    pieces = (chunk for chunk in chunks if chunk)
    first = next(pieces)
    with _taken_back_on_error(file, at):
        os.ftruncate(file, at)
        _write(file, at, chain([UNWRITTEN, first[1:]], pieces))
        os.fsync(file)
        os.pwrite(file, first[:1], at)
        os.fsync(file)


@contextmanager
def file_errors_translated(path: Path) -> Iterator[None]:
    """Let errors of the operating system come out as ours."""
    try:
        yield
    except FileNotFoundError as error:
        if path.parent.is_dir():
            raise LogNotFound(f"there is no file {path}") from error
        raise LogNotFound(f"there is no folder {path.parent}") from error
    except OSError as error:
        if error.errno in _FULL:
            raise StorageFull(f"{path}: {error.strerror}") from error
        raise StorageError(f"{path}: {error.strerror}") from error


@contextmanager
def _taken_back_on_error(file: int, at: int) -> Iterator[None]:
    try:
        yield
    except BaseException:
        with suppress(OSError):
            os.ftruncate(file, at)
            os.fsync(file)
        raise


def _write(file: int, at: int, chunks: Iterable[bytes]) -> None:
    for chunk in chunks:
        rest = memoryview(chunk)
        while rest:
            written = os.pwrite(file, rest, at)
            at += written
            rest = rest[written:]
