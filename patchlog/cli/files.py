"""Files as commands name them: `-` is standard input or output, and reading moves the progress bar."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import click

from patchlog.cli.outcome import Session
from patchlog.errors import UsageError
from patchlog.log.sqlite_file import is_sqlite_file
from patchlog.streams import Write, chunks_of, writing_to

__all__ = ["STANDARD", "file_name", "reading", "source_of", "writing"]

STANDARD = "-"


def file_name(path: str) -> str | None:
    """The name to guess a format from, if there is one."""
    return None if path == STANDARD else path


def reading(path: str, session: Session) -> Iterator[bytes]:
    """Yield the bytes of a file or of standard input, decompressed."""
    source = _standard_input(session) if path == STANDARD else path
    session.progress.expect(_size(path))
    return chunks_of(source, on_read=session.progress.advance)


def _size(path: str) -> int | None:
    try:
        return Path(path).stat().st_size or None
    except OSError:
        return None


def source_of(path: str, session: Session) -> str | Iterator[bytes]:
    """A file that is read beside the input: its path, or the bytes of standard input."""
    return reading(path, session) if path == STANDARD else path


def _standard_input(session: Session) -> BinaryIO:
    if session.has_taken_standard_input:
        raise click.UsageError("standard input can stand for one file only", click.get_current_context(silent=True))
    session.has_taken_standard_input = True
    if sys.stdin is None:
        raise UsageError("standard input is closed")
    return sys.stdin.buffer


@contextmanager
def writing(path: str, session: Session, *, is_text: bool) -> Iterator[Write]:
    """Give a function that writes to a file or to standard output. A file appears when the block has ended well."""
    if path != STANDARD:
        if is_sqlite_file(Path(path)):
            raise UsageError(f"{path} is a database of SQLite, and is not overwritten: name another file")
        with writing_to(path) as write:
            yield write
        return
    if sys.stdout is None:
        raise UsageError("standard output is closed")
    if sys.stdout.isatty():
        if not is_text:
            raise UsageError("binary output does not go to a terminal; name a file with --to, or pipe it on")
        session.progress.is_wanted = False
    with _naming_output(), writing_to(sys.stdout.buffer) as write:
        yield write


@contextmanager
def _naming_output() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename is None:
            error.filename = "standard output"
        raise
