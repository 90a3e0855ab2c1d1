"""Gives staged patches their versions, under the lock of the log's row.

The first patch says which one came before it, so its hash depends on the head. What is small is hashed under the lock,
which takes no time; what is large is hashed before, and `patchlog.log.reservation` says how it gets its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from patchlog.codec.ingest import IngestedPatch
from patchlog.codec.patch_ids import PatchId
from patchlog.errors import LogNotFound, UsageError
from patchlog.log.batch import Batch, Hold, LockedLog
from patchlog.log.records import ANY_HEAD, Appended, ExpectedHead, Head, LogOptions
from patchlog.log.reservation import RESERVED_MS, PlaceReserved, Reserved, Steps, patiently, place
from patchlog.log.sql_spool import SqlSpool
from patchlog.log.staging import Staging
from patchlog.log.succession import answer_again, check_expected_head, each_next_record
from patchlog.log.writer import Job, Writer

__all__ = ["StagedAppend"]


class StagedAppend:
    """The append of one upload to one log, whose options were those when it began. A `Write`."""

    hold: Final = Hold.CHANGE

    def __init__(
        self,
        log: str,
        options: LogOptions,
        staging: Staging,
        forget_options: Callable[[], None],
        spool: SqlSpool | None = None,
        expected_head: ExpectedHead = ANY_HEAD,
    ) -> None:
        self.log = log
        self.ids = [patch.id for patch in staging.patches if patch.may_be_there]
        self.expected_head = expected_head
        self._options = options
        self._staging = staging
        self._forget_options = forget_options
        self._spool = spool

    @property
    def patches(self) -> Sequence[IngestedPatch]:
        """What is known of the patches."""
        return self._staging.ingested

    @property
    def size(self) -> int:
        """The bytes that are to be written yet."""
        return self._staging.held_bytes

    def append(self, writer: Writer, head: Callable[[], Head]) -> Steps[Appended]:
        """Append, and return when that is durable."""
        if self._spool is not None and self._spool.stage is not None and self._staging.is_large:
            return (yield from place(self._staging, _SpooledPlace(self, writer, head, self._spool.stage)))
        return (yield from patiently(lambda: writer.do(self)))

    def run(self, batch: Batch) -> Appended:
        """Append. What is hashed under the lock is small. Raises PlaceReserved."""
        log = self._locked(batch)
        return self._answer_or_check(log, batch) or self._write(log, batch)

    def append_if_hashed(self, batch: Batch, hashes: Mapping[PatchId | None, bytes]) -> Appended | None:
        """Append; None where the head is one for which there is no hash yet."""
        log = self._locked(batch)
        answer = self._answer_or_check(log, batch)
        if answer is None and log.head.id not in hashes:
            return None
        return answer or self._write(log, batch, hashes)

    def reserve(self, batch: Batch, stage: int) -> Reserved | Appended:
        """Have the next place for a while."""
        log = self._locked(batch)
        if answer := self._answer_or_check(log, batch):
            return answer
        batch.reserve(log, stage, batch.now_ms + RESERVED_MS)
        return Reserved(log.head.id)

    def release(self, batch: Batch, stage: int) -> None:
        """Let others append."""
        log = self._locked(batch)
        if log.reserved_by == stage:
            batch.reserve(log, None, None)

    def _locked(self, batch: Batch) -> LockedLog:
        """The log, if it is still the one that the upload is for."""
        try:
            log = batch.log(self.log)
        except LogNotFound:
            self._forget_options()
            raise
        # The chunks of a stage are those of the log that it was begun for.
        is_of_another = self._spool is not None and self._spool.stage is not None and self._spool.log_key != log.key
        if log.options != self._options or is_of_another:
            self._forget_options()
            raise LogNotFound(f"the log {self.log!r} was replaced by another one during an upload to it")
        return log

    def _answer_or_check(self, log: LockedLog, batch: Batch) -> Appended | None:
        """The answer to a retry; else all that may be refused is refused here. Raises PlaceReserved."""
        if answer := answer_again(self._staging.patches, batch.known(log, self.ids)):
            return answer
        check_expected_head(self._staging.patches, self.expected_head, log.head)
        stage = None if self._spool is None else self._spool.stage
        if log.reserved_by not in (None, stage) and (log.reserved_until_ms or 0) > batch.now_ms:
            raise PlaceReserved
        return None

    def _write(self, log: LockedLog, batch: Batch, hashes: Mapping[PatchId | None, bytes] | None = None) -> Appended:
        prev = log.head.id
        stage = None if self._spool is None else self._spool.stage
        content_hash = self._staging.first_content_hash(prev) if hashes is None else hashes[prev]
        if stage is not None and not batch.claim_stage(log, stage):
            raise UsageError("the upload took so long that its beginning was swept away: send it again")
        records = each_next_record(self._staging, log.head, content_hash, batch.time)
        appended = batch.add(log, self._staging.patches, records, self._staging.first_header(prev), stage)
        if log.reserved_by is not None:
            batch.reserve(log, None, None)
        return appended


class _SpooledPlace:
    """A `Place` for an upload whose first patch is in the database already."""

    def __init__(self, append: StagedAppend, writer: Writer, head: Callable[[], Head], stage: int) -> None:
        self._append = append
        self._writer = writer
        self._head = head
        self._stage = stage

    def head_id(self) -> PatchId | None:
        return self._head().id

    def append(self, hashes: Mapping[PatchId | None, bytes]) -> Appended | None:
        append = self._append
        return self._writer.do(
            Job(lambda batch: append.append_if_hashed(batch, hashes), append.log, append.ids, append.size)
        )

    def reserve(self) -> Reserved | Appended:
        append = self._append
        return self._writer.do(Job(lambda batch: append.reserve(batch, self._stage), append.log, append.ids))

    def release(self) -> None:
        self._writer.do(Job(lambda batch: self._append.release(batch, self._stage), self._append.log))
