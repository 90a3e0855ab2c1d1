"""What a store has of its log, and how the two are brought together.

    position    the version that the store has reached; all patches up to it have taken effect
    head        the patch that the next one goes on: the one at the position, or the last of those that wait

Bringing in what is missing is always the same: the net effect of all patches behind the position, our own among them,
in the order of the log, and those that still wait on top of it. Effects are idempotent, so nothing depends on how much
of it the store had before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from patchlog.codec.patch_ids import PatchId
from patchlog.effect import Effect, NamespaceKey, effect
from patchlog.engine import PatchDecoder, RdfPatchReader
from patchlog.log.contract import PatchLog
from patchlog.model import Operation, Quad, Term
from patchlog.outbox import Delivery
from patchlog.rdflib_hook.capture.beginning import newest_snapshot
from patchlog.rdflib_hook.capture.patch_text import PatchText

__all__ = ["Missed", "Replica"]


@dataclass(frozen=True, slots=True)
class Missed:
    """What a store does not have yet: the net effect of all of it, of what others did, and of what still waits."""

    net: Effect
    foreign: Effect
    waiting: Effect
    arrived: set[PatchId]
    """Patches of ours that are in the log by now."""
    version: int
    head: PatchId | None
    log_head: PatchId | None

    def touched_too(self, change: Effect) -> tuple[list[Quad], list[str]]:
        """The quads, and the prefixes, that others have changed, and so does what waits, or one more change.

        What we have in the log does not count: it was built on what stands before it, and others have built on it.
        """
        ours = self.waiting.adds | self.waiting.deletes | change.adds | change.deletes
        names = self.foreign.namespaces.keys() & (self.waiting.namespaces.keys() | change.namespaces.keys())
        return sorted((self.foreign.adds | self.foreign.deletes) & ours), sorted(name for _, name in names)


class Replica:
    """One writer's view of a log."""

    def __init__(self, log: PatchLog, delivery: Delivery) -> None:
        self._log = log
        self._delivery = delivery
        self.log_id: Final = log.describe().id
        self.position = 0
        self.head: PatchId | None = None
        self._own: set[PatchId] = set()
        """Patches of ours that may be met in the log behind the position."""

    @property
    def is_new(self) -> bool:
        """Whether nothing was ever appended, or waits to be."""
        return self._log.head().version == 0 and not self._delivery.waiting()

    def has_arrived(self, patch_id: PatchId) -> bool:
        """Whether a patch of ours is in the log."""
        has_arrived = self._log.find(patch_id) is not None
        if has_arrived:
            self._own.add(patch_id)
        return has_arrived

    def trust_head(self) -> None:
        """The store is as the log says, so somebody has said."""
        head = self._log.head()
        self.position, self.head = head.version, head.id

    def missed(self) -> Missed:
        """Read what the store does not have yet."""
        # First what waits: what is delivered meanwhile is in the log when that is read.
        queued = self._delivery.waiting()
        self._own |= {patch.id for patch in queued}
        texts = ((patch.id, self._delivery.content(patch)) for patch in queued)
        waiting = {id: text for id, text in texts if text is not None}
        head = self._log.head()
        net, foreign, unsent = _Running(), _Running(), _Running()
        arrived: set[PatchId] = set()
        after = self.position
        if not after and (beginning := newest_snapshot(self._log)) is not None:
            after, contents = beginning
            net.take(contents)
        for logged in self._log.read(after=after, until=max(after, head.version)):
            change = effect(_decoded(logged.chunks))
            net.take(change)
            if logged.record.id in self._own:
                arrived.add(logged.record.id)
                waiting.pop(logged.record.id, None)
            else:
                foreign.take(change)
        if queued and queued[0].id in waiting and self._is_beneath(queued[0].id):
            arrived.add(queued[0].id)
            del waiting[queued[0].id]
        for content in waiting.values():
            change = effect(_read([content]))
            net.take(change)
            unsent.take(change)
        reached, last = max(after, head.version), [head.id, *waiting][-1]
        return Missed(net.effect, foreign.effect, unsent.effect, arrived, reached, last, head.id)

    def _is_beneath(self, patch_id: PatchId) -> bool:
        """Whether the store has had a patch from the log, although it still waits: the answer to it was lost.

        Only the first that waits can be in the log, as the next one is sent when that has been answered.
        """
        record = self._log.find(patch_id) if self.position else None
        return record is not None and record.version <= self.position

    def has_reached(self, missed: Missed) -> None:
        """The store has it now."""
        self.position, self.head = missed.version, missed.head
        self._own -= missed.arrived

    def deliver_waiting(self, head: PatchId | None) -> None:
        """Let what waits go on a head of the log: somebody has seen that the two go together.

        Raises HeadMismatch where it is the head no more.
        """
        if self._delivery.waiting():
            self._delivery.deliver(head)

    def append(self, patch: PatchText) -> bool:
        """Append a patch, or let it wait. Returns whether the store lacks something that stands in the log before it.

        Raises HeadMismatch where another writer was first. After a StorageError that is transient nobody knows whether
        it is in the log; the same patch may be appended again.
        """
        appended = self._delivery.send(patch, patch.id, self.head)
        self.head = patch.id
        if appended is not None and appended.version == self.position + 1:
            self.position = appended.version
            return False
        self._own.add(patch.id)
        return appended is not None

    def let_wait(self, patch: PatchText) -> bool:
        """Let a patch wait without sending it. Returns False where nothing can wait."""
        if not self._delivery.keep(patch, patch.id, self.head):
            return False
        self.head = patch.id
        self._own.add(patch.id)
        return True


class _Running:
    """The net effect of one patch after the other."""

    def __init__(self) -> None:
        self._adds: set[Quad] = set()
        self._deletes: set[Quad] = set()
        self._namespaces: dict[NamespaceKey, Term | None] = {}

    def take(self, change: Effect) -> None:
        self._adds -= change.deletes
        self._adds |= change.adds
        self._deletes -= change.adds
        self._deletes |= change.deletes
        self._namespaces.update(change.namespaces)

    @property
    def effect(self) -> Effect:
        return Effect(self._adds, self._deletes, self._namespaces)


def _decoded(chunks: Iterable[bytes]) -> Iterator[Operation]:
    decoder = PatchDecoder()
    for chunk in chunks:
        yield from decoder.feed(chunk)
    yield from decoder.finish()


def _read(chunks: Iterable[bytes]) -> Iterator[Operation]:
    reader = RdfPatchReader()
    for chunk in chunks:
        yield from reader.feed(chunk)
    yield from reader.finish()
