"""`patchlog follow`: keep a copy of a log's dataset in step with it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import click

from patchlog.cli.confirmation import confirm, yes_option
from patchlog.cli.files import STANDARD, writing
from patchlog.cli.options import VERSION, common
from patchlog.cli.outcome import Session
from patchlog.cli.places import Wanted, place_options, reading_log, wanted_place
from patchlog.client.urls import without_password
from patchlog.errors import HistoryMismatch
from patchlog.followers.changes import Applying
from patchlog.followers.follow import follow as follow_log
from patchlog.followers.follow import selection_of
from patchlog.followers.follower import Follower, no_snapshot
from patchlog.followers.output_target import OutputFormat, OutputTarget
from patchlog.followers.positions import OtherPart
from patchlog.followers.selection import Selection
from patchlog.followers.snapshots import snapshots_of
from patchlog.followers.targets import store_url
from patchlog.log.contract import PatchLog

__all__ = ["follow"]


@click.command("follow", short_help="Keep a second copy in step with a log.")
@click.argument("location", metavar="[LOG]", required=False)
@place_options
@click.option(
    "--into",
    metavar="TARGET",
    default=STANDARD,
    help="What follows: a log (http://HOST/logs/NAME, sqlite:///FILE#NAME, FILE.jellyp), a store (sparql:URL, "
    "graph-store:URL, fuseki-patch:URL), or - for standard output.  [default: -]",
)
@click.option("--once", is_flag=True, help="End at the head of this moment.")
@click.option("--until", type=VERSION, help="End at this version.")
@click.option("--after", type=VERSION, help="The version to begin after, for a target that keeps no position.")
@click.option(
    "--graph", "graphs", multiple=True, metavar="IRI", help="Only this graph; '' is the default graph. Several."
)
@click.option(
    "--subject", "subjects", multiple=True, metavar="TERM", help="Only this subject: an IRI or _:label. Several."
)
@click.option("--predicate", "predicates", multiple=True, metavar="IRI", help="Only this predicate. Several.")
@click.option(
    "--format",
    "--out-format",
    "out_format",
    type=click.Choice(["nq", "rdf-patch", "jelly-patch"]),
    default="nq",
    show_default=True,
    help="What is written to standard output. nq can only say what is added.",
)
@click.option(
    "--consumer", metavar="NAME", help="Report the position to the log under this name; truncation waits for it."
)
@click.option(
    "--replace",
    is_flag=True,
    help="Start a target again that cannot go on: it has another history or part of the log, or quads of others.",
)
@yes_option
@click.option("--query-url", metavar="URL", help="Where a store answers queries.  [default: its …/query]")
@common
def follow(
    session: Session,
    *,
    wanted: Wanted,
    into: str,
    once: bool,
    until: int | None,
    after: int | None,
    graphs: Sequence[str],
    subjects: Sequence[str],
    predicates: Sequence[str],
    out_format: OutputFormat,
    consumer: str | None,
    replace: bool,
    yes: bool,
    query_url: str | None,
) -> None:
    """Take the patches of a log to a target, and go on with each new one, until Ctrl-C.

    It begins where the target stands: with the newest snapshot where it has nothing yet, else with the next patch.
    Where --replace has to delete a log with its patches, it asks first, or wants --yes.
    """
    is_live = not once and until is None
    with ExitStack() as opened:
        log = opened.enter_context(reading_log(wanted_place(wanted), session, grows=is_live))
        if into == STANDARD:
            selection = selection_of(graphs, subjects, predicates)
            follower = opened.enter_context(_written(session, log, out_format, selection, after, consumer))
        else:

            def followed(*, replace: bool) -> Follower:
                return follow_log(
                    log,
                    into,
                    graphs=graphs,
                    subjects=subjects,
                    predicates=predicates,
                    after=after,
                    until=until,
                    consumer=consumer,
                    query_url=query_url,
                    replace=replace,
                )

            # What a store has is a copy of something. A log may be all that there is of its patches.
            deletes_log = replace and not yes and store_url(into) is None
            try:
                follower = opened.enter_context(followed(replace=replace and not deletes_log))
            except (HistoryMismatch, OtherPart) as error:
                if not deletes_log:
                    raise
                confirm(f"delete all patches of {without_password(into)} ({_reason(error)})", yes=False)
                follower = opened.enter_context(followed(replace=True))
        if is_live:
            follower.run()
        else:
            follower.catch_up(until)
        if not session.is_quiet and into != STANDARD:
            session.progress.pause()
            click.echo(f"{without_password(into)} has version {follower.position} of {log.name}")


def _reason(error: HistoryMismatch | OtherPart) -> str:
    return error.reason if isinstance(error, HistoryMismatch) else str(error).partition(". ")[0]


@contextmanager
def _written(
    session: Session,
    log: PatchLog,
    out_format: OutputFormat,
    selection: Selection,
    after: int | None,
    consumer: str | None,
) -> Iterator[Follower]:
    with writing(STANDARD, session, is_text=out_format != "jelly-patch") as write:

        def write_at_once(data: bytes) -> None:
            write(data)
            sys.stdout.flush()

        target = Applying(OutputTarget(write_at_once, out_format), selection)
        # Whoever reads on behind a version has what was before, and a snapshot would not take that away.
        find_snapshot = snapshots_of(log) if after is None else no_snapshot
        yield Follower(log, target, find_snapshot=find_snapshot, after=after, consumer=consumer)
