"""Where the quads of a batch stand in a table, found in its data files by Python, beside the JVM.

Nearly all of a large table is not what is looked for, and for that the JVM is dear: it makes rows of all of it. Here
columns are read as they lie in the files, and a hash of each quad is looked up in those of the batch. The few rows that
have one of them go to Spark, which compares their texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from patchlog.engine import IMPLEMENTATION, KnownQuads
from spark.data_files import DataFile
from spark.reduction import HASH, QUAD, with_hash
from spark.row_commit import FILE, ROW

__all__ = ["FilePart", "can_look_beside_spark", "candidates"]

_MOST_HASHES: Final = 4_000_000
"""Of a larger batch the hashes are not sent around, eight bytes each."""

_BYTES_PER_PART: Final = 64 << 20
_BYTES_PER_TASK: Final = 256 << 20
_MOST_ROWS_AT_ONCE: Final = 16_384
_BYTES_AT_ONCE: Final = 16 << 20
_READ_BYTES: Final = 256 << 10
_FOUND: Final = f"{', '.join(f'{name} STRING' for name in QUAD)}, {FILE} STRING, {ROW} BIGINT"
_ARROW_FOUND: Final = pa.schema([*((name, pa.string()) for name in QUAD), (FILE, pa.string()), (ROW, pa.int64())])


@dataclass(frozen=True, slots=True)
class FilePart:
    """One of so many parts of a data file, by its row groups."""

    file: DataFile
    number: int
    of: int

    def find(self, known: Any) -> Iterator[Any]:
        """The rows with a known hash that still count, as batches with FILE and ROW."""
        with pq.ParquetFile(self.file.path, read_dictionary=["graph", "predicate"], buffer_size=_READ_BYTES) as file:
            count = file.metadata.num_row_groups
            groups = [group for group in range(count) if group * self.of // count == self.number]
            if not groups:
                return
            first = sum(file.metadata.row_group(group).num_rows for group in range(groups[0]))
            gone = self.file.vector.rows() if self.file.vector else ()
            for batch in file.iter_batches(_rows_at_once(file.metadata, groups), groups, [*QUAD], use_threads=False):
                quads = _as_strings(batch)
                rows = np.frombuffer(known.rows(quads), np.uint32)
                if len(rows) and len(gone):
                    rows = rows[~_are_among(gone, rows + first)]
                if len(rows):
                    yield self._found(quads.take(pa.array(rows)), rows + first)
                first += batch.num_rows

    def _found(self, quads: Any, rows: Any) -> Any:
        terms = [quads[name].cast(pa.string()) for name in QUAD]
        file = pa.repeat(pa.scalar(self.file.name), len(rows))
        return pa.RecordBatch.from_arrays([*terms, file, pa.array(rows, pa.int64())], schema=_ARROW_FOUND)


def can_look_beside_spark(operations: int) -> bool:
    """Whether it is worth it: the codec in Python would take longer than the JVM."""
    return IMPLEMENTATION == "native" and operations <= _MOST_HASHES


@contextmanager
def candidates(session: SparkSession, files: Sequence[DataFile], batch: DataFrame) -> Iterator[DataFrame]:
    """The rows of data files that have the hash of a quad of the batch, and where they stand: FILE and ROW.

    They are found when Spark asks for them, which it can as long as the context is open.
    """
    hashes = with_hash(batch).select(HASH).toArrow()[HASH].to_numpy()
    known = session.sparkContext.broadcast(np.unique(hashes).tobytes())
    tasks = _divided(files, session.sparkContext.defaultParallelism)
    numbers = session.range(0, len(tasks), 1, len(tasks))
    try:
        yield numbers.mapInArrow(_finder(known, tasks), _FOUND)
    finally:
        # Nobody else deletes the files in which executors get it.
        known.destroy()


def _divided(files: Iterable[DataFile], parallelism: int) -> list[list[FilePart]]:
    """All of the files, for tasks of about the same size."""
    parts: list[FilePart] = []
    for file in sorted(files, key=lambda file: file.size, reverse=True):
        count = max(-(-file.size // _BYTES_PER_PART), 1)
        parts += [FilePart(file, number, count) for number in range(count)]
    bytes_ = sum(part.file.size // part.of for part in parts)
    tasks = min(max(2 * parallelism, bytes_ // _BYTES_PER_TASK), len(parts))
    return [parts[task::tasks] for task in range(tasks)]


def _finder(hashes: Any, tasks: Sequence[Sequence[FilePart]]) -> Callable[[Iterable[Any]], Iterator[Any]]:
    def find(batches: Iterable[Any]) -> Iterator[Any]:
        known = KnownQuads(hashes.value)
        for batch in batches:
            for number in batch["id"].to_pylist():
                for part in tasks[number]:
                    yield from part.find(known)

    return find


def _rows_at_once(metadata: Any, groups: Iterable[int]) -> int:
    """Fewer where texts are long, so that memory does not follow their length."""
    chosen = [metadata.row_group(group) for group in groups]
    rows = sum(int(group.num_rows) for group in chosen)
    bytes_per_row = sum(int(group.total_byte_size) for group in chosen) // max(rows, 1)
    return max(1, min(_MOST_ROWS_AT_ONCE, _BYTES_AT_ONCE // max(bytes_per_row, 1)))


def _as_strings(quads: Any) -> Any:
    """Other writers have strings in ways that cannot be taken from: those become plain ones."""
    if all(pa.types.is_string(type_) or pa.types.is_dictionary(type_) for type_ in quads.schema.types):
        return quads
    columns = [column if pa.types.is_dictionary(column.type) else column.cast(pa.string()) for column in quads.columns]
    return pa.RecordBatch.from_arrays(columns, names=quads.schema.names)


def _are_among(sorted_rows: Any, rows: Any) -> Any:
    """Of each row, whether it is among others, which are in their order and not none."""
    places = np.searchsorted(sorted_rows, rows)
    places[places == len(sorted_rows)] = 0
    return sorted_rows[places] == rows
