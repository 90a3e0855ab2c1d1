"""What a store has of its log, and how the two are brought together.

    position    where in the log the store is; all patches up to it have taken effect
    head        the patch that the next one goes on: the one at the position, or the last of those that wait

Bringing in what is missing is always the same: the net effect of all patches after the position, our own among them,
in the order of the log, and those that still wait on top of it. Effects are idempotent, so nothing depends on how much
of it the store had before.

The position names its history (`patchlog.log.position`). After a commit its hash is not known yet, as an append answers
without one; the patch at it vouches for it until the log is read the next time.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from patchlog.codec.patch_ids import PatchId
from patchlog.effect import Effect
from patchlog.errors import HistoryMismatch, PatchLogError, StorageError
from patchlog.log.contract import PatchLog
from patchlog.log.position import Position
from patchlog.log.records import EMPTY_HEAD
from patchlog.model import Quad
from patchlog.outbox import Basis, Delivery, QueuedPatch
from patchlog.outbox.changes import NetEffect, effect_of_logged, effect_of_text, touched_by_both
from patchlog.rdflib_hook.capture.bootstrap import newest_snapshot, state_of
from patchlog.rdflib_hook.capture.patch_text import PatchText

__all__ = ["Missed", "Replica", "Standing"]


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a store is: a position, and the patches that it holds although the log does not have them yet."""

    position: Position
    pending: frozenset[PatchId] = frozenset()
    name: str | None = None
    """The name of the log; None where an earlier version has written it."""


@dataclass(frozen=True, slots=True)
class Missed:
    """What a store does not have yet: the net effect of all of it, and of what others did."""

    net: Effect
    foreign: Effect
    foreign_patches: int
    waiting: frozenset[PatchId]
    """Patches of ours that are not in the log, and part of the net effect."""
    position: Position
    at: PatchId | None
    """The patch at the position."""
    head: PatchId | None

    def touched_too(self, change: Effect) -> tuple[list[Quad], list[str]]:
        """The quads, and the prefixes, that others have changed, and so does one more change."""
        return touched_by_both(self.foreign, change)


