"""Data files of a Delta table, for Python: written where the rows are, and told to Delta by what it calls `add`.

Rows that come off the wire as Arrow need not go to the JVM to become Parquet: that is ten times the work. A file counts
from the commit that names it; what no commit names, VACUUM takes.
"""

from __future__ import annotations

import contextlib
import json
import time
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.parquet as pq

from spark.deletion_vectors import DeletionVector

__all__ = ["PREFIX_IN_STATISTICS", "DataFile", "DataFiles", "column_of"]

_ROWS_PER_FILE: Final = 4 << 20
PREFIX_IN_STATISTICS: Final = 32
"""How much of a text Delta's statistics have, by default."""

_NEARLY_ONE: Final = timedelta(microseconds=999)
_LAST_CHARACTER: Final = "\U0010ffff"


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file that is there to be read."""

    name: str
    """As Spark has it in `_metadata.file_path`."""

    path: str
    size: int
    vector: DeletionVector | None
    """The rows of it that do not count."""


class DataFiles:
    """Files in the folder of a table, filled with batches that all have the same columns, one after another.

    Columns in `various` hold something else in nearly every row, so that a dictionary of their values is not worth it.
    Left by an error, it takes its files away: no commit will name them, and a full disk would stay full of them.
    """

    def __init__(self, folder: str, various: frozenset[str]) -> None:
        self.adds: list[str] = []
        self.rows = 0
        self._folder = Path(folder)
        self._various = various
        self._writer: Any = None
        self._path = self._folder
        self._written: list[Path] = []
        self._rows_in_file = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._take_away()

    def write(self, batch: Any) -> None:
        """Add rows."""
        if self._writer is None:
            self._begin(batch.schema)
        self._writer.write_batch(batch)
        self._rows_in_file += batch.num_rows
        if self._rows_in_file >= _ROWS_PER_FILE:
            self.finish()

    def finish(self) -> None:
        """Close the last file: `adds` has an action for each, in JSON."""
        if self._writer is None:
            return
        self._writer.close()
        statistics = _statistics(pq.read_metadata(self._path))
        add = {
            "path": self._path.name,
            "partitionValues": {},
            "size": self._path.stat().st_size,
            "modificationTime": int(time.time() * 1000),
            "dataChange": True,
            "stats": json.dumps(statistics, ensure_ascii=False, separators=(",", ":")),
        }
        self.adds.append(json.dumps({"add": add}))
        self.rows += self._rows_in_file
        self._writer = None
        self._rows_in_file = 0

    def _begin(self, schema: Any) -> None:
        # Tried again, a task writes files of other names.
        self._path = self._folder / f"part-{uuid.uuid4()}.snappy.parquet"
        self._written.append(self._path)
        repeated = [name for name in schema.names if name not in self._various]
        self._writer = pq.ParquetWriter(self._path, schema, use_dictionary=repeated, store_schema=False)

    def _take_away(self) -> None:
        if self._writer is not None:
            with contextlib.suppress(OSError, pa.ArrowException):
                self._writer.close()
        for path in self._written:
            path.unlink(missing_ok=True)


def _statistics(metadata: Any) -> dict[str, Any]:
    """What Delta skips files by: the least and the greatest of each column of texts, numbers and times."""
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    names = [metadata.schema.column(number).name for number in range(metadata.num_columns)]
    for number, name in enumerate(names):
        groups = [metadata.row_group(group).column(number).statistics for group in range(metadata.num_row_groups)]
        if any(group is None or not group.has_min_max for group in groups):
            continue
        low, high = min(group.min for group in groups), max(group.max for group in groups)
        if isinstance(low, str):
            least[name], greatest[name] = low[:PREFIX_IN_STATISTICS], _not_less(high)
        elif isinstance(low, int):
            least[name], greatest[name] = low, high
        elif isinstance(low, datetime):
            least[name], greatest[name] = _to_the_millisecond(low), _to_the_millisecond(high + _NEARLY_ONE)
    return {
        "numRecords": metadata.num_rows,
        "minValues": least,
        "maxValues": greatest,
        "nullCount": dict.fromkeys(names, 0),
    }


def _to_the_millisecond(moment: datetime) -> str:
    """A moment as Delta has it, which knows no parts of milliseconds."""
    return moment.astimezone(UTC).strftime(f"%Y-%m-%dT%H:%M:%S.{moment.microsecond // 1000:03}Z")


def _not_less(text: str) -> str:
    """A short text that is not less than any that begins as this one does."""
    end = PREFIX_IN_STATISTICS
    while text[end : end + 1] == _LAST_CHARACTER:
        end += 1
    return text if len(text) <= end else text[:end] + _LAST_CHARACTER


def column_of(value: Any, type_: Any, rows: int) -> Any:
    """A column that says the same in all rows."""
    return pa.repeat(pa.scalar(value, type_), rows)
