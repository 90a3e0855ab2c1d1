"""Bytes to rdflib statements: the codec's decoders with their terms built for rdflib."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from rdflib.term import Identifier

from patchlog.codec.options import Limits
from patchlog.engine import NQuadsReader, RdfDecoder
from patchlog.errors import UsageError
from patchlog.model import RdfFrame
from patchlog.rdflib_hook.collector import paused_collector
from patchlog.rdflib_hook.terms import RdflibStatement, TermBuilder
from patchlog.spending import Spendable, spending

__all__ = ["RdflibDecoder"]

_DEFAULT_LIMITS = Limits()


class RdflibDecoder(Spendable):
    """Jelly-RDF, N-Quads or N-Triples to tuples of rdflib terms: `patchlog.codec.faces.RdflibDecoderFace`."""

    def __init__(
        self,
        source: Literal["jelly", "nquads"],
        *,
        limits: Limits = _DEFAULT_LIMITS,
        strict: bool = True,
        concatenated: bool = False,
        delimited: bool | None = None,
    ) -> None:
        self._frames: RdfDecoder | _Lines
        if source == "jelly":
            self._frames = RdfDecoder(limits=limits, strict=strict, concatenated=concatenated, delimited=delimited)
        elif source == "nquads":
            self._frames = _Lines()
        else:
            raise UsageError(f"rdflib statements are read from 'jelly' or 'nquads', not from {source!r}")
        self._builder = TermBuilder()
        self._namespaces: list[tuple[str, Identifier]] = []

    @spending
    def feed(self, data: bytes, /) -> list[RdflibStatement]:
        """Take some bytes and return the statements of the frames or lines that are complete."""
        return self._build(self._frames.feed(data))

    @spending
    def finish(self) -> list[RdflibStatement]:
        """Say that the input has ended, and return what was waiting for that."""
        return self._build(self._frames.finish())

    @spending
    def take_namespaces(self) -> list[tuple[str, Identifier]]:
        """Take the namespace declarations (name, IRI) that were read since the last call."""
        namespaces, self._namespaces = self._namespaces, []
        return namespaces

    def _build(self, frames: Iterable[RdfFrame]) -> list[RdflibStatement]:
        statements: list[RdflibStatement] = []
        with paused_collector():
            for frame in frames:
                statements += self._builder.statements(frame.statements)
                self._namespaces += ((name, self._builder.term(iri)) for name, iri in frame.namespaces)
        return statements


class _Lines:
    """Lines as frames without namespaces, so that both sources look alike."""

    def __init__(self) -> None:
        self._reader = NQuadsReader()

    def feed(self, data: bytes, /) -> Iterator[RdfFrame]:
        yield RdfFrame(0, self._reader.feed(data))

    def finish(self) -> Iterator[RdfFrame]:
        yield RdfFrame(0, self._reader.finish())
