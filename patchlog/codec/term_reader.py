"""Terms off the wire: lookups, id counters, repeated terms, and the checks that both formats share."""

from __future__ import annotations

from typing import Final

from patchlog.codec.fields import read_varint
from patchlog.codec.lookups import LookupReader, Name
from patchlog.codec.options import Limits, PatchOptions, RdfOptions
from patchlog.codec.term_messages import (
    BLANK_NODE,
    DEFAULT,
    GENERALIZED,
    GRAPH,
    HEADER_VALUE,
    IRI,
    LITERAL,
    MAX_SHORT_IRI,
    OBJECT,
    PLACES,
    PREDICATE,
    QUAD_FIELDS,
    QUOTED_TRIPLE,
    SUBJECT,
    TRIPLE_FIELDS,
    UNSET,
    FoundTerm,
    Kind,
    Oneof,
    Place,
    TermFields,
    find_terms,
    read_entry,
    read_iri,
    read_literal,
    read_short_iri,
)
from patchlog.errors import CodecError, InvalidTerm, LimitExceeded
from patchlog.model import DEFAULT_GRAPH, XSD_STRING, Term
from patchlog.text.terms import MAX_NESTING_DEPTH, blank_node_term, escape_language, escape_lexical, iri_term

__all__ = ["TermReader"]

_TRIPLE_PLACES: Final = (SUBJECT, PREDICATE, OBJECT)
_QUAD_PLACES: Final = (SUBJECT, PREDICATE, OBJECT, GRAPH)


