"""Jelly-Patch and RDF Patch: operations from streams, streams from operations, and what patches do to datasets.

Sources and sinks are those of `patchlog.rdf`; without a name to guess from, bytes are Jelly-Patch. Reading and
writing work as a stream. Effects, and what is made of them, hold the changed quads in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from patchlog import effect as effects
from patchlog.arrow import ArrowStream, write_arrow
from patchlog.codec.faces import OperationDecoderFace, OperationEncoderFace
from patchlog.codec.options import CANONICAL_PATCH, Limits, PatchOptions, StatementType, StreamType
from patchlog.effect import Effect, NamespaceKey, effect, squash
from patchlog.engine import (
    ArrowDecoder,
    ArrowEncoder,
    CanonicalPatchEncoder,
    Converter,
    PatchDecoder,
    PatchEncoder,
    RdfPatchReader,
    RdfPatchWriter,
)
from patchlog.formats import JELLY_PATCH, JELLY_PATCH_TEXT, PATCH_FORMATS, RDF_PATCH, choose_format_of_stream
from patchlog.model import (
    Add,
    Delete,
    Header,
    NamespaceAdd,
    NamespaceDelete,
    Operation,
    Punctuation,
    Statement,
    Term,
    TransactionAbort,
    TransactionCommit,
    TransactionStart,
    as_quad,
)
from patchlog.pipes import drain, first_options, send
from patchlog.streams import Sink, Source, chunks_of, writing_to
from patchlog.text.lines import LineReader

__all__ = [
    "Add",
    "Delete",
    "Effect",
    "Header",
    "Limits",
    "NamespaceAdd",
    "NamespaceDelete",
    "NamespaceKey",
    "Operation",
    "PatchOptions",
    "Punctuation",
    "StatementType",
    "StreamType",
    "TransactionAbort",
    "TransactionCommit",
    "TransactionStart",
    "apply",
    "canonical",
    "convert",
    "diff",
    "effect",
    "from_arrow",
    "invert",
    "read",
    "read_options",
    "squash",
    "to_arrow",
    "write",
]

WRITABLE_FORMATS: Final = (RDF_PATCH, JELLY_PATCH)

_DEFAULT_LIMITS: Final = Limits()


def read(
    source: Source,
    format: str | None = None,
    *,
    limits: Limits = _DEFAULT_LIMITS,
    strict: bool = True,
    concatenated: bool = False,
    delimited: bool | None = None,
) -> Iterator[Operation]:
    """Yield the operations of Jelly-Patch or RDF Patch.

    `strict=False` reads on where a rule is broken that does not stand in the way. The other options are about
    Jelly-Patch, and mean what they mean in `patchlog.rdf.read_frames`.
    """
    chosen = choose_format_of_stream(format, source, PATCH_FORMATS, JELLY_PATCH)
    chunks = chunks_of(source)
    if chosen is RDF_PATCH:
        reader: OperationDecoderFace = RdfPatchReader(strict=strict)
        return drain(reader, chunks)
    if chosen is JELLY_PATCH_TEXT:
        from patchlog.frames import frames_from_text
        from patchlog.wire import RdfPatchFrame

        chunks = frames_from_text(drain(LineReader(), chunks), RdfPatchFrame)
    return drain(PatchDecoder(limits=limits, strict=strict, concatenated=concatenated, delimited=delimited), chunks)


def read_options(source: Source, *, limits: Limits = _DEFAULT_LIMITS, strict: bool = True) -> PatchOptions:
    """The options of a Jelly-Patch stream. Reads no further than the frame that has them."""
    return first_options(PatchDecoder(limits=limits, strict=strict), chunks_of(source))


def write(
    sink: Sink,
    operations: Iterable[Operation],
    format: str | None = None,
    *,
    options: PatchOptions | None = None,
    rows_per_frame: int = 512,
    delimited: bool = True,
) -> None:
    """Write operations as Jelly-Patch or RDF Patch; each patch goes out as soon as its punctuation came.

    Without options, Jelly-Patch is a punctuated stream of quads without RDF-star and generalized statements.
    """
    chosen = choose_format_of_stream(format, sink, WRITABLE_FORMATS, JELLY_PATCH)
    encoder: OperationEncoderFace = (
        RdfPatchWriter()
        if chosen is RDF_PATCH
        else PatchEncoder(options or PatchOptions(), rows_per_frame=rows_per_frame, delimited=delimited)
    )
    with writing_to(sink) as write_bytes:
        for index, operation in enumerate(operations):
            encoder.accept(operation)
            if isinstance(operation, Punctuation) or index % 1024 == 0:
                write_bytes(encoder.take())
        write_bytes(encoder.finish())


def canonical(
    operations: Iterable[Operation],
    *,
    rdf_star: bool = CANONICAL_PATCH.rdf_star,
    generalized_statements: bool = CANONICAL_PATCH.generalized_statements,
) -> bytes:
    """The canonical Jelly-Patch bytes of patches.

    The same operations are the same bytes, and the bytes of any patches can be laid end to end.
    """
    encoder = CanonicalPatchEncoder(rdf_star=rdf_star, generalized_statements=generalized_statements)
    for operation in operations:
        encoder.accept(operation)
    return encoder.finish()


def convert(
    source: Source,
    sink: Sink,
    source_format: str | None = None,
    sink_format: str | None = None,
    *,
    options: PatchOptions | None = None,
    rows_per_frame: int = 512,
    limits: Limits = _DEFAULT_LIMITS,
    strict: bool = True,
    concatenated: bool = False,
    delimited: bool | None = None,
) -> None:
    """Turn Jelly-Patch into RDF Patch, the other way round, or Jelly-Patch into Jelly-Patch with other options."""
    read_as = choose_format_of_stream(source_format, source, WRITABLE_FORMATS, JELLY_PATCH)
    written_as = choose_format_of_stream(sink_format, sink, WRITABLE_FORMATS, JELLY_PATCH)
    assert read_as.source is not None
    assert written_as.sink is not None
    converter = Converter(
        read_as.source,
        written_as.sink,
        limits=limits,
        strict=strict,
        concatenated=concatenated,
        delimited=delimited,
        patch_options=options,
        rows_per_frame=rows_per_frame,
    )
    with writing_to(sink) as write_bytes:
        send(converter, chunks_of(source), write_bytes)
        write_bytes(converter.finish())


def apply(operations: Iterable[Operation], statements: Iterable[Statement]) -> Iterator[Statement]:
    """Yield the statements of a dataset after the patches: those that stay, then those that were added.

    The dataset goes by as a stream; only the effect of the patches is held in memory.
    """
    change = effect(operations)
    changed = change.adds | change.deletes
    yield from (statement for statement in statements if as_quad(statement) not in changed)
    yield from sorted(change.adds)


def diff(
    before: Iterable[Statement],
    after: Iterable[Statement],
    namespaces_before: Mapping[NamespaceKey, Term] | None = None,
    namespaces_after: Mapping[NamespaceKey, Term] | None = None,
) -> list[Operation]:
    """The patch that makes one dataset of another. Blank nodes are the same where their labels are."""
    return effects.diff(set(map(as_quad, before)), set(map(as_quad, after)), namespaces_before, namespaces_after)


def invert(
    operations: Iterable[Operation],
    statements: Iterable[Statement],
    namespaces: Mapping[NamespaceKey, Term] | None = None,
) -> list[Operation]:
    """The patch that undoes the operations on the dataset that they are for, given as it was before them.

    It takes back what they changed there: what was there already and is added stays. The dataset goes by as a stream.
    """
    change = effect(operations)
    changed = change.adds | change.deletes
    before = {quad for statement in statements if (quad := as_quad(statement)) in changed}
    return effects.invert(change, before, namespaces or {})


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
    """The operations as Arrow columns: operation, name, subject, predicate, object, graph.

    `operation` is the code of RDF Patch: A D PA PD H TX TC TA Z. The key of a header stands in `name` and its value
    in `object`, as do the name and the IRI of a namespace.
    """
    chosen = choose_format_of_stream(format, source, WRITABLE_FORMATS, JELLY_PATCH)
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
    options: PatchOptions | None = None,
    rows_per_frame: int = 512,
    delimited: bool = True,
) -> None:
    """Write Arrow data with the columns of `to_arrow` as Jelly-Patch or RDF Patch."""
    chosen = choose_format_of_stream(format, sink, WRITABLE_FORMATS, JELLY_PATCH)
    assert chosen.sink is not None
    encoder = ArrowEncoder(chosen.sink, patch_options=options, rows_per_frame=rows_per_frame, delimited=delimited)
    with writing_to(sink) as write_bytes:
        write_arrow(write_bytes, encoder, data)
