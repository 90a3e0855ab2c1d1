"""Alpha bytes to frames of statements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from patchlog.codec.alpha import messages
from patchlog.codec.fields import Message
from patchlog.codec.lookups import Name
from patchlog.codec.options import MIN_NAME_TABLE_SIZE, Limits, RdfOptions
from patchlog.codec.rdf_decoder import NAMESPACE_TAG, RdfDecoder
from patchlog.codec.stream_decoder import MessageReader
from patchlog.codec.term_messages import GRAPH, PLACES, UNSET, FoundTerm, Oneof, Place, TermFields, read_entry, read_iri
from patchlog.codec.term_reader import TermReader
from patchlog.errors import InvalidTerm, UnknownLookupEntry
from patchlog.model import Term

__all__ = ["AlphaDecoder"]


class AlphaDecoder(RdfDecoder):
    """Decodes an alpha stream, one frame after the other."""

    ROW_KINDS: ClassVar = RdfDecoder.ROW_KINDS - {NAMESPACE_TAG}

    def _read_options(self, data: bytes, start: int, end: int) -> RdfOptions:
        return messages.read_options(data, start, end)

    def _check_readable(self, options: RdfOptions) -> None:
        # A name table could have any size then, and logical types came late.
        at_least = max(options.max_name_table_size, MIN_NAME_TABLE_SIZE)
        replace(options, max_name_table_size=at_least).check_readable(self._limits, strict=False)

    def _new_terms(self, options: RdfOptions) -> TermReader:
        return _AlphaTermReader(options, self._limits, strict=self._strict)

    def _readers_for(self, options: RdfOptions) -> Mapping[int, MessageReader]:
        return {tag: reader for tag, reader in super()._readers_for(options).items() if tag in self.ROW_KINDS}

    def _read_frame_field(self, tag: int, frame: bytes, start: int, end: int) -> None:
        """Frames had no other fields than rows."""


class _AlphaTermReader(TermReader):
    _read_literal = staticmethod(messages.read_literal)

    def __init__(self, options: RdfOptions, limits: Limits, *, strict: bool) -> None:
        super().__init__(options, limits, strict=strict)
        self._names[0] = Name("")

    def iri(self, data: bytes, start: int, end: int) -> tuple[Term, int]:
        prefix_id, name_id = read_iri(data, start, end)
        if not prefix_id and not name_id and self._strict:
            raise InvalidTerm("an IRI has neither a prefix nor a name")
        name = self._names.get(name_id)
        if name is None:
            raise self._names.unknown(name_id)
        prefix = self._prefixes.get(prefix_id)
        if prefix is None:
            raise self._prefixes.unknown(prefix_id)
        return name[prefix]

    def graph(self, data: bytes, start: int, end: int, oneof: Oneof) -> tuple[Term, int] | None:
        span = Message(data, start, end).span(1)
        if span is None:
            return None
        kind, term_start, term_end = messages.find_term(data, *span, oneof.place)
        if kind == UNSET:
            raise InvalidTerm("a graph start cannot repeat a graph")
        return self._term(data, GRAPH, kind, term_start, term_end)

    def _entry(self, data: bytes, start: int, end: int) -> tuple[int, str]:
        entry_id, value = read_entry(data, start, end)
        if entry_id == 0:
            raise UnknownLookupEntry("a lookup entry has no id")
        return entry_id, self.text(value)

    def _find(
        self, data: bytes, start: int, end: int, _fields: TermFields, places: tuple[Place, ...]
    ) -> list[FoundTerm]:
        statement = Message(data, start, end)
        found: list[FoundTerm] = []
        for place in places:
            span = statement.span(place + 1)
            if span is None:
                raise InvalidTerm(f"a statement has no {PLACES[place]}")
            found.append((place, *messages.find_term(data, *span, place)))
        return found

    def _take_ordered(self, _data: bytes, _position: int, _end: int, _fields: TermFields) -> bool:
        return False
