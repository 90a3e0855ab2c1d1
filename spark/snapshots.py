"""Snapshots out of the tables: Jelly-RDF, encoded side by side by the executors, in files that each stand alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.taskcontext import TaskContext

from patchlog.codec.options import LogicalType, PhysicalType, RdfOptions
from patchlog.engine import ArrowEncoder, Converter
from patchlog.errors import UsageError
from patchlog.log.records import LogOptions
from patchlog.log.snapshots.reading import STORED_LIMITS
from patchlog.log.snapshots.writing import write_snapshot
from patchlog.model import Term
from patchlog.streams import chunks_of

__all__ = ["Exported", "export", "joined"]

_FIRST: Final = "part-namespaces.jelly"
_COLUMNS: Final = pa.schema([("file", pa.string()), ("quads", pa.int64()), ("bytes", pa.int64())])
_SQL_COLUMNS: Final = "file STRING, quads BIGINT, bytes BIGINT"


@dataclass(frozen=True, slots=True)
class Exported:
    """Files of a snapshot, in the order in which they are joined."""

    files: tuple[Path, ...]
    quads: int
    bytes: int


def export(quads: DataFrame, namespaces: dict[tuple[Term, str], Term], options: LogOptions, folder: Path) -> Exported:
    """Write quads into a new folder that all executors reach, a file for each partition.

    Raises UsageError where there is something of that name.
    """
    # Executors may work in another folder than the driver.
    folder = folder.resolve()
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise UsageError(f"{folder} is there already: name a folder that is to be made") from None
    first = folder / _FIRST
    with first.open("wb") as file:
        write_snapshot([], namespaces, options, file.write)
    written = quads.mapInArrow(_part_writer(str(folder), options), _SQL_COLUMNS).collect()
    parts = sorted((row for row in written if row.quads), key=lambda row: row.file)
    files = (first, *(folder / row.file for row in parts))
    return Exported(files, sum(row.quads for row in parts), sum(file.stat().st_size for file in files))


def joined(files: Iterable[Path]) -> Iterator[bytes]:
    """The files as one stream of Jelly-RDF."""
    converter = Converter(
        "jelly", "jelly", limits=STORED_LIMITS, concatenated=True, keep_frames=True, namespace_declarations=True
    )
    for file in files:
        for chunk in chunks_of(file):
            if data := converter.feed(chunk):
                yield data
    yield converter.finish()


def _part_writer(folder: str, options: LogOptions) -> Callable[[Iterable[Any]], Iterator[Any]]:
    rdf_options = RdfOptions(
        physical_type=PhysicalType.QUADS,
        logical_type=LogicalType.FLAT_QUADS,
        generalized_statements=options.generalized_statements,
        rdf_star=options.rdf_star,
    )

    def write_part(batches: Iterable[Any]) -> Iterator[Any]:
        context = TaskContext.get()
        assert context is not None
        name = f"part-{context.partitionId():05}.jelly"
        # A task may be tried again, also while its first attempt goes on: each has a file of its own until it is done.
        attempt = Path(folder) / f".{name}.{context.taskAttemptId()}"
        encoder = ArrowEncoder("jelly", rdf_options=rdf_options, rows_per_frame=4096)
        quads = 0
        with attempt.open("wb") as file:
            for batch in batches:
                quads += batch.num_rows
                file.write(encoder.encode(batch))
            file.write(encoder.finish())
            size = file.tell()
        if quads:
            attempt.replace(Path(folder) / name)
        else:
            attempt.unlink()
        yield pa.RecordBatch.from_pylist([{"file": name, "quads": quads, "bytes": size}], schema=_COLUMNS)

    return write_part
