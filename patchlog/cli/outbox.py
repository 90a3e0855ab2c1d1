"""`patchlog outbox`: the patches of captured datasets that wait for a service."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import click

from patchlog.cli.checks import counted
from patchlog.cli.confirmation import confirm, yes_option
from patchlog.cli.options import common
from patchlog.cli.outcome import CheckFailed, Session
from patchlog.cli.tellings import as_json, json_line
from patchlog.codec.patch_ids import parse_patch_id
from patchlog.errors import PatchLogError, UsageError
from patchlog.outbox import Outbox, QueuedPatch, default_path, deliver
from patchlog.places import open_log

__all__ = ["outbox"]


@click.command("outbox", short_help="List, deliver or drop the patches that wait for a service.")
@click.option(
    "--outbox",
    "file",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="The outbox.  [default: PATCHLOG_OUTBOX, else that of the user]",
)
@click.option("--deliver", "is_delivery", is_flag=True, help="Send what waits, each log's patches in their order.")
@click.option(
    "--on-top",
    is_flag=True,
    help="With --deliver: send the patches although other writers came first. Where both change the same, these win.",
)
@click.option("--show", metavar="ID", help="Print the patch with this id, as RDF Patch.")
@click.option("--drop", metavar="ID", help="Print it too, and take it out for good.")
@yes_option
@as_json
@common
def outbox(
    session: Session,
    *,
    file: str | None,
    is_delivery: bool,
    on_top: bool,
    show: str | None,
    drop: str | None,
    yes: bool,
    as_json: bool,
) -> None:
    """List the patches that captured datasets could not deliver yet, in the order in which they go.

    They are delivered by the program that made them, as soon as the service can be reached; by --deliver without it.
    """
    if sum((is_delivery, show is not None, drop is not None)) > 1:
        raise click.UsageError("--deliver, --show and --drop are three things: give one of them")
    if on_top and not is_delivery:
        raise click.UsageError("--on-top is for --deliver")
    with _opened(file) as opened:
        waiting = opened.waiting()
        if is_delivery:
            _deliver(opened, waiting, session, on_top=on_top)
        elif (wanted := show or drop) is not None:
            click.echo(_content(opened, wanted), nl=False)
            if drop is not None:
                confirm(f"drop the patch {wanted}, which is not in its log", yes=yes)
                opened.drop(parse_patch_id(drop))
        elif as_json:
            click.echo(json_line([asdict(patch) for patch in waiting]))
        else:
            _tell(waiting, opened.path, session)


@contextmanager
def _opened(file: str | None) -> Iterator[Outbox]:
    path = default_path() if file is None else Path(file)
    if file is not None and not path.exists():
        raise UsageError(f"there is no outbox {path}")
    opened = Outbox(path)
    try:
        yield opened
    finally:
        opened.close()


def _tell(waiting: list[QueuedPatch], path: Path, session: Session) -> None:
    for patch in waiting:
        size = counted(patch.bytes, "byte")
        tries = f", {counted(patch.attempts, 'attempt')}: {patch.error}" if patch.error else ""
        click.echo(f"{patch.log}  {patch.id}  {patch.queued}  {size}{tries}")
    if not waiting and not session.is_quiet:
        click.echo(f"nothing waits in {path}")


def _content(opened: Outbox, wanted: str) -> bytes:
    content = opened.content(parse_patch_id(wanted))
    if content is None:
        raise UsageError(f"no patch {wanted} waits in {opened.path}")
    return content


def _deliver(opened: Outbox, waiting: list[QueuedPatch], session: Session, *, on_top: bool) -> None:
    failures: list[str] = []
    for place in dict.fromkeys(patch.log for patch in waiting):
        try:
            with open_log(place) as log:
                if on_top:
                    opened.rebase(place, log.head().id)
                appended = deliver(opened, place, log)
        except PatchLogError as error:
            failures.append(f"{place}: {error}")
            continue
        if not session.is_quiet:
            click.echo(f"{place}: {counted(len(appended), 'patch')} delivered")
    if failures:
        raise CheckFailed("; ".join(failures))
