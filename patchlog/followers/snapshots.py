"""The snapshots of a log as datasets to begin with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from patchlog.effect import NamespaceKey
from patchlog.engine import RdfDecoder
from patchlog.errors import UsageError
from patchlog.followers.contract import Dataset
from patchlog.followers.follower import FindSnapshot
from patchlog.log.contract import PatchLog
from patchlog.log.position import Position
from patchlog.model import DEFAULT_GRAPH, Quad, RdfFrame, Term, as_quad

__all__ = ["dataset_of", "snapshots_of"]


def snapshots_of(log: PatchLog) -> FindSnapshot:
    """Find the newest snapshot of a log, from the version that it has to have on and up to the last that will do."""

    def find(at_least: int, at_most: int | None) -> Dataset | None:
        try:
            snapshots = log.snapshots
        except UsageError:
            return None  # a file keeps none
        fitting = [
            snapshot
            for snapshot in snapshots.list()
            if snapshot.version >= at_least and (at_most is None or snapshot.version <= at_most)
        ]
        newest = max(fitting, key=lambda snapshot: snapshot.version, default=None)
        return None if newest is None else dataset_of(Position.of(newest), snapshots.read(newest.version))

    return find


def dataset_of(position: Position, chunks: Iterable[bytes]) -> Dataset:
    """The dataset in the bytes of a snapshot. Its quads come as a stream, its namespaces before them."""
    frames = _frames(chunks)
    namespaces: dict[NamespaceKey, Term] = {}
    begun: list[RdfFrame] = []
    for frame in frames:
        begun.append(frame)
        namespaces.update({(DEFAULT_GRAPH, name): iri for name, iri in frame.namespaces})
        if frame.statements:
            break
    return Dataset(position, _quads(begun, frames), namespaces)


def _frames(chunks: Iterable[bytes]) -> Iterator[RdfFrame]:
    decoder = RdfDecoder()
    for chunk in chunks:
        yield from decoder.feed(chunk)
    yield from decoder.finish()


def _quads(begun: list[RdfFrame], frames: Iterator[RdfFrame]) -> Iterator[Quad]:
    while begun:
        yield from map(as_quad, begun.pop(0).statements)
    for frame in frames:
        yield from map(as_quad, frame.statements)
