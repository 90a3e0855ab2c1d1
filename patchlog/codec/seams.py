"""Where files may have been concatenated, which a reader takes for one stream unless it is asked for several.

A stream may repeat its options row, and nothing is reset where it does. So two files with the same options can be one
valid stream, in which the ids of the second count on from those of the first: other terms come out. No rule tells the
two apart for certain, but a frame after the first one that begins with options, and then with a lookup entry that
counts on, is what both look like. Canonical patches state their first ids, and read the same either way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from patchlog.codec.fields import length_tag, read_field, read_varint
from patchlog.errors import MalformedFrame

__all__ = ["PATCH_LOOKUP_ROWS", "RDF_LOOKUP_ROWS", "SeamFinder"]

RDF_LOOKUP_ROWS: Final = frozenset(map(length_tag, (9, 10, 11)))
PATCH_LOOKUP_ROWS: Final = frozenset(map(length_tag, (11, 12, 13)))

_ROWS: Final = length_tag(1)
_OPTIONS: Final = length_tag(1)
_STATEMENTS: Final = frozenset(map(length_tag, (2, 3)))
_ENTRY_ID: Final = 8
_MAX_LENGTH_BYTES: Final = 10
_HEAD_BYTES: Final = 4096


class SeamFinder:
    """Looks at the beginnings of frames while a stream goes by."""

    def __init__(self, lookup_rows: frozenset[int]) -> None:
        self.frame: int | None = None
        """The index of the first frame that may begin another file."""
        self._lookup_rows = lookup_rows
        self._rest = b""
        self._to_skip = 0
        self._index = 0
        self._is_done = False

    def watch(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the chunks as they are, and look at them."""
        for chunk in chunks:
            if not self._is_done:
                self._look(chunk)
            yield chunk

    def _look(self, chunk: bytes) -> None:
        if self._to_skip >= len(chunk):
            self._to_skip -= len(chunk)
            return
        data = self._rest + chunk
        position, self._to_skip = self._to_skip, 0
        if self._index == 0 and len(data) >= 3 and data[0] == _ROWS and (data[1] != _ROWS or data[2] == _ROWS):
            self._is_done = True  # one bare frame
            return
        end = len(data)
        while position + _MAX_LENGTH_BYTES < end:
            try:
                size, start = read_varint(data, position, end)
            except MalformedFrame:
                self._is_done = True
                return
            if start + min(size, _HEAD_BYTES) > end:
                break
            if self._index and data[start] == _ROWS and self._begins_anew(data[start : start + min(size, _HEAD_BYTES)]):
                self.frame = self._index
                self._is_done = True
                return
            self._index += 1
            position = start + size
        self._to_skip = max(position - end, 0)
        self._rest = data[position:]

    def _begins_anew(self, frame: bytes) -> bool:
        position = 0
        try:
            while position < len(frame):
                is_first = position == 0
                _, start, position = read_field(frame, position, len(frame))
                kind, message, message_end = read_field(frame, start, position)
                if is_first and kind != _OPTIONS:
                    return False
                if kind in self._lookup_rows:
                    return message == message_end or frame[message] != _ENTRY_ID
                if kind in _STATEMENTS:
                    return False
        except (MalformedFrame, IndexError):
            pass  # cut off, or damaged: that is for the decoder to say
        return False
