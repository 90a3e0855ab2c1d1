"""What commands say where the input may be files that were concatenated. `patchlog.codec.seams` says why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import click

from patchlog.cli.outcome import Session, label
from patchlog.codec.seams import PATCH_LOOKUP_ROWS, RDF_LOOKUP_ROWS, SeamFinder
from patchlog.errors import CodecError, UnsupportedOption
from patchlog.formats import JELLY, JELLY_PATCH, Format

__all__ = ["minding_seams", "watched"]


@contextmanager
def minding_seams(path: str, session: Session, read_as: Format, *, concatenated: bool = False) -> Iterator[SeamFinder]:
    """Give what the input has to go through; afterwards, say whether it may be several files.

    With `concatenated` it is read as several, and nothing is said.
    """
    finder = SeamFinder(PATCH_LOOKUP_ROWS if read_as is JELLY_PATCH else RDF_LOOKUP_ROWS)
    try:
        yield finder
    except CodecError as error:
        # Where the options differ the error says it by itself.
        if finder.frame is not None and not concatenated and not isinstance(error, UnsupportedOption):
            error.add_note(f"({_remark(finder.frame)}, read it with --concatenated)")
        raise
    if finder.frame is not None and not concatenated and not session.is_quiet:
        advice = "mixes up their terms: read it with --concatenated"
        click.echo(f"remark: {label(path)}: {_remark(finder.frame)}, this {advice}", err=True)


def watched(path: str, session: Session, read_as: Format, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the chunks of an input for a command that reads one stream only; at its end, say whether it may be several.

    What is no Jelly goes by as it is.
    """
    if read_as not in (JELLY, JELLY_PATCH):
        yield from chunks
        return
    finder = SeamFinder(PATCH_LOOKUP_ROWS if read_as is JELLY_PATCH else RDF_LOOKUP_ROWS)
    yield from finder.watch(chunks)
    if finder.frame is not None and not session.is_quiet:
        group = "patch" if read_as is JELLY_PATCH else "rdf"
        advice = f"mixes up their terms: join it first with `patchlog {group} transcode --concatenated`"
        click.echo(f"remark: {label(path)}: {_remark(finder.frame)}, this {advice}", err=True)


def _remark(frame: int) -> str:
    return (
        f"frame {frame} begins with options again, and its ids count on from before, as they do in one stream; "
        "if this is several files, concatenated"
    )
