"""Apache Jena Fuseki's patch endpoint (`fuseki:patch`) as the target: it takes RDF Patch as it is.

A patch and the position, in the graph `<urn:patchlog:positions>`, are one request and one transaction of Fuseki's:
exactly once. Blank nodes keep their labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import chain

from patchlog.engine import RdfPatchWriter
from patchlog.errors import UsageError
from patchlog.followers.contract import Change, Dataset
from patchlog.followers.endpoint import Endpoint, sibling
from patchlog.followers.positions import position_quad
from patchlog.followers.sparql_target import check_plain
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
        self._log_id = ""
        self._replaces = replaces
        self._position: int | None = None

    def begin(self, log: LogDescription) -> int | None:
        """Ask the store."""
        self._log_id = log.id
        self._position = self._queries.position(log.id)
        return self._position

    def apply(self, change: Change) -> None:
        """Send the effect as one patch."""
        try:
            self._send(change.effect.operations()[1:-1], change.record.version)
        except UsageError as error:
            raise UsageError(f"version {change.record.version}: {error}") from error

    def load(self, dataset: Dataset) -> None:
        """Empty the store by an update, and fill it by a patch.

        Raises UsageError where that takes what is not of this log, unless that was asked for.
        """
        if not self._replaces:
            self._queries.check_may_be_emptied(self._log_id)
        with closing(Endpoint(sibling(self._patches.url, "patch", "update"))) as updates:
            updates.ask("POST", content=b"DROP SILENT ALL", headers={"Content-Type": "application/sparql-update"})
        self._position = None
        namespaces = (NamespaceAdd(name, iri) for (_, name), iri in dataset.namespaces.items())
        self._send(chain(namespaces, (Add(*quad) for quad in dataset.quads)), dataset.version)

    def close(self) -> None:
        """Close the connections."""
        self._patches.close()
        self._queries.close()

    def _send(self, operations: Iterable[Operation], version: int) -> None:
        self._patches.ask(
            "POST",
            content=_text(chain([TransactionStart()], _plain(operations), self._moves(version), [TransactionCommit()])),
            headers={"Content-Type": "application/rdf-patch"},
        )
        self._position = version

    def _moves(self, version: int) -> Iterator[Operation]:
        if self._position is not None:
            yield Delete(*position_quad(self._log_id, self._position))
        yield Add(*position_quad(self._log_id, version))


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
