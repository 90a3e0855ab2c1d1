"""Where a log is, as people write it, and how it is opened there.

http://HOST/logs/NAME            a log of a service
sqlite:///FILE#NAME              a log of a database; without #NAME the only one that there is
postgresql://USER@HOST/DB#NAME
FILE.jellyp  FILE.rdfp           a file of patches
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final
from urllib.parse import unquote

from patchlog.errors import LogAlreadyExists, LogNotFound, UsageError
from patchlog.formats import PATCH_FORMATS, format_for_name
from patchlog.log.contract import LogStore, PatchLog
from patchlog.log.file import FilePatchLog
from patchlog.log.records import LogOptions
from patchlog.log.stores import MEMORY, open_store

__all__ = ["OpenLog", "Place", "check_there", "is_file_of_patches", "is_store", "open_log", "parted", "place_of"]

_SERVICE: Final = ("http://", "https://")
_LOGS: Final = "/logs/"


@dataclass(frozen=True, slots=True)
class Place:
    """A store of logs, or a file, and the log that is meant there. A file has no store, and a store need no log."""

    store_url: str | None
    name: str | None
    file: str | None = None

    @contextmanager
    def store(self, *, token: str | None = None, creates: bool = False) -> Iterator[LogStore]:
        """Open the store. A database file that is not there is an error, unless this is what makes it."""
        if self.store_url is None:
            raise UsageError(f"{self.file} is a file; this wants a service or a database")
        if self.store_url.startswith(_SERVICE):
            from patchlog.client import HttpLogStore

            opened: LogStore = HttpLogStore(self.store_url, token)
        else:
            if not creates:
                check_there(self.store_url)
            opened = open_store(self.store_url)
        try:
            yield opened
        finally:
            opened.close()

    @contextmanager
    def log(
        self,
        *,
        token: str | None = None,
        creates: bool | LogOptions = False,
        on_read: Callable[[int], object] | None = None,
    ) -> Iterator[PatchLog]:
        """Open the log, and make it before where that is wanted and there is none, with these options."""
        options = creates if isinstance(creates, LogOptions) else LogOptions()
        if self.file is not None:
            log = FilePatchLog(self.file, options=options, on_read=on_read)
            if creates:
                with suppress(LogAlreadyExists):
                    log.create()
            yield log
            return
        with self.store(token=token, creates=bool(creates)) as opened:
            name = self.name or _only_log(opened)
            if creates:
                _create(opened, name, options)
            yield opened.log(name)

    def __str__(self) -> str:
        # The URL of a database may hold a password.
        return self.file or self.name or "the store"


class OpenLog:
    """A log that is open. As a context it gives the log, and closes it in the end."""

    def __init__(self, place: Place, *, token: str | None = None, creates: bool | LogOptions = False) -> None:
        self._stack = ExitStack()
        self.log: Final = self._stack.enter_context(place.log(token=token, creates=creates))

    def close(self) -> None:
        """Let go of what is held open. A second time nothing happens."""
        self._stack.close()

    def __enter__(self) -> PatchLog:
        return self.log

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_log(where: str | os.PathLike[str], *, token: str | None = None, creates: bool | LogOptions = False) -> OpenLog:
    """Open the log at a place, as this module's text says it; `creates` makes one where there is none.

    `token` is the key for a service, else it is taken from PATCHLOG_TOKEN. Raises UsageError for what is no place of a
    log. Whether the log is there shows in its calls.
    """
    return OpenLog(place_of(where), token=token, creates=creates)


def place_of(where: str | os.PathLike[str]) -> Place:
    """The place that is written so. Raises UsageError."""
    text = os.fspath(where)
    if is_store(text):
        place = parted(text)
        if place.name is None and text.startswith(_SERVICE):
            raise UsageError(f"{text} is the URL of a service: write {text.rstrip('/')}{_LOGS}NAME for one of its logs")
        return place
    if isinstance(where, os.PathLike) or is_file_of_patches(text):
        return Place(None, None, text)
    raise UsageError(
        f"{text!r} is no place of a log: write http://HOST/logs/NAME, sqlite:///FILE#NAME, postgresql://…#NAME, or a "
        "file *.jellyp or *.rdfp"
    )


def parted(url: str) -> Place:
    """The store and the name in the URL of a log, or the URL of a store alone."""
    if not url.startswith(_SERVICE):
        store, _, name = url.partition("#")
        return Place(store, unquote(name) or None)
    service, found, name = url.rpartition(_LOGS)
    return Place(service, unquote(name.rstrip("/"))) if found else Place(url.rstrip("/"), None)


def is_store(text: str) -> bool:
    """Whether this is the URL of a service or of a database, or of a log in one."""
    return "://" in text or text.partition("#")[0] == MEMORY


def is_file_of_patches(text: str) -> bool:
    """Whether this is the name of a file of patches."""
    found = format_for_name(text)
    return found is not None and found in PATCH_FORMATS


def _only_log(store: LogStore) -> str:
    names = [log.name for log in store.list(limit=2)]
    if len(names) == 1:
        return names[0]
    if names:
        raise UsageError("the database has several logs: write #NAME behind it for one of them")
    raise LogNotFound("the database has no log: write #NAME behind it for the one that is to be")


def _create(store: LogStore, name: str, options: LogOptions) -> None:
    # Most are there already, and whoever may append need not be allowed to create.
    try:
        store.log(name).head()
    except LogNotFound:
        with suppress(LogAlreadyExists):  # by somebody else, just now
            store.create(name, options)


def check_there(database: str) -> None:
    """Raise UsageError where the database is a file that is not there."""
    file = database.removeprefix("sqlite:///").partition("?")[0]
    if database.startswith("sqlite:///") and file not in ("", ":memory:") and not Path(file).exists():
        raise UsageError(f"there is no database {file}: `patchlog log create` makes one")
