"""The data source `patchlog`: operations of a log as rows, in batch and as a stream, and rows as patches of a log.

    session.read.format("patchlog").option("url", "http://127.0.0.1:8080").option("log", "people").load()

docs/spark.md has the options and the columns. What takes effect is the business of `spark.effective`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from patchlog.errors import UsageError
from spark.effective import DATASET_COLUMNS, Share, View, batches_of, dataset_batches
from spark.origin import Origin, Range, check_options, plan
from spark.sink import PatchWriter

__all__ = ["PatchLogSource", "register"]

_MOST_VERSION: Final = (1 << 63) - 1
_OPTIONS: Final = ("view", "raw", "after", "until", "partitions", "maxVersionsPerTrigger", "ranges", "snapshot")
_VIEWS: Final = {"quads": False, "namespaces": True}
_PARTITIONS: Final = 2 * (os.cpu_count() or 1)


def register(session: SparkSession) -> None:
    """Make `format("patchlog")` known to a session."""
    # Without it a reader that takes filters is refused.
    session.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    session.dataSource.register(PatchLogSource)


class PatchLogSource(DataSource):
    """`format("patchlog")`."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "patchlog"

    def schema(self) -> StructType:
        """The columns of the view."""
        if self.options.get("snapshot"):
            return from_arrow_schema(DATASET_COLUMNS)
        return from_arrow_schema(_view_of(self.options).schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Reads what is there."""
        del schema
        return PatchReader(_Reading.from_options(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  Spark's name
        """Reads what comes, too."""
        del schema
        return PatchStreamReader(_Reading.from_options(self.options))

    def writer(self, schema: StructType, overwrite: bool) -> PatchWriter:  # noqa: FBT001  Spark's signature
        """Appends rows as patches."""
        if overwrite:
            raise UsageError('a log is never overwritten: write with mode("append")')
        check_options(self.options, ("group",))
        return PatchWriter(Origin.from_options(self.options), schema, self.options.get("group"))


@dataclass(frozen=True, slots=True)
class _Reading:
    """What the options ask for."""

    origin: Origin
    view: View
    after: int = 0
    until: int | None = None
    ranges: tuple[Range, ...] | None = None
    snapshot: int | None = None
    graphs: frozenset[str] | None = None
    partitions: int = _PARTITIONS
    max_versions: int | None = None

    @classmethod
    def from_options(cls, options: Any) -> _Reading:
        check_options(options, _OPTIONS)
        until, most, ranges = options.get("until"), options.get("maxVersionsPerTrigger"), options.get("ranges")
        snapshot = options.get("snapshot")
        return cls(
            Origin.from_options(options),
            _view_of(options),
            after=_number("after", options.get("after", 0)),
            until=None if until is None else _number("until", until),
            ranges=None if ranges is None else tuple(map(Range.parse, ranges.split(","))),
            snapshot=None if snapshot is None else _number("snapshot", snapshot),
            partitions=_number("partitions", options.get("partitions", _PARTITIONS)),
            max_versions=None if most is None else _number("maxVersionsPerTrigger", most),
        )

    def plan(self, after: int, until: int | None) -> list[InputPartition]:
        """Partitions that read the versions behind `after` side by side, up to the head where no end is given."""
        if self.snapshot is not None:
            return [InputPartition(share) for share in Share.divided(self.partitions)]
        if self.ranges is not None:
            return [InputPartition(chosen) for chosen in self.ranges]
        with self.origin.opened() as log:
            head = log.head().version
            whole = Range(after, head if until is None else min(until, head))
            ranges = plan(log, whole, self.partitions, is_divisible=not self.origin.is_file)
        return [InputPartition(chosen) for chosen in ranges] or [InputPartition(None)]

    def read(self, chosen: Range | Share | None) -> Iterator[Any]:
        """The rows of a partition."""
        if chosen is None:
            return
        with self.origin.opened() as log:
            if isinstance(chosen, Range):
                batches = batches_of(log.read(chosen.after, until=chosen.until), self.view)
            else:
                assert self.snapshot is not None
                batches = dataset_batches(log.snapshots.read(self.snapshot), chosen)
            for batch in batches:
                yield batch if self.graphs is None else _of_graphs(batch, self.graphs)


class PatchReader(DataSourceReader):
    """Reads a range of versions. Bounds of versions and graphs in the query's filters are kept here already."""

    def __init__(self, reading: _Reading) -> None:
        self._reading = reading

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802  Spark's name
        """Take the filters on version and graph, and give back the others."""
        for one in filters:
            narrowed = _narrowed(self._reading, one)
            if narrowed is None:
                yield one
            else:
                self._reading = narrowed

    def partitions(self) -> Sequence[InputPartition]:
        """Divide the versions."""
        return self._reading.plan(self._reading.after, self._reading.until)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Read a partition."""
        return self._reading.read(partition.value)


@dataclass
class PatchStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads what comes. An offset is a version: `{"version": 7}` is behind version 7."""

    reading: _Reading
    target: int | None = field(default=None, init=False)

    def initialOffset(self) -> dict[str, int]:  # noqa: N802  Spark's name
        """Where a new query begins."""
        return {"version": self.reading.after}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  Spark's name
        """`maxVersionsPerTrigger`, which Spark takes for a number of files."""
        most = self.reading.max_versions
        return ReadAllAvailable() if most is None else ReadMaxFiles(most)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802  Spark's name
        """How far the next batch goes."""
        last = self._head() if self.target is None else self.target
        if isinstance(limit, ReadMaxFiles):
            last = min(last, start["version"] + limit.max_files)
        return {"version": max(last, start["version"])}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  Spark's name
        """Go as far as the head of this moment."""
        self.target = self._head()

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802  Spark's name
        """The head of the log, for the progress of the query."""
        return {"version": self._head()}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Divide the versions of a batch."""
        if start == end:
            return []
        return self.reading.plan(start["version"], end["version"])

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Read a partition."""
        return self.reading.read(partition.value)

    def _head(self) -> int:
        with self.reading.origin.opened() as log:
            head = log.head().version
        return head if self.reading.until is None else min(head, self.reading.until)


def _view_of(options: Any) -> View:
    view, raw = options.get("view", "quads"), options.get("raw", "false").lower()
    if view not in _VIEWS:
        raise UsageError(f"{view!r} is not a view of patches; there are quads and namespaces")
    if raw not in ("true", "false"):
        raise UsageError(f"the option raw is true or false, not {raw!r}")
    return View(_VIEWS[view], is_raw=raw == "true")


def _number(name: str, text: Any) -> int:
    try:
        number = int(text)
    except ValueError:
        number = -1
    if number < 0:
        raise UsageError(f"the option {name} is a number from 0 on, not {text!r}")
    return number


def _narrowed(reading: _Reading, one: Filter) -> _Reading | None:
    """The reading with a filter taken into account; None where it cannot be."""
    is_fixed = reading.ranges is not None or reading.snapshot is not None
    match one:
        case _ if is_fixed:
            return None
        case EqualTo(("version",), int(version)) | EqualNullSafe(("version",), int(version)):
            return _between(reading, version - 1, version)
        case GreaterThan(("version",), int(version)):
            return _between(reading, version)
        case GreaterThanOrEqual(("version",), int(version)):
            return _between(reading, version - 1)
        case LessThan(("version",), int(version)):
            return _between(reading, until=version - 1)
        case LessThanOrEqual(("version",), int(version)):
            return _between(reading, until=version)
        case EqualTo(("graph",), str(graph)) | EqualNullSafe(("graph",), str(graph)):
            return _in_graphs(reading, frozenset([graph]))
        case In(("graph",), graphs) if all(isinstance(graph, str) for graph in graphs):
            return _in_graphs(reading, frozenset(graphs))
        case _:
            return None


def _between(reading: _Reading, after: int = 0, until: int = _MOST_VERSION) -> _Reading:
    narrower = until if reading.until is None else min(until, reading.until)
    return replace(reading, after=max(reading.after, after), until=narrower)


def _in_graphs(reading: _Reading, graphs: frozenset[str]) -> _Reading:
    return replace(reading, graphs=graphs if reading.graphs is None else reading.graphs & graphs)


def _of_graphs(batch: Any, graphs: frozenset[str]) -> Any:
    import pyarrow as pa

    return batch.filter(pc.is_in(batch["graph"], pa.array(sorted(graphs), pa.string())))
