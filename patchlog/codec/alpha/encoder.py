"""Statements to alpha bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from patchlog.codec.alpha import messages
from patchlog.codec.fields import length_field, string_field, uint_field
from patchlog.codec.lookups import LookupWriter
from patchlog.codec.options import RdfOptions
from patchlog.codec.rdf_encoder import RDF_LOOKUPS, RdfEncoder
from patchlog.codec.term_messages import GRAPH, OBJECT, PREDICATE, SUBJECT, Oneof, Place
from patchlog.codec.term_writer import TermWriter
from patchlog.errors import InvalidTerm
from patchlog.model import Term
from patchlog.text.terms import Literal

__all__ = ["AlphaEncoder"]


class AlphaEncoder(RdfEncoder):
    """Encodes an alpha stream. Namespaces and metadata, which the layout does not have, are left out."""

    def __init__(self, options: RdfOptions, *, rows_per_frame: int = 256, delimited: bool = True) -> None:
        super().__init__(options, rows_per_frame=rows_per_frame, delimited=delimited)

    def end_frame(self, _metadata: Mapping[str, bytes] | None = None, /) -> None:
        """End the frame, even if it is empty."""
        super().end_frame()

    def _options_message(self, options: RdfOptions) -> bytes:
        return messages.write_options(options)

    def _new_terms(self, options: RdfOptions) -> TermWriter:
        return _AlphaTermWriter(options, RDF_LOOKUPS, self._frames.add)


class _AlphaLookupWriter(LookupWriter):
    def _id_to_write(self, entry_id: int) -> int:
        return entry_id


_REPEAT: Final = length_field(10, b"")


class _AlphaTermWriter(TermWriter):
    _lookup_writer = _AlphaLookupWriter
    _parts_of_quoted_triples = (messages.TERMS[SUBJECT], messages.TERMS[PREDICATE], messages.TERMS[OBJECT])

    def triple(self, subject: Term, predicate: Term, object: Term) -> bytes:
        return self._place(SUBJECT, subject) + self._place(PREDICATE, predicate) + self._place(OBJECT, object)

    def quad(self, subject: Term, predicate: Term, object: Term, graph: Term) -> bytes:
        return self.triple(subject, predicate, object) + self._place(GRAPH, graph)

    def graph_start(self, graph: Term) -> bytes:
        return length_field(1, self.term(graph, messages.TERMS[GRAPH]))

    def _place(self, place: Place, term: Term) -> bytes:
        if term == self._last_terms[place]:
            return length_field(place + 1, _REPEAT)
        self._last_terms[place] = term
        return length_field(place + 1, self.term(term, messages.TERMS[place]))

    def _part_of_quoted_triple(self, oneof: Oneof, field: bytes) -> bytes:
        return length_field(oneof.place + 1, field)

    def _ids(self, prefix: str, name: str) -> tuple[int, int]:
        if not self._uses_prefixes:
            prefix, name = "", prefix + name
        if not prefix and not name:
            raise InvalidTerm("the alpha layout has no empty IRI")
        prefix_id = self._prefixes.id_of(prefix) if prefix else 0
        return prefix_id, self._names.id_of(name) if name else 0

    def _literal(self, literal: Literal) -> bytes:
        lexical = string_field(1, literal.lexical)
        if literal.language is not None:
            return lexical + length_field(3, literal.language.encode())
        if literal.datatype is not None:
            return lexical + uint_field(4, self._datatypes.id_of(literal.datatype))
        return lexical + length_field(2, b"")
