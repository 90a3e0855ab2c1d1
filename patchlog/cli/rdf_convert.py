"""`patchlog rdf to-jelly`, `from-jelly` and `transcode`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import click

from patchlog import rdf
from patchlog.cli.files import STANDARD, file_name, reading, source_of, writing
from patchlog.cli.options import (
    FILE,
    NO_LIMITS,
    RDF_OPTIONS,
    FrameRange,
    common,
    concatenated_input,
    format_option,
    frame_range,
    framing,
    input_file,
    input_files,
    lifting_limits,
    output,
    read_layout,
    reading_options,
    stream_options,
    written_layout,
)
from patchlog.cli.outcome import Session, about
from patchlog.cli.seams import minding_seams
from patchlog.cli.transcoding import enough_for_all_rdf, look_ahead, text_converter
from patchlog.codec.options import Limits, LogicalType, PhysicalType, RdfOptions
from patchlog.engine import Converter
from patchlog.errors import UsageError
from patchlog.formats import JELLY, JELLY_TEXT, NQUADS, NTRIPLES, RDF_FORMATS, Format, choose_format
from patchlog.layouts import Layout, ReadLayout, decoder_for, encoder_for, in_final_layout, told_apart
from patchlog.model import RdfFrame
from patchlog.pipes import drain, first_options, send
from patchlog.syntaxes import read_syntax, write_syntax

__all__ = ["from_jelly", "to_jelly", "transcode"]

TEXT_FORMATS: Final = tuple(one for one in RDF_FORMATS if one is not JELLY)
DEFAULT_ROWS: Final = 256
NAMESPACES_VERSION: Final = 2


@click.command("to-jelly", short_help="Write RDF as Jelly-RDF.")
@input_files
@output
@format_option("--in-format", TEXT_FORMATS, "The format of the input, where its name does not say it.")
@click.option("--base", metavar="IRI", help="What relative IRIs in Turtle, TriG, RDF/XML and JSON-LD are relative to.")
@click.option(
    "--options-from",
    type=FILE,
    metavar="FILE",
    help="A Jelly-RDF file whose options are taken, if --opt.… says no other.",
)
@stream_options(RDF_OPTIONS)
@framing(str(DEFAULT_ROWS))
@click.option("--frame-per-input", is_flag=True, help="Write each input file as one frame.")
@click.option("--enable-namespace-declarations", is_flag=True, help="Keep the prefixes that the input declares.")
@written_layout
@lifting_limits
@common
def to_jelly(
    session: Session,
    *,
    paths: Sequence[str],
    to: str,
    in_format: str | None,
    base: str | None,
    options_from: str | None,
    chosen: Mapping[str, Any],
    rows_per_frame: int | None,
    output_delimited: bool,
    frame_per_input: bool,
    enable_namespace_declarations: bool,
    layout: Layout,
    limits: Limits,
) -> None:
    """Write RDF as Jelly-RDF.

    Several files become one stream. N-Quads and N-Triples are read by patchlog itself, whatever they hold; Turtle,
    TriG, RDF/XML and JSON-LD through pyoxigraph or rdflib; jelly-text is put back into bytes as it stands.
    """
    if frame_per_input and rows_per_frame is not None:
        raise click.UsageError("--rows-per-frame does not go with --frame-per-input: a frame holds a whole file")
    choose_format(None, file_name(to), (JELLY,), default=JELLY)
    paths = paths or [STANDARD]
    formats = [choose_format(in_format, file_name(path), TEXT_FORMATS, default=NQUADS) for path in paths]
    inputs = list(zip(paths, formats, strict=True))
    if JELLY_TEXT in formats:
        _assemble(session, inputs, to, delimited=output_delimited)
        return
    options = _output_options(session, formats, options_from, chosen, grouped=frame_per_input)
    options.check_writable()
    if rows_per_frame is None:
        rows_per_frame = 0 if frame_per_input else DEFAULT_ROWS
    with writing(to, session, is_text=False) as write:
        if layout == "final" and all(one.source for one in formats):
            converter = text_converter(
                "nquads",
                "jelly",
                limits=limits,
                rdf_options=options,
                rows_per_frame=rows_per_frame,
                output_delimited=output_delimited,
            )
            for path in paths:
                with about(path):
                    send(converter, reading(path, session), write)
                if frame_per_input:
                    converter.end_frame()
            write(converter.finish())
        else:
            encoder = encoder_for(
                layout,
                options,
                rows_per_frame=rows_per_frame,
                delimited=output_delimited,
                namespace_declarations=enable_namespace_declarations,
            )
            for path, syntax in inputs:
                with about(path):
                    rdf.encode_frames(encoder, read_syntax(reading(path, session), syntax, base=base), write)
                if frame_per_input:
                    encoder.end_frame()
            write(encoder.finish())


def _output_options(
    session: Session,
    formats: Iterable[Format],
    options_from: str | None,
    chosen: Mapping[str, Any],
    *,
    grouped: bool,
) -> RdfOptions:
    """The options that were chosen, else those of the file, else what suits the formats of the input."""
    if options_from is not None:
        with about(options_from, JELLY):
            known = rdf.read_options(source_of(options_from, session), limits=NO_LIMITS, strict=False)
        return replace(known, version=known.version or 1, **chosen)
    has_graphs = any(one.holds_graphs for one in formats)
    physical_type = chosen.get("physical_type", PhysicalType.QUADS if has_graphs else PhysicalType.TRIPLES)
    if physical_type is PhysicalType.TRIPLES:
        logical_type = LogicalType.GRAPHS if grouped else LogicalType.FLAT_TRIPLES
    else:
        logical_type = LogicalType.DATASETS if grouped else LogicalType.FLAT_QUADS
    suitable = RdfOptions(
        physical_type=physical_type,
        logical_type=logical_type,
        # A stream has to say it before it has seen its statements. Only these two formats can hold them.
        generalized_statements=all(one in (NQUADS, NTRIPLES) for one in formats),
        rdf_star=True,
    )
    return replace(suitable, **chosen)


def _assemble(session: Session, inputs: Iterable[tuple[str, Format]], to: str, *, delimited: bool) -> None:
    from patchlog.cli import jelly_text

    if any(syntax is not JELLY_TEXT for _, syntax in inputs):
        raise UsageError("jelly-text is put back into bytes as it stands; it cannot be mixed with other formats")
    with writing(to, session, is_text=False) as write:
        for path, _ in inputs:
            with about(path):
                jelly_text.assemble(reading(path, session), jelly_text.RDF, write, delimited=delimited)


@click.command("from-jelly", short_help="Write Jelly-RDF as another format.")
@input_file
@output
@format_option(
    "--out-format",
    TEXT_FORMATS,
    "The format of the output: nq (the default), nt, ttl, trig, rdfxml, jsonld or jelly-text.",
)
@frame_range("--take-frames", "The frames to write")
@click.option("--merge-graphs", is_flag=True, help="Leave out the names of graphs, and write triples.")
@concatenated_input
@read_layout()
@reading_options
@common
def from_jelly(
    session: Session,
    *,
    path: str,
    to: str,
    out_format: str | None,
    take_frames: FrameRange | None,
    merge_graphs: bool,
    concatenated: bool,
    read_layout: ReadLayout,
    strict: bool,
    limits: Limits,
) -> None:
    """Write Jelly-RDF as another format.

    All frames become one document. jelly-text shows the frames as they stand in the bytes.
    """
    chosen = choose_format(out_format, file_name(to), TEXT_FORMATS, default=NQUADS)
    with (
        writing(to, session, is_text=True) as write,
        minding_seams(path, session, JELLY, concatenated=concatenated or chosen is JELLY_TEXT) as seams,
        about(path, JELLY),
    ):
        layout, chunks = told_apart(seams.watch(reading(path, session)), read_layout)
        if chosen is JELLY_TEXT:
            from patchlog.cli import jelly_text

            jelly_text.dump(
                in_final_layout(chunks), jelly_text.RDF, write, frames=take_frames, limits=limits, strict=strict
            )
        elif chosen.sink is not None and layout == "final" and not merge_graphs:
            converter = Converter(
                "jelly", chosen.sink, limits=limits, strict=strict, concatenated=concatenated, frames=take_frames
            )
            send(converter, chunks, write)
            write(converter.finish())
        else:
            frames = drain(decoder_for(layout, limits=limits, strict=strict, concatenated=concatenated), chunks)
            write_syntax(write, _picked(frames, take_frames, merge_graphs=merge_graphs), chosen)


def _picked(frames: Iterable[RdfFrame], taken: FrameRange | None, *, merge_graphs: bool) -> Iterator[RdfFrame]:
    first, last = taken or (0, None)
    for frame in frames:
        if frame.index < first or (last is not None and frame.index > last):
            continue
        if merge_graphs:
            frame.statements = [statement[:3] for statement in frame.statements]
        yield frame


@click.command("transcode", short_help="Write Jelly-RDF as Jelly-RDF with other options.")
@input_files
@output
@stream_options(RDF_OPTIONS)
@framing("as in the input")
@read_layout("--in-wire")
@written_layout
@concatenated_input
@reading_options
@common
def transcode(
    session: Session,
    *,
    paths: Sequence[str],
    to: str,
    chosen: Mapping[str, Any],
    rows_per_frame: int | None,
    output_delimited: bool,
    read_layout: ReadLayout,
    layout: Layout,
    concatenated: bool,
    strict: bool,
    limits: Limits,
) -> None:
    """Write Jelly-RDF as Jelly-RDF with other options, or several files as one stream.

    The output has the types of the inputs where they agree, else those of quads, and tables and features that are
    enough for all of them. Frames stay as they are, unless --rows-per-frame says how large they are to be. A file that
    is several files, concatenated, needs --concatenated.
    """

    def probe(chunks: Iterable[bytes]) -> tuple[Layout, RdfOptions]:
        found, chunks = told_apart(chunks, read_layout)
        return found, first_options(decoder_for(found, limits=limits, strict=strict), chunks)

    choose_format(None, file_name(to), (JELLY,), default=JELLY)
    inputs = [(path, *look_ahead(path, session, JELLY, probe)) for path in paths or [STANDARD]]
    known = [its for _, (_, its), _ in inputs]
    options = enough_for_all_rdf(known, chosen)
    options.check_writable()
    declares_namespaces = layout == "final" and any(its.version >= NAMESPACES_VERSION for its in known)
    with writing(to, session, is_text=False) as write:
        if layout == "final" and all(found == "final" for _, (found, _), _ in inputs):
            converter = Converter(
                "jelly",
                "jelly",
                limits=limits,
                strict=strict,
                concatenated=concatenated,
                rdf_options=options,
                rows_per_frame=rows_per_frame or 0,
                keep_frames=rows_per_frame is None,
                output_delimited=output_delimited,
                namespace_declarations=declares_namespaces,
            )
            for path, _, chunks in inputs:
                with minding_seams(path, session, JELLY, concatenated=concatenated) as seams, about(path, JELLY):
                    send(converter, seams.watch(chunks), write)
            write(converter.finish())
        else:
            encoder = encoder_for(
                layout,
                options,
                rows_per_frame=rows_per_frame or 0,
                delimited=output_delimited,
                namespace_declarations=declares_namespaces,
            )
            for path, (found, _), chunks in inputs:
                with minding_seams(path, session, JELLY, concatenated=concatenated) as seams, about(path, JELLY):
                    decoder = decoder_for(found, limits=limits, strict=strict, concatenated=concatenated)
                    frames = drain(decoder, seams.watch(chunks))
                    rdf.encode_frames(encoder, frames, write, keep_frames=rows_per_frame is None)
            write(encoder.finish())
