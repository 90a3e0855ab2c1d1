"""Jelly-RDF, N-Quads, N-Triples, Turtle and the other RDF formats: statements from streams, streams from statements.

A source is a path, bytes, a binary file, a socket or an iterable of bytes; a sink is a path, a binary file or a socket
(`patchlog.streams`). Where no format is named, the name of the file says it, and without a name it is Jelly-RDF. A
statement is a tuple of three or four terms, each its canonical text (`patchlog.model`). Everything is done as a stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

from patchlog.arrow import ArrowStream, write_arrow
from patchlog.codec.faces import RdfEncoderFace
from patchlog.codec.options import Limits, LogicalType, PhysicalType, RdfOptions
from patchlog.engine import ArrowDecoder, ArrowEncoder, Converter, RdfEncoder
from patchlog.formats import JELLY, JELLY_TEXT, NQUADS, NTRIPLES, RDF_FORMATS, choose_format_of_stream
from patchlog.layouts import ReadLayout, decoder_for, told_apart
from patchlog.model import RdfFrame, Statement, Term, is_statement, not_a_statement
from patchlog.pipes import batches, drain, first_options, send
from patchlog.streams import Sink, Source, Write, chunks_of, writing_to
from patchlog.syntaxes import as_frames, read_syntax, write_syntax
from patchlog.text.lines import LineReader
from patchlog.text.terms import parse_term

__all__ = [
    "Limits",
    "LogicalType",
    "PhysicalType",
    "RdfFrame",
    "RdfOptions",
    "convert",
    "from_arrow",
    "from_rdflib",
    "read",
    "read_frames",
    "read_options",
    "to_arrow",
    "to_rdflib",
    "write",
    "write_frames",
]

WRITABLE_FORMATS: Final = tuple(one for one in RDF_FORMATS if one is not JELLY_TEXT)

_DEFAULT_LIMITS: Final = Limits()

_MAX_KNOWN_TERMS: Final = 1 << 16
_MAX_KNOWN_LENGTH: Final = 1024


def read(
    source: Source,
    format: str | None = None,
    *,
    base: str | None = None,
    limits: Limits = _DEFAULT_LIMITS,
    strict: bool = True,
    concatenated: bool = False,
    delimited: bool | None = None,
    layout: ReadLayout = "auto",
) -> Iterator[Statement]:
    """Yield the statements of a source of any RDF format. What the options mean is said at `read_frames`."""
    frames = read_frames(
        source,
        format,
        base=base,
        limits=limits,
        strict=strict,
        concatenated=concatenated,
        delimited=delimited,
        layout=layout,
    )
    return chain.from_iterable(frame.statements for frame in frames)


def read_frames(
    source: Source,
    format: str | None = None,
    *,
    base: str | None = None,
    limits: Limits = _DEFAULT_LIMITS,
    strict: bool = True,
    concatenated: bool = False,
    delimited: bool | None = None,
    layout: ReadLayout = "auto",
) -> Iterator[RdfFrame]:
    """Yield the frames of a Jelly-RDF stream: their statements, namespaces and metadata.

    `strict=False` reads on where a promise of the stream's options is broken. `concatenated` lets a frame that begins
    with options begin a new stream: without it, files with the same options that were concatenated are one stream,
    in which ids of the second count on from those of the first. `delimited` says whether frames have their lengths
    before them, where that is not to be guessed, and `layout` whether it is the one of the alpha releases, where that
    cannot be told without doubt.

    A format that has no frames comes in pieces of any size. There `base` resolves relative IRIs.
    """
    chosen = choose_format_of_stream(format, source, RDF_FORMATS, JELLY)
    chunks = chunks_of(source)
    if chosen is JELLY_TEXT:
        from patchlog.frames import frames_from_text
        from patchlog.wire import RdfStreamFrame

        chunks = frames_from_text(drain(LineReader(), chunks), RdfStreamFrame)
    if chosen in (JELLY, JELLY_TEXT):
        return _decoded(chunks, layout, limits=limits, strict=strict, concatenated=concatenated, delimited=delimited)
    return read_syntax(chunks, chosen, base=base)


def _decoded(chunks: Iterable[bytes], layout: ReadLayout, **settings: Any) -> Iterator[RdfFrame]:
    found, chunks = told_apart(chunks, layout)
    yield from drain(decoder_for(found, **settings), chunks)


def read_options(
    source: Source, *, limits: Limits = _DEFAULT_LIMITS, strict: bool = True, layout: ReadLayout = "auto"
) -> RdfOptions:
    """The options of a Jelly-RDF stream. Reads no further than the frame that has them."""
    found, chunks = told_apart(chunks_of(source), layout)
    return first_options(decoder_for(found, limits=limits, strict=strict), chunks)


def write(
    sink: Sink,
    statements: Iterable[Statement],
    format: str | None = None,
    *,
    options: RdfOptions | None = None,
    rows_per_frame: int = 256,
    delimited: bool = True,
    namespaces: Mapping[str, Term] | None = None,
) -> None:
    """Write statements in any RDF format; Jelly-RDF is a flat stream.

    `namespaces` (names to IRI terms) are declared where the format can. What the options mean is said at
    `write_frames`.
    """
    write_frames(
        sink,
        chain([RdfFrame(0, [], list((namespaces or {}).items()))], as_frames(statements)),
        format,
        options=options,
        rows_per_frame=rows_per_frame,
        delimited=delimited,
        namespace_declarations=bool(namespaces),
    )


def write_frames(
    sink: Sink,
    frames: Iterable[RdfFrame | Iterable[Statement]],
    format: str | None = None,
    *,
    options: RdfOptions | None = None,
    rows_per_frame: int | None = None,
    delimited: bool = True,
    namespace_declarations: bool = False,
) -> None:
    """Write frames, each of which goes out as soon as it is complete. In a format without frames they are one document.

    Without options it is a grouped stream of triples or quads, as the first statement is one, without RDF-star and
    generalized statements. With `rows_per_frame` it is a flat stream instead, and its frames are cut to that size. Not
    `delimited`, it has one frame without a length before it.
    """
    chosen = choose_format_of_stream(format, sink, WRITABLE_FORMATS, JELLY)
    pieces: Iterator[RdfFrame] = (_frame(index, frame) for index, frame in enumerate(frames))
    with writing_to(sink) as write_bytes:
        if chosen is not JELLY:
            write_syntax(write_bytes, _checked(pieces), chosen)
            return
        if options is None:
            options, pieces = suitable_options(pieces, is_grouped=rows_per_frame is None)
        encoder = RdfEncoder(
            options,
            rows_per_frame=rows_per_frame or 0,
            delimited=delimited,
            namespace_declarations=namespace_declarations,
        )
        encode_frames(encoder, pieces, write_bytes, keep_frames=rows_per_frame is None)
        write_bytes(encoder.finish())


def encode_frames(
    encoder: RdfEncoderFace, frames: Iterable[RdfFrame], write_bytes: Write, *, keep_frames: bool = False
) -> None:
    """Send frames through an encoder, and what becomes complete to `write_bytes`."""
    for frame in frames:
        for name, iri in frame.namespaces:
            encoder.namespace(name, iri)
        encoder.statements(frame.statements)
        if keep_frames:
            encoder.end_frame(frame.metadata)
        write_bytes(encoder.take())


def convert(
    source: Source,
    sink: Sink,
    source_format: str | None = None,
    sink_format: str | None = None,
    *,
    options: RdfOptions | None = None,
    rows_per_frame: int = 256,
    base: str | None = None,
    limits: Limits = _DEFAULT_LIMITS,
    strict: bool = True,
    concatenated: bool = False,
    delimited: bool | None = None,
    layout: ReadLayout = "auto",
) -> None:
    """Turn a source of one RDF format into another: the fastest way, as no statement becomes a Python object."""
    read_as = choose_format_of_stream(source_format, source, RDF_FORMATS, JELLY)
    written_as = choose_format_of_stream(sink_format, sink, WRITABLE_FORMATS, JELLY)
    found, chunks = told_apart(chunks_of(source), layout) if read_as is JELLY else ("final", chunks_of(source))
    if read_as.source is None or written_as.sink is None or found == "alpha":
        frames = read_frames(
            chunks,
            read_as.name,
            base=base,
            limits=limits,
            strict=strict,
            concatenated=concatenated,
            delimited=delimited,
            layout=found,
        )
        write_frames(sink, frames, written_as.name, options=options, rows_per_frame=rows_per_frame)
        return
    converter = Converter(
        read_as.source,
        written_as.sink,
        limits=limits,
        strict=strict,
        concatenated=concatenated,
        delimited=delimited,
        rdf_options=options,
        rows_per_frame=rows_per_frame,
    )
    with writing_to(sink) as write_bytes:
        send(converter, chunks, write_bytes)
        write_bytes(converter.finish())


def to_arrow(
    source: Source,
    format: str | None = None,
    *,
    batch_rows: int = 1 << 13,
    dictionary: bool = True,
    limits: Limits = _DEFAULT_LIMITS,
    strict: bool = True,
    concatenated: bool = False,
    delimited: bool | None = None,
) -> ArrowStream:
    """The statements of Jelly-RDF, N-Quads or N-Triples as Arrow columns: subject, predicate, object, graph.

    The columns hold strings, dictionary-encoded or plain; graph is null where the stream carries triples.
    """
    chosen = choose_format_of_stream(format, source, (JELLY, NQUADS, NTRIPLES), JELLY)
    assert chosen.source is not None
    decoder = ArrowDecoder(
        chosen.source,
        batch_rows=batch_rows,
        dictionary=dictionary,
        limits=limits,
        strict=strict,
        concatenated=concatenated,
        delimited=delimited,
    )
    return ArrowStream(decoder, chunks_of(source))


def from_arrow(
    sink: Sink,
    data: Any,
    format: str | None = None,
    *,
    options: RdfOptions | None = None,
    rows_per_frame: int = 256,
    delimited: bool = True,
) -> None:
    """Write Arrow data with the columns of `to_arrow` (graph may be missing) as Jelly-RDF, N-Quads or N-Triples.

    `data` is anything that offers the Arrow PyCapsule interface: a table or record batch of pyarrow, polars, DuckDB
    or pandas.
    """
    chosen = choose_format_of_stream(format, sink, (JELLY, NQUADS, NTRIPLES), JELLY)
    assert chosen.sink is not None
    encoder = ArrowEncoder(chosen.sink, rdf_options=options, rows_per_frame=rows_per_frame, delimited=delimited)
    with writing_to(sink) as write_bytes:
        write_arrow(write_bytes, encoder, data)


def to_rdflib(
    source: Source,
    format: str | None = None,
    *,
    limits: Limits = _DEFAULT_LIMITS,
    strict: bool = True,
    concatenated: bool = False,
    delimited: bool | None = None,
) -> Iterator[tuple[Any, ...]]:
    """Yield the statements as tuples of rdflib terms, made without rdflib's own slow constructors and without a graph.

    A quad in the default graph has `rdflib.graph.DATASET_DEFAULT_GRAPH_ID` as its fourth term.
    """
    from patchlog.rdflib_hook.implementation import RdflibDecoder
    from patchlog.rdflib_hook.terms import TermBuilder

    chosen = choose_format_of_stream(format, source, RDF_FORMATS, JELLY)
    match chosen.source:
        case "jelly" | "nquads" as codec:
            decoder = RdflibDecoder(codec, limits=limits, strict=strict, concatenated=concatenated, delimited=delimited)
            return drain(decoder, chunks_of(source))
    statements = read(source, chosen.name, limits=limits, strict=strict, concatenated=concatenated, delimited=delimited)
    builder = TermBuilder()
    return chain.from_iterable(map(builder.statements, batches(statements)))


def from_rdflib(
    sink: Sink,
    statements: Iterable[tuple[Any, ...]],
    format: str | None = None,
    *,
    options: RdfOptions | None = None,
    rows_per_frame: int = 256,
    delimited: bool = True,
) -> None:
    """Write tuples of rdflib terms, such as a graph or what a dataset's `quads()` yields. As `write` otherwise."""
    from patchlog.rdflib_hook.implementation import RdflibEncoder
    from patchlog.rdflib_hook.terms import TermFormatter

    chosen = choose_format_of_stream(format, sink, WRITABLE_FORMATS, JELLY)
    if chosen is not JELLY:
        write(sink, map(TermFormatter().statement, statements), chosen.name)
        return
    groups = batches(statements)
    first = next(groups, [])
    if options is None:
        options = _options(has_triples=bool(first) and len(first[0]) == 3, is_grouped=False)
    encoder = RdflibEncoder(options, rows_per_frame=rows_per_frame, delimited=delimited)
    with writing_to(sink) as write_bytes:
        for group in chain([first], groups):
            encoder.statements(group)
            write_bytes(encoder.take())
        write_bytes(encoder.finish())


