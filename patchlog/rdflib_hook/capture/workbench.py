"""A store in a transaction: what is asked for is done only where it changes something, and then it is noted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from rdflib.graph import DATASET_DEFAULT_GRAPH_ID, Graph, QuotedGraph
from rdflib.namespace import XSD
from rdflib.plugins.stores.memory import Memory, SimpleMemory
from rdflib.store import Store
from rdflib.term import BNode, Identifier, Literal, URIRef

from patchlog.effect import Effect
from patchlog.errors import UsageError
from patchlog.model import Quad
from patchlog.rdflib_hook.capture.journal import (
    ADDED,
    DELETED,
    GRAPH_ADDED,
    GRAPH_REMOVED,
    Entry,
    Journal,
    RdflibTriple,
)
from patchlog.rdflib_hook.capture.prefixes import Prefixes
from patchlog.rdflib_hook.capture.replica import Standing
from patchlog.rdflib_hook.capture.staging import StagedWorkspace
from patchlog.rdflib_hook.capture.workspace import DirectWorkspace, Pattern, Placed, Workspace, rdflib_net
from patchlog.rdflib_hook.collector import paused_collector
from patchlog.rdflib_hook.terms import TermBuilder, TermFormatter
from patchlog.text.terms import Iri, parse_term

__all__ = ["Workbench", "declared_after"]

_STRINGS: Final = frozenset({XSD.string})
_ANY: Final = URIRef("")
_NAMES: Final = frozenset({URIRef, BNode})


class Workbench:
    """The changes of one transaction on an inner store, and the namespaces."""

    def __init__(self, inner: Store, owner: Store) -> None:
        self.workspace: Final[Workspace] = (
            DirectWorkspace(inner, owner) if isinstance(inner, Memory | SimpleMemory) else StagedWorkspace(inner, owner)
        )
        self.journal: Final = Journal()
        self.prefixes: Final = Prefixes()
        self._has_graphs = inner.context_aware
        self._knows_graphs = inner.graph_aware
        self._has_formulae = inner.formula_aware
        self._graphs: dict[Identifier, Graph | None] = {}
        self._default = Graph(owner, DATASET_DEFAULT_GRAPH_ID)
        self._latest: Graph | None = None  # the graph that was added to last
        self._is_quoted = False
        self._builder = TermBuilder()

    def begin(self) -> None:
        """Look at what the inner store has."""
        for name, iri in self.workspace.namespaces().items():
            self.prefixes.bind(name, URIRef(iri))
        if self._knows_graphs:
            self._graphs = {graph.identifier: graph for graph in self.workspace.contexts(None)}

    @property
    def is_empty(self) -> bool:
        """Whether there is no triple at all."""
        return not any(True for _ in self.workspace.triples((None, None, None), None))

    def add(self, triple: RdflibTriple, context: Graph | None, quoted: bool = False) -> None:  # noqa: FBT001, FBT002
        """Add a triple, if it is not there."""
        if context is None and self._has_graphs:  # as in `Dataset.add((s, p, o, None))`, which rdflib keeps in no graph
            context = self._default
        if context is not self._latest:
            context = self._entered(context)
            if context is not None:
                self.add_graph(context)
                self._latest = context
        quoted = quoted or self._is_quoted
        triple = self._admitted(triple)
        if self.workspace.add(triple, context, quoted):
            self.journal.note((ADDED, triple, context, quoted))

    def remove(self, pattern: Pattern, context: Graph | None) -> None:
        """Remove all triples that match, from one graph or from all."""
        if context is not self._latest:
            context = self._entered(context)
        subject, predicate, object_ = pattern
        is_one = subject is not None and predicate is not None and object_ is not None
        if is_one and (context is not None or not self._has_graphs):
            triple = self.workspace.as_kept(self._admitted(pattern))
            if self.workspace.remove(triple, context):
                self.journal.note((DELETED, triple, context, self._is_quoted))
            return
        pattern = self._meant(pattern)
        found = list(self.matches(pattern, context))
        if found:
            self.workspace.remove_all(pattern, context, found)
        for triple, graph in found:
            self.journal.note((DELETED, triple, graph, isinstance(graph, QuotedGraph)))

    def _entered(self, context: Graph | None) -> Graph | None:
        """Look at a graph that the change before was not in.

        rdflib makes a new object for each mention of a graph. The journal keeps the first.
        """
        if not self._has_graphs or context is None:
            context = None
        else:
            known = self._graphs.get(context.identifier)
            if type(known) is type(context):
                context = known
        self._is_quoted = isinstance(context, QuotedGraph)
        self._latest = None  # until something is added to it: it need not be known
        return context

    def matches(self, pattern: Pattern, context: Graph | None) -> Iterator[Placed]:
        """The triples that match, as the store has them, with each graph in which they are."""
        if not self._has_graphs:
            return ((triple, None) for triple, _ in self.workspace.triples(pattern, None))
        if context is not None:
            return ((self._exact(triple, pattern), context) for triple, _ in self.workspace.triples(pattern, context))
        return (
            (self._exact(triple, pattern), graph)
            for triple, graphs in self.workspace.triples(pattern, None)
            for graph in graphs
        )

    def _meant(self, pattern: Pattern) -> Pattern:
        """The pattern with its object as the store has it."""
        if pattern[2] is None:
            return pattern
        return pattern[0], pattern[1], self._admitted((_ANY, _ANY, pattern[2]))[2]

    def _exact(self, triple: RdflibTriple, pattern: Pattern) -> RdflibTriple:
        # A store that is asked for one literal answers with the one that it was asked for. And in Memory's index by
        # predicate all subjects have one literal, where only the case of its language tag differs.
        object_ = triple[2]
        is_exact = pattern[2] is None and not (isinstance(object_, Literal) and object_.language)
        return triple if is_exact else self.workspace.as_kept(triple)

    def add_graph(self, context: Graph) -> None:
        """Know a graph."""
        if self._knows_graphs and context.identifier not in self._graphs:
            self._graphs[context.identifier] = context
            self.workspace.add_graph(context)
            self.journal.note_graph(GRAPH_ADDED, context)

    def remove_graph(self, context: Graph) -> None:
        """Remove the triples of a graph, and know it no more."""
        self.remove((None, None, None), context)
        if context.identifier in self._graphs:
            del self._graphs[context.identifier]
            self._latest = None
            self.workspace.remove_graph(context)
            self.journal.note_graph(GRAPH_REMOVED, context)

    @contextmanager
    def undone_to(self, mark: int) -> Iterator[None]:
        """Take back what came behind a mark in the block. Then it is done again, where it still changes something."""
        savepoints = self.journal.lift_savepoints(mark)
        entries = self.undo_to(mark)
        try:
            yield
        finally:
            for position, entry in enumerate(entries, mark):
                self.journal.put_savepoints(savepoints, position)
                self._redo(entry)
            self.journal.put_savepoints(savepoints, mark + len(entries))

    def undo_to(self, mark: int) -> list[Entry]:
        """Take back what came behind a mark of the journal. Returns it, the first first."""
        undone = []
        self._latest = None
        for entry in self.journal.take_back_to(mark):
            kind, triple, context, quoted = entry
            if kind == ADDED:
                self.workspace.remove(triple, context)
            elif kind == DELETED:
                self.workspace.add(triple, context, quoted)
            elif kind == GRAPH_ADDED:
                assert context is not None
                self._graphs.pop(context.identifier, None)
                self.workspace.remove_graph(context)
            else:
                assert context is not None
                self._graphs[context.identifier] = context
                self.workspace.add_graph(context)
            undone.append(entry)
        undone.reverse()
        return undone

    def _redo(self, entry: Entry) -> None:
        kind, triple, context, quoted = entry
        if kind == ADDED:
            self.add(triple, context, quoted)
        elif kind == DELETED:
            self.remove(triple, context)
        elif context is not None:
            (self.add_graph if kind == GRAPH_ADDED else self.remove_graph)(context)

    def settle(self, change: Effect, standing: Standing, declared: dict[str, str]) -> None:
        """Let the store be as the log says there. Nothing may be uncommitted."""
        net = rdflib_net(change, self._builder, has_graphs=self._has_graphs)
        with paused_collector():
            self.workspace.settle(net, standing, declared)
        if self._knows_graphs:
            for name in {quad[3] for quad in net.adds if quad[3] is not None}:
                self._graphs.setdefault(name, None)

    def contents(self) -> dict[Quad, Placed]:
        """All that there is, as a log says it."""
        formatter = TermFormatter()
        found: dict[Quad, Placed] = {}
        for triple, graph in self.matches((None, None, None), None):
            subject, predicate, object_ = (formatter.term(_named(term)) for term in triple)
            found[subject, predicate, object_, formatter.graph(None if graph is None else graph.identifier)] = (
                triple,
                graph,
            )
        return found

    def note_difference(self, state: Effect) -> None:
        """Note all in which the store differs from a dataset as uncommitted changes. Nothing may be uncommitted."""
        there = self.contents()
        for triple, graph in (placed for quad, placed in there.items() if quad not in state.adds):
            self.journal.note((ADDED, triple, graph, isinstance(graph, QuotedGraph)))
        missing = rdflib_net(Effect(state.adds - there.keys()), self._builder, has_graphs=self._has_graphs)
        for subject, predicate, object_, name in missing.adds:
            gone = None if name is None else Graph(self._default.store, name)
            self.journal.note((DELETED, (subject, predicate, object_), gone, False))

    def _admitted(self, triple: Any) -> RdflibTriple:
        """The triple as it is recorded and kept. Raises UsageError for what is no term of a log."""
        subject, predicate, object_ = triple
        if type(subject) not in _NAMES:
            self._check(subject)
        if type(predicate) not in _NAMES:
            self._check(predicate)
        if type(object_) in _NAMES:
            return subject, predicate, object_
        if not isinstance(object_, Literal):
            self._check(object_)
            return subject, predicate, object_
        # The slots and not the properties, as this is done for each triple.
        language, datatype = object_._language, object_._datatype  # noqa: SLF001
        if language is None:
            if datatype is None:
                return subject, predicate, object_
            if datatype in _STRINGS:  # in RDF 1.1 the same term as a plain literal, in rdflib another
                return subject, predicate, Literal(str(object_))
            if not self.workspace.rewrites_literals:
                return subject, predicate, object_
        return self.workspace.as_kept((subject, predicate, object_))

    def _check(self, term: object) -> None:
        if isinstance(term, URIRef | BNode | Literal) or (self._has_formulae and isinstance(term, QuotedGraph)):
            return
        raise UsageError(
            f"{term!r} ({type(term).__name__}) is not an IRI, a blank node or a literal: a log cannot hold it"
        )


def _named(term: Any) -> Any:
    """A formula as a term is its blank node, which names the graph of its triples."""
    return term.identifier if isinstance(term, Graph) else term


def declared_after(declared: dict[str, str], change: Effect) -> dict[str, str]:
    """The declared namespaces after a change. rdflib has one set of them for all graphs."""
    after = dict(declared)
    for (_, name), iri in change.namespaces.items():
        if iri is None:
            after.pop(name, None)
            continue
        parsed = parse_term(iri)
        assert isinstance(parsed, Iri), "a namespace of a log is an IRI"
        after[name] = parsed.value
    return after
