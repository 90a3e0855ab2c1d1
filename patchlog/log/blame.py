"""Who changed what: by which patch each quad came that is there, and what has come and gone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from patchlog.codec.patch_ids import PatchId
from patchlog.effect import Effect, effect
from patchlog.log.contract import PatchLog
from patchlog.log.diff_parts import Change, dealt
from patchlog.log.documents import Document
from patchlog.log.history import operations_of, snapshot_operations, snapshots_of
from patchlog.log.records import Snapshot
from patchlog.model import DEFAULT_GRAPH, Add, Delete, Operation, Quad, Term
from patchlog.text.terms import iri_term, parse_term

__all__ = ["LastChange", "SubjectChange", "blame", "known_after", "subject_changes", "term_of"]


@dataclass(frozen=True, slots=True)
class LastChange:
    """A quad that is there, and the patch that put it there; or one that went, and the patch that took it away."""

    quad: Quad
    version: int
    id: PatchId | None
    time: str
    headers: dict[str, Term]
    """What the patch says of itself: who, when, why."""
    from_snapshot: bool = False
    """It was there in the snapshot at this version; the patch that put it there is gone."""

    @property
    def version_text(self) -> str:
        """The version as far as it is known: `108`, or `108 or before`. Version 0 is what the log was started with."""
        return f"{self.version} or before" if self.from_snapshot and self.version else str(self.version)

    def document(self) -> Document:
        """The same as JSON."""
        quad = dict(zip(("subject", "predicate", "object", "graph"), self.quad, strict=True))
        return quad | {
            "version": self.version,
            "id": self.id,
            "time": self.time,
            "headers": self.headers,
            "from_snapshot": self.from_snapshot,
        }


@dataclass(frozen=True, slots=True)
class SubjectChange:
    """One quad of a subject came or went."""

    is_added: bool
    change: LastChange


def blame(log: PatchLog, subject: Term, predicate: Term | None = None, graph: Term | None = None) -> list[LastChange]:
    """Say of each quad of a subject that is there which patch put it there, as the last.

    Adding what was there already is no change. All patches that are kept are read, and the snapshot that stands for
    those that are not; what is held is the quads of the subject. A quad of that snapshot came with its version or
    before. Raises PositionGone where there is no such snapshot.
    """
    last: dict[Quad, LastChange] = {}
    for one in subject_changes(log, subject, predicate, graph):
        if one.is_added:
            last[one.change.quad] = one.change
        else:
            del last[one.change.quad]
    return sorted(last.values(), key=lambda change: (change.version, change.quad))


def subject_changes(
    log: PatchLog, subject: Term, predicate: Term | None = None, graph: Term | None = None
) -> Iterator[SubjectChange]:
    """Yield what has come and gone of a subject, version by version, and of a version what went first.

    Reads, holds and raises what `blame` does.
    """

    def is_wanted(change: Change) -> bool | None:
        is_it = (
            isinstance(change, Add | Delete)
            and change.subject == subject
            and (predicate is None or change.predicate == predicate)
            and (graph is None or (change.graph or DEFAULT_GRAPH) == graph)
        )
        return is_it or None

    def wanted(operations: Iterable[Operation]) -> Effect:
        return effect(operation for _, operation in dealt(operations, is_wanted))

    present: set[Quad] = set()
    base = _base(log)
    if base is not None:
        record = log.find(base.version) if base.version else None
        time = base.created if record is None else record.time
        for quad in sorted(wanted(snapshot_operations(log, base)).adds):
            present.add(quad)
            yield SubjectChange(True, LastChange(quad, base.version, base.id, time, {}, from_snapshot=True))
    for logged in log.read(0 if base is None else base.version):
        record, headers = logged.record, dict[str, Term]()
        change = wanted(operations_of([logged], headers))
        came, went = change.adds - present, change.deletes & present
        present -= went
        present |= came
        for is_added, quads in ((False, went), (True, came)):
            for quad in sorted(quads):
                yield SubjectChange(is_added, LastChange(quad, record.version, record.id, record.time, headers))


def known_after(log: PatchLog) -> int:
    """Return the version up to which truncation has removed what came and went; 0 where all of it is known."""
    base = _base(log)
    return 0 if base is None else base.version


def term_of(text: str) -> Term:
    """The term that a person has named: as in N-Triples, or an IRI without its brackets. Raises InvalidTerm."""
    if text and not text.startswith(("<", "_:", '"')):
        text = iri_term(text)
    if text:
        parse_term(text)
    return text


def _base(log: PatchLog) -> Snapshot | None:
    """The snapshot that stands for the patches that are gone; or for what a log was started with, at version 0."""
    gone = log.describe().first_version - 1
    standing = [one for one in snapshots_of(log) if one.version >= gone]
    first = min(standing, key=lambda one: one.version, default=None)
    return first if gone or (first is not None and first.version == 0) else None
