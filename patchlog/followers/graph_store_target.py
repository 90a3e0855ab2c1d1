"""A store with the SPARQL 1.1 Graph Store protocol as the target: each graph is read, changed and put back.

That is for stores that take no updates. A patch with adds only posts them; with deletes, the graph goes to and fro
whole. Several graphs of a patch change one after the other, and the position last: at least once, with idempotent
effects. Blank nodes become IRIs (`skolem`), and namespaces are left out.

The protocol cannot list graphs. So the graph of positions has those that were written, too: noted before the first
write, they are known where a snapshot has them no more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from patchlog import rdf
from patchlog.errors import UsageError
from patchlog.followers.contract import Change, Dataset, TargetMoved
from patchlog.followers.endpoint import Endpoint
from patchlog.followers.positions import GRAPH, Positions, values_of
from patchlog.followers.skolem import skolemised
from patchlog.followers.sparql_target import check_plain
from patchlog.log.position import Position
from patchlog.log.records import LogDescription
from patchlog.model import DEFAULT_GRAPH, Quad, Term, Triple
from patchlog.text.terms import iri_term, literal_term, unescape

__all__ = ["GraphStoreTarget"]

_NTRIPLES: Final = "application/n-triples"
_TRIPLES_A_REQUEST: Final = 50_000
_WRITTEN: Final = "<urn:patchlog:graph>"


class GraphStoreTarget:
    """A store by the URL of its graph store."""

    def __init__(self, url: str) -> None:
        self._store = Endpoint(url)
        self._positions: Positions
        self._written: set[Term] = set()

    def begin(self, log: LogDescription, part: str) -> None:
        """Say which log this is, and which part of it."""
        self._positions = Positions(log, part)

    def position(self) -> Position | None:
        """Read the graph of positions."""
        return self._read_position(self._read(f"<{GRAPH}>"))

    def keep(self, position: Position | None) -> None:
        """Go on from a position."""
        if position is None:
            return
        if any(self._positions.move(position)):
            self._put(self._read(f"<{GRAPH}>"), position)
        self._positions.moved(position)

    def check(self) -> None:
        """Read the graph of positions again."""
        kept = self._positions.kept
        if self.position() != kept:
            raise TargetMoved

    def start_again(self) -> None:
        """Let what is there count for nothing: a load puts all graphs that were written."""
        self._positions.start_again()

    def apply(self, change: Change) -> None:
        """Change each graph, then the position.

        The graph of positions is read just before it is written: where the store has gone back meanwhile, so has the
        position, and effects that are there already are applied again in their order.
        """
        adds, deletes = self._by_graph(change.effect.adds), self._by_graph(change.effect.deletes)
        self._note(adds.keys())
        for graph in sorted(adds.keys() | deletes.keys()):
            if graph in deletes:
                self._write(graph, (self._read(graph) - deletes[graph]) | adds[graph])
            else:
                self._post(graph, adds[graph])
        self._move(Position(None, change.record.version, change.record.chain_hash))

    def load(self, dataset: Dataset) -> None:
        """Put every graph anew, and empty those that were written and are not there any more."""
        graphs = self._by_graph(dataset.quads)
        self._note(graphs.keys())
        for graph in sorted(self._written):
            self._write(graph, graphs[graph])
        self._put(self._read(f"<{GRAPH}>"), dataset.position, replaces=True)

    def close(self) -> None:
        """Close the connections."""
        self._store.close()

    def _by_graph(self, quads: Iterable[Quad]) -> defaultdict[Term, set[Triple]]:
        graphs: defaultdict[Term, set[Triple]] = defaultdict(set)
        for quad in quads:
            plain = skolemised(quad, self._positions.log_id)
            check_plain(plain)
            graphs[plain[3]].add(plain[:3])
        return graphs

    def _note(self, graphs: Iterable[Term]) -> None:
        """Let the store know which graphs are going to be written."""
        new = set(graphs) - self._written
        if new:
            self._post(
                f"<{GRAPH}>", {(f"<urn:uuid:{self._positions.log_id}>", _WRITTEN, _noted(graph)) for graph in new}
            )
            self._written |= new

    def _move(self, after: Position) -> None:
        kept, there = self._positions.kept, self._read(f"<{GRAPH}>")
        if self._read_position(there) != kept:
            raise TargetMoved
        self._put(there, after)

    def _read_position(self, there: set[Triple]) -> Position | None:
        try:
            return self._positions.read(values_of((*triple, f"<{GRAPH}>") for triple in there))
        finally:
            of_this_log = {iri_term(f"urn:uuid:{id}") for id in self._positions.ids}
            self._written = {_graph_of(o) for s, p, o in there if p == _WRITTEN and s in of_this_log}

    def _put(self, there: set[Triple], after: Position, *, replaces: bool = False) -> None:
        deletes, adds = self._positions.move(after, replaces=replaces)
        self._write(f"<{GRAPH}>", (there - {quad[:3] for quad in deletes}) | {quad[:3] for quad in adds})
        self._positions.moved(after)

    def _read(self, graph: Term) -> set[Triple]:
        answer = self._store.ask("GET", params=_named(graph), headers={"Accept": _NTRIPLES}, missing_ok=True)
        if not answer.is_success:
            return set()
        media_type = answer.headers.get("Content-Type", _NTRIPLES).partition(";")[0]
        if media_type not in (_NTRIPLES, "text/plain"):
            raise UsageError(f"{self._store.url} answered with {media_type}, and not with {_NTRIPLES}")
        return {(s, p, o) for s, p, o, *_ in rdf.read(answer.content, "nt")}

    def _write(self, graph: Term, triples: Iterable[Triple]) -> None:
        self._store.ask("PUT", params=_named(graph), content=_lines(triples), headers={"Content-Type": _NTRIPLES})

    def _post(self, graph: Term, triples: Iterable[Triple]) -> None:
        waiting = sorted(triples)
        for start in range(0, len(waiting), _TRIPLES_A_REQUEST):
            piece = _lines(waiting[start : start + _TRIPLES_A_REQUEST])
            self._store.ask("POST", params=_named(graph), content=piece, headers={"Content-Type": _NTRIPLES})


def _noted(graph: Term) -> Term:
    return literal_term("") if graph == DEFAULT_GRAPH else graph


def _graph_of(noted: Term) -> Term:
    return DEFAULT_GRAPH if noted == literal_term("") else noted


def _named(graph: Term) -> dict[str, str]:
    return {"default": ""} if graph == DEFAULT_GRAPH else {"graph": unescape(graph[1:-1])}


def _lines(triples: Iterable[Triple]) -> bytes:
    return "".join(f"{s} {p} {o} .\n" for s, p, o in sorted(triples)).encode()
