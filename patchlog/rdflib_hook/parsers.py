"""rdflib's parsers of Jelly-RDF, Jelly-Patch and RDF Patch. Parsing a patch applies it.

Jelly-RDF streams into the store batch by batch, like any other syntax of rdflib. Patches take effect one by one, each
whole or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import TextIOBase
from typing import Any

from rdflib.graph import Graph
from rdflib.parser import InputSource, Parser

from patchlog.codec.options import Limits
from patchlog.engine import PatchDecoder, RdfPatchReader
from patchlog.errors import UsageError
from patchlog.pipes import drain
from patchlog.rdflib_hook.apply import apply_patches
from patchlog.rdflib_hook.implementation import RdflibDecoder
from patchlog.rdflib_hook.target import Target
from patchlog.streams import CHUNK_BYTES, chunks_of

__all__ = ["JellyParser", "JellyPatchParser", "RdfPatchParser"]

_DEFAULT_LIMITS = Limits()


class JellyParser(Parser):
    """Add the statements of a Jelly-RDF stream: `graph.parse(source, format="jelly")`."""

    def parse(
        self,
        source: InputSource,
        sink: Graph,
        *,
        limits: Limits = _DEFAULT_LIMITS,
        strict: bool = True,
        concatenated: bool = False,
        delimited: bool | None = None,
    ) -> None:
        """Add the statements to the sink's store, and bind the namespaces that the stream declares."""
        target = Target(sink)
        decoder = RdflibDecoder("jelly", limits=limits, strict=strict, concatenated=concatenated, delimited=delimited)
        for chunk in _chunks(source):
            target.add(decoder.feed(chunk))
            target.bind_all(decoder.take_namespaces())
        target.add(decoder.finish())
        target.bind_all(decoder.take_namespaces())


class JellyPatchParser(Parser):
    """Apply the patches of a Jelly-Patch stream: `dataset.parse(source, format="jelly-patch")`."""

    def parse(
        self,
        source: InputSource,
        sink: Graph,
        *,
        limits: Limits = _DEFAULT_LIMITS,
        strict: bool = True,
        concatenated: bool = False,
        delimited: bool | None = None,
    ) -> None:
        """Apply the patches to the sink's store."""
        decoder = PatchDecoder(limits=limits, strict=strict, concatenated=concatenated, delimited=delimited)
        apply_patches(drain(decoder, _chunks(source)), sink)


class RdfPatchParser(Parser):
    """Apply the patches of RDF Patch text: `dataset.parse(source, format="rdf-patch")`."""

    def parse(self, source: InputSource, sink: Graph) -> None:
        """Apply the patches to the sink's store."""
        apply_patches(drain(RdfPatchReader(), _chunks(source)), sink)


def _chunks(source: InputSource) -> Iterator[bytes]:
    stream: Any = source.getByteStream() or source.getCharacterStream()
    if stream is None:
        raise UsageError("the source has no bytes to read")
    return _encoded(stream) if isinstance(stream, TextIOBase) else chunks_of(stream)


def _encoded(stream: TextIOBase) -> Iterator[bytes]:
    while text := stream.read(CHUNK_BYTES):
        yield text.encode()
