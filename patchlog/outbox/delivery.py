"""How a patch gets into its log: at once, or by way of the outbox.

The id of a patch is given before it is sent. So a patch whose fate is not known is sent again as often as it takes, and
is in the log once. Behind a patch that waits all others wait, so they arrive in their order.

An outage ends by itself, and what waits is tried again until then. A refusal does not: it is raised by the next call,
and no patch is taken in meanwhile.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from typing import Final, Protocol

from patchlog.client.urls import without_password
from patchlog.codec.patch_ids import PatchId
from patchlog.errors import PatchLogError, StorageError, StorageFull
from patchlog.log.contract import PatchLog
from patchlog.log.records import Appended
from patchlog.outbox.queue import Basis, ConflictPolicy, Outbox, QueuedPatch
from patchlog.outbox.sending import deliver, is_outage

__all__ = ["Delivery", "DirectDelivery", "OutboxDelivery"]

_FIRST_PAUSE_SECONDS: Final = 0.5
_LONGEST_PAUSE_SECONDS: Final = 10.0
_CLOSING_SECONDS: Final = 5.0

_logger: Final = logging.getLogger("patchlog.outbox")


class Delivery(Protocol):
    """The way of a writer's patches, RDF Patch text with an id, into one log."""

    @property
    def refusal(self) -> PatchLogError | None:
        """Why what waits cannot be delivered, where trying again does not help."""

    def send(self, chunks: Iterable[bytes], patch_id: PatchId, basis: Basis) -> Appended | None:
        """Append a patch to the log, or return None where it waits. Raises as `PatchLog.append`, HeadMismatch too."""

    def keep(self, chunks: Iterable[bytes], patch_id: PatchId, basis: Basis) -> bool:
        """Let a patch wait behind the others, without sending it. Returns False where nothing can wait."""

    def waiting_ids(self) -> list[PatchId]:
        """The ids of the patches that wait, in their order."""

    def waiting(self) -> list[QueuedPatch]:
        """The patches that wait."""

    def content(self, patch_id: PatchId) -> bytes | None:
        """The text of a patch that waits; None where it does not any more."""

    def dropped_content(self, patch_id: PatchId) -> bytes | None:
        """The text of a patch that was dropped; None where it was not."""

    def drop(self, patch_ids: Iterable[PatchId]) -> None:
        """Take patches out that the log is not to have."""

    def deliver(self, *, on_top: bool = False) -> None:
        """Send what waits, now or when the log can be reached.

        Raises ConflictError where others have changed the same, unless it goes `on_top`, and what else the log refuses.
        """

    def close(self) -> None:
        """What waits goes on waiting."""


class DirectDelivery:
    """Nothing waits: an append that fails is the caller's."""

    refusal = None

    def __init__(self, log: PatchLog) -> None:
        self._log = log

    def send(self, chunks: Iterable[bytes], patch_id: PatchId, basis: Basis) -> Appended | None:
        """Append it."""
        del patch_id
        return self._log.append(chunks, format="rdf-patch", expected_head=basis.head)

    def keep(self, chunks: Iterable[bytes], patch_id: PatchId, basis: Basis) -> bool:
        """There is no place for it."""
        del chunks, patch_id, basis
        return False

    def waiting_ids(self) -> list[PatchId]:
        """None do."""
        return []

    def waiting(self) -> list[QueuedPatch]:
        """None do."""
        return []

    def content(self, patch_id: PatchId) -> bytes | None:
        """None wait."""
        del patch_id
        return None

    def dropped_content(self, patch_id: PatchId) -> bytes | None:
        """None waited."""
        del patch_id
        return None

    def drop(self, patch_ids: Iterable[PatchId]) -> None:
        """There is nothing to drop."""

    def deliver(self, *, on_top: bool = False) -> None:
        """There is nothing to deliver."""

    def close(self) -> None:
        """Nothing is open."""


