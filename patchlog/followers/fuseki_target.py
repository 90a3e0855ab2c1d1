"""Apache Jena Fuseki's patch endpoint (`fuseki:patch`) as the target: it takes RDF Patch as it is.

A patch and the position, in the graph `<urn:patchlog:positions>`, are one request and one transaction of Fuseki's:
exactly once. Blank nodes keep their labels.

RDF Patch has no conditions. A Fuseki that was restarted empty, or older, may get patches on top of that before `check`
finds it: then its record lacks what is written once, or has two positions. Going on from the least of them mends it,
as the last patch that touches a quad says what becomes of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import chain

from patchlog.engine import RdfPatchWriter
from patchlog.errors import UsageError
from patchlog.followers.contract import Change, Dataset, TargetMoved
from patchlog.followers.endpoint import Endpoint, sibling
from patchlog.followers.positions import Positions
from patchlog.followers.sparql_target import check_plain
from patchlog.log.position import Position
from patchlog.log.records import LogDescription
from patchlog.model import (
    Add,
    Delete,
    NamespaceAdd,
    NamespaceDelete,
    Operation,
    TransactionCommit,
    TransactionStart,
)

__all__ = ["FusekiTarget"]


class FusekiTarget:
    """A dataset by the URL of its patch endpoint. `query_url` is that for queries, where it is not `…/query`."""

    def __init__(self, url: str, query_url: str | None = None, *, replaces: bool = False) -> None:
        self._patches = Endpoint(url)
        self._queries = Endpoint(query_url or sibling(url, "patch", "query"))
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
        if any(self._positions.move(position)):
            self._send((), position)
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
        """Send the effect as one patch."""
        after = Position(None, change.record.version, change.record.chain_hash)
        try:
            self._send(change.effect.operations()[1:-1], after)
        except UsageError as error:
            raise UsageError(f"version {change.record.version}: {error}") from error

    def load(self, dataset: Dataset) -> None:
        """Empty the store by an update, and fill it by a patch.

        Raises UsageError where that takes what is not of this log, unless that was asked for.
        """
        if not self._replaces:
            self._queries.check_may_be_emptied(self._positions.log_id)
        with closing(Endpoint(sibling(self._patches.url, "patch", "update"))) as updates:
            updates.update("DROP SILENT ALL")
        self._positions.stored = []
        namespaces = (NamespaceAdd(name, iri) for (_, name), iri in dataset.namespaces.items())
        self._send(chain(namespaces, (Add(*quad) for quad in dataset.quads)), dataset.position)

    def close(self) -> None:
        """Close the connections."""
        self._patches.close()
        self._queries.close()

    def _send(self, operations: Iterable[Operation], after: Position) -> None:
        deletes, adds = self._positions.move(after)
        moves: list[Operation] = [*(Delete(*quad) for quad in deletes), *(Add(*quad) for quad in adds)]
        self._patches.ask(
            "POST",
            content=_text(chain([TransactionStart()], _plain(operations), moves, [TransactionCommit()])),
            headers={"Content-Type": "application/rdf-patch"},
        )
        self._positions.moved(after)


def _plain(operations: Iterable[Operation]) -> Iterator[Operation]:
    for operation in operations:
        match operation:
            case Add(subject, predicate, object, graph) | Delete(subject, predicate, object, graph):
                check_plain((subject, predicate, object, "" if graph is None or graph.startswith("_:") else graph))
                yield operation
            case NamespaceAdd(name, iri, _):  # Fuseki has one set of prefixes for all graphs
                yield NamespaceAdd(name, iri)
            case NamespaceDelete(name, iri, _):
                yield NamespaceDelete(name, iri)


def _text(operations: Iterable[Operation]) -> Iterator[bytes]:
    writer = RdfPatchWriter()
    for operation in operations:
        writer.accept(operation)
        if piece := writer.take():
            yield piece
    yield writer.finish()
