"""Where a log is, from what stands on the command line: a place of `patchlog.places`, or one of these.

    NAME   --url http://HOST                       a log of a service; PATCHLOG_URL stands for --url
    NAME   --database sqlite:///FILE               a log of a database; PATCHLOG_DATABASE stands for --database
    sqlite:///FILE --log NAME                      the same
    -                                              patches on standard input, where they are only read

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

import click

from patchlog.cli.files import STANDARD, file_name, reading
from patchlog.cli.outcome import Session, about, label
from patchlog.errors import UsageError
from patchlog.formats import JELLY_PATCH, RDF_PATCH, choose_format
from patchlog.log.contract import PatchLog
from patchlog.log.file import FilePatchLog
from patchlog.log.stream import StreamPatchLog
from patchlog.places import Place, is_file_of_patches, is_store, parted

__all__ = [
    "Wanted",
    "chosen_database",
    "database_option",
    "log_name",
    "place_options",
    "reading_log",
    "store_options",
    "wanted_place",
    "writing_log",
]

Command = TypeVar("Command", bound=Callable[..., Any])

DEFAULT_DATABASE: Final = "sqlite:///patchlog.db"
_SERVICE: Final = ("http://", "https://")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What stands on the command line about the place of a log."""

    location: str | None = None
    log: str | None = None
    database: str | None = None
    url: str | None = None


def wanted_place(wanted: Wanted) -> Place:
    """The place that is meant."""
    location, log = wanted.location, wanted.log
    if wanted.database is not None and wanted.url is not None:
        _misused("--database and --url are two places: give one of them")
    is_placed = wanted.database is not None or wanted.url is not None
    if location is None and log is not None and not is_placed and (is_store(log) or is_file_of_patches(log)):
        location, log = log, None
    if location is None:
        return _with_name(_store_of(wanted), log)
    if is_store(location):
        if is_placed:
            _misused("the URL says where the log is: leave out --database and --url")
        return _with_name(parted(location), log)
    if log is not None:
        _misused(f"{location} and --log {log}: give one name")
    if not is_placed and _is_file(location):
        return Place(None, None, file=location)
    return _with_name(_store_of(wanted), location)


def log_name(place: Place) -> str:
    """The name of the log that is meant in the store of a place."""
    return place.name or _misused("which log? Give its name, or --log NAME")


@contextmanager
def reading_log(place: Place, session: Session, *, grows: bool = False) -> Iterator[PatchLog]:
    """Open the log of a place to be read. A file has to end where a patch does, unless it `grows` meanwhile."""
    if place.file is None:
        log_name(place)
    elif not Path(place.file).is_file():
        with about(place.file):
            yield _stream(place.file, session)
        return
    else:
        session.progress.expect(Path(place.file).stat().st_size)
    with place.log(on_read=session.progress.advance) as log:
        if isinstance(log, FilePatchLog) and not grows:
            log.check_whole()
        yield log


@contextmanager
def writing_log(place: Place) -> Iterator[PatchLog]:
    """Open the log of a place to be written. A file is made where there is none."""
    if place.file is None:
        log_name(place)
    elif place.file == STANDARD:
        raise UsageError("standard input is no place to write to")
    with place.log(creates=place.file is not None) as log:
        yield log


def chosen_database(given: str | None) -> str:
    """The database that was given, else that of the environment, else a file in this folder."""
    return given or os.environ.get("PATCHLOG_DATABASE") or DEFAULT_DATABASE


def place_options(command: Command) -> Any:
    """`--database`, `--url` and `--log`, which the command gets as `wanted`; `location` goes in where it has one."""
    log = click.option("--log", metavar="NAME", help="The name of the log where nothing else says it, or its place.")
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


def _store_of(wanted: Wanted) -> Place:
    if wanted.database is not None:
        return parted(wanted.database)
    if service := wanted.url or os.environ.get("PATCHLOG_URL"):
        if not service.startswith(_SERVICE):
            raise UsageError(f"{service!r} is not the URL of a service: write http://HOST:PORT")
        return parted(service)
    return parted(chosen_database(None))


def _with_name(place: Place, name: str | None) -> Place:
    if place.name is not None and name is not None:
        _misused(f"{place} and {name}: give one name")
    return Place(place.store_url, place.name or name)


def _is_file(location: str) -> bool:
    return location == STANDARD or os.sep in location or is_file_of_patches(location) or Path(location).is_file()


def _stream(path: str, session: Session) -> StreamPatchLog:
    default = JELLY_PATCH if path == STANDARD else None
    chosen = choose_format(None, file_name(path), (JELLY_PATCH, RDF_PATCH), default=default)
    return StreamPatchLog(
        label(path),
        lambda: reading(path, session),
        "jelly-patch" if chosen is JELLY_PATCH else "rdf-patch",
    )


def _misused(message: str) -> NoReturn:
    raise click.UsageError(message, click.get_current_context(silent=True))
