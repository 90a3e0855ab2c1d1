"""Patches of an outbox go into their log, each on what its writer had seen, or on top of what others did since.

A patch is sent on the head that it was built on. Where that is the head no more, the log is read from where the writer
stood: what others did since, and the policy of the patch, say whether it goes on top. No one else need know of it: a
program that was ended, its next run, and the command deliver alike.
"""

from __future__ import annotations

from patchlog.codec.patch_ids import PatchId
from patchlog.errors import ConflictError, HeadMismatch, HistoryMismatch, PatchLogError, StorageError
from patchlog.log.contract import PatchLog
from patchlog.log.position import Position
from patchlog.log.records import Appended, Head
from patchlog.outbox.changes import NetEffect, effect_of_logged, effect_of_text, touched_by_both
from patchlog.outbox.queue import Outbox, QueuedPatch, QueueState

__all__ = ["deliver", "is_outage"]


def deliver(outbox: Outbox, key: str, log: PatchLog, *, on_top: bool = False) -> list[Appended]:
    """Send what waits for a log, until there is nothing left or something stands in the way.

    With `on_top` the patches go on whatever the log has, in whichever history: a person has decided so.

    Raises ConflictError where others have changed the same, and what else the log answers; it is noted with the patch.
    """
    sending = _Sending(outbox, log, on_top=on_top)
    appended: list[Appended] = []
    while (row := outbox.first(key)) is not None:
        content = outbox.content(row.id)
        if content is None:  # another process was faster
            continue
        try:
            appended.append(sending.send(row, content))
        except PatchLogError as error:
            if row.state == "waiting" or not is_outage(error):  # an outage does not hide what has to be decided
                outbox.note_attempt(row.id, str(error), _state_after(error))
            raise
    return appended


def is_outage(error: PatchLogError) -> bool:
    """Whether the log could not be reached, or is busy: the same patch may be taken later."""
    return isinstance(error, StorageError) and error.is_transient


def _state_after(error: PatchLogError) -> QueueState:
    if is_outage(error):
        return "waiting"
    return "conflict" if isinstance(error, ConflictError) else "refused"


class _Sending:
    """The patches of one log, one after the other."""

    def __init__(self, outbox: Outbox, log: PatchLog, *, on_top: bool) -> None:
        self._outbox = outbox
        self._log = log
        self._on_top = on_top
        self._others = _Others(outbox, log)
        self._checked: Position | None = None

    def send(self, row: QueuedPatch, content: bytes) -> Appended:
        """Append a patch, and take it out of the outbox."""
        if self._on_top:
            appended, is_rebased = self._log.append([content], format="rdf-patch"), True
        else:
            appended, is_rebased = self._append(row, content)
        self._outbox.settle(row.id, appended.version, is_rebased=is_rebased)
        return appended

    def _append(self, row: QueuedPatch, content: bytes) -> tuple[Appended, bool]:
        if row.base is not None and row.base != self._checked:
            self._log.check(row.base)
            self._checked = row.base
        before = self._outbox.settled(row.expected_head)
        if before is None or not before.is_rebased:
            try:
                return self._log.append([content], format="rdf-patch", expected_head=row.expected_head), False
            except HeadMismatch:
                pass  # others were first
        elif self._log.find(row.id) is not None:  # the answer was lost
            return self._log.append([content], format="rdf-patch"), True
        return self._append_on_top_of_others(row, content)

    def _append_on_top_of_others(self, row: QueuedPatch, content: bytes) -> tuple[Appended, bool]:
        while True:
            head = self._others.read(row)
            self._others.judge(row, content, head)
            try:
                appended = self._log.append([content], format="rdf-patch", expected_head=head.id)
            except HeadMismatch:
                continue  # once more: what they did has to be looked at, too
            return appended, self._others.net.patches > 0


class _Others:
    """What others have appended since the writer of a patch has looked; kept from one of its patches to the next."""

    def __init__(self, outbox: Outbox, log: PatchLog) -> None:
        self._outbox = outbox
        self._log = log
        self._base: Position | None = None
        self._own: set[PatchId] = set()
        self._last: PatchId | None = None
        self._until = 0
        self.net = NetEffect()

    def read(self, row: QueuedPatch) -> Head:
        """Read up to the head, and return it. Raises HistoryMismatch, and PositionGone where that cannot be read."""
        if self._last != row.id:
            if self._last is None or row.expected_head != self._last or row.base != self._base:
                self._begin(row)
            elif row.expected_head is not None:
                self._own.add(row.expected_head)
            self._last, self._base = row.id, row.base
        head = self._log.head()
        if head.version > self._until:
            for logged in self._log.read(after=self._until, until=head.version):
                if logged.record.id not in self._own:
                    self.net.take(effect_of_logged(logged))
            self._until = head.version
        return head

    def _begin(self, row: QueuedPatch) -> None:
        """Find where the writer stood, and which patches after that version it knew: its own."""
        own: set[PatchId] = set()
        root = row.expected_head
        while root is not None and (before := self._outbox.settled(root)) is not None:
            own.add(root)
            root = before.expected_head
        seen = row.base.version if row.base is not None else None
        if root is not None:
            record = self._log.find(root)
            if record is None or (len(own) == 0 and record.version < (seen or 0)):
                raise HistoryMismatch(
                    f"the patch {row.id} was built on {root}, which the log {self._log.name!r} does not have"
                    if record is None
                    else f"the patch {row.id} was built on {root} as version {seen}, which is version {record.version} "
                    f"of the log {self._log.name!r}",
                    version=seen or 0,
                )
            own.add(root)
            seen = record.version if seen is None else seen
        self._own = own
        self._until = seen or 0
        self.net = NetEffect()

    def judge(self, row: QueuedPatch, content: bytes, head: Head) -> None:
        """Raise ConflictError where the policy of a patch does not let it go on top of what others have done."""
        if not self.net.patches or row.conflicts == "last-writer-wins":
            return
        quads, names = touched_by_both(self.net.effect, effect_of_text(content))
        if row.conflicts == "fail" or quads or names:
            raise ConflictError(row.expected_head, head.id, quads, names, row.id)
