"""What a log says of itself and of its patches. Times are UTC, ISO 8601 with milliseconds; hashes are SHA-256."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from patchlog.codec.ingest import stored_options
from patchlog.codec.options import PatchOptions
from patchlog.codec.patch_ids import PatchId
from patchlog.errors import UsageError

__all__ = [
    "ANY_HEAD",
    "EMPTY_HEAD",
    "NAME",
    "AnyHead",
    "Appended",
    "Consumer",
    "ExpectedHead",
    "Head",
    "LogDescription",
    "LogOptions",
    "LoggedPatch",
    "PatchRecord",
    "Snapshot",
    "SnapshotBuild",
    "Verification",
    "check_consumer_name",
    "check_log_name",
    "id_in",
    "ms_of",
    "name_is_id",
    "time_of",
]

NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_ID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def check_log_name(name: str) -> str:
    """Return the name, or raise UsageError where no log can have it."""
    return _checked(name, "log")


def id_in(name: str) -> str | None:
    """The id that the name of a log could be taken for, as RDF Delta's API finds logs by name and by id."""
    return name.lower() if _ID.fullmatch(name) else None


def name_is_id(name: str) -> UsageError:
    """The error of who would create a log with the id of another one as its name."""
    return UsageError(f"{name!r} is the id of another log, for which it would be taken: choose another name")


def check_consumer_name(name: str) -> str:
    """Return the name, or raise UsageError where no consumer can have it."""
    return _checked(name, "consumer")


def _checked(name: str, what: str) -> str:
    if NAME.fullmatch(name) is None:
        raise UsageError(
            f"{name!r} is not the name of a {what}: write 1 to 100 letters (A-Z, a-z), digits, '_', '.' and '-', "
            "beginning with a letter, a digit or '_'"
        )
    return name


def time_of(milliseconds: int) -> str:
    """The time that so many milliseconds after 1970 are."""
    seconds, rest = divmod(milliseconds, 1000)
    return f"{_time_of_second(seconds)}.{rest:03}Z"


@lru_cache(maxsize=64)
def _time_of_second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().removesuffix("+00:00")


def ms_of(time: str) -> int:
    """How many milliseconds after 1970 a time is."""
    return round(datetime.fromisoformat(time).timestamp() * 1000)


class AnyHead(Enum):
    """The type of `ANY_HEAD`."""

    ANY = "whatever the head is"


ANY_HEAD: Final = AnyHead.ANY
"""The patch goes on whatever the head is."""

ExpectedHead: TypeAlias = PatchId | AnyHead | None
"""The patch that a writer built on; None is the empty log."""


@dataclass(frozen=True, slots=True)
class LogOptions:
    """What all patches of a log may hold. Fixed when it is created."""

    rdf_star: bool = True
    generalized_statements: bool = True

    @property
    def patch_options(self) -> PatchOptions:
        """The options of the log's Jelly-Patch streams."""
        return stored_options(rdf_star=self.rdf_star, generalized_statements=self.generalized_statements)


# What is made for each append is a tuple: a frozen class takes several times as long.


class Head(NamedTuple):
    """The last patch of a log. `hash` is its chain hash, which vouches for all that came before."""

    version: int
    id: PatchId | None
    hash: bytes
    time: str | None


EMPTY_HEAD: Final = Head(version=0, id=None, hash=bytes(32), time=None)


@dataclass(frozen=True, slots=True)
class LogDescription:
    """A log as it stands. The counts are of the patches that are kept: those from `first_version` on."""

    name: str
    id: str
    options: LogOptions
    created: str
    head: Head
    first_version: int
    operations: int
    bytes: int

    @property
    def patches(self) -> int:
        """How many patches are kept."""
        return self.head.version - self.first_version + 1


class PatchRecord(NamedTuple):
    """What is known of a patch in a log without its bytes.

    `content_hash` is of all bytes, `body_hash` of those that depend neither on `id` nor on `prev`, and `chain_hash` of
    the chain hash before and the content hash.
    """

    version: int
    id: PatchId
    prev: PatchId | None
    content_hash: bytes
    chain_hash: bytes
    body_hash: bytes
    bytes: int
    operations: int
    adds: int
    deletes: int
    namespaces: int
    transactions: int
    time: str


@dataclass(frozen=True, slots=True)
class LoggedPatch:
    """A patch and its bytes, in chunks that end where frames do unless a frame is larger than a chunk."""

    record: PatchRecord
    chunks: Iterable[bytes] = field(repr=False)


class Appended(NamedTuple):
    """Where the patches of an upload are in the log. `id` and `version` are of the last.

    `is_retry` says that they were there before: nothing was written this time.
    """

    first_version: int
    version: int
    id: PatchId
    operations: int
    bytes: int
    is_retry: bool = False


@dataclass(frozen=True, slots=True)
class Verification:
    """What a walk along the chain has found, from the first kept version up to the first that is bad."""

    head: Head
    checked: int
    first_bad_version: int | None = None
    reason: str | None = None

    @property
    def is_sound(self) -> bool:
        """Whether all hashes are right."""
        return self.first_bad_version is None


@dataclass(frozen=True, slots=True)
class Consumer:
    """How far a reader has read. `lag_seconds` is the age of the oldest patch that is still to be read.

    `log_id`, `version` and `hash` are its position: the id of the log, and the chain hash at that version. `owner` is
    the principal of a service that made it, where there are any.
    """

    name: str
    version: int
    lag_versions: int
    lag_seconds: float
    updated: str
    log_id: str
    hash: bytes
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The dataset after patches 1 to `version`, as Jelly-RDF of so many bytes.

    `id` is that of the last of these patches; None at version 0, which is what a log was started with. `log_id`,
    `version` and `hash` are its position: a reader continues with the patches after that.
    `format_version` is that of the layout of the file, of which there is one so far.
    """

    version: int
    id: PatchId | None
    log_id: str
    hash: bytes
    sha256: bytes
    bytes: int
    quads: int
    namespaces: int
    created: str
    format_version: int = 1


@dataclass(frozen=True, slots=True)
class SnapshotBuild:
    """A snapshot that is being made, or the last that could not be: `error` says why."""

    version: int
    error: str | None = None
