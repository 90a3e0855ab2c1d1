"""Every error that this package raises on purpose, in one tree.

    PatchLogError                      catch-all for callers; never raised itself
    ├── CodecError                     the input breaks the rules of its format     .frame .row .line
    │   ├── MalformedFrame             the bytes are not the protobuf messages that they should be
    │   ├── LimitExceeded              the input asks for more than the reader's limits allow
    │   ├── UnsupportedOption          the stream options ask for what this reader or writer cannot do
    │   ├── UnknownLookupEntry         a lookup id is out of range, or used before it was defined
    │   ├── UnexpectedRow              a row stands where its stream type does not allow it
    │   ├── InvalidTerm                a term is missing, or of a kind that its place does not allow
    │   └── InvalidSyntax              a text format is not well formed               .line
    ├── TransactionError               transactions out of order: nested start, end without start   .frame .row .line
    ├── LogError                       a patch log refuses a request
    │   ├── LogNotFound  ├── LogAlreadyExists
    │   ├── HeadMismatch               another writer was first     .expected_head .actual_head
    │   │   └── ConflictError          and has changed the same     .quads .namespaces
    │   ├── PatchAlreadyExists (.id .version)  ├── RevertConflict (.examples)
    │   ├── PositionGone (.oldest_kept)
    │   ├── HistoryMismatch            a position is of another history     .version .last_common .head_version .log_id
    │   ├── ConsumerNotFound  ├── ConsumerRefused  ├── ConsumerOwned (.owner)  ├── TruncationRefused (.consumer)
    │   └── SnapshotNotFound  ├── SnapshotRefused  └── SnapshotBusy (.version)
    ├── StorageError                   the database failed; its error is chained     .is_transient
    │   └── StorageFull                there is no room left
    ├── WorkCancelled                  long work was cancelled before its end
    └── UsageError                     a request that cannot be carried out: a wrong option, a file that is not there
        └── MissingExtra               an optional dependency is not installed

A place in binary input is a frame and a row, in text a line. Frames and rows count from 0, lines from 1.
This module knows no HTTP and no database.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "CodecError",
    "ConflictError",
    "ConsumerNotFound",
    "ConsumerOwned",
    "ConsumerRefused",
    "HeadMismatch",
    "HistoryMismatch",
    "InvalidSyntax",
    "InvalidTerm",
    "LimitExceeded",
    "LogAlreadyExists",
    "LogError",
    "LogNotFound",
    "MalformedFrame",
    "MissingExtra",
    "PatchAlreadyExists",
    "PatchLogError",
    "PositionGone",
    "RevertConflict",
    "SnapshotBusy",
    "SnapshotNotFound",
    "SnapshotRefused",
    "StorageError",
    "StorageFull",
    "TransactionError",
    "TruncationRefused",
    "UnexpectedRow",
    "UnknownLookupEntry",
    "UnsupportedOption",
    "UsageError",
    "WorkCancelled",
]


_SHOWN_IN_CONFLICT: Final = 5


class PatchLogError(Exception):
    """Root of the tree: `except PatchLogError` catches all that this package raises on purpose."""


class _LocatedError(PatchLogError):
    """An error with a place in the input. The message begins with the place."""

    def __init__(self, reason: str, frame: int | None = None, row: int | None = None, line: int | None = None) -> None:
        super().__init__(reason, frame, row, line)
        self.reason = reason
        self.frame = frame
        self.row = row
        self.line = line

    def __str__(self) -> str:
        if self.line is not None:
            return f"line {self.line}: {self.reason}"
        if self.frame is None:
            return self.reason
        if self.row is None:
            return f"frame {self.frame}: {self.reason}"
        return f"frame {self.frame}, row {self.row}: {self.reason}"


class CodecError(_LocatedError):
    """The input breaks the rules of its format."""


class MalformedFrame(CodecError):
    """The bytes are not the protobuf messages that they should be: cut short, a wrong wire type, text not in UTF-8."""


class LimitExceeded(CodecError):
    """The input asks for more than the reader's limits allow. Raise the limit if you trust the sender."""


class UnsupportedOption(CodecError):
    """The stream options ask for something that this reader or writer cannot do, or contradict each other."""


class UnknownLookupEntry(CodecError):
    """A lookup id is out of the table's range, or was used before it was defined."""


class UnexpectedRow(CodecError):
    """A row stands where its stream type does not allow it."""


class InvalidTerm(CodecError):
    """A term is missing, or of a kind that its place does not allow."""


class InvalidSyntax(CodecError):
    """A text format (N-Quads, RDF Patch) is not well formed."""


class TransactionError(_LocatedError):
    """Transactions are out of order: a start inside a transaction, or an end without a start."""


class LogError(PatchLogError):
    """A patch log refuses a request."""


class LogNotFound(LogError):
    """There is no log of that name."""


class LogAlreadyExists(LogError):
    """There is a log of that name already."""


class HeadMismatch(LogError):
    """Another writer got there first: read from `actual_head` and rebuild the patch."""

    def __init__(self, expected_head: str | None, actual_head: str | None) -> None:
        super().__init__(expected_head, actual_head)
        self.expected_head = expected_head
        self.actual_head = actual_head

    def __str__(self) -> str:
        return (
            f"the patch was built on {self.expected_head or 'an empty log'}, but the head is "
            f"{self.actual_head or 'an empty log'}: read what came between and build the patch anew"
        )


