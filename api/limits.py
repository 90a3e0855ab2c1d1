"""How much a principal may ask for: requests and uploaded bytes a second, and open streams. What is over it is 429.

Each principal has a bucket of two seconds' worth that fills as time goes. A request takes from it when it begins, and
an upload what has come, whatever it says that it has: so one upload may be larger than the bucket, and the next waits
until that has filled again. Where no keys are asked for, an address is a principal.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from api.errors import Problem, Refusal
from api.principal import Principal
from api.settings import Settings

__all__ = ["Limits", "identity_of", "limits_of"]

_BURST_SECONDS: Final = 2.0
_MOST_BUCKETS: Final = 10_000
_TOO_MANY: Final = Problem(429, "rate-limited", "The principal asks for more than it may")


class Limits:
    """The limits of a service. Belongs to one event loop."""

    def __init__(
        self,
        requests: float | None,
        upload_bytes: float | None,
        streams: int | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._requests: Final = None if requests is None else _Buckets(requests, clock)
        self._upload_bytes: Final = None if upload_bytes is None else _Buckets(upload_bytes, clock)
        self._most_streams: Final = streams
        self._streams: Final[Counter[str]] = Counter()

    def begin(self, identity: str, size: int | None = 0) -> None:
        """Take a request from what is left, and a body of that size; None for one that comes later. Raises Refusal."""
        for buckets, what in ((self._requests, "requests"), (self._upload_bytes, "uploaded bytes")):
            seconds = 0.0 if buckets is None else buckets.seconds_until(identity)
            if seconds and (buckets is self._requests or size != 0):
                raise _refusal(f"more {what} a second than this service allows: try again", seconds)
        if self._requests is not None:
            self._requests.take(identity, 1)
        if size:
            self.received(identity, size)

    def allows(self, identity: str) -> bool:
        """Whether a request with a body would begin now."""
        return not any(
            buckets.seconds_until(identity) for buckets in (self._requests, self._upload_bytes) if buckets is not None
        )

    def received(self, identity: str, size: int) -> None:
        """Take bytes that have come, also more than are left."""
        if self._upload_bytes is not None:
            self._upload_bytes.take(identity, size)

    @contextmanager
    def stream(self, identity: str) -> Iterator[None]:
        """Count a stream as open. Raises Refusal."""
        if self._most_streams is not None and self._streams[identity] >= self._most_streams:
            raise _refusal(
                f"{self._most_streams} streams are open, which is all that this service allows: close one", 1
            )
        self._streams[identity] += 1
        try:
            yield
        finally:
            self._streams[identity] -= 1
            if not self._streams[identity]:
                del self._streams[identity]


class _Buckets:
    """What is left to each principal, which may be less than nothing."""

    def __init__(self, rate: float, clock: Callable[[], float]) -> None:
        self._rate = rate
        self._most = max(1.0, rate * _BURST_SECONDS)
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}

    def seconds_until(self, identity: str) -> float:
        """How long until something is left; 0 where something is."""
        left = self._now(identity)
        needed = min(1.0, self._most)
        return 0.0 if left >= needed else (needed - left) / self._rate

    def take(self, identity: str, count: float) -> None:
        """Take so much."""
        if len(self._left) >= _MOST_BUCKETS and identity not in self._left:
            self._left = {one: kept for one, kept in self._left.items() if self._now(one) < self._most}
        self._left[identity] = self._now(identity) - count, self._clock()

    def _now(self, identity: str) -> float:
        left, since = self._left.get(identity, (self._most, 0.0))
        return min(self._most, left + (self._clock() - since) * self._rate)


def limits_of(settings: Settings) -> Limits | None:
    """The limits that settings ask for; None for none."""
    chosen = settings.requests_per_second, settings.upload_bytes_per_second, settings.open_streams
    return None if chosen == (None, None, None) else Limits(*chosen)


def identity_of(principal: Principal, address: str) -> str:
    """By which a principal is counted."""
    return principal.id if principal.owner is not None else f"{principal.id}:{address}"


def _refusal(detail: str, seconds: float) -> Refusal:
    wait = str(max(1, math.ceil(seconds)))
    return Refusal(Problem(_TOO_MANY.status, _TOO_MANY.name, _TOO_MANY.title, {"Retry-After": wait}), detail)
