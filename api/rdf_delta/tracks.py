"""Where the clients of RDF Delta's API are in a log, by what they ask for. They say neither a name nor a position.

A client asks for the head, and fetches what it lacks one by one in a local transaction. So what it has for certain is
where it was when it began to fetch; it has the rest when it goes on from there after it asked for the head again.

    fetch V        the track that is at V - 1 goes on; else one that was cut off and begins again; else a new one
    append of V    as a fetch, and what is before it was there
    head           asked for twice without a fetch: what was fetched is there, if that is the head

Several clients may have one address, or one key. They are distinguished by what they fetch: a fetch that fits no
track is another client's. Where that is wrong, a track stays behind and holds truncation up: `forget` ends it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from api.rdf_delta.clients import Client

__all__ = ["PREFIX", "Track", "Tracks"]

PREFIX: Final = "rdf-delta."
"""With which the names of these consumers begin."""

_MOST_TRACKS: Final = 16
"""Of one client. Of more of them the slowest are counted, for which truncation has to wait."""
_LOOKS: Final = 2
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]")
_MOST_CHARACTERS: Final = 80


@dataclass(slots=True)
class Track:
    """A client that fetches versions one after the other."""

    name: str
    """Of its consumer."""
    base: int
    """The version that it has for certain."""
    reached: int
    """The version that it fetched last."""
    looks: int = 0
    """How often the head was asked for since then."""
    is_midway: bool = False
    """Whether there was more to fetch after that, so that its local transaction has not ended."""
    is_changed: bool = True
    """Whether it is to be written."""
    has_gone_back: bool = False
    """Whether it stands for another client than before, which is not as far."""

    def go_on(self, version: int, head_version: int) -> None:
        """Take notice of a fetch."""
        if self.looks and not self.is_midway and version == self.reached + 1:
            self.base = self.reached
        self.reached = version
        self.looks = 0
        self.is_midway = version < head_version
        self.is_changed = True

    def settle(self) -> None:
        """It has what it fetched."""
        if self.base < self.reached:
            self.base = self.reached
            self.is_changed = True


class Tracks:
    """The tracks of one client in one log."""

    def __init__(self, client: Client, tracks: Iterable[Track] = ()) -> None:
        self.name: Final = PREFIX + _UNSAFE.sub("-", client.name)[:_MOST_CHARACTERS]
        self.all: Final = list(tracks)
        self._head_version = 0
        """As it was described last: so far a client fetches."""

    def is_named(self, consumer: str) -> bool:
        """Whether a consumer is a track of this client."""
        begin, _, number = consumer.rpartition(".")
        return consumer == self.name or (begin == self.name and number.isdigit())

    def merge(self, written: Iterable[Track]) -> None:
        """Add what is written of the client's tracks, where another process knows more of them."""
        mine = {track.name: track for track in self.all}
        for track in written:
            known = mine.get(track.name)
            if known is None:
                self.all.append(track)
            elif (known.base, known.reached) < (track.base, track.reached) and not known.has_gone_back:
                known.base, known.reached = track.base, max(known.reached, track.reached)

    def fetched(self, version: int) -> bool:
        """Take notice of a fetch. False where no track would be at that version."""
        track = self._lacking(version)
        if track is not None:
            track.go_on(version, self._head_version)
        return track is not None

    def appended(self, version: int) -> bool:
        """Take notice of an append, which nobody makes who lacks what is before it. False where no track does so."""
        track = self._lacking(version)
        if track is None:
            return any(track.reached == version for track in self.all)  # sent again
        track.reached = version - 1
        track.settle()
        track.go_on(version, version)
        return True

    def add(self, version: int) -> None:
        """Begin a track with the fetch of a version."""
        is_midway = version < self._head_version
        if len(self.all) < _MOST_TRACKS:
            self.all.append(Track(self._free_name(), version - 1, version, is_midway=is_midway))
            return
        first = max(self.all, key=lambda track: track.base)
        if first.base >= version:
            first.base, first.reached, first.looks, first.is_midway = version - 1, version, 0, is_midway
            first.is_changed = first.has_gone_back = True

    def looked(self, head_version: int) -> list[Track]:
        """Take notice that the head was asked for. The tracks that are there; others would go on to fetch."""
        self._head_version = max(self._head_version, head_version)
        for track in self.all:
            track.looks += 1
        there = [track for track in self.all if track.reached >= head_version]
        for track in there:
            if track.looks >= _LOOKS:
                track.settle()
        return there

    def _lacking(self, version: int) -> Track | None:
        """The track that is to fetch a version.

        First who is in the middle; then who was cut off and begins again; then who had all that there was; and last who
        may have been cut off, or have had all when its head was the head.
        """
        following = [track for track in self.all if track.reached == version - 1]
        cut_off = [track for track in self.all if track.is_midway and track.looks]
        candidates = (
            [track for track in following if track.is_midway and not track.looks]
            or [track for track in cut_off if track.base == version - 1]
            or [track for track in following if not track.is_midway]
            or following
        )
        return max(candidates, key=lambda track: track.base, default=None)

    def _free_name(self) -> str:
        taken = {track.name for track in self.all}
        names = [self.name, *(f"{self.name}.{number}" for number in range(2, _MOST_TRACKS + 1))]
        return next(name for name in names if name not in taken)
