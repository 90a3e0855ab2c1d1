"""Bytes joined to pieces that are worth handing over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

__all__ = ["PIECE_BYTES", "in_pieces"]

PIECE_BYTES: Final = 256 << 10


def in_pieces(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Join small chunks. All pieces but the last have PIECE_BYTES or more."""
    some: list[bytes] = []
    size = 0
    for chunk in chunks:
        some.append(chunk)
        size += len(chunk)
        if size >= PIECE_BYTES:
            yield b"".join(some)
            some, size = [], 0
    if some:
        yield b"".join(some)
