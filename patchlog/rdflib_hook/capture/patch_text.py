"""A transaction as a patch: RDF Patch text, which logs take in by their fastest path.

Terms go from rdflib's objects to text natively: to Jelly first, and from there to lines. A patch may be iterated again,
which is what sending it again takes.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import Final

from rdflib.term import IdentifiedNode, Literal

from patchlog.codec.options import LogicalType, PhysicalType, RdfOptions
from patchlog.codec.patch_ids import PatchId, patch_id_term
from patchlog.effect import Effect, effect
from patchlog.engine import Converter, RdfPatchReader, RdfPatchWriter
from patchlog.errors import InvalidTerm
from patchlog.model import Header, NamespaceAdd, NamespaceDelete, Operation, TransactionStart
from patchlog.rdflib_hook.capture.journal import Net, RdflibQuad
from patchlog.rdflib_hook.implementation import RdflibEncoder
from patchlog.rdflib_hook.terms import TermFormatter
from patchlog.text.terms import iri_term

__all__ = ["PatchText", "header_time"]

_QUADS: Final = RdfOptions(
    physical_type=PhysicalType.QUADS, logical_type=LogicalType.FLAT_QUADS, generalized_statements=True
)
_BATCH: Final = 1 << 13


@dataclass(frozen=True, slots=True)
class PatchText:
    """One patch of one transaction. `is_aborted` ends it with TA: it says what was not done."""

    net: Net
    namespaces: Mapping[str, str | None]
    headers: Mapping[str, IdentifiedNode | Literal]
    is_aborted: bool = False
    id: PatchId = field(default_factory=lambda: str(uuid.uuid4()))

    def __iter__(self) -> Iterator[bytes]:
        """The bytes of the patch, in pieces."""
        yield _text(self._beginning())
        yield from _statements(b"D ", self.net.deletes)
        yield from _statements(b"A ", self.net.adds)
        yield b"TA .\n" if self.is_aborted else b"TC .\n"

    def effect(self) -> Effect:
        """What the patch does."""
        return effect(_operations(self))

    def _beginning(self) -> Iterator[Operation]:
        formatter = TermFormatter()
        yield Header("id", patch_id_term(self.id))
        for key, value in self.headers.items():
            yield Header(key, formatter.term(value))
        yield TransactionStart()
        for name, iri in self.namespaces.items():
            yield NamespaceDelete(name) if iri is None else NamespaceAdd(name, iri_term(iri))


def header_time() -> Literal:
    """Now, as a header says it."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return Literal(now, datatype="http://www.w3.org/2001/XMLSchema#dateTime", normalize=False)


def _text(operations: Iterable[Operation]) -> bytes:
    writer = RdfPatchWriter()
    for operation in operations:
        writer.accept(operation)
    return writer.take()


def _statements(letter: bytes, quads: Iterable[RdflibQuad]) -> Iterator[bytes]:
    iterator = iter(quads)
    while batch := list(islice(iterator, _BATCH)):
        encoder = RdflibEncoder(_QUADS, rows_per_frame=_BATCH)
        try:
            encoder.statements(batch)
        except InvalidTerm as error:
            raise _naming_term(error, batch) from error
        converter = Converter("jelly", "rdf-patch")
        adds = converter.feed(encoder.finish()) + converter.finish()
        # A line feed in a term is escaped: each one here ends a line, and the next line begins with `A `.
        yield adds if letter == b"A " else letter + adds[2:].replace(b"\nA ", b"\n" + letter)


def _naming_term(error: InvalidTerm, quads: Iterable[RdflibQuad]) -> InvalidTerm:
    """Say which term cannot be written, where that can be seen: what holds half of a character."""
    for quad in quads:
        for term in quad:
            if any("\ud800" <= character <= "\udfff" for character in str(term)):
                return InvalidTerm(f"{error.reason}: {term!r}, of the subject {quad[0]!r}; remove it, or roll back")
    return error


def _operations(chunks: Iterable[bytes]) -> Iterator[Operation]:
    reader = RdfPatchReader()
    for chunk in chunks:
        yield from reader.feed(chunk)
    yield from reader.finish()
