"""`patchlog version` and `patchlog completions`."""

from __future__ import annotations

import platform
import sqlite3
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Final

import click
from click.shell_completion import get_completion_class

import patchlog
from patchlog.cli.options import common
from patchlog.cli.outcome import Session
from patchlog.engine import IMPLEMENTATION
from patchlog.errors import UsageError

__all__ = ["COMPLETION_VARIABLE", "completions", "version"]

COMPLETION_VARIABLE: Final = "_PATCHLOG_COMPLETE"

# What the commands use when it is there.
_LIBRARIES: Final = (
    *("protobuf", "rdflib", "sqlalchemy", "pyoxigraph", "pyarrow"),
    *("fastapi", "uvicorn", "grpcio", "psycopg", "pyspark", "delta-spark"),
)


@click.command("version", short_help="Say which patchlog this is, and what it found.")
@click.option(
    "--database", metavar="URL", help="Say of this database what it is, and at which migration its tables are."
)
@common
def version(session: Session, *, database: str | None) -> None:
    """Print the version, which codec runs (native or pure Python), and the versions of the libraries that are used."""
    del session
    # Without a name it is the one that is always there.
    described = [f"database: SQLite {sqlite3.sqlite_version}"] if database is None else _lines_of(database)
    click.echo(f"patchlog {patchlog.__version__}")
    click.echo(f"codec: {IMPLEMENTATION}")
    click.echo(f"python: {platform.python_version()}")
    for library in _LIBRARIES:
        click.echo(f"{library}: {_version_of(library)}")
    for line in described:
        click.echo(line)


def _lines_of(url: str) -> list[str]:
    from patchlog.log.database import Database
    from patchlog.log.migration import current_revision

    opened = Database(url)
    try:
        if opened.is_sqlite and not Path(str(opened.url.database)).exists():
            raise UsageError(f"there is no database {opened.url.database}")
        return [f"database: {opened.server}", f"migration: {current_revision(opened) or 'none'}"]
    finally:
        opened.close()


def _version_of(library: str) -> str:
    try:
        return installed_version(library)
    except PackageNotFoundError:
        return "not installed"


@click.command("completions", short_help="Print what makes a shell complete our commands.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@common
def completions(session: Session, *, shell: str) -> None:
    """Print a script that makes a shell complete commands, options and files.

    In bash, for example: source <(patchlog completions bash)
    """
    del session
    kind = get_completion_class(shell)
    assert kind is not None
    root = click.get_current_context().find_root().command
    click.echo(kind(root, {}, "patchlog", COMPLETION_VARIABLE).source())
