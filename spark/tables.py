"""The Delta tables of a log: what they are, and how far each has come.

Each commit carries a transaction identifier of Delta: an application, which is the table and the log, and a number that
only rises. Delta skips what it has seen, so a commit that is made again, by a job that crashed or by another one, does
nothing. The number is also the position: nothing else says how far a table is, so nothing else can be lost.

    table        number of a commit that brings it to version V
    changes      V
    namespaces   V
    quads        2V for the first of two commits, 2V + 1 for the last or only one

Version 0 is what a log begins with: nothing, or a snapshot. A table that has seen nothing yet is at -1.
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
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from patchlog.errors import UsageError

__all__ = ["CHANGES", "LOG_PROPERTY", "NAMESPACES", "QUADS", "LogTable", "QuadsPosition", "Table", "Tables", "settings"]

_TXN: Final = "spark.databricks.delta.write.txn"
_USER_METADATA: Final = "spark.databricks.delta.commitInfo.userMetadata"
LOG_PROPERTY: Final = "patchlog.log"
_FORMAT_PROPERTY: Final = "patchlog.format"
_FORMAT: Final = "1"
_SCHEMA: Final = "schema:"
_NO_COPY_OF_SOURCE: Final = {"spark.databricks.delta.merge.materializeSource": "none"}


@dataclass(frozen=True, slots=True)
class Table:
    """What a table is made as."""

    name: str
    columns: str
    cluster_by: str
    has_change_feed: bool
    has_deletion_vectors: bool


CHANGES: Final = Table(
    "changes",
    "version BIGINT NOT NULL, position BIGINT NOT NULL, operation STRING NOT NULL, graph STRING NOT NULL, "
    "subject STRING NOT NULL, predicate STRING NOT NULL, object STRING NOT NULL, patch_id STRING NOT NULL, "
    "time TIMESTAMP NOT NULL",
    "version",
    has_change_feed=False,
    has_deletion_vectors=False,
)
QUADS: Final = Table(
    "quads",
    "graph STRING NOT NULL, subject STRING NOT NULL, predicate STRING NOT NULL, object STRING NOT NULL, "
    "since BIGINT NOT NULL",
    "subject",
    has_change_feed=True,
    has_deletion_vectors=True,
)
NAMESPACES: Final = Table(
    "namespaces",
    "graph STRING NOT NULL, name STRING NOT NULL, iri STRING NOT NULL, since BIGINT NOT NULL",
    "name",
    has_change_feed=True,
    # All of it is rewritten at less cost than a deletion vector is made.
    has_deletion_vectors=False,
)


@dataclass(frozen=True, slots=True)
class QuadsPosition:
    """How far `quads` is. `is_pending` says that of the two commits for `version` the second is still to come."""

    version: int
    is_pending: bool

    @classmethod
    def of(cls, number: int) -> Self:
        """The position that the number of a transaction means."""
        return cls(number // 2, is_pending=number % 2 == 0)


@dataclass(frozen=True, slots=True)
class Warehouse:
    """A folder of tables, or a schema of the catalog (`schema:NAME`)."""

    folder: str | None
    schema: str | None = None

    @classmethod
    def of(cls, text: str) -> Self:
        """The warehouse that is written so."""
        if text.startswith(_SCHEMA):
            return cls(None, text.removeprefix(_SCHEMA))
        return cls(text.rstrip("/") if "://" in text else str(Path(text).resolve()))

    def path(self, name: str) -> str:
        """The folder of a table, where it has one that is known."""
        return f"{self.folder}/{name}"

    def identifier(self, name: str) -> str:
        """A table in SQL."""
        return f"{self.schema}.{name}" if self.schema else f"delta.`{self.path(name)}`"


class LogTable:
    """One table of one log."""

    def __init__(self, session: SparkSession, table: Table, warehouse: Warehouse, log_id: str) -> None:
        self._session = session
        self._warehouse = warehouse
        self._application = f"patchlog:{log_id}:{table.name}"
        self.table: Final = table
        self.identifier: Final = warehouse.identifier(table.name)

    def create(self, properties: dict[str, str]) -> None:
        """Make it."""
        builder, name = DeltaTable.createIfNotExists(self._session), self.table.name
        if self._warehouse.schema:
            builder = builder.tableName(self.identifier)
        else:
            builder = builder.location(self._warehouse.path(name))
        columns = StructType.fromDDL(self.table.columns)
        assert isinstance(columns, StructType)
        builder = builder.addColumns(columns).clusterBy(self.table.cluster_by)
        for name, value in properties.items():
            builder = builder.property(name, value)
        builder.execute()

    def read(self) -> DataFrame:
        """The table as it is now."""
        return self._session.table(self.identifier)

    @property
    def delta(self) -> DeltaTable:
        """The table for MERGE and maintenance."""
        return DeltaTable.forName(self._session, self.identifier)

    def properties(self) -> dict[str, str]:
        """The properties that this module gives, empty where there is no table of ours."""
        snapshot = self._snapshot()
        if snapshot.version() < 0:
            return {}
        configuration = snapshot.metadata().configuration()
        names = (LOG_PROPERTY, _FORMAT_PROPERTY)
        return {name: str(configuration.apply(name)) for name in names if configuration.contains(name)}

    def number(self) -> int:
        """The number of the last commit of this log, -1 before the first."""
        snapshot = self._snapshot()
        checksum = snapshot.checksumOpt()
        if checksum.isDefined() and (noted := checksum.get().setTransactions()).isDefined():
            # A commit notes them beside it; otherwise Delta has to reckon all of its log up, which takes three jobs.
            all_ = noted.get()
            found = [one for one in map(all_.apply, range(all_.size())) if one.appId() == self._application]
            return int(found[0].version()) if found else -1
        of_application = snapshot.transactions().get(self._application)
        return int(of_application.get()) if of_application.isDefined() else -1

    def files(self) -> int:
        """How many files the table has."""
        snapshot = self._snapshot()
        checksum = snapshot.checksumOpt()
        return int(checksum.get().numFiles() if checksum.isDefined() else snapshot.numOfFiles())

    def bytes(self) -> int:
        """How large its files are."""
        return int(self._snapshot().sizeInBytes())

    @contextmanager
    def transaction(
        self, number: int, *, says: dict[str, Any] | None = None, is_from_log: bool = False
    ) -> Iterator[None]:
        """Make what is committed inside the commit of that number; `says` stands in the history of the table.

        What comes from a log is the same however often it is read, so that Delta need not keep a copy of it.
        """
        values = {f"{_TXN}AppId": self._application, f"{_TXN}Version": str(number)}
        if is_from_log:
            values |= _NO_COPY_OF_SOURCE
        if says is not None:
            values[_USER_METADATA] = json.dumps(says)
        with settings(self._session, values):
            yield

    def said(self) -> list[tuple[int, dict[str, Any]]]:
        """What the commits of this log have said, with their Delta versions, the newest first."""
        rows = self.delta.history().where("userMetadata IS NOT NULL").select("version", "userMetadata").collect()
        return [(row.version, json.loads(row.userMetadata)) for row in rows if row.userMetadata.startswith('{"log"')]

    def _snapshot(self) -> Any:
        nothing = self._jvm.scala.Option.empty()
        return self._delta_log.update(False, nothing, nothing)

    @cached_property
    def _delta_log(self) -> Any:
        place: Any = self._warehouse.path(self.table.name)
        if self._warehouse.schema:
            schema = self._jvm.scala.Option.apply(self._warehouse.schema)
            place = self._jvm.org.apache.spark.sql.catalyst.TableIdentifier(self.table.name, schema)
        return self._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(self._session._jsparkSession, place)  # noqa: SLF001

    @property
    def _jvm(self) -> Any:
        return self._session.sparkContext._jvm  # noqa: SLF001  Delta shows transactions to the JVM only


class Tables:
    """The tables of a log in a folder, or in a schema of the catalog (`schema:NAME`)."""

    def __init__(self, session: SparkSession, warehouse: str, log_id: str) -> None:
        self._session = session
        self._log_id = log_id
        self._warehouse = Warehouse.of(warehouse)
        self.changes = self._table(CHANGES)
        self.namespaces = self._table(NAMESPACES)
        self.quads = self._table(QUADS)

    def create(self, *, deletion_vectors: bool = True) -> None:
        """Make the tables that are not there. Raises UsageError where they are of another log."""
        for table in self._all:
            if not table.properties():
                has_vectors = deletion_vectors and table.table.has_deletion_vectors
                table.create(
                    {
                        "delta.enableDeletionVectors": str(has_vectors).lower(),
                        "delta.enableChangeDataFeed": str(table.table.has_change_feed).lower(),
                        LOG_PROPERTY: self._log_id,
                        _FORMAT_PROPERTY: _FORMAT,
                    }
                )
        self.check()

    def check(self) -> None:
        """Raise UsageError where the tables are missing, or those of another log or a newer format."""
        for table in self._all:
            found = table.properties()
            if not found:
                raise UsageError(f"there is no Delta table {table.identifier}: `python -m spark apply` makes it")
            if found.get(LOG_PROPERTY) != self._log_id:
                raise UsageError(f"{table.identifier} is of another log: give each log a warehouse of its own")
            if found.get(_FORMAT_PROPERTY) != _FORMAT:
                raise UsageError(f"{table.identifier} was made by a newer patchlog: use that one")

    @property
    def _all(self) -> tuple[LogTable, ...]:
        return self.changes, self.namespaces, self.quads

    def quads_position(self) -> QuadsPosition:
        """How far `quads` is."""
        return QuadsPosition.of(self.quads.number())

    def _table(self, table: Table) -> LogTable:
        return LogTable(self._session, table, self._warehouse, self._log_id)


@contextmanager
def settings(session: SparkSession, values: dict[str, str]) -> Iterator[None]:
    """Have settings of a session inside, which it does not have outside."""
    for name, value in values.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name in values:
            session.conf.unset(name)
