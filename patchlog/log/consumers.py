"""What holds for the consumers of a log, whatever keeps it: where they may stand, and what truncation leaves to them.

A consumer that stands at version V still needs the patches from V + 1 on.
"""

from __future__ import annotations

from collections.abc import Iterable

from patchlog.errors import ConsumerRefused, TruncationRefused
from patchlog.log.records import Consumer, time_of

__all__ = ["check_advance", "check_truncation", "consumer_of", "default_truncation"]


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
) -> Consumer:
    """A consumer as it is now. `next_ms` is the time of the first patch that it has not read."""
    lag_ms = 0 if next_ms is None else max(0, now_ms - next_ms)
    return Consumer(name, version, head_version - version, lag_ms / 1000, time_of(updated_ms), log_id, hash)


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