def _frame(index: int, frame: RdfFrame | Iterable[Statement]) -> RdfFrame:
    return frame if isinstance(frame, RdfFrame) else RdfFrame(index, list(frame))


def _checked(frames: Iterable[RdfFrame]) -> Iterator[RdfFrame]:
    """Check the terms of frames, as an encoder of Jelly-RDF does: the writers of text trust them."""
    known: set[Term] = set()
    for frame in frames:
        for statement in frame.statements:
            if not is_statement(statement):
                raise not_a_statement(statement)
            for term in statement if statement[-1] else statement[:3]:
                if term not in known:
                    parse_term(term)
                    if len(term) <= _MAX_KNOWN_LENGTH:
                        known.add(term)
        if len(known) > _MAX_KNOWN_TERMS:
            known.clear()
        yield frame


def suitable_options(frames: Iterator[RdfFrame], *, is_grouped: bool) -> tuple[RdfOptions, Iterator[RdfFrame]]:
    """The options of a stream of triples or quads, as the first statement is one; and all of the frames."""
    seen = []
    for frame in frames:
        seen.append(frame)
        if frame.statements:
            break
    has_triples = bool(seen and seen[-1].statements) and len(seen[-1].statements[0]) == 3
    options = _options(has_triples=has_triples, is_grouped=is_grouped)
    return options, chain(seen, frames)


def _options(*, has_triples: bool, is_grouped: bool) -> RdfOptions:
    if has_triples:
        logical_type = LogicalType.GRAPHS if is_grouped else LogicalType.FLAT_TRIPLES
        return RdfOptions(physical_type=PhysicalType.TRIPLES, logical_type=logical_type)
    logical_type = LogicalType.DATASETS if is_grouped else LogicalType.FLAT_QUADS
    return RdfOptions(physical_type=PhysicalType.QUADS, logical_type=logical_type)
