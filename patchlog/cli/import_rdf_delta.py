"""`patchlog import-rdf-delta`: the logs of an RDF Delta server become ours."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

import click

from patchlog.cli.checks import counted
from patchlog.cli.options import common
from patchlog.cli.outcome import Session
from patchlog.cli.places import Wanted, store_options, wanted_place
from patchlog.errors import UsageError
from patchlog.rdf_delta.origins import origin_at
from patchlog.rdf_delta.taking_over import take_over

__all__ = ["import_rdf_delta"]


@click.command("import-rdf-delta", short_help="Take over the logs of an RDF Delta server.")
@click.argument("origin", metavar="DIR_OR_URL")
@store_options
@click.option("--log", "names", multiple=True, metavar="NAME", help="Only the log of this name; several.")
@common
def import_rdf_delta(session: Session, *, origin: str, wanted: Wanted, names: Sequence[str]) -> None:
    """Take over the logs of an RDF Delta server: of a running one by its URL, or of a file store by its folder.

    Ids, versions and headers stay. It goes on where it was if it is started again, and ends with a check of each log.
    """
    with closing(origin_at(origin)) as opened, wanted_place(wanted).store(creates=True) as store:
        logs = opened.logs()
        if unknown := sorted(set(names) - {log.name for log in logs}):
            raise UsageError(
                f"{origin} has no log {unknown[0]!r}; it has {', '.join(log.name for log in logs) or 'none'}"
            )
        chosen = [log for log in logs if not names or log.name in names]
        for log in chosen:
            opened.check(log)
        for log in chosen:
            taken, version = take_over(opened, log, store, log.name)
            found = store.log(log.name).verify()
            if not found.is_sound:
                raise UsageError(f"{log.name}: version {found.first_bad_version} is bad: {found.reason}")
            if not session.is_quiet:
                session.progress.pause()
                click.echo(
                    f"{log.name}: {counted(taken, 'patch')} taken over, at version {version}, all hashes are right"
                )
