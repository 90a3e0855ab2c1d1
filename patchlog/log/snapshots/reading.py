"""Patches and datasets, as bytes of any format of the codec, into changes of quads."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Final

from patchlog.codec.faces import SourceFormat
from patchlog.codec.options import Limits
from patchlog.effect import Effective, NamespaceKey
from patchlog.engine import Converter, RdfDecoder, RdfPatchReader
from patchlog.log.snapshots.changes import Line, QuadChanges, Spilling, lines_of
from patchlog.model import DEFAULT_GRAPH, NamespaceAdd, NamespaceDelete, Term

__all__ = ["NAMESPACES_OF_GRAPHS", "STORED_LIMITS", "changes_of", "namespaces_of", "pieces_of", "quads_of"]

NAMESPACES_OF_GRAPHS: Final = "patchlog.namespaces"
"""The metadata of a frame that has the namespaces of named graphs, which Jelly-RDF has no rows for: a list of graph,
name and IRI in JSON."""

STORED_LIMITS: Final = Limits(max_frame_bytes=1 << 30, max_decoded_frame_bytes=1 << 40)
"""What is stored was held to the limits of its upload."""

_PIECE_BYTES: Final = 256 << 10

_STRING: Final = rb'"(?:[^"\\]|\\.)*"'
# In RDF Patch <_:b> is a blank node, and the IRI `_:b` has its first character escaped.
_IN_ANGLES: Final = re.compile(_STRING + rb"|<_:([^>]*)>|<\\u005F:")
# N-Quads are written with the brackets of RDF-star. Lines are compared, so that all have those of canonical terms.
_BRACKET: Final = re.compile(_STRING + rb"|<< | >>")
_BRACKETS: Final = {b"<< ": b"<<( ", b" >>": b" )>>"}


def changes_of(
    chunks: Iterable[bytes],
    source: SourceFormat,
    spilling: Spilling,
    *,
    limits: Limits = STORED_LIMITS,
    on_progress: Callable[[], object] = lambda: None,
) -> QuadChanges:
    """What a stream of patches changes, or a dataset adds. Raises CodecError and TransactionError."""
    effective = Effective(lambda: QuadChanges(spilling))
    converter = Converter(source, "rdf-patch", limits=limits)
    for text in _converted(converter, chunks):
        _take(effective, text)
        on_progress()
    return effective.net


def quads_of(chunks: Iterable[bytes]) -> Iterator[list[Line]]:
    """The quads of a snapshot. Equal quads are equal lines."""
    for text in _converted(Converter("jelly", "nquads", limits=STORED_LIMITS), chunks):
        yield lines_of(_BRACKET.sub(_canonical_bracket, text) if b"<< " in text else text)


def namespaces_of(
    chunks: Iterable[bytes], limits: Limits = STORED_LIMITS
) -> tuple[dict[NamespaceKey, Term], Iterator[bytes]]:
    """The namespaces before the first statement of Jelly-RDF, and all of its chunks."""
    namespaces: dict[NamespaceKey, Term] = {}
    decoder = RdfDecoder(limits=limits)
    rest = iter(chunks)
    taken: list[bytes] = []
    for chunk in rest:
        taken.append(chunk)
        for frame in decoder.feed(chunk):
            namespaces |= {(DEFAULT_GRAPH, name): iri for name, iri in frame.namespaces}
            for graph, name, iri in json.loads(frame.metadata.get(NAMESPACES_OF_GRAPHS, b"[]")):
                namespaces[graph, name] = iri
            if frame.statements:
                return namespaces, chain(taken, rest)
    return namespaces, iter(taken)


def pieces_of(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces so small that what becomes of one is not much."""
    for chunk in chunks:
        for start in range(0, len(chunk), _PIECE_BYTES):
            yield chunk[start : start + _PIECE_BYTES]


def _converted(converter: Converter, chunks: Iterable[bytes]) -> Iterator[bytes]:
    has_begun = False
    for piece in pieces_of(chunks):
        has_begun = True
        if text := converter.feed(piece):
            yield text
    if has_begun and (text := converter.finish()):
        yield text


def _take(effective: Effective[QuadChanges], text: bytes) -> None:
    """Take lines of RDF Patch, as the codec writes them."""
    lines = lines_of(text)
    if b"<_:" in text or b"<\\u005F:" in text:
        lines = [_as_nquads(line) if b"<_:" in line or b"<\\u005F:" in line else line for line in lines]
    changes = effective.changes
    quads = changes.quads
    for line in lines:
        match line[:2]:
            case b"A ":
                quads[line[2:]] = True
            case b"D ":
                quads[line[2:]] = False
            case b"H ":
                pass
            case b"PA" | b"PD":
                _take_namespace(changes, line)
            case other:
                _turn(effective, other)
                changes = effective.changes
                quads = changes.quads
    changes.grew(len(text), len(lines))


def _turn(effective: Effective[QuadChanges], row: bytes) -> None:
    match row:
        case b"TX":
            effective.start()
        case b"TC":
            effective.commit()
        case b"TA":
            effective.abort()
        case b"Z ":
            effective.end_patch()


def _take_namespace(changes: QuadChanges, line: Line) -> None:
    for operation in RdfPatchReader().feed(line + b"\n"):
        match operation:
            case NamespaceAdd(name, iri, graph):
                changes.namespaces[graph or DEFAULT_GRAPH, name] = iri
            case NamespaceDelete(name, _, graph):
                changes.namespaces[graph or DEFAULT_GRAPH, name] = None


def _as_nquads(line: Line) -> Line:
    return _IN_ANGLES.sub(_unquoted, line) if line[1:2] == b" " else line


def _unquoted(found: re.Match[bytes]) -> bytes:
    if found[0].startswith(b'"'):
        return found[0]
    return b"<_:" if found[1] is None else b"_:" + found[1]


def _canonical_bracket(found: re.Match[bytes]) -> bytes:
    return _BRACKETS.get(found[0], found[0])
