"""A place in the history of a log, and how two sides find out whether they mean the same history.

The chain hash at a version covers all patches up to it, so two logs with the same chain hash at a version are the same
up to there. Whoever keeps a position keeps all three parts, and compares them before work goes on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Self, TypeAlias

from patchlog.errors import HistoryMismatch, UsageError
from patchlog.log.records import EMPTY_HEAD, Consumer, Head, LogDescription, PatchRecord, Snapshot

__all__ = [
    "After",
    "HashAt",
    "Position",
    "as_position",
    "check_position",
    "head_position",
    "last_common_version",
    "least_position",
    "position_at",
]

_TEXT: Final = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})?:([0-9]+):([0-9a-f]{64})?")
_VERSION: Final = re.compile(r"[0-9]{1,19}")
_HASH: Final = re.compile(r"[0-9a-fA-F]{64}")
_MOST_VERSION: Final = (1 << 63) - 1
_SHOWN_HASH: Final = 12
_SHOWN: Final = 80

HashAt: TypeAlias = Callable[[int], bytes]
"""Returns the chain hash at a version, from 1 to the head."""


@dataclass(frozen=True, slots=True)
class Position:
    """A version of a log, with the id of the log and the chain hash at that version.

    What is None is not known, as in positions that were kept by earlier versions, and is not compared.
    """

    log_id: str | None
    version: int
    hash: bytes | None

    def __str__(self) -> str:
        return f"{self.log_id or ''}:{self.version}:{'' if self.hash is None else self.hash.hex()}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what `str` writes. Raises UsageError."""
        found = _TEXT.fullmatch(text)
        if found is None:
            raise UsageError(f"{text!r} is not a position of a log: it is LOG-ID:VERSION:HASH")
        return cls.kept(*found.groups())

    @classmethod
    def kept(cls, log_id: str | None, version: str, hash: str | None) -> Self:
        """Read the parts of a position from where it was kept, which others may have written to. Raises UsageError."""
        is_version = _VERSION.fullmatch(version) is not None and int(version) <= _MOST_VERSION
        if not is_version or (hash is not None and _HASH.fullmatch(hash) is None):
            what = f"{version[:_SHOWN]!r}" + ("" if hash is None else f" with the hash {hash[:_SHOWN]!r}")
            raise UsageError(
                f"{what} is not a position of a log: a version is a number from 0 to {_MOST_VERSION}, a hash has 64 "
                "hexadecimal digits. What was kept is damaged, or somebody else has written it"
            )
        return cls(log_id, int(version), None if hash is None else bytes.fromhex(hash))

    @classmethod
    def of(cls, known: Consumer | Snapshot) -> Self:
        """Return the position of a consumer, or of a snapshot."""
        return cls(known.log_id, known.version, known.hash)

    @property
    def is_complete(self) -> bool:
        """Whether the position names its history."""
        return self.log_id is not None and self.hash is not None

    def follow(self, record: PatchRecord) -> Position:
        """Return the position after the next patch. Raises HistoryMismatch where the patch does not continue this."""
        if record.version != self.version + 1 or (
            self.hash is not None and sha256(self.hash + record.content_hash).digest() != record.chain_hash
        ):
            raise HistoryMismatch(
                f"version {record.version} ({record.id}) does not continue the history that was read up to version "
                f"{self.version}",
                version=self.version,
            )
        return Position(self.log_id, record.version, record.chain_hash)


After: TypeAlias = int | Position
"""What a read starts after: a version of whatever log is there, or a position, which is checked first."""


def as_position(after: After) -> Position:
    """Return the position; a bare version is one of which nothing else is known."""
    return after if isinstance(after, Position) else Position(None, after, None)


def head_position(description: LogDescription) -> Position:
    """Return the position at the head of a log."""
    return Position(description.id, description.head.version, description.head.hash)


def position_at(version: int | None, log_id: str, head: Head, hash_at: HashAt) -> Position:
    """Return the position at a version of a log, or at its head. Raises UsageError for a version above the head."""
    if version is None:
        version = head.version
    if not 0 <= version <= head.version:
        raise UsageError(f"the log has no version {version}; its head is {head.version}")
    return Position(log_id, version, _hash_at(version, head, hash_at))


def check_position(position: Position, name: str, log_id: str, head: Head, hash_at: HashAt) -> None:
    """Raise HistoryMismatch where a log of that name, id and head does not have the history of the position."""
    if position.log_id is None and position.hash is None:
        return
    version = position.version

    def is_same() -> bool:
        if position.hash is None or version > head.version:
            return False
        return position.hash == _hash_at(version, head, hash_at)

    def refuse(reason: str, last_common: int | None = None) -> HistoryMismatch:
        return HistoryMismatch(
            reason, version=version, last_common=last_common, head_version=head.version, log_id=log_id
        )

    if position.log_id not in (None, log_id):
        raise refuse(
            f"the position is version {version} of the log {position.log_id}, but {name!r} is now the log {log_id}: it "
            "was deleted and created again, or replaced",
            version if version and is_same() else None,
        )
    if version > head.version:
        raise refuse(
            f"the position is version {version} of the log {name!r}, whose head is now {head.version}: it was restored "
            "to an older state"
        )
    if position.hash is not None and not is_same():
        found = _hash_at(version, head, hash_at).hex()[:_SHOWN_HASH]
        raise refuse(
            f"version {version} of the log {name!r} has the hash {found}…, the position has "
            f"{position.hash.hex()[:_SHOWN_HASH]}…: it was restored and then changed, or replaced"
        )


def last_common_version(hash_at: HashAt, other_hash_at: HashAt, until: int) -> int:
    """Return the last version up to `until` at which two logs are the same; 0 where there is none.

    Asks for about log2(until) hashes of each: what is the same at a version is the same at all before it.
    """
    low, high = 0, until
    while low < high:
        middle = (low + high + 1) // 2
        if hash_at(middle) == other_hash_at(middle):
            low = middle
        else:
            high = middle - 1
    return low


def least_position(log_id: str, versions: Iterable[str], histories: Iterable[str]) -> Position:
    """Return the least of the positions that a dataset has, of texts VERSION and VERSION:HASH. Raises UsageError."""
    hashes = {version: hash for version, _, hash in (text.partition(":") for text in histories)}
    kept = (Position.kept(log_id, version, hashes.get(version)) for version in versions)
    return min(kept, key=lambda position: position.version)


def _hash_at(version: int, head: Head, hash_at: HashAt) -> bytes:
    if version == head.version:
        return head.hash
    return hash_at(version) if version else EMPTY_HEAD.hash
