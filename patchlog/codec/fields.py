"""Protobuf's wire format: varints, tags, and the fields of a message. Knows no message.

A tag is the number that stands before a field: its number times eight plus its wire type. What a message may hold is
known by tags, so a field that has another wire type than it should have is an unknown one.
"""

from __future__ import annotations

from typing import Final

from patchlog.errors import InvalidTerm, MalformedFrame

__all__ = [
    "UINT32",
    "Message",
    "length_field",
    "length_tag",
    "read_field",
    "read_varint",
    "string_field",
    "uint_field",
    "varint",
    "varint_tag",
]

UINT32: Final = 0xFFFF_FFFF
_UINT64: Final = 0xFFFF_FFFF_FFFF_FFFF
_MAX_VARINT_BYTES: Final = 10


def varint_tag(field: int) -> int:
    """The tag of a field that holds a number."""
    return field << 3


def length_tag(field: int) -> int:
    """The tag of a field that holds a string, bytes or a message."""
    return field << 3 | 2


def read_varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    """Return the number at `position`, and the position after it."""
    if position + 1 < end and data[position] >= 0x80 > data[position + 1]:  # most of those that get here
        return data[position] & 0x7F | data[position + 1] << 7, position + 2
    value = shift = 0
    for at in range(position, min(position + _MAX_VARINT_BYTES, end)):
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _UINT64, at + 1
        shift += 7
    if shift == 7 * _MAX_VARINT_BYTES:
        raise MalformedFrame("a varint is longer than ten bytes")
    raise MalformedFrame("a varint is cut short")


def read_field(data: bytes, position: int, end: int) -> tuple[int, int, int]:
    """Return the tag of the field at `position`, its number or the start of its bytes, and the position after it.

    `end` is where the message ends. A field of fixed size has no value: no message of the formats has any.
    """
    # Nearly all tags, and most lengths and numbers, are one byte.
    if (tag := data[position]) < 0x80:
        position += 1
    else:
        tag, position = read_varint(data, position, end)
    if not 8 <= tag <= UINT32:
        raise MalformedFrame("field number 0 is not allowed" if tag < 8 else "a field tag is longer than 32 bits")
    wire_type = tag & 7
    if wire_type == 2:  # a length, and that many bytes
        if position < end and (size := data[position]) < 0x80:
            value = position + 1
        else:
            size, value = read_varint(data, position, end)
        position = value + size
    elif wire_type == 0:  # a varint
        if position < end and (value := data[position]) < 0x80:
            position += 1
        else:
            value, position = read_varint(data, position, end)
    elif wire_type == 1:  # eight bytes
        value, position = 0, position + 8
    elif wire_type == 5:  # four bytes
        value, position = 0, position + 4
    else:
        raise MalformedFrame(f"wire type {wire_type} is not allowed")
    if position > end:
        raise MalformedFrame(f"a field reaches {position - end} bytes beyond the end of its message")
    return tag, value, position


class Message:
    """The fields of a message that needs no reader of its own. Of several fields under one tag the last counts."""

    def __init__(self, data: bytes, position: int, end: int) -> None:
        self._data = data
        self._fields: dict[int, tuple[int, int]] = {}
        while position < end:
            tag, value, position = read_field(data, position, end)
            self._fields[tag] = value, position

    def number(self, field: int) -> int:
        """A uint32 or an enum's number."""
        return self._fields.get(varint_tag(field), (0, 0))[0] & UINT32

    def claim(self, field: int) -> bool:
        """A bool."""
        return self._fields.get(varint_tag(field), (0, 0))[0] != 0

    def content(self, field: int) -> bytes:
        """A string's or bytes' content."""
        start, end = self._fields.get(length_tag(field), (0, 0))
        return self._data[start:end]

    def span(self, field: int) -> tuple[int, int] | None:
        """Where the content of a field lies, if the field is there."""
        return self._fields.get(length_tag(field))


def _encode_varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


_SHORT_VARINTS: Final = [_encode_varint(value) for value in range(1 << 14)]


def varint(value: int) -> bytes:
    """The shortest varint of a number."""
    return _SHORT_VARINTS[value] if value < 1 << 14 else _encode_varint(value)


def uint_field(field: int, value: int) -> bytes:
    """A number or a claim, left out when it is zero or false."""
    return varint(varint_tag(field)) + varint(value) if value else b""


def length_field(field: int, value: bytes) -> bytes:
    """Bytes or a message, also when they are empty."""
    return varint(length_tag(field)) + varint(len(value)) + value


def string_field(field: int, value: str) -> bytes:
    """A string, left out when it is empty."""
    try:
        encoded = value.encode()
    except AttributeError:
        raise InvalidTerm("a name or a key is not a string") from None
    except UnicodeEncodeError as error:
        raise InvalidTerm(f"{value!r} contains a surrogate, which is not a character") from error
    return length_field(field, encoded) if encoded else b""
