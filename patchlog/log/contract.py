"""What a patch log is, whatever keeps it: memory, a database, or a service over HTTP.

A **log** is one dataset's patches, versions 1, 2, 3 … without gaps. Versions are given in the order in which patches
become durable: who has seen version V never later finds something new at or below V. What was appended never changes.

All calls may be made from any thread. They raise LogNotFound, StorageError, and what their own lines name.
tests/contract holds all back ends to this.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Literal, Protocol, Self, TypeAlias

from patchlog.codec.ingest import IngestedPatch
from patchlog.codec.patch_ids import PatchId
from patchlog.log.consumers import Mover
from patchlog.log.position import After, Position
from patchlog.log.records import (
    ANY_HEAD,
    Appended,
    Consumer,
    ExpectedHead,
    Head,
    LogDescription,
    LoggedPatch,
    LogOptions,
    PatchRecord,
    Snapshot,
    SnapshotBuild,
    Verification,
)

__all__ = [
    "Consumers",
    "LogStore",
    "PatchFormat",
    "PatchLog",
    "PreparedAppend",
    "SnapshotFormat",
    "Snapshots",
    "StagingPatchLog",
    "Told",
    "Upload",
]

PatchFormat: TypeAlias = Literal["jelly-patch", "rdf-patch"]
SnapshotFormat: TypeAlias = Literal["jelly", "nquads"]

Told: TypeAlias = Callable[[Sequence[Appended | BaseException]], None]
"""Gets what came of some appends, in their order."""


class PatchLog(Protocol):
    """One log of a store. Making one costs nothing and asks nothing; whether the log is there shows in its calls."""

    @property
    def name(self) -> str:
        """The name of the log."""

    def describe(self) -> LogDescription:
        """Describe the log as it stands."""

    def head(self) -> Head:
        """The last patch; version 0 where there is none."""

    def append(
        self,
        chunks: Iterable[bytes],
        *,
        format: PatchFormat = "jelly-patch",
        expected_head: ExpectedHead = ANY_HEAD,
    ) -> Appended:
        """Append the patches of a stream, all or none, and return when they are durable.

        A patch that says `prev`, or a caller who names the `expected_head`, has it go on that patch and no other;
        else it goes on whatever the head is. An `id` that is missing is made up. A patch that is in the log already
        answers with its version again, so a writer who gives ids may retry after a lost reply.

        Raises CodecError and TransactionError for what is not well formed, HeadMismatch where another writer got there
        first, PatchAlreadyExists where an id is taken by another patch, UsageError where there is no patch in the
        stream.
        """

    def position(self, version: int | None = None) -> Position:
        """Return the position at a version, or at the head. Raises UsageError for a version above the head."""

    def check(self, position: Position) -> None:
        """Raise HistoryMismatch where this log does not have the history of the position."""

    def read(self, after: After = 0, *, limit: int | None = None, until: int | None = None) -> Iterator[LoggedPatch]:
        """Yield the patches after a version, up to the head of this moment, `limit` of them, or version `until`.

        After a `Position`, the log is checked first. Take the chunks of a patch before the next patch. Concatenated
        they are one Jelly-Patch stream.

        Raises HistoryMismatch and, where one of them was truncated away, PositionGone at once; PositionGone on the way
        where that happens meanwhile.
        """

    def find(self, patch: PatchId | int) -> PatchRecord | None:
        """What is known of a patch by its id or version, also of one that was truncated away."""

    def verify(self) -> Verification:
        """Walk along the chain of all kept patches, compute their hashes anew, and stop at the first bad version."""

    def truncate_before(self, version: int | None = None, *, force: bool = False) -> LogDescription:
        """Forget the bytes of all patches below a version, at most of all that there are.

        Versions, ids and hashes stay: the head, the chain and retries are as they were. Without a version it is the one
        behind the newest snapshot that all consumers have reached; where there is none, nothing is forgotten.

        Raises TruncationRefused where a consumer still needs one of these patches, unless `force` says that it has to
        begin anew; and, whatever `force` says, where no snapshot stands for them.
        """

    @property
    def consumers(self) -> Consumers:
        """How far those who follow the log have read."""

    @property
    def snapshots(self) -> Snapshots:
        """The whole dataset at some versions."""

    def wait_for(self, version: int, timeout_seconds: float) -> Head:
        """Return the head once it has reached a version, or as it is when the time is up."""


class Consumers(Protocol):
    """Named positions of a log. They are durable, and truncation leaves what is behind the least of them."""

    def list(self) -> list[Consumer]:
        """All consumers, by name."""

    def find(self, name: str) -> Consumer | None:
        """The consumer of that name."""

    def advance(self, name: str, version: After, *, force: bool = False) -> Consumer:
        """Say that all patches up to a version were read. A new name is a new consumer. A `Position` is checked first.

        Raises ConsumerRefused for a version beyond the head; and behind where the consumer is, unless `force` says that
        it reads them again.
        """

    def forget(self, name: str) -> None:
        """The consumer reads no more. Raises ConsumerNotFound."""


class LocalConsumers(Consumers, Protocol):
    """Those of a log of this process, for which a service says who asks."""

    def advance(self, name: str, version: After, *, force: bool = False, mover: Mover = ...) -> Consumer:
        """As `Consumers.advance`. Raises ConsumerOwned where the consumer is another's."""

    def forget(self, name: str, *, mover: Mover = ...) -> None:
        """As `Consumers.forget`. Raises ConsumerOwned where the consumer is another's."""


