"""What is known of the snapshots of a log, kept with the log; and the rules for it, whatever keeps it.

A snapshot is begun, which one at a time can be; then it is completed, or has failed. Who does not say for a while that
it is still at work has died, and another one may begin. Before a file is written its location is known here, and when
it is no longer wanted it goes to the trash, so that no crash leaves a file that nobody knows of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from patchlog.errors import SnapshotBusy, SnapshotNotFound, SnapshotRefused
from patchlog.log.records import LogOptions, Snapshot, SnapshotBuild
from patchlog.log.snapshots.writing import Written

__all__ = [
    "DEAD_MS",
    "Begun",
    "Filed",
    "LogState",
    "SnapshotIndex",
    "check_begin",
    "check_complete",
    "check_delete",
    "lost",
]

DEAD_MS: Final = 120_000
"""How long a build may be silent."""


@dataclass(frozen=True, slots=True)
class Filed:
    """A snapshot and where its file is."""

    snapshot: Snapshot
    location: str


@dataclass(frozen=True, slots=True)
class LogState:
    """The log, as it is while its row is locked."""

    id: str
    options: LogOptions
    head_version: int
    first_version: int


@dataclass(frozen=True, slots=True)
class Begun:
    """A snapshot that this process makes: where it is to be, and the snapshot that it is made from."""

    version: int
    owner: bytes
    location: str
    options: LogOptions
    base: Filed | None


class SnapshotIndex(Protocol):
    """The snapshots of one log."""

    def list(self) -> list[Filed]:
        """All that are complete, by version. Raises LogNotFound."""

    def pending(self) -> SnapshotBuild | None:
        """The one that is being made, or the last that could not be made."""

    def begin(self, version: int | None, *, is_given: bool = False) -> Begun | Filed:
        """Begin a snapshot at a version, or at the head; one that is there is the answer.

        It is made from patches, or is given: what the log is to start with.
        """

    def renew(self, begun: Begun) -> None:
        """Say that it is still being made. Raises SnapshotRefused where somebody else has taken over."""

    def complete(self, begun: Begun, written: Written) -> Snapshot:
        """Its file is durable."""

    def fail(self, begun: Begun, reason: str) -> None:
        """It could not be made."""

    def remove(self, version: int) -> None:
        """Forget a snapshot, and put its file in the trash."""

    def trash(self) -> Sequence[str]:
        """The files that are to be deleted."""

    def emptied(self, locations: Sequence[str]) -> None:
        """These files were deleted."""


def check_begin(
    log: LogState, version: int, there: Sequence[Filed], busy: int | None, *, is_given: bool
) -> tuple[Filed | None, Filed | None]:
    """The snapshot that is there at this version, or else the one to make it from, if it takes one.

    Raises SnapshotRefused and SnapshotBusy; `busy` is the version that is being made.
    """
    if not 0 <= version <= log.head_version:
        raise SnapshotRefused(f"the log has no version {version} yet; its head is {log.head_version}")
    before = max(
        (filed for filed in there if filed.snapshot.version <= version),
        key=lambda filed: filed.snapshot.version,
        default=None,
    )
    if before is not None and before.snapshot.version == version:
        return before, None
    if version == 0 and not is_given:
        raise SnapshotRefused("version 0 is empty: put a dataset that the log is to start with")
    if version == 0 and log.head_version > 0:
        raise SnapshotRefused("the log has patches already: it cannot start with a dataset any more")
    if (0 if before is None else before.snapshot.version) + 1 < log.first_version:
        raise SnapshotRefused(
            f"patches below version {log.first_version} are gone, and no snapshot up to {version} stands for them"
        )
    if busy is not None:
        raise SnapshotBusy(busy)
    return None, before


def check_complete(log: LogState, version: int) -> None:
    """Raise SnapshotRefused where patches were appended to a log that was to start with a dataset."""
    if version == 0 and log.head_version > 0:
        raise SnapshotRefused("the log has patches meanwhile: what it starts with cannot change any more")


def check_delete(log: LogState, version: int, there: Sequence[Filed]) -> Filed:
    """The snapshot at a version, which nothing needs. Raises SnapshotNotFound and SnapshotRefused."""
    found = next((filed for filed in there if filed.snapshot.version == version), None)
    if found is None:
        raise SnapshotNotFound(f"the log has no snapshot at version {version}")
    if version == 0 and log.first_version == 1:
        raise SnapshotRefused("the log starts with this snapshot: its patches have no meaning without it")
    others = (filed.snapshot.version for filed in there if filed is not found)
    if log.first_version > 1 and max(others, default=-1) < log.first_version - 1:
        raise SnapshotRefused(
            f"this snapshot stands for the patches below version {log.first_version}, which are gone: build one first"
        )
    return found


def lost(version: int) -> SnapshotRefused:
    """Somebody else has taken over, as this process seemed to be dead."""
    return SnapshotRefused(f"who made the snapshot at version {version} was silent for too long, and taken for dead")
