"""A log as a stream of Jelly-RDF: the dataset at a version, and then what is added.

A delete cannot be said in Jelly-RDF, so it ends the stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from patchlog.codec.framing import FrameSplitter
from patchlog.codec.options import Limits, PhysicalType, RdfOptions
from patchlog.effect import effect
from patchlog.engine import PatchDecoder, RdfDecoder, RdfEncoder
from patchlog.errors import UsageError
from patchlog.log.contract import PatchLog
from patchlog.model import DEFAULT_GRAPH, Quad, Statement, Term, as_quad

__all__ = ["Deleted", "GrowingStream", "dataset_version", "split_frames"]

_ROWS: Final = 1024
_STORED_LIMITS: Final = Limits(max_frame_bytes=1 << 30, max_decoded_frame_bytes=1 << 40)


class Deleted(UsageError):
    """A patch deletes, which the stream cannot say."""


class GrowingStream:
    """Frames of a stream with certain options."""

    def __init__(self, options: RdfOptions) -> None:
        self._options = options
        self._encoder = RdfEncoder(options, rows_per_frame=_ROWS, namespace_declarations=options.version > 1)
        self._patches = PatchDecoder(limits=_STORED_LIMITS)
        self._pending: list[bytes] = []

    def snapshot(self, chunks: Iterable[bytes]) -> Iterator[list[bytes]]:
        """Yield the frames of a dataset, as its bytes come."""
        decoder = RdfDecoder(limits=_STORED_LIMITS)
        for chunk in chunks:
            for frame in decoder.feed(chunk):
                self._declare((name, iri) for name, iri in frame.namespaces)
                self._state(map(as_quad, frame.statements))
            yield self._taken()
        for frame in decoder.finish():
            self._state(map(as_quad, frame.statements))
        self._encoder.end_frame()
        yield self._taken()

    def patch(self, version: int, data: bytes, *, ends_patch: bool) -> list[bytes]:
        """Return the frames of what a patch adds, once all of it has come. Raises Deleted."""
        self._pending.append(data)
        if not ends_patch:
            return []
        change = effect(operation for chunk in self._pending for operation in self._patches.feed(chunk))
        self._pending.clear()
        if change.deletes:
            raise Deleted(
                f"version {version} deletes statements, which Jelly-RDF cannot say: subscribe again for the dataset as "
                "it is then, or to the patches by PatchStreamService"
            )
        self._declare((name, iri) for (_, name), iri in change.namespaces.items() if iri is not None)
        self._state(sorted(change.adds))
        self._encoder.end_frame()
        return self._taken()

    def finish(self) -> list[bytes]:
        """Return the last frames; one with the options where there is nothing else."""
        return list(split_frames(self._encoder.take() + self._encoder.finish()))

    def _declare(self, namespaces: Iterable[tuple[str, Term]]) -> None:
        for name, iri in namespaces:
            self._encoder.namespace(name, iri)

    def _state(self, quads: Iterable[Quad]) -> None:
        if self._options.physical_type is PhysicalType.TRIPLES:
            self._encoder.statements(map(_triple, quads))
        else:
            self._encoder.statements(quads)

    def _taken(self) -> list[bytes]:
        return list(split_frames(self._encoder.take()))


def split_frames(data: bytes) -> Iterator[bytes]:
    """Take apart frames that have their lengths before them."""
    splitter = FrameSplitter(max_frame_bytes=1 << 30, strict=True, delimited=True)
    yield from splitter.feed(data)
    yield from splitter.finish()


def dataset_version(log: PatchLog, head: int) -> int:
    """The version of a snapshot from which on patches only add, up to the head. Makes one where there is none."""
    versions = [snapshot.version for snapshot in log.snapshots.list() if snapshot.version <= head]
    newest = max(versions, default=0)
    if any(logged.record.deletes for logged in log.read(newest, until=head)):
        return log.snapshots.build(head).version
    return newest


def _triple(quad: Quad) -> Statement:
    if quad[3] != DEFAULT_GRAPH:
        raise UsageError(
            f"physical_type TRIPLES holds the default graph alone, and {quad[3]} is another: ask for QUADS or GRAPHS"
        )
    return quad[:3]
