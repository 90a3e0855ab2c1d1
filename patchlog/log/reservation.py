"""Gives a large upload its place in a log that others append to meanwhile.

The first patch of an upload says which one came before it, so its hash depends on the head, and a large patch takes
seconds to hash. It is hashed for the head as it is, and placed if that is still the head. Where others are faster again
and again, the upload reserves the next place: appends to that log wait, to no other, and no thread that writes waits.

A reservation is short, and is extended while the work goes on: the place of a process that has died is soon free.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias, TypeVar

from patchlog.codec.patch_ids import PatchId
from patchlog.errors import LogError, PatchLogError, StorageError
from patchlog.log.records import Appended
from patchlog.log.staging import Staging

__all__ = [
    "PATIENCE_SECONDS",
    "PAUSE_SECONDS",
    "RESERVED_MS",
    "Place",
    "PlaceReserved",
    "Reserved",
    "Steps",
    "patiently",
    "place",
    "step",
    "waited",
]

RESERVED_MS: Final = 10_000
"""For how long a place is kept at first, and after each time that it is asked for."""
PATIENCE_SECONDS: Final = 75.0
"""How long an append waits for others that have the next place."""
PAUSE_SECONDS: Final = 0.05

_TRIES_WITHOUT_PLACE: Final = 3
_MOST_SECONDS: Final = 60.0
"""How long others may have to wait for one upload."""
_RENEW_SECONDS: Final = 2.0

_Result = TypeVar("_Result")

Steps: TypeAlias = Generator[None, None, _Result]
"""Work that stops at each `yield`, while another upload has the next place: go on after `PAUSE_SECONDS`."""


class PlaceReserved(LogError):
    """Another upload has the next place in the log. It stays inside of the store: who appends waits a little."""

    def __init__(self) -> None:
        super().__init__("a large upload is on its way into the log: send this again")

    def given_up(self) -> StorageError:
        """The error for who has waited long enough."""
        return StorageError(str(self), is_transient=True)


@dataclass(frozen=True, slots=True)
class Reserved:
    """The next place is ours, after this patch."""

    prev: PatchId | None


class Place(Protocol):
    """What an upload does to its log. All raise what an append raises, and all but `release` PlaceReserved."""

    def head_id(self) -> PatchId | None:
        """The id of the head as it is."""

    def append(self, hashes: Mapping[PatchId | None, bytes]) -> Appended | None:
        """Append; None where the head is one for which there is no hash."""

    def reserve(self) -> Reserved | Appended:
        """Have the next place, or have it for longer. The answer to a retry, where it is one."""

    def release(self) -> None:
        """Let others append."""


def place(staging: Staging, place: Place) -> Steps[Appended]:
    """Append a large upload. Raises what an append raises."""
    hashes: dict[PatchId | None, bytes] = {}
    for _ in range(_TRIES_WITHOUT_PLACE):
        prev = place.head_id()
        hashes[prev] = staging.first_content_hash(prev)
        if (appended := (yield from patiently(lambda: place.append(hashes)))) is not None:
            return appended
    reserved = yield from patiently(place.reserve)
    give_up_at = time.monotonic() + _MOST_SECONDS
    try:
        while not isinstance(reserved, Appended):
            keep = _Keep(place, give_up_at)
            hashes[reserved.prev] = staging.first_content_hash(reserved.prev, keep)
            if (appended := place.append(hashes)) is not None:
                return appended
            keep()
            reserved = place.reserve()  # it was lost: this process was silent for too long
    except PlaceReserved as error:
        raise error.given_up() from None
    except BaseException:
        with suppress(PatchLogError):  # it ends by itself
            place.release()
        raise
    return reserved


def patiently(call: Callable[[], _Result]) -> Steps[_Result]:
    """Call, again and again while another upload has the next place. Raises StorageError where that takes too long."""
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return call()
        except PlaceReserved as error:
            if time.monotonic() > give_up_at:
                raise error.given_up() from None
        yield


def step(steps: Steps[_Result]) -> _Result | None:
    """Go on; None where another upload has the next place."""
    try:
        next(steps)
    except StopIteration as end:
        result: _Result = end.value
        return result
    return None


def waited(steps: Steps[_Result]) -> _Result:
    """Do it all, and wait in this thread where that is necessary."""
    while (result := step(steps)) is None:
        time.sleep(PAUSE_SECONDS)
    return result


class _Keep:
    """Extends a reservation from time to time, up to the end of others' patience."""

    def __init__(self, place: Place, give_up_at: float) -> None:
        self._place = place
        self._give_up_at = give_up_at
        self._next = time.monotonic() + _RENEW_SECONDS

    def __call__(self) -> None:
        now = time.monotonic()
        if now > self._give_up_at:
            raise StorageError("the upload took too long to get its place: send it in parts", is_transient=True)
        if now > self._next:
            self._place.reserve()
            self._next = now + _RENEW_SECONDS
