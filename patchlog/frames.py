"""Frames as protobuf messages, looked at without decoding them: to dump, to count, to read back from a dump.

What stands in the bytes is shown, whether the codec would accept it or not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from google.protobuf import text_format
from google.protobuf.message import DecodeError

from patchlog.codec.fields import varint
from patchlog.codec.framing import FrameSplitter
from patchlog.codec.options import Limits
from patchlog.errors import InvalidSyntax, LimitExceeded, MalformedFrame

__all__ = ["frames_from_text", "frames_to_text", "read_frame_messages"]

_SEPARATOR = "# Frame "
# What the two implementations of protobuf's runtime say: it has no class of its own.
_TOO_DEEP = re.compile(r"MaxDepth|levels of nesting")


def read_frame_messages(
    chunks: Iterable[bytes], message: Any, *, limits: Limits, strict: bool = True, delimited: bool | None = None
) -> Iterator[tuple[Any, int]]:
    """Yield each frame as a `message`, and its size in bytes. Raises MalformedFrame with the frame's index."""
    splitter = FrameSplitter(max_frame_bytes=limits.max_frame_bytes, strict=strict, delimited=delimited)
    for index, data in enumerate(_split(splitter, chunks)):
        try:
            frame = message.FromString(data)
        except DecodeError as error:
            if _TOO_DEEP.search(str(error)):
                raise LimitExceeded(
                    "quoted triples are nested deeper than protobuf's own reader takes (100 messages), through which "
                    "frames are looked at; the codec reads them",
                    index,
                ) from error
            raise MalformedFrame("the frame is not the protobuf message that it should be", index) from error
        yield frame, len(data)


def _split(splitter: FrameSplitter, chunks: Iterable[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        yield from splitter.feed(chunk)
    yield from splitter.finish()


def frames_to_text(frames: Iterable[tuple[int, Any]]) -> Iterator[bytes]:
    """Yield the text of each (index, frame): protobuf's own text format below a line that says which frame it is."""
    for index, frame in frames:
        yield f"{_SEPARATOR}{index}\n{text_format.MessageToString(frame)}".encode()


def frames_from_text(lines: Iterable[str], message: Any, *, delimited: bool = True) -> Iterator[bytes]:
    """Yield the bytes of each frame of such a text. A text without lines that separate frames is one frame."""
    pending: list[str] = []
    first_line = 1
    for number, line in enumerate(lines, 1):
        if line.startswith(_SEPARATOR):
            if pending:
                yield _framed(_parse(pending, first_line, message), delimited=delimited)
            pending = []
            first_line = number
        pending.append(line)
    if pending:
        yield _framed(_parse(pending, first_line, message), delimited=delimited)


def _framed(data: bytes, *, delimited: bool) -> bytes:
    return varint(len(data)) + data if delimited else data


def _parse(lines: list[str], first_line: int, message: Any) -> bytes:
    frame = message()
    try:
        text_format.Parse("\n".join(lines), frame)
    except text_format.ParseError as error:
        reason = str(error).partition(" : ")[2] or str(error)
        raise InvalidSyntax(reason, line=first_line + (error.GetLine() or 1) - 1) from error
    except RecursionError:
        raise LimitExceeded("messages are nested deeper than protobuf's text reader takes", line=first_line) from None
    data: bytes = frame.SerializeToString()
    return data
