"""Any store with SPARQL 1.1 Update as the target.

The position stands in the graph `<urn:patchlog:positions>`. Each request changes data only where the store has the
position that this follower left there, and moves the position with them:

    DELETE { … old position } INSERT { … new position } WHERE { old position }

So a store that was restarted empty, restored, or written by another follower takes nothing of it, which `check` finds.
A patch of more than a few thousand quads takes several requests, of which the last moves the position: after a crash it
is applied from its beginning, which changes nothing that was applied. Blank nodes become IRIs (`skolem`): SPARQL cannot
delete a blank node by its label. Namespaces are left out, as a SPARQL store has none.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Final

from patchlog.errors import UsageError
from patchlog.followers.contract import Change, Dataset, TargetMoved
from patchlog.followers.endpoint import Endpoint, sibling
from patchlog.followers.positions import GRAPH, LOADS, Positions
from patchlog.followers.skolem import skolemised
from patchlog.log.position import Position
from patchlog.log.records import LogDescription
from patchlog.model import DEFAULT_GRAPH, Quad
from patchlog.text.sparql import in_sparql
from patchlog.text.terms import iri_term, literal_term

__all__ = ["SparqlTarget", "check_plain"]

_QUADS_A_REQUEST: Final = 5_000


class SparqlTarget:
    """A store by the URL for its updates. `query_url` is that for queries, where it is not `…/query`."""

    def __init__(self, url: str, query_url: str | None = None, *, replaces: bool = False) -> None:
        self._updates = Endpoint(url)
        self._queries = Endpoint(query_url or sibling(url, "update", "query"))
        self._positions: Positions
        self._replaces = replaces

    def begin(self, log: LogDescription, part: str) -> None:
        """Say which log this is, and which part of it."""
        self._positions = Positions(log, part)

    def position(self) -> Position | None:
        """Ask the store."""
        return self._positions.read(self._queries.positions())

    def keep(self, position: Position | None) -> None:
        """Go on from a position."""
        if position is None:
            return
        deletes, adds = self._positions.move(position)
        if deletes or adds:
            parts = (("DELETE DATA", deletes), ("INSERT DATA", adds))
            self._updates.update(" ;\n".join(f"{verb} {{ {_pattern(quads)} }}" for verb, quads in parts if quads))
        self._positions.moved(position)

    def check(self) -> None:
        """Ask the store whether it has what was sent."""
        kept = self._positions.kept
        if self.position() != kept:
            raise TargetMoved

    def start_again(self) -> None:
        """Let what is there count for nothing: a load empties the store."""
        self._positions.start_again()

    def apply(self, change: Change) -> None:
        """Delete, add, and move the position."""
        after = Position(None, change.record.version, change.record.chain_hash)
        try:
            deletes = list(self._plain(sorted(change.effect.deletes)))
            adds = list(self._plain(sorted(change.effect.adds)))
            self._change(deletes, adds, after, self._where_it_was_left())
        except UsageError as error:
            raise UsageError(f"version {change.record.version}: {error}") from error

    def load(self, dataset: Dataset) -> None:
        """Empty the store, all of it, and fill it again. Its readers see that.

        Raises UsageError where that takes what is not of this log, unless that was asked for.
        """
        if not self._replaces:
            self._queries.check_may_be_emptied(self._positions.log_id)
        attempt = (iri_term(f"urn:uuid:{self._positions.log_id}"), iri_term(LOADS), literal_term(str(uuid.uuid4())))
        loads: Quad = (*attempt, iri_term(GRAPH))
        self._updates.update(f"DROP SILENT ALL ;\nINSERT DATA {{ {_pattern([loads])} }}")
        self._positions.stored, where = [], _pattern([loads])
        self._change((), self._plain(dataset.quads), dataset.position, where, loads)

    def close(self) -> None:
        """Close the connections."""
        self._updates.close()
        self._queries.close()

    def _where_it_was_left(self) -> str:
        """The condition that the store has the position that was left there."""
        if self._positions.stored:
            return _pattern(self._positions.stored)
        [position, *_] = self._positions.record(Position(None, 0, None))
        anywhere = _pattern([(*position[:2], "?position", position[3])])
        return f"FILTER NOT EXISTS {{ {anywhere} }}"

    def _plain(self, quads: Iterable[Quad]) -> Iterator[Quad]:
        for quad in quads:
            plain = skolemised(quad, self._positions.log_id)
            check_plain(plain)
            for term in plain:
                in_sparql(term)  # what cannot be written is refused before a part of the change is sent
            yield plain

    def _change(
        self, deletes: Iterable[Quad], adds: Iterable[Quad], after: Position, where: str, *obsolete: Quad
    ) -> None:
        """Delete, then add, then move the position, with as few requests as there may be."""
        from_record, to_record = self._positions.move(after)
        pending = chain((("DELETE", quad) for quad in deletes), (("INSERT", quad) for quad in adds))
        while True:
            batch = list(islice(pending, _QUADS_A_REQUEST))
            is_last = len(batch) < _QUADS_A_REQUEST
            gone = [quad for verb, quad in batch if verb == "DELETE"]
            come = [quad for verb, quad in batch if verb == "INSERT"]
            if is_last:
                gone += [*from_record, *obsolete]
                come += to_record
            parts = [f"{verb} {{ {_pattern(quads)} }}" for verb, quads in (("DELETE", gone), ("INSERT", come)) if quads]
            self._updates.update(f"{' '.join(parts)} WHERE {{ {where} }}")
            if is_last:
                self._positions.moved(after)
                return


def check_plain(quad: Quad) -> None:
    """Raise UsageError for a generalized statement: RDF stores have no place for it."""
    subject, predicate, _, graph = quad
    if subject.startswith('"') or not _is_iri(predicate) or (graph != DEFAULT_GRAPH and not _is_iri(graph)):
        raise UsageError(f"{' '.join(quad)} is a generalized statement, which an RDF store cannot hold")


def _is_iri(term: str) -> bool:
    return term.startswith("<") and not term.startswith("<<")


def _pattern(quads: Iterable[Quad]) -> str:
    graphs = defaultdict(list)
    for quad in quads:
        subject, predicate, object, graph = map(in_sparql, quad)
        graphs[graph].append(f"{subject} {predicate} {object} .")
    return " ".join(
        triples if graph == DEFAULT_GRAPH else f"GRAPH {graph} {{ {triples} }}"
        for graph, triples in ((graph, "\n".join(lines)) for graph, lines in graphs.items())
    )
