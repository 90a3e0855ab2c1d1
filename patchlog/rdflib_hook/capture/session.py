"""A store and its log, open: commits, rollbacks, and what others have written meanwhile.

The order of a commit: the patch is appended, then the inner store gets it, then its position. The caller holds the
store's lock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from patchlog.effect import Effect
from patchlog.errors import ConflictError, HeadMismatch, PatchLogError, StorageError, StorageFull, UsageError
from patchlog.rdflib_hook.capture.journal import ADDED, Savepoint
from patchlog.rdflib_hook.capture.patch_text import PatchText, header_time
from patchlog.rdflib_hook.capture.replica import Missed, Replica
from patchlog.rdflib_hook.capture.settings import HeaderValue, Settings, header_values
from patchlog.rdflib_hook.capture.workbench import Workbench, declared_after
from patchlog.rdflib_hook.collector import paused_collector

__all__ = ["Session"]


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
        self._begin()

    def _begin(self) -> None:
        self._bench.begin()
        position = self._bench.workspace.position(self.replica.log_id)
        if position is None and not self._settings.load:
            self._declared = self._bench.prefixes.declared()
            self.replica.trust_head()
        elif position is None and not self._bench.is_empty:
            self._record_contents()
        else:
            if position is not None:
                self._declared = self._bench.prefixes.declared()
            self.replica.position = position or 0
            self._take(self.replica.missed())

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
        self._come_together(Effect() if sent is None else sent.patch.effect(), None)

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
        """Append a patch. False: others were first, the store has theirs now, and the patch has to be made anew."""
        try:
            lacks_some = self.replica.append(sent.patch)
        except HeadMismatch as mismatch:
            # What was not done stands in nobody's way.
            change = None if sent.patch.is_aborted else sent.patch.effect()
            try:
                self._come_together(change, mismatch)
            except StorageError as error:
                if not error.is_transient or change is None or not self._let_wait(sent.headers):
                    raise
                return True
            return False
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
        """What was uncommitted is in the log: let the store have it."""
        self._bench.journal.forget_before(mark)
        self._declared = declared
        try:
            self._bench.workspace.keep(self.replica.log_id, self.replica.position, declared)
        except PatchLogError:
            raise
        except Exception as error:
            raise StorageError(
                f"the change is in the log, and the store could not take it: {error}; it will with the next commit, or "
                "when it is opened again"
            ) from error

    def _come_together(self, change: Effect | None, mismatch: HeadMismatch | None) -> None:
        """Bring in what others have done, and send on what waits. Raises ConflictError where `change` is against it."""
        while True:
            missed = self.replica.missed()
            if change is not None:
                self._judge(missed, change, mismatch)
            self._take(missed)
            try:
                self.replica.deliver_waiting(missed.log_head)
            except HeadMismatch:
                continue  # others were first again: what they did has to be looked at, too
            return

    def _judge(self, missed: Missed, change: Effect, mismatch: HeadMismatch | None) -> None:
        """Raise ConflictError where the policy does not let our changes go on top of what others have done."""
        quads, names = missed.touched_too(change)
        policy = self._settings.conflicts
        if (policy == "fail" and mismatch is not None) or (policy != "last-writer-wins" and (quads or names)):
            expected = self.replica.head if mismatch is None else mismatch.expected_head
            actual = missed.log_head if mismatch is None else mismatch.actual_head
            raise ConflictError(expected, actual, quads, names) from mismatch

    def _take(self, missed: Missed) -> None:
        """Let the store have what it has missed, beneath what is uncommitted."""
        ours = self._changed_names()
        self._declared = declared_after(self._declared, missed.net)
        with self._bench.undone_to(0):
            self._bench.settle(missed.net, self.replica.log_id, missed.version, self._declared)
        self.replica.has_reached(missed)
        self._bench.prefixes.declare(_declared_with(self._declared, ours))


def _declared_with(declared: Mapping[str, str], changed: Mapping[str, str | None]) -> dict[str, str]:
    """What is declared when some prefixes have changed."""
    return {name: iri for name, iri in {**declared, **changed}.items() if iri is not None}
