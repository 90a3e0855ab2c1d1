"""The apply job: a log into its tables, batch by batch.

    log ──▶ namespaces ──▶ changes ──▶ quads

Each step is exactly once by itself, and begins where its table says that it is. `namespaces` goes first, so that it is
never behind `changes`: most patches have no namespaces, and which ones do need not be found out again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from patchlog.errors import HistoryMismatch, PatchLogError, PositionGone
from patchlog.log.contract import PatchLog
from patchlog.log.position import Position
from patchlog.log.records import EMPTY_HEAD
from spark.conflicts import again_after_conflicts
from spark.faults import may_die
from spark.loading import can_load, load_snapshot, load_versions
from spark.merging import Step, append_changes, append_files, commit_loaded, merge_namespaces, merge_quads
from spark.origin import Origin, Range, balanced
from spark.outages import Outage
from spark.rebuilding import rebuild
from spark.reconciling import reconcile
from spark.reduction import last_namespaces
from spark.restarting import changes_to, fill_namespaces, namespaces_at
from spark.tables import Tables

__all__ = ["ApplyJob", "Done", "Sizes"]

_WAIT_SECONDS: Final = 30.0
_MOST_RANGES: Final = 1000


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much one step takes at a time. A patch is never divided."""

    versions_per_batch: int = 100_000
    operations_per_batch: int = 4_000_000
    operations_per_merge: int = 20_000_000


@dataclass(frozen=True, slots=True)
class Done:
    """A step that is done: these versions are in this table now."""

    table: str
    versions: Range
    operations: int
    seconds: float
    head_version: int
    is_snapshot: bool = False
    """Whether a snapshot of the log stands for these versions, of which all but the last are in no table."""

    @property
    def lag_versions(self) -> int:
        """How many versions of the log, as it was, the table lacks."""
        return self.head_version - self.versions.until


@dataclass(frozen=True, slots=True)
class _Batch:
    """Versions to be applied, how they are read side by side, and which of them have namespaces."""

    step: Step
    ranges: list[Range]
    with_namespaces: list[Range]
    operations: int


