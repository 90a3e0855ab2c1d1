"""Whether a stream has the alpha layout, where that can be told without doubt."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final

from patchlog.codec.fields import Message, length_tag, read_field
from patchlog.codec.framing import FrameSplitter
from patchlog.errors import CodecError

__all__ = ["looks_like_alpha"]

_NO_LIMIT: Final = 1 << 64  # nothing is waited for: what is not there ends the search
_ROWS: Final = length_tag(1)
_OPTIONS: Final = length_tag(1)
_STATEMENTS: Final = (length_tag(2), length_tag(3))


def looks_like_alpha(data: bytes) -> bool:
    """Whether these bytes, which a stream begins with, can only be of the alpha layout."""
    try:
        for kind, message in _messages(data):
            if kind == _OPTIONS and message.number(1):
                # The stream type of the first release, where the final layout has a string. Jelly-Patch has a number
                # there too, and a version, which that release had not.
                return not message.number(15)
            if kind in _STATEMENTS:
                return all(message.span(field) for field in (1, 2, 3))  # in the final layout: three kinds of subject
    except CodecError:
        pass
    return False


def _messages(data: bytes) -> Iterator[tuple[int, Message]]:
    """The messages of rows with their tags, as far as they are whole."""
    splitter = FrameSplitter(max_frame_bytes=_NO_LIMIT, strict=False, delimited=None)
    for frame in chain(splitter.feed(data), splitter.finish()):
        for tag, row, row_end in _fields(frame, 0, len(frame)):
            if tag == _ROWS:
                for kind, message, message_end in _fields(frame, row, row_end):
                    yield kind, Message(frame, message, message_end)


def _fields(data: bytes, position: int, end: int) -> Iterator[tuple[int, int, int]]:
    while position < end:
        tag, start, position = read_field(data, position, end)
        yield tag, start, position
