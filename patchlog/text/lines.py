"""Bytes in any chunks to whole lines of text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from patchlog.errors import InvalidSyntax, LimitExceeded

__all__ = ["MAX_LINE_BYTES", "LineReader"]

MAX_LINE_BYTES: Final = 64 << 20

_BYTE_ORDER_MARK: Final = "\ufeff"


class LineReader:
    """Cuts UTF-8 into lines, without their LF. `number` is that of the last line handed over, from 1.

    A line that is too long, or not UTF-8, is an error in its turn: the lines before it are handed over first.
    """

    __slots__ = ("_max_line_bytes", "_pending", "_pending_bytes", "number")

    def __init__(self, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_line_bytes = max_line_bytes
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self.number = 0

    def feed(self, data: bytes, /) -> Iterator[str]:
        """Take some bytes and hand over the lines that are complete. Exhaust it before the next call."""
        data = bytes(data)  # what may change, and what is not bytes, is copied
        end = data.rfind(b"\n")
        if end >= 0:
            block = b"".join([*self._pending, data[:end]])
            self._pending = []
            self._pending_bytes = 0
            yield from self._cut(block)
            data = data[end + 1 :]
        self._pending.append(data)
        self._pending_bytes += len(data)
        if self._pending_bytes > self._max_line_bytes:
            self.number += 1
            raise self._too_long()

    def finish(self) -> Iterator[str]:
        """Hand over a last line that has no LF."""
        block = b"".join(self._pending)
        self._pending = []
        if block:
            yield from self._cut(block)

    def _cut(self, block: bytes) -> Iterator[str]:
        for line in block.split(b"\n"):
            self.number += 1
            if len(line) > self._max_line_bytes:
                raise self._too_long()
            try:
                text = line.decode()
            except UnicodeDecodeError as error:
                raise InvalidSyntax(f"not valid UTF-8 at byte {error.start} of the line", line=self.number) from None
            yield text.removeprefix(_BYTE_ORDER_MARK) if self.number == 1 else text

    def _too_long(self) -> LimitExceeded:
        return LimitExceeded(f"the line is longer than {self._max_line_bytes} bytes", line=self.number)
