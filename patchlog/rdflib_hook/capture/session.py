"""A store and its log, open: commits, rollbacks, and what others have written meanwhile.

The order of a commit: the patch is appended, then the inner store gets it, then its position. The caller holds the
store's lock.

Store and log are compared whenever work goes on. A store that went back to an older state is caught up from there. A
log that does not have the history of the store is not touched, and does not touch the store: HistoryMismatch, until
`reload` or `republish` says which of the two is right.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from patchlog.codec.patch_ids import PatchId
from patchlog.effect import Effect
from patchlog.errors import (
    ConflictError,
    HeadMismatch,
    HistoryMismatch,
    PatchLogError,
    StorageError,
    StorageFull,
    UsageError,
)
from patchlog.outbox import QueuedPatch
from patchlog.rdflib_hook.capture.journal import ADDED, Savepoint
from patchlog.rdflib_hook.capture.patch_text import PatchText, header_time
from patchlog.rdflib_hook.capture.replica import Missed, Replica, Standing
from patchlog.rdflib_hook.capture.settings import HeaderValue, Settings, header_values
from patchlog.rdflib_hook.capture.workbench import Workbench, declared_after
from patchlog.rdflib_hook.collector import paused_collector

__all__ = ["Session"]

_logger: Final = logging.getLogger("patchlog.capture")


@dataclass(frozen=True, slots=True)
class _Sent:
    """A patch that was sent: how far the journal went, which namespaces were declared, and what its writer said."""

    patch: PatchText
    mark: int
    declared: dict[str, str]
    headers: Mapping[str, HeaderValue]


class Session:
    """What is done with an open log."""

    def __init__(self, replica: Replica, bench: Workbench, settings: Settings) -> None:
        self.replica: Final = replica
        self._bench = bench
        self._settings = settings
        self._declared: dict[str, str] = {}  # as the log has it
        self._unanswered: _Sent | None = None
        self._kept: Standing | None = None  # as a durable store has it
        self._has_failed = False  # the store, to take what is in the log
        self._begin()

    def _begin(self) -> None:
        self._bench.begin()
        self.replica.deliver()
        try:
            self._open()
        except HistoryMismatch:
            if self._settings.mismatch == "fail":
                raise
            self._declared = self._bench.prefixes.declared()
            (self.reload if self._settings.mismatch == "reload" else self.republish)()

    def _open(self) -> None:
        standing = self._found_standing()
        if standing is None and not self._settings.load:
            self._declared = self._bench.prefixes.declared()
            self.replica.assume_synced()
        elif standing is None and not self._bench.is_empty:
            self._record_contents()
        else:
            if standing is not None:
                self._declared = self._bench.prefixes.declared()
            self._kept = standing
            self.replica.begin(standing)
            self._take(self.replica.missed())

    def _found_standing(self) -> Standing | None:
        """How far the store is in this log. Raises HistoryMismatch where it is of another log."""
        workspace, log_id = self._bench.workspace, self.replica.log_id
        standing = workspace.standing(log_id)
        if standing is not None or not self._settings.load or self._bench.is_empty:
            return standing
        mismatch: HistoryMismatch | None = None
        for other in self._replaced_logs():
            try:
                self.replica.check(other.position)
            except HistoryMismatch as error:
                mismatch = mismatch or error
            else:  # a file has another id when it was written again
                return replace(other, position=replace(other.position, log_id=log_id))
        if mismatch is not None:
            raise mismatch
        return None

    def _record_contents(self) -> None:
        """The store has contents, and no position: they are the first patch of the log."""
        if not self.replica.is_new:
            raise UsageError(
                "the store has contents, and the log has patches: capture an empty store, which is filled from the "
                "log, or pass load=False if the store is as the log says"
            )
        for triple, graph in self._bench.matches((None, None, None), None):
            self._bench.journal.note((ADDED, triple, graph, False))
        self.commit({})

    @property
    def has_changes(self) -> bool:
        """Whether there is something to commit."""
        return len(self._bench.journal) > 0 or self._bench.prefixes.declared() != self._declared

    def commit(self, headers: Mapping[str, HeaderValue]) -> None:
        """Append what has changed, as one patch."""
        self._resolve_unanswered()
        while (sent := self._patch(headers)) is not None:
            if self._append(sent):
                return
        # Nothing for the log, but a graph may have come or gone.
        self._has_committed(self._bench.journal.mark, self._declared)

    def rollback(self) -> None:
        """Take back what is uncommitted."""
        if self._unanswered is not None and self.replica.has_arrived(self._unanswered.patch.id):
            self._has_committed_before_others(self._unanswered)
        self._unanswered = None
        aborted = self._patch({}, is_aborted=True) if self._settings.record_rollbacks else None
        self.discard()
        while aborted is not None and not self._append(aborted):
            pass

    def discard(self) -> None:
        """Take back what is uncommitted, and ask nobody: the log says what is right when it is opened again."""
        self._bench.undo_to(0)
        self._bench.journal.forget_before(0)
        self._bench.prefixes.declare(self._declared)

    def savepoint(self) -> Savepoint:
        """What is uncommitted now, to go back to."""
        return self._bench.journal.savepoint(self._changed_names())

    def go_back(self, savepoint: Savepoint) -> None:
        """Take back what is uncommitted and came behind a savepoint.

        A commit whose fate is not known is not taken back: it is sent again with the next one.
        """
        sent = self._unanswered
        if sent is not None and savepoint.position <= sent.mark:
            self._bench.undo_to(sent.mark)
            self._bench.prefixes.declare(sent.declared)
        else:
            self._bench.undo_to(savepoint.position)
            self._bench.prefixes.declare(_declared_with(self._declared, savepoint.names))

    def _changed_names(self) -> dict[str, str | None]:
        """The prefixes that are uncommitted, and what they stand for; None for nothing."""
        declared = self._bench.prefixes.declared()
        return {
            name: declared.get(name)
            for name in sorted(declared.keys() | self._declared.keys())
            if declared.get(name) != self._declared.get(name)
        }

    def pull(self) -> None:
        """Bring in what others have appended."""
        self._resolve_unanswered()
        sent = self._patch({})
        self._come_together(Effect() if sent is None else sent.patch.effect())

    def pending(self) -> list[QueuedPatch]:
        """The patches that wait in the outbox."""
        return self.replica.waiting()

    def deliver(self, *, on_top: bool) -> None:
        """Send what waits in the outbox, and bring in what others have appended."""
        self.replica.deliver(on_top=on_top)
        self.pull()

    def drop_waiting(self, patch_ids: Collection[PatchId]) -> None:
        """Take back patches that wait in the outbox, or all of them, and bring in what others have appended."""
        there = [patch.id for patch in self.replica.waiting()]
        for patch_id in patch_ids:
            if patch_id not in there:
                raise UsageError(f"no patch {patch_id} waits in the outbox")
        dropped = patch_ids or there
        try:
            without = self.replica.without(dropped)
        except HistoryMismatch:
            # What the log said is not to be had any more: `reload` or `republish` has to follow.
            self.replica.drop(dropped)
            return
        self.replica.drop(dropped)
        self._take(without)
        self.pull()

    def reload(self) -> None:
        """Let the store be as the log is now, whatever both were. What is uncommitted goes on top."""
        self._restart()
        missed = self.replica.missed()
        with self._bench.undone_to(0):
            there = self._bench.contents().keys()
        net = Effect(missed.net.adds - there, there - missed.net.adds, missed.net.namespaces)
        self._take(replace(missed, net=net), declared={})
        self._forget_replaced_logs()

    def republish(self, headers: Mapping[str, HeaderValue] | None = None) -> None:
        """Let the log be as the store is: append the difference as a patch, with what is uncommitted."""
        self._restart()
        missed = self.replica.missed()
        with self._bench.undone_to(0):
            self._bench.note_difference(missed.net)
        self._declared = declared_after({}, missed.net)
        self.replica.has_reached(missed)
        self.commit(headers or {})
        self._forget_replaced_logs()

    def _restart(self) -> None:
        """Begin with the log that is there now."""
        if waiting := self.replica.waiting():
            raise UsageError(
                f"{len(waiting)} patches wait in the outbox: take them back (`discard()`, `patchlog outbox drop`) or "
                "send them on top of the log (`deliver(on_top=True)`, `patchlog outbox deliver --on-top`) first"
            )
        self._unanswered = None
        self.replica.restart()
        self._kept = self._bench.workspace.standing(self.replica.log_id)

    def _forget_replaced_logs(self) -> None:
        """Let the store say nothing of logs whose content it does not have any more."""
        for other in self._replaced_logs():
            self._bench.workspace.forget(other.position.log_id or "")

    def _replaced_logs(self) -> list[Standing]:
        """How far the store is in logs that this one has replaced: those of its name, or of no known name."""
        others = self._bench.workspace.other_standings(self.replica.log_id)
        return [other for other in others if other.name in (None, self.replica.log_name)]

    def _patch(self, headers: Mapping[str, HeaderValue], *, is_aborted: bool = False) -> _Sent | None:
        """What is uncommitted as a patch; None where that is nothing."""
        changed = self._changed_names()
        with paused_collector():
            net = self._bench.journal.net()
        if not (net or changed):
            return None
        terms = {"when": header_time()} | header_values({**self._settings.headers, **headers})
        declared = _declared_with(self._declared, changed)
        return _Sent(PatchText(net, changed, terms, is_aborted), self._bench.journal.mark, declared, headers)

    def _append(self, sent: _Sent) -> bool:
        """Append a patch. False: others were first, the store has theirs now, and the patch has to be made again."""
        if self.replica.has_fallen_behind:
            return self._come_together_or_wait(sent, None)
        try:
            lacks_some = self.replica.append(sent.patch)
        except HeadMismatch as mismatch:
            if isinstance(mismatch, ConflictError):
                raise
            return self._come_together_or_wait(sent, mismatch)
        except StorageError as error:
            is_refused = isinstance(error, StorageFull)
            if error.is_transient and not is_refused and not sent.patch.is_aborted:
                self._unanswered = sent
            raise
        if not sent.patch.is_aborted:
            self._has_committed(sent.mark, sent.declared)
        if lacks_some:
            self._take(self.replica.missed())
        return True

    def _come_together_or_wait(self, sent: _Sent, mismatch: HeadMismatch | None) -> bool:
        """Bring in what others have done. Returns whether the change waits, as the log cannot be asked for it."""
        # What was not done stands in nobody's way.
        change = None if sent.patch.is_aborted else sent.patch.effect()
        try:
            self._come_together(change, mismatch, is_commit=True)
        except StorageError as error:
            if not error.is_transient or change is None or not self._let_wait(sent.headers):
                raise
            return True
        return False

    def _let_wait(self, headers: Mapping[str, HeaderValue]) -> bool:
        """The log was there, and went away before it had said what others did. Returns whether the change can wait."""
        sent = self._patch(headers)
        if sent is not None:
            if not self.replica.let_wait(sent.patch):
                return False
            self._has_committed(sent.mark, sent.declared)
        return True

    def _resolve_unanswered(self) -> None:
        """Send a patch again whose fate is not known. It is in the log once, whatever became of it before."""
        sent = self._unanswered
        if sent is None:
            return
        try:
            lacks_some = self.replica.append(sent.patch)
        except HeadMismatch:
            self._unanswered = None  # so it is not there: what it says is still uncommitted
            return
        self._unanswered = None
        self._has_committed_before_others(sent)
        if lacks_some:
            self._take(self.replica.missed())

    def _has_committed_before_others(self, sent: _Sent) -> None:
        """A patch is in the log, and more was changed since."""
        declared = self._bench.prefixes.declared()
        with self._bench.undone_to(sent.mark):
            self._has_committed(sent.mark, sent.declared)
        self._bench.prefixes.declare(declared)

    def _has_committed(self, mark: int, declared: dict[str, str]) -> None:
        """What was uncommitted is in the log, or waits: let the store have it."""
        workspace = self._bench.workspace
        standing = self.replica.standing() if workspace.is_durable else Standing(self.replica.position)
        try:
            if workspace.is_durable and workspace.standing(self.replica.log_id) != self._kept:
                self._bench.undo_to(0)
                self._declared = declared
                self._catch_up_store()
                return
            self._bench.journal.forget_before(mark)
            self._declared = declared
            workspace.keep(standing, declared)
            self._kept = standing if workspace.is_durable else None
            self._has_failed = False
        except PatchLogError:
            raise
        except Exception as error:
            self._has_failed = True
            self._bench.journal.forget_before(mark)
            self._declared = declared
            raise StorageError(
                f"the change is in the log, and the store could not take it: {error}; it will with the next commit, or "
                "when it is opened again"
            ) from error

    def _catch_up_store(self) -> None:
        """A durable store is not where it was left: it was restored, or began with nothing. Go on from where it is.

        Raises HistoryMismatch where it does not say where that is.
        """
        workspace = self._bench.workspace
        standing = workspace.standing(self.replica.log_id)
        with self._bench.undone_to(0):
            workspace.reset()  # what is left there is in the log, or waits
            if standing is None and not self._bench.is_empty:
                raise HistoryMismatch(
                    "the store has contents, and no longer says which version of the log they are",
                    version=self.replica.position.version,
                )
            _logger.warning(
                "the store is at version %s, and not at %s where it was left: it is caught up with the log",
                0 if standing is None else standing.position.version,
                self.replica.position.version,
            )
            self.replica.begin(standing)
            self._kept = standing
            self._take(self.replica.missed())
            self._has_failed = False

    def _come_together(
        self, change: Effect | None, mismatch: HeadMismatch | None = None, *, is_commit: bool = False
    ) -> None:
        """Send what waits, and bring in what others have done. Raises ConflictError where `change` is against it."""
        workspace = self._bench.workspace
        if workspace.is_durable and (self._has_failed or workspace.standing(self.replica.log_id) != self._kept):
            self._catch_up_store()
        self.replica.deliver()
        missed = self.replica.missed()
        if change is not None:
            self._judge(missed, change, mismatch, is_commit=is_commit)
        self._take(missed)

    def _judge(self, missed: Missed, change: Effect, mismatch: HeadMismatch | None, *, is_commit: bool) -> None:
        """Raise ConflictError where the policy does not let our changes go on top of what others have done."""
        quads, names = missed.touched_too(change)
        policy = self._settings.conflicts
        if (policy == "fail" and is_commit and missed.foreign_patches) or (
            policy != "last-writer-wins" and (quads or names)
        ):
            expected = self.replica.head if mismatch is None else mismatch.expected_head
            actual = missed.head if mismatch is None else mismatch.actual_head
            raise ConflictError(expected, actual, quads, names) from mismatch

    def _take(self, missed: Missed, declared: dict[str, str] | None = None) -> None:
        """Let the store have what it has missed, beneath what is uncommitted."""
        ours = self._changed_names()
        self._declared = declared_after(self._declared if declared is None else declared, missed.net)
        standing = self.replica.standing_after(missed)
        with self._bench.undone_to(0):
            self._bench.settle(missed.net, standing, self._declared)
        self._kept = standing if self._bench.workspace.is_durable else None
        self.replica.has_reached(missed)
        self._bench.prefixes.declare(_declared_with(self._declared, ours))


def _declared_with(declared: Mapping[str, str], changed: Mapping[str, str | None]) -> dict[str, str]:
    """What is declared when some prefixes have changed."""
    return {name: iri for name, iri in {**declared, **changed}.items() if iri is not None}
