"""Where parsed statements go: the graphs of an rdflib store, in batches.

The default graph is the graph that is parsed into, named graphs are its siblings in the same store, as rdflib's own
quad parsers have it. So `Dataset.parse` fills the dataset, and `Graph.parse` shows the default graph of what it read;
its named graphs lie in its store, where a `Dataset` on that store finds them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, runtime_checkable

from rdflib.graph import DATASET_DEFAULT_GRAPH_ID, Graph, QuotedGraph
from rdflib.namespace import XSD
from rdflib.plugins.stores.memory import Memory, SimpleMemory
from rdflib.store import Store
from rdflib.term import Identifier, Literal, URIRef

from patchlog.errors import UsageError
from patchlog.rdflib_hook.collector import paused_collector
from patchlog.rdflib_hook.contents import default_graph_of
from patchlog.rdflib_hook.terms import RdflibStatement

__all__ = ["Target", "check_prefix"]


@runtime_checkable
class Forgetful(Protocol):
    """A store that can forget a prefix, such as a captured one."""

    def declare(self, prefix: str, namespace: str | None) -> None:
        """Let a prefix stand for a namespace or for nothing, and all others for what they do."""


class Target:
    """The store behind a graph, with its graphs by name."""

    def __init__(self, sink: Graph) -> None:
        if isinstance(sink, QuotedGraph):
            raise UsageError("a formula (QuotedGraph) cannot be parsed into; parse into a Graph or a Dataset")
        self._default = default_graph_of(sink)
        self._store = sink.store
        self._graphs: dict[Identifier, Graph] = {DATASET_DEFAULT_GRAPH_ID: self._default}

    def add(self, statements: list[RdflibStatement]) -> None:
        """Add a batch: triples to the default graph, and quads to their graphs."""
        # By the store: Graph.addN would check again what the decoder has built, and drop the quads of other graphs.
        default, graph = self._default, self.graph
        with paused_collector():
            self._store.addN(
                (s[0], s[1], s[2], default) if len(s) == 3 else (s[0], s[1], s[2], graph(s[3])) for s in statements
            )

    def delete(self, statements: Iterable[RdflibStatement]) -> None:
        """Delete triples from the default graph, and quads from their graphs."""
        for statement in statements:
            s, p, o = statement[:3]
            graph = self._default if len(statement) == 3 else self.graph(statement[3])
            self._store.remove((s, p, o), graph)
            if isinstance(o, Literal) and o.datatype is None and not o.language:
                # An xsd:string is the same term in RDF 1.1, but another in rdflib.
                self._store.remove((s, p, Literal(o, datatype=XSD.string)), graph)

    def bind(self, name: str, iri: str) -> None:
        """Let the prefix stand for the IRI, whatever it stood for."""
        check_prefix(name)
        self._default.bind(name, iri, override=True, replace=True)

    def bind_all(self, namespaces: Iterable[tuple[str, str]]) -> None:
        """Bind several prefixes, in their order."""
        for name, iri in namespaces:
            self.bind(name, iri)

    def declare(self, name: str, iri: str | None) -> None:
        """Let the prefix stand for the IRI alone, or for nothing, as a log has it: other prefixes stay as they are.

        rdflib can neither let two prefixes stand for one IRI nor forget one. Its stores in memory and captured ones do.
        """
        if isinstance(self._store, Forgetful):
            self._store.declare(name, iri)
        elif (maps := _maps(self._store)) is None:
            if iri is not None:
                self.bind(name, iri)
        else:
            names, prefixes = maps
            before = names.pop(name, None)
            if before is not None and prefixes.get(before) == name:
                del prefixes[before]
                prefixes.update({bound: other for other, bound in names.items() if bound == before})
            if iri is not None:
                names[name] = URIRef(iri)
                prefixes[names[name]] = name
        self._default.namespace_manager.reset()

    def graph(self, name: Identifier) -> Graph:
        """The graph of that name."""
        graph = self._graphs.get(name)
        if graph is None:
            if not self._store.context_aware:
                raise UsageError(f"the store {type(self._store).__name__} has no named graphs; parse into a Dataset")
            graph = self._graphs[name] = Graph(self._store, name, namespace_manager=self._default.namespace_manager)
        return graph


def _maps(store: Store) -> list[Any] | None:
    """The maps from prefixes and from IRIs in rdflib's own stores in memory."""
    for kind in (Memory, SimpleMemory):
        if isinstance(store, kind):
            return [getattr(store, f"_{kind.__name__}__{part}") for part in ("namespace", "prefix")]
    return None


def check_prefix(name: str) -> None:
    """Raise UsageError for a prefix that rdflib cannot bind."""
    if " " in name:
        raise UsageError(f"rdflib cannot bind the prefix {name!r}: it contains a space")
