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
from patchlog.followers.contract import Change, Dataset
from patchlog.followers.endpoint import Endpoint
from patchlog.followers.positions import GRAPH, PREDICATE, position_quad
from patchlog.followers.skolem import skolemised
from patchlog.followers.sparql_target import check_plain
from patchlog.log.records import LogDescription
from patchlog.model import DEFAULT_GRAPH, Quad, Term, Triple
from patchlog.text.terms import Literal, literal_term, parse_term, unescape

__all__ = ["GraphStoreTarget"]

_NTRIPLES: Final = "application/n-triples"
_TRIPLES_A_REQUEST: Final = 50_000
_WRITTEN: Final = "<urn:patchlog:graph>"


class GraphStoreTarget:
    """A store by the URL of its graph store."""

    def __init__(self, url: str) -> None:
        self._store = Endpoint(url)
        self._log_id = ""
        self._written: set[Term] = set()

    def begin(self, log: LogDescription) -> int | None:
        """Read the graph of positions."""
        self._log_id = log.id
        own = f"<urn:uuid:{log.id}>"
        said = [(predicate, object) for subject, predicate, object in self._read(f"<{GRAPH}>") if subject == own]
        self._written = {_graph_of(object) for predicate, object in said if predicate == _WRITTEN}
        versions = (parse_term(object) for predicate, object in said if predicate == f"<{PREDICATE}>")
        return max((int(version.lexical) for version in versions if isinstance(version, Literal)), default=None)

    def apply(self, change: Change) -> None:
        """Change each graph, then the position."""
        adds, deletes = self._by_graph(change.effect.adds), self._by_graph(change.effect.deletes)
        self._note(adds.keys())
        for graph in sorted(adds.keys() | deletes.keys()):
            if graph in deletes:
                self._write(graph, (self._read(graph) - deletes[graph]) | adds[graph])
            else:
                self._post(graph, adds[graph])
        self._move(change.record.version)

    def load(self, dataset: Dataset) -> None:
        """Put every graph anew, and empty those that were written and are not there any more."""
        graphs = self._by_graph(dataset.quads)
        self._note(graphs.keys())
        for graph in sorted(self._written):
            self._write(graph, graphs[graph])
        self._move(dataset.version)

    def close(self) -> None:
        """Close the connections."""
        self._store.close()

    def _by_graph(self, quads: Iterable[Quad]) -> defaultdict[Term, set[Triple]]:
        graphs: defaultdict[Term, set[Triple]] = defaultdict(set)
        for quad in quads:
            plain = skolemised(quad, self._log_id)
            check_plain(plain)
            graphs[plain[3]].add(plain[:3])
        return graphs

    def _note(self, graphs: Iterable[Term]) -> None:
        """Let the store know which graphs are going to be written."""
        new = set(graphs) - self._written
        if new:
            self._post(f"<{GRAPH}>", {(f"<urn:uuid:{self._log_id}>", _WRITTEN, _noted(graph)) for graph in new})
            self._written |= new

    def _move(self, version: int) -> None:
        position = position_quad(self._log_id, version)[:3]
        others = {triple for triple in self._read(f"<{GRAPH}>") if triple[:2] != position[:2]}
        self._write(f"<{GRAPH}>", others | {position})

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
