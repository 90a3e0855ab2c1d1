"""Statements told apart by their hashes, so that millions need not be kept to see whether one comes twice."""

from __future__ import annotations

from array import array
from typing import Final

from patchlog.errors import UsageError

__all__ = ["hashes_are_distinct", "hashes_by_part", "hashes_in"]

_HASH_BYTES: Final = 8
_PARTS: Final = 256


def hashes_in(data: bytes) -> array[int]:
    """Hashes that lie in bytes, one behind the other."""
    if len(data) % _HASH_BYTES:
        raise UsageError(f"hashes have {_HASH_BYTES} bytes each, which {len(data)} are no multiple of")
    return array("q", data)


def hashes_by_part(hashes: bytes, /) -> list[bytes]:
    """Hashes in 256 parts: equal ones are in the same part."""
    parts = [array("q") for _ in range(_PARTS)]
    for one in hashes_in(hashes):
        parts[one % _PARTS].append(one)
    return [part.tobytes() for part in parts]


def hashes_are_distinct(hashes: bytes, /) -> bool:
    """Whether no two hashes are equal."""
    found = hashes_in(hashes)
    return len(set(found)) == len(found)
