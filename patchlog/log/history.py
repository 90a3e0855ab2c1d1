"""The history of a log: the operations of its patches, and who changed what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from patchlog.codec.options import Limits
from patchlog.codec.patch_ids import PatchId
from patchlog.effect import effect
from patchlog.engine import PatchDecoder
from patchlog.errors import UsageError
from patchlog.log.contract import PatchLog
from patchlog.log.diff_parts import Change, dealt
from patchlog.log.documents import Document
from patchlog.log.records import LoggedPatch
from patchlog.model import DEFAULT_GRAPH, Add, Delete, Header, Operation, Quad, Term
from patchlog.text.terms import iri_term, parse_term

__all__ = ["STORED_LIMITS", "LastChange", "blame", "check_version", "headers_of", "operations_between", "term_of"]

STORED_LIMITS: Final = Limits(max_frame_bytes=1 << 30, max_decoded_frame_bytes=1 << 40)
"""What is stored was held to the limits of its upload."""

_OF_THE_LOG: Final = frozenset({"id", "prev"})


@dataclass(frozen=True, slots=True)
class LastChange:
    """A quad that is there, and the patch that put it there."""

    quad: Quad
    version: int
    id: PatchId
    time: str
    headers: dict[str, Term]
    """What the patch says of itself: who, when, why."""

    def document(self) -> Document:
        """The same as JSON."""
        quad = dict(zip(("subject", "predicate", "object", "graph"), self.quad, strict=True))
        return quad | {"version": self.version, "id": self.id, "time": self.time, "headers": self.headers}


def operations_between(log: PatchLog, after: int, until: int) -> Iterator[Operation]:
    """The operations of the patches behind a version, up to another. Punctuations end the patches.

    Raises PositionGone at once where a patch was truncated away.
    """
    return _operations(log.read(after, until=until)) if after < until else iter(())


def check_version(log: PatchLog, version: int) -> None:
    """Raise UsageError where the log has no such version. Version 0 is the empty log."""
    head = log.head().version
    if not 0 <= version <= head:
        raise UsageError(f"the log {log.name!r} has no version {version}; its head is {head}")


def headers_of(logged: LoggedPatch) -> dict[str, Term]:
    """The headers that a patch begins with, without those of the log: id and prev. Of several of a key the last."""
    headers: dict[str, Term] = {}
    for operation in _noting(headers, _operations([logged])):
        if not isinstance(operation, Header):
            break
    return headers


def blame(log: PatchLog, subject: Term, predicate: Term | None = None, graph: Term | None = None) -> list[LastChange]:
    """Say of each quad of a subject that is there which patch put it there, as the last.

    Adding what was there already is no change. All patches are read; what is held is the quads of the subject.
    """

    def is_wanted(change: Change) -> bool | None:
        is_it = (
            isinstance(change, Add | Delete)
            and change.subject == subject
            and (predicate is None or change.predicate == predicate)
            and (graph is None or (change.graph or DEFAULT_GRAPH) == graph)
        )
        return is_it or None

    last: dict[Quad, LastChange] = {}
    for logged in log.read():
        headers: dict[str, Term] = {}
        operations = _noting(headers, _operations([logged]))
        change = effect(operation for _, operation in dealt(operations, is_wanted))
        for quad in change.deletes:
            last.pop(quad, None)
        for quad in change.adds - last.keys():
            record = logged.record
            last[quad] = LastChange(quad, record.version, record.id, record.time, headers)
    return sorted(last.values(), key=lambda change: (change.version, change.quad))


def term_of(text: str) -> Term:
    """The term that a person has named: as in N-Triples, or an IRI without its brackets. Raises InvalidTerm."""
    if text and not text.startswith(("<", "_:", '"')):
        text = iri_term(text)
    if text:
        parse_term(text)
    return text


def _noting(headers: dict[str, Term], operations: Iterable[Operation]) -> Iterator[Operation]:
    for operation in operations:
        if isinstance(operation, Header) and operation.key not in _OF_THE_LOG:
            headers[operation.key] = operation.value
        yield operation


def _operations(patches: Iterable[LoggedPatch]) -> Iterator[Operation]:
    decoder = PatchDecoder(limits=STORED_LIMITS)
    has_begun = False
    for logged in patches:
        has_begun = True
        for chunk in logged.chunks:
            yield from decoder.feed(chunk)
    if has_begun:
        yield from decoder.finish()
