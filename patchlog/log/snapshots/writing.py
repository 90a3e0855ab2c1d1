"""Writes a snapshot: Jelly-RDF, QUADS, flat, the namespaces before the statements."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from patchlog.codec.options import Limits, LogicalType, PhysicalType, RdfOptions
from patchlog.effect import NamespaceKey
from patchlog.engine import DatasetEncoder, RdfEncoder
from patchlog.log.contract import SnapshotFormat
from patchlog.log.records import LogOptions
from patchlog.log.snapshots.changes import Line
from patchlog.log.snapshots.reading import NAMESPACES_OF_GRAPHS, STORED_LIMITS
from patchlog.model import DEFAULT_GRAPH, RdfFrame, Term

__all__ = ["PLAIN", "Written", "jelly_of", "texts_of", "write_snapshot"]

PLAIN: Final = LogOptions(rdf_star=False, generalized_statements=False)


@dataclass(frozen=True, slots=True)
class Written:
    """What a file of a snapshot holds."""

    sha256: bytes
    bytes: int
    quads: int
    namespaces: int


def texts_of(blocks: Iterable[list[Line]]) -> Iterator[bytes]:
    """Lines as text, as `write_snapshot` takes them."""
    for lines in blocks:
        yield b"\n".join([*lines, b""])


def write_snapshot(
    pieces: Iterable[bytes],
    namespaces: Mapping[NamespaceKey, Term],
    options: LogOptions,
    write: Callable[[bytes], object],
    *,
    source: SnapshotFormat = "nquads",
    limits: Limits = STORED_LIMITS,
    take_hashes: Callable[[bytes], object] = id,
) -> Written:
    """Write a snapshot of a dataset that comes in pieces. `take_hashes` is given the hashes of the quads.

    Raises InvalidTerm for statements that the options do not allow.
    """
    encoder = DatasetEncoder(source, _rdf_options(options), limits=limits)
    size = 0
    digest = sha256()

    def put(data: bytes) -> None:
        nonlocal size
        size += len(data)
        digest.update(data)
        write(data)
        take_hashes(encoder.take_hashes())

    of_graphs = []
    for (graph, name), iri in sorted(namespaces.items()):
        if graph == DEFAULT_GRAPH:
            encoder.namespace(name, iri)
        else:
            of_graphs.append((graph, name, iri))
    encoder.end_frame({NAMESPACES_OF_GRAPHS: json.dumps(of_graphs).encode()} if of_graphs else {})
    for piece in pieces:
        put(encoder.feed(piece))
    put(encoder.finish())
    return Written(digest.digest(), size, encoder.statements, len(namespaces))


def jelly_of(frames: Iterable[RdfFrame]) -> Iterator[bytes]:
    """What was read of any syntax, as Jelly-RDF on its way into a snapshot."""
    encoder = RdfEncoder(_rdf_options(LogOptions()), namespace_declarations=True)
    for frame in frames:
        for name, iri in frame.namespaces:
            encoder.namespace(name, iri)
        encoder.statements(frame.statements)
        yield encoder.take()
    yield encoder.finish()


def _rdf_options(options: LogOptions) -> RdfOptions:
    return RdfOptions(
        physical_type=PhysicalType.QUADS,
        logical_type=LogicalType.FLAT_QUADS,
        generalized_statements=options.generalized_statements,
        rdf_star=options.rdf_star,
    )
