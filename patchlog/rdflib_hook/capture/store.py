"""The store that records: rdflib's calls on one side, an inner store and a log on the other.

All changes go through here, whatever call they came by, and the inner store's own ways of changing many things at once
are not used: nothing slips by. docs/capture.md says what a commit does, and what is left after a crash.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import rdflib.plugin
from rdflib.graph import Graph
from rdflib.namespace import XSD
from rdflib.plugins.sparql.sparql import Query, Update
from rdflib.plugins.stores.memory import Memory
from rdflib.query import Result
from rdflib.store import VALID_STORE, Store
from rdflib.term import Identifier, Literal, URIRef

from patchlog.codec.patch_ids import parse_patch_id
from patchlog.errors import UsageError
from patchlog.log.position import Position
from patchlog.outbox import QueuedPatch
from patchlog.pipes import batches
from patchlog.rdflib_hook.capture.batching import Batching
from patchlog.rdflib_hook.capture.connection import Connection
from patchlog.rdflib_hook.capture.session import Session
from patchlog.rdflib_hook.capture.settings import HeaderValue, Settings, header_values, settings_of
from patchlog.rdflib_hook.capture.sparql import UpdateEngine
from patchlog.rdflib_hook.capture.workbench import Workbench
from patchlog.rdflib_hook.collector import paused_collector

__all__ = ["CapturedStore"]

_logger: Final = logging.getLogger("patchlog.capture")

_STRING: Final = XSD.string
_SPEAKS_OF_GRAPHS: Final = re.compile(r"\b(?:graph|from)\b", re.IGNORECASE)


class CapturedStore(Store):
    """An rdflib store whose changes are patches of a log. Threads may share it: they share its transaction, too."""

    context_aware = True
    formula_aware = True
    graph_aware = True
    transaction_aware = True

    def __init__(
        self,
        configuration: str | None = None,
        identifier: Identifier | None = None,
        *,
        inner: Store | None = None,
    ) -> None:
        super().__init__(None, identifier)
        self._lock = threading.RLock()
        self._updates = UpdateEngine(self)
        self._connection: Connection | None = None
        self._session: Session | None = None
        self._batching: Batching | None = None
        self._depth = 0  # of `exclusively`, in which nothing commits by itself
        self._hold(Memory() if inner is None else inner)
        if configuration is not None:
            self.open(configuration)

    def _hold(self, inner: Store) -> None:
        if isinstance(inner, CapturedStore):
            raise UsageError("the store is captured already")
        self._inner = inner
        self.context_aware = inner.context_aware
        self.formula_aware = inner.formula_aware
        self.graph_aware = inner.graph_aware
        # Whoever subscribes hears the inner store. Those of SPARQL endpoints have no events.
        self.dispatcher = getattr(inner, "dispatcher", self.dispatcher)
        self._bench = Workbench(inner, self)
        self._workspace = self._bench.workspace

    # Opening and closing

    def open(self, configuration: str | tuple[str, str], create: bool = False) -> int | None:  # noqa: FBT001, FBT002
        """Open the log that the configuration names, and bring the store and it together."""
        del create
        inner, settings = settings_of(configuration)
        if inner is not None:
            name, _, its_configuration = inner.partition(":")
            try:
                opened = rdflib.plugin.get(name, Store)()
            except rdflib.plugin.PluginException as error:
                raise UsageError(f"inner={name}: rdflib knows no store of that name") from error
            if its_configuration:
                opened.open(its_configuration)
            self._hold(opened)
        self.connect(settings)
        return VALID_STORE

    def connect(self, settings: Settings) -> None:
        """Open the log, and bring the store and it together."""
        with self._lock:
            if self._session is not None:
                raise UsageError("the store is open already")
            connection = Connection(settings)
            try:
                self._session = Session(connection.replica, self._bench, settings)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
            every = 1 if settings.autocommit else settings.commit_every
            if every is not None or settings.commit_after_seconds is not None:
                self._batching = Batching(self.commit, every=every, after_seconds=settings.commit_after_seconds)

    def close(self, commit_pending_transaction: bool = False) -> None:  # noqa: FBT001, FBT002
        """Close the log and the inner store. What is uncommitted is rolled back, unless the store commits by itself."""
        with self._lock:
            session, connection = self._session, self._connection
            if session is None or connection is None:
                return
            try:
                if commit_pending_transaction or self._batching is not None:
                    self.commit()
                elif session.has_changes:
                    _logger.warning("the store is closed with uncommitted changes: they are rolled back")
            finally:
                session.discard()
                self._session = self._connection = self._batching = None
                connection.close()
                self._inner.close()

    @property
    def _open(self) -> Session:
        if self._session is None:
            raise UsageError("the store is not open: open it with the place of a log")
        return self._session

    # Transactions

    @property
    def has_changes(self) -> bool:
        """Whether there is something to commit."""
        return self._open.has_changes

    @property
    def position(self) -> int:
        """The version of the log that the store has reached, not counting what waits in the outbox."""
        return self._open.replica.position.version

    @property
    def full_position(self) -> Position:
        """That version with the id and the chain hash of the log; the hash is None where the log cannot be asked."""
        with self._lock:
            return self._open.replica.standing().position

    def commit(self, headers: Mapping[str, HeaderValue] | None = None) -> None:
        """Append what has changed to the log, as one patch; where nothing has changed, nothing happens.

        Raises ConflictError where another writer has changed the same, as the policy has it. Whatever it raises, the
        changes are still there: commit again, or roll back.
        """
        with self._lock:
            self._open.commit(headers or {})
            if self._batching is not None:
                self._batching.committed()

    def rollback(self) -> None:
        """Take back what is uncommitted. The log has none of it, or with `record_rollbacks` an aborted transaction."""
        with self._lock:
            self._open.rollback()
            if self._batching is not None:
                self._batching.committed()

    def pull(self) -> None:
        """Bring in what others have appended to the log. What is uncommitted goes on top of it.

        Raises ConflictError where both have changed the same, as the policy has it.
        """
        with self._lock:
            self._open.pull()

    def pending(self) -> list[QueuedPatch]:
        """The patches that wait in the outbox, in the order in which they go: with ids, times, headers and reasons."""
        with self._lock:
            return self._open.pending()

    def deliver(self, *, on_top: bool = False) -> None:
        """Send what waits in the outbox now, and bring in what others have appended.

        With `on_top` although others have changed the same, or the log has another history: what waits wins. Raises
        ConflictError, and what else the log refuses.
        """
        with self._lock:
            self._open.deliver(on_top=on_top)

    def discard(self, *patch_ids: str) -> None:
        """Take back patches that wait in the outbox, by their ids or all, and bring in what others have appended.

        They are in neither the log nor the store then. Those that stay are on top. Raises UsageError for a patch that
        does not wait.
        """
        with self._lock:
            self._open.drop_waiting([parse_patch_id(patch_id) for patch_id in patch_ids])

    def reload(self) -> None:
        """Fill the store again from the log as it is now, whatever history it was of. What is uncommitted goes on top.

        The way out of a HistoryMismatch where the log is right. Nothing may wait in the outbox.
        """
        with self._lock:
            self._open.reload()

    def republish(self, headers: Mapping[str, HeaderValue] | None = None) -> None:
        """Append what makes the log equal to the store, as one patch, together with what is uncommitted.

        The way out of a HistoryMismatch where the store is right. Nothing may wait in the outbox.
        """
        with self._lock:
            self._open.republish(headers or {})
            if self._batching is not None:
                self._batching.committed()

    @contextmanager
    def exclusively(self, headers: Mapping[str, HeaderValue]) -> Iterator[None]:
        """A transaction for this thread alone: committed at the end of the block, and rolled back if it raises.

        A block within a block belongs to it; if it raises, only its own changes are taken back.
        """
        with self._lock:
            session = self._open
            header_values(headers)  # what is wrong with them is better said before the block than behind it
            savepoint = session.savepoint()
            self._depth += 1
            try:
                yield
                if self._depth == 1:
                    self.commit(headers)
            except BaseException:
                session.go_back(savepoint)
                raise
            finally:
                self._depth -= 1

    def _changed(self) -> None:
        if self._batching is not None and not self._depth:
            self._batching.changed(len(self._bench.journal))

    # Changes

    def add(self, triple: Any, context: Graph, quoted: bool = False) -> None:  # noqa: FBT001, FBT002
        """Add a triple to a graph."""
        with self._lock:
            _ = self._open
            self._bench.add(triple, context, quoted)
            self._changed()

    def addN(self, quads: Iterable[Any]) -> None:  # noqa: N802
        """Add triples to graphs."""
        with self._lock:
            _ = self._open
            add = self._bench.add
            for batch in batches(quads):
                with paused_collector():
                    for subject, predicate, object_, context in batch:
                        add((subject, predicate, object_), context)
            self._changed()

    def remove(self, triple: Any, context: Graph | None = None) -> None:
        """Remove the triples that match from a graph, or from all."""
        with self._lock:
            _ = self._open
            self._bench.remove(triple, context)
            self._changed()

    def add_graph(self, graph: Graph) -> None:
        """Know a graph. A log has no graphs without triples, so it is known until the process ends."""
        with self._lock:
            self._bench.add_graph(graph)

    def remove_graph(self, graph: Graph) -> None:
        """Remove the triples of a graph, and know it no more."""
        with self._lock:
            _ = self._open
            self._bench.remove_graph(graph)
            self._changed()

    def update(
        self,
        update: Update | str,
        initNs: Mapping[str, Any],  # noqa: N803
        initBindings: Mapping[str, Identifier],  # noqa: N803
        queryGraph: str,  # noqa: N803
        **kwargs: Any,
    ) -> None:
        """Run a SPARQL update: by rdflib's engine, as a native one would go by. It has its whole effect or none."""
        if kwargs:
            raise NotImplementedError(f"SPARQL updates of a captured store have no option {', '.join(kwargs)}")
        with self._lock:
            session = self._open
            savepoint = session.savepoint()
            self._depth += 1
            try:
                self._updates.run(update, initNs, initBindings, queryGraph, session)
            except BaseException:
                session.go_back(savepoint)
                raise
            finally:
                self._depth -= 1
            self._changed()

    # Namespaces

    def bind(self, prefix: str, namespace: URIRef, override: bool = True) -> None:  # noqa: FBT001, FBT002
        """Let a prefix stand for a namespace."""
        with self._lock:
            self._bench.prefixes.bind(prefix, URIRef(namespace), override=override)
            self._namespaces_changed()

    def declare(self, prefix: str, namespace: str | None) -> None:
        """Let a prefix stand for a namespace or for nothing, and all others for what they do. rdflib lacks that."""
        with self._lock:
            self._bench.prefixes.let(prefix, namespace)
            self._namespaces_changed()

    def _namespaces_changed(self) -> None:
        if self._batching is not None and not self._depth and self._open.has_changes:
            self._batching.changed(max(1, len(self._bench.journal)))

    def namespace(self, prefix: str) -> URIRef | None:
        """The namespace of a prefix."""
        return self._bench.prefixes.iri(prefix)

    def prefix(self, namespace: URIRef) -> str | None:
        """The prefix of a namespace."""
        return self._bench.prefixes.name(namespace)

    def namespaces(self) -> Iterator[tuple[str, URIRef]]:
        """All prefixes."""
        return iter(self._bench.prefixes)

    # Reading

    def triples(self, triple_pattern: Any, context: Graph | None = None) -> Iterator[Any]:
        """The triples that match, each with its graphs."""
        subject, predicate, object_ = triple_pattern
        if isinstance(object_, Literal) and object_.datatype == _STRING:
            triple_pattern = (subject, predicate, Literal(str(object_)))
        return self._workspace.triples(triple_pattern, context)

    def contexts(self, triple: Any = None) -> Generator[Graph, None, None]:
        """The graphs, or those with this triple."""
        yield from self._workspace.contexts(triple)

    def __len__(self, context: Graph | None = None) -> int:
        return self._workspace.size(context)

    def query(
        self,
        query: Query | str,
        initNs: Mapping[str, Any],  # noqa: N803
        initBindings: Mapping[str, Identifier],  # noqa: N803
        queryGraph: str,  # noqa: N803
        **kwargs: Any,
    ) -> Result:
        """Let the inner store answer, where it can and has all that there is; else rdflib's engine does."""
        # A query over all graphs would show the graph in which the store keeps its position.
        if not isinstance(query, str) or not self._workspace.is_clean or _SPEAKS_OF_GRAPHS.search(query):
            raise NotImplementedError
        if queryGraph == "__UNION__":
            raise NotImplementedError
        return self._inner.query(query, initNs, initBindings, queryGraph, **kwargs)

    def gc(self) -> None:
        """Let the inner store tidy up."""
        self._inner.gc()

    def destroy(self, configuration: str) -> None:
        """Destroy the inner store. The log stays."""
        self._inner.destroy(configuration)
