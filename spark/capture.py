"""Reverse capture: what others commit to a Delta table of quads becomes patches of a log, exactly once.

    commits of Delta ──▶ operations of each, sorted ──▶ a patch of each ──▶ log

The id of a patch follows from the table and the version of the commit, so the log itself says how far it is, and what
is appended again, after a crash or by another capture, is there already. A commit that changes no quad is an empty
patch: so the versions of a table in a log are without gaps, from the one that it began with.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import ceil
from typing import Any, Final

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from patchlog.codec.patch_ids import PatchId, patch_id_term
from patchlog.engine import ArrowEncoder
from patchlog.errors import HeadMismatch, InvalidTerm, PatchAlreadyExists, PositionGone, UsageError
from patchlog.log.contract import PatchLog
from patchlog.log.history import headers_of
from patchlog.log.records import ANY_HEAD, ExpectedHead, Head, PatchRecord
from patchlog.text.terms import iri_term, literal_term
from spark.change_feed import BEGIN_ANEW, Commit, QuadTable
from spark.faults import may_die
from spark.origin import Range
from spark.reduction import QUAD
from spark.sink import grouped, marks, packed_rows

__all__ = ["Captured", "ReverseCapture"]

_PATCH_IDS: Final = uuid.UUID("3f7d3a0e-6f0c-5c57-9b1e-1c5d7a3f8e42")
_SCHEMA: Final = "http://www.w3.org/2001/XMLSchema#"
_FINGERPRINT: Final = "delta-commit"
_PACKED: Final = pa.schema([("version", pa.int64()), ("rows", pa.binary())])
_PACKED_COLUMNS: Final = "version BIGINT, rows BINARY"
_ROWS_AT_A_TIME: Final = 250_000
"""So many rows, compressed, are with the driver at a time, and as many are on their way to it."""

_OPERATIONS_PER_UPLOAD: Final = 1_000_000
_POLL_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class Captured:
    """These versions of the table are in the log now."""

    versions: Range
    operations: int
    seconds: float
    newest_version: int

    @property
    def lag_versions(self) -> int:
        """How many versions of the table, as it was, the log lacks."""
        return self.newest_version - self.versions.until


@dataclass(slots=True)
class ReverseCapture:
    """Brings a log to where a Delta table is, and keeps it there. Any number may work on the same table and log.

    A table of which the log knows nothing begins with what it holds, in a log that is empty, unless `on_top` says that
    it goes on top of what the log has. `has_duplicates` is false for a table that never holds a quad twice.
    """

    session: SparkSession
    table: QuadTable
    log: PatchLog
    versions_per_batch: int = 100
    has_duplicates: bool = True
    on_top: bool = False
    tell: Callable[[Captured], object] = id

    def run_available(self) -> None:
        """Capture all that is in the table at this moment."""
        self._catch_up(self._position_or_begin())

    def run_forever(self) -> None:
        """Capture what is there and what comes, until the process is ended."""
        position = self._position_or_begin()
        while True:
            position = self._catch_up(position)
            time.sleep(_POLL_SECONDS)

    def _position_or_begin(self) -> int:
        head = self.log.head()
        position = self._position(head)
        return self._begin(head) if position is None else position

    def _position(self, head: Head) -> int | None:
        """The last version of the table that is in the log."""
        if head.version == 0:
            return None
        newest = self.table.newest().version
        if self.log.find(self._patch_id(newest + 1)) is not None:
            raise self._put_back(newest + 1)
        for version in range(newest, -1, -1):
            record = self.log.find(self._patch_id(version))
            if record is not None:
                self._check_commit(record, version)
                return version
        return None

    def _check_commit(self, record: PatchRecord, version: int) -> None:
        """Raise UsageError where the last version that was captured is another commit now."""
        try:
            headers = [headers_of(logged) for logged in self.log.read(record.version - 1, limit=1)]
        except PositionGone:
            return
        captured = headers[0].get(_FINGERPRINT)
        commit = self.table.commit_at(version)
        # Patches of earlier versions of patchlog do not say it.
        if captured is not None and commit is not None and captured != literal_term(commit.fingerprint):
            raise self._put_back(version)

    def _put_back(self, version: int) -> UsageError:
        return UsageError(
            f"{self.table.identifier} is not the table any more that was captured up to version {version} into the log "
            f"{self.log.name}: it was put back to an older state; {BEGIN_ANEW}"
        )

    def _begin(self, head: Head) -> int:
        """Append what the table holds, and return at which version."""
        if head.version and not self.on_top:
            raise UsageError(
                f"the log {self.log.name} has patches, and none of this table ({self.table.identifier}): capture into "
                "a log of its own, or let what the table holds go --on-top"
            )
        if not self.on_top and self._has_dataset():
            raise UsageError(
                f"the log {self.log.name} begins with a dataset, its snapshot of version 0: capture into a log of its "
                "own, or let what the table holds go --on-top"
            )
        commit = self.table.newest()
        try:
            self._append(self.table.contents(commit.version), [commit], commit.version, expected_head=head.id)
        except HeadMismatch:
            # Another capture that began at the same time may have begun with another version.
            position = self._position(self.log.head())
            if position is None:
                raise
            return position
        return commit.version

    def _has_dataset(self) -> bool:
        try:
            return self.log.snapshots.find(0) is not None
        except UsageError:
            return False  # a file, which has no snapshots

    def _catch_up(self, position: int) -> int:
        """Capture what is behind a version, and return where the table is."""
        commits = self.table.commits(position)
        for first in range(0, len(commits), self.versions_per_batch):
            batch = commits[first : first + self.versions_per_batch]
            versions = _range(batch)
            try:
                with self.table.errors_explained(versions):
                    operations = self.table.operations(versions, has_duplicates=self.has_duplicates)
                    self._append(operations, batch, commits[-1].version)
            except PatchAlreadyExists:
                # Another capture has appended some of them together with others.
                return self._catch_up(self._position_or_begin())
        return commits[-1].version if commits else position

    def _append(
        self, operations: DataFrame, commits: Sequence[Commit], newest: int, *, expected_head: ExpectedHead = ANY_HEAD
    ) -> None:
        begun = time.monotonic()
        kept = operations.persist(StorageLevel.DISK_ONLY)
        try:
            counts: dict[int, int] = {row[0]: row[1] for row in kept.groupBy("version").count().collect()}
            for upload in _uploads(commits, counts):
                versions = _range(upload)
                rows = kept.where(f"version > {versions.after} AND version <= {versions.until}")
                may_die(self.session, "capture-ready")
                self.log.append(self._patches(upload, rows, counts), expected_head=expected_head)
                may_die(self.session, "captured")
                done = sum(counts.get(commit.version, 0) for commit in upload)
                self.tell(Captured(versions, done, time.monotonic() - begun, newest))
                begun = time.monotonic()
        finally:
            kept.unpersist()

    def _patches(self, commits: Sequence[Commit], rows: DataFrame, counts: Mapping[int, int]) -> _Patches:
        begins = {}
        for commit in commits:
            headers = {
                "id": patch_id_term(self._patch_id(commit.version)),
                "delta-table": literal_term(self.table.location),
                "delta-table-id": iri_term(f"urn:uuid:{self.table.id}"),
                "delta-version": literal_term(str(commit.version), datatype=f"{_SCHEMA}integer"),
                "delta-operation": literal_term(commit.operation),
                "delta-time": literal_term(commit.time, datatype=f"{_SCHEMA}dateTime"),
                _FINGERPRINT: literal_term(commit.fingerprint),
            }
            begins[commit.version] = marks(*(("H", *header) for header in headers.items()), ("TX", None, None))
        return _Patches(self.table.identifier, begins, rows, {version: counts.get(version, 0) for version in begins})

    def _patch_id(self, version: int) -> PatchId:
        return str(uuid.uuid5(_PATCH_IDS, f"{self.table.id} {version}"))


@dataclass(frozen=True, slots=True)
class _Patches:
    """The bytes of patches. May be iterated again, as an upload whose answer was lost is sent again.

    The operations of each stand in the order of their text, so that they are the same bytes each time.
    """

    table: str
    begins: Mapping[int, Any]
    rows: DataFrame
    counts: Mapping[int, int]

    def __iter__(self) -> Iterator[bytes]:
        encoder = ArrowEncoder("canonical-patch")
        found = groupby(_sorted(self.rows, sum(self.counts.values())), lambda row: row.version)
        for version, begin in self.begins.items():
            yield encoder.encode(begin)
            if self.counts[version]:
                found_version, pieces = next(found)
                assert found_version == version
                for piece in pieces:
                    for batch in pa.ipc.open_stream(piece.rows):
                        yield self._encoded(encoder, batch, version)
            yield encoder.encode(marks(("TC", None, None), ("Z", None, None)))
        yield encoder.finish()

    def _encoded(self, encoder: ArrowEncoder, batch: Any, version: int) -> bytes:
        try:
            return encoder.encode(batch)
        except InvalidTerm:
            for row in range(batch.num_rows):
                _check(batch.slice(row, 1), f"{self.table}, version {version}")
            raise


def _check(row: Any, where: str) -> None:
    try:
        ArrowEncoder("canonical-patch").encode(row)
    except InvalidTerm as error:
        [terms] = row.to_pylist()
        shown = ", ".join(f"{name} {terms[name] or repr(terms[name])}" for name in QUAD)
        raise InvalidTerm(f"{where}: the row ({shown}) is no quad: {error.reason}; nothing of it is captured") from None


def _sorted(rows: DataFrame, count: int) -> Iterator[Any]:
    """The rows by version and text, packed, part by part."""
    order = ("version", *QUAD)
    parts = ceil(count / _ROWS_AT_A_TIME)
    if not parts:
        return iter(())
    ordered = rows.repartitionByRange(parts, *order) if parts > 1 else rows.coalesce(1)
    packed = ordered.sortWithinPartitions(*order).mapInArrow(_pack, _PACKED_COLUMNS)
    return packed.toLocalIterator(prefetchPartitions=parts > 1)


def _pack(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        for version, rows in grouped(batch, "version"):
            yield pa.RecordBatch.from_pylist([{"version": version, "rows": packed_rows([rows])}], schema=_PACKED)


def _uploads(commits: Sequence[Commit], counts: Mapping[int, int]) -> Iterator[list[Commit]]:
    """Commits that go into the log together: few operations, or one commit."""
    upload: list[Commit] = []
    gathered = 0
    for commit in commits:
        gathered += counts.get(commit.version, 0)
        if upload and gathered > _OPERATIONS_PER_UPLOAD:
            yield upload
            upload, gathered = [], counts.get(commit.version, 0)
        upload.append(commit)
    yield upload


def _range(commits: Sequence[Commit]) -> Range:
    return Range(commits[0].version - 1, commits[-1].version)
