"""Another log as the target. Its head is the position, so each patch gets there exactly once.

All patches: copied as they are, with their ids and the hash chain; at the end both logs have the same head hash.
A selection: smaller patches. Their ids follow from those of the originals, and headers name where they are from.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Final, TypeAlias

from patchlog.codec.patch_ids import PatchId
from patchlog.effect import Effect, NamespaceKey, apply_effect, diff
from patchlog.engine import CanonicalPatchEncoder
from patchlog.errors import HeadMismatch, HistoryMismatch, UsageError
from patchlog.followers.callback_target import CallbackTarget
from patchlog.followers.changes import Applying
from patchlog.followers.contract import Change, Dataset, TargetMoved
from patchlog.followers.follower import Follower
from patchlog.followers.positions import DamagedRecord, OtherPart
from patchlog.followers.snapshots import snapshots_of
from patchlog.log.contract import PatchLog
from patchlog.log.history import headers_of
from patchlog.log.position import Position, last_common_version
from patchlog.log.records import LogDescription, LoggedPatch
from patchlog.model import Add, Header, NamespaceAdd, Operation, Quad, Term, TransactionCommit, TransactionStart
from patchlog.text.terms import Literal, iri_term, literal_term, parse_term

__all__ = ["LogTarget", "MakeAgain", "SelectedLogTarget"]

_SOURCE: Final = "source-version"
_SOURCE_LOG: Final = "source-log"
_SOURCE_HASH: Final = "source-hash"
_SOURCE_PART: Final = "source-part"

MakeAgain: TypeAlias = Callable[[], PatchLog]


class LogTarget:
    """A log that becomes a copy. `make_again` deletes it and creates it empty, where that can be."""

    def __init__(self, log: PatchLog, source: PatchLog, make_again: MakeAgain | None = None) -> None:
        self._log = log
        self._source = source
        self._make_again = make_again
        self._log_id = ""
        self._kept: Position | None = None

    def begin(self, log: LogDescription) -> None:
        """Say which log this is. Raises UsageError for another kind of log."""
        self._log_id = log.id
        mine = self._log.describe()
        if mine.options != log.options:
            raise UsageError(f"the logs {mine.name!r} and {log.name!r} were created with different options")

    def position(self) -> Position | None:
        """The target's head, which has to be a patch of the source too."""
        mine = self._log.head()
        if not mine.version:
            return None
        position = Position(self._log_id, mine.version, mine.hash)
        try:
            self._source.check(position)
        except HistoryMismatch as error:
            theirs = self._source.head().version
            common = last_common_version(self._hash_at, self._hash_there, min(mine.version, theirs))
            reason = f"the log {self._log.name!r} has version {mine.version} ({mine.id}) "
            if common == theirs:
                reason += f"of {self._source.name!r}, whose head is {theirs}: the source was restored to an older state"
            else:
                differ = f"after version {common} they differ" if common else "their first patches differ"
                reason += f"and is no copy of {self._source.name!r}: {differ}"
            raise HistoryMismatch(
                reason, version=mine.version, last_common=common or None, head_version=theirs, log_id=error.log_id
            ) from error
        return position

    def keep(self, position: Position | None) -> None:
        """Go on from a position."""
        if position is None and not self._log.head().version:
            self._copy_what_it_starts_with()
        self._kept = position

    def check(self) -> None:
        """Compare the target's head with what was left there."""
        mine = self._log.head()
        if self._kept is not None and (mine.version, mine.hash) != (self._kept.version, self._kept.hash):
            raise TargetMoved

    def start_again(self) -> None:
        """Delete the log and create it empty."""
        self._log = _made_again(self._log, self._make_again)

    def _copy_what_it_starts_with(self) -> None:
        try:
            snapshots = self._source.snapshots
        except UsageError:
            return  # a file keeps none
        if snapshots.find(0) is not None:
            self._log.snapshots.put(0, snapshots.read(0))

    def take(self, logged: LoggedPatch) -> None:
        """Append the patch as it is."""
        record = logged.record
        try:
            appended = self._log.append(logged.chunks, expected_head=record.prev)
        except HeadMismatch as error:
            raise TargetMoved from error
        if appended.version != record.version:
            raise UsageError(f"version {record.version} became version {appended.version}: this is no copy")
        self._kept = Position(self._log_id, record.version, record.chain_hash)

    def load(self, dataset: Dataset) -> None:
        """A copy cannot begin in the middle. Its start comes with `keep`."""
        if not dataset.version:
            return
        raise UsageError(f"a copy of a log has all of its patches; it cannot begin with version {dataset.version}")

    def close(self) -> None:
        """The log is its owner's."""

    def _hash_at(self, version: int) -> bytes:
        return self._log.position(version).hash or b""

    def _hash_there(self, version: int) -> bytes:
        return self._source.position(version).hash or b""


