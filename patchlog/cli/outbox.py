"""`patchlog outbox`: the patches of captured datasets that wait for a service."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from patchlog.cli.checks import counted
from patchlog.cli.confirmation import confirm, yes_option
from patchlog.cli.options import common
from patchlog.cli.outcome import CheckFailed, Session
from patchlog.cli.tellings import as_json, json_line
from patchlog.client.urls import without_password
from patchlog.codec.patch_ids import parse_patch_id
from patchlog.errors import PatchLogError, UsageError
from patchlog.log.documents import Document, position_document
from patchlog.outbox import Outbox, QueuedPatch, default_path, deliver
from patchlog.places import open_log

__all__ = ["OUTBOX_COMMANDS"]

Command = TypeVar("Command", bound=Callable[..., Any])


def _outbox_option(command: Command) -> Any:
    return click.option(
        "--outbox",
        "file",
        metavar="FILE",
        type=click.Path(dir_okay=False),
        help="The outbox.  [default: PATCHLOG_OUTBOX, else that of the user]",
    )(command)


def _log_option(command: Command) -> Any:
    return click.option("--log", metavar="URL", help="Only what waits for this log.")(command)


@click.command("list", short_help="List the patches that wait.")
@_outbox_option
@_log_option
@as_json
@common
def list_waiting(session: Session, *, file: str | None, log: str | None, as_json: bool) -> None:
    """List the patches that captured datasets could not deliver yet, in the order in which they go.

    The program that made them delivers those that are `waiting`, as soon as the service can be reached. A `conflict` or
    what the service has `refused` needs a decision: `patchlog outbox deliver` tries again, `drop` takes a patch out.
    """
    with _opened(file) as outbox:
        waiting = _waiting(outbox, log)
        if as_json:
            click.echo(json_line([_document(patch) for patch in waiting]))
            return
        for patch in waiting:
            click.echo(_line(patch))
        if not waiting and not session.is_quiet:
            click.echo(f"nothing waits in {outbox.path}")


@click.command("show", short_help="Print a patch that waits.")
@click.argument("patch_id", metavar="ID")
@_outbox_option
@common
def show(session: Session, *, patch_id: str, file: str | None) -> None:
    """Print a patch that waits, as RDF Patch."""
    del session
    with _opened(file) as outbox:
        content = outbox.content(parse_patch_id(patch_id))
        if content is None:
            raise UsageError(f"no patch {patch_id} waits in {outbox.path}")
        click.echo(content, nl=False)


@click.command("deliver", short_help="Send what waits.")
@_outbox_option
@_log_option
@click.option(
    "--on-top",
    is_flag=True,
    help="Send the patches although others have changed the same, or the log has another history: these win.",
)
@as_json
@common
def deliver_waiting(session: Session, *, file: str | None, log: str | None, on_top: bool, as_json: bool) -> None:
    """Send what waits, without the program that made it: each log's patches in their order.

    Where others have written to the log meanwhile, what the program said of conflicts holds for its patches.
    """
    failures: list[str] = []
    documents: list[Document] = []
    with _opened(file) as outbox:
        for place in dict.fromkeys(patch.log for patch in _waiting(outbox, log)):
            before, failure, shown = len(outbox.ids(place)), None, without_password(place)
            try:
                with open_log(place) as opened:
                    deliver(outbox, place, opened, on_top=on_top)
            except PatchLogError as error:
                failure = str(error)
                failures.append(f"{shown}: {error}")
            left = len(outbox.ids(place))
            documents.append({"log": shown, "delivered": before - left, "waiting": left, "error": failure})
            if not as_json and not session.is_quiet and (before > left or failure is None):
                click.echo(f"{shown}: {counted(before - left, 'patch')} delivered")
    if as_json:
        click.echo(json_line(documents))
    if failures:
        raise CheckFailed("; ".join(failures))


@click.command("drop", short_help="Take patches out for good.")
@click.argument("patch_ids", metavar="[ID]...", nargs=-1)
@_outbox_option
@click.option("--all", "is_all", is_flag=True, help="All patches that wait, or with --log all for that log.")
@_log_option
@yes_option
@as_json
@common
def drop(
    session: Session,
    *,
    patch_ids: tuple[str, ...],
    file: str | None,
    is_all: bool,
    log: str | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Take patches out of the outbox: their log is never to have them. Nothing else drops a patch.

    A program that is running takes back what they did when it next commits or pulls.
    """
    if bool(patch_ids) == is_all or (log is not None and not is_all):
        raise click.UsageError("give the ids of patches, or --all, which --log limits to one log")
    with _opened(file) as outbox:
        wanted = _wanted(outbox, patch_ids, log)
        if not wanted:
            dropped = []
        else:
            confirm(f"drop {counted(len(wanted), 'patch')}, which the log does not have,", yes=yes)
            dropped = outbox.drop(*wanted)
        if as_json:
            click.echo(json_line([{"id": patch_id} for patch_id in dropped]))
        elif not session.is_quiet:
            click.echo(f"{counted(len(dropped), 'patch')} dropped")


def _wanted(outbox: Outbox, patch_ids: Iterable[str], log: str | None) -> list[str]:
    wanted = [parse_patch_id(patch_id) for patch_id in patch_ids]
    for patch_id in wanted:
        if outbox.content(patch_id) is None:
            raise UsageError(f"no patch {patch_id} waits in {outbox.path}")
    return wanted or [patch.id for patch in _waiting(outbox, log)]


@contextmanager
def _opened(file: str | None) -> Iterator[Outbox]:
    path = default_path() if file is None else Path(file)
    if file is not None and not path.exists():
        raise UsageError(f"there is no outbox {path}")
    with Outbox(path) as opened:
        yield opened


def _waiting(outbox: Outbox, log: str | None) -> list[QueuedPatch]:
    """What waits for a log, or for all. A password in its URL need not be said."""
    waiting = outbox.waiting()
    if log is None:
        return waiting
    place = without_password(log.rstrip("/"))
    return [patch for patch in waiting if without_password(patch.log) == place]


def _line(patch: QueuedPatch) -> str:
    said = [f"{name} {value}" for name, value in patch.headers.items() if name != "when"]
    state = f"{patch.state}, {counted(patch.attempts, 'attempt')}: {patch.error}" if patch.error else patch.state
    return "  ".join([without_password(patch.log), patch.id, patch.queued, *said, counted(patch.bytes, "byte"), state])


def _document(patch: QueuedPatch) -> Document:
    return {
        "log": without_password(patch.log),
        "id": patch.id,
        "state": patch.state,
        "error": patch.error,
        "queued": patch.queued,
        "attempts": patch.attempts,
        "bytes": patch.bytes,
        "headers": dict(patch.headers),
        "conflicts": patch.conflicts,
        "expected_head": patch.expected_head,
        "position": None if patch.base is None else position_document(patch.base),
    }


OUTBOX_COMMANDS = (list_waiting, show, deliver_waiting, drop)
