"""What a follower brings to a target, and what a target is.

A target keeps the position with the effect where it can, so that both are there or neither. Where it cannot, a change
may come to it again after a crash; effects are idempotent, so nothing comes of that. Each target's file says which.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from patchlog.effect import Effect, NamespaceKey
from patchlog.log.records import LogDescription, LoggedPatch, PatchRecord
from patchlog.model import Header, Quad, Term

__all__ = ["Change", "Dataset", "DatasetTarget", "Target"]


@dataclass(frozen=True, slots=True)
class Change:
    """A patch of the log: what is known of it, what it says of itself, and what it does."""

    record: PatchRecord
    headers: tuple[Header, ...]
    effect: Effect


@dataclass(frozen=True, slots=True)
class Dataset:
    """All that there is at a version. The quads can be taken once."""

    version: int
    quads: Iterable[Quad]
    namespaces: Mapping[NamespaceKey, Term]


class DatasetTarget(Protocol):
    """A dataset somewhere, which changes as the patches say."""

    def begin(self, log: LogDescription) -> int | None:
        """Return the version of this log that the target has reached, or None where it has nothing of it yet."""

    def apply(self, change: Change) -> None:
        """Let a patch take effect, and keep its version as the position."""

    def load(self, dataset: Dataset) -> None:
        """Make this the whole of what the target has, and keep its version as the position."""

    def close(self) -> None:
        """Let go of what the target holds open."""


class Target(Protocol):
    """What a follower drives: a dataset with a selection (`changes.Applying`), or a log."""

    def begin(self, log: LogDescription) -> int | None:
        """As `DatasetTarget.begin`."""

    def take(self, logged: LoggedPatch) -> None:
        """Take the next patch, whole, and keep its version as the position."""

    def load(self, dataset: Dataset) -> None:
        """As `DatasetTarget.load`."""

    def close(self) -> None:
        """Let go of what the target holds open."""
