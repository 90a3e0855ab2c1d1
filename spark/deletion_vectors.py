"""Deletion vectors of Delta, read where the data files are read beside Spark: which rows of a file no longer count.

A file of vectors begins with a byte for its version; then, for each vector, its size, itself and a checksum, the
numbers with the highest byte first. A vector is a magic number, and as many Roaring bitmaps as it says, each of them
for the rows whose numbers have the same 32 high bits.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path
from struct import unpack, unpack_from
from typing import Any, Final

import numpy as np

__all__ = ["DeletionVector"]

_MAGIC: Final = 1681511377
_WITHOUT_RUNS: Final = 12346
_WITH_RUNS: Final = 12347
_ROWS_PER_CONTAINER: Final = 1 << 16
_MOST_IN_ARRAY: Final = 4096
_FEWEST_WITH_OFFSETS: Final = 4
_BITMAP_BYTES: Final = _ROWS_PER_CONTAINER // 8


@dataclass(frozen=True, slots=True)
class DeletionVector:
    """Where a vector stands in a file of this machine."""

    path: str
    offset: int
    size: int

    def rows(self) -> Any:
        """The rows that it takes out, in their order, as an array of numpy."""
        with Path(self.path).open("rb") as file:
            file.seek(self.offset)
            (size,) = unpack(">I", file.read(4))
            data = file.read(size)
            checksum = file.read(4)
        if size != self.size or zlib.crc32(data) != int.from_bytes(checksum, "big"):
            raise ValueError(f"the deletion vector at byte {self.offset} of {self.path} is damaged")
        return _rows(data)


def _rows(data: bytes) -> Any:
    magic, bitmaps = unpack_from("<IQ", data)
    if magic != _MAGIC:
        raise ValueError(f"a deletion vector of an unknown kind, {magic}: Delta has found another way to write them")
    parts = [np.empty(0, np.int64)]
    at = 12
    for _ in range(bitmaps):
        (high,) = unpack_from("<I", data, at)
        found, at = _bitmap(data, at + 4)
        parts += [rows + (high << 32) for rows in found]
    return np.concatenate(parts)


def _bitmap(data: bytes, at: int) -> tuple[list[Any], int]:
    """The containers of a Roaring bitmap, and where it ends."""
    (cookie,) = unpack_from("<I", data, at)
    at += 4
    if cookie == _WITHOUT_RUNS:
        (count,) = unpack_from("<I", data, at)
        at += 4
        has_runs = [False] * count
        has_offsets = True
    elif cookie & 0xFFFF == _WITH_RUNS:
        count = (cookie >> 16) + 1
        flags = np.frombuffer(data, np.uint8, (count + 7) // 8, at)
        at += len(flags)
        has_runs = np.unpackbits(flags, bitorder="little")[:count].astype(bool).tolist()
        has_offsets = count >= _FEWEST_WITH_OFFSETS
    else:
        raise ValueError(f"a Roaring bitmap of an unknown kind, {cookie}")
    heads = np.frombuffer(data, "<u2", 2 * count, at).reshape(count, 2).tolist()
    at += 4 * count + (4 * count if has_offsets else 0)
    containers = []
    for (key, cardinality_less_one), is_of_runs in zip(heads, has_runs, strict=True):
        low, at = _container(data, at, cardinality_less_one + 1, is_of_runs=is_of_runs)
        containers.append(low.astype(np.int64) + key * _ROWS_PER_CONTAINER)
    return containers, at


def _container(data: bytes, at: int, cardinality: int, *, is_of_runs: bool) -> tuple[Any, int]:
    if is_of_runs:
        (count,) = unpack_from("<H", data, at)
        runs = np.frombuffer(data, "<u2", 2 * count, at + 2).reshape(count, 2).tolist()
        rows = [np.arange(start, start + length_less_one + 1) for start, length_less_one in runs]
        return np.concatenate(rows), at + 2 + 4 * count
    if cardinality <= _MOST_IN_ARRAY:
        return np.frombuffer(data, "<u2", cardinality, at), at + 2 * cardinality
    bits = np.frombuffer(data, np.uint8, _BITMAP_BYTES, at)
    return np.flatnonzero(np.unpackbits(bits, bitorder="little")), at + _BITMAP_BYTES
