"""How a patch gets into its log: at once, or by way of the outbox.

The id of a patch is given before it is sent. So a patch whose fate is not known is sent again as often as it takes, and
is in the log once. Behind a patch that waits all others wait, so they arrive in their order.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from patchlog.codec.patch_ids import PatchId
from patchlog.errors import HeadMismatch, PatchLogError, StorageError, StorageFull
from patchlog.log.contract import PatchLog
from patchlog.log.records import Appended
from patchlog.outbox.queue import Outbox, QueuedPatch

__all__ = ["Delivery", "DirectDelivery", "OutboxDelivery", "deliver"]

_FIRST_PAUSE_SECONDS: Final = 0.5
_LONGEST_PAUSE_SECONDS: Final = 10.0
_CLOSING_SECONDS: Final = 5.0


class Delivery(Protocol):
    """The way of a writer's patches, RDF Patch text with an id, into one log."""

    def send(self, chunks: Iterable[bytes], patch_id: PatchId, expected_head: PatchId | None) -> Appended | None:
        """Append a patch to the log, or return None where it waits. Raises as `PatchLog.append`, HeadMismatch too."""

    def keep(self, chunks: Iterable[bytes], patch_id: PatchId, expected_head: PatchId | None) -> bool:
        """Let a patch wait behind the others, without sending it. Returns False where nothing can wait."""

    def waiting(self) -> list[QueuedPatch]:
        """The patches that wait."""

    def content(self, patch: QueuedPatch) -> bytes | None:
        """The text of a patch that waits; None where it has been delivered meanwhile."""

    def deliver(self, head: PatchId | None) -> None:
        """Send what waits, now or when the log can be reached, on this head: it was built on another one."""

    def close(self) -> None:
        """What waits goes on waiting."""


class DirectDelivery:
    """Nothing waits: an append that fails is the caller's."""

    def __init__(self, log: PatchLog) -> None:
        self._log = log

    def send(self, chunks: Iterable[bytes], patch_id: PatchId, expected_head: PatchId | None) -> Appended | None:
        """Append it."""
        del patch_id
        return self._log.append(chunks, format="rdf-patch", expected_head=expected_head)

    def keep(self, chunks: Iterable[bytes], patch_id: PatchId, expected_head: PatchId | None) -> bool:
        """There is no place for it."""
        del chunks, patch_id, expected_head
        return False

    def waiting(self) -> list[QueuedPatch]:
        """None do."""
        return []

    def content(self, patch: QueuedPatch) -> bytes | None:
        """None wait."""
        del patch
        return None

    def deliver(self, head: PatchId | None) -> None:
        """There is nothing to deliver."""

    def close(self) -> None:
        """Nothing is open."""


class OutboxDelivery:
    """Patches wait in an outbox while their log cannot be reached; a thread tries again with growing pauses.

    What another writer has appended meanwhile is not this one's to judge: then they wait for the next `deliver` with a
    head, by somebody who knows what both do.
    """

    def __init__(self, log: PatchLog, outbox: Outbox, key: str) -> None:
        self._log = log
        self._outbox = outbox
        self._key = key
        self._lock = threading.RLock()
        self._wake = threading.Event()
        self._is_closed = False
        self._mismatch: HeadMismatch | None = None
        self._thread: threading.Thread | None = None
        if self.waiting():
            self._begin_trying()

    def send(self, chunks: Iterable[bytes], patch_id: PatchId, expected_head: PatchId | None) -> Appended | None:
        """Append it, or put it behind what waits."""
        with self._lock:
            if self._mismatch is not None:
                raise self._mismatch
            failure: StorageError | None = None
            if not self.waiting():
                try:
                    return self._log.append(chunks, format="rdf-patch", expected_head=expected_head)
                except StorageError as error:
                    if not error.is_transient:
                        raise
                    failure = error
            try:
                self.keep(chunks, patch_id, expected_head)
            except StorageFull as full:
                if failure is None:
                    raise
                raise failure from full  # it was sent, and nobody knows whether it has arrived
            return None

    def keep(self, chunks: Iterable[bytes], patch_id: PatchId, expected_head: PatchId | None) -> bool:
        """Put it behind what waits."""
        with self._lock:
            self._outbox.put(self._key, patch_id, expected_head, b"".join(chunks))
            self._begin_trying()
        return True

    def waiting(self) -> list[QueuedPatch]:
        """The patches of this log that wait."""
        return self._outbox.waiting(self._key)

    def content(self, patch: QueuedPatch) -> bytes | None:
        """The text of a patch that waits; None where it has been delivered meanwhile."""
        return self._outbox.content(patch.id)

    def deliver(self, head: PatchId | None) -> None:
        """Send what waits."""
        with self._lock:
            self._outbox.rebase(self._key, head)
            self._mismatch = None
            try:
                deliver(self._outbox, self._key, self._log)
            except StorageError as error:
                if not error.is_transient:
                    raise
                self._begin_trying()

    def close(self) -> None:
        """End the thread and close the outbox."""
        with self._lock:
            self._is_closed = True
            self._wake.set()
            thread = self._thread
        if thread is not None:
            thread.join(_CLOSING_SECONDS)  # one that waits for the network ends with its next patch
        self._outbox.close()

    def _begin_trying(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._try_again, name="patchlog-outbox", daemon=True)
            self._thread.start()

    def _try_again(self) -> None:
        pause = _FIRST_PAUSE_SECONDS
        while not self._wake.wait(pause):
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
            # Not under the lock: commits go on, behind what waits, while a service does not answer.
            if self._has_ended(lambda: deliver(self._outbox, self._key, self._log)):
                return

    def _has_ended(self, attempt: Callable[[], object]) -> bool:
        try:
            attempt()
        except HeadMismatch as mismatch:
            with self._lock:
                waiting = self.waiting()
                if waiting and waiting[0].expected_head == mismatch.expected_head:
                    self._mismatch = mismatch
                    self._thread = None
                    return True
                # Meanwhile `deliver` has let it go on another head.
        except PatchLogError:
            return False  # it is noted with the patch
        with self._lock:
            if self._is_closed or not self.waiting():
                self._thread = None
                return True
        return False


def deliver(outbox: Outbox, key: str, log: PatchLog) -> list[Appended]:
    """Send what waits for a log, until there is nothing left or something stands in the way."""
    appended: list[Appended] = []
    while waiting := outbox.waiting(key):
        first = waiting[0]
        content = outbox.content(first.id)
        if content is None:  # another process was faster
            continue
        try:
            appended.append(log.append([content], format="rdf-patch", expected_head=first.expected_head))
        except PatchLogError as error:
            outbox.note_attempt(first.id, str(error))
            raise
        outbox.drop(first.id)
    return appended
