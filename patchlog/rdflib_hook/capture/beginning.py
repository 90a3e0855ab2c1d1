"""What a log begins with for a store that has nothing of it: its newest snapshot."""

from __future__ import annotations

from patchlog.effect import Effect
from patchlog.engine import RdfDecoder
from patchlog.errors import UsageError
from patchlog.log.contract import PatchLog
from patchlog.log.snapshots.reading import STORED_LIMITS, namespaces_of
from patchlog.model import Quad, as_quad

__all__ = ["newest_snapshot"]


def newest_snapshot(log: PatchLog) -> tuple[int, Effect] | None:
    """The version of the newest snapshot and what it holds; None where there is none."""
    try:
        snapshots = log.snapshots.list()
    except UsageError:  # a file keeps none
        return None
    if not snapshots:
        return None
    version = snapshots[-1].version
    namespaces, chunks = namespaces_of(log.snapshots.read(version))
    decoder = RdfDecoder(limits=STORED_LIMITS)
    quads: set[Quad] = set()
    for chunk in chunks:
        for frame in decoder.feed(chunk):
            quads.update(map(as_quad, frame.statements))
    for frame in decoder.finish():
        quads.update(map(as_quad, frame.statements))
    return version, Effect(quads, frozenset(), namespaces)
