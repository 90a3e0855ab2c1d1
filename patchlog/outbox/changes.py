"""What patches do together, and where two writers have changed the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from patchlog.effect import Effect, NamespaceKey, effect
from patchlog.engine import PatchDecoder, RdfPatchReader
from patchlog.log.records import LoggedPatch
from patchlog.model import Operation, Quad, Term

__all__ = ["NetEffect", "effect_of_logged", "effect_of_text", "touched_by_both"]


class NetEffect:
    """The net effect of one patch after the other."""

    def __init__(self) -> None:
        self._adds: set[Quad] = set()
        self._deletes: set[Quad] = set()
        self._namespaces: dict[NamespaceKey, Term | None] = {}
        self.patches = 0

    def take(self, change: Effect) -> None:
        """Let one more patch have the last word."""
        self._adds -= change.deletes
        self._adds |= change.adds
        self._deletes -= change.adds
        self._deletes |= change.deletes
        self._namespaces.update(change.namespaces)
        self.patches += 1

    @property
    def effect(self) -> Effect:
        """What all of them do."""
        return Effect(self._adds, self._deletes, self._namespaces)


def touched_by_both(theirs: Effect, ours: Effect) -> tuple[list[Quad], list[str]]:
    """The quads, and the prefixes, that two changes have in common."""
    quads = (theirs.adds | theirs.deletes) & (ours.adds | ours.deletes)
    names = theirs.namespaces.keys() & ours.namespaces.keys()
    return sorted(quads), sorted(name for _, name in names)


def effect_of_logged(logged: LoggedPatch) -> Effect:
    """What a patch of a log does."""
    return effect(_decoded(logged.chunks))


def effect_of_text(content: bytes) -> Effect:
    """What RDF Patch text does."""
    reader = RdfPatchReader()
    return effect([*reader.feed(content), *reader.finish()])


def _decoded(chunks: Iterable[bytes]) -> Iterator[Operation]:
    decoder = PatchDecoder()
    for chunk in chunks:
        yield from decoder.feed(chunk)
    yield from decoder.finish()
