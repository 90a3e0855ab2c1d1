"""A log as a stream of Jelly-RDF: the dataset at a version, and then what is added.

A delete cannot be said in Jelly-RDF, so it ends the stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Final

from patchlog.codec.beginning import first_row
from patchlog.codec.framing import FrameSplitter
from patchlog.codec.options import Limits, LogicalType, PhysicalType, RdfOptions
from patchlog.effect import effect
from patchlog.engine import PatchDecoder, RdfDecoder, RdfEncoder
from patchlog.errors import InvalidTerm, UnsupportedOption, UsageError
from patchlog.log.contract import PatchLog, StagingPatchLog
from patchlog.log.snapshots.store import LocalSnapshots
from patchlog.model import DEFAULT_GRAPH, Quad, Statement, Term, as_quad

__all__ = ["Deleted", "GrowingStream", "dataset_version", "local_snapshots", "split_frames"]

_ROWS: Final = 1024
_JOINED_BYTES: Final = 512 << 10
_NARROWING: Final = ("rdf_star", "generalized_statements", "max_datatype_table_size")
"""Options that a stream may have without, and then cannot say all statements."""
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

    def stored(self, chunks: Iterable[bytes]) -> Iterator[list[bytes]]:
        """Yield the frames of a dataset and no more: as they are stored, where the options of the stream allow it.

        Several become one, as messages cost more than bytes: laid end to end, messages of protobuf are one message with
        the rows of all.
        """
        coming = iter(chunks)
        first = next(coming, b"")
        decoder = RdfDecoder(limits=_STORED_LIMITS)
        for _ in decoder.feed(first_row(first)):
            pass
        whole = chain([first], coming)
        if decoder.options is None or not _allows(self._options, decoder.options):
            yield from self.snapshot(whole)
            yield self.finish()
            return
        splitter = FrameSplitter(max_frame_bytes=_STORED_LIMITS.max_frame_bytes, strict=True, delimited=True)
        waiting: list[bytes] = []
        for chunk in whole:
            waiting += splitter.feed(chunk)
            if sum(map(len, waiting)) >= _JOINED_BYTES:
                yield [b"".join(waiting)]
                waiting.clear()
        if waiting:
            yield [b"".join(waiting)]

    def finish(self) -> list[bytes]:
        """Return the last frames; one with the options where there is nothing else."""
        return list(split_frames(self._encoder.take() + self._encoder.finish()))

    def _declare(self, namespaces: Iterable[tuple[str, Term]]) -> None:
        for name, iri in namespaces:
            self._encoder.namespace(name, iri)

    def _state(self, quads: Iterable[Quad]) -> None:
        try:
            if self._options.physical_type is PhysicalType.TRIPLES:
                self._encoder.statements(map(_triple, quads))
            else:
                self._encoder.statements(quads)
        except (InvalidTerm, UnsupportedOption) as error:
            narrow = [name for name in _NARROWING if not getattr(self._options, name)]
            if not narrow:
                raise
            had = ", ".join(f"{name} {str(getattr(self._options, name)).lower()}" for name in narrow)
            raise UnsupportedOption(f"{error.reason}, and this one has {had}: ask for another") from error

    def _taken(self) -> list[bytes]:
        return list(split_frames(self._encoder.take()))


def _allows(wanted: RdfOptions, stored: RdfOptions) -> bool:
    """Whether a stream that has the stored options is compatible with the wanted ones."""
    return (
        stored.physical_type is wanted.physical_type
        and wanted.logical_type in (LogicalType.UNSPECIFIED, stored.logical_type)
        and wanted.stream_name == stored.stream_name
        and stored.generalized_statements <= wanted.generalized_statements
        and stored.rdf_star <= wanted.rdf_star
        and stored.max_name_table_size <= wanted.max_name_table_size
        and stored.max_prefix_table_size <= wanted.max_prefix_table_size
        and stored.max_datatype_table_size <= wanted.max_datatype_table_size
        and stored.version <= wanted.version
    )


def split_frames(data: bytes) -> Iterator[bytes]:
    """Take apart frames that have their lengths before them."""
    splitter = FrameSplitter(max_frame_bytes=1 << 30, strict=True, delimited=True)
    yield from splitter.feed(data)
    yield from splitter.finish()


def dataset_version(log: StagingPatchLog, head: int) -> int | None:
    """The version of a snapshot after which patches only add, up to the head; None where there is none."""
    versions = [snapshot.version for snapshot in log.snapshots.list() if snapshot.version <= head]
    newest = max(versions, default=0)
    return None if log.has_deletes(newest, head) else newest


def local_snapshots(log: PatchLog) -> LocalSnapshots:
    """The snapshots of a log of this process."""
    snapshots: Any = log.snapshots
    local: LocalSnapshots = snapshots
    return local


def _triple(quad: Quad) -> Statement:
    if quad[3] != DEFAULT_GRAPH:
        raise UsageError(
            f"physical_type TRIPLES holds the default graph alone, and {quad[3]} is another: ask for QUADS or GRAPHS"
        )
    return quad[:3]
