"""Where a transaction works before its commit: in the inner store itself, or in a layer before it.

rdflib's stores in memory are changed at once. A crash takes them with it, and they are filled from the log when they
are opened; a rollback walks back through the journal. Any other store may outlive the process, so it must not see what
is not in the log yet: `patchlog.rdflib_hook.capture.staging`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol, TypeAlias

from rdflib.graph import Graph, QuotedGraph
from rdflib.plugins.stores.memory import Memory, SimpleMemory
from rdflib.store import Store
from rdflib.term import IdentifiedNode, Literal

from patchlog.effect import Effect
from patchlog.errors import UsageError
from patchlog.model import DEFAULT_GRAPH, Quad
from patchlog.rdflib_hook.capture.journal import Net, RdflibQuad, RdflibTriple
from patchlog.rdflib_hook.capture.replica import Standing
from patchlog.rdflib_hook.terms import TermBuilder

__all__ = ["DirectWorkspace", "Found", "Pattern", "Placed", "Workspace", "rdflib_net"]

Pattern: TypeAlias = tuple[object, object, object]
Found: TypeAlias = tuple[RdflibTriple, Iterator[Graph | None]]
Placed: TypeAlias = tuple[RdflibTriple, Graph | None]


class Workspace(Protocol):
    """What is read from and written to in a transaction."""

    @property
    def is_clean(self) -> bool:
        """Whether the inner store has all that there is."""

    @property
    def rewrites_literals(self) -> bool:
        """Whether the store may have other lexical forms than it was given."""

    def triples(self, pattern: Pattern, context: Graph | None) -> Iterator[Found]:
        """The triples that match, each with graphs where it is."""

    def as_kept(self, triple: RdflibTriple) -> RdflibTriple:
        """The triple in the form in which the store has it, or would have it."""

    def contexts(self, triple: RdflibTriple | None) -> Iterator[Graph]:
        """The graphs that the store knows, or those with this triple."""

    def size(self, context: Graph | None) -> int:
        """How many triples there are."""

    def add(self, triple: RdflibTriple, context: Graph | None, quoted: bool) -> bool:  # noqa: FBT001 - rdflib's own
        """Add a triple. Returns whether it was not there."""

    def remove(self, triple: RdflibTriple, context: Graph | None) -> bool:
        """Remove a triple. Returns whether it was there."""

    def remove_all(self, pattern: Pattern, context: Graph | None, found: list[Placed]) -> None:
        """Remove what matches a pattern: all that was found, each in its graph."""

    def add_graph(self, context: Graph) -> None:
        """Know a graph."""

    def remove_graph(self, context: Graph) -> None:
        """Know a graph, which is empty, no more."""

    @property
    def is_durable(self) -> bool:
        """Whether the inner store may outlive the process, and says itself how far it is."""

    def standing(self, log_id: str) -> Standing | None:
        """How far the inner store is in a log; None where nothing says so."""

    def other_standings(self, log_id: str) -> list[Standing]:
        """How far the inner store is in other logs."""

    def settle(self, net: Net, standing: Standing, namespaces: dict[str, str]) -> None:
        """Let the inner store be as the log says. Nothing is uncommitted then."""

    def keep(self, standing: Standing, namespaces: dict[str, str]) -> None:
        """The transaction is in the log, or waits: let the inner store have it."""

    def reset(self) -> None:
        """Forget what the inner store does not have yet."""

    def forget(self, log_id: str) -> None:
        """Forget how far the inner store was in a log."""

    def namespaces(self) -> dict[str, str]:
        """The namespaces that the inner store has."""


class DirectWorkspace:
    """An rdflib store in memory: Memory, or SimpleMemory, which has one graph."""

    is_clean = True
    is_durable = False
    rewrites_literals = False

    def __init__(self, inner: Memory | SimpleMemory, owner: Store) -> None:
        self._inner = inner
        self._owner = owner
        # Looking for each triple before it is added would cost a fifth of the time that the store itself takes. It has
        # a set of triples for each graph, whose size says afterwards whether there was a change.
        self._sets: dict[str, set[RdflibTriple]] | None = getattr(inner, "_Memory__contextTriples", None)
        self._keys: dict[IdentifiedNode, str] = {}
        self._has_formulae = isinstance(inner, Memory) and any(isinstance(g, QuotedGraph) for g in inner.contexts())
        self._named: dict[IdentifiedNode, Graph] = {}

    def triples(self, pattern: Pattern, context: Graph | None) -> Iterator[Found]:
        """As the store has them."""
        return self._inner.triples(pattern, context)  # type: ignore[arg-type]

    def as_kept(self, triple: RdflibTriple) -> RdflibTriple:
        """The triple with the language tag as the store has spelled it first.

        "a"@en and "a"@EN are one term for the store, whatever the graph, and it goes on to say the first of them.
        """
        subject, predicate, object_ = triple
        if not (isinstance(object_, Literal) and object_.language) or not self._holds(triple):
            return triple
        for (_, _, kept), _ in self._inner.triples((subject, predicate, None), None):
            if kept == object_:
                return subject, predicate, kept
        return triple

    def contexts(self, triple: RdflibTriple | None) -> Iterator[Graph]:
        """As the store has them."""
        return self._inner.contexts(triple)

    def size(self, context: Graph | None) -> int:
        """As the store counts."""
        return self._inner.__len__(context)

    def add(self, triple: RdflibTriple, context: Graph | None, quoted: bool) -> bool:  # noqa: FBT001 - as in rdflib
        """Add it."""
        if self._sets is None or context is None:
            if self._holds(triple):
                return False
            self._inner.add(triple, context, quoted)  # type: ignore[arg-type]
            return True
        key = self._keys.get(context.identifier) or self._key(context.identifier)
        size = len(self._sets.get(key, ()))
        self._inner.add(triple, context, quoted)
        self._has_formulae = self._has_formulae or quoted
        return len(self._sets[key]) != size

    def remove(self, triple: RdflibTriple, context: Graph | None) -> bool:
        """Remove it."""
        if self._sets is None or context is None:
            was_there = self._holds(triple)
            self._inner.remove(triple, context)
            return was_there
        key = self._keys.get(context.identifier) or self._key(context.identifier)
        size = len(self._sets.get(key, ()))
        self._inner.remove(triple, context)
        return len(self._sets.get(key, ())) != size

    def remove_all(self, pattern: Pattern, context: Graph | None, found: list[Placed]) -> None:
        """Remove them: at once, unless that would take the triples of formulae along."""
        if context is not None or not self._has_formulae:
            self._inner.remove(pattern, context)  # type: ignore[arg-type]
            return
        for triple, graph in found:
            self._inner.remove(triple, graph)

    def _holds(self, triple: RdflibTriple) -> bool:
        """Whether the store has it, in whatever graph."""
        return any(True for _ in self._inner.triples(triple, None))

    def _key(self, name: IdentifiedNode) -> str:
        """The key of a graph in the store: its kind and its name."""
        return self._keys.setdefault(name, f"{type(name).__name__}:{name}")

    def add_graph(self, context: Graph) -> None:
        """Add it."""
        self._inner.add_graph(context)

    def remove_graph(self, context: Graph) -> None:
        """Remove it."""
        self._inner.remove_graph(context)

    def standing(self, log_id: str) -> None:
        """A store in memory begins with nothing in each process."""
        del log_id

    def other_standings(self, log_id: str) -> list[Standing]:
        """It says nothing of any log."""
        del log_id
        return []

    def settle(self, net: Net, standing: Standing, namespaces: dict[str, str]) -> None:
        """Change the store."""
        del standing, namespaces
        for subject, predicate, object_, name in net.deletes:
            triple = self.as_kept((subject, predicate, object_))
            if not isinstance(object_, Literal) or object_.language == triple[2].language:
                self._inner.remove(triple, self._graph(name))
        if self._inner.context_aware:
            self._inner.addN((*quad[:3], self._graph(quad[3])) for quad in net.adds)
        else:
            for quad in net.adds:
                self._inner.add(quad[:3], None)  # type: ignore[arg-type]

    def keep(self, standing: Standing, namespaces: dict[str, str]) -> None:
        """The store has it already."""

    def reset(self) -> None:
        """The store has all of it."""

    def forget(self, log_id: str) -> None:
        """It says nothing of any log."""

    def namespaces(self) -> dict[str, str]:
        """What was bound in the store before it was captured."""
        return {name: str(iri) for name, iri in self._inner.namespaces()}

    def _graph(self, name: IdentifiedNode | None) -> Any:
        if name is None:
            return None
        graph = self._named.get(name)
        if graph is None:
            graph = self._named[name] = Graph(self._owner, name)
        return graph


def rdflib_net(change: Effect, builder: TermBuilder, *, has_graphs: bool) -> Net:
    """What patches do, in rdflib's terms. Raises UsageError for what the store has no place for."""
    return Net(_quads(change.deletes, builder, has_graphs), _quads(change.adds, builder, has_graphs))


def _quads(quads: Iterable[Quad], builder: TermBuilder, has_graphs: bool) -> list[RdflibQuad]:  # noqa: FBT001
    term, graph = builder.term, builder.graph
    if has_graphs:
        return [(term(s), term(p), term(o), graph(g)) for s, p, o, g in quads]  # type: ignore[misc]
    found: list[RdflibQuad] = []
    for s, p, o, g in quads:
        if g != DEFAULT_GRAPH:
            raise UsageError(
                f"the log has the named graph {g}, and the store has none: capture a store with named graphs"
            )
        found.append((term(s), term(p), term(o), None))
    return found
