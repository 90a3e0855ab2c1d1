"""Bytes to Arrow record batches, by pyarrow. docs/protocol.md, "Arrow"."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any, Final, TypeAlias, assert_never

from patchlog.codec.faces import SourceFormat
from patchlog.codec.options import Limits
from patchlog.errors import MissingExtra, UsageError
from patchlog.model import (
    Add,
    Delete,
    Header,
    NamespaceAdd,
    NamespaceDelete,
    Operation,
    Punctuation,
    RdfFrame,
    TransactionAbort,
    TransactionCommit,
    TransactionStart,
)
from patchlog.pure.sources import PATCH_SOURCES, Reading
from patchlog.spending import Spendable, spending

__all__ = ["ArrowDecoder", "load_pyarrow"]

_STATEMENT_COLUMNS: Final = ("subject", "predicate", "object", "graph")
_PATCH_COLUMNS: Final = ("operation", "name", *_STATEMENT_COLUMNS)
_MAX_BATCH_CHARACTERS: Final = 256 << 20

_Row: TypeAlias = tuple[str | None, ...]


def load_pyarrow() -> Any:
    """The module, or MissingExtra."""
    try:
        return import_module("pyarrow")
    except ImportError as error:
        raise MissingExtra("pyarrow", "arrow") from error


class ArrowDecoder(Spendable):
    """Decodes any source format to columns. Its face: `patchlog.codec.faces.ArrowDecoderFace`."""

    def __init__(
        self,
        source: SourceFormat,
        *,
        limits: Limits = Limits(),  # noqa: B008  it is frozen
        strict: bool = True,
        concatenated: bool = False,
        delimited: bool | None = None,
        batch_rows: int = 8192,
        dictionary: bool = True,
    ) -> None:
        reading = Reading(source=source, limits=limits, strict=strict, concatenated=concatenated, delimited=delimited)
        self._feed: Callable[[bytes], Iterator[_Row]]
        self._finish: Callable[[], Iterator[_Row]]
        if source in PATCH_SOURCES:
            operations = reading.operation_decoder()
            self._feed = lambda data: map(_operation_row, operations.feed(data))
            self._finish = lambda: map(_operation_row, operations.finish())
        else:
            frames = reading.frame_decoder()
            self._feed = lambda data: _statement_rows(frames.feed(data))
            self._finish = lambda: _statement_rows(frames.finish())
        self._pyarrow = pyarrow = load_pyarrow()
        columns = _PATCH_COLUMNS if source in PATCH_SOURCES else _STATEMENT_COLUMNS
        column_type = pyarrow.dictionary(pyarrow.int32(), pyarrow.string()) if dictionary else pyarrow.string()
        self._schema = pyarrow.schema([(name, column_type) for name in columns])
        self._dictionary = dictionary
        if batch_rows < 0:
            raise UsageError(f"{batch_rows} is not a number of rows or frames: those begin with 0")
        self._batch_rows = max(batch_rows, 1)
        self._rows: list[_Row] = []
        self._characters = 0

    def __arrow_c_schema__(self) -> object:
        return self._schema.__arrow_c_schema__()

    @spending
    def feed(self, data: bytes, /) -> list[Any]:
        """Take some bytes and return the batches that are full."""
        return list(self._full_batches(self._feed(data)))

    @spending
    def finish(self) -> list[Any]:
        """Say that the input has ended and return the last batch, if it has rows."""
        batches = list(self._full_batches(self._finish()))
        return [*batches, self._take_batch()] if self._rows else batches

    def _full_batches(self, rows: Iterable[_Row]) -> Iterator[Any]:
        for row in rows:
            self._rows.append(row)
            self._characters += sum(len(text) for text in row if text)
            # Offsets of 32 bits end at 2 GiB, and a character takes up to four bytes.
            if len(self._rows) == self._batch_rows or self._characters > _MAX_BATCH_CHARACTERS:
                yield self._take_batch()

    def _take_batch(self) -> Any:
        arrays = [self._pyarrow.array(column, self._pyarrow.string()) for column in zip(*self._rows, strict=True)]
        if self._dictionary:
            arrays = [array.dictionary_encode() for array in arrays]
        self._rows = []
        self._characters = 0
        return self._pyarrow.RecordBatch.from_arrays(arrays, schema=self._schema)


def _statement_rows(frames: Iterable[RdfFrame]) -> Iterator[_Row]:
    for frame in frames:
        for statement in frame.statements:
            yield statement if len(statement) == 4 else (*statement, None)


def _operation_row(operation: Operation) -> _Row:
    match operation:
        case Add(subject, predicate, object_, graph):
            return "A", None, subject, predicate, object_, graph
        case Delete(subject, predicate, object_, graph):
            return "D", None, subject, predicate, object_, graph
        case NamespaceAdd(name, iri, graph):
            return "PA", name, None, None, iri, graph
        case NamespaceDelete(name, iri, graph):
            return "PD", name, None, None, iri, graph
        case Header(key, value):
            return "H", key, None, None, value, None
        case TransactionStart():
            return "TX", None, None, None, None, None
        case TransactionCommit():
            return "TC", None, None, None, None, None
        case TransactionAbort():
            return "TA", None, None, None, None, None
        case Punctuation():
            return "Z", None, None, None, None, None
        case _:
            assert_never(operation)
