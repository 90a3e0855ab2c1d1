"""What commands say where the input may be files that were laid end to end. `patchlog.codec.seams` says why."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from patchlog.cli.outcome import Session, label
from patchlog.codec.seams import PATCH_LOOKUP_ROWS, RDF_LOOKUP_ROWS, SeamFinder
from patchlog.errors import CodecError
from patchlog.formats import JELLY_PATCH, Format

__all__ = ["minding_seams"]


@contextmanager
def minding_seams(path: str, session: Session, read_as: Format, *, concatenated: bool = False) -> Iterator[SeamFinder]:
    """Give what the input has to go through; when it has, say whether it may be several files.

    A reader that was told so (`concatenated`) needs no remark.
    """
    finder = SeamFinder(PATCH_LOOKUP_ROWS if read_as is JELLY_PATCH else RDF_LOOKUP_ROWS)
    try:
        yield finder
    except CodecError as error:
        if finder.frame is not None and not concatenated:
            error.add_note(f"({_remark(finder.frame)})")
        raise
    if finder.frame is not None and not concatenated and not session.is_quiet:
        click.echo(f"remark: {label(path)}: {_remark(finder.frame)}", err=True)


def _remark(frame: int) -> str:
    return (
        f"frame {frame} begins with options again, and its ids count on from before: files that were laid end to end "
        "are read with --concatenated, else their terms are mixed up"
    )
