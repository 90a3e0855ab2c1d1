"""XXH64, the hash that Spark calls `xxhash64`."""

from __future__ import annotations

from struct import unpack_from
from typing import Final

__all__ = ["xxh64"]

_MASK: Final = (1 << 64) - 1
_P1: Final = 0x9E3779B185EBCA87
_P2: Final = 0xC2B2AE3D27D4EB4F
_P3: Final = 0x165667B19E3779F9
_P4: Final = 0x85EBCA77C2B2AE63
_P5: Final = 0x27D4EB2F165667C5


def xxh64(data: bytes, seed: int) -> int:
    """The hash of some bytes."""
    size = len(data)
    at = 0
    if size < 32:
        state = (seed + _P5) & _MASK
    else:
        lanes = [(seed + _P1 + _P2) & _MASK, (seed + _P2) & _MASK, seed, (seed - _P1) & _MASK]
        for at in range(0, size & -32, 32):
            lanes = [_round(lane, word) for lane, word in zip(lanes, unpack_from("<4Q", data, at), strict=True)]
        at = size & -32
        state = sum(map(_turned, lanes, (1, 7, 12, 18))) & _MASK
        for lane in lanes:
            state = ((state ^ _round(0, lane)) * _P1 + _P4) & _MASK
    state = (state + size) & _MASK
    for (word,) in (unpack_from("<Q", data, place) for place in range(at, size - 7, 8)):
        state = (_turned(state ^ _round(0, word), 27) * _P1 + _P4) & _MASK
    at += (size - at) & -8
    if size - at >= 4:
        (half,) = unpack_from("<I", data, at)
        state = (_turned(state ^ (half * _P1 & _MASK), 23) * _P2 + _P3) & _MASK
        at += 4
    for byte in data[at:]:
        state = _turned(state ^ (byte * _P5 & _MASK), 11) * _P1 & _MASK
    state = (state ^ state >> 33) * _P2 & _MASK
    state = (state ^ state >> 29) * _P3 & _MASK
    return state ^ state >> 32


def _round(lane: int, word: int) -> int:
    return _turned((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def _turned(number: int, bits: int) -> int:
    return (number << bits | number >> 64 - bits) & _MASK
