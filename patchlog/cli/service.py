"""`patchlog serve` and `patchlog key`: the process becomes `python -m api`, which this room does not import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NoReturn

import click

from patchlog.cli.becoming import become
from patchlog.cli.options import common
from patchlog.cli.outcome import Session
from patchlog.cli.places import database_option

__all__ = ["KEY_COMMANDS", "serve"]

_NEEDED: Final = ("fastapi", "httptools", "prometheus_client", "pydantic_settings", "uvicorn", "zstandard")


@click.command("serve", short_help="Start the service.", context_settings={"ignore_unknown_options": True})
@click.option("--host", help="The address to listen on.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), help="The port to listen on; 0 for any.  [default: 8080]")
@database_option
@click.option("--data-dir", metavar="DIR", help="The folder for what is kept beside the database.")
@click.option(
    "--allowed-hosts", metavar="NAMES", help="Names that requests may call the service by, with commas between."
)
@click.option(
    "--allowed-origins", metavar="ORIGINS", help="Other origins whose web pages may use it, with commas between."
)
@click.argument("others", metavar="[OPTIONS OF THE SERVICE]...", nargs=-1, type=click.UNPROCESSED)
@common
def serve(
    session: Session,
    *,
    host: str | None,
    port: int | None,
    database: str | None,
    data_dir: str | None,
    allowed_hosts: str | None,
    allowed_origins: str | None,
    others: Sequence[str],
) -> None:
    """Start the service: patch logs over HTTP. It is ready when GET /readyz answers 200.

    Further options are those of `python -m api`; `python -m api --help` lists them.
    """
    del session
    given = {
        "--host": host,
        "--port": port,
        "--database": database,
        "--data-dir": data_dir,
        "--allowed-hosts": allowed_hosts,
        "--allowed-origins": allowed_origins,
    }
    become_service([*_named(given), *others])


@click.command("create", short_help="Make an API key.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    metavar="log:NAME:RIGHT",
    required=True,
    help="What it allows: log:NAME:read, log:NAME:append or log:NAME:admin, with log:PREFIX* for many. Several times.",
)
@click.option("--name", help="What people are to see in the list.")
@click.option("--days", type=float, help="How long it is good.  [default: until it is revoked]")
@database_option
@common
def create_key(
    session: Session, *, scopes: Sequence[str], name: str | None, days: float | None, database: str | None
) -> None:
    """Make an API key for the service of a database, and print it this once: what is kept is its hash."""
    del session
    named = [word for scope in scopes for word in ("--scope", scope)]
    become_service(["key", "create", *named, *_named({"--name": name, "--days": days, "--database": database})])


@click.command("list", short_help="List API keys.")
@database_option
@common
def list_keys(session: Session, *, database: str | None) -> None:
    """List the API keys of a database by their ids: what they allow, not what they are."""
    del session
    become_service(["key", "list", *_named({"--database": database})])


@click.command("revoke", short_help="Make an API key useless.")
@click.argument("key", metavar="ID")
@database_option
@common
def revoke_key(session: Session, *, key: str, database: str | None) -> None:
    """Make an API key useless. Its id is in the list."""
    del session
    become_service(["key", "revoke", *_named({"--database": database}), "--", key])


KEY_COMMANDS: Final = (create_key, list_keys, revoke_key)


def become_service(arguments: Sequence[str]) -> NoReturn:
    """Go on as `python -m api`."""
    become("api", arguments, needs=_NEEDED)


def _named(values: Mapping[str, object]) -> list[str]:
    return [word for name, value in values.items() if value is not None for word in (name, str(value))]
