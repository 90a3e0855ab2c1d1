"""Operations to rows of a Jelly-Patch stream. Which frames they go to is for the encoders to say."""

from __future__ import annotations

from typing import Final

from patchlog.codec.fields import length_field, string_field
from patchlog.codec.frame_writer import FrameWriter, RowKind
from patchlog.codec.option_messages import write_patch_options
from patchlog.codec.options import PatchOptions, StatementType, Tables
from patchlog.codec.term_messages import GRAPH, HEADER_VALUE, NAMESPACE_GRAPH, OBJECT, PREDICATE, SUBJECT
from patchlog.codec.term_writer import NOTHING_RESERVED, LookupRows, TermWriter
from patchlog.errors import InvalidTerm
from patchlog.model import (
    DEFAULT_GRAPH,
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
    not_an_operation,
)

__all__ = ["PATCH_LOOKUPS", "OperationWriter"]

_OPTIONS: Final = RowKind(1)
_STATEMENT_ADD: Final = RowKind(2)
_STATEMENT_DELETE: Final = RowKind(3)
_NAMESPACE_ADD: Final = RowKind(4)
_NAMESPACE_DELETE: Final = RowKind(5)
_TRANSACTION_START: Final = RowKind(6)
_TRANSACTION_COMMIT: Final = RowKind(7)
_TRANSACTION_ABORT: Final = RowKind(8)
_HEADER: Final = RowKind(14)
_PUNCTUATION: Final = RowKind(15)
PATCH_LOOKUPS: Final = LookupRows(name=RowKind(11), prefix=RowKind(12), datatype=RowKind(13))


class OperationWriter:
    """Writes operations as rows with the lookup entries that they need, beginning with the options row.

    Where it goes on after rows of somebody else, it is told so: `writes_options` and the `reserved` lookup entries.
    """

    def __init__(
        self,
        options: PatchOptions,
        frames: FrameWriter,
        *,
        begins_explicitly: bool = False,
        writes_options: bool = True,
        reserved: Tables = NOTHING_RESERVED,
    ) -> None:
        self._may_repeat_statement = self._may_repeat_namespace = not begins_explicitly
        self._has_graphs = options.statement_type == StatementType.QUADS
        self._frames = frames
        if writes_options:
            self._frames.add(_OPTIONS.row(write_patch_options(options)))
        self._terms = TermWriter(
            options, PATCH_LOOKUPS, frames.add, begins_explicitly=begins_explicitly, reserved=reserved
        )

    def write(self, operation: Operation) -> None:
        """Write the row of an operation."""
        self._terms.begin_row()
        self._frames.add(self._row(operation))

    def _row(self, operation: Operation) -> bytes:
        match operation:
            case Add(subject, predicate, object, graph):
                return _STATEMENT_ADD.row(self._statement(subject, predicate, object, graph))
            case Delete(subject, predicate, object, graph):
                return _STATEMENT_DELETE.row(self._statement(subject, predicate, object, graph))
            case Header(key, value):
                return _HEADER.row(string_field(1, key) + self._terms.term(value, HEADER_VALUE))
            case NamespaceAdd(name, iri, graph):
                if iri is None:
                    raise InvalidTerm("a namespace is added without an IRI")
                return _NAMESPACE_ADD.row(self._namespace(name, iri, graph))
            case NamespaceDelete(name, maybe_iri, graph):
                return _NAMESPACE_DELETE.row(self._namespace(name, maybe_iri, graph))
            case TransactionStart():
                return _TRANSACTION_START.row(b"")
            case TransactionCommit():
                return _TRANSACTION_COMMIT.row(b"")
            case TransactionAbort():
                return _TRANSACTION_ABORT.row(b"")
            case Punctuation():
                return _PUNCTUATION.row(b"")
            case _:
                raise not_an_operation(operation)

    def _statement(self, subject: Term, predicate: Term, object: Term, graph: Term | None) -> bytes:
        if not self._may_repeat_statement:
            self._may_repeat_statement = True
            self._terms.forget_last_terms(SUBJECT, PREDICATE, OBJECT, GRAPH)
        if self._has_graphs:
            return self._terms.quad(subject, predicate, object, graph or DEFAULT_GRAPH)
        self._refuse_named(graph)
        return self._terms.triple(subject, predicate, object)

    def _namespace(self, name: str, iri: Term | None, graph: Term | None) -> bytes:
        if not self._may_repeat_namespace:
            self._may_repeat_namespace = True
            self._terms.forget_last_terms(GRAPH)
        message = string_field(1, name)
        if iri is not None:
            message += length_field(2, self._terms.iri(iri))
        if self._has_graphs:
            return message + self._terms.graph_unless_last(graph or DEFAULT_GRAPH, NAMESPACE_GRAPH)
        self._refuse_named(graph)
        return message

    @staticmethod
    def _refuse_named(graph: Term | None) -> None:
        if graph:
            raise InvalidTerm(f"an operation on the graph {graph} in a stream of triples")
