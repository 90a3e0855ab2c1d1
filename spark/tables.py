"""The Delta tables of a log: what they are, and how far each has come.

Each commit carries a transaction identifier of Delta: an application, which is the table and the log, and a number that
only rises. Delta skips what it has seen, so a commit that is made again, by a job that crashed or by another one, does
nothing. The number is also the position: nothing else says how far a table is, so nothing else can be lost.

    table        number of a commit that brings it to version V
    changes      V
    namespaces   V
    quads        2V for the first of two commits, 2V + 1 for the last or only one
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Self

from delta.tables import DeltaTable
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from patchlog.errors import UsageError

__all__ = ["CHANGES", "NAMESPACES", "QUADS", "LogTable", "QuadsPosition", "Table", "Tables"]

_TXN: Final = "spark.databricks.delta.write.txn"
_USER_METADATA: Final = "spark.databricks.delta.commitInfo.userMetadata"
_LOG_PROPERTY: Final = "patchlog.log"
_FORMAT_PROPERTY: Final = "patchlog.format"
_FORMAT: Final = "1"
_SCHEMA: Final = "schema:"


@dataclass(frozen=True, slots=True)
class Table:
    """What a table is made as."""

    name: str
    columns: str
    cluster_by: str
    has_change_feed: bool


CHANGES: Final = Table(
    "changes",
    "version BIGINT NOT NULL, position BIGINT NOT NULL, operation STRING NOT NULL, graph STRING NOT NULL, "
    "subject STRING NOT NULL, predicate STRING NOT NULL, object STRING NOT NULL, patch_id STRING NOT NULL, "
    "time TIMESTAMP NOT NULL",
    "version",
    has_change_feed=False,
)
QUADS: Final = Table(
    "quads",
    "graph STRING NOT NULL, subject STRING NOT NULL, predicate STRING NOT NULL, object STRING NOT NULL, "
    "since BIGINT NOT NULL",
    "subject",
    has_change_feed=True,
)
NAMESPACES: Final = Table(
    "namespaces",
    "graph STRING NOT NULL, name STRING NOT NULL, iri STRING NOT NULL, since BIGINT NOT NULL",
    "name",
    has_change_feed=True,
)


@dataclass(frozen=True, slots=True)
class QuadsPosition:
    """How far `quads` is. `is_pending` says that of the two commits for `version` the second is still to come."""

    version: int
    is_pending: bool

    @classmethod
    def of(cls, number: int) -> Self:
        """The position that the number of a transaction means."""
        return cls(number // 2, is_pending=number % 2 == 0 and number > 0)


class LogTable:
    """One table of one log."""

    def __init__(self, session: SparkSession, table: Table, identifier: str, log_id: str) -> None:
        self._session = session
        self._application = f"patchlog:{log_id}:{table.name}"
        self.table: Final = table
        self.identifier: Final = identifier

    def read(self) -> DataFrame:
        """The table as it is now."""
        return self._session.table(self.identifier)

    @property
    def delta(self) -> DeltaTable:
        """The table for MERGE and maintenance."""
        return DeltaTable.forName(self._session, self.identifier)

    def properties(self) -> dict[str, str]:
        """The table's properties. Raises UsageError where there is no such table."""
        try:
            row = self.delta.detail().select("properties").first()
        except AnalysisException:
            raise UsageError(f"there is no Delta table {self.identifier}: `python -m spark apply` makes it") from None
        assert row is not None
        return dict(row.properties)

    def number(self) -> int:
        """The number of the last commit of this log, 0 before the first."""
        found = self._snapshot().transactions().get(self._application)
        return int(found.get()) if found.isDefined() else 0

    def is_empty(self) -> bool:
        """Whether there is no file in the table."""
        return int(self._snapshot().numOfFiles()) == 0

    @contextmanager
    def transaction(self, number: int, *, says: dict[str, Any] | None = None) -> Iterator[None]:
        """Make what is committed inside the commit of that number; `says` stands in the history of the table."""
        settings = {f"{_TXN}AppId": self._application, f"{_TXN}Version": str(number)}
        if says is not None:
            settings[_USER_METADATA] = json.dumps(says)
        with _settings(self._session, settings):
            yield

    def said(self) -> list[tuple[int, dict[str, Any]]]:
        """What the commits of this log have said, with their Delta versions, the newest first."""
        rows = self.delta.history().where("userMetadata IS NOT NULL").select("version", "userMetadata").collect()
        return [(row.version, json.loads(row.userMetadata)) for row in rows if row.userMetadata.startswith('{"log"')]

    def _snapshot(self) -> Any:
        jvm: Any = self._session.sparkContext._jvm  # noqa: SLF001  Delta shows transactions to the JVM only
        log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(self._session._jsparkSession, self._path)  # noqa: SLF001
        nothing = jvm.scala.Option.empty()
        return log.update(False, nothing, nothing)

    @cached_property
    def _path(self) -> str:
        row = self.delta.detail().select("location").first()
        assert row is not None
        return str(row.location)


class Tables:
    """The tables of a log in a folder, or in a schema of the catalog (`schema:NAME`)."""

    def __init__(self, session: SparkSession, warehouse: str, log_id: str) -> None:
        self._session = session
        self._log_id = log_id
        self._warehouse = warehouse if "://" in warehouse or _schema(warehouse) else str(Path(warehouse).resolve())
        self.changes = self._table(CHANGES)
        self.quads = self._table(QUADS)
        self.namespaces = self._table(NAMESPACES)

    def create(self, *, deletion_vectors: bool = True) -> None:
        """Make the tables that are not there. Raises UsageError where they are of another log."""
        for table in (CHANGES, NAMESPACES, QUADS):
            properties = {
                "delta.enableDeletionVectors": str(deletion_vectors).lower(),
                "delta.enableChangeDataFeed": str(table.has_change_feed).lower(),
                _LOG_PROPERTY: self._log_id,
                _FORMAT_PROPERTY: _FORMAT,
            }
            builder = DeltaTable.createIfNotExists(self._session)
            folder = self._folder(table.name)
            builder = builder.location(folder) if folder else builder.tableName(self._identifier(table.name))
            builder = builder.addColumns(StructType.fromDDL(table.columns)).clusterBy(table.cluster_by)
            for name, value in properties.items():
                builder = builder.property(name, value)
            builder.execute()
        self.check()

    def check(self) -> None:
        """Raise UsageError where the tables are missing, or those of another log or a newer format."""
        for table in (self.changes, self.namespaces, self.quads):
            found = table.properties()
            if found.get(_LOG_PROPERTY) != self._log_id:
                raise UsageError(f"{table.identifier} is of another log: give each log a warehouse of its own")
            if found.get(_FORMAT_PROPERTY) != _FORMAT:
                raise UsageError(f"{table.identifier} was made by a newer patchlog: use that one")

    def quads_position(self) -> QuadsPosition:
        """How far `quads` is."""
        return QuadsPosition.of(self.quads.number())

    def _folder(self, name: str) -> str | None:
        return None if _schema(self._warehouse) else f"{self._warehouse.rstrip('/')}/{name}"

    def _identifier(self, name: str) -> str:
        return f"{_schema(self._warehouse)}.{name}" if _schema(self._warehouse) else f"delta.`{self._folder(name)}`"

    def _table(self, table: Table) -> LogTable:
        return LogTable(self._session, table, self._identifier(table.name), self._log_id)


def _schema(warehouse: str) -> str | None:
    return warehouse.removeprefix(_SCHEMA) if warehouse.startswith(_SCHEMA) else None


@contextmanager
def _settings(session: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    for name, value in settings.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name in settings:
            session.conf.unset(name)
