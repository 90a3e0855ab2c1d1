"""Jelly-Patch bytes to operations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import ClassVar, Final

from patchlog.codec.fields import Message, length_tag
from patchlog.codec.option_messages import read_patch_options
from patchlog.codec.options import PatchOptions, StatementType, StreamType
from patchlog.codec.stream_decoder import MessageReader, StreamDecoder
from patchlog.codec.term_messages import NAMESPACE_GRAPH, find_terms
from patchlog.codec.term_reader import TermReader
from patchlog.errors import InvalidTerm, TransactionError
from patchlog.model import (
    Add,
    Delete,
    Header,
    NamespaceAdd,
    NamespaceDelete,
    Operation,
    Punctuation,
    Term,
    TransactionAbort,
    TransactionCommit,
    TransactionStart,
)
from patchlog.transactions import TransactionOrder

__all__ = ["PatchDecoder"]

_OPTIONS: Final = length_tag(1)
_STATEMENT_ADD: Final = length_tag(2)
_STATEMENT_DELETE: Final = length_tag(3)
_NAMESPACE_ADD: Final = length_tag(4)
_NAMESPACE_DELETE: Final = length_tag(5)
_TRANSACTION_START: Final = length_tag(6)
_TRANSACTION_COMMIT: Final = length_tag(7)
_TRANSACTION_ABORT: Final = length_tag(8)
_NAME: Final = length_tag(11)
_PREFIX: Final = length_tag(12)
_DATATYPE: Final = length_tag(13)
_HEADER: Final = length_tag(14)
_PUNCTUATION: Final = length_tag(15)


class PatchDecoder(StreamDecoder[PatchOptions, Operation]):
    """Decodes a Jelly-Patch stream to its operations."""

    ROW_KINDS: ClassVar = frozenset(
        {
            _OPTIONS,
            _STATEMENT_ADD,
            _STATEMENT_DELETE,
            _NAMESPACE_ADD,
            _NAMESPACE_DELETE,
            _TRANSACTION_START,
            _TRANSACTION_COMMIT,
            _TRANSACTION_ABORT,
            _NAME,
            _PREFIX,
            _DATATYPE,
            _HEADER,
            _PUNCTUATION,
        }
    )
    REFUSALS: ClassVar = {_PUNCTUATION: "a punctuation row in a stream that is not punctuated"}

    _is_in_patch = False
    """Whether operations came since the last punctuation, up to the frame before."""

    def _read_options(self, data: bytes, start: int, end: int) -> PatchOptions:
        return read_patch_options(data, start, end)

    def _new_terms(self, options: PatchOptions) -> TermReader:
        return TermReader(options, self._limits, strict=self._strict, graph_may_be_missing=not self._strict)

    def _taken_over(self, known: PatchOptions, options: PatchOptions) -> PatchOptions:
        return replace(options.with_tables(known.tables), stream_type=known.stream_type)

    def _begin_stream(self) -> None:
        self._transactions = TransactionOrder()
        if self._is_in_patch:  # of the file before, which ends with it
            self._operations.append(Punctuation())

    def _readers_for(self, options: PatchOptions) -> Mapping[int, MessageReader]:
        readers: dict[int, MessageReader] = {
            _NAMESPACE_ADD: self._read_namespace_add,
            _NAMESPACE_DELETE: self._read_namespace_delete,
            _TRANSACTION_START: self._read_transaction_start,
            _TRANSACTION_COMMIT: self._read_transaction_commit,
            _TRANSACTION_ABORT: self._read_transaction_abort,
            _NAME: self._terms.name_entry,
            _PREFIX: self._terms.prefix_entry,
            _DATATYPE: self._terms.datatype_entry,
            _HEADER: self._read_header,
        }
        self._has_graphs = options.statement_type == StatementType.QUADS
        if self._has_graphs:
            readers |= {_STATEMENT_ADD: self._read_quad_add, _STATEMENT_DELETE: self._read_quad_delete}
        else:
            readers |= {_STATEMENT_ADD: self._read_triple_add, _STATEMENT_DELETE: self._read_triple_delete}
        if options.stream_type == StreamType.PUNCTUATED:
            readers[_PUNCTUATION] = self._read_punctuation
        return readers

    def _begin_frame(self, _index: int) -> None:
        self._operations: list[Operation] = []

    def _end_frame(self) -> Iterable[Operation]:
        if self._options is not None and self._options.stream_type == StreamType.FRAME:
            if self._strict and self._transactions.is_open:
                raise TransactionError("a transaction is still open at the end of its frame")
            self._operations.append(Punctuation())
        if self._operations:
            self._is_in_patch = not isinstance(self._operations[-1], Punctuation)
        return self._operations

    def _read_triple_add(self, data: bytes, start: int, end: int) -> None:
        self._operations.append(Add(*self._terms.triple(data, start, end)))

    def _read_triple_delete(self, data: bytes, start: int, end: int) -> None:
        self._operations.append(Delete(*self._terms.triple(data, start, end)))

    def _read_quad_add(self, data: bytes, start: int, end: int) -> None:
        self._operations.append(Add(*self._terms.quad(data, start, end)))

    def _read_quad_delete(self, data: bytes, start: int, end: int) -> None:
        self._operations.append(Delete(*self._terms.quad(data, start, end)))

    def _read_namespace_add(self, data: bytes, start: int, end: int) -> None:
        name, iri, graph = self._read_namespace(data, start, end, needs_iri=True)
        assert iri is not None
        self._operations.append(NamespaceAdd(name, iri, graph))

    def _read_namespace_delete(self, data: bytes, start: int, end: int) -> None:
        self._operations.append(NamespaceDelete(*self._read_namespace(data, start, end, needs_iri=False)))

    def _read_namespace(
        self, data: bytes, start: int, end: int, *, needs_iri: bool
    ) -> tuple[str, Term | None, Term | None]:
        message = Message(data, start, end)
        name = self._terms.text(message.content(1))
        iri: Term | None = None
        graph: Term | None = None
        iri_size = graph_size = 0
        value = message.span(2)
        if value is not None:
            iri, iri_size = self._terms.iri(data, *value)
        elif needs_iri:
            raise InvalidTerm("a namespace is added without an IRI")
        if self._has_graphs:
            graph, graph_size = self._terms.graph_or_last(data, start, end, NAMESPACE_GRAPH)
        elif self._strict and find_terms(data, start, end, NAMESPACE_GRAPH.fields):
            raise InvalidTerm("a namespace row has a graph in a stream of triples")
        else:
            graph, graph_size = self._terms.graph(data, start, end, NAMESPACE_GRAPH) or (None, 0)
        self._terms.count(iri_size + graph_size)
        return name, iri, graph

    def _read_header(self, data: bytes, start: int, end: int) -> None:
        key = self._terms.text(Message(data, start, end).content(1))
        self._operations.append(Header(key, self._terms.header_value(data, start, end)))

    def _read_transaction_start(self, _data: bytes, _start: int, _end: int) -> None:
        if self._strict:
            self._transactions.start()
        self._operations.append(TransactionStart())

    def _read_transaction_commit(self, _data: bytes, _start: int, _end: int) -> None:
        if self._strict:
            self._transactions.end()
        self._operations.append(TransactionCommit())

    def _read_transaction_abort(self, _data: bytes, _start: int, _end: int) -> None:
        if self._strict:
            self._transactions.end(is_abort=True)
        self._operations.append(TransactionAbort())

    def _read_punctuation(self, _data: bytes, _start: int, _end: int) -> None:
        self._operations.append(Punctuation())