class Replica:
    """One writer's view of a log."""

    def __init__(self, log: PatchLog, delivery: Delivery) -> None:
        self._log = log
        self._delivery = delivery
        self.log_id = log.describe().id
        self.log_name: Final = log.name
        self.position = Position(self.log_id, 0, EMPTY_HEAD.hash)
        self.head: PatchId | None = None
        self._at: PatchId | None = None
        self._verified = self.position
        self._own: set[PatchId] = set()
        """Patches of ours that the store has, and that may be met in the log after the position."""

    def begin(self, standing: Standing | None) -> None:
        """Begin where a store says that it is. Raises HistoryMismatch where that is not in this log."""
        position = Position(self.log_id, 0, EMPTY_HEAD.hash) if standing is None else standing.position
        self._log.check(position)
        self.position = self._verified = position
        self._at = self.head = None
        self._own = set() if standing is None else set(standing.pending)
        waiting = self._delivery.waiting_ids()
        for patch_id in self._own.difference(waiting):
            if self._log.find(patch_id) is None and self._delivery.dropped_content(patch_id) is None:
                raise HistoryMismatch(
                    f"the store has the patch {patch_id}, which neither the log {self._log.name!r} nor the outbox has: "
                    "another outbox may have it",
                    version=position.version,
                )

    def restart(self) -> None:
        """Begin with nothing, in the log that is there now."""
        self.log_id = self._log.describe().id
        self.begin(None)

    def check(self, position: Position) -> None:
        """Raise HistoryMismatch where the log does not have the history of a position."""
        self._log.check(position)

    @property
    def is_new(self) -> bool:
        """Whether nothing was ever appended, or waits to be."""
        return self._log.head().version == 0 and not self._delivery.waiting_ids()

    @property
    def has_fallen_behind(self) -> bool:
        """Whether the log has to be read before a patch is sent: it refuses what waits, or has taken it by now.

        In the second case others may have come in between.
        """
        return self._delivery.refusal is not None or bool(self._own and not self._delivery.waiting_ids())

    def standing(self) -> Standing:
        """How far the store is. Where the log cannot be asked for the hash, that is left out."""
        with suppress(StorageError):
            self._complete()
        return Standing(self.position, frozenset(self._own), self.log_name)

    def standing_after(self, missed: Missed) -> Standing:
        """How far the store is when it has what it has missed."""
        return Standing(missed.position, missed.waiting, self.log_name)

    def waiting(self) -> list[QueuedPatch]:
        """The patches that wait."""
        return self._delivery.waiting()

    def has_arrived(self, patch_id: PatchId) -> bool:
        """Whether a patch of ours is in the log."""
        has_arrived = self._log.find(patch_id) is not None
        if has_arrived:
            self._own.add(patch_id)
        return has_arrived

    def assume_synced(self) -> None:
        """Begin at the head of the log, as the caller says that the store is there."""
        head = self._log.head()
        self.position = self._verified = Position(self.log_id, head.version, head.hash)
        self._at = head.id
        self.head = [head.id, *self._delivery.waiting_ids()][-1]

    def missed(self) -> Missed:
        """Read what the store does not have yet. Raises HistoryMismatch where the log is not the one that it was."""
        # First what waits: what is delivered meanwhile is in the log when that is read.
        queued = self._delivery.waiting_ids()
        self._own.update(queued)
        texts = ((patch_id, self._delivery.content(patch_id)) for patch_id in queued)
        waiting = {patch_id: text for patch_id, text in texts if text is not None}
        position = self._complete()
        head = self._log.head()
        net, foreign = NetEffect(), NetEffect()
        arrived: set[PatchId] = set()
        if not position.version and (beginning := newest_snapshot(self._log)) is not None:
            version, contents = beginning
            position = Position(self.log_id, version, self._log.position(version).hash)
            net.take(contents)
        at = self._at
        for logged in self._log.read(after=position, until=max(position.version, head.version)):
            change = effect_of_logged(logged)
            position, at = position.follow(logged.record), logged.record.id
            net.take(change)
            if at in self._own:
                arrived.add(at)
                waiting.pop(at, None)
            else:
                foreign.take(change)
        if queued and queued[0] in waiting and self._is_beneath(queued[0]):
            del waiting[queued[0]]
        dropped = self._dropped(self._own - arrived - waiting.keys())
        if dropped.patches:
            net.take(state_of(self._log, dropped.effect, position))
        for content in waiting.values():
            net.take(effect_of_text(content))
        at = head.id if position.version == head.version else at
        last = [at, *waiting][-1]
        return Missed(net.effect, foreign.effect, foreign.patches, frozenset(waiting), position, at, last)

    def _is_beneath(self, patch_id: PatchId) -> bool:
        """Whether the store has had a patch from the log, although it still waits: the answer to it was lost.

        Only the first that waits can be in the log, as the next one is sent when that has been answered.
        """
        record = self._log.find(patch_id) if self.position.version else None
        return record is not None and record.version <= self.position.version

    def _dropped(self, patch_ids: Iterable[PatchId]) -> NetEffect:
        """What patches did that the store has, and that were dropped since."""
        dropped = NetEffect()
        for patch_id in patch_ids:
            content = self._delivery.dropped_content(patch_id)
            if content is not None and self._log.find(patch_id) is None:
                dropped.take(effect_of_text(content))
        return dropped

    def has_reached(self, missed: Missed) -> None:
        """The store has it now."""
        self.position = self._verified = missed.position
        self._at, self.head = missed.at, missed.head
        self._own = set(missed.waiting)

    def without(self, patch_ids: Iterable[PatchId]) -> Missed:
        """What a store misses at its position when some of the patches are dropped that wait."""
        position = self._complete()
        dropped, net = NetEffect(), NetEffect()
        kept: list[PatchId] = []
        gone = set(patch_ids)
        for patch_id in self._delivery.waiting_ids():
            content = self._delivery.content(patch_id)
            if patch_id not in gone:
                kept.append(patch_id)
            elif content is not None:
                dropped.take(effect_of_text(content))
        net.take(state_of(self._log, dropped.effect, position))
        for patch_id in kept:
            if (content := self._delivery.content(patch_id)) is not None:
                net.take(effect_of_text(content))
        record = self._log.find(position.version) if position.version else None
        at = None if record is None else record.id
        return Missed(net.effect, Effect(), 0, frozenset(kept), position, at, [at, *kept][-1])

    def drop(self, patch_ids: Iterable[PatchId]) -> None:
        """Take patches out of the outbox that the log is not to have."""
        self._delivery.drop(patch_ids)

    def deliver(self, *, on_top: bool = False) -> None:
        """Send what waits, where the log can be reached. Raises ConflictError, and what else the log refuses."""
        self._delivery.deliver(on_top=on_top)

    def append(self, patch: PatchText) -> bool:
        """Append a patch, or let it wait. Returns whether the store lacks something that stands in the log before it.

        Raises HeadMismatch where another writer was first. After a StorageError that is transient nobody knows whether
        it is in the log; the same patch may be appended again.
        """
        self._check_empty()
        appended = self._delivery.send(patch, patch.id, self._basis)
        self.head = patch.id
        if appended is not None and appended.version == self.position.version + 1:
            self.position, self._at = Position(self.log_id, appended.version, None), patch.id
            return False
        self._own.add(patch.id)
        return appended is not None

    def let_wait(self, patch: PatchText) -> bool:
        """Let a patch wait without sending it. Returns False where nothing can wait."""
        if not self._delivery.keep(patch, patch.id, self._basis):
            return False
        self.head = patch.id
        self._own.add(patch.id)
        return True

    @property
    def _basis(self) -> Basis:
        return Basis(self.head, self.position)

    def _check_empty(self) -> None:
        """Any empty log has the head that the first patch goes on: only its id says whether it is the same log."""
        if self.position.version == 0 and not self._delivery.waiting_ids():
            try:
                self._log.check(self.position)
            except StorageError as error:
                if not error.is_transient:
                    raise

    def _complete(self) -> Position:
        """The position with its hash. Raises HistoryMismatch where the log is not the one that it was."""
        if self.position.hash is not None:
            return self.position
        version = self.position.version
        if self._at is None:  # a number, from an earlier version
            self._log.check(self.position)
            hash = self._log.position(version).hash
        else:
            record = self._log.find(self._at)
            if record is None or record.version != version:
                raise HistoryMismatch(
                    f"the log {self._log.name!r} does not have the patch {self._at}, which was its version {version}: "
                    "it was restored to an older state, or replaced",
                    version=version,
                    last_common=self._last_common(),
                )
            if self._verified.version + 1 == version:
                self._verified.follow(record)
            else:
                self._log.check(self._verified)
            hash = record.chain_hash
        self.position = self._verified = Position(self.log_id, version, hash)
        return self.position

    def _last_common(self) -> int | None:
        try:
            self._log.check(self._verified)
        except PatchLogError:
            return None
        return self._verified.version or None