class ConflictError(HeadMismatch):
    """Another writer has changed the same quads or namespaces: take the change back, look at what is there, redo it.

    `patch` is the id of the patch that waits in the outbox; None where the change is not committed yet.
    """

    def __init__(
        self,
        expected_head: str | None,
        actual_head: str | None,
        quads: list[tuple[str, str, str, str]],
        namespaces: list[str],
        patch: str | None = None,
    ) -> None:
        super().__init__(expected_head, actual_head)
        self.quads = quads
        self.namespaces = namespaces
        self.patch = patch

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.expected_head, self.actual_head, self.quads, self.namespaces, self.patch)

    def __str__(self) -> str:
        touched = [f"({' '.join(filter(None, quad))})" for quad in self.quads] + [
            f"the prefix {name!r}" for name in self.namespaces
        ]
        more = len(touched) - _SHOWN_IN_CONFLICT
        shown = ", ".join(touched[:_SHOWN_IN_CONFLICT]) + (f" and {more} more" if more > 0 else "")
        if self.patch is not None:
            what = f"another writer has changed the same: {shown}" if touched else "another writer was first"
            return (
                f"{what}; the patch {self.patch} waits in the outbox: take it back (`discard`, `patchlog outbox drop`) "
                "or send it on top (`deliver(on_top=True)`, `patchlog outbox deliver --on-top`)"
            )
        if not touched:
            return super().__str__()
        return f"another writer has changed the same: {shown}; roll back, look at what is there, and change it again"


class PatchAlreadyExists(LogError):
    """The id of the patch is taken by another patch of the log: give it a new one."""

    def __init__(self, id: str, version: int) -> None:
        super().__init__(id, version)
        self.id = id
        self.version = version

    def __str__(self) -> str:
        return (
            f"version {self.version} has the id {self.id} already: a new patch needs a new id; "
            "of patches that the log has in part, send those that it lacks"
        )


class RevertConflict(LogError):
    """A later patch has said the opposite: take it back too, or write the patch yourself."""

    def __init__(self, examples: list[str]) -> None:
        super().__init__(examples)
        self.examples = examples

    def __str__(self) -> str:
        return (
            f"patches behind the range say the opposite of what would be taken back, such as of {self.examples[0]}: "
            "take back all up to the head, or write the patch yourself"
        )


class PositionGone(LogError):
    """The position was truncated away: start from a snapshot."""

    def __init__(self, position: int, oldest_kept: int) -> None:
        super().__init__(position, oldest_kept)
        self.position = position
        self.oldest_kept = oldest_kept

    def __str__(self) -> str:
        return (
            f"version {self.position} was truncated away; the oldest kept is {self.oldest_kept}: start from a snapshot"
        )


class HistoryMismatch(LogError):
    """A position is of another history than the log has: nothing was read or written.

    `last_common` is the last version that both are known to share, if any. `head_version` and `log_id` are the log's.
    """

    def __init__(
        self,
        reason: str,
        *,
        version: int,
        last_common: int | None = None,
        head_version: int | None = None,
        log_id: str | None = None,
    ) -> None:
        super().__init__(reason, version, last_common, head_version, log_id)
        self.reason = reason
        self.version = version
        self.last_common = last_common
        self.head_version = head_version
        self.log_id = log_id

    remedy = "start again from this log, or restore the log that has this history"
    """What to do; who knows more about the reader says more."""

    def __reduce__(self) -> tuple[object, ...]:
        return _history_mismatch, self.args, {"remedy": self.remedy}

    def __str__(self) -> str:
        common = "" if self.last_common is None else f"; both are the same up to version {self.last_common}"
        return f"{self.reason}{common}. Nothing was read or written: {self.remedy}"


def _history_mismatch(
    reason: str, version: int, last_common: int | None, head_version: int | None, log_id: str | None
) -> HistoryMismatch:
    return HistoryMismatch(reason, version=version, last_common=last_common, head_version=head_version, log_id=log_id)


class ConsumerNotFound(LogError):
    """The log has no consumer of that name."""


class ConsumerRefused(LogError):
    """A consumer cannot stand there: beyond the head, or behind where it is without saying so."""


class ConsumerOwned(LogError):
    """A consumer belongs to another principal, its `owner`, who made it."""

    def __init__(self, reason: str, owner: str | None = None) -> None:
        super().__init__(reason, owner)
        self.reason = reason
        self.owner = owner

    def __str__(self) -> str:
        return self.reason


class TruncationRefused(LogError):
    """Somebody still needs what was to be forgotten: `consumer`, or where that is None, whoever begins anew."""

    def __init__(self, reason: str, consumer: str | None = None) -> None:
        super().__init__(reason, consumer)
        self.reason = reason
        self.consumer = consumer

    def __str__(self) -> str:
        return self.reason


class SnapshotNotFound(LogError):
    """The log has no snapshot at that version."""


class SnapshotRefused(LogError):
    """A snapshot cannot be made, taken or deleted there; the message says why."""


class SnapshotBusy(LogError):
    """A snapshot of the log, at `version`, is on its way: one at a time."""

    def __init__(self, version: int) -> None:
        super().__init__(version)
        self.version = version

    def __str__(self) -> str:
        return f"a snapshot at version {self.version} is being made: ask again when it is there"


class StorageError(PatchLogError):
    """The database failed. `is_transient` says whether the same request may succeed later."""

    def __init__(self, reason: str, *, is_transient: bool = False) -> None:
        super().__init__(reason)
        self.is_transient = is_transient


class StorageFull(StorageError):
    """There is no room left where the database writes. The same request succeeds when there is."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, is_transient=True)


class WorkCancelled(PatchLogError):
    """Long work, such as a verification, was cancelled before its end. What it had not finished is not there."""


class UsageError(PatchLogError):
    """A request that cannot be carried out as it was made; the message says what to change."""


class MissingExtra(UsageError):
    """An optional dependency is not installed. The message holds the command that installs it."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(package, extra)
        self.package = package
        self.extra = extra

    def __str__(self) -> str:
        return f"{self.package} is not installed; run: pip install 'patchlog[{self.extra}]'"
