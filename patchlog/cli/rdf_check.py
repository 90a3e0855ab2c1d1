"""`patchlog rdf inspect` and `validate`."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import click

from patchlog import rdf
from patchlog.cli.checks import Delimiting, check_stream, counted
from patchlog.cli.files import STANDARD, file_name, reading, source_of
from patchlog.cli.options import (
    FILE,
    FrameRange,
    common,
    concatenated_input,
    delimiting,
    format_option,
    frame_range,
    input_file,
    inspection,
    output,
    read_layout,
    reading_options,
)
from patchlog.cli.outcome import CheckFailed, Session, about, label, naming
from patchlog.cli.seams import minding_seams
from patchlog.codec.options import Limits
from patchlog.comparison import first_difference, set_difference
from patchlog.formats import JELLY, NQUADS, RDF_FORMATS, choose_format
from patchlog.inspection import Detail
from patchlog.layouts import ReadLayout, decoder_for, told_apart
from patchlog.model import RdfFrame, Statement
from patchlog.pipes import drain

__all__ = ["inspect", "validate"]


@click.command("inspect", short_help="Count what is in Jelly-RDF.")
@input_file
@output
@inspection
@reading_options
@common
def inspect(
    session: Session,
    *,
    path: str,
    to: str,
    per_frame: bool,
    detail: Detail | None,
    sizes: bool,
    strict: bool,
    limits: Limits,
) -> None:
    """Print the options of a Jelly-RDF stream, and how many rows of each kind it has, as YAML.

    Rows are counted as they stand in the bytes. A stream that breaks the rules can be looked at, as long as its
    frames are protobuf messages that begin with options.
    """
    from patchlog.cli.reports import Report, inspect_stream

    inspect_stream(path, session, JELLY, Report(per_frame, detail, sizes), to=to, limits=limits, strict=strict)


@click.command("validate", short_help="Check that Jelly-RDF keeps the rules.")
@input_file
@click.option(
    "--compare-to-rdf-file", type=FILE, metavar="FILE", help="An RDF file that has to hold the same statements."
)
@format_option("--compare-to-format", RDF_FORMATS, "Its format, where its name does not say it.")
@click.option("--compare-ordered", is_flag=True, help="Compare in order; without, the statements are compared as sets.")
@frame_range("--compare-frame-indices", "The frames to compare")
@click.option("--options-file", type=FILE, metavar="FILE", help="A Jelly-RDF file that has to have the same options.")
@delimiting
@concatenated_input
@read_layout()
@reading_options
@common
def validate(
    session: Session,
    *,
    path: str,
    compare_to_rdf_file: str | None,
    compare_to_format: str | None,
    compare_ordered: bool,
    compare_frame_indices: FrameRange | None,
    options_file: str | None,
    delimited: Delimiting,
    concatenated: bool,
    read_layout: ReadLayout,
    strict: bool,
    limits: Limits,
) -> None:
    """Read Jelly-RDF to its end and check every rule; and, where asked for, its options and statements."""
    compare_to = compare_to_rdf_file and choose_format(
        compare_to_format,
        file_name(compare_to_rdf_file),
        RDF_FORMATS,
        default=NQUADS if compare_to_rdf_file == STANDARD else None,
    )
    seen = _Seen()
    with minding_seams(path, session, JELLY, concatenated=concatenated) as seams, about(path, JELLY):
        layout, chunks = told_apart(seams.watch(reading(path, session)), read_layout)
        decoder = decoder_for(layout, limits=limits, strict=strict, concatenated=concatenated)
        frames = seen.count(drain(decoder, chunks))
        if not compare_to_rdf_file or not compare_to:
            deque(frames, maxlen=0)
        else:
            source = source_of(compare_to_rdf_file, session)
            expected = naming(compare_to_rdf_file, rdf.read(source, compare_to.name))
            compare = first_difference if compare_ordered else set_difference
            difference = compare(expected, _statements(frames, compare_frame_indices))
            if difference is not None:
                raise CheckFailed(f"the statements are not those of {label(compare_to_rdf_file)}: {difference}")
        check_stream(
            decoder,
            delimited=delimited,
            options_file=options_file,
            read_options=rdf.read_options,
            read_as=JELLY,
            session=session,
        )
    if not session.is_quiet:
        click.echo(
            f"{label(path)} is valid: {counted(seen.statements, 'statement')} in {counted(seen.frames, 'frame')}"
        )


@dataclass(slots=True)
class _Seen:
    """How much a stream has, counted while it goes by."""

    frames: int = 0
    statements: int = 0

    def count(self, frames: Iterable[RdfFrame]) -> Iterator[RdfFrame]:
        for frame in frames:
            self.frames += 1
            self.statements += len(frame.statements)
            yield frame


def _statements(frames: Iterable[RdfFrame], compared: FrameRange | None) -> Iterator[Statement]:
    first, last = compared or (0, None)
    for frame in frames:
        if first <= frame.index and (last is None or frame.index <= last):
            yield from frame.statements