class OutboxDelivery:
    """Patches wait in an outbox while their log cannot be reached; a thread tries again with growing pauses."""

    def __init__(self, log: PatchLog, outbox: Outbox, key: str, conflicts: ConflictPolicy) -> None:
        self._log = log
        self._outbox = outbox
        self._key = key
        self._shown = without_password(key)
        self._conflicts: ConflictPolicy = conflicts
        self._lock = threading.RLock()
        self._wake = threading.Event()
        self._is_closed = False
        self._is_away = False
        self._refusal: PatchLogError | None = None
        self._thread: threading.Thread | None = None

    @property
    def refusal(self) -> PatchLogError | None:
        """What the log said to the first that waits."""
        with self._lock:
            if self._refusal is not None and not self.waiting_ids():
                self._refusal = None  # it was dropped, or delivered by another process
            return self._refusal

    def send(self, chunks: Iterable[bytes], patch_id: PatchId, basis: Basis) -> Appended | None:
        """Append it, or put it behind what waits."""
        with self._lock:
            failure: StorageError | None = None
            if not self.waiting_ids():
                try:
                    return self._log.append(chunks, format="rdf-patch", expected_head=basis.head)
                except StorageError as error:
                    if not error.is_transient:
                        raise
                    failure = error
            try:
                self._keep(chunks, patch_id, basis, failure)
            except StorageFull as full:
                if failure is None:
                    raise
                raise failure from full  # it was sent, and nobody knows whether it has arrived
            return None

    def keep(self, chunks: Iterable[bytes], patch_id: PatchId, basis: Basis) -> bool:
        """Put it behind what waits."""
        with self._lock:
            self._keep(chunks, patch_id, basis, None)
        return True

    def _keep(self, chunks: Iterable[bytes], patch_id: PatchId, basis: Basis, failure: StorageError | None) -> None:
        if (refusal := self.refusal) is not None:
            raise refusal
        self._outbox.put(self._key, patch_id, basis, b"".join(chunks), self._conflicts)
        if not self._is_away:
            self._is_away = True
            _logger.warning(
                "%s cannot be reached%s: patches wait in %s until it can; see `patchlog outbox list`",
                self._shown,
                "" if failure is None else f" ({failure})",
                self._outbox.path,
            )
        _logger.info("patch %s for %s waits in %s", patch_id, self._shown, self._outbox.path)
        self._begin_trying()

    def waiting_ids(self) -> list[PatchId]:
        """The ids of the patches of this log that wait."""
        return self._outbox.ids(self._key)

    def waiting(self) -> list[QueuedPatch]:
        """The patches of this log that wait."""
        return self._outbox.waiting(self._key)

    def content(self, patch_id: PatchId) -> bytes | None:
        """The text of a patch that waits."""
        return self._outbox.content(patch_id)

    def dropped_content(self, patch_id: PatchId) -> bytes | None:
        """The text of a patch that was dropped."""
        return self._outbox.dropped_content(patch_id)

    def drop(self, patch_ids: Iterable[PatchId]) -> None:
        """Take patches out that the log is not to have."""
        with self._lock:
            self._outbox.drop(*patch_ids)
            self._refusal = None

    def deliver(self, *, on_top: bool = False) -> None:
        """Send what waits. While a refusal stands, an outage does not hide it."""
        with self._lock:
            if not self.waiting_ids():
                self._has_delivered(0)
                return
            refusal = self.refusal
            try:
                appended = deliver(self._outbox, self._key, self._log, on_top=on_top)
            except PatchLogError as error:
                if not is_outage(error):
                    self._refuse(error)
                    raise
                if refusal is not None:
                    raise refusal from error
                self._begin_trying()
            else:
                self._has_delivered(len(appended))

    def close(self) -> None:
        """End the thread and close the outbox."""
        with self._lock:
            self._is_closed = True
            self._wake.set()
            thread = self._thread
        if thread is not None:
            thread.join(_CLOSING_SECONDS)  # one that waits for the network ends with its next patch
        self._outbox.close()

    def _refuse(self, error: PatchLogError) -> None:
        if self._refusal is None or str(self._refusal) != str(error):
            _logger.error("%s: what waits in %s is not delivered: %s", self._shown, self._outbox.path, error)
        self._refusal = error

    def _has_delivered(self, patches: int) -> None:
        if patches:
            _logger.info("%s: %d patches that waited are delivered", self._shown, patches)
        self._refusal = None
        self._is_away = False

    def _begin_trying(self) -> None:
        if not self._is_closed and (self._thread is None or not self._thread.is_alive()):
            self._thread = threading.Thread(target=self._try_again, name="patchlog-outbox", daemon=True)
            self._thread.start()

    def _try_again(self) -> None:
        pause = _FIRST_PAUSE_SECONDS
        while not self._wake.wait(pause):
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
            if self._has_ended():
                return

    def _has_ended(self) -> bool:
        appended = 0
        try:
            # Not under the lock: commits go on, behind what waits, while a service does not answer.
            appended = len(deliver(self._outbox, self._key, self._log))
        except PatchLogError as error:
            if is_outage(error):
                return False  # it is noted with the patch
            with self._lock:
                if not self._is_closed and self.waiting_ids():
                    self._refuse(error)
                self._thread = None
            return True
        with self._lock:
            if not self._is_closed and self.waiting_ids():
                return False
            self._has_delivered(appended)
            self._thread = None
        return True
