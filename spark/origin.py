"""Where the log is that Spark reads: a service, a database or a file. Travels to the executors, which open it anew."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from patchlog.errors import UsageError
from patchlog.log.contract import PatchLog
from patchlog.log.position import Position
from patchlog.places import Place, is_store, parted

__all__ = ["LogIdentity", "Origin", "Range", "check_options", "plan"]

_OPTIONS: Final = ("url", "database", "file", "log", "token")
_OF_CATALOGS: Final = {"path", "serialization.format"}
"""What Spark may put there by itself."""

_FILE: Final = "file:"
_KINDS: Final = ("url", "database", "file")
_LISTED_VERSIONS: Final = 10_000
"""Up to so many versions, partitions are balanced by what the patches hold, which has to be asked for."""


@dataclass(frozen=True, slots=True)
class Range:
    """The versions behind `after`, up to `until`."""

    after: int
    until: int

    def __str__(self) -> str:
        return f"{self.after}-{self.until}"

    @classmethod
    def parse(cls, text: str) -> Range:
        """The range that `str` gives."""
        after, _, until = text.rpartition("-")
        return cls(int(after), int(until))


@dataclass(frozen=True, slots=True)
class LogIdentity:
    """Which log it is: the name that people give it, and the id that tells it from another of that name."""

    id: str
    name: str

    def position(self, version: int, hash: bytes | None) -> Position:
        """A position in this log. A file is known by its content alone."""
        return Position(None if self.id.startswith(_FILE) else self.id, version, hash)


@dataclass(frozen=True, slots=True)
class Origin:
    """The place of a log, and the key for it."""

    place: Place
    token: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, location: str, log: str | None = None, token: str | None = None) -> Origin:
        """The log of that name of a service or a database, whose URL may say the name itself; or a file of patches."""
        if not is_store(location):
            return cls(Place(None, None, location), token)
        place = parted(location)
        if None not in (log, place.name) and log != place.name:
            raise UsageError(f"{location} and {log}: give one name of a log")
        # Executors do not have the environment of the driver.
        token = token or os.environ.get("PATCHLOG_TOKEN")
        return cls(Place(place.store_url, log or place.name), token)

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Origin:
        """The origin in the options of a data source: one of url, database and file, log, and token."""
        given = [options[name] for name in _KINDS if options.get(name)]
        if len(given) != 1:
            raise UsageError("say where the log is by one of the options url, database and file")
        return cls.of(given[0], options.get("log"), options.get("token"))

    def options(self) -> dict[str, str]:
        """The options of a data source that mean this."""
        store = self.place.store_url
        kind = "file" if store is None else "url" if store.startswith("http") else "database"
        options = {kind: store or self.place.file, "log": self.place.name, "token": self.token}
        return {name: value for name, value in options.items() if value is not None}

    @property
    def is_file(self) -> bool:
        """Whether it is a file of patches."""
        return self.place.file is not None

    def opened(self) -> AbstractContextManager[PatchLog]:
        """Open the log."""
        return self.place.log(token=self.token)

    def identity(self, log: PatchLog) -> LogIdentity:
        """Which log this is. A file that grows stays the same log."""
        description = log.describe()
        if not self.is_file:
            return LogIdentity(description.id, description.name)
        first = log.find(1)
        if first is None:
            raise UsageError(f"{self.place} has no patches")
        return LogIdentity(f"{_FILE}{first.chain_hash.hex()[:32]}", description.name)


def check_options(options: Mapping[str, str], known: Iterable[str]) -> None:
    """Raise UsageError for an option of a data source that is none, which Spark would pass over."""
    names = (*_OPTIONS, *known)
    found = {name.lower() for name in options} - {name.lower() for name in names} - _OF_CATALOGS
    if found:
        raise UsageError(f"{', '.join(sorted(found))} is no option of this source; there are {', '.join(names)}")


def plan(log: PatchLog, whole: Range, partitions: int, *, is_divisible: bool = True) -> list[Range]:
    """Divide versions into ranges of about the same number of operations, to be read side by side.

    A file can only be read from its begin, so it is not divided. Raises PositionGone where versions are gone.
    """
    if whole.until <= whole.after:
        return []
    patches = log.read(whole.after, until=whole.until)
    if not is_divisible or partitions < 2:
        return [whole]
    if whole.until - whole.after > _LISTED_VERSIONS:
        return even(whole, partitions)
    return balanced([(logged.record.version, logged.record.operations) for logged in patches], partitions)


def even(whole: Range, partitions: int) -> list[Range]:
    """Ranges of as many versions each."""
    count = whole.until - whole.after
    cuts = sorted({whole.after + count * part // partitions for part in range(partitions + 1)})
    return [Range(after, until) for after, until in pairwise(cuts)]


def balanced(sizes: list[tuple[int, int]], partitions: int) -> list[Range]:
    """Ranges of about as many operations each, from the versions in order and what is in each."""
    wanted = max(1, sum(operations for _, operations in sizes) / partitions)
    ranges: list[Range] = []
    after, gathered = sizes[0][0] - 1, 0
    for version, operations in sizes:
        gathered += operations
        if gathered >= wanted or version == sizes[-1][0]:
            ranges.append(Range(after, version))
            after, gathered = version, 0
    return ranges
