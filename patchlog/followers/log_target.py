"""Another log as the target. Its head is the position, so each patch gets there exactly once.

All patches: copied as they are, with their ids and the hash chain; at the end both logs have the same head hash.
A selection: smaller patches. Their ids follow from those of the originals, and headers name where they are from.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from patchlog.effect import Effect, NamespaceKey, apply_effect, diff
from patchlog.engine import CanonicalPatchEncoder
from patchlog.errors import UsageError
from patchlog.followers.callback_target import CallbackTarget
from patchlog.followers.changes import Applying, change_of
from patchlog.followers.contract import Change, Dataset
from patchlog.followers.follower import Follower
from patchlog.followers.snapshots import snapshots_of
from patchlog.log.contract import PatchLog
from patchlog.log.records import LogDescription, LoggedPatch
from patchlog.model import Add, Header, NamespaceAdd, Operation, Quad, Term, TransactionCommit, TransactionStart
from patchlog.text.terms import Literal, iri_term, literal_term, parse_term

__all__ = ["LogTarget", "SelectedLogTarget"]

_SOURCE: Final = "source-version"
_SOURCE_LOG: Final = "source-log"


class LogTarget:
    """A log that becomes a copy."""

    def __init__(self, log: PatchLog, source: PatchLog) -> None:
        self._log = log
        self._source = source

    def begin(self, log: LogDescription) -> int | None:
        """The target's head, which has to be a patch of the source too."""
        mine = self._log.describe()
        if mine.options != log.options:
            raise UsageError(f"the logs {mine.name!r} and {log.name!r} were created with different options")
        if mine.head.id is None:
            self._copy_what_it_starts_with()
            return None
        theirs = self._source.find(mine.head.version)
        if theirs is None and mine.head.version > log.head.version:
            return mine.head.version
        if theirs is None or (theirs.id, theirs.chain_hash) != (mine.head.id, mine.head.hash):
            raise UsageError(
                f"the log {mine.name!r} is no copy of {log.name!r}: its version {mine.head.version} is {mine.head.id}, "
                f"there it is {theirs.id if theirs else 'unknown'}"
            )
        return mine.head.version

    def _copy_what_it_starts_with(self) -> None:
        try:
            snapshots = self._source.snapshots
        except UsageError:
            return  # a file keeps none
        if snapshots.find(0) is not None:
            self._log.snapshots.put(0, snapshots.read(0))

    def take(self, logged: LoggedPatch) -> None:
        """Append the patch as it is."""
        appended = self._log.append(logged.chunks, expected_head=logged.record.prev)
        if appended.version != logged.record.version:
            raise UsageError(f"version {logged.record.version} became version {appended.version}: this is no copy")

    def load(self, dataset: Dataset) -> None:
        """A copy cannot begin in the middle."""
        raise UsageError(f"a copy of a log has all of its patches; it cannot begin with version {dataset.version}")

    def close(self) -> None:
        """The log is its owner's."""


class SelectedLogTarget:
    """A log of the changes that were selected. Patches of which nothing is left are left out."""

    def __init__(self, log: PatchLog) -> None:
        self._log = log
        self._source_id = ""
        self._head = log.head().id

    def begin(self, log: LogDescription) -> int | None:
        """The version that the last patch of the target came from."""
        self._source_id = log.id
        own = self._log.describe()
        if (own.id, own.name) == (log.id, log.name):
            raise UsageError(f"the log {log.name!r} cannot take a part of itself: follow into a log of its own")
        head = own.head
        if head.id is None:
            return None
        for logged in self._log.read(head.version - 1):
            said = {header.key: header.value for header in change_of(logged).headers}
            version = parse_term(said[_SOURCE]) if _SOURCE in said else None
            if isinstance(version, Literal) and said.get(_SOURCE_LOG) == iri_term(f"urn:uuid:{log.id}"):
                return int(version.lexical)
        raise UsageError(f"the log {self._log.name!r} has patches of another origin: follow into a log of its own")

    def apply(self, change: Change) -> None:
        """Append what is selected of a patch."""
        if change.effect != Effect():
            self._append(change.record.version, change.headers, change.effect.operations())

    def load(self, dataset: Dataset) -> None:
        """Append what makes the dataset of what the log says: all of it where the log is empty."""
        if self._head is None:
            names = (NamespaceAdd(name, iri, graph) for (graph, name), iri in dataset.namespaces.items())
            adds = (Add(*quad) for quad in dataset.quads)
            self._append(dataset.version, (), chain([TransactionStart()], names, adds, [TransactionCommit()]))
            return
        quads, namespaces = _contents(self._log)
        operations = diff(quads, set(dataset.quads), namespaces, dataset.namespaces)
        self._append(dataset.version, (), operations)

    def close(self) -> None:
        """The log is its owner's."""

    def _append(self, version: int, headers: Iterable[Header], operations: Iterable[Operation]) -> None:
        id = uuid.uuid5(uuid.UUID(self._source_id), f"{self._log.describe().id} {version}")
        said = [
            Header("id", iri_term(f"urn:uuid:{id}")),
            *(header for header in headers if header.key not in (_SOURCE, _SOURCE_LOG)),
            Header(_SOURCE_LOG, iri_term(f"urn:uuid:{self._source_id}")),
            Header(_SOURCE, literal_term(str(version))),
        ]
        self._head = self._log.append(_canonical(chain(said, operations)), expected_head=self._head).id


def _contents(log: PatchLog) -> tuple[set[Quad], dict[NamespaceKey, Term]]:
    """All that a log says, in memory."""
    quads: set[Quad] = set()
    namespaces: dict[NamespaceKey, Term] = {}

    def begin_with(dataset: Dataset) -> None:
        quads.update(dataset.quads)
        namespaces.update(dataset.namespaces)

    target = CallbackTarget(lambda change: apply_effect(quads, namespaces, change.effect), begin_with)
    Follower(log, Applying(target), find_snapshot=snapshots_of(log)).catch_up()
    return quads, namespaces


def _canonical(operations: Iterable[Operation]) -> Iterator[bytes]:
    encoder = CanonicalPatchEncoder()
    for operation in operations:
        encoder.accept(operation)
        if piece := encoder.take():
            yield piece
    yield encoder.finish()
