"""Terms onto the wire: splits IRIs, gives out lookup ids, and leaves out what repeats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from patchlog.codec.fields import length_field, string_field, uint_field, varint
from patchlog.codec.frame_writer import RowKind
from patchlog.codec.lookups import LookupWriter
from patchlog.codec.options import PatchOptions, RdfOptions, Tables
from patchlog.codec.term_messages import (
    BLANK_NODE,
    DEFAULT,
    GENERALIZED,
    GRAPH,
    GRAPH_START_GRAPH,
    IRI,
    LITERAL,
    OBJECT,
    PLACES,
    PREDICATE,
    QUOTED_TRIPLE,
    STATEMENT_GRAPH,
    STATEMENT_OBJECT,
    STATEMENT_PREDICATE,
    STATEMENT_SUBJECT,
    SUBJECT,
    Kind,
    Oneof,
    Place,
)
from patchlog.errors import InvalidTerm
from patchlog.model import DEFAULT_GRAPH, Term
from patchlog.text.terms import BlankNode, Iri, Literal, QuotedTriple, parse_term

__all__ = ["NOTHING_RESERVED", "LookupRows", "TermWriter"]

NOTHING_RESERVED: Final = Tables(names=0, prefixes=0, datatypes=0)
"""Of no table are the first entries somebody else's."""

_MIN_PREFIX_TABLE_SIZE: Final = 4
"""A statement may need as many prefixes."""


_NO_TERM: Final = object()
"""Equal to nothing that a caller could hand over, None included."""


@dataclass(frozen=True, slots=True)
class LookupRows:
    """The rows of lookup entries in a format."""

    name: RowKind
    prefix: RowKind
    datatype: RowKind


