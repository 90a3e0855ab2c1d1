"""`python -m api`, installed as `patchlog-api`: serve, and make, list and revoke API keys.

    python -m api [--config FILE --host … --port … --database …]
    python -m api key create --scope log:NAME:read … [--name …] [--days …] [--database …]
    python -m api key list | key revoke ID [--database …]

Options go before the environment, and that before the file of settings (PATCHLOG_CONFIG, else patchlog.toml).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from api.audit import Audit
from api.keys import create_key, key_id_of, list_keys, revoke_key
from api.principal import Principal
from api.server import serve
from api.settings import CONFIG_VARIABLE, Settings
from api.telemetry import log_to_stderr
from patchlog.errors import PatchLogError, UsageError
from patchlog.log.database import Database
from patchlog.log.migration import check_migrated, migrate
from patchlog.log.records import time_of

__all__ = ["main"]

_DAY_SECONDS = 24 * 60 * 60
_MOST_SECONDS = 1000 * 366 * _DAY_SECONDS


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the command line says. An error of the user is one line on standard error, and exit code 1."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if words[:1] == ["key"]:
            _do_with_keys(words[1:])
        else:
            _serve(words)
    except ValidationError as error:
        sys.exit(f"error: {'; '.join(map(_flaw, error.errors()))}")
    except PatchLogError as error:
        sys.exit(f"error: {error}")


def _flaw(flaw: ErrorDetails) -> str:
    name = ".".join(map(str, flaw["loc"]))
    if flaw["type"] == "extra_forbidden":
        return f"{name} is no setting: docs/reference/settings.md lists them"
    return f"{name}: {flaw['msg']}"


def _serve(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m api", description="Serve patch logs over HTTP.")
    parser.add_argument("--log-level", default="info", choices=["debug", "info", "warning", "error"])
    parser.add_argument("--config", metavar="FILE", help="settings in TOML, with the names of these options")
    for name, field in Settings.model_fields.items():
        parser.add_argument(f"--{name.replace('_', '-')}", default=argparse.SUPPRESS, help=field.description)
    given = vars(parser.parse_args(arguments))
    if (config := given.pop("config")) is not None:
        os.environ[CONFIG_VARIABLE] = config
    log_to_stderr(given.pop("log_level"))
    serve(Settings(**given))


def _do_with_keys(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m api key", description="The API keys of a database.")
    commands = parser.add_subparsers(required=True, metavar="create|list|revoke")
    place = argparse.ArgumentParser(add_help=False)
    place.add_argument("--database", default=argparse.SUPPRESS, help=Settings.model_fields["database"].description)
    create = commands.add_parser("create", parents=[place], help="make a key, and print it this once")
    create.add_argument("--scope", dest="scopes", action="append", required=True, metavar="log:NAME:RIGHT")
    create.add_argument("--name", default="", help="for people who read the list")
    create.add_argument("--days", type=float, help="how long it is good; without it, until it is revoked")
    create.set_defaults(do=_create)
    commands.add_parser("list", parents=[place], help="list the keys").set_defaults(do=_list)
    revoke = commands.add_parser("revoke", parents=[place], help="make a key useless")
    revoke.add_argument("id")
    revoke.set_defaults(do=_revoke)
    options = parser.parse_args(arguments)
    options.do(options)


@contextmanager
def _database(options: argparse.Namespace, *, creates: bool = False) -> Iterator[Database]:
    given: dict[str, Any] = {"database": options.database} if "database" in options else {}
    database = Database(Settings(**given).database)
    file = database.url.database
    if not creates and database.is_sqlite and file is not None and not Path(file).exists():
        raise UsageError(f"there is no database {file}: `patchlog log create` or `patchlog serve` makes one")
    try:
        (migrate if database.is_sqlite else check_migrated)(database)
        yield database
    finally:
        database.close()


def _create(options: argparse.Namespace) -> None:
    seconds = None if options.days is None else options.days * _DAY_SECONDS
    if seconds is not None and not 0 < seconds < _MOST_SECONDS:
        raise UsageError(f"a key is good for some days, or without --days until it is revoked; not {options.days:g}")
    with _database(options, creates=True) as database:
        key, text = create_key(database, options.scopes, name=options.name, expires_seconds=seconds)
    _audit(action="create_key", key=key.id, scopes=" ".join(map(str, key.scopes)))
    print(text)  # noqa: T201  it is what was asked for


def _audit(**fields: str) -> None:
    """Write to the audit log of the service, where that is a file."""
    audit = Audit(Settings())
    audit.write(Principal.of_user(), door="command", **fields, outcome="done")
    audit.close()


def _list(options: argparse.Namespace) -> None:
    with _database(options) as database:
        for key in list_keys(database):
            until = "" if key.expires_ms is None else f"until {time_of(key.expires_ms)}"
            print(*filter(None, [key.id, key.created, *map(str, key.scopes), until, key.name]), sep="\t")  # noqa: T201


def _revoke(options: argparse.Namespace) -> None:
    with _database(options) as database:
        revoke_key(database, options.id)
    _audit(action="revoke_key", key=key_id_of(options.id) or options.id)
    print(f"key {key_id_of(options.id) or options.id} opens nothing any more")  # noqa: T201  it is the answer


if __name__ == "__main__":
    main()