class SelectedLogTarget:
    """A log of the changes that were selected. Patches of which nothing is left are left out."""

    def __init__(self, log: PatchLog, make_again: MakeAgain | None = None) -> None:
        self._log = log
        self._make_again = make_again
        self._source: LogDescription
        self._part = ""
        self._head: PatchId | None = None

    def begin(self, log: LogDescription, part: str) -> None:
        """Say which log this is, and which part of it. Raises UsageError where it is the target itself."""
        self._source, self._part = log, part
        own = self._log.describe()
        if (own.id, own.name) == (log.id, log.name):
            raise UsageError(f"the log {log.name!r} cannot take a part of itself: follow into a log of its own")

    def position(self) -> Position | None:
        """The position that the last patch of the target came from, as its headers say."""
        head = self._log.head()
        self._head = head.id
        if head.id is None:
            return None
        [said] = [headers_of(logged) for logged in self._log.read(head.version - 1)]
        log_id, version = said.get(_SOURCE_LOG, "").removeprefix("<urn:uuid:")[:-1], said.get(_SOURCE)
        if not log_id or version is None:
            raise UsageError(f"the log {self._log.name!r} has patches of another origin: follow into a log of its own")
        part, hash = said.get(_SOURCE_PART), said.get(_SOURCE_HASH)
        if part is not None and _lexical(part) != self._part:
            raise OtherPart(
                f"the log {self._log.name!r} has another part of {self._source.name!r} than is asked for now: it has "
                f"{_lexical(part)}, and this is {self._part}. Follow into a new log, or start this one again with "
                "--replace"
            )
        try:
            return Position.kept(log_id, _lexical(version), None if hash is None else _lexical(hash))
        except UsageError as error:
            raise DamagedRecord(
                f"in the headers of version {head.version} of the log {self._log.name!r}, {error}. Follow into a new "
                "log, or start this one again with --replace"
            ) from None

    def keep(self, position: Position | None) -> None:
        """Go on from a position. Patches that are there stay as they are."""

    def check(self) -> None:
        """Compare the target's head with what was left there."""
        if self._log.head().id != self._head:
            raise TargetMoved

    def start_again(self) -> None:
        """Delete the log and create it empty."""
        self._log, self._head = _made_again(self._log, self._make_again), None

    def apply(self, change: Change) -> None:
        """Append what is selected of a patch."""
        if change.effect != Effect():
            after = Position(None, change.record.version, change.record.chain_hash)
            self._append(after, change.headers, change.effect.operations())

    def load(self, dataset: Dataset) -> None:
        """Append what makes the dataset of what the log says: all of it where the log is empty."""
        quads = iter(dataset.quads)
        first = list(islice(quads, 1))
        if self._head is None and not (dataset.version or first or dataset.namespaces):
            return
        quads = chain(first, quads)
        if self._head is None:
            names = (NamespaceAdd(name, iri, graph) for (graph, name), iri in dataset.namespaces.items())
            adds = (Add(*quad) for quad in quads)
            self._append(dataset.position, (), chain([TransactionStart()], names, adds, [TransactionCommit()]))
            return
        mine, namespaces = _contents(self._log)
        operations = diff(mine, set(quads), namespaces, dataset.namespaces)
        self._append(dataset.position, (), operations)

    def close(self) -> None:
        """The log is its owner's."""

    def _append(self, after: Position, headers: Iterable[Header], operations: Iterable[Operation]) -> None:
        id = uuid.uuid5(uuid.UUID(self._source.id), f"{self._log.describe().id} {after.version}")
        of_source = [
            Header(_SOURCE_LOG, iri_term(f"urn:uuid:{self._source.id}")),
            Header(_SOURCE, literal_term(str(after.version))),
            Header(_SOURCE_HASH, literal_term((after.hash or b"").hex())),
            Header(_SOURCE_PART, literal_term(self._part)),
        ]
        keys = {header.key for header in of_source}
        said = [
            Header("id", iri_term(f"urn:uuid:{id}")),
            *(header for header in headers if header.key not in keys),
            *of_source,
        ]
        try:
            self._head = self._log.append(_canonical(chain(said, operations)), expected_head=self._head).id
        except HeadMismatch as error:
            raise TargetMoved from error


def _lexical(term: Term) -> str:
    parsed = parse_term(term)
    return parsed.lexical if isinstance(parsed, Literal) else ""


def _made_again(log: PatchLog, make_again: MakeAgain | None) -> PatchLog:
    if make_again is None:
        raise UsageError(
            f"the log {log.name!r} was handed over open, so it is not deleted here: delete it, create it again, and "
            "follow into that"
        )
    return make_again()


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
