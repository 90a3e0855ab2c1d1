"""Rows of operations become patches of a log: one of the whole DataFrame, or one a group.

Executors send their rows to the driver as compressed Arrow, and the driver appends: a patch is durable whole or not at
all, and its id is chosen before the first row is written, so that no retry appends it twice.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from patchlog.engine import ArrowEncoder
from patchlog.errors import UsageError
from spark.origin import Origin

__all__ = ["PatchWriter", "grouped", "marks", "packed_rows"]

_WANTED: Final = ("operation", "subject", "predicate", "object")
_TERMS: Final = ("subject", "predicate", "object", "graph")
_SCHEMA: Final = pa.schema([(name, pa.string()) for name in ("operation", "name", *_TERMS)])
_LETTERS: Final = {"+": "A", "-": "D"}


@dataclass(frozen=True)
class _Rows(WriterCommitMessage):
    """What a task has, by group."""

    groups: tuple[tuple[Any, bytes], ...]


class PatchWriter(DataSourceArrowWriter):
    """Appends rows with the columns operation (`+` or `-`), subject, predicate, object, and graph or none."""

    def __init__(self, origin: Origin, schema: StructType, group: str | None) -> None:
        missing = [name for name in (*_WANTED, *([group] if group else [])) if name not in schema.names]
        if missing:
            raise UsageError(
                f"the rows have no column {missing[0]!r}; a patch is made of {', '.join(_WANTED)} and graph"
            )
        self._origin = origin
        self._group = group
        self._namespace = uuid.uuid4()

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Take the rows of a task."""
        groups: dict[Any, list[Any]] = defaultdict(list)
        for batch in iterator:
            for group, rows in grouped(batch, self._group):
                groups[group].append(rows)
        return _Rows(tuple((group, packed_rows(batches)) for group, batches in groups.items()))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Append the patches, all or none, in the order of their groups; that of null is the first."""
        groups: dict[Any, list[bytes]] = defaultdict(list)
        for message in messages:
            if isinstance(message, _Rows):
                for group, packed in message.groups:
                    groups[group].append(packed)
        if groups:
            with self._origin.opened() as log:
                log.append(list(self._patches(groups)))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Nothing was written anywhere."""

    def _patches(self, groups: dict[Any, list[bytes]]) -> Iterator[bytes]:
        encoder = ArrowEncoder("canonical-patch")
        for group in sorted(groups, key=lambda value: (value is not None, value)):
            patch_id = uuid.uuid5(self._namespace, repr(group))
            yield encoder.encode(marks(("H", "id", f"<urn:uuid:{patch_id}>"), ("TX", None, None)))
            for packed in groups[group]:
                for batch in pa.ipc.open_stream(packed):
                    yield encoder.encode(batch)
            yield encoder.encode(marks(("TC", None, None), ("Z", None, None)))
        yield encoder.finish()


def grouped(batch: Any, group: str | None) -> Iterator[tuple[Any, Any]]:
    """The operations of a batch for each value of a column."""
    if group is None:
        yield None, _operations(batch)
        return
    # Null is a value as others: nothing is equal to it, but it has a number.
    values = pc.dictionary_encode(batch[group], null_encoding="encode")
    for number, value in enumerate(values.dictionary.to_pylist()):
        yield value, _operations(batch.filter(pc.equal(values.indices, number)))


def _operations(batch: Any) -> Any:
    signs = batch["operation"]
    unknown = set(signs.unique().to_pylist()) - set(_LETTERS)
    if unknown:
        raise UsageError(f"an operation is + or -, and not {unknown.pop()!r}")
    columns = {"operation": pc.if_else(pc.equal(signs, "+"), "A", "D")}
    columns |= {name: batch[name].cast(pa.string()) for name in _TERMS if name in batch.schema.names}
    nothing = pa.nulls(batch.num_rows, pa.string())
    columns.setdefault("graph", pc.fill_null(nothing, ""))
    return pa.RecordBatch.from_arrays([columns.get(name, nothing) for name in _SCHEMA.names], schema=_SCHEMA)


def marks(*rows: tuple[str, str | None, str | None]) -> Any:
    """What a patch has besides quads, as a batch: the letter, the name and the value of each."""
    operations, names, objects = zip(*rows, strict=True)
    columns: dict[str, Sequence[str | None]] = {"operation": operations, "name": names, "object": objects}
    nothing = [None] * len(rows)
    return pa.RecordBatch.from_arrays(
        [pa.array(columns.get(name, nothing), pa.string()) for name in _SCHEMA.names], schema=_SCHEMA
    )


def packed_rows(batches: list[Any]) -> bytes:
    """Operations as a compressed stream of Arrow."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, _SCHEMA, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
        for batch in batches:
            stream.write_batch(batch)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed
