"""Whether a dataset that is larger than memory has a quad twice, told by hashes of its quads.

Two quads may have one hash, so that a dataset may wrongly be said to repeat itself; never the other way round.
"""

from __future__ import annotations

from pathlib import Path
from typing import IO

from patchlog.engine import hashes_are_distinct, hashes_by_part
from patchlog.log.snapshots.files import errors_of_files, temporary_file

__all__ = ["Distinct"]


class Distinct:
    """Hashes that come in any number of pieces, eight bytes each: in memory, and beyond it on disk."""

    def __init__(self, memory_bytes: int, folder: Path | None = None) -> None:
        self._memory_bytes = memory_bytes
        self._folder = folder
        self._pieces: list[bytes] = []
        self._size = 0
        self._file: IO[bytes] | None = None
        self._places: list[list[tuple[int, int]]] = []

    def add(self, hashes: bytes) -> None:
        """Take hashes."""
        self._pieces.append(hashes)
        self._size += len(hashes)
        if self._size > self._memory_bytes:
            with errors_of_files():
                self._spill()

    def are_all(self) -> bool:
        """Whether no hash came twice."""
        if self._file is None:
            return hashes_are_distinct(b"".join(self._pieces))
        with errors_of_files():
            self._spill()
            return all(hashes_are_distinct(self._part(places)) for places in self._places)

    def _spill(self) -> None:
        if self._file is None:
            self._file = temporary_file(self, self._folder)
        parts = hashes_by_part(b"".join(self._pieces))
        self._places = self._places or [[] for _ in parts]
        for part, places in zip(parts, self._places, strict=True):
            if part:
                places.append((self._file.tell(), len(part)))
                self._file.write(part)
        self._pieces.clear()
        self._size = 0

    def _part(self, places: list[tuple[int, int]]) -> bytes:
        assert self._file is not None
        found = []
        for place, size in places:
            self._file.seek(place)
            found.append(self._file.read(size))
        self._file.seek(0, 2)
        return b"".join(found)
