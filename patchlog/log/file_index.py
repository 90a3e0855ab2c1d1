"""What is remembered of a file of patches, a few bytes of each, so that it is not read again from its beginning."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Final

from patchlog.codec.options import PatchOptions
from patchlog.codec.patch_ids import PatchId
from patchlog.log.contract import PatchFormat
from patchlog.log.records import EMPTY_HEAD, Head, PatchRecord
from patchlog.log.scanning import CutOff, scanned
from patchlog.log.succession import head_after

__all__ = ["FileIndex"]


class FileIndex:
    """The patches of a file, up to the place where it may grow."""

    def __init__(self, format: PatchFormat, options: PatchOptions, *, has_places: bool = True) -> None:
        self.options: Final = options
        self.head = EMPTY_HEAD
        self.operations = self.bytes = 0
        self.versions: Final[dict[PatchId, int]] = {}
        self.grows_at = 0
        """Behind the last patch."""
        self.cut_off: CutOff | None = None
        """What lies behind `grows_at`, where that is a patch that is not whole."""
        self.is_ended = True
        """Whether another patch may follow as it is: text may have to be ended first."""
        self.is_as_stored = True
        """Whether all patches are as logs store them, so that others may follow."""
        self._format = format
        self._has_ends = has_places
        self._ends = array("Q", [0])
        self._heads: list[Head] = [EMPTY_HEAD]

    def extend(self, chunks: Iterable[bytes], size: int, time: str) -> None:
        """Take what lies behind `grows_at`. After an error the index is spent."""
        self.cut_off = None
        patches = scanned(chunks, self._format, self.options, self.head, self.grows_at, time)
        try:
            for patch in patches:
                with patch.body:
                    self.add(patch.record, patch.end)
                self.is_ended = patch.is_ended
                self.is_as_stored = self.is_as_stored and patch.is_as_stored
        except CutOff as cut_off:
            self.cut_off = cut_off
            self.grows_at = cut_off.at
        else:
            # Behind the last patch of a binary file are heartbeats at most; text may have remarks there.
            is_binary = self._format == "jelly-patch" and self.is_as_stored
            self.grows_at = self._ends[-1] if is_binary else size

    def add(self, record: PatchRecord, end: int | None) -> None:
        """Take a patch that follows the others, and ends there if that is known."""
        self._has_ends = self._has_ends and end is not None
        self.is_ended = True
        self.head = head_after(record)
        self.operations += record.operations
        self.bytes += record.bytes
        self.versions[record.id] = record.version
        self._heads.append(self.head)
        self._ends.append(end or 0)

    def begin_of(self, version: int) -> tuple[Head, int]:
        """Where to read on to come to a version: the patch before, and the place behind it."""
        if not self._has_ends:
            return EMPTY_HEAD, 0
        return self._heads[version - 1], self._ends[version - 1]
