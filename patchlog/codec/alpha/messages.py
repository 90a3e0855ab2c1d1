"""The messages of the alpha layout that differ from the final ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from patchlog.codec.fields import UINT32, Message, length_tag, read_field, string_field, uint_field, varint_tag
from patchlog.codec.options import LogicalType, PhysicalType, RdfOptions
from patchlog.codec.term_messages import (
    BLANK_NODE,
    DEFAULT,
    GRAPH,
    IRI,
    LITERAL,
    OBJECT,
    PREDICATE,
    QUOTED_TRIPLE,
    SUBJECT,
    UNSET,
    Kind,
    Oneof,
    Place,
)
from patchlog.errors import InvalidTerm, UnsupportedOption

__all__ = ["TERMS", "find_term", "read_literal", "read_options", "write_options"]

_NODE_KINDS: Final = (IRI, BLANK_NODE, LITERAL, QUOTED_TRIPLE)
_GRAPH_KINDS: Final = (IRI, BLANK_NODE, LITERAL, DEFAULT)

TERMS: Final[Mapping[Place, Oneof]] = {
    SUBJECT: Oneof(SUBJECT, 1, _NODE_KINDS),
    PREDICATE: Oneof(PREDICATE, 1, _NODE_KINDS),
    OBJECT: Oneof(OBJECT, 1, _NODE_KINDS),
    GRAPH: Oneof(GRAPH, 1, _GRAPH_KINDS),
}
"""The fields of RdfTerm, and of RdfGraph. A statement has such a message for each place, in its fields 1 to 4."""

REPEAT: Final = length_tag(10)


def find_term(data: bytes, position: int, end: int, place: Place) -> tuple[Kind, int, int]:
    """Find the term in an RdfTerm or RdfGraph message: its kind, UNSET where it repeats the last one, and its place."""
    found: tuple[Kind, int, int] | None = None
    while position < end:
        tag, start, position = read_field(data, position, end)
        if tag == REPEAT:
            found = UNSET, start, position
        elif tag in TERMS[place].fields:
            found = TERMS[place].fields[tag][1], start, position
    if found is None:
        raise InvalidTerm("a term is empty")
    return found


_LEXICAL_FORM: Final = length_tag(1)
_SIMPLE: Final = (length_tag(2), varint_tag(2))  # an empty message; in the first release a bool
_LANGUAGE: Final = length_tag(3)
_DATATYPE: Final = varint_tag(4)


def read_literal(data: bytes, position: int, end: int) -> tuple[bytes, bytes | None, int | None]:
    """Read the lexical form of an RdfLiteral message, and its language tag or its datatype id."""
    lexical = b""
    language: bytes | None = None
    datatype_id: int | None = None
    while position < end:
        tag, value, position = read_field(data, position, end)
        if tag == _LEXICAL_FORM:
            lexical = data[value:position]
        elif tag == _LANGUAGE:
            language, datatype_id = data[value:position], None
        elif tag == _DATATYPE:
            language, datatype_id = None, value & UINT32
        elif tag in _SIMPLE:
            language = datatype_id = None
    return lexical, language, datatype_id


def read_options(data: bytes, position: int, end: int) -> RdfOptions:
    """Read an RdfStreamOptions message. The first release had the type in field 1, no name and no version."""
    message = Message(data, position, end)
    is_first_release = message.number(1) != 0
    try:
        return RdfOptions(
            stream_name=message.content(1).decode(),
            physical_type=PhysicalType(message.number(1 if is_first_release else 2)),
            generalized_statements=message.claim(2 if is_first_release else 3),
            rdf_star=is_first_release or message.claim(5),
            max_name_table_size=message.number(9),
            max_prefix_table_size=message.number(10),
            max_datatype_table_size=message.number(11),
            logical_type=LogicalType(message.number(14)),
            version=message.number(15) or 1,
        )
    except ValueError as error:
        if isinstance(error, UnicodeDecodeError):
            raise
        raise UnsupportedOption(str(error)) from None


def write_options(options: RdfOptions) -> bytes:
    """Write an RdfStreamOptions message as the last alpha releases had it."""
    return (
        string_field(1, options.stream_name)
        + uint_field(2, options.physical_type)
        + uint_field(3, options.generalized_statements)
        + uint_field(4, 1)  # terms may repeat
        + uint_field(5, options.rdf_star)
        + uint_field(9, options.max_name_table_size)
        + uint_field(10, options.max_prefix_table_size)
        + uint_field(11, options.max_datatype_table_size)
        + uint_field(14, options.logical_type)
        + uint_field(15, options.version)
    )