class TermWriter:
    """Writes the terms of one stream, and knows all that its reader will know.

    Begin each row with `begin_row`. The rows of lookup entries that it needs are handed to `add_row`, before the caller
    can add the row itself.
    """

    _lookup_writer = LookupWriter
    _parts_of_quoted_triples = (STATEMENT_SUBJECT, STATEMENT_PREDICATE, STATEMENT_OBJECT)

    def __init__(
        self,
        options: RdfOptions | PatchOptions,
        rows: LookupRows,
        add_row: Callable[[bytes], None],
        *,
        begins_explicitly: bool = False,
        reserved: Tables = NOTHING_RESERVED,
    ) -> None:
        def table(what: str, size: int, kind: RowKind, reserved_ids: int) -> LookupWriter:
            return self._lookup_writer(
                what,
                size,
                lambda entry: add_row(kind.row(entry)),
                begins_explicitly=begins_explicitly,
                reserved=reserved_ids,
            )

        self._names = table("name", options.max_name_table_size, rows.name, reserved.names)
        self._prefixes = table("prefix", options.max_prefix_table_size, rows.prefix, reserved.prefixes)
        self._datatypes = table("datatype", options.max_datatype_table_size, rows.datatype, reserved.datatypes)
        self._uses_prefixes = options.max_prefix_table_size >= _MIN_PREFIX_TABLE_SIZE
        self._allows_quoted_triples = options.rdf_star
        self._allows_generalized = options.generalized_statements
        self._last_name_id = -1 if begins_explicitly else 0
        self._last_prefix_id = 0
        self._last_terms: list[object] = [_NO_TERM] * 4

    def begin_row(self) -> None:
        """Let go of the lookup entries that the row before held on to."""
        self._names.in_row.clear()
        self._prefixes.in_row.clear()
        self._datatypes.in_row.clear()

    def forget_last_terms(self, *places: Place) -> None:
        """Repeat no term in these places next time."""
        for place in places:
            self._last_terms[place] = _NO_TERM

    def triple(self, subject: Term, predicate: Term, object: Term) -> bytes:
        """Write an RdfTriple, or an RdfQuad without graph."""
        last = self._last_terms
        message = b""
        if subject != last[SUBJECT]:
            message = self.term(subject, STATEMENT_SUBJECT)
            last[SUBJECT] = subject
        if predicate != last[PREDICATE]:
            message += self.term(predicate, STATEMENT_PREDICATE)
            last[PREDICATE] = predicate
        if object != last[OBJECT]:
            message += self.term(object, STATEMENT_OBJECT)
            last[OBJECT] = object
        return message

    def quad(self, subject: Term, predicate: Term, object: Term, graph: Term) -> bytes:
        """Write an RdfQuad."""
        return self.triple(subject, predicate, object) + self.graph_unless_last(graph, STATEMENT_GRAPH)

    def graph_start(self, graph: Term) -> bytes:
        """Write an RdfGraphStart."""
        return self.term(graph, GRAPH_START_GRAPH)

    def graph_unless_last(self, graph: Term, oneof: Oneof) -> bytes:
        """Write a field of a graph, or nothing where it repeats the last one."""
        if graph == self._last_terms[GRAPH]:
            return b""
        self._last_terms[GRAPH] = graph
        return self.term(graph, oneof)

    def term(self, term: Term, oneof: Oneof) -> bytes:
        """Write a field of a term, with its tag."""
        known_iri = _KNOWN_IRIS.get(term)
        if known_iri is not None:
            return _iri_field(oneof.tags[IRI], *self._ids(*known_iri))
        if term == DEFAULT_GRAPH and DEFAULT in oneof.tags:
            return oneof.tags[DEFAULT] + b"\0"
        match parse_term(term):
            case Iri(iri):
                return _iri_field(oneof.tags[IRI], *self._ids(*_split_iri(term, iri)))
            case Literal() as literal:
                tag = self._allowed_tag(LITERAL, oneof)
                message = self._literal(literal)
            case BlankNode(label):
                tag = self._allowed_tag(BLANK_NODE, oneof)
                message = label.encode()
            case QuotedTriple(subject, predicate, object):
                tag = self._allowed_tag(QUOTED_TRIPLE, oneof)
                message = b""
                # Terms may nest hundreds deep, so each level takes no more of the stack than this call.
                for part, place in zip((subject, predicate, object), self._parts_of_quoted_triples, strict=True):
                    message += self._part_of_quoted_triple(place, self.term(part, place))
        return tag + varint(len(message)) + message

    def iri(self, term: Term) -> bytes:
        """Write an RdfIri."""
        parsed = parse_term(term)
        if not isinstance(parsed, Iri):
            raise InvalidTerm(f"{term} is not an IRI")
        return _iri_message(*self._ids(*_split_iri(term, parsed.value)))

    def _part_of_quoted_triple(self, _oneof: Oneof, field: bytes) -> bytes:
        return field

    def _ids(self, prefix: str, name: str) -> tuple[int, int]:
        """The ids to write for an IRI: 0 for those that its reader will guess."""
        prefix_id = 0
        if not self._uses_prefixes:
            name = prefix + name
        elif (prefix_id := self._prefixes.id_of(prefix)) == self._last_prefix_id:
            prefix_id = 0
        else:
            self._last_prefix_id = prefix_id
        name_id = self._names.id_of(name)
        follows = name_id == self._last_name_id + 1
        self._last_name_id = name_id
        return prefix_id, 0 if follows else name_id

    def _literal(self, literal: Literal) -> bytes:
        lexical = string_field(1, literal.lexical)
        if literal.language is not None:
            return lexical + length_field(2, literal.language.encode())
        if literal.datatype is not None:
            return lexical + uint_field(3, self._datatypes.id_of(literal.datatype))
        return lexical

    def _allowed_tag(self, kind: Kind, oneof: Oneof) -> bytes:
        """The tag of the field for a kind of term, where one may stand."""
        if kind == QUOTED_TRIPLE and not self._allows_quoted_triples:
            raise InvalidTerm("a quoted triple needs a stream that declares RDF-star")
        if not self._allows_generalized and (oneof.place, kind) in GENERALIZED:
            raise InvalidTerm(
                f"{GENERALIZED[oneof.place, kind]} as {PLACES[oneof.place]} needs a stream that declares "
                "generalized statements"
            )
        if kind not in oneof.tags:
            raise InvalidTerm("a quoted triple cannot be a graph")
        return oneof.tags[kind]


_KNOWN_IRIS: Final[dict[Term, tuple[str, str]]] = {}
"""Prefixes and names of IRIs that were split not long ago."""

_MAX_KNOWN_IRIS: Final = 1 << 13
_MAX_KNOWN_LENGTH: Final = 1024


def _split_iri(term: Term, iri: str) -> tuple[str, str]:
    """The prefix and the name of an IRI, given also as the term that it is."""
    at = (iri.rfind("#") + 1) or (iri.rfind("/") + 1)
    # A scheme alone, as of mailto:, is too short to be worth an entry that another prefix needs.
    if at == 0 and (colon := iri.rfind(":")) > iri.find(":"):
        at = colon + 1
    split = iri[:at], iri[at:]
    if len(term) <= _MAX_KNOWN_LENGTH:
        if len(_KNOWN_IRIS) >= _MAX_KNOWN_IRIS:
            _KNOWN_IRIS.clear()
        _KNOWN_IRIS[term] = split
    return split


def _iri_message(prefix_id: int, name_id: int) -> bytes:
    return uint_field(1, prefix_id) + uint_field(2, name_id)


@lru_cache(maxsize=1 << 15)
def _iri_field(tag: bytes, prefix_id: int, name_id: int) -> bytes:
    message = _iri_message(prefix_id, name_id)
    return tag + varint(len(message)) + message
