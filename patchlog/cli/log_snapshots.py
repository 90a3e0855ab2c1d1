"""`patchlog snapshot build`, `list`, `get` and `put`: the whole dataset of a log, at a version."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import click

from patchlog.cli.checks import counted
from patchlog.cli.files import STANDARD, file_name, reading, writing
from patchlog.cli.options import VERSION, FormatType, common, input_file, output
from patchlog.cli.outcome import Session, about
from patchlog.cli.places import Wanted, log_name, place_options, reading_log, wanted_place
from patchlog.cli.tellings import as_json, json_line
from patchlog.engine import Converter, RdfDecoder
from patchlog.errors import CodecError, SnapshotNotFound, UsageError
from patchlog.formats import JELLY, JELLY_TEXT, NQUADS, NTRIPLES, RDF_FORMATS, TRIG, Format, choose_format
from patchlog.log.contract import SnapshotFormat, Snapshots
from patchlog.log.documents import snapshot_document
from patchlog.log.records import Snapshot
from patchlog.log.snapshots.passing import passing_snapshots
from patchlog.log.snapshots.reading import STORED_LIMITS
from patchlog.log.snapshots.writing import jelly_of
from patchlog.pipes import drain
from patchlog.places import Place
from patchlog.syntaxes import read_syntax, write_syntax

__all__ = ["build", "get", "list_snapshots", "put", "put_file"]

_LATEST = "latest"
_GOT = (JELLY, NQUADS, TRIG)
_PUT = tuple(one for one in RDF_FORMATS if one is not JELLY_TEXT)

_log = click.argument("location", metavar="[LOG]", required=False)


@click.command("build", short_help="Make the snapshot at a version.")
@_log
@place_options
@click.option("--version", type=VERSION, help="The version.  [default: the head]")
@as_json
@common
def build(session: Session, *, wanted: Wanted, version: int | None, as_json: bool) -> None:
    """Make the snapshot at a version: the dataset after all patches up to it. One that is there is not made again."""
    place = wanted_place(wanted)
    with place.store() as store:
        snapshot = store.log(log_name(place)).snapshots.build(version)
    _tell(session, snapshot, as_json=as_json)


@click.command("list", short_help="List the snapshots of a log.")
@_log
@place_options
@as_json
@common
def list_snapshots(session: Session, *, wanted: Wanted, as_json: bool) -> None:
    """List the snapshots of a log, by version."""
    del session
    place = wanted_place(wanted)
    with place.store() as store:
        found = store.log(log_name(place)).snapshots.list()
    if as_json:
        click.echo(json_line([snapshot_document(snapshot) for snapshot in found]))
        return
    for snapshot in found:
        click.echo(_line(snapshot))


@click.command("get", short_help="Write a snapshot.")
@_log
@place_options
@output
@click.option("--version", metavar="VERSION", default=_LATEST, help="The version, or latest.  [default: latest]")
@click.option(
    "--format",
    "--out-format",
    "out_format",
    type=FormatType(_GOT),
    metavar="FORMAT",
    help="jelly, nq or trig.  [default: what the output is named; nq on a terminal, else jelly]",
)
@common
def get(session: Session, *, wanted: Wanted, to: str, version: str, out_format: str | None) -> None:
    """Write a snapshot of a log. In Jelly-RDF it is a copy of what is stored; of a file it is made on the spot."""
    is_shown = to == STANDARD and sys.stdout is not None and sys.stdout.isatty()
    chosen = choose_format(out_format, file_name(to), _GOT, default=NQUADS if is_shown else JELLY)
    with _readable(wanted_place(wanted), session, version) as snapshots:
        chunks = snapshots.read(_version_of(snapshots, version))
        with writing(to, session, is_text=chosen is not JELLY) as write:
            if chosen is TRIG:
                write_syntax(write, drain(RdfDecoder(limits=STORED_LIMITS), chunks), TRIG)
                return
            for chunk in chunks if chosen is JELLY else drain(_Text(), chunks):
                write(chunk)


@click.command("put", short_help="Start a log with a dataset.")
@input_file
@_log
@place_options
@click.option("--version", type=VERSION, default=0, help="The version that the dataset is that of.  [default: 0]")
@click.option(
    "--format",
    "--in-format",
    "in_format",
    type=FormatType(_PUT),
    metavar="FORMAT",
    help="The format of the file.  [default: what it is named; jelly of a pipe]",
)
@as_json
@common
def put(session: Session, *, path: str, wanted: Wanted, version: int, in_format: str | None, as_json: bool) -> None:
    """Start an empty log with a dataset: it is the snapshot at version 0, and the first patch changes it.

    At another version the dataset is compared with what the log says, and is an error where it differs.
    """
    place = wanted_place(wanted)
    with place.store() as store:
        snapshot = put_file(store.log(log_name(place)).snapshots, path, session, version=version, in_format=in_format)
    session.progress.pause()
    _tell(session, snapshot, as_json=as_json)


def put_file(
    snapshots: Snapshots, path: str, session: Session, *, version: int = 0, in_format: str | None = None
) -> Snapshot:
    """Give a log the dataset of a file. What it says in Jelly-RDF or N-Quads, the log reads itself, byte for byte."""
    chosen = choose_format(in_format, file_name(path), _PUT, default=JELLY if path == STANDARD else None)
    chunks, sent_as = _sent(reading(path, session), chosen)
    try:
        return snapshots.put(version, chunks, sent_as)
    except CodecError:
        with about(path, chosen):
            raise


@contextmanager
def _readable(place: Place, session: Session, version: str) -> Iterator[Snapshots]:
    """The snapshots of a log. A file keeps none, so the one that is wanted is made."""
    if place.file is None:
        with place.store() as store:
            yield store.log(log_name(place)).snapshots
        return
    with reading_log(place, session) as log, passing_snapshots(log) as snapshots:
        snapshots.build(None if version == _LATEST else _number(version))
        yield snapshots


class _Text:
    """Jelly-RDF to N-Quads, as a decoder."""

    def __init__(self) -> None:
        self._converter = Converter("jelly", "nquads", limits=STORED_LIMITS)

    def feed(self, data: bytes, /) -> Iterable[bytes]:
        yield self._converter.feed(data)

    def finish(self) -> Iterable[bytes]:
        yield self._converter.finish()


def _sent(chunks: Iterator[bytes], chosen: Format) -> tuple[Iterable[bytes], SnapshotFormat]:
    if chosen is JELLY:
        return chunks, "jelly"
    if chosen in (NQUADS, NTRIPLES):
        return chunks, "nquads"
    return jelly_of(read_syntax(chunks, chosen)), "jelly"


def _version_of(snapshots: Snapshots, wanted: str) -> int:
    if wanted != _LATEST:
        return _number(wanted)
    found = snapshots.list()
    if not found:
        raise SnapshotNotFound("the log has no snapshots yet: `patchlog snapshot build` makes one")
    return found[-1].version


def _number(wanted: str) -> int:
    if not (wanted.isascii() and wanted.isdigit() and len(wanted) < 19):
        raise UsageError(f"{wanted!r} is not the version of a snapshot: write a number, or {_LATEST}")
    return int(wanted)


def _tell(session: Session, snapshot: Snapshot, *, as_json: bool) -> None:
    if as_json:
        click.echo(json_line(snapshot_document(snapshot)))
    elif not session.is_quiet:
        click.echo(_line(snapshot))


def _line(snapshot: Snapshot) -> str:
    return f"version {snapshot.version}: {counted(snapshot.quads, 'quad')}, {snapshot.bytes} bytes, {snapshot.created}"
