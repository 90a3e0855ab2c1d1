"""An rdflib graph, dataset or store as the target. Blank nodes keep their labels.

A store in memory is gone with its process, and so is the position. Any other store has the position in a graph of its
own, `<urn:patchlog:positions>`, which changes in the same commit as the data: exactly once where the store has
transactions, at least once (with idempotent effects) where it has none.
"""

from __future__ import annotations

from typing import Final
from weakref import WeakKeyDictionary

from rdflib.graph import Dataset as RdflibDataset
from rdflib.graph import Graph
from rdflib.plugins.stores.memory import Memory, SimpleMemory
from rdflib.store import Store
from rdflib.term import Literal, URIRef

from patchlog.effect import Effect, NamespaceKey
from patchlog.errors import UsageError
from patchlog.followers.contract import Change, Dataset
from patchlog.followers.positions import GRAPH, PREDICATE
from patchlog.log.records import LogDescription
from patchlog.model import DEFAULT_GRAPH, Quad, Term
from patchlog.pipes import batches
from patchlog.rdflib_hook.apply import take_effect
from patchlog.rdflib_hook.capture.prefixes import is_declared
from patchlog.rdflib_hook.contents import statements_of
from patchlog.rdflib_hook.target import Target
from patchlog.rdflib_hook.terms import TermBuilder, TermFormatter

__all__ = ["RdflibTarget"]

_POSITIONS: Final = URIRef(GRAPH)
_POSITION: Final = URIRef(PREDICATE)

_in_memory: WeakKeyDictionary[Store, dict[str, int]] = WeakKeyDictionary()


class RdflibTarget:
    """The store behind a graph or dataset."""

    def __init__(self, into: Graph | Store) -> None:
        self._graph = into if isinstance(into, Graph) else _graph_on(into)
        self._target = Target(self._graph)
        self._builder = TermBuilder()
        self._log = URIRef("urn:uuid:00000000-0000-0000-0000-000000000000")

    def begin(self, log: LogDescription) -> int | None:
        """Read the position from where this kind of store has it."""
        self._log = URIRef(f"urn:uuid:{log.id}")
        if self._is_in_memory:
            return self._remembered.get(log.id)
        found = next(iter(self._store.triples((self._log, _POSITION, None), self._positions)), None)
        return None if found is None else int(str(found[0][2]))

    def apply(self, change: Change) -> None:
        """Change the store and the position in one commit. What fails leaves a store with transactions as it was."""
        try:
            take_effect(change.effect, self._target, self._builder)
            self._commit(change.record.version)
        except BaseException:
            self._roll_back()
            raise

    def load(self, dataset: Dataset) -> None:
        """Delete what the dataset does not have, and add what it has."""
        try:
            declared: dict[NamespaceKey, Term | None] = {
                (DEFAULT_GRAPH, name): None for name, iri in self._store.namespaces() if is_declared(name, str(iri))
            }
            namespaces = declared | {(DEFAULT_GRAPH, name): iri for (_, name), iri in dataset.namespaces.items()}
            if there := self._contents():
                wanted = set(dataset.quads)
                change = Effect(wanted - there, there - wanted, namespaces)
            else:
                for batch in batches(dataset.quads):
                    self._target.add(self._builder.statements(batch))
                change = Effect(namespaces=namespaces)
            take_effect(change, self._target, self._builder)
            self._commit(dataset.version)
        except BaseException:
            self._roll_back()
            raise

    def close(self) -> None:
        """The store is its owner's."""

    @property
    def _store(self) -> Store:
        return self._graph.store

    @property
    def _is_in_memory(self) -> bool:
        return isinstance(self._store, Memory | SimpleMemory)

    @property
    def _remembered(self) -> dict[str, int]:
        return _in_memory.setdefault(self._store, {})

    @property
    def _positions(self) -> Graph:
        if not self._store.context_aware:
            raise UsageError(f"the store {type(self._store).__name__} has no named graphs, so no place for a position")
        return Graph(self._store, _POSITIONS)

    def _commit(self, version: int) -> None:
        if self._is_in_memory:
            self._remembered[str(self._log).removeprefix("urn:uuid:")] = version
        else:
            positions = self._positions
            self._store.remove((self._log, _POSITION, None), positions)
            self._store.add((self._log, _POSITION, Literal(version)), positions)
        if self._store.transaction_aware:
            self._store.commit()

    def _roll_back(self) -> None:
        if self._store.transaction_aware:
            self._store.rollback()

    def _contents(self) -> set[Quad]:
        formatter = TermFormatter()
        quads = set()
        for statement in map(formatter.statement, statements_of(self._graph)):
            quad = statement if len(statement) == 4 else (*statement, DEFAULT_GRAPH)
            if quad[3] != f"<{GRAPH}>":
                quads.add(quad)
        return quads


def _graph_on(store: Store) -> Graph:
    return RdflibDataset(store=store) if store.graph_aware else Graph(store)
