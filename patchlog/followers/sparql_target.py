"""Any store with SPARQL 1.1 Update as the target.

The position stands in the graph `<urn:patchlog:positions>` and changes in the same request as the data. A patch of more
than a few thousand quads takes several requests, of which the last moves the position: after a crash it is applied from
its beginning, which changes nothing that was applied. Blank nodes become IRIs (`skolem`): SPARQL cannot delete a blank
node by its label. Namespaces are left out, as a SPARQL store has none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Final

from patchlog.errors import UsageError
from patchlog.followers.contract import Change, Dataset
from patchlog.followers.endpoint import Endpoint, sibling
from patchlog.followers.positions import GRAPH, LOADS, PREDICATE, position_quad
from patchlog.followers.skolem import skolemised
from patchlog.log.records import LogDescription
from patchlog.model import DEFAULT_GRAPH, Quad

__all__ = ["SparqlTarget", "check_plain"]

_QUADS_A_REQUEST: Final = 5_000


class SparqlTarget:
    """A store by the URL for its updates. `query_url` is that for queries, where it is not `…/query`."""

    def __init__(self, url: str, query_url: str | None = None, *, replaces: bool = False) -> None:
        self._updates = Endpoint(url)
        self._queries = Endpoint(query_url or sibling(url, "update", "query"))
        self._log_id = ""
        self._replaces = replaces

    def begin(self, log: LogDescription) -> int | None:
        """Ask the store."""
        self._log_id = log.id
        return self._queries.position(log.id)

    def apply(self, change: Change) -> None:
        """Delete, add, and move the position."""
        try:
            deletes = self._steps("DELETE DATA", sorted(change.effect.deletes))
            adds = self._steps("INSERT DATA", sorted(change.effect.adds))
            self._send([*deletes, *adds], change.record.version)
        except UsageError as error:
            raise UsageError(f"version {change.record.version}: {error}") from error

    def load(self, dataset: Dataset) -> None:
        """Empty the store, all of it, and fill it again. Its readers see that.

        Raises UsageError where that takes what is not of this log, unless that was asked for.
        """
        if not self._replaces:
            self._queries.check_may_be_emptied(self._log_id)
        loads = f"GRAPH <{GRAPH}> {{ <urn:uuid:{self._log_id}> <{LOADS}> {dataset.version} }}"
        self._request(["DROP SILENT ALL", f"INSERT DATA {{ {loads} }}"])
        done = (f"DELETE DATA {{ {loads} }}", 0)
        self._send(chain(self._steps("INSERT DATA", dataset.quads), [done]), dataset.version)

    def close(self) -> None:
        """Close the connections."""
        self._updates.close()
        self._queries.close()

    def _steps(self, verb: str, quads: Iterable[Quad]) -> Iterator[tuple[str, int]]:
        iterator = iter(quads)
        while batch := list(islice(iterator, _QUADS_A_REQUEST)):
            yield f"{verb} {{ {_pattern(self._plain(quad) for quad in batch)} }}", len(batch)

    def _plain(self, quad: Quad) -> Quad:
        plain = skolemised(quad, self._log_id)
        check_plain(plain)
        return plain

    def _send(self, steps: Iterable[tuple[str, int]], version: int) -> None:
        waiting: list[str] = []
        size = 0
        for step, quads in steps:
            if waiting and size + quads > _QUADS_A_REQUEST:
                self._request(waiting)
                waiting, size = [], 0
            waiting.append(step)
            size += quads
        log = f"<urn:uuid:{self._log_id}> <{PREDICATE}>"
        waiting.append(f"DELETE WHERE {{ GRAPH <{GRAPH}> {{ {log} ?version }} }}")
        waiting.append(f"INSERT DATA {{ {_pattern([position_quad(self._log_id, version)])} }}")
        self._request(waiting)

    def _request(self, steps: Sequence[str]) -> None:
        self._updates.ask(
            "POST", content=" ;\n".join(steps).encode(), headers={"Content-Type": "application/sparql-update"}
        )


def check_plain(quad: Quad) -> None:
    """Raise UsageError for a generalized statement: RDF stores have no place for it."""
    subject, predicate, _, graph = quad
    if subject.startswith('"') or not _is_iri(predicate) or (graph != DEFAULT_GRAPH and not _is_iri(graph)):
        raise UsageError(f"{' '.join(quad)} is a generalized statement, which an RDF store cannot hold")


def _is_iri(term: str) -> bool:
    return term.startswith("<") and not term.startswith("<<")


def _pattern(quads: Iterable[Quad]) -> str:
    graphs = defaultdict(list)
    for subject, predicate, object, graph in quads:
        graphs[graph].append(f"{subject} {predicate} {object} .")
    return " ".join(
        triples if graph == DEFAULT_GRAPH else f"GRAPH {graph} {{ {triples} }}"
        for graph, triples in ((graph, "\n".join(lines)) for graph, lines in graphs.items())
    )
