"""Rows of a log, written by the executors: a snapshot into tables that are empty, and patches into `changes`.

To begin with a dataset is to add all of its quads, and `changes` only grows. So nothing need be compared, sorted or
sent around: each task reads its part of the log, and writes it into data files, which count when they are committed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from patchlog.log.records import PatchRecord
from spark.data_files import DataFiles, column_of
from spark.effective import DATASET_COLUMNS, QUAD_COLUMNS, Share, View, batches_of, shared_batches
from spark.origin import Origin, Range
from spark.tables import LogTable, Tables

__all__ = ["Loaded", "can_load", "load_snapshot", "load_versions"]

_MAPPING: Final = "delta.columnMapping.mode"
"""With it the columns have other names in the files."""

_VARIOUS: Final = frozenset(("subject", "object", "position"))
_RESULT: Final = "rows BIGINT, changes STRING, quads STRING"
_ARROW_RESULT: Final = pa.schema([("rows", pa.int64()), ("changes", pa.string()), ("quads", pa.string())])


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was written, and is in no table yet: actions of Delta, in JSON, for each table."""

    rows: int
    changes: tuple[str, ...]
    quads: tuple[str, ...]


class _Task(Protocol):
    """What one task of Spark does: it travels to an executor."""

    def write(self) -> Loaded:
        """Write the files."""


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """What a task has to know of a snapshot."""

    origin: Origin
    version: int
    patch_id: str
    time: datetime
    changes_folder: str
    quads_folder: str


@dataclass(frozen=True, slots=True)
class _LoadShare:
    """A share of a snapshot, into both tables."""

    snapshot: _Snapshot
    share: Share

    def write(self) -> Loaded:
        """Write the files."""
        told = self.snapshot
        with (
            DataFiles(told.changes_folder, _VARIOUS) as changes,
            DataFiles(told.quads_folder, _VARIOUS) as quads,
            told.origin.opened() as log,
        ):
            for first_row, batch in shared_batches(log.snapshots.read(told.version), self.share):
                rows = batch.num_rows
                terms = {name: batch[name] for name in DATASET_COLUMNS.names}
                version = column_of(told.version, pa.int64(), rows)
                quads.write(_batch(terms | {"since": version}))
                operations = {
                    "version": version,
                    "position": pa.array(np.arange(first_row, first_row + rows)),
                    "operation": column_of("+", pa.string(), rows),
                    "patch_id": column_of(told.patch_id, pa.string(), rows),
                    "time": column_of(told.time, QUAD_COLUMNS.field("time").type, rows),
                }
                changes.write(_batch(operations | terms))
            changes.finish()
            quads.finish()
        return Loaded(quads.rows, tuple(changes.adds), tuple(quads.adds))


@dataclass(frozen=True, slots=True)
class _LoadVersions:
    """What some versions do to quads, into `changes`."""

    origin: Origin
    versions: Range
    folder: str

    def write(self) -> Loaded:
        """Write the files."""
        with DataFiles(self.folder, _VARIOUS) as changes, self.origin.opened() as log:
            for batch in batches_of(log.read(self.versions.after, until=self.versions.until), View()):
                if batch.num_rows:
                    changes.write(batch)
            changes.finish()
        return Loaded(changes.rows, tuple(changes.adds), ())


def can_load(*tables: LogTable) -> bool:
    """Whether tables are of one log alone, plain, and in folders that executors write to as to any other."""
    return all(
        not table.is_shared and table.local_folder is not None and not table.properties(_MAPPING) for table in tables
    )


def load_snapshot(
    session: SparkSession, origin: Origin, tables: Tables, version: int, record: PatchRecord | None
) -> Loaded:
    """Write the files of a snapshot, for tables that are empty."""
    snapshot = _Snapshot(
        origin,
        version,
        str(record.id) if record else "",
        datetime.fromisoformat(record.time) if record else datetime.fromtimestamp(0, UTC),
        str(tables.changes.local_folder),
        str(tables.quads.local_folder),
    )
    shares = Share.divided(session.sparkContext.defaultParallelism)
    return _done(session, [_LoadShare(snapshot, share) for share in shares])


def load_versions(session: SparkSession, origin: Origin, changes: LogTable, ranges: Iterable[Range]) -> Loaded:
    """Write the files of what some versions do to quads."""
    folder = str(changes.local_folder)
    return _done(session, [_LoadVersions(origin, versions, folder) for versions in ranges])


def _done(session: SparkSession, tasks: Sequence[_Task]) -> Loaded:
    numbers = session.range(0, len(tasks), 1, len(tasks))
    found = numbers.mapInArrow(_writer(tasks), _RESULT).collect()
    return Loaded(
        sum(row.rows for row in found),
        tuple(add for row in found for add in json.loads(row.changes)),
        tuple(add for row in found for add in json.loads(row.quads)),
    )


def _writer(tasks: Sequence[_Task]) -> Callable[[Iterable[Any]], Iterator[Any]]:
    def write(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            for number in batch["id"].to_pylist():
                written = tasks[number].write()
                row = {
                    "rows": written.rows,
                    "changes": json.dumps(written.changes),
                    "quads": json.dumps(written.quads),
                }
                yield pa.RecordBatch.from_pylist([row], schema=_ARROW_RESULT)

    return write


def _batch(columns: dict[str, Any]) -> Any:
    fields = [pa.field(name, column.type, nullable=False) for name, column in columns.items()]
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=pa.schema(fields))
