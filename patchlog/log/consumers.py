"""What holds for the consumers of a log, whatever keeps it: where they may stand, and what truncation leaves to them.

A consumer that stands at version V still needs the patches from V + 1 on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from patchlog.errors import ConsumerOwned, ConsumerRefused, TruncationRefused
from patchlog.log.records import Consumer, time_of

__all__ = ["ANYONE", "Mover", "check_advance", "check_truncation", "consumer_of", "default_truncation"]


@dataclass(frozen=True, slots=True)
class Mover:
    """Who moves or forgets consumers: its own, and as an administrator those of others.

    A consumer without an owner was made before there were owners, or where everyone is the same. It belongs to the
    first that moves it forward and is no administrator; one whose owner is among the `gone` to the first that moves it.
    """

    owner: str | None = None
    """The principal that new consumers belong to."""
    is_admin: bool = False
    gone: frozenset[str] = frozenset()

    def owner_after_advance(self, name: str, before: str | None, *, force: bool) -> str | None:
        """The owner of a consumer that this moves. Raises ConsumerOwned."""
        if self.is_admin or (before is None and force):
            return before
        if before is None or before in self.gone:
            return self.owner
        self._check(name, before)
        return before

    def check_forget(self, name: str, owner: str | None) -> None:
        """Raise ConsumerOwned where this may not forget a consumer. One without an owner is the administrators'."""
        if owner is None or owner not in self.gone:
            self._check(name, owner)

    def _check(self, name: str, owner: str | None) -> None:
        if not self.is_admin and (owner is None or owner != self.owner):
            whose = "has no owner" if owner is None else "belongs to another key"
            raise ConsumerOwned(f"the consumer {name!r} {whose}: this needs the right 'admin' on the log", owner)


ANYONE: Final = Mover(is_admin=True)
"""Who has the log itself."""


def consumer_of(
    name: str,
    version: int,
    updated_ms: int,
    *,
    head_version: int,
    next_ms: int | None,
    now_ms: int,
    log_id: str,
    hash: bytes,
    owner: str | None,
) -> Consumer:
    """A consumer as it is now. `next_ms` is the time of the first patch that it has not read."""
    lag_ms = 0 if next_ms is None else max(0, now_ms - next_ms)
    return Consumer(name, version, head_version - version, lag_ms / 1000, time_of(updated_ms), log_id, hash, owner)


def check_advance(name: str, before: int | None, version: int, head_version: int, *, force: bool) -> None:
    """Raise ConsumerRefused where a consumer cannot go to a version from where it was before."""
    if not 0 <= version <= head_version:
        raise ConsumerRefused(f"the log has no version {version} yet; its head is {head_version}")
    if before is not None and version < before and not force:
        raise ConsumerRefused(
            f"the consumer {name!r} has read up to version {before}: only by force does it go back to {version}"
        )


def check_truncation(
    version: int, first_version: int, consumers: Iterable[tuple[str, int]], snapshots: Iterable[int], *, force: bool
) -> None:
    """Raise TruncationRefused where somebody still needs a patch below a version. Consumers have a name and a place."""
    if version <= first_version:
        return
    if max(snapshots, default=-1) < version - 1:
        raise TruncationRefused(
            f"no snapshot stands for the patches below version {version}: build one at {version - 1} or above first"
        )
    needy = min(((place, name) for name, place in consumers), default=None)
    if needy is not None and needy[0] < version - 1 and not force:
        place, name = needy
        raise TruncationRefused(
            f"the consumer {name!r} has read up to version {place} only: truncate before {place + 1}, or by force", name
        )


def default_truncation(consumers: Iterable[tuple[str, int]], snapshots: Iterable[int]) -> int:
    """The version before which all can be forgotten that nobody needs: behind a snapshot that all have reached."""
    places = [place for _, place in consumers]
    return max((version for version in snapshots if not places or version <= min(places)), default=0) + 1
