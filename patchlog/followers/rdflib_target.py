"""An rdflib graph, dataset or store as the target. Blank nodes keep their labels.

A store in memory is gone with its process, and so is the position. Any other store has the position in a graph of its
own, `<urn:patchlog:positions>`, which changes in the same commit as the data: exactly once where the store has
transactions, at least once (with idempotent effects) where it has none.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from weakref import WeakKeyDictionary

from rdflib.graph import Dataset as RdflibDataset
from rdflib.graph import Graph
from rdflib.plugins.stores.memory import Memory, SimpleMemory
from rdflib.store import Store
from rdflib.term import Node, URIRef

from patchlog.effect import Effect, NamespaceKey
from patchlog.errors import UsageError
from patchlog.followers.contract import Change, Dataset, TargetMoved
from patchlog.followers.positions import GRAPH, Positions, values_of
from patchlog.log.position import Position
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

_in_memory: WeakKeyDictionary[Store, set[Quad]] = WeakKeyDictionary()


class RdflibTarget:
    """The store behind a graph or dataset."""

    def __init__(self, into: Graph | Store) -> None:
        self._graph = into if isinstance(into, Graph) else _graph_on(into)
        self._target = Target(self._graph)
        self._builder = TermBuilder()
        self._positions: Positions

    def begin(self, log: LogDescription, part: str) -> None:
        """Say which log this is, and which part of it."""
        self._positions = Positions(log, part)

    def position(self) -> Position | None:
        """Read the position from where this kind of store has it."""
        return self._positions.read(self._rows())

    def keep(self, position: Position | None) -> None:
        """Go on from a position."""
        if position is None:
            return
        if any(self._positions.move(position)):
            with self._one_commit():
                self._keep(position)
        self._positions.moved(position)

    def check(self) -> None:
        """Compare what the store has with what was left there."""
        kept = self._positions.kept
        if self.position() != kept:
            raise TargetMoved

    def start_again(self) -> None:
        """Let what is there count for nothing: a load changes it to what the log has."""
        self._positions.start_again()

    def apply(self, change: Change) -> None:
        """Change the store and the position in one commit. What fails leaves a store with transactions as it was."""
        self.check()
        with self._one_commit():
            take_effect(change.effect, self._target, self._builder)
            self._keep(Position(self._positions.log_id, change.record.version, change.record.chain_hash))

    def load(self, dataset: Dataset) -> None:
        """Delete what the dataset does not have, and add what it has."""
        with self._one_commit():
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
            self._keep(dataset.position, replaces=True)

    def close(self) -> None:
        """The store is its owner's."""

    @property
    def _store(self) -> Store:
        return self._graph.store

    @property
    def _is_in_memory(self) -> bool:
        return isinstance(self._store, Memory | SimpleMemory)

    @property
    def _remembered(self) -> set[Quad]:
        return _in_memory.setdefault(self._store, set())

    @property
    def _graph_of_positions(self) -> Graph:
        if not self._store.context_aware:
            raise UsageError(f"the store {type(self._store).__name__} has no named graphs, so no place for a position")
        return Graph(self._store, _POSITIONS)

    def _rows(self) -> Iterator[tuple[str, str, str]]:
        if self._is_in_memory:
            return values_of(self._remembered)
        triples = self._store.triples((None, None, None), self._graph_of_positions)
        return ((str(s), str(p), str(o)) for (s, p, o), _ in triples)

    def _keep(self, position: Position, *, replaces: bool = False) -> None:
        deletes, adds = self._positions.move(position, replaces=replaces)
        if self._is_in_memory:
            self._remembered.difference_update(deletes)
            self._remembered.update(adds)
        else:
            graph = self._graph_of_positions
            for triple in map(self._rdflib_triple, deletes):
                self._store.remove(triple, graph)
            for triple in map(self._rdflib_triple, adds):
                self._store.add(triple, graph)
        self._positions.moved(position)

    def _rdflib_triple(self, quad: Quad) -> tuple[Node, Node, Node]:
        s, p, o = map(self._builder.term, quad[:3])
        return s, p, o

    @contextmanager
    def _one_commit(self) -> Iterator[None]:
        positions = self._positions
        before = positions.kept, positions.stored
        try:
            yield
            if self._store.transaction_aware:
                self._store.commit()
        except BaseException:
            positions.kept, positions.stored = before
            if self._store.transaction_aware:
                self._store.rollback()
            raise

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
