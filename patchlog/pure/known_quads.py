"""Which rows of a batch hold quads of which only the hashes are known."""

from __future__ import annotations

from array import array
from typing import Any, Final

from patchlog.pure.arrow_decoder import load_pyarrow
from patchlog.pure.arrow_input import batches_of, check_columns, strings_of
from patchlog.pure.hashes import hashes_in
from patchlog.pure.xxh64 import xxh64

__all__ = ["KnownQuads"]

_COLUMNS: Final = ("graph", "subject", "predicate", "object")
_MASK: Final = (1 << 64) - 1
_SEED: Final = 42
"""What Spark's `xxhash64` begins with."""


class KnownQuads:
    """The quads of batches that may be known. Its face: `patchlog.codec.faces.KnownQuadsFace`."""

    def __init__(self, hashes: bytes, /) -> None:
        self._pyarrow = load_pyarrow()
        self._hashes = {one & _MASK for one in hashes_in(hashes)}

    def rows(self, batch: Any, /) -> bytes:
        """The numbers of the rows of a batch, or of a stream of batches, whose quads may be known."""
        found = array("I")
        first = 0
        for one in batches_of(self._pyarrow, batch):
            check_columns(one, _COLUMNS)
            columns = (strings_of(self._pyarrow, one, name) for name in _COLUMNS)
            for row, quad in enumerate(zip(*columns, strict=True), first):
                if _hash(quad) in self._hashes:
                    found.append(row)
            first += one.num_rows
        return found.tobytes()


def _hash(quad: tuple[str | None, ...]) -> int:
    state = _SEED
    for term in quad:
        # As in Spark, nothing is made of what is null.
        if term is not None:
            state = xxh64(term.encode(), state)
    return state
