"""Changes of more quads than memory holds: the last word on each, dealt out on disk by the hash of the quad.

All that is said of one quad comes to the same part, in its order, so each part can be worked out for itself; a part
that is still too large is dealt out again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final, Self, TypeAlias

from patchlog.effect import NamespaceKey
from patchlog.log.snapshots.files import errors_of_files, temporary_file
from patchlog.model import Term

__all__ = ["MEMORY_BYTES", "Line", "QuadChanges", "Spilling", "lines_of", "resolved"]

Line: TypeAlias = bytes
MEMORY_BYTES: Final = 32 << 20

_PARTS: Final = 64
_PART_BITS: Final = 6
_DEEPEST: Final = 8
"""Levels of parts of parts; a hash has bits for ten."""
_BYTES_A_LINE: Final = 140
"""What Python needs for a key of a dictionary, beside its characters."""
_LINES_AT_ONCE: Final = 16_384


@dataclass(frozen=True, slots=True)
class Spilling:
    """How much memory changes may take before they go to disk, and where that is."""

    memory_bytes: int = MEMORY_BYTES
    folder: Path | None = None


def lines_of(text: bytes) -> list[Line]:
    """The lines of a block of text, each of which ends."""
    lines = text.split(b"\n")
    lines.pop()
    return lines


class QuadChanges:
    """The last word on each quad: whether it is there. The namespaces stay in memory."""

    def __init__(self, spilling: Spilling, level: int = 0) -> None:
        self.quads: dict[Line, bool] = {}
        """Those that are still in memory. Who writes here says so by `grew`."""
        self.namespaces: dict[NamespaceKey, Term | None] = {}
        self._spilling = spilling
        self._level = level
        self._size = 0
        self._spill: _Spill | None = None

    @property
    def is_spilled(self) -> bool:
        """Whether some of them are on disk."""
        return self._spill is not None

    def grew(self, size: int, lines: int) -> None:
        """Lines of so many bytes were added, or replaced others. Beyond the memory for them all go to disk."""
        self._size += size + lines * _BYTES_A_LINE
        if self._size <= self._spilling.memory_bytes or self._level == _DEEPEST:
            return
        self._size = sum(map(len, self.quads)) + len(self.quads) * _BYTES_A_LINE
        if self._size > self._spilling.memory_bytes // 2:
            self.flush()

    def take(self, lines: list[Line], *, is_there: bool) -> None:
        """Let these have the last word."""
        self.quads.update(dict.fromkeys(lines, is_there))
        self.grew(sum(map(len, lines)), len(lines))

    def update(self, later: Self, /) -> None:
        """Let the later ones have the last word. They are of the same level."""
        self.namespaces.update(later.namespaces)
        if later._spill is not None:
            later.flush()
            for number in range(_PARTS):
                for lines, is_there in later._spill.part(number):
                    self.take(lines, is_there=is_there)
            return
        self.quads.update(later.quads)
        self.grew(sum(map(len, later.quads)), len(later.quads))

    def flush(self) -> None:
        """Put all on disk."""
        if self._spill is None:
            self._spill = _Spill(self._spilling.folder)
        for is_there in (False, True):
            lines = (line for line, word in self.quads.items() if word is is_there)
            self._spill.deal(lines, self._level, is_there=is_there)
        self.quads.clear()
        self._size = 0

    def parts(self) -> Iterator[Self]:
        """Each part by itself, one at a time in memory."""
        assert self._spill is not None
        for number in range(_PARTS):
            part = type(self)(self._spilling, self._level + 1)
            for lines, is_there in self._spill.part(number):
                part.take(lines, is_there=is_there)
            yield part


def resolved(
    base: Iterable[list[Line]], changes: QuadChanges, spilling: Spilling, level: int = 0
) -> Iterator[list[Line]]:
    """Yield the quads that are there when those of a base were changed. The base has no quad twice."""
    if not changes.is_spilled:
        words = changes.quads
        for lines in base:
            if kept := [line for line in lines if line not in words] if words else lines:
                yield kept
        added = (line for line, is_there in words.items() if is_there)
        while some := list(islice(added, _LINES_AT_ONCE)):
            yield some
        return
    changes.flush()
    dealt = _dealt(base, spilling, level)
    for number, part in enumerate(changes.parts()):
        yield from resolved((lines for lines, _ in dealt.part(number)), part, spilling, level + 1)


def _dealt(base: Iterable[list[Line]], spilling: Spilling, level: int) -> _Spill:
    spill = _Spill(spilling.folder)
    held: list[Line] = []
    size = 0
    for lines in base:
        held += lines
        size += sum(map(len, lines)) + len(lines) * _BYTES_A_LINE
        if size > spilling.memory_bytes // 2:
            spill.deal(held, level, is_there=True)
            held, size = [], 0
    spill.deal(held, level, is_there=True)
    return spill


class _Spill:
    """Lines in a file without a name, part by part. It is gone when nobody knows it any more."""

    def __init__(self, folder: Path | None) -> None:
        self._file = temporary_file(self, folder)
        self._places: list[list[tuple[int, int, bool]]] = [[] for _ in range(_PARTS)]

    def deal(self, lines: Iterable[Line], level: int, *, is_there: bool) -> None:
        """Put lines behind those that are there."""
        shift = level * _PART_BITS
        parts: list[list[Line]] = [[] for _ in range(_PARTS)]
        for line in lines:
            parts[hash(line) >> shift & (_PARTS - 1)].append(line)
        with errors_of_files():
            place = self._file.seek(0, 2)
        for part, places in zip(parts, self._places, strict=True):
            if part:
                part.append(b"")
                with errors_of_files():
                    size = self._file.write(b"\n".join(part))
                places.append((place, size, is_there))
                place += size

    def part(self, number: int) -> Iterator[tuple[list[Line], bool]]:
        """Yield the lines of a part, in their order."""
        for place, size, is_there in self._places[number]:
            with errors_of_files():
                self._file.seek(place)
                text = self._file.read(size)
            yield lines_of(text), is_there
