"""A graph or dataset as the operations of one patch: all of it, or its difference to another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal
from uuid import uuid4

from rdflib.graph import Graph

from patchlog.effect import NamespaceKey, diff
from patchlog.errors import UsageError
from patchlog.model import (
    DEFAULT_GRAPH,
    Add,
    Delete,
    Header,
    NamespaceAdd,
    Operation,
    Quad,
    Statement,
    Term,
    TransactionCommit,
    TransactionStart,
)
from patchlog.rdflib_hook.contents import Declared, holds_graphs, namespaces_of, statements_of
from patchlog.rdflib_hook.terms import TermFormatter
from patchlog.text.terms import iri_term

__all__ = ["operations_of"]


def operations_of(
    graph: Graph,
    *,
    operation: Literal["add", "remove"] | None = None,
    target: Graph | None = None,
    header_id: str | None = None,
    header_prev: str | None = None,
    namespace_declarations: Declared = False,
) -> Iterator[Operation]:
    """Yield headers and one transaction: adds (or deletes) of all statements, or what makes `target` of the graph.

    The keyword arguments up to `header_prev` are those of rdflib's own serializer `patch`. The headers are IRIs, and
    without an id the patch gets a new one.
    """
    if operation not in (None, "add", "remove"):
        raise UsageError(f"operation is 'add' or 'remove', not {operation!r}")
    if target is not None and operation is not None:
        raise UsageError("give an operation or a target, not both: a target implies adds and deletes")
    if target is not None and holds_graphs(target) != holds_graphs(graph):
        raise UsageError("a dataset is compared with a dataset, and a graph with a graph")
    yield Header("id", iri_term(header_id or f"urn:uuid:{uuid4()}"))
    if header_prev:
        yield Header("prev", iri_term(header_prev))
    if target is None:
        yield from _whole(graph, Delete if operation == "remove" else Add, namespace_declarations)
    else:
        yield from diff(
            _quads(graph),
            _quads(target),
            _namespaces(graph, namespace_declarations),
            _namespaces(target, namespace_declarations),
        )


def _whole(graph: Graph, kind: type[Add | Delete], declared: Declared) -> Iterator[Operation]:
    yield TransactionStart()
    for name, iri in namespaces_of(graph, declared).items():
        yield NamespaceAdd(name, iri_term(iri))
    for statement in _statements(graph):
        yield kind(*statement)
    yield TransactionCommit()


def _statements(graph: Graph) -> Iterable[Statement]:
    return map(TermFormatter().statement, statements_of(graph))


def _quads(graph: Graph) -> set[Quad]:
    return {statement if len(statement) == 4 else (*statement, DEFAULT_GRAPH) for statement in _statements(graph)}


def _namespaces(graph: Graph, declared: Declared) -> dict[NamespaceKey, Term]:
    return {(DEFAULT_GRAPH, name): iri_term(iri) for name, iri in namespaces_of(graph, declared).items()}
