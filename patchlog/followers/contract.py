"""What a follower brings to a target, and what a target is.

A target keeps the position (log id, version, chain hash) with the effect where it can, so that both are there or
neither. Where it cannot, a change may come to it again after a crash; effects are idempotent, so that changes nothing.
Each target's file says which.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from patchlog.effect import Effect, NamespaceKey
from patchlog.log.position import Position
from patchlog.log.records import LogDescription, LoggedPatch, PatchRecord
from patchlog.model import Header, Quad, Term

__all__ = ["Change", "Dataset", "DatasetTarget", "Target", "TargetMoved"]


class TargetMoved(Exception):
    """The target is not where this follower left it: restarted, restored, or written by another follower."""


@dataclass(frozen=True, slots=True)
class Change:
    """A patch of the log: what is known of it, what it says of itself, and what it does."""

    record: PatchRecord
    headers: tuple[Header, ...]
    effect: Effect


@dataclass(frozen=True, slots=True)
class Dataset:
    """All that there is at a position. The quads can be taken once."""

    position: Position
    quads: Iterable[Quad]
    namespaces: Mapping[NamespaceKey, Term]

    @property
    def version(self) -> int:
        """The version of the log."""
        return self.position.version


class _Positioned(Protocol):
    def position(self) -> Position | None:
        """Read from the target which position of the log it has; None where it has nothing of it yet.

        It may name another log, or have no hash: the caller compares it with the log. Raises HistoryMismatch and
        OtherPart where the target itself can tell that it cannot go on.
        """

    def keep(self, position: Position | None) -> None:
        """Go on from a position that was read and compared with the log, and complete what is stored of it.

        With None the target has nothing of the log; nothing is changed then.
        """

    def check(self) -> None:
        """Raise TargetMoved where the target is not where it was left."""

    def start_again(self) -> None:
        """Let nothing that is there count: what comes next is a `load`. Raises UsageError where that cannot be."""

    def close(self) -> None:
        """Let go of what the target holds open."""


class DatasetTarget(_Positioned, Protocol):
    """A dataset somewhere, which changes as the patches say."""

    def begin(self, log: LogDescription, part: str) -> None:
        """Say which log this is, and which part of it is followed."""

    def apply(self, change: Change) -> None:
        """Let a patch take effect and keep its position, from the position before it alone.

        Raises TargetMoved where the target is known to be elsewhere.
        """

    def load(self, dataset: Dataset) -> None:
        """Make this the whole of what the target has, and keep its position."""


class Target(_Positioned, Protocol):
    """What a follower drives: a dataset with a selection (`changes.Applying`), or a log."""

    def begin(self, log: LogDescription) -> None:
        """Say which log this is."""

    def take(self, logged: LoggedPatch) -> None:
        """Take the next patch, whole, and keep its position. Raises TargetMoved as `DatasetTarget.apply`."""

    def load(self, dataset: Dataset) -> None:
        """As `DatasetTarget.load`."""
