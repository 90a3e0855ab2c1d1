"""`patchlog import-rdf-delta`: the logs of an RDF Delta server become ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial

import click

from patchlog.cli.checks import counted
from patchlog.cli.options import common
from patchlog.cli.outcome import Session
from patchlog.cli.places import Wanted, store_options, wanted_place
from patchlog.errors import PatchLogError, UsageError
from patchlog.log.contract import LogStore
from patchlog.log.database import Database
from patchlog.rdf_delta.origins import DeltaLog, Origin, origin_at
from patchlog.rdf_delta.taking_over import check_first, take_over
from patchlog.rdf_delta.uris import keep_uri, usual_uri

__all__ = ["import_rdf_delta"]


@click.command("import-rdf-delta", short_help="Take over the logs of an RDF Delta server.")
@click.argument("origin", metavar="DIR_OR_URL")
@store_options
@click.option("--log", "names", multiple=True, metavar="NAME", help="Only the log of this name; several.")
@common
def import_rdf_delta(session: Session, *, origin: str, wanted: Wanted, names: Sequence[str]) -> None:
    """Take over the logs of an RDF Delta server: of a running one by its URL, or of a file store by its folder.

    Ids, versions, headers and URIs stay. It goes on where it was if it is started again, and checks each log in the
    end. A log that cannot be read does not stop the others.
    """
    failures: dict[str, PatchLogError] = {}
    with closing(origin_at(origin)) as opened:
        chosen = _chosen(opened, origin, names)
        readable = [log for log in chosen if _succeeds(failures, log.name, partial(check_first, opened, log))]
        if readable or not chosen:
            with wanted_place(wanted).store(creates=True) as store:
                for log in readable:
                    _succeeds(failures, log.name, partial(_import, session, opened, log, store))
    if failures:
        each = "; ".join(f"{name}: {_cause(error)}" for name, error in failures.items())
        count = f"{len(failures)} of {len(chosen)} logs could not be imported: " if len(chosen) > 1 else ""
        raise UsageError(count + each)


def _chosen(opened: Origin, origin: str, names: Sequence[str]) -> list[DeltaLog]:
    logs = opened.logs()
    if unknown := sorted(set(names) - {log.name for log in logs}):
        raise UsageError(f"{origin} has no log {unknown[0]!r}; it has {', '.join(log.name for log in logs) or 'none'}")
    return [log for log in logs if not names or log.name in names]


def _succeeds(failures: dict[str, PatchLogError], name: str, step: Callable[[], None]) -> bool:
    """Do a step for a log; False where it failed, which is kept."""
    try:
        step()
    except PatchLogError as error:
        failures[name] = error
        return False
    return True


def _import(session: Session, opened: Origin, log: DeltaLog, store: LogStore) -> None:
    taken, version = take_over(opened, log, store, log.name)
    found = store.log(log.name).verify()
    if not found.is_sound:
        raise UsageError(f"version {found.first_bad_version} is bad: {found.reason}")
    database = getattr(store, "database", None)
    if isinstance(database, Database) and log.uri not in (None, usual_uri(log.name)):
        keep_uri(database, log.name, str(log.uri))
    if not session.is_quiet:
        session.progress.pause()
        click.echo(f"{log.name}: {counted(taken, 'patch')} taken over, at version {version}, all hashes are right")


def _cause(error: PatchLogError) -> str:
    """The error, with what it is about."""
    source, *remarks = getattr(error, "__notes__", ("",))
    return " ".join([f"{source}: {error}" if source else str(error), *remarks])
