"""Patches to columns: what of them takes effect, a batch of whole patches at a time, by the rules of `patchlog.effect`.

No operation becomes a Python object: terms stay codes of Arrow dictionaries until the rows that count are known.

    bytes -> ArrowDecoder -> batches of all operations -> whole patches -> the rows that count -> Arrow batches
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from patchlog.engine import ArrowDecoder
from patchlog.errors import StorageError
from patchlog.log.records import LoggedPatch, PatchRecord
from patchlog.log.snapshots.reading import STORED_LIMITS
from patchlog.pipes import drain

__all__ = [
    "DATASET_COLUMNS",
    "NAMESPACE_COLUMNS",
    "QUAD_COLUMNS",
    "Share",
    "View",
    "batches_of",
    "dataset_batches",
    "shared_batches",
]

Integers = npt.NDArray[np.int64]

_BATCH_ROWS: Final = 1 << 16
_MOST_SHARES: Final = 8
_TIME: Final = pa.timestamp("us", tz="UTC")

_BEFORE: Final = {"version": pa.int64(), "position": pa.int64(), "operation": pa.string(), "graph": pa.string()}
_BEHIND: Final = {"patch_id": pa.string(), "time": _TIME}
_QUAD: Final = dict.fromkeys(("subject", "predicate", "object"), pa.string())
_NAMESPACE: Final = dict.fromkeys(("name", "iri"), pa.string())


def _schema(columns: dict[str, Any]) -> Any:
    # Who takes a namespace away need not say what it stood for.
    return pa.schema([pa.field(name, type_, nullable=name == "iri") for name, type_ in columns.items()])


QUAD_COLUMNS: Final = _schema(_BEFORE | _QUAD | _BEHIND)
NAMESPACE_COLUMNS: Final = _schema(_BEFORE | _NAMESPACE | _BEHIND)
DATASET_COLUMNS: Final = _schema({"graph": pa.string()} | _QUAD)


class _Kind(IntEnum):
    """Operations as numbers. From START on they are marks, which say what becomes of the rows between them."""

    ADD = 0
    DELETE = 1
    NAMESPACE_ADD = 2
    NAMESPACE_DELETE = 3
    HEADER = 4
    START = 5
    COMMIT = 6
    ABORT = 7
    END = 8


_KINDS: Final = dict(zip(("A", "D", "PA", "PD", "H", "TX", "TC", "TA", "Z"), _Kind, strict=True))
_SIGNS: Final = pa.array(["+", "-"])


@dataclass(frozen=True, slots=True)
class View:
    """Which rows: of quads or of namespaces; `raw` has those without effect too."""

    is_namespaces: bool = False
    is_raw: bool = False

    @property
    def schema(self) -> Any:
        """The Arrow columns."""
        return NAMESPACE_COLUMNS if self.is_namespaces else QUAD_COLUMNS


@dataclass(frozen=True, slots=True)
class Share:
    """What one of several readers takes of a dataset: of n readers, each every n-th block of rows.

    A stream of Jelly can only be read from its begin. To decode it takes a small part of what Spark does with its rows,
    so each reader decodes all of it.
    """

    part: int = 0
    parts: int = 1

    @classmethod
    def divided(cls, readers: int) -> list[Self]:
        """The shares of so many readers, or fewer: more would decode the same again and again."""
        parts = max(1, min(readers, _MOST_SHARES))
        return [cls(part, parts) for part in range(parts)]

    def of(self, batch: Any, first_row: int) -> Iterator[tuple[int, Any]]:
        """What of a batch is in it, from the number of the batch's first row; each piece with that of its own."""
        begin = 0
        while begin < batch.num_rows:
            block = (first_row + begin) // _BATCH_ROWS
            end = min(batch.num_rows, (block + 1) * _BATCH_ROWS - first_row)
            if block % self.parts == self.part:
                yield first_row + begin, batch.slice(begin, end - begin)
            begin = end


def batches_of(patches: Iterable[LoggedPatch], view: View) -> Iterator[Any]:
    """The rows of patches as Arrow batches, in the order of versions and positions."""
    decoder = ArrowDecoder("jelly-patch", limits=STORED_LIMITS, batch_rows=_BATCH_ROWS)
    whole = _WholePatches()
    for logged in patches:
        whole.expect(logged.record)
        for chunk in logged.chunks:
            for batch in decoder.feed(chunk):
                yield from _rows_of(whole.take(pa.record_batch(batch)), view)
    for batch in decoder.finish():
        yield from _rows_of(whole.take(pa.record_batch(batch)), view)
    whole.check_finished()


def dataset_batches(chunks: Iterable[bytes], share: Share | None = None) -> Iterator[Any]:
    """The quads of a snapshot as Arrow batches, all of them or a share."""
    for _, piece in shared_batches(chunks, share or Share()):
        texts = [piece[name].cast(pa.string()) for name in DATASET_COLUMNS.names]
        yield pa.RecordBatch.from_arrays(texts, schema=DATASET_COLUMNS)


def shared_batches(chunks: Iterable[bytes], share: Share) -> Iterator[tuple[int, Any]]:
    """The quads of a share of a snapshot, dictionary-encoded, and with each batch the number of its first row."""
    decoder = ArrowDecoder("jelly", limits=STORED_LIMITS, batch_rows=_BATCH_ROWS)
    rows = 0
    for batch in drain(decoder, chunks):
        found = pa.record_batch(batch)
        yield from share.of(found, rows)
        rows += found.num_rows


