"""How a stored stream begins: options and headers can be read without what stands behind them, however much that is.

The rows of both formats have their options under the same number.
"""

from __future__ import annotations

from typing import Final

from patchlog.codec.fields import length_tag, read_field, read_varint, varint
from patchlog.errors import MalformedFrame

__all__ = ["first_row", "up_to_headers"]

_ROWS: Final = length_tag(1)
_OPTIONS, _NAME, _PREFIX, _DATATYPE, _HEADER = (length_tag(field) for field in (1, 11, 12, 13, 14))
_BEFORE_OPERATIONS: Final = frozenset({_OPTIONS, _NAME, _PREFIX, _DATATYPE, _HEADER})


def first_row(data: bytes) -> bytes:
    """A frame with the first row of these, which is the options where rules are kept; all of them if there is none."""
    try:
        _, start = read_varint(data, 0, len(data))
        _, _, end = read_field(data, start, len(data))
    except (MalformedFrame, IndexError):
        return data
    return varint(end - start) + data[start:end]


def up_to_headers(data: bytes) -> bytes | None:
    """Frames with all rows of these before the first that is an operation; None where none of them is one."""
    whole = bytearray()
    position, end = 0, len(data)
    try:
        while position < end:
            size, start = read_varint(data, position, end)
            at = start
            while at < start + size:
                tag, value, following = read_field(data, at, end)
                if tag == _ROWS and data[value] not in _BEFORE_OPERATIONS:
                    return bytes(whole) + varint(at - start) + data[start:at]
                at = following
            whole += data[position:at]
            position = at
    except (MalformedFrame, IndexError):
        return None  # the frame goes on behind these bytes
    return None