class TermReader:
    """Reads the terms of one stream, and holds all that a term may refer back to.

    The methods that take `data, start, end` read the message that lies there. The size of a term is the number of UTF-8
    bytes of the texts in it. Sizes are counted against the limit of the frame: by the caller where it is given one.
    """

    _read_literal = staticmethod(read_literal)

    def __init__(
        self, options: RdfOptions | PatchOptions, limits: Limits, *, strict: bool, graph_may_be_missing: bool = False
    ) -> None:
        self._names = LookupReader[Name]("name", options.max_name_table_size)
        self._prefixes = LookupReader[str]("prefix", options.max_prefix_table_size)
        self._prefixes[0] = ""  # what IRIs begin with before one of them names a prefix
        self._datatypes = LookupReader[tuple[str, int]]("datatype", options.max_datatype_table_size)
        self._last_name_id = 0
        self._last_prefix_id = 0
        self._last_terms: list[Term | None] = [None] * 4
        self._last_sizes = [0] * 4
        self._strict = strict
        self._graph_may_be_missing = graph_may_be_missing
        self._max_nesting_depth = min(limits.max_nesting_depth, MAX_NESTING_DEPTH)
        self._max_decoded_bytes = limits.max_decoded_frame_bytes
        self._decoded_bytes = 0
        self.declare(options)

    def declare(self, options: RdfOptions | PatchOptions) -> None:
        """Take over what the options say of the terms' kinds."""
        self._allows_quoted_triples = options.rdf_star or not self._strict
        self._allows_generalized = options.generalized_statements or not self._strict

    def begin_frame(self) -> None:
        """Begin to count decoded bytes anew."""
        self._decoded_bytes = 0

    def count(self, size: int) -> None:
        """Count decoded bytes against the limit of the frame."""
        self._decoded_bytes += size
        if self._decoded_bytes > self._max_decoded_bytes:
            raise self._too_many_bytes()

    def _too_many_bytes(self) -> LimitExceeded:
        return LimitExceeded(
            f"the terms of this frame take more than {self._max_decoded_bytes} bytes (Limits.max_decoded_frame_bytes)"
        )

    def text(self, data: bytes) -> str:
        """Decode a string."""
        return str(data, "utf-8", "strict" if self._strict else "replace")

    def name_entry(self, data: bytes, start: int, end: int) -> None:
        """Read an RdfNameEntry."""
        entry_id, text = self._entry(data, start, end)
        self._names.define(entry_id, Name(text))

    def prefix_entry(self, data: bytes, start: int, end: int) -> None:
        """Read an RdfPrefixEntry."""
        self._prefixes.define(*self._entry(data, start, end))

    def datatype_entry(self, data: bytes, start: int, end: int) -> None:
        """Read an RdfDatatypeEntry."""
        entry_id, iri = self._entry(data, start, end)
        closing = '"' if iri == XSD_STRING else f'"^^{iri_term(iri)}'
        self._datatypes.define(entry_id, (closing, len(iri.encode())))

    def triple(self, data: bytes, start: int, end: int) -> tuple[Term, Term, Term]:
        """Read an RdfTriple, or the RdfQuad of a stream of triples: a graph in it is skipped."""
        last_terms = self._last_terms
        if last_terms[OBJECT] is None or not self._take_ordered(data, start, end, TRIPLE_FIELDS):
            self._take(data, start, end, TRIPLE_FIELDS, _TRIPLE_PLACES)
        subject_size, predicate_size, object_size, _ = self._last_sizes
        self.count(subject_size + predicate_size + object_size)
        subject, predicate, object, _ = last_terms
        return subject, predicate, object  # type: ignore[return-value]  # `_take` filled these places

    def quad(self, data: bytes, start: int, end: int) -> tuple[Term, Term, Term, Term | None]:
        """Read an RdfQuad."""
        last_terms = self._last_terms
        if (
            last_terms[OBJECT] is None
            or last_terms[GRAPH] is None
            or not self._take_ordered(data, start, end, QUAD_FIELDS)
        ):
            self._take(data, start, end, QUAD_FIELDS, _QUAD_PLACES)
        subject_size, predicate_size, object_size, graph_size = self._last_sizes
        self.count(subject_size + predicate_size + object_size + graph_size)
        return tuple(last_terms)  # type: ignore[return-value]  # `_take` filled all places

    def header_value(self, data: bytes, start: int, end: int) -> Term:
        """Read the value in an RdfPatchHeader."""
        for place, kind, term_start, term_end in find_terms(data, start, end, HEADER_VALUE.fields):
            term, size = self._term(data, place, kind, term_start, term_end)
            self.count(size)
            return term
        raise InvalidTerm("a header row has no value")

    def iri(self, data: bytes, start: int, end: int) -> tuple[Term, int]:
        """Read an RdfIri, and return it with its size."""
        prefix_id, name_id = (
            read_short_iri(data[start:end]) if end - start <= MAX_SHORT_IRI else read_iri(data, start, end)
        )
        self._last_name_id = name_id = name_id or self._last_name_id + 1
        name = self._names.get(name_id)
        if name is None:
            raise self._names.unknown(name_id)
        self._last_prefix_id = prefix_id = prefix_id or self._last_prefix_id
        prefix = self._prefixes.get(prefix_id)
        if prefix is None:
            raise self._prefixes.unknown(prefix_id)
        return name[prefix]

    def graph(self, data: bytes, start: int, end: int, oneof: Oneof) -> tuple[Term, int] | None:
        """Read the graph that a message sets, and return it with its size; None where it sets none."""
        for place, kind, term_start, term_end in find_terms(data, start, end, oneof.fields):
            return self._term(data, place, kind, term_start, term_end)
        return None

    def graph_or_last(self, data: bytes, start: int, end: int, oneof: Oneof) -> tuple[Term | None, int]:
        """Read the graph that a message sets, or take the last one. Statements after it may repeat it.

        Where there is none it is the default graph, which Jena leaves out.
        """
        graph: tuple[Term | None, int] | None = self.graph(data, start, end, oneof)
        if graph is None and self._last_terms[GRAPH] is None and not self._graph_may_be_missing:
            graph = DEFAULT_GRAPH, 0
        graph = graph or self._repeated(GRAPH)
        self._last_terms[GRAPH], self._last_sizes[GRAPH] = graph
        return graph

    def _entry(self, data: bytes, start: int, end: int) -> tuple[int, str]:
        entry_id, value = read_entry(data, start, end)
        return entry_id, self.text(value)

    def _take(self, data: bytes, start: int, end: int, fields: TermFields, places: tuple[Place, ...]) -> None:
        """Read the terms of a statement into the last terms."""
        for place, kind, term_start, term_end in self._find(data, start, end, fields, places):
            taken = self._repeated(place) if kind == UNSET else self._term(data, place, kind, term_start, term_end)
            self._last_terms[place], self._last_sizes[place] = taken

    def _find(
        self, data: bytes, start: int, end: int, fields: TermFields, places: tuple[Place, ...]
    ) -> list[FoundTerm]:
        """Find the terms of a statement, and an unset one for each place that has none."""
        by_place = {term[0]: term for term in find_terms(data, start, end, fields)}
        return [by_place.get(place, (place, UNSET, 0, 0)) for place in places]

    def _take_ordered(self, data: bytes, position: int, end: int, fields: TermFields) -> bool:
        """Do as `_take`, in one go, where the terms lie in the order of their places; return whether they do.

        Nearly all do. Where they do not, or where anything is wrong, nothing has changed that `_take` does not set
        again: it knows the order of the checks.
        """
        last_terms, last_sizes = self._last_terms, self._last_sizes
        names, prefixes = self._names, self._prefixes
        name_id_before, prefix_id_before = self._last_name_id, self._last_prefix_id
        is_ordered = False
        last = end - 1
        reached = -1
        try:
            while position < last:
                tag = data[position]
                field = fields.get(tag)
                if field is None or tag >= 0x80:
                    break
                place, kind = field
                start = position + 2
                length = data[position + 1]
                if length >= 0x80:
                    length, start = read_varint(data, position + 1, end)
                position = start + length
                if place <= reached or position > end:
                    break
                reached = place
                if kind == IRI and length <= MAX_SHORT_IRI:  # as in `iri`, without the calls
                    prefix_id, name_id = read_short_iri(data[start:position])
                    self._last_name_id = name_id = name_id or self._last_name_id + 1
                    self._last_prefix_id = prefix_id = prefix_id or self._last_prefix_id
                    name = names.get(name_id)
                    prefix = prefixes.get(prefix_id)
                    if name is None or prefix is None:
                        break
                    last_terms[place], last_sizes[place] = name[prefix]
                else:
                    last_terms[place], last_sizes[place] = self._term(data, place, kind, start, position)
            else:
                is_ordered = position == end
        except (CodecError, UnicodeDecodeError):
            is_ordered = False
        if not is_ordered:
            self._last_name_id, self._last_prefix_id = name_id_before, prefix_id_before
        return is_ordered

    def _term(self, data: bytes, place: Place, kind: Kind, start: int, end: int) -> tuple[Term, int]:
        if kind == IRI:
            return self.iri(data, start, end)
        if kind == LITERAL:
            term, size = self._literal(data, start, end)
        elif kind == BLANK_NODE:
            label = self.text(data[start:end])
            term, size = blank_node_term(label), _utf8_size(label)
        elif kind == DEFAULT:
            return DEFAULT_GRAPH, 0
        else:
            pieces: list[Term] = []
            size = self._quoted_triple(data, start, end, 1, self._max_decoded_bytes - self._decoded_bytes, pieces)
            term = "".join(pieces)
        self._check_kind(place, kind)
        return term, size

    def _literal(self, data: bytes, start: int, end: int) -> tuple[Term, int]:
        value, language_tag, datatype_id = self._read_literal(data, start, end)
        lexical = self.text(value)
        closing, size = '"', _utf8_size(lexical)
        if datatype_id is not None:
            datatype = self._datatypes.get(datatype_id)
            if datatype is not None:
                closing = datatype[0]
                size += datatype[1]
            elif self._strict or not self._datatypes.is_in_range(datatype_id):
                raise self._datatypes.unknown(datatype_id)
        elif language_tag is not None:
            language = self.text(language_tag)
            if language:
                closing = f'"@{escape_language(language)}'
                size += _utf8_size(language)
            elif self._strict:
                raise InvalidTerm("a language tag is empty")
        return f'"{escape_lexical(lexical)}{closing}', size

    def _quoted_triple(self, data: bytes, start: int, end: int, depth: int, room: int, pieces: list[Term]) -> int:
        """Read a quoted triple into pieces of its text, and return its size, which may not exceed `room`."""
        if depth > self._max_nesting_depth:
            raise LimitExceeded(
                f"quoted triples are nested deeper than {self._max_nesting_depth} (Limits.max_nesting_depth)"
            )
        triple_size = 0
        separator = "<<( "
        for place, kind, term_start, term_end in self._find(data, start, end, TRIPLE_FIELDS, _TRIPLE_PLACES):
            pieces.append(separator)
            separator = " "
            if kind == QUOTED_TRIPLE:
                triple_size += self._quoted_triple(data, term_start, term_end, depth + 1, room - triple_size, pieces)
                self._check_kind(place, kind)
                continue
            if kind == UNSET:
                raise InvalidTerm(f"a quoted triple has no {PLACES[place]}; it cannot repeat one")
            term, size = self._term(data, place, kind, term_start, term_end)
            triple_size += size
            if triple_size > room:
                raise self._too_many_bytes()
            pieces.append(term)
        pieces.append(" )>>")
        return triple_size

    def _repeated(self, place: Place) -> tuple[Term | None, int]:
        term = self._last_terms[place]
        if term is None and not (place == GRAPH and self._graph_may_be_missing):
            raise InvalidTerm(f"there is no {PLACES[place]} to repeat")
        return term, self._last_sizes[place]

    def _check_kind(self, place: Place, kind: Kind) -> None:
        if kind == QUOTED_TRIPLE and not self._allows_quoted_triples:
            raise InvalidTerm("a quoted triple in a stream that does not declare RDF-star")
        if not self._allows_generalized and (place, kind) in GENERALIZED:
            raise InvalidTerm(
                f"{GENERALIZED[place, kind]} as {PLACES[place]} in a stream that does not declare generalized "
                "statements"
            )


def _utf8_size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
