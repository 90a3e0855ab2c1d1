"""`patchlog push`, `pull` and `tail`: patches into a log, and out of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

import click

from patchlog.cli.files import STANDARD, file_name, reading, writing
from patchlog.cli.options import VERSION, Number, common, input_files, output
from patchlog.cli.outcome import Session, about
from patchlog.cli.places import Wanted, place_options, reading_log, wanted_place, writing_log
from patchlog.cli.seams import watched
from patchlog.cli.tellings import as_json, json_line, where_appended
from patchlog.codec.options import CANONICAL_PATCH
from patchlog.codec.patch_ids import parse_patch_id
from patchlog.engine import Converter
from patchlog.errors import CodecError, TransactionError
from patchlog.formats import JELLY_PATCH, NQUADS, NTRIPLES, RDF_PATCH, Format, choose_format
from patchlog.log.contract import PatchFormat
from patchlog.log.documents import appended_document, record_document
from patchlog.log.records import ANY_HEAD, ExpectedHead, LoggedPatch
from patchlog.log.tailing import tail as tail_of
from patchlog.streams import Write

__all__ = ["pull", "push", "tail"]

_COUNT: Final = Number("number")
_PUSHED: Final = (JELLY_PATCH, RDF_PATCH, NQUADS, NTRIPLES)
_PULLED: Final = (JELLY_PATCH, RDF_PATCH)

_log = click.argument("location", metavar="[LOG]", required=False)


@click.command("push", short_help="Append patches to a log.")
@input_files
@place_options
@click.option(
    "--format", "--in-format", "in_format", metavar="FORMAT", help="jelly-patch (that of pipes), rdf-patch, nq or nt."
)
@click.option(
    "--expected-head",
    metavar="ID",
    help="The patch that the log has to end with, so that nobody else has written to it; none for an empty log.",
)
@as_json
@common
def push(
    session: Session,
    *,
    paths: Sequence[str],
    wanted: Wanted,
    in_format: str | None,
    expected_head: str | None,
    as_json: bool,
) -> None:
    """Append patches to a log. The patches of a file are appended whole or not at all, and are then durable.

    Patches that are in the log already, by their ids and what they say, are not appended again. The statements of
    N-Quads and N-Triples become one patch that adds them.
    """
    place = wanted_place(wanted)
    head: ExpectedHead = ANY_HEAD
    if expected_head is not None:
        head = None if expected_head == "none" else parse_patch_id(expected_head)
    with writing_log(place) as log:
        for path in paths or [STANDARD]:
            source = _Source.of(path, in_format, session)
            try:
                appended = log.append(source, format=source.sent_as, expected_head=head)
            except (CodecError, TransactionError):
                with about(path, source.format):
                    raise
            if head is not ANY_HEAD:
                head = appended.id
            if as_json:
                click.echo(json_line(appended_document(appended)))
            elif not session.is_quiet:
                session.progress.pause()
                click.echo(f"{log.name}: {where_appended(appended)}")


@dataclass(frozen=True, slots=True)
class _Source:
    """What is pushed. A file can be read again where an answer was lost; standard input cannot."""

    path: str
    format: Format
    session: Session

    @classmethod
    def of(cls, path: str, in_format: str | None, session: Session) -> _Source:
        default = JELLY_PATCH if path == STANDARD else None
        return cls(path, choose_format(in_format, file_name(path), _PUSHED, default=default), session)

    @property
    def sent_as(self) -> PatchFormat:
        return "rdf-patch" if self.format is RDF_PATCH else "jelly-patch"

    def __iter__(self) -> Iterator[bytes]:
        chunks = reading(self.path, self.session)
        if self.format.is_patch:
            yield from watched(self.path, self.session, self.format, chunks)
            return
        converter = Converter("nquads", "jelly-patch", patch_options=CANONICAL_PATCH)
        for chunk in chunks:
            yield converter.feed(chunk)
        yield converter.finish()


@click.command("pull", short_help="Write patches of a log.")
@_log
@place_options
@output
@click.option("--after", type=VERSION, default=0, help="The version that the first patch follows.  [default: 0]")
@click.option("--until", type=VERSION, help="The last version.  [default: the head]")
@click.option("--limit", type=_COUNT, help="How many patches at most.")
@click.option(
    "--format",
    "--out-format",
    "out_format",
    metavar="FORMAT",
    help="jelly-patch or rdf-patch.  [default: what the output is named; rdf-patch on a terminal, else jelly-patch]",
)
@as_json
@common
def pull(
    session: Session,
    *,
    wanted: Wanted,
    to: str,
    after: int,
    until: int | None,
    limit: int | None,
    out_format: str | None,
    as_json: bool,
) -> None:
    """Write patches of a log as one stream, as they were stored; with --json describe them instead.

    LOG may be a file of patches too. Its patches are versions 1, 2, 3 …
    """
    is_shown = to == STANDARD and sys.stdout is not None and sys.stdout.isatty()
    chosen = choose_format(out_format, file_name(to), _PULLED, default=RDF_PATCH if is_shown else JELLY_PATCH)
    with reading_log(wanted_place(wanted), session) as log:
        patches = log.read(after, limit=limit, until=until)
        with writing(to, session, is_text=as_json or chosen is RDF_PATCH) as write:
            told = _Telling(write, chosen, as_json=as_json)
            for logged in patches:
                told.tell(logged)
            told.finish()


@click.command("tail", short_help="Write the patches of a log as they come.")
@_log
@place_options
@click.option("--after", type=VERSION, help="The version that the first patch follows.  [default: the head]")
@click.option("--limit", type=_COUNT, help="End after so many patches.")
@click.option(
    "--format", "--out-format", "out_format", metavar="FORMAT", help="rdf-patch (the default) or jelly-patch."
)
@as_json
@common
def tail(
    session: Session, *, wanted: Wanted, after: int | None, limit: int | None, out_format: str | None, as_json: bool
) -> None:
    """Write the patches of a log as they come, until Ctrl-C. While the log cannot be reached it is tried again.

    Where the log becomes another one, or goes back to an older state, it ends with an error.
    """
    chosen = choose_format(out_format, None, _PULLED, default=RDF_PATCH)
    with (
        reading_log(wanted_place(wanted), session, grows=True) as log,
        writing(STANDARD, session, is_text=as_json or chosen is RDF_PATCH) as write,
    ):
        told = _Telling(write, chosen, as_json=as_json)
        for logged in islice(tail_of(log, log.position(after)), limit):
            told.tell(logged)
            sys.stdout.flush()


class _Telling:
    """Writes patches in the form that was asked for."""

    def __init__(self, write: Write, format: Format, *, as_json: bool) -> None:
        self._write = write
        self._as_json = as_json
        self._converter = Converter("jelly-patch", "rdf-patch") if format is RDF_PATCH else None
        self._has_begun = False

    def tell(self, logged: LoggedPatch) -> None:
        """Write a patch."""
        if self._as_json:
            self._write(f"{json_line(record_document(logged.record))}\n".encode())
            return
        self._has_begun = True
        for chunk in logged.chunks:
            self._write(self._converter.feed(chunk) if self._converter else chunk)

    def finish(self) -> None:
        """Say that there are no more."""
        if self._converter and self._has_begun:
            self._write(self._converter.finish())
