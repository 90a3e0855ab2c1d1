"""A snapshot into tables that are empty: `changes` and `quads` at once, by files that the executors write themselves.

To begin with a dataset is to add all of its quads, so that nothing need be compared, sorted or sent around. Each task
reads the snapshot, takes its share, and writes it twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from patchlog.log.records import PatchRecord
from spark.data_files import DataFiles, column_of
from spark.effective import DATASET_COLUMNS, QUAD_COLUMNS, Share, shared_batches
from spark.origin import Origin
from spark.tables import Tables

__all__ = ["Loaded", "can_load", "load"]

_RESULT: Final = "rows BIGINT, changes STRING, quads STRING"
_ARROW_RESULT: Final = pa.schema([("rows", pa.int64()), ("changes", pa.string()), ("quads", pa.string())])


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was written, and is in no table yet: actions of Delta, in JSON, for each table."""

    rows: int
    changes: tuple[str, ...]
    quads: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Loading:
    """What a task has to know."""

    origin: Origin
    version: int
    patch_id: str
    time: datetime
    changes_folder: str
    quads_folder: str

    def write(self, share: Share) -> Loaded:
        """Write a share of the snapshot into both folders."""
        various = frozenset(("subject", "object", "position"))
        changes, quads = DataFiles(self.changes_folder, various), DataFiles(self.quads_folder, various)
        with self.origin.opened() as log:
            for first_row, batch in shared_batches(log.snapshots.read(self.version), share):
                rows = batch.num_rows
                terms = {name: batch[name] for name in DATASET_COLUMNS.names}
                version = column_of(self.version, pa.int64(), rows)
                quads.write(_batch(terms | {"since": version}))
                operations = {
                    "version": version,
                    "position": pa.array(np.arange(first_row, first_row + rows)),
                    "operation": column_of("+", pa.string(), rows),
                    "patch_id": column_of(self.patch_id, pa.string(), rows),
                    "time": column_of(self.time, QUAD_COLUMNS.field("time").type, rows),
                }
                changes.write(_batch(operations | terms))
        changes.finish()
        quads.finish()
        return Loaded(quads.rows, tuple(changes.adds), tuple(quads.adds))


def can_load(tables: Tables) -> bool:
    """Whether the tables are empty, of this log alone, and in folders that executors write to as to any other."""
    both = (tables.changes, tables.quads)
    return all(table.number() < 0 and not table.is_shared and table.local_folder is not None for table in both)


def load(session: SparkSession, origin: Origin, tables: Tables, version: int, record: PatchRecord | None) -> Loaded:
    """Write the files of a snapshot. They are in the tables when they were committed."""
    loading = _Loading(
        origin,
        version,
        str(record.id) if record else "",
        datetime.fromisoformat(record.time) if record else datetime.fromtimestamp(0, UTC),
        str(tables.changes.local_folder),
        str(tables.quads.local_folder),
    )
    shares = Share.divided(session.sparkContext.defaultParallelism)
    numbers = session.range(0, len(shares), 1, len(shares))
    found = numbers.mapInArrow(_writer(loading, shares), _RESULT).collect()
    return Loaded(
        sum(row.rows for row in found),
        tuple(add for row in found for add in json.loads(row.changes)),
        tuple(add for row in found for add in json.loads(row.quads)),
    )


def _writer(loading: _Loading, shares: Sequence[Share]) -> Callable[[Iterable[Any]], Iterator[Any]]:
    def write(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            for number in batch["id"].to_pylist():
                written = loading.write(shares[number])
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
