"""Arrow record batches of others, whatever made them, by pyarrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from patchlog.errors import InvalidTerm, UsageError

__all__ = ["batches_of", "check_columns", "strings_of"]


def batches_of(pyarrow: Any, data: Any) -> Iterator[Any]:
    """A batch, or the batches of a stream."""
    try:
        if hasattr(data, "__arrow_c_array__"):
            yield _batch_of(pyarrow, pyarrow.array(data))
        elif hasattr(data, "__arrow_c_stream__"):
            for batch in pyarrow.RecordBatchReader.from_stream(data):
                batch.validate()
                yield batch
        else:
            raise UsageError(f"a {type(data).__name__} does not offer the Arrow PyCapsule interface")
    except (pyarrow.ArrowException, ValueError, TypeError) as error:
        raise UsageError(f"this Arrow data is not made of record batches: {error}") from error


def _batch_of(pyarrow: Any, rows: Any) -> Any:
    """The batch that a struct array is, which may be a part of a longer one."""
    # What another library made may break the rules of Arrow, which pyarrow does not look into by itself.
    rows.validate()
    if rows.offset < 0:
        raise ValueError(f"their offset is {rows.offset}")
    batch = pyarrow.RecordBatch.from_struct_array(rows)
    if rows.null_count:
        raise ValueError(f"row {rows.is_null().index(True)} is null as a whole")
    return batch


def check_columns(batch: Any, names: Iterable[str]) -> None:
    """Raise UsageError where a batch lacks one of these columns."""
    missing = [name for name in names if name not in batch.schema.names]
    if missing:
        raise UsageError(f"an Arrow batch needs the column {missing[0]!r}")


def strings_of(pyarrow: Any, batch: Any, name: str) -> list[str | None]:
    """The values of a column of strings."""
    column = batch.column(batch.schema.names.index(name))
    if not _holds_strings(pyarrow.types, column.type):
        raise UsageError(f"the Arrow column {name!r} does not hold strings, but {column.type}")
    if pyarrow.types.is_dictionary(column.type):
        _check_indexes(column, name)
    if column.offset < 0:
        raise UsageError(f"the Arrow column {name!r} cannot be read: its offset is {column.offset}")
    try:
        column.validate(full=True)
        return column.to_pylist()  # type: ignore[no-any-return]
    except (UnicodeDecodeError, pyarrow.ArrowException) as error:
        if isinstance(error, UnicodeDecodeError) or "UTF8" in str(error):
            raise InvalidTerm(f"the Arrow column {name!r} holds a string that is not UTF-8") from error
        raise UsageError(f"the Arrow column {name!r} cannot be read: {error}") from error


def _check_indexes(column: Any, name: str) -> None:
    """For pyarrow reads what a negative index points to, whatever it is."""
    known = range(len(column.dictionary))
    for row, index in enumerate(column.indices.to_pylist()):
        if index is not None and index not in known:
            raise UsageError(f"row {row} of the Arrow column {name!r} points to value {index}, which is not there")


def _holds_strings(types: Any, column_type: Any) -> bool:
    if types.is_dictionary(column_type):
        column_type = column_type.value_type
    return bool(
        types.is_string(column_type)
        or types.is_large_string(column_type)
        or types.is_string_view(column_type)
        or types.is_null(column_type)
    )