class _WholePatches:
    """Cuts batches where patches end, and joins what belongs to one patch."""

    def __init__(self) -> None:
        self._records: deque[PatchRecord] = deque()
        self._begun: list[Any] = []

    def expect(self, record: PatchRecord) -> None:
        """Say which patch comes next."""
        self._records.append(record)

    def take(self, batch: Any) -> tuple[Any, Integers, Sequence[PatchRecord]] | None:
        """The patches that are whole with this batch: their rows and kinds, and what is known of them."""
        ends = np.flatnonzero(_kinds(batch["operation"]) == _Kind.END)
        if not len(ends):
            self._begun.append(batch)
            return None
        complete, rest = batch.slice(0, ends[-1] + 1), batch.slice(ends[-1] + 1)
        if self._begun:
            joined = pa.Table.from_batches([*self._begun, complete]).unify_dictionaries()
            complete = joined.combine_chunks().to_batches()[0]
        self._begun = [rest] if rest.num_rows else []
        return complete, _kinds(complete["operation"]), [self._records.popleft() for _ in ends]

    def check_finished(self) -> None:
        """Raise StorageError where a patch has ended without its end."""
        if self._records:
            raise StorageError(f"version {self._records[0].version} of the log has no end: verify the log")


def _kinds(operations: Any) -> Integers:
    codes = np.array([_KINDS[code] for code in operations.dictionary.to_pylist()], dtype=np.int64)
    kinds: Integers = codes[operations.indices.to_numpy()]
    return kinds


def _rows_of(whole: tuple[Any, Integers, Sequence[PatchRecord]] | None, view: View) -> Iterator[Any]:
    if whole is None:
        return
    batch, kinds, records = whole
    ends = np.flatnonzero(kinds == _Kind.END)
    starts = np.concatenate(([0], ends[:-1] + 1))
    patch_of_row = np.repeat(np.arange(len(ends)), ends - starts + 1)
    add = _Kind.NAMESPACE_ADD if view.is_namespaces else _Kind.ADD
    is_chosen = (kinds == add) | (kinds == add + 1)
    if not view.is_raw:
        is_chosen &= _is_committed(kinds)
    rows = np.flatnonzero(is_chosen)
    if not view.is_raw:
        named = ("graph", "name") if view.is_namespaces else ("subject", "object", "predicate", "graph")
        rows = _last_of_each(rows, patch_of_row, [_codes(batch[name]) for name in named])
    patches = patch_of_row[rows]
    columns = {
        "version": pa.array(np.array([record.version for record in records])[patches]),
        "position": pa.array(rows - starts[patches]),
        "operation": _spelled_out(kinds[rows] - add, _SIGNS),
        "patch_id": _spelled_out(patches, pa.array([str(record.id) for record in records])),
        "time": pa.array([datetime.fromisoformat(record.time) for record in records], _TIME).take(pa.array(patches)),
    }
    taken = batch.take(pa.array(rows))
    for name in view.schema.names[3:-2]:
        texts = taken["object" if name == "iri" else name].cast(pa.string())
        columns[name] = texts.fill_null("") if name == "graph" else texts
    found = pa.RecordBatch.from_arrays([columns[name] for name in view.schema.names], schema=view.schema)
    for begin in range(0, found.num_rows, _BATCH_ROWS):
        yield found.slice(begin, _BATCH_ROWS)


def _is_committed(kinds: Integers) -> npt.NDArray[np.bool_]:
    """Whether each row stands in a transaction that was committed, or in none."""
    marks = np.flatnonzero(kinds >= _Kind.START)
    following = np.searchsorted(marks, np.arange(len(kinds)))
    before = np.where(following > 0, kinds[marks[following - 1]], _Kind.END)
    return np.asarray((before != _Kind.START) | (kinds[marks[following]] == _Kind.COMMIT))


def _last_of_each(rows: Integers, patch_of_row: Integers, columns: Sequence[Integers]) -> Integers:
    """Of the rows of a patch that are about the same thing, the last.

    Rows are told apart by a hash. Where hashes are equal, which is rare, the codes are compared.
    """
    columns = [patch_of_row[rows], *(column[rows] for column in columns)]
    hashes = np.zeros(len(rows), dtype=np.uint64)
    for column in columns:
        hashes = (hashes ^ column.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        hashes ^= hashes >> np.uint64(29)
    order = np.argsort(hashes, kind="stable")
    is_equal = hashes[order[1:]] == hashes[order[:-1]]
    if not is_equal.any():
        return rows
    is_doubtful = np.zeros(len(rows), dtype=bool)
    is_doubtful[order[1:][is_equal]] = True
    is_doubtful[order[:-1][is_equal]] = True
    doubtful = np.flatnonzero(is_doubtful)
    codes = zip(*(column[doubtful].tolist() for column in columns), strict=True)
    last = dict(zip(codes, doubtful.tolist(), strict=True))
    is_doubtful[list(last.values())] = False
    return rows[~is_doubtful]


def _codes(column: Any) -> Integers:
    codes: Integers = column.indices.fill_null(-1).to_numpy().astype(np.int64)
    return codes


def _spelled_out(codes: Integers, texts: Any) -> Any:
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), texts).cast(pa.string())
