"""Jelly-RDF bytes to frames of statements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, Final

from patchlog.codec.fields import Message, length_tag
from patchlog.codec.option_messages import read_rdf_options
from patchlog.codec.options import PhysicalType, RdfOptions
from patchlog.codec.stream_decoder import MessageReader, StreamDecoder
from patchlog.codec.term_messages import GRAPH_START_GRAPH
from patchlog.errors import InvalidTerm, UnexpectedRow
from patchlog.model import RdfFrame, Statement, Term

__all__ = ["NAMESPACE_TAG", "RdfDecoder"]

_OPTIONS: Final = length_tag(1)
_TRIPLE: Final = length_tag(2)
_QUAD: Final = length_tag(3)
_GRAPH_START: Final = length_tag(4)
_GRAPH_END: Final = length_tag(5)
NAMESPACE_TAG: Final = length_tag(6)
_NAME: Final = length_tag(9)
_PREFIX: Final = length_tag(10)
_DATATYPE: Final = length_tag(11)

_METADATA: Final = length_tag(15)


class RdfDecoder(StreamDecoder[RdfOptions, RdfFrame]):
    """Decodes a Jelly-RDF stream, one frame after the other."""

    ROW_KINDS: ClassVar = frozenset(
        {_OPTIONS, _TRIPLE, _QUAD, _GRAPH_START, _GRAPH_END, NAMESPACE_TAG, _NAME, _PREFIX, _DATATYPE}
    )
    REFUSALS: ClassVar = {
        _TRIPLE: "a triple row in a stream of quads",
        _QUAD: "a quad row in a stream that is not of quads",
        _GRAPH_START: "a graph start row in a stream that is not of graphs",
        _GRAPH_END: "a graph end row in a stream that is not of graphs",
    }

    def _read_options(self, data: bytes, start: int, end: int) -> RdfOptions:
        return read_rdf_options(data, start, end, strict=self._strict)

    def _taken_over(self, known: RdfOptions, options: RdfOptions) -> RdfOptions:
        return options.with_tables(known.tables)

    def _begin_stream(self) -> None:
        self._open_graph: tuple[Term, int] | None = None

    def _readers_for(self, options: RdfOptions) -> Mapping[int, MessageReader]:
        readers: dict[int, MessageReader] = {
            NAMESPACE_TAG: self._read_namespace,
            _NAME: self._terms.name_entry,
            _PREFIX: self._terms.prefix_entry,
            _DATATYPE: self._terms.datatype_entry,
        }
        match options.physical_type:
            case PhysicalType.TRIPLES:
                readers[_TRIPLE] = self._read_triple
            case PhysicalType.QUADS:
                readers[_QUAD] = self._read_quad
            case _:
                readers[_GRAPH_START] = self._read_graph_start
                readers[_TRIPLE] = self._read_triple_of_graph
                readers[_GRAPH_END] = self._read_graph_end
        return readers

    def _begin_frame(self, index: int) -> None:
        self._statements: list[Statement] = []
        self._namespaces: list[tuple[str, Term]] = []
        self._metadata: dict[str, bytes] = {}
        self._index = index

    def _end_frame(self) -> Iterable[RdfFrame]:
        return (RdfFrame(self._index, self._statements, self._namespaces, self._metadata),)

    def _read_frame_field(self, tag: int, frame: bytes, start: int, end: int) -> None:
        if tag == _METADATA:
            entry = Message(frame, start, end)
            self._metadata[self._text(entry.content(1))] = entry.content(2)

    def _read_triple(self, data: bytes, start: int, end: int) -> None:
        self._statements.append(self._terms.triple(data, start, end))

    def _read_quad(self, data: bytes, start: int, end: int) -> None:
        self._statements.append(self._terms.quad(data, start, end))  # type: ignore[arg-type]  # it has a graph

    def _read_graph_start(self, data: bytes, start: int, end: int) -> None:
        if self._open_graph is not None and self._strict:
            raise UnexpectedRow("a graph start row inside a graph")
        self._open_graph = self._terms.graph(data, start, end, GRAPH_START_GRAPH)
        if self._open_graph is None:
            raise InvalidTerm("a graph start row has no graph; it cannot repeat one")
        self._terms.count(self._open_graph[1])

    def _read_triple_of_graph(self, data: bytes, start: int, end: int) -> None:
        if self._open_graph is None:
            raise UnexpectedRow("a triple row outside a graph")
        graph, size = self._open_graph
        triple = self._terms.triple(data, start, end)
        self._terms.count(size)
        self._statements.append((*triple, graph))

    def _read_graph_end(self, _data: bytes, _start: int, _end: int) -> None:
        if self._open_graph is None and self._strict:
            raise UnexpectedRow("a graph end row outside a graph")
        self._open_graph = None

    def _read_namespace(self, data: bytes, start: int, end: int) -> None:
        declaration = Message(data, start, end)
        name = self._terms.text(declaration.content(1))
        value = declaration.span(2)
        if value is None:
            raise InvalidTerm("a namespace row has no IRI")
        iri, size = self._terms.iri(data, *value)
        self._terms.count(size)
        self._namespaces.append((name, iri))
