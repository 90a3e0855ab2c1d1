"""Columns instead of objects: a stream of Arrow record batches, by the Arrow PyCapsule interface."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

from patchlog.codec.faces import ArrowDecoderFace, ArrowEncoderFace
from patchlog.errors import MissingExtra, UsageError
from patchlog.pipes import drain
from patchlog.streams import Write

__all__ = ["ArrowStream", "write_arrow"]


class ArrowStream:
    """Record batches, made while they are read: at any time one of them is in memory.

    `pyarrow.table(stream)`, `polars.DataFrame(stream)`, DuckDB and pandas take it as it is. To go through it batch by
    batch, iterate; each batch is a `pyarrow.RecordBatch`. Like the input behind it, it can be read once.
    """

    def __init__(self, decoder: ArrowDecoderFace, chunks: Iterable[bytes]) -> None:
        self._decoder = decoder
        self._chunks = chunks
        self._is_read = False

    def __iter__(self) -> Iterator[Any]:
        pyarrow = _pyarrow()
        if self._is_read:
            raise UsageError("a stream of Arrow batches can be read once: make a table of it, or open the source again")
        self._is_read = True
        return map(pyarrow.record_batch, drain(self._decoder, self._chunks))

    def __arrow_c_schema__(self) -> object:
        return self._decoder.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        pyarrow = _pyarrow()
        reader = pyarrow.RecordBatchReader.from_batches(pyarrow.schema(self._decoder), iter(self))
        return reader.__arrow_c_stream__(requested_schema)


def write_arrow(write: Write, encoder: ArrowEncoderFace, data: Any) -> None:
    """Write a record batch, a stream of batches, or an iterable of batches, one batch at a time."""
    for batch in _batches_of(data):
        write(encoder.encode(batch))
    write(encoder.finish())


def _batches_of(data: Any) -> Any:
    if hasattr(data, "__arrow_c_array__"):
        return [data]
    if hasattr(data, "__arrow_c_stream__"):
        return _pyarrow().RecordBatchReader.from_stream(data)
    return data


def _pyarrow() -> Any:
    try:
        return import_module("pyarrow")
    except ImportError as error:
        raise MissingExtra("pyarrow", "arrow") from error