@dataclass(slots=True)
class ApplyJob:
    """Brings the tables of a log to where the log is, and keeps them there.

    Any number of jobs may work on the same tables: what one has done the others see, and of what they do at the same
    time Delta takes one and refuses the others, which look again where the tables are. `tell` gets what is done, and
    `warn` what people should know besides.
    """

    session: SparkSession
    origin: Origin
    tables: Tables
    sizes: Sizes = field(default_factory=Sizes)
    consumer: str | None = None
    tell: Callable[[Done], object] = id
    warn: Callable[[str], object] = id
    _report_failed: bool = field(default=False, init=False)

    def run_available(self) -> None:
        """Apply all that is in the log at this moment."""
        with self.origin.opened() as log:
            self._catch_up(log, log.head().version)

    def run_forever(self) -> None:
        """Apply what is there and what comes, until the process is ended. A log that is out of reach is waited for."""
        outage = Outage(self.origin, self.warn)
        is_start = True
        while True:
            with outage.survived(), self.origin.opened() as log:
                head = log.head().version
                while True:
                    self._catch_up(log, head, is_start=is_start)
                    is_start = False
                    outage.is_over()
                    head = log.wait_for(head + 1, _WAIT_SECONDS).version

    def rebuild(self, *, may_lose: bool = False) -> None:
        """Take the tables back to what they have in common with the log, and apply the rest."""
        with self.origin.opened() as log:
            rebuild(self.session, self.origin, self.tables, log, may_lose=may_lose, tell=self.warn)
            self._catch_up(log, log.head().version)

    def _catch_up(self, log: PatchLog, head: int, *, is_start: bool = True) -> None:
        unmerged = 0
        reconcile(self.tables, log, self.warn, is_start=is_start)
        again_after_conflicts(lambda: fill_namespaces(self.session, self.origin, self.tables), self._tell_conflict)
        if self.tables.changes.number() < 0 and not self.origin.is_file and log.snapshots.find(0) is not None:
            again_after_conflicts(lambda: self._restart(log, 0, head), self._tell_conflict)
        while True:
            operations = again_after_conflicts(lambda: self._apply_batch(log, head), self._tell_conflict)
            if operations is None:
                break
            unmerged += operations
            if unmerged >= self.sizes.operations_per_merge:
                self._merge(log, head)
                unmerged = 0
        self._merge(log, head)
        may_die(self.session, "ended")

    def _apply_batch(self, log: PatchLog, head: int) -> int | None:
        """Apply the next batch up to the head; returns its operations, None where all is applied."""
        begun = time.monotonic()
        position = self.tables.changes.position()
        if position.version < 0:
            position = self.tables.log.position(0, EMPTY_HEAD.hash)
        if position.version >= head:
            return None
        try:
            batch = _planned(log, position, head, self.sizes, self._partitions)
        except PositionGone as error:
            return self._restart(log, _snapshot_after(log, error), head)
        may_die(self.session, "planned")
        if batch.with_namespaces:
            rows = self._rows(batch.with_namespaces, "namespaces")
            merge_namespaces(self.tables.namespaces, last_namespaces(rows), batch.step)
            may_die(self.session, "namespaces-committed")
        if not self._append(batch):
            return 0
        may_die(self.session, "changes-committed")
        self.tell(Done("changes", batch.step.versions, batch.operations, time.monotonic() - begun, head))
        return batch.operations

    def _append(self, batch: _Batch) -> bool:
        """Append a batch to `changes`; False where another job has appended some of it."""
        changes = self.tables.changes
        if can_load(changes):
            loaded = load_versions(self.session, self.origin, changes, batch.ranges)
            may_die(self.session, "changes-read")
            return append_files(changes, loaded.changes, batch.step)
        rows = self._rows(batch.ranges, "quads")
        may_die(self.session, "changes-read")
        return append_changes(changes, rows, batch.step)

    def _restart(self, log: PatchLog, version: int, head: int) -> int:
        """Go on from a snapshot, where the log has forgotten what comes next: what is different is one great change."""
        self._merge(log, version)
        started = time.monotonic()
        before = self.tables.changes.number()
        step = Step(Range(before, version), log.position(version).hash)
        missing = Range(max(before, 0), version - 1)
        if missing.until > missing.after:
            # Before the commit, so that nobody takes what is not there for what never was.
            self.tables.changes.note_gaps([Range(before, version)])
        record = log.find(version)
        namespaces = namespaces_at(self.session, self.tables, log, version)
        if namespaces is not None:
            merge_namespaces(self.tables.namespaces, namespaces, step)

        def tell(table: str, operations: int) -> None:
            seconds = time.monotonic() - started
            self.tell(Done(table, step.versions, operations, seconds, head, is_snapshot=True))

        quads = self.tables.quads
        if before < 0 and quads.number() < 0 and can_load(self.tables.changes, quads):
            loaded = load_snapshot(self.session, self.origin, self.tables, version, record)
            may_die(self.session, "changes-read")
            if not commit_loaded(self.session, self.tables, loaded, step):
                return 0
            tell("changes", loaded.rows)
            tell("quads", loaded.rows)
            return loaded.rows
        dataset = self._read({"snapshot": str(version)})
        rows = changes_to(self.tables, dataset, version, record)
        if not append_changes(self.tables.changes, rows, step):
            return 0
        operations = self.tables.changes.read().where(f"version = {version}").count()
        tell("changes", operations)
        return operations

    def _merge(self, log: PatchLog, head: int) -> None:
        begun = time.monotonic()
        merged = again_after_conflicts(lambda: merge_quads(self.session, self.tables), self._tell_conflict)
        while merged is not None:
            self.tell(Done("quads", merged.versions, merged.operations, time.monotonic() - begun, head))
            if merged.versions.until == self.tables.changes.number():
                break
            begun = time.monotonic()
            merged = again_after_conflicts(lambda: merge_quads(self.session, self.tables), self._tell_conflict)
        self._report(log)

    def _report(self, log: PatchLog) -> None:
        """Say in the log how far it was read.

        No table depends on it, so a log that refuses it stops nothing: it is tried again after the next batch.
        """
        position = self.tables.changes.position()
        if self.consumer is None or self.origin.is_file or position.version < 0:
            return
        try:
            known = log.consumers.find(self.consumer)
            if known is None or known.version < position.version:
                log.consumers.advance(self.consumer, position)
        except HistoryMismatch:
            raise
        except PatchLogError as error:
            if not self._report_failed:
                self.warn(f"the log was not told how far it is read (consumer {self.consumer}): {error}; trying again")
            self._report_failed = True
        else:
            self._report_failed = False
        may_die(self.session, "position-reported")

    def _tell_conflict(self, tried: int) -> None:
        self.warn(f"another job has changed the tables meanwhile: trying again ({tried + 1})")

    def _rows(self, ranges: Iterable[Range], view: str) -> DataFrame:
        return self._read({"view": view, "ranges": ",".join(map(str, ranges))})

    def _read(self, options: dict[str, str]) -> DataFrame:
        return self.session.read.format("patchlog").options(**self.origin.options() | options).load()

    @property
    def _partitions(self) -> int:
        return 1 if self.origin.is_file else 2 * self.session.sparkContext.defaultParallelism


def _snapshot_after(log: PatchLog, gone: PositionGone) -> int:
    """The oldest snapshot from which the log goes on: later versions are kept apart, as they are in the log."""
    goes_on = [found.version for found in log.snapshots.list() if found.version >= gone.oldest_kept - 1]
    if not goes_on:
        raise gone
    return min(goes_on)


def _planned(log: PatchLog, position: Position, head: int, sizes: Sizes, partitions: int) -> _Batch:
    counts: list[tuple[int, int]] = []
    with_namespaces: list[Range] = []
    operations = 0
    for logged in log.read(position, until=head):
        record = logged.record
        position = position.follow(record)
        counts.append((record.version, record.operations))
        operations += record.operations
        if record.namespaces:
            _extend(with_namespaces, record.version)
        if len(counts) >= sizes.versions_per_batch or operations >= sizes.operations_per_batch:
            break
    if len(with_namespaces) > _MOST_RANGES:
        with_namespaces = [Range(with_namespaces[0].after, with_namespaces[-1].until)]
    step = Step(Range(counts[0][0] - 1, position.version), position.hash)
    return _Batch(step, balanced(counts, partitions), with_namespaces, operations)


def _extend(ranges: list[Range], version: int) -> None:
    if ranges and ranges[-1].until == version - 1:
        ranges[-1] = Range(ranges[-1].after, version)
    else:
        ranges.append(Range(version - 1, version))
