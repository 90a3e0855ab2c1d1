"""Statements told apart by their hashes, so that millions need not be kept to see whether one comes twice."""

from __future__ import annotations

from array import array
from typing import Final

__all__ = ["hashes_are_distinct", "hashes_by_part"]

_PARTS: Final = 256


def hashes_by_part(hashes: bytes, /) -> list[bytes]:
    """Hashes in 256 parts: equal ones are in the same part."""
    parts = [array("q") for _ in range(_PARTS)]
    for one in array("q", hashes):
        parts[one % _PARTS].append(one)
    return [part.tobytes() for part in parts]


def hashes_are_distinct(hashes: bytes, /) -> bool:
    """Whether no two hashes are equal."""
    found = array("q", hashes)
    return len(set(found)) == len(found)
