"""A layer before a store that may outlive the process: what is not committed is kept here, and read through it.

The store sees a transaction only when the log has it, or when it waits in the outbox, and says in the graph
`<urn:patchlog:positions>` how far it is:

    <urn:uuid:LOG> <urn:patchlog:position> 7              the version
                   <urn:patchlog:history>  "7:2f0a…"      the chain hash at that version
                   <urn:patchlog:name>     "people"       the name of the log
                   <urn:patchlog:part>     "everything"   what the store has of it
                   <urn:patchlog:pending>  "6c1e…"        a patch that the store has, and the log does not have yet
                   <urn:patchlog:prefix>   "ex http://…"  a namespace

The first four are a follower's (`patchlog.followers.positions`): each can go on where the other was. The name is
written once. So a store that is emptied between a look at it and a change has a position without a name, which says
that all before is missing.

A crash in between leaves it behind the log, and what is missing is applied when it is opened again: effects are
idempotent, so it does not matter how much of it was there. The position changes last, and where two stand there the
lower one counts; what is pending is said before any of it is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache, partial
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Any, Final, TypeAlias

from rdflib.graph import DATASET_DEFAULT_GRAPH_ID, Graph
from rdflib.namespace import XSD
from rdflib.plugins.stores.memory import Memory
from rdflib.plugins.stores.sparqlstore import SPARQLStore, SPARQLUpdateStore
from rdflib.store import Store
from rdflib.term import BNode, IdentifiedNode, Literal, URIRef

from patchlog.errors import UsageError
from patchlog.log.position import Position, least_position
from patchlog.rdflib_hook.capture.endpoint import Written, update_text
from patchlog.rdflib_hook.capture.journal import ADDED, DELETED, Net, RdflibTriple
from patchlog.rdflib_hook.capture.replica import Standing
from patchlog.rdflib_hook.capture.workspace import Found, Pattern, Placed

__all__ = ["POSITIONS", "StagedWorkspace"]

POSITIONS: Final = URIRef("urn:patchlog:positions")
_POSITION: Final = URIRef("urn:patchlog:position")
_HISTORY: Final = URIRef("urn:patchlog:history")
_NAME: Final = URIRef("urn:patchlog:name")
_PART: Final = URIRef("urn:patchlog:part")
_EVERYTHING: Final = "everything"
_PENDING: Final = URIRef("urn:patchlog:pending")
_PREFIX: Final = URIRef("urn:patchlog:prefix")
_UUID: Final = "urn:uuid:"
_STRING: Final = XSD.string
_BATCH: Final = 1 << 13

_Key: TypeAlias = tuple[Any, Any, Any, IdentifiedNode | None]


class StagedWorkspace:
    """The changes of a transaction before any store that has named graphs."""

    is_durable = True
    rewrites_literals = True

    def __init__(self, inner: Store, owner: Store) -> None:
        if not inner.context_aware:
            raise UsageError(
                f"the store {type(inner).__name__} has no named graphs, so no place for its position in the log"
            )
        self._inner = inner
        self._owner = owner
        self._book = Graph(inner, POSITIONS)
        # An endpoint does not say in which graphs a triple is: it is asked graph by graph.
        self._is_remote = isinstance(inner, SPARQLStore)
        self._kept_literal = lru_cache(maxsize=1 << 16)(partial(_kept_literal, _scratch(inner)))
        self.reset()

    def reset(self) -> None:
        """Empty the layer."""
        self._added = Memory()
        self._removed: dict[_Key, None] = {}
        self._new_graphs: dict[IdentifiedNode, Graph] = {}
        self._gone_graphs: dict[IdentifiedNode, Graph] = {}
        # Whether the inner store failed while it took changes: nobody knows which of them it has.
        self._is_unsure = False

    @property
    def is_clean(self) -> bool:
        """Whether there is nothing in the layer."""
        return not (self._removed or self._new_graphs or self._gone_graphs or len(self._added))

    def triples(self, pattern: Pattern, context: Graph | None) -> Iterator[Found]:
        """Those of the store that were not removed, and those that were added."""
        for triple, graphs in self._below(pattern, context):
            left = [graph for graph in graphs if _key(triple, graph) not in self._removed] if self._removed else graphs
            if left:
                yield triple, iter(left)
        for triple, contexts in self._added.triples(pattern, context):  # type: ignore[arg-type]
            yield triple, iter(list(contexts))

    def _below(self, pattern: Pattern, context: Graph | None) -> Iterator[tuple[RdflibTriple, list[Graph]]]:
        if context is not None:
            for triple, _ in self._inner.triples(pattern, self._lower(context)):  # type: ignore[arg-type]
                plain = _plain(triple)
                # A SPARQL store of rdflib takes the literals "" and 0 in a pattern for wildcards.
                if not self._is_remote or all(
                    term in (None, found) for term, found in zip(pattern, plain, strict=True)
                ):
                    yield plain, [context]
            return
        if self._is_remote:
            yield from self._graph_by_graph(pattern)
            return
        for triple, contexts in self._inner.triples(pattern, None):  # type: ignore[arg-type]
            graphs = [self._upper(graph) for graph in contexts if graph is not None]
            graphs = [graph for graph in graphs if graph.identifier != POSITIONS]
            if graphs:
                yield _plain(triple), graphs

    def _graph_by_graph(self, pattern: Pattern) -> Iterator[tuple[RdflibTriple, list[Graph]]]:
        names = {DATASET_DEFAULT_GRAPH_ID: None} | {graph.identifier: None for graph in self._known(None)}
        for name in names:
            yield from self._below(pattern, Graph(self._owner, name))

    def _adds(self, triple: RdflibTriple, context: Graph) -> bool:
        return any(True for _ in self._added.triples(triple, context))

    def _holds(self, triple: RdflibTriple, context: Graph) -> bool:
        """Whether it was added, or is in the store and was not removed."""
        if self._adds(triple, context):
            return True
        if _key(triple, context) in self._removed:
            return False
        return any(True for _ in self._below(triple, context))

    def as_kept(self, triple: RdflibTriple) -> RdflibTriple:
        """The triple as the store would say it when it is asked: many rewrite literals."""
        subject, predicate, object_ = triple
        if isinstance(object_, Literal) and (object_.datatype is not None or object_.language):
            return subject, predicate, self._kept_literal(*_parts(object_))
        return triple

    def contexts(self, triple: RdflibTriple | None) -> Iterator[Graph]:
        """The graphs of both."""
        if triple is not None:
            found = {graph.identifier: graph for _, graphs in self.triples(triple, None) for graph in graphs if graph}
            return iter(found.values())
        below = {graph.identifier: graph for graph in self._known(None)}
        above = {graph.identifier: graph for graph in self._added.contexts()} | self._new_graphs
        return iter([graph for name, graph in (below | above).items() if name not in self._gone_graphs])

    def _known(self, triple: RdflibTriple | None) -> Iterator[Graph]:
        graphs = (self._upper(graph) for graph in self._inner.contexts(triple))
        return (graph for graph in graphs if graph.identifier != POSITIONS)

    def size(self, context: Graph | None) -> int:
        """Counted by the store where that is enough."""
        if self.is_clean and context is not None:
            return self._inner.__len__(self._lower(context))
        return len({_key(triple, None) for triple, _ in self.triples((None, None, None), context)})

    def add(self, triple: RdflibTriple, context: Graph | None, quoted: bool) -> bool:  # noqa: FBT001 - as in rdflib
        """Keep it for the commit."""
        assert context is not None, "stores with named graphs are told one of them"
        if quoted:
            raise UsageError(f"formulae are captured in rdflib's Memory, not in {type(self._inner).__name__}")
        self._check_blank_nodes(triple)
        if self._holds(triple, context):
            return False
        key = _key(triple, context)
        if key in self._removed:
            del self._removed[key]
            if not self._is_unsure:
                return True
        self._added.add(triple, context)
        return True

    def _check_blank_nodes(self, triple: RdflibTriple) -> None:
        """A SPARQL store of rdflib refuses blank nodes, unless it was told how to write them. Then the log has none."""
        write = getattr(self._inner, "node_to_sparql", None)
        if write is None:
            return
        for term in triple:
            if isinstance(term, BNode):
                try:
                    write(term)
                except Exception as error:
                    raise UsageError(f"the store does not take the blank node {term.n3()}: {error}") from error

    def remove(self, triple: RdflibTriple, context: Graph | None) -> bool:
        """Keep it for the commit."""
        assert context is not None, "stores with named graphs are told one of them"
        if not self._holds(triple, context):
            return False
        if self._adds(triple, context):
            self._added.remove(triple, context)
            if not self._is_unsure:
                return True
        self._removed[_key(triple, context)] = None
        return True

    def remove_all(self, pattern: Pattern, context: Graph | None, found: list[Placed]) -> None:
        """Keep it for the commit."""
        del pattern, context
        for triple, graph in found:
            self.remove(triple, graph)

    def add_graph(self, context: Graph) -> None:
        """Keep it for the commit."""
        if self._gone_graphs.pop(context.identifier, None) is None:
            self._new_graphs[context.identifier] = context

    def remove_graph(self, context: Graph) -> None:
        """Keep it for the commit."""
        self._added.remove_graph(context)
        if self._new_graphs.pop(context.identifier, None) is None:
            self._gone_graphs[context.identifier] = context

    def standing(self, log_id: str) -> Standing | None:
        """What stands in the graph of positions."""
        found = [(predicate, str(value)) for (_, predicate, value), _ in self._entries(_log(log_id))]
        versions = [text for predicate, text in found if predicate == _POSITION]
        if not versions:
            return None
        said = dict(found)
        if said.get(_PART, _EVERYTHING) != _EVERYTHING:
            raise UsageError(
                f"the store has a part of the log, {said[_PART]}, which a follower has written: capture another store"
            )
        histories = [text for predicate, text in found if predicate == _HISTORY]
        if histories and _NAME not in said:
            position = Position(log_id, 0, None)
        else:
            try:
                position = least_position(log_id, versions, histories)
            except UsageError as error:
                raise UsageError(
                    f"in the graph <{POSITIONS}> of the store, of the log {log_id}, {error}: put it right, or capture "
                    "another store"
                ) from None
        pending = frozenset(text for predicate, text in found if predicate == _PENDING)
        return Standing(position, pending, said.get(_NAME))

    def other_standings(self, log_id: str) -> list[Standing]:
        """What stands in the graph of positions for other logs, the furthest first."""
        logs = {
            str(log).removeprefix(_UUID)
            for (log, _, _), _ in self._inner.triples((None, _POSITION, None), self._book)
            if str(log).startswith(_UUID)
        }
        standings = [standing for other in logs - {log_id} if (standing := self.standing(other)) is not None]
        return sorted(standings, key=lambda standing: standing.position.version, reverse=True)

    def _entries(self, log: URIRef) -> Iterable[Any]:
        return self._inner.triples((log, None, None), self._book)

    def forget(self, log_id: str) -> None:
        """Delete it from the graph of positions."""
        entries = [(DELETED, triple, self._book) for triple, _ in self._entries(_log(log_id))]
        if entries:
            self._write(entries)

    def settle(self, net: Net, standing: Standing, namespaces: dict[str, str]) -> None:
        """Change the store."""
        assert self.is_clean, "the transaction was taken back before"
        pending, entries = self._entry_changes(standing, namespaces)
        deletes = ((DELETED, self.as_kept(quad[:3]), self._named(quad[3])) for quad in net.deletes)
        adds = ((ADDED, quad[:3], self._named(quad[3])) for quad in net.adds)
        self._write(chain(pending, deletes, adds, entries))

    def keep(self, standing: Standing, namespaces: dict[str, str]) -> None:
        """Let the store have the layer."""
        # What has to be known is asked before the first change.
        pending, entries = self._entry_changes(standing, namespaces)
        there = {graph.identifier for graph in self._known(None)} if self._new_graphs or self._gone_graphs else set()
        self._is_unsure = True
        deletes = ((DELETED, key[:3], self._named(key[3])) for key in self._removed)
        adds = (
            (ADDED, triple, self._lower(graph))
            for graph in list(self._added.contexts())
            for triple, _ in self._added.triples((None, None, None), graph)
        )
        if isinstance(self._inner, SPARQLUpdateStore):  # it has the graphs that have triples
            self._write(chain(pending, deletes, adds, entries))
        else:
            self._write(chain(pending, deletes, adds))
            self._change_graphs(there)
            self._write(entries)
        self.reset()

    def _change_graphs(self, there: set[IdentifiedNode]) -> None:
        for name, graph in self._new_graphs.items():
            if name not in there and name != DATASET_DEFAULT_GRAPH_ID:
                self._inner.add_graph(self._lower(graph))
        for name, graph in self._gone_graphs.items():
            if name in there:
                self._inner.remove_graph(self._lower(graph))

    def namespaces(self) -> dict[str, str]:
        """What was kept, by any log, and what the store has bound itself."""
        kept = (str(text).partition(" ") for (_, _, text), _ in self._inner.triples((None, _PREFIX, None), self._book))
        return {name: str(iri) for name, iri in self._inner.namespaces()} | {name: iri for name, _, iri in kept}

    def _entry_changes(self, standing: Standing, namespaces: dict[str, str]) -> tuple[list[Written], list[Written]]:
        """What changes of what the store says of a log: the patches that are new in it, to be said first; and the rest.

        Of that first what is new, and the position that was last of all.
        """
        position = standing.position
        assert position.log_id is not None
        log = _log(position.log_id)
        before = {(predicate, str(value)): value for (_, predicate, value), _ in self._entries(log)}
        wanted = {(_PREFIX, text): Literal(text) for text in (f"{name} {iri}" for name, iri in namespaces.items())}
        wanted |= {(_PENDING, patch): Literal(patch) for patch in standing.pending}
        if position.hash is not None:
            text = f"{position.version}:{position.hash.hex()}"
            wanted[_HISTORY, text] = Literal(text)
            wanted |= {
                (_NAME, standing.name or ""): Literal(standing.name or ""),
                (_PART, _EVERYTHING): Literal(_EVERYTHING),
            }
        for predicate, text in ((_NAME, standing.name or ""), (_PART, _EVERYTHING)):
            wanted[predicate, text] = Literal(text)
        wanted[_POSITION, str(position.version)] = Literal(position.version)
        known = {_POSITION, _HISTORY, _NAME, _PART, _PENDING, _PREFIX}
        added: list[Written] = [
            (ADDED, (log, predicate, wanted[predicate, text]), self._book)
            for predicate, text in sorted(wanted.keys() - before.keys())
        ]
        pending = [entry for entry in added if entry[1][1] == _PENDING]
        rest = [entry for entry in added if entry[1][1] != _PENDING]
        gone = sorted(
            (key for key in before.keys() - wanted.keys() if key[0] in known), key=lambda key: key[0] == _POSITION
        )
        rest += [(DELETED, (log, predicate, before[predicate, text]), self._book) for predicate, text in gone]
        return pending, rest

    def _write(self, changes: Iterable[Written]) -> None:
        """Change the inner store, in this order; an endpoint by one request."""
        if isinstance(self._inner, SPARQLUpdateStore):
            if text := update_text(changes, self._inner.node_to_sparql):
                self._inner.update(text)
        else:
            for kind, group in groupby(changes, key=itemgetter(0)):
                if kind == DELETED:
                    for _, triple, graph in group:
                        self._inner.remove(triple, graph)
                    continue
                quads = ((*triple, graph) for _, triple, graph in group)
                while batch := list(islice(quads, _BATCH)):
                    self._inner.addN(batch)  # a list: oxrdflib goes through it twice
        self._inner.commit()

    def _named(self, name: IdentifiedNode | None) -> Graph:
        return Graph(self._inner, name)

    def _lower(self, graph: Graph) -> Graph:
        """The graph as the inner store knows it."""
        return Graph(self._inner, graph.identifier)

    def _upper(self, graph: Graph | IdentifiedNode) -> Graph:
        """The graph as those know it who read it through us."""
        return Graph(self._owner, graph.identifier if isinstance(graph, Graph) else graph)


def _key(triple: RdflibTriple, graph: Graph | None) -> _Key:
    return (*triple, None if graph is None else graph.identifier)


def _plain(triple: RdflibTriple) -> RdflibTriple:
    """The triple with a string as a plain literal: in RDF 1.1 it is the same term, in rdflib another."""
    subject, predicate, object_ = triple
    if isinstance(object_, Literal) and object_.datatype == _STRING:
        return subject, predicate, Literal(str(object_))
    return triple


def _log(log_id: str) -> URIRef:
    return URIRef(f"{_UUID}{log_id}")


def _parts(literal: Literal) -> tuple[str, str | None, str | None]:
    return str(literal), literal.language, None if literal.datatype is None else str(literal.datatype)


def _scratch(inner: Store) -> Store | None:
    """An empty store of the same kind, where these are to be had."""
    kinds = (kind for kind in type(inner).__mro__ if kind.__module__.partition(".")[0] == "oxrdflib")
    kind = next(kinds, None)
    return None if kind is None else kind()


def _kept_literal(scratch: Store | None, lexical: str, language: str | None, datatype: str | None) -> Literal:
    """What a store makes of a literal: asked of an empty one of its kind, or else what rdflib itself makes of it."""
    kind = None if datatype is None else URIRef(datatype)
    kept: Any = Literal(lexical, lang=language, datatype=kind, normalize=scratch is None)
    if scratch is not None:
        place, graph = URIRef("urn:patchlog:scratch"), Graph(scratch, DATASET_DEFAULT_GRAPH_ID)
        scratch.add((place, place, kept), graph)
        ((_, _, kept), _) = next(iter(scratch.triples((place, place, None), graph)))
        scratch.remove((None, None, None), graph)
    return Literal(str(kept)) if kept.datatype == _STRING else kept
