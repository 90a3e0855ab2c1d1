"""`patchlog log create`, `list`, `show`, `delete`, `verify` and `truncate`, and `patchlog migrate`."""

from __future__ import annotations

import click

from patchlog.cli.checks import counted
from patchlog.cli.confirmation import confirm, yes_option
from patchlog.cli.options import TRUTH, Number, common
from patchlog.cli.outcome import CheckFailed, Session
from patchlog.cli.places import (
    Wanted,
    chosen_database,
    database_option,
    log_name,
    place_options,
    reading_log,
    store_options,
    wanted_place,
)
from patchlog.cli.tellings import as_json, json_line, lines_of_log, table_of_logs
from patchlog.errors import UsageError
from patchlog.log.documents import description_document, verification_document
from patchlog.log.file import FilePatchLog
from patchlog.log.records import LogOptions

__all__ = ["create", "delete", "list_logs", "migrate", "show", "truncate", "verify"]

_log = click.argument("location", metavar="[LOG]", required=False)


@click.command("create", short_help="Create an empty log.")
@_log
@place_options
@click.option("--rdf-star", type=TRUTH, default=True, show_default="true", help="Whether there may be quoted triples.")
@click.option(
    "--generalized-statements",
    type=TRUTH,
    default=True,
    show_default="true",
    help="Whether literals and blank nodes may stand anywhere.",
)
@as_json
@common
def create(session: Session, *, wanted: Wanted, rdf_star: bool, generalized_statements: bool, as_json: bool) -> None:
    """Create an empty log, and its database where that is an SQLite file which is not there; or a file of patches.

    What its patches may hold is fixed now.
    """
    place = wanted_place(wanted)
    options = LogOptions(rdf_star, generalized_statements)
    if place.file is not None:
        if options != LogOptions():
            raise UsageError("a file takes all patches: --rdf-star and --generalized-statements are for other logs")
        description = FilePatchLog(place.file).create()
    else:
        with place.store(creates=True) as store:
            description = store.create(log_name(place), options)
    if as_json:
        click.echo(json_line(description_document(description)))
    elif not session.is_quiet:
        click.echo(f"created {description.name}")


@click.command("list", short_help="List the logs of a database or a service.")
@click.argument("location", metavar="[STORE]", required=False)
@store_options
@as_json
@common
def list_logs(session: Session, *, wanted: Wanted, as_json: bool) -> None:
    """List the logs of a database or a service."""
    del session
    with wanted_place(wanted).store() as store:
        logs = store.list()
    if as_json:
        click.echo(json_line([description_document(log) for log in logs]))
    elif logs:
        for line in table_of_logs(logs):
            click.echo(line)


@click.command("show", short_help="Describe a log.")
@_log
@place_options
@as_json
@common
def show(session: Session, *, wanted: Wanted, as_json: bool) -> None:
    """Describe a log, or a file of patches as if it were one: its head, and how much of it is kept."""
    with reading_log(wanted_place(wanted), session) as log:
        description = log.describe()
    if as_json:
        click.echo(json_line(description_document(description)))
        return
    for line in lines_of_log(description):
        click.echo(line)


@click.command("delete", short_help="Delete a log and all of its patches.")
@_log
@place_options
@yes_option
@common
def delete(session: Session, *, wanted: Wanted, yes: bool) -> None:
    """Delete a log and all of its patches. It cannot be taken back."""
    place = wanted_place(wanted)
    with place.store() as store:
        description = store.log(log_name(place)).describe()
        confirm(f"delete {description.name} with {counted(description.patches, 'patch')}", yes=yes)
        store.delete(description.name)
    if not session.is_quiet:
        click.echo(f"deleted {description.name}")


@click.command("verify", short_help="Check all hashes of a log.")
@_log
@place_options
@as_json
@common
def verify(session: Session, *, wanted: Wanted, as_json: bool) -> None:
    """Compute all hashes of a log anew, and walk along their chain.

    The first bad version is an error. Patches that were truncated away are not looked at.
    """
    place = wanted_place(wanted)
    with reading_log(place, session, grows=True) as log:
        found = log.verify()
    if as_json:
        click.echo(json_line(verification_document(found)))
    if found.first_bad_version is not None:
        raise CheckFailed(f"{place}: version {found.first_bad_version} is bad: {found.reason}")
    if not (as_json or session.is_quiet):
        click.echo(f"{place} is sound: {counted(found.checked, 'patch')}, head {found.head.id or 'none'}")


@click.command("truncate", short_help="Forget the bytes of old patches.")
@_log
@place_options
@click.option(
    "--before",
    type=Number("version", least=1),
    help="The first version that is kept.  [default: behind the newest snapshot that all consumers have reached]",
)
@click.option("--force", is_flag=True, help="Consumers that still need a patch have to begin anew.")
@yes_option
@as_json
@common
def truncate(session: Session, *, wanted: Wanted, before: int | None, force: bool, yes: bool, as_json: bool) -> None:
    """Forget the bytes of all patches below a version. Versions, ids and hashes stay; the bytes are gone for good.

    A snapshot has to stand for them, and no consumer to need them still.
    """
    place = wanted_place(wanted)
    with place.store() as store:
        log = store.log(log_name(place))
        below = "that nobody needs" if before is None else f"below version {before}"
        confirm(f"forget the patches of {log.describe().name} {below}", yes=yes)
        description = log.truncate_before(before, force=force)
    if as_json:
        click.echo(json_line(description_document(description)))
    elif not session.is_quiet:
        click.echo(f"{description.name} begins with version {description.first_version}")


@click.command("migrate", short_help="Make or migrate the tables of a database.")
@database_option
@click.option(
    "--down-to",
    metavar="MIGRATION",
    help="Before an older release is installed: take the tables back to this migration, such as 0003. Patches stay.",
)
@yes_option
@common
def migrate(session: Session, *, database: str | None, down_to: str | None, yes: bool) -> None:
    """Bring a database to the tables that this release knows. Where it has them, nothing happens.

    An SQLite file is migrated when it is opened; PostgreSQL only by this command.
    """
    from patchlog.log.database import Database
    from patchlog.log.migration import check_down, current_revision, migrate_down
    from patchlog.log.migration import migrate as bring_up
    from patchlog.places import check_there

    url = chosen_database(database)
    if down_to is not None:
        check_there(url)
    opened = Database(url)
    try:
        if down_to is None:
            bring_up(opened)
        else:
            lost = check_down(opened, down_to)
            losing = f", which deletes {' and '.join(lost)}," if lost else ""
            confirm(f"take the tables of {opened.url.render_as_string()} back to migration {down_to}{losing}", yes=yes)
            migrate_down(opened, down_to)
        revision = current_revision(opened)
    finally:
        opened.close()
    if not session.is_quiet:
        click.echo(f"{opened.url.render_as_string()} is at migration {revision}")
