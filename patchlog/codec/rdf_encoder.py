"""Statements to Jelly-RDF bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from patchlog.codec.fields import length_field, string_field
from patchlog.codec.frame_writer import FrameWriter, RowKind
from patchlog.codec.option_messages import write_rdf_options
from patchlog.codec.options import PhysicalType, RdfOptions
from patchlog.codec.term_writer import LookupRows, TermWriter
from patchlog.errors import InvalidTerm
from patchlog.model import DEFAULT_GRAPH, Statement, Term, is_statement, not_a_statement
from patchlog.spending import Spendable, spending

__all__ = ["RDF_LOOKUPS", "RdfEncoder"]

_OPTIONS: Final = RowKind(1)
_TRIPLE: Final = RowKind(2)
_QUAD: Final = RowKind(3)
_GRAPH_START: Final = RowKind(4)
_GRAPH_END: Final = RowKind(5)
_NAMESPACE: Final = RowKind(6)
RDF_LOOKUPS: Final = LookupRows(name=RowKind(9), prefix=RowKind(10), datatype=RowKind(11))

_METADATA_FIELD: Final = 15
_NAMESPACES_VERSION: Final = 2


class RdfEncoder(Spendable):
    """Encodes a Jelly-RDF stream. After an error it is spent."""

    def __init__(
        self,
        options: RdfOptions,
        *,
        rows_per_frame: int = 256,
        delimited: bool = True,
        namespace_declarations: bool = False,
    ) -> None:
        if namespace_declarations:
            options = replace(options, version=_NAMESPACES_VERSION)
        options.check_writable()
        self._writes_namespaces = namespace_declarations
        self._frames = FrameWriter(rows_per_frame=rows_per_frame, delimited=delimited)
        self._frames.add(_OPTIONS.row(self._options_message(options)))
        self._terms = self._new_terms(options)
        self._open_graph: Term | None = None
        match options.physical_type:
            case PhysicalType.TRIPLES:
                self._write = self._write_triple
            case PhysicalType.QUADS:
                self._write = self._write_quad
            case _:
                self._write = self._write_triple_in_graph

    @spending
    def statement(self, subject: Term, predicate: Term, object: Term, graph: Term | None = None, /) -> None:
        """Write one statement."""
        self._write(subject, predicate, object, graph)

    @spending
    def statements(self, statements: Iterable[Statement], /) -> None:
        """Write many statements."""
        write = self._write
        for statement in statements:
            if not is_statement(statement):
                raise not_a_statement(statement)
            write(*statement)

    @spending
    def namespace(self, name: str, iri: Term, /) -> None:
        """Write a namespace declaration; nothing where they are not enabled."""
        if self._writes_namespaces:
            self._terms.begin_row()
            self._frames.add(_NAMESPACE.row(string_field(1, name) + length_field(2, self._terms.iri(iri))))

    @spending
    def end_frame(self, metadata: Mapping[str, bytes] | None = None, /) -> None:
        """End the frame, even if it is empty."""
        self._end_graph()
        entries = (metadata or {}).items()
        self._frames.end_frame(
            b"".join(
                length_field(_METADATA_FIELD, length_field(1, key.encode()) + length_field(2, value))
                for key, value in entries
            )
        )

    @spending
    def take(self) -> bytes:
        """Take the bytes of the frames that were ended."""
        return self._frames.take()

    @spending
    def finish(self) -> bytes:
        """End the last frame, and take what is left."""
        self._end_graph()
        if not self._frames.is_empty:
            self._frames.end_frame()
        return self._frames.take()

    def _options_message(self, options: RdfOptions) -> bytes:
        return write_rdf_options(options)

    def _new_terms(self, options: RdfOptions) -> TermWriter:
        return TermWriter(options, RDF_LOOKUPS, self._frames.add)

    def _write_triple(self, subject: Term, predicate: Term, object: Term, graph: Term | None = None) -> None:
        if graph:
            raise InvalidTerm(f"a statement in the graph {graph} in a stream of triples")
        self._terms.begin_row()
        self._frames.add(_TRIPLE.row(self._terms.triple(subject, predicate, object)))
        self._frames.cut_if_full()

    def _write_quad(self, subject: Term, predicate: Term, object: Term, graph: Term | None = None) -> None:
        self._terms.begin_row()
        self._frames.add(_QUAD.row(self._terms.quad(subject, predicate, object, graph or DEFAULT_GRAPH)))
        self._frames.cut_if_full()

    def _write_triple_in_graph(self, subject: Term, predicate: Term, object: Term, graph: Term | None = None) -> None:
        graph = graph or DEFAULT_GRAPH
        if graph != self._open_graph:
            self._end_graph()
            self._terms.begin_row()
            self._frames.add(_GRAPH_START.row(self._terms.graph_start(graph)))
            self._open_graph = graph
        self._write_triple(subject, predicate, object)

    def _end_graph(self) -> None:
        if self._open_graph is not None:
            self._frames.add(_GRAPH_END.row(b""))
            self._open_graph = None
