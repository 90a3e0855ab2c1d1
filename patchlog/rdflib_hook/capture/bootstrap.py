"""What a log says of a dataset as a whole: what it begins with, and what became of some quads."""

from __future__ import annotations

from patchlog.effect import Effect
from patchlog.engine import RdfDecoder
from patchlog.errors import UsageError
from patchlog.log.contract import PatchLog
from patchlog.log.position import Position
from patchlog.log.snapshots.reading import STORED_LIMITS, namespaces_of
from patchlog.model import Quad, as_quad
from patchlog.outbox.changes import NetEffect, effect_of_logged

__all__ = ["newest_snapshot", "state_of"]


def newest_snapshot(
    log: PatchLog, *, until: int | None = None, only: Effect | None = None
) -> tuple[int, Effect] | None:
    """The version of the newest snapshot, up to a version, and what it holds; None where there is none.

    With `only` of the quads and namespaces that this effect is about.
    """
    try:
        versions = [snapshot.version for snapshot in log.snapshots.list()]
    except UsageError:  # a file keeps none
        return None
    version = max((version for version in versions if until is None or version <= until), default=None)
    if version is None:
        return None
    namespaces, chunks = namespaces_of(log.snapshots.read(version))
    decoder = RdfDecoder(limits=STORED_LIMITS)
    wanted = None if only is None else only.adds | only.deletes
    quads: set[Quad] = set()
    for chunk in chunks:
        for frame in decoder.feed(chunk):
            quads.update(quad for quad in map(as_quad, frame.statements) if wanted is None or quad in wanted)
    for frame in decoder.finish():
        quads.update(quad for quad in map(as_quad, frame.statements) if wanted is None or quad in wanted)
    return version, Effect(quads, frozenset(), namespaces)


def state_of(log: PatchLog, change: Effect, position: Position) -> Effect:
    """What a log says at a position of all that a change is about, as the effect that makes it so."""
    quads = change.adds | change.deletes
    after, contents = newest_snapshot(log, until=position.version, only=change) or (0, Effect())
    net = NetEffect()
    net.take(contents)
    log.check(position)
    for logged in log.read(after=after, until=position.version):
        done = effect_of_logged(logged)
        net.take(Effect(done.adds & quads, done.deletes & quads, done.namespaces))
    there = net.effect.adds & quads
    namespaces = {key: net.effect.namespaces.get(key) for key in change.namespaces}
    return Effect(there, quads - there, namespaces)
