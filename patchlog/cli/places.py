"""Where a log is, from what the user wrote: the URL of a service, the URL of a database, a name, or a file.

    http://HOST/logs/NAME                          a log of a service
    NAME   --url http://HOST                       the same; PATCHLOG_URL stands for --url
    NAME   --database sqlite:///FILE               a log of a database; PATCHLOG_DATABASE stands for --database
    sqlite:///FILE --log NAME                      the same
    FILE.jellyp                                    the patches of a file, as if they were a log

The key for a service is in PATCHLOG_TOKEN: what stands on a command line can be seen by others.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar
from urllib.parse import unquote

import click

from patchlog.cli.files import STANDARD
from patchlog.cli.outcome import Session
from patchlog.errors import UsageError
from patchlog.formats import PATCH_FORMATS, format_for_name
from patchlog.log.contract import LogStore, PatchLog

__all__ = [
    "Place",
    "Wanted",
    "chosen_database",
    "database_option",
    "place_of",
    "place_options",
    "store_options",
]

Command = TypeVar("Command", bound=Callable[..., Any])

DEFAULT_DATABASE: Final = "sqlite:///patchlog.db"
_SERVICE: Final = ("http://", "https://")
_LOGS: Final = "/logs/"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What stands on the command line about the place of a log."""

    location: str | None = None
    log: str | None = None
    database: str | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """A store of logs, or a file, and the log that is meant there. A file has no store, and a store need no log."""

    store_url: str | None
    name: str | None
    file: str | None = None

    @contextmanager
    def store(self, *, creates: bool = False) -> Iterator[LogStore]:
        """Open the store. A database file that is not there is an error, unless this is what makes it."""
        if self.store_url is None:
            raise UsageError(f"{self.file} is a file; this wants a service or a database")
        if self.store_url.startswith(_SERVICE):
            from patchlog.client import HttpLogStore

            opened: LogStore = HttpLogStore(self.store_url)
        else:
            from patchlog.log.stores import open_store

            if not creates:
                _check_there(self.store_url)
            opened = open_store(self.store_url)
        try:
            yield opened
        finally:
            opened.close()

    @contextmanager
    def log(self, session: Session) -> Iterator[PatchLog]:
        """Open the log, to be read."""
        if self.file is not None:
            from patchlog.cli.file_log import FilePatchLog

            yield FilePatchLog(self.file, session)
            return
        with self.store() as opened:
            yield opened.log(self.log_name)

    @property
    def log_name(self) -> str:
        """The name of the log that is meant."""
        return self.name or _misused("which log? Give its name, or --log NAME")

    def __str__(self) -> str:
        return self.file or self.name or self.store_url or ""


def place_of(wanted: Wanted) -> Place:
    """The place that is meant."""
    location = wanted.location
    if wanted.database is not None and wanted.url is not None:
        _misused("--database and --url are two places: give one of them")
    if location is None:
        return Place(*_store_of(wanted))
    if _is_store_url(location):
        if wanted.database is not None or wanted.url is not None:
            _misused(f"{location} says where the log is: leave out --database and --url")
        return Place(*_with_name(location, wanted.log))
    if wanted.log is not None:
        _misused(f"{location} and --log {wanted.log}: give one name")
    if wanted.database is None and wanted.url is None and _is_file(location):
        return Place(None, None, file=location)
    store_url, name = _store_of(wanted)
    if name is not None:
        _misused(f"{location} and {name}: give one name")
    return Place(store_url, location)


def chosen_database(given: str | None) -> str:
    """The database that was given, else that of the environment, else a file in this folder."""
    return given or os.environ.get("PATCHLOG_DATABASE") or DEFAULT_DATABASE


def place_options(command: Command) -> Any:
    """`--database`, `--url` and `--log`, which the command gets as `wanted`; `location` goes in where it has one."""
    log = click.option("--log", metavar="NAME", help="The name of the log, where the place does not say it.")
    return log(store_options(command))


def store_options(command: Command) -> Any:
    """`--database` and `--url` alone."""

    @wraps(command)
    def with_wanted(*args: Any, **values: Any) -> Any:
        wanted = Wanted(**{name: values.pop(name, None) for name in Wanted.__slots__})
        return command(*args, wanted=wanted, **values)

    url = click.option("--url", metavar="URL", help="The service: http://HOST:PORT.  [default: PATCHLOG_URL]")
    return database_option(url(with_wanted))


def database_option(command: Command) -> Any:
    """`--database` alone."""
    return click.option(
        "--database",
        metavar="URL",
        help="The database: sqlite:///FILE or postgresql+psycopg://…  [default: PATCHLOG_DATABASE, else "
        f"{DEFAULT_DATABASE}]",
    )(command)


def _store_of(wanted: Wanted) -> tuple[str, str | None]:
    if wanted.database is not None:
        return wanted.database, wanted.log
    if service := wanted.url or os.environ.get("PATCHLOG_URL"):
        if not service.startswith(_SERVICE):
            raise UsageError(f"{service!r} is not the URL of a service: write http://HOST:PORT")
        return _with_name(service, wanted.log)
    return chosen_database(None), wanted.log


def _with_name(url: str, log: str | None) -> tuple[str, str | None]:
    """Part the URL of a log into that of its service and the name."""
    service, found, name = url.rpartition(_LOGS)
    if not (found and url.startswith(_SERVICE)):
        return url.rstrip("/") if url.startswith(_SERVICE) else url, log
    if log is not None:
        _misused(f"{url} and --log {log}: give one name")
    return service, unquote(name.rstrip("/"))


def _is_store_url(location: str) -> bool:
    return "://" in location or location == "memory:"


def _is_file(location: str) -> bool:
    return (
        location == STANDARD
        or os.sep in location
        or format_for_name(location, PATCH_FORMATS) is not None
        or Path(location).is_file()
    )


def _check_there(database: str) -> None:
    file = database.removeprefix("sqlite:///").partition("?")[0]
    if database.startswith("sqlite:///") and file not in ("", ":memory:") and not Path(file).exists():
        raise UsageError(f"there is no database {file}: `patchlog log create` makes one")


def _misused(message: str) -> NoReturn:
    raise click.UsageError(message, click.get_current_context(silent=True))
