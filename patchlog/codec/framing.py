"""Frames out of a byte stream, delimited or one bare frame, whatever the chunks. Stores none larger than the limit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from patchlog.codec.fields import read_varint
from patchlog.errors import LimitExceeded, MalformedFrame

__all__ = ["FrameSplitter"]

_ROWS_TAG: Final = 0x0A
_MAX_LENGTH_BYTES: Final = 10


class FrameSplitter:
    """Splits a byte stream into the bytes of its frames."""

    def __init__(self, *, max_frame_bytes: int, strict: bool, delimited: bool | None) -> None:
        self.delimited = delimited
        self.taken = 0
        self._max_frame_bytes = max_frame_bytes
        self._strict = strict
        self._buffer = bytearray()
        self._ended = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take some bytes and yield the frames that are complete."""
        self._buffer += data
        return self._split()

    def finish(self) -> Iterator[bytes]:
        """Say that no more bytes will come, and yield the frame that waited for that."""
        self._ended = True
        return self._split()

    def _split(self) -> Iterator[bytes]:
        if self.delimited is None:
            self.delimited = self._detect()
        if self.delimited is not None:
            while (frame := self._next_delimited() if self.delimited else self._bare()) is not None:
                yield frame

    def _detect(self) -> bool | None:
        """Whether the stream is delimited; None where it takes more bytes to tell."""
        head = bytes(self._buffer[:3])
        if not head or head[0] != _ROWS_TAG:
            return True if head else None
        if len(head) == 3:
            return head[1] == _ROWS_TAG and head[2] != _ROWS_TAG
        return False if self._ended else None

    def _bare(self) -> bytes | None:
        self._check_size(len(self._buffer))
        return self._take(0, len(self._buffer)) if self._ended and self._buffer else None

    def _next_delimited(self) -> bytes | None:
        header = bytes(self._buffer[:_MAX_LENGTH_BYTES])
        if len(header) < _MAX_LENGTH_BYTES and all(byte >= 0x80 for byte in header):
            if header and self._ended:
                raise MalformedFrame("the stream ends inside a frame length", self.taken)
            return None
        try:
            size, start = read_varint(header, 0, len(header))
        except MalformedFrame as error:
            raise MalformedFrame(error.reason, self.taken) from None
        self._check_size(size)
        if start + size <= len(self._buffer):
            return self._take(start, start + size)
        if not self._ended:
            return None
        if self._strict:
            there = len(self._buffer) - start
            raise MalformedFrame(f"the stream ends inside a frame: {there} of {size} bytes are there", self.taken)
        return self._take(start, len(self._buffer))

    def _check_size(self, size: int) -> None:
        if size > self._max_frame_bytes:
            raise LimitExceeded(
                f"a frame of {size} bytes is larger than the limit of {self._max_frame_bytes} (Limits.max_frame_bytes)",
                self.taken,
            )

    def _take(self, start: int, end: int) -> bytes:
        with memoryview(self._buffer) as view:
            frame = bytes(view[start:end])
        del self._buffer[:end]
        self.taken += 1
        return frame
