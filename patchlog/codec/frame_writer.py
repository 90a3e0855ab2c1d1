"""Rows into frames, and frames into a byte stream."""

from __future__ import annotations

from typing import Final

from patchlog.codec.fields import length_field, length_tag, varint
from patchlog.errors import UsageError

__all__ = ["MAX_FRAME_BYTES", "FrameWriter", "RowKind"]

MAX_FRAME_BYTES: Final = 1 << 20
"""The specification recommends frames below one megabyte."""


class RowKind:
    """One kind of row of a format, by its field."""

    def __init__(self, field: int) -> None:
        self._field = field
        # All that stands before a short message: the tag of rows, the row's length, the message's tag and its length.
        self._heads = [bytes([length_tag(1), size + 2, length_tag(field), size]) for size in range(126)]

    def row(self, message: bytes) -> bytes:
        """A row with this message, as it stands in a frame."""
        if len(message) < 126:
            return self._heads[len(message)] + message
        return length_field(1, length_field(self._field, message))


class FrameWriter:
    """Gathers rows to frames.

    A frame is full when it has `rows_per_frame` rows or one MiB; with 0 rows it never is. A bounded frame ends before
    the row that would make it larger than one MiB.
    """

    def __init__(self, *, rows_per_frame: int, delimited: bool = True, is_bounded: bool = False) -> None:
        if rows_per_frame < 0:
            raise UsageError(f"{rows_per_frame} is not a number of rows or frames: those begin with 0")
        self._rows_per_frame = rows_per_frame
        self._delimited = delimited
        self._is_bounded = is_bounded
        self._rows: list[bytes] = []
        self._size = 0
        self._frames: list[bytes] = []

    @property
    def is_empty(self) -> bool:
        """Whether the frame has no rows yet."""
        return not self._rows

    def add(self, row: bytes) -> None:
        """Add a row to the frame."""
        if self._is_bounded and self._rows and self._size + len(row) > MAX_FRAME_BYTES:
            self.end_frame()
        self._rows.append(row)
        self._size += len(row)

    def cut_if_full(self) -> None:
        """End the frame if it is full."""
        if self._rows_per_frame and (len(self._rows) >= self._rows_per_frame or self._size >= MAX_FRAME_BYTES):
            self.end_frame()

    def end_frame(self, metadata: bytes = b"") -> None:
        """End the frame, also an empty one, with the fields that stand after its rows."""
        if self._delimited:
            self._frames.append(varint(self._size + len(metadata)))
        self._frames += self._rows
        self._frames.append(metadata)
        self._rows.clear()
        self._size = 0

    def take(self) -> bytes:
        """Take the bytes of the frames that were ended."""
        taken = b"".join(self._frames)
        self._frames.clear()
        return taken
