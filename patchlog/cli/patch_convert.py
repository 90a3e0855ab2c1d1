"""`patchlog patch to-jelly`, `from-jelly` and `transcode`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import click

from patchlog import patch
from patchlog.cli.files import STANDARD, file_name, reading, source_of, writing
from patchlog.cli.options import (
    FILE,
    NO_LIMITS,
    PATCH_OPTIONS,
    FrameRange,
    common,
    concatenated_input,
    format_option,
    frame_range,
    framing,
    input_file,
    input_files,
    output,
    reading_options,
    stream_options,
)
from patchlog.cli.outcome import Session, about
from patchlog.cli.seams import minding_seams
from patchlog.cli.transcoding import enough_for_all_patches, look_ahead, text_converter
from patchlog.codec.faces import ConverterFace, SourceFormat
from patchlog.codec.options import CANONICAL_PATCH, Limits, PatchOptions
from patchlog.engine import Converter
from patchlog.errors import UsageError
from patchlog.formats import JELLY_PATCH, JELLY_PATCH_TEXT, NQUADS, NTRIPLES, RDF_PATCH, choose_format
from patchlog.pipes import send

__all__ = ["from_jelly", "to_jelly", "transcode"]

_INPUT_FORMATS: Final = (RDF_PATCH, JELLY_PATCH_TEXT, NQUADS, NTRIPLES)
_OUTPUT_FORMATS: Final = (RDF_PATCH, JELLY_PATCH_TEXT)
_DEFAULT_ROWS: Final = 512

_canonical = click.option(
    "--canonical",
    is_flag=True,
    help="Write canonical patches: the same operations are the same bytes, and files can be laid end to end.",
)


@click.command("to-jelly", short_help="Write RDF Patch as Jelly-Patch.")
@input_files
@output
@format_option("--in-format", _INPUT_FORMATS, "rdf-patch (the default), nq, nt or jelly-text.")
@click.option(
    "--options-from",
    type=FILE,
    metavar="FILE",
    help="A Jelly-Patch file whose options are taken, if no others are given.",
)
@_canonical
@stream_options(PATCH_OPTIONS)
@framing(str(_DEFAULT_ROWS))
@reading_options
@common
def to_jelly(
    session: Session,
    *,
    paths: Sequence[str],
    to: str,
    in_format: str | None,
    options_from: str | None,
    canonical: bool,
    chosen: Mapping[str, Any],
    rows_per_frame: int | None,
    output_delimited: bool,
    strict: bool,
    limits: Limits,
) -> None:
    """Write RDF Patch as Jelly-Patch.

    Several files become one stream, in which a patch ends with its file. Statements of N-Quads and N-Triples become
    additions. jelly-text is put back into bytes as it stands.
    """
    choose_format(None, file_name(to), (JELLY_PATCH,), default=JELLY_PATCH)
    paths = paths or [STANDARD]
    formats = {choose_format(in_format, file_name(path), _INPUT_FORMATS, default=RDF_PATCH) for path in paths}
    if len({one.source for one in formats}) > 1:
        raise UsageError("patches, statements and jelly-text cannot be mixed in one call")
    source = formats.pop().source
    with writing(to, session, is_text=False) as write:
        if source is None:
            from patchlog.cli import jelly_text

            for path in paths:
                with about(path):
                    jelly_text.assemble(reading(path, session), jelly_text.PATCH, write, delimited=output_delimited)
            return
        options = replace(_suitable_options(session, options_from), **chosen)
        converter = _converter(
            source,
            options,
            chosen,
            canonical=canonical,
            rows_per_frame=rows_per_frame,
            output_delimited=output_delimited,
            concatenated=False,
            strict=strict,
            limits=limits,
        )
        for path in paths:
            with about(path):
                send(converter, reading(path, session), write)
        write(converter.finish())


def _suitable_options(session: Session, options_from: str | None) -> PatchOptions:
    if options_from is None:
        # A stream has to say what it may hold before it has seen it: patches may hold anything.
        return CANONICAL_PATCH
    with about(options_from, JELLY_PATCH):
        return patch.read_options(source_of(options_from, session), limits=NO_LIMITS, strict=False)


def _converter(
    source: SourceFormat,
    options: PatchOptions,
    chosen: Mapping[str, Any],
    *,
    canonical: bool,
    rows_per_frame: int | None,
    output_delimited: bool,
    concatenated: bool,
    strict: bool,
    limits: Limits,
) -> ConverterFace:
    if canonical:
        given = chosen.keys() - {"rdf_star", "generalized_statements"}
        if given or rows_per_frame is not None or not output_delimited:
            raise click.UsageError("--canonical fixes all options but --opt.rdf-star and --opt.generalized-statements")
    return (Converter if source == "jelly-patch" else text_converter)(
        source,
        "canonical-patch" if canonical else "jelly-patch",
        limits=limits,
        strict=strict,
        concatenated=concatenated,
        patch_options=options,
        rows_per_frame=rows_per_frame,
        output_delimited=output_delimited,
    )


@click.command("from-jelly", short_help="Write Jelly-Patch as RDF Patch.")
@input_file
@output
@format_option("--out-format", _OUTPUT_FORMATS, "rdf-patch (the default) or jelly-text.")
@frame_range("--take-frames", "The frames to write, as jelly-text")
@concatenated_input
@reading_options
@common
def from_jelly(
    session: Session,
    *,
    path: str,
    to: str,
    out_format: str | None,
    take_frames: FrameRange | None,
    concatenated: bool,
    strict: bool,
    limits: Limits,
) -> None:
    """Write Jelly-Patch as RDF Patch text, or show its frames as they stand in the bytes (jelly-text)."""
    chosen = choose_format(out_format, file_name(to), _OUTPUT_FORMATS, default=RDF_PATCH)
    if take_frames is not None and chosen is RDF_PATCH:
        raise click.UsageError("--take-frames goes with --out-format jelly-text: a part of a patch is not a patch")
    with (
        writing(to, session, is_text=True) as write,
        minding_seams(path, session, JELLY_PATCH, concatenated=concatenated or chosen is JELLY_PATCH_TEXT) as seams,
        about(path, JELLY_PATCH),
    ):
        chunks = seams.watch(reading(path, session))
        if chosen is JELLY_PATCH_TEXT:
            from patchlog.cli import jelly_text

            jelly_text.dump(chunks, jelly_text.PATCH, write, frames=take_frames, limits=limits, strict=strict)
            return
        converter = Converter("jelly-patch", "rdf-patch", limits=limits, strict=strict, concatenated=concatenated)
        send(converter, chunks, write)
        write(converter.finish())


@click.command("transcode", short_help="Write Jelly-Patch as Jelly-Patch with other options.")
@input_files
@output
@_canonical
@stream_options(PATCH_OPTIONS)
@framing(str(_DEFAULT_ROWS))
@concatenated_input
@reading_options
@common
def transcode(
    session: Session,
    *,
    paths: Sequence[str],
    to: str,
    canonical: bool,
    chosen: Mapping[str, Any],
    rows_per_frame: int | None,
    output_delimited: bool,
    concatenated: bool,
    strict: bool,
    limits: Limits,
) -> None:
    """Write Jelly-Patch as Jelly-Patch with other options, or several files as one stream.

    The output has the types of the inputs where they agree, and tables and features that are enough for all of them.
    A file that is several files, concatenated, needs --concatenated, unless they are canonical.
    """
    choose_format(None, file_name(to), (JELLY_PATCH,), default=JELLY_PATCH)
    read_options = partial(patch.read_options, limits=limits, strict=strict)
    inputs = [(path, *look_ahead(path, session, JELLY_PATCH, read_options)) for path in paths or [STANDARD]]
    converter = _converter(
        "jelly-patch",
        enough_for_all_patches([options for _, options, _ in inputs], chosen, concatenated=concatenated),
        chosen,
        canonical=canonical,
        rows_per_frame=rows_per_frame,
        output_delimited=output_delimited,
        concatenated=concatenated,
        strict=strict,
        limits=limits,
    )
    with writing(to, session, is_text=False) as write:
        for path, _, chunks in inputs:
            with (
                minding_seams(path, session, JELLY_PATCH, concatenated=concatenated) as seams,
                about(path, JELLY_PATCH),
            ):
                send(converter, seams.watch(chunks), write)
        write(converter.finish())
