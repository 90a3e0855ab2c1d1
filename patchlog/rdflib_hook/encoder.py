"""rdflib statements to Jelly-RDF bytes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from patchlog.codec.options import RdfOptions
from patchlog.engine import RdfEncoder
from patchlog.rdflib_hook.terms import TermFormatter
from patchlog.text.terms import iri_term

__all__ = ["RdflibEncoder"]


class RdflibEncoder:
    """Tuples of rdflib terms to Jelly-RDF bytes: `patchlog.codec.faces.RdflibEncoderFace`."""

    def __init__(
        self,
        options: RdfOptions,
        *,
        rows_per_frame: int = 256,
        delimited: bool = True,
        namespace_declarations: bool = False,
    ) -> None:
        self._encoder = RdfEncoder(
            options, rows_per_frame=rows_per_frame, delimited=delimited, namespace_declarations=namespace_declarations
        )
        self._formatter = TermFormatter()

    def statements(self, statements: Iterable[tuple[Any, ...]], /) -> None:
        """Write triples and quads."""
        self._encoder.statements(map(self._formatter.statement, statements))

    def namespace(self, name: str, iri: str, /) -> None:
        """Write a namespace declaration; nothing where they are not enabled."""
        self._encoder.namespace(name, iri_term(str(iri)))

    def take(self) -> bytes:
        """Take the bytes of the frames that were ended."""
        return self._encoder.take()

    def finish(self) -> bytes:
        """End the last frame and take what is left."""
        return self._encoder.finish()
