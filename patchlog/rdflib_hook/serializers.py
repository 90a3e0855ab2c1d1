"""rdflib's serializers of Jelly-RDF, Jelly-Patch and RDF Patch. A graph or dataset becomes a patch that adds it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from inspect import signature
from io import BytesIO
from itertools import chain
from typing import IO, Any

from rdflib.graph import Graph
from rdflib.serializer import Serializer

from patchlog.codec.faces import OperationEncoderFace
from patchlog.codec.options import LogicalType, PatchOptions, PhysicalType, RdfOptions, StatementType, StreamType
from patchlog.engine import PatchEncoder, RdfPatchWriter
from patchlog.errors import UsageError
from patchlog.model import Operation, Punctuation
from patchlog.pipes import batches
from patchlog.rdflib_hook.contents import Declared, holds_graphs, namespaces_of, statements_of
from patchlog.rdflib_hook.implementation import RdflibEncoder
from patchlog.rdflib_hook.operations import operations_of

__all__ = ["JellyPatchSerializer", "JellySerializer", "RdfPatchSerializer"]


class JellySerializer(Serializer):
    """Write a graph or dataset as Jelly-RDF: `graph.serialize("x.jelly", format="jelly")`."""

    def serialize(  # type: ignore[override]
        self,
        stream: IO[bytes],
        base: str | None = None,  # noqa: ARG002 - IRIs are written whole
        encoding: str | None = None,
        *,
        options: RdfOptions | None = None,
        stream_name: str | None = None,
        rows_per_frame: int | None = None,
        delimited: bool = True,
        namespace_declarations: Declared = False,
    ) -> None:
        """Write to the stream.

        Without options a Graph is a flat stream of TRIPLES, a Dataset one of QUADS. A grouped logical type makes the
        whole a single frame. `namespace_declarations` writes the namespaces that a person has bound, or those in a
        mapping.
        """
        _refuse_text(stream, encoding)
        options = _rdf_options(self.store, options)
        if stream_name is not None:
            options = replace(options, stream_name=stream_name)
        if rows_per_frame is None:
            rows_per_frame = 0 if options.logical_type.is_grouped else 256
        namespaces = namespaces_of(self.store, namespace_declarations)
        encoder = RdflibEncoder(
            options, rows_per_frame=rows_per_frame, delimited=delimited, namespace_declarations=bool(namespaces)
        )
        for name, iri in namespaces.items():
            encoder.namespace(name, iri)
        for batch in batches(_statements(self.store, options.physical_type)):
            encoder.statements(batch)
            stream.write(encoder.take())
        stream.write(encoder.finish())


class JellyPatchSerializer(Serializer):
    """Write a graph or dataset as a Jelly-Patch that adds it: `dataset.serialize("x.jellyp", format="jelly-patch")`."""

    def serialize(
        self,
        stream: IO[bytes],
        base: str | None = None,  # noqa: ARG002 - IRIs are written whole
        encoding: str | None = None,
        *,
        options: PatchOptions | None = None,
        rows_per_frame: int = 512,
        delimited: bool = True,
        **contents: Any,
    ) -> None:
        """Write to the stream. `contents` are the keyword arguments of `operations_of`."""
        _refuse_unknown(contents, "options", "rows_per_frame", "delimited")
        _refuse_text(stream, encoding)
        options = _patch_options(self.store, options)
        encoder = PatchEncoder(options, rows_per_frame=rows_per_frame, delimited=delimited)
        operations = operations_of(self.store, **contents)
        end = () if options.stream_type == StreamType.FLAT else (Punctuation(),)
        _write(encoder, chain(operations, end), stream)


class RdfPatchSerializer(Serializer):
    """Write a graph or dataset as RDF Patch text that adds it: `dataset.serialize("x.rdfp", format="rdf-patch")`."""

    def serialize(
        self,
        stream: IO[bytes],
        base: str | None = None,  # noqa: ARG002 - IRIs are written whole
        encoding: str | None = None,
        **contents: Any,
    ) -> None:
        """Write to the stream. `contents` are the keyword arguments of `operations_of`."""
        _refuse_unknown(contents)
        if encoding is not None and encoding.lower().replace("-", "") != "utf8":
            raise UsageError(f"RDF Patch is written in UTF-8, not in {encoding}")
        _write(RdfPatchWriter(), operations_of(self.store, **contents), stream)


def _refuse_unknown(contents: Mapping[str, Any], *others: str) -> None:
    """Refuse keywords that neither `operations_of` nor the serializer (`others`) has."""
    known = [name for name, one in signature(operations_of).parameters.items() if one.kind is one.KEYWORD_ONLY]
    if unknown := contents.keys() - known:
        raise UsageError(f"there is no option {min(unknown)!r} here; there are {', '.join([*known, *others])}")


def _refuse_text(stream: IO[bytes], encoding: str | None) -> None:
    """Refuse what `serialize(format=…)` without destination and encoding asks for: a string.

    rdflib would fail to decode the bytes. It says "utf-8" then, which is all that there is to know it by.
    """
    if isinstance(stream, BytesIO) and encoding == "utf-8":
        raise UsageError("Jelly is not text: name a destination, or pass encoding='jelly' to get bytes")


def _rdf_options(graph: Graph, options: RdfOptions | None) -> RdfOptions:
    has_quads = holds_graphs(graph)
    if options is None:
        if has_quads:
            return RdfOptions(physical_type=PhysicalType.QUADS, logical_type=LogicalType.FLAT_QUADS)
        return RdfOptions(physical_type=PhysicalType.TRIPLES, logical_type=LogicalType.FLAT_TRIPLES)
    if not isinstance(options, RdfOptions):
        raise UsageError(
            f"options must be patchlog's RdfOptions, not {type(options).__module__}.{type(options).__qualname__}"
        )
    if has_quads and options.physical_type == PhysicalType.TRIPLES:
        raise UsageError(
            "a stream of TRIPLES cannot hold a dataset; use PhysicalType.QUADS or GRAPHS, or write a graph"
        )
    return options


def _patch_options(graph: Graph, options: PatchOptions | None) -> PatchOptions:
    has_quads = holds_graphs(graph)
    if options is None:
        return PatchOptions(statement_type=StatementType.QUADS if has_quads else StatementType.TRIPLES)
    if not isinstance(options, PatchOptions):
        raise UsageError(f"options must be PatchOptions, not {type(options).__name__}")
    if has_quads and options.statement_type == StatementType.TRIPLES:
        raise UsageError("a patch of TRIPLES cannot hold a dataset; use StatementType.QUADS, or write a graph")
    return options


def _statements(graph: Graph, physical_type: PhysicalType) -> Iterator[tuple[Any, ...]]:
    statements = statements_of(graph)
    if holds_graphs(graph) or physical_type == PhysicalType.TRIPLES:
        return statements
    return ((s, p, o, None) for s, p, o in statements)


def _write(encoder: OperationEncoderFace, operations: Iterable[Operation], stream: IO[bytes]) -> None:
    for batch in batches(operations):
        for operation in batch:
            encoder.accept(operation)
        stream.write(encoder.take())
    stream.write(encoder.finish())