class Snapshots(Protocol):
    """The snapshots of a log. What one holds never changes, and its `sha256` is that of all of its bytes."""

    def list(self) -> list[Snapshot]:
        """All snapshots, by version."""

    def find(self, version: int) -> Snapshot | None:
        """The snapshot at a version."""

    def pending(self) -> SnapshotBuild | None:
        """The snapshot that is being made, or the last that could not be made."""

    def build(self, version: int | None = None) -> Snapshot:
        """Make the snapshot at a version, or at the head, and return when it is durable. One that is there is returned.

        Raises SnapshotRefused beyond the head, and where the patches that it takes are gone; SnapshotBusy while another
        one is made.
        """

    def put(self, version: int, chunks: Iterable[bytes], format: SnapshotFormat = "jelly") -> Snapshot:
        """Take a dataset in. At version 0 of an empty log it is what the log starts with; else it is only compared.

        Raises CodecError for what is not well formed, SnapshotRefused where the log says otherwise, SnapshotBusy while
        another one is made.
        """

    def read(self, version: int, *, start: int = 0) -> Iterator[bytes]:
        """The bytes of a snapshot, from a place on. Raises SnapshotNotFound at once."""

    def delete(self, version: int) -> None:
        """Delete a snapshot. Raises SnapshotNotFound, and SnapshotRefused where it stands for what else is gone."""

    def verify(self, version: int) -> bool:
        """Whether the bytes of a snapshot have the hash that they were stored with. Raises SnapshotNotFound."""


class Upload(Protocol):
    """Patches that are on their way into a log: checked and staged as their bytes come, and appended at the end.

    As a context it is discarded where it was not appended. After an error of `write` it is spent.
    """

    def write(self, data: bytes, /) -> None:
        """Take some bytes. Raises as `PatchLog.append` for what is not well formed."""

    def finish(self) -> Sequence[IngestedPatch]:
        """Say that the input has ended, and return what is known of its patches; `append` does so too."""

    def append(self, expected_head: ExpectedHead = ANY_HEAD) -> Appended:
        """Say that the input has ended and append its patches, as `PatchLog.append` does.

        After a StorageError it may be called again: what was appended in spite of the error is not appended twice.
        """

    def appending(self, expected_head: ExpectedHead = ANY_HEAD) -> Generator[None, None, Appended]:
        """As `append`, in steps that do not wait for others: go on a little after each `yield`."""

    def discard(self) -> None:
        """Leave nothing of it."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class PreparedAppend(Protocol):
    """Patches that came whole and are well formed: all that is left is to give them their place in the log."""

    expected_head: ExpectedHead
    """May be set until it is submitted."""

    @property
    def patches(self) -> Sequence[IngestedPatch]:
        """What is known of the patches."""

    @property
    def size(self) -> int:
        """Bytes of the patches, which are in memory."""


class StagingPatchLog(PatchLog, Protocol):
    """A log of this process, which takes bytes as they come."""

    @property
    def consumers(self) -> LocalConsumers:
        """Those who follow the log by name."""

    def stage(self, format: PatchFormat = "jelly-patch") -> Upload:
        """Begin an upload."""

    def read_stored(self, after: After = 0, *, until: int | None = None) -> Iterator[bytes]:
        """The bytes of what `read` yields, laid end to end, in pieces for those who pass them on."""

    def has_deletes(self, after: int, until: int) -> bool:
        """Whether a patch after a version, until another, deletes statements. Looks at records alone."""

    def verify(self, *, meanwhile: Callable[[int], object] | None = None) -> Verification:
        """As `PatchLog.verify`; `meanwhile` is called all the time, with the number of patches that are checked.

        What it raises ends it.
        """

    def truncate_before(
        self,
        version: int | None = None,
        *,
        force: bool = False,
        meanwhile: Callable[[int], object] | None = None,
    ) -> LogDescription:
        """As `PatchLog.truncate_before`; `meanwhile` is called all the time, with the version below which all is gone.

        What it raises ends it; what is forgotten by then stays so.
        """

    def prepare(self, data: bytes, format: PatchFormat = "jelly-patch") -> PreparedAppend | None:
        """Check an upload that came whole, without waiting for anything; None where that cannot be: ask `stage` then.

        Raises as `append` for what is not well formed. The store's `submit` appends it, with others in one transaction.
        """


class LogStore(Protocol):
    """A set of logs, by name. Names are checked with UsageError."""

    def create(self, name: str, options: LogOptions = ...) -> LogDescription:
        """Create an empty log. Raises LogAlreadyExists."""

    def log(self, name: str) -> PatchLog:
        """The log of that name, whether it is there or not."""

    def list(self, *, after: str = "", limit: int | None = None) -> list[LogDescription]:
        """Describe the logs, in the order of their names, from the one behind `after` on."""

    def delete(self, name: str) -> None:
        """Delete a log and all of its patches. A log of that name that is created later is another one."""

    def close(self) -> None:
        """Let go of what the store holds open."""
