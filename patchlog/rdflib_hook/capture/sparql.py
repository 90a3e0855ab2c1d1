"""SPARQL UPDATE on a captured store, by rdflib's engine, so that every change goes through the capture.

rdflib 7.6 is wrong about the default graph of a Dataset: INSERT DATA raises ValueError there, and for DELETE DATA,
DELETE WHERE, CLEAR DEFAULT, ADD, COPY and MOVE it is all graphs. So here the default graph is pushed as the graph that
an operation works on. CREATE GRAPH is not there at all; it is here.

DELETE and INSERT by a pattern are carried out here. rdflib changes the graph for each solution before it looks for the
next one, deletes what it has inserted for the one before, makes up a graph where the variable of GRAPH is not bound,
gives a blank node of the template another label in each graph, inserts triples whose subject is a literal, and fetches
a document from the network where USING names a graph.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from rdflib.graph import DATASET_DEFAULT_GRAPH_ID, Dataset, Graph
from rdflib.plugins.sparql import update as engine
from rdflib.plugins.sparql.algebra import BGP, Join, translateUpdate
from rdflib.plugins.sparql.algebra import Graph as AlgebraGraph
from rdflib.plugins.sparql.evaluate import evalPart
from rdflib.plugins.sparql.parser import parseUpdate
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.plugins.sparql.sparql import FrozenBindings, QueryContext, Update
from rdflib.store import Store
from rdflib.term import BNode, IdentifiedNode, Identifier, URIRef, Variable

from patchlog.errors import UsageError
from patchlog.rdflib_hook.capture.journal import RdflibTriple
from patchlog.rdflib_hook.capture.session import Session

__all__ = ["UpdateEngine"]

_UNION: Final = "__UNION__"


_MATCHES_UNION: Final = frozenset({"DeleteWhere", "Modify"})


class UpdateEngine:
    """Runs updates on a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._datasets: dict[str, Dataset] = {}

    def run(
        self,
        update: str | Update,
        init_ns: Mapping[str, Any],
        init_bindings: Mapping[str, Identifier],
        query_graph: str,
        session: Session,
    ) -> None:
        """Run a request. What fails with SILENT goes back to where it began, and is no error."""
        if isinstance(update, str):
            parsed = parseUpdate(update)
            if not parsed.request:  # rdflib translates a request without an operation to something else
                return
            update = translateUpdate(parsed, initNs=init_ns)
        graph = self._graph(query_graph)
        bindings: dict[str, Identifier] = {Variable(name): value for name, value in init_bindings.items()}
        for operation in update.algebra:
            context = QueryContext(graph, initBindings=bindings)
            context.prologue = operation.prologue
            if isinstance(graph, Dataset) and not (graph.default_union and operation.name in _MATCHES_UNION):
                context = context.pushGraph(graph.default_graph)
            savepoint = session.savepoint()
            try:
                if operation.name == "Create":
                    _create(context, operation)
                else:
                    _EVALUATED[operation.name](context, operation)
            except Exception:
                if not operation.silent:
                    raise
                session.go_back(savepoint)

    def _graph(self, query_graph: str) -> Graph:
        name = str(query_graph)
        if name not in (_UNION, str(DATASET_DEFAULT_GRAPH_ID)) or not self._store.graph_aware:
            return Graph(self._store, query_graph)
        # Kept, as each new one would bind rdflib's prefixes again.
        if name not in self._datasets:
            self._datasets[name] = Dataset(store=self._store, default_union=name == _UNION)
        return self._datasets[name]


def _modify(context: QueryContext, operation: CompValue) -> None:
    into = context
    if operation.withClause:
        into = context.pushGraph(context.dataset.get_context(operation.withClause))
    matched = _described(context, operation.using) if operation.using else into
    solutions = list(evalPart(matched, operation.where))
    graph = into.graph if type(into.graph) is Graph else context.dataset.get_context(DATASET_DEFAULT_GRAPH_ID)
    for template, change in ((operation.delete, Graph.__isub__), (operation.insert, Graph.__iadd__)):
        if not template:
            continue
        for solution in solutions:
            new_nodes: defaultdict[BNode, BNode] = defaultdict(BNode)
            change(graph, _filled(template.triples, solution, new_nodes))
            for name, triples in template.quads.items():
                graph_name = solution.get(name)
                if isinstance(graph_name, IdentifiedNode):  # else there is no such quad, as with each other term
                    change(context.dataset.get_context(graph_name), _filled(triples, solution, new_nodes))


def _filled(
    template: Iterable[tuple[Identifier, ...]], solution: FrozenBindings, new_nodes: defaultdict[BNode, BNode]
) -> Iterator[RdflibTriple]:
    """The triples of a template for one solution, but for those that are none: a term lacks, or a literal leads.

    A label in the template is one new blank node for each solution, whatever the graph.
    """
    for triple in template:
        subject, predicate, object_ = (
            new_nodes[term] if isinstance(term, BNode) else solution.get(term) for term in triple
        )
        if isinstance(subject, IdentifiedNode) and isinstance(predicate, URIRef) and object_ is not None:
            yield subject, predicate, object_


def _delete_where(context: QueryContext, operation: CompValue) -> None:
    """Its pattern is its template."""
    where = BGP(operation.triples)
    for name, triples in operation.quads.items():
        where = Join(where, AlgebraGraph(name, BGP(triples)))
    _modify(context, CompValue("Modify", delete=operation, where=where))


def _described(context: QueryContext, using: Iterable[CompValue]) -> QueryContext:
    """The dataset that USING describes: the graphs that are named there, and no others."""
    described = Dataset()
    for clause in using:
        target = described.default_graph if clause.default else described.graph(clause.named)
        target += context.dataset.get_context(clause.default or clause.named)
    matched = QueryContext(described, initBindings=context.initBindings).pushGraph(described.default_graph)
    matched.prologue = context.prologue
    return matched


def _create(context: QueryContext, operation: CompValue) -> None:
    graph = context.dataset.get_context(operation.graphiri)
    if any(known.identifier == graph.identifier for known in context.dataset.store.contexts()):
        raise UsageError(f"CREATE GRAPH: the graph {graph.identifier.n3()} is there already")
    context.dataset.store.add_graph(graph)


_EVALUATED: Final[Mapping[str, Callable[[QueryContext, CompValue], None]]] = {
    "Load": engine.evalLoad,
    "Clear": engine.evalClear,
    "Drop": engine.evalDrop,
    "Add": engine.evalAdd,
    "Move": engine.evalMove,
    "Copy": engine.evalCopy,
    "InsertData": engine.evalInsertData,
    "DeleteData": engine.evalDeleteData,
    "DeleteWhere": _delete_where,
    "Modify": _modify,
}
