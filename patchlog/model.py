"""The words that every part of the project speaks: terms, statements, operations.

A **term** is its canonical N-Triples text, a plain `str`:

    <http://example.org/a>                 an IRI
    _:label                                a blank node
    "lex"  "lex"@en  "1"^^<http://…#int>   a literal; xsd:string is never written
    <<( s p o )>>                          a quoted triple, of three terms
    (the empty string)                     the default graph, only in the place of a graph

Equal terms are equal strings, so a dataset is a set of tuples, and the same text stands in Arrow columns and in tables.
Nothing is normalised: lexical forms, language tags, labels and IRIs keep their characters. Canonical is only the way in
which characters are escaped (`patchlog.text.terms`).

The **operations** are those of RDF Patch and Jelly-Patch. A decoder yields them, and an encoder is an `OperationSink`,
so a pipe is `for operation in decoder.feed(chunk): encoder.accept(operation)`.

This module knows no format and no storage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

from patchlog.errors import UsageError

__all__ = [
    "DEFAULT_GRAPH",
    "XSD_STRING",
    "Add",
    "Delete",
    "Header",
    "NamespaceAdd",
    "NamespaceDelete",
    "Operation",
    "OperationSink",
    "Punctuation",
    "Quad",
    "RdfFrame",
    "Statement",
    "Term",
    "TransactionAbort",
    "TransactionCommit",
    "TransactionStart",
    "Triple",
    "as_quad",
    "is_statement",
    "not_a_statement",
    "not_an_operation",
]

Term: TypeAlias = str
Triple: TypeAlias = tuple[Term, Term, Term]
Quad: TypeAlias = tuple[Term, Term, Term, Term]
Statement: TypeAlias = Triple | Quad

DEFAULT_GRAPH: Final[Term] = ""
XSD_STRING: Final = "http://www.w3.org/2001/XMLSchema#string"


def not_an_operation(thing: object) -> UsageError:
    """The error of what stands for an operation and is none."""
    return UsageError(f"{thing} is not an operation")


def is_statement(thing: object) -> bool:
    """Whether it has the shape of a statement; its terms are not looked at."""
    return isinstance(thing, tuple) and len(thing) in (3, 4)


def not_a_statement(thing: object) -> UsageError:
    """The error of what stands for a statement and is none."""
    if isinstance(thing, tuple):
        return UsageError(f"a statement has three or four terms, not {len(thing)}")
    return UsageError("a statement is a tuple of three or four terms")


def as_quad(statement: Statement) -> Quad:
    """The statement as a quad: a triple stands in the default graph."""
    return statement if len(statement) == 4 else (*statement, DEFAULT_GRAPH)


@dataclass(frozen=True, slots=True)
class Header:
    """`H key value`: says something about the patch, such as its `id` and the `prev` that it follows."""

    key: str
    value: Term


@dataclass(frozen=True, slots=True)
class TransactionStart:
    """`TX`."""


@dataclass(frozen=True, slots=True)
class TransactionCommit:
    """`TC`: what came since the start takes effect."""


@dataclass(frozen=True, slots=True)
class TransactionAbort:
    """`TA`: what came since the start has no effect."""


@dataclass(frozen=True, slots=True)
class Add:
    """`A`: the statement is there afterwards. `graph` is None where the stream carries triples."""

    subject: Term
    predicate: Term
    object: Term
    graph: Term | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """`D`: the statement is not there afterwards. `graph` is None where the stream carries triples."""

    subject: Term
    predicate: Term
    object: Term
    graph: Term | None = None


@dataclass(frozen=True, slots=True)
class NamespaceAdd:
    """`PA`: the prefix `name` stands for `iri` (a term, in angle brackets)."""

    name: str
    iri: Term
    graph: Term | None = None


@dataclass(frozen=True, slots=True)
class NamespaceDelete:
    """`PD`: the prefix `name` stands for nothing. `iri` is what it stood for, where the writer said so."""

    name: str
    iri: Term | None = None
    graph: Term | None = None


@dataclass(frozen=True, slots=True)
class Punctuation:
    """The end of a patch: a punctuation row, the end of a frame in a FRAME stream, `Z` in text."""


Operation: TypeAlias = (
    Header
    | TransactionStart
    | TransactionCommit
    | TransactionAbort
    | Add
    | Delete
    | NamespaceAdd
    | NamespaceDelete
    | Punctuation
)


class OperationSink(Protocol):
    """What takes operations one by one: an encoder, a store, a list in a test."""

    def accept(self, operation: Operation, /) -> None:
        """Take one operation."""


@dataclass(slots=True)
class RdfFrame:
    """One frame of a Jelly-RDF stream, decoded: triples of a TRIPLES stream, quads of a QUADS or GRAPHS stream."""

    index: int
    statements: list[Statement] = field(default_factory=list)
    namespaces: list[tuple[str, Term]] = field(default_factory=list)
    metadata: Mapping[str, bytes] = field(default_factory=dict)
