"""The messages that terms are made of, as they lie on the wire: which fields they have, and where. Resolves nothing."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, TypeAlias

from patchlog.codec.fields import UINT32, length_tag, read_field, varint, varint_tag
from patchlog.errors import MalformedFrame

__all__ = [
    "BLANK_NODE",
    "DEFAULT",
    "GENERALIZED",
    "GRAPH",
    "GRAPH_START_GRAPH",
    "HEADER_VALUE",
    "IRI",
    "LITERAL",
    "MAX_SHORT_IRI",
    "NAMESPACE_GRAPH",
    "OBJECT",
    "PLACES",
    "PREDICATE",
    "QUAD_FIELDS",
    "QUOTED_TRIPLE",
    "STATEMENT_GRAPH",
    "STATEMENT_OBJECT",
    "STATEMENT_PREDICATE",
    "STATEMENT_SUBJECT",
    "SUBJECT",
    "TRIPLE_FIELDS",
    "UNSET",
    "VALUE",
    "FoundTerm",
    "Kind",
    "Oneof",
    "Place",
    "TermFields",
    "find_terms",
    "read_entry",
    "read_iri",
    "read_literal",
    "read_short_iri",
]

# Plain numbers, not enums: a statement looks at them a dozen times.
Place: TypeAlias = int
SUBJECT: Final[Place] = 0
PREDICATE: Final[Place] = 1
OBJECT: Final[Place] = 2
GRAPH: Final[Place] = 3
VALUE: Final[Place] = 4
PLACES: Final = ("subject", "predicate", "object", "graph", "value")

Kind: TypeAlias = int
IRI: Final[Kind] = 0
BLANK_NODE: Final[Kind] = 1
LITERAL: Final[Kind] = 2
QUOTED_TRIPLE: Final[Kind] = 3
DEFAULT: Final[Kind] = 4
"""The default graph."""
UNSET: Final[Kind] = 5
"""No term: the last one in its place is repeated."""

GENERALIZED: Final = {
    (SUBJECT, LITERAL): "a literal",
    (PREDICATE, BLANK_NODE): "a blank node",
    (PREDICATE, LITERAL): "a literal",
    (PREDICATE, QUOTED_TRIPLE): "a quoted triple",
    (GRAPH, LITERAL): "a literal",
}
"""What only generalized statements have, and where."""

TermFields: TypeAlias = Mapping[int, tuple[Place, Kind]]
"""The fields of a message that hold terms, by tag."""


class Oneof:
    """The fields for a term in one place of a message: one for each kind of term."""

    def __init__(self, place: Place, first_field: int, kinds: tuple[Kind, ...]) -> None:
        self.place = place
        self.fields: TermFields = {length_tag(first_field + i): (place, kind) for i, kind in enumerate(kinds)}
        self.tags = {kind: varint(tag) for tag, (_, kind) in self.fields.items()}


_NODE_KINDS: Final = (IRI, BLANK_NODE, LITERAL, QUOTED_TRIPLE)
_GRAPH_KINDS: Final = (IRI, BLANK_NODE, DEFAULT, LITERAL)

STATEMENT_SUBJECT: Final = Oneof(SUBJECT, 1, _NODE_KINDS)
STATEMENT_PREDICATE: Final = Oneof(PREDICATE, 5, _NODE_KINDS)
STATEMENT_OBJECT: Final = Oneof(OBJECT, 9, _NODE_KINDS)
STATEMENT_GRAPH: Final = Oneof(GRAPH, 13, _GRAPH_KINDS)
GRAPH_START_GRAPH: Final = Oneof(GRAPH, 1, _GRAPH_KINDS)
NAMESPACE_GRAPH: Final = Oneof(GRAPH, 3, _GRAPH_KINDS)
HEADER_VALUE: Final = Oneof(VALUE, 2, _NODE_KINDS)

TRIPLE_FIELDS: Final = {**STATEMENT_SUBJECT.fields, **STATEMENT_PREDICATE.fields, **STATEMENT_OBJECT.fields}
QUAD_FIELDS: Final = {**TRIPLE_FIELDS, **STATEMENT_GRAPH.fields}

FoundTerm: TypeAlias = tuple[Place, Kind, int, int]
"""A term that a message sets, and from where to where its own message lies."""


def find_terms(data: bytes, position: int, end: int, fields: TermFields) -> list[FoundTerm]:
    """Find the terms that a message sets, in the order of their places. The last of those for one place counts."""
    found: list[FoundTerm] = []
    is_ordered = True
    reached = -1
    last = end - 1
    while position < last:
        tag = data[position]
        size = data[position + 1]
        field = fields.get(tag) if tag | size < 0x80 else None
        if field is not None:
            start = position + 2
            position = start + size
            if position > end:
                raise MalformedFrame("a term reaches beyond the end of its message")
        else:
            tag, start, position = read_field(data, position, end)
            field = fields.get(tag)
            if field is None:
                continue
        place, kind = field
        if place <= reached:
            is_ordered = False
        reached = place
        found.append((place, kind, start, position))
    if position != end:
        raise MalformedFrame("a field is cut short")
    return found if is_ordered else sorted({term[0]: term for term in found}.values())


_PREFIX_ID: Final = varint_tag(1)
_NAME_ID: Final = varint_tag(2)


def read_iri(data: bytes, position: int, end: int) -> tuple[int, int]:
    """Read the prefix id and the name id of an RdfIri message."""
    prefix_id = name_id = 0
    while position < end:
        tag, value, position = read_field(data, position, end)
        if tag == _PREFIX_ID:
            prefix_id = value & UINT32
        elif tag == _NAME_ID:
            name_id = value & UINT32
    return prefix_id, name_id


MAX_SHORT_IRI: Final = 12
"""Two ids take no more bytes. An IRI message that does has other things in it."""


@lru_cache(maxsize=1 << 15)
def read_short_iri(message: bytes) -> tuple[int, int]:
    """As `read_iri`, for messages that are worth keeping: the same ids come again and again."""
    return read_iri(message, 0, len(message))


_LEXICAL_FORM: Final = length_tag(1)
_LANGUAGE: Final = length_tag(2)
_DATATYPE: Final = varint_tag(3)


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
    return lexical, language, datatype_id


_ENTRY_ID: Final = varint_tag(1)
_ENTRY_VALUE: Final = length_tag(2)


def read_entry(data: bytes, position: int, end: int) -> tuple[int, bytes]:
    """Read the id and the value of a lookup entry."""
    entry_id = 0
    text = b""
    while position < end:
        tag, value, position = read_field(data, position, end)
        if tag == _ENTRY_ID:
            entry_id = value & UINT32
        elif tag == _ENTRY_VALUE:
            text = data[value:position]
    return entry_id, text
