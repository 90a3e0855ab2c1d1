"""The Delta tables of a log: what they are, and how far each has come.

Each commit carries a transaction identifier of Delta: an application, which is the table and the log, and the version
of the log that the commit brings the table to. Delta skips what it has seen, so a commit that is made again, by a job
that crashed or by another one, does nothing. The metadata of the same commit has the whole position: log id, version
and chain hash. `spark.reconciling` compares the two with each other, the rows and the log before work goes on.

Version 0 is what a log begins with: nothing, or a snapshot. A table that has seen nothing yet is at -1.

The tables of one log are clustered. Several logs may share tables, which then begin with a column `log` and are
partitioned by it, so that the commits of one log are never in the way of those of another. Each log has its own
positions, and sees its own rows only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Self

from delta.tables import DeltaMergeBuilder, DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as everybody has it
from pyspark.sql.types import StructType

from patchlog.errors import UsageError
from patchlog.log.position import Position
from patchlog.log.records import EMPTY_HEAD
from spark.commit_history import Content, content_of
from spark.origin import LogIdentity, Range
from spark.row_commit import FILE, RowCommit, last_number

__all__ = [
    "CHANGES",
    "LOG_PROPERTY",
    "MOST_TRANSACTIONS",
    "NAMESPACES",
    "QUADS",
    "REBUILD",
    "LogTable",
    "Table",
    "Tables",
    "quoted",
    "settings",
]

_TXN: Final = "spark.databricks.delta.write.txn"
_USER_METADATA: Final = "spark.databricks.delta.commitInfo.userMetadata"
LOG_PROPERTY: Final = "patchlog.log"
"""The id of the log; in shared tables `*`, and for each log a property `patchlog.log.NAME` with its id."""

_SEVERAL: Final = "*"
_LOG_COLUMN: Final = "log STRING NOT NULL"
_FORMAT_PROPERTY: Final = "patchlog.format"
_FORMAT: Final = "2"
_RETENTION: Final = "delta.setTransactionRetentionDuration"
_GAPS_PROPERTY: Final = "patchlog.gaps"
MOST_TRANSACTIONS: Final = {"spark.databricks.delta.setTransactionsInCrc.maxAllowed": "10000"}
"""So many logs may share tables without Delta computing its state anew to find a transaction identifier."""

_DELETION_VECTORS: Final = "delta.enableDeletionVectors"
_DELETION_VECTORS_WHEN: Final = "patchlog.deletionVectors"
_LARGE: Final = "when-large"
LARGE_BYTES: Final = 16 << 20
"""From this size on, some 300,000 quads, a MERGE that writes whole files anew costs more than deletion vectors."""

REBUILD: Final = "`apply --rebuild` takes the tables back to what both have, and goes on from there"

_LABEL: Final = 40
_CONSUMER_HASH: Final = 12
_SCHEMA: Final = "schema:"
_NO_COPY_OF_SOURCE: Final = {"spark.databricks.delta.merge.materializeSource": "none"}


@dataclass(frozen=True, slots=True)
class Table:
    """What a table is made as."""

    name: str
    columns: str
    cluster_by: str
    has_change_feed: bool
    may_have_deletion_vectors: bool


CHANGES: Final = Table(
    "changes",
    "version BIGINT NOT NULL, position BIGINT NOT NULL, operation STRING NOT NULL, graph STRING NOT NULL, "
    "subject STRING NOT NULL, predicate STRING NOT NULL, object STRING NOT NULL, patch_id STRING NOT NULL, "
    "time TIMESTAMP NOT NULL",
    "version",
    has_change_feed=False,
    may_have_deletion_vectors=False,
)
QUADS: Final = Table(
    "quads",
    "graph STRING NOT NULL, subject STRING NOT NULL, predicate STRING NOT NULL, object STRING NOT NULL, "
    "since BIGINT NOT NULL",
    "subject",
    has_change_feed=True,
    may_have_deletion_vectors=True,
)
NAMESPACES: Final = Table(
    "namespaces",
    "graph STRING NOT NULL, name STRING NOT NULL, iri STRING NOT NULL, since BIGINT NOT NULL",
    "name",
    has_change_feed=True,
    # All of it is rewritten at less cost than a deletion vector is made.
    may_have_deletion_vectors=False,
)


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
    """One table of one log, or what is of that log in a table that several share."""

    def __init__(self, session: SparkSession, table: Table, warehouse: Warehouse, log: LogIdentity) -> None:
        self._session = session
        self._warehouse = warehouse
        self._application = f"patchlog:{log.id}:{table.name}"
        self.log: Final = log
        self.table: Final = table
        self._known_content: tuple[int, Content] | None = None
        self.identifier: Final = warehouse.identifier(table.name)

    def create(self, properties: dict[str, str], *, is_shared: bool = False) -> None:
        """Make it. One that is shared knows this log then."""
        builder, name = DeltaTable.createIfNotExists(self._session), self.table.name
        if self._warehouse.schema:
            builder = builder.tableName(self.identifier)
        else:
            builder = builder.location(self._warehouse.path(name))
        builder = builder.addColumns(self._columns(is_shared=is_shared))
        builder = builder.partitionedBy("log") if is_shared else builder.clusterBy(self.table.cluster_by)
        owner = {LOG_PROPERTY: _SEVERAL, self._known_as: self.log.id} if is_shared else {LOG_PROPERTY: self.log.id}
        for name, value in (properties | owner).items():
            builder = builder.property(name, value)
        # A default of the session would have the positions expire.
        with settings(self._session, {f"spark.databricks.delta.properties.defaults.{_RETENTION[6:]}": None}):
            builder.execute()

    def set_properties(self, properties: dict[str, str]) -> None:
        """Give it properties, unless it has them."""
        if properties != self.properties(*properties):
            given = ", ".join(f"{quoted(name)} = {quoted(value)}" for name, value in properties.items())
            with settings(self._session, MOST_TRANSACTIONS):
                self._session.sql(f"ALTER TABLE {self.identifier} SET TBLPROPERTIES ({given})")

    def let_in(self) -> None:
        """Let a table that several logs share know this one, unless it knows one of that name."""
        if not self.properties(self._known_as):
            self.set_properties({self._known_as: self.log.id})

    def own(self) -> None:
        """Have the table be of this log, whatever it was of."""
        self.set_properties({self._known_as if self.is_shared else LOG_PROPERTY: self.log.id})

    @property
    def is_of_this_log(self) -> bool:
        """Whether it is of this log, or knows it where it is shared, and not another one of the name."""
        known_as = self._known_as if self.is_shared else LOG_PROPERTY
        return self.properties(known_as).get(known_as, self.log.id) == self.log.id

    def check(self) -> None:
        """Raise UsageError where it is missing, or that of another log or a newer format."""
        found = self.properties()
        if not found:
            raise UsageError(f"there is no Delta table {self.identifier}: `python -m spark apply` makes it")
        if (format_ := found.get(_FORMAT_PROPERTY)) != _FORMAT:
            raise UsageError(
                f"{self.identifier} has format {format_}, and this patchlog makes and knows format {_FORMAT}: use the "
                "patchlog that made it, or apply the log to a new warehouse"
            )
        if not self.is_shared and found[LOG_PROPERTY] != self.log.id:
            raise UsageError(
                f"{self.identifier} is of another log: give each log a warehouse of its own, or one that is --shared; "
                f"where this log has replaced that one, {REBUILD}"
            )
        if self.is_shared and found.get(self._known_as) != self.log.id:
            what = "another log of the name" if self._known_as in found else "nothing of the log"
            raise UsageError(
                f"{self.identifier} has {what} {self.log.name}: `python -m spark apply --shared` brings one log of a "
                f"name there; where this log has replaced that one, {REBUILD}"
            )
        if _RETENTION in self.properties(_RETENTION):
            raise UsageError(
                f"{self.identifier} has the property {_RETENTION}, by which Delta forgets how far the table is: ALTER "
                f"TABLE {self.identifier} UNSET TBLPROPERTIES ('{_RETENTION}')"
            )

    def check_kind(self, *, is_shared: bool) -> None:
        """Raise UsageError where it is of one log and should be shared, or the other way round."""
        if self.is_shared and not is_shared:
            raise UsageError(f"{self.identifier} is shared by several logs: say --shared, or name another warehouse")
        if is_shared and not self.is_shared:
            raise UsageError(f"{self.identifier} is of one log, and not --shared: name another warehouse")

    @cached_property
    def is_shared(self) -> bool:
        """Whether several logs are in it. Nothing changes that of a table that is there."""
        return self.properties().get(LOG_PROPERTY) == _SEVERAL

    @property
    def local_folder(self) -> Path | None:
        """The folder of the table, where it is one of this machine or of all that work on it."""
        place = self._delta_log.dataPath().toUri()
        return Path(place.getPath()) if place.getScheme() == "file" else None

    @property
    def columns(self) -> list[str]:
        """The names of all columns."""
        return self._columns(is_shared=self.is_shared).names

    def read(self, delta_version: int | None = None) -> DataFrame:
        """The rows of this log as they are now, or at a Delta version.

        Raises AnalysisException for one that Delta has forgotten.
        """
        past = "" if delta_version is None else f" VERSION AS OF {delta_version}"
        rows = self._session.sql(f"SELECT * FROM {self.identifier}{past}")  # noqa: S608
        if self.is_shared:
            rows = rows.where(F.col("log") == self.log.name)
        # Others may have added columns.
        return rows.select(*self._columns(is_shared=False).names)

    def merge(self, batch: DataFrame, condition: str) -> DeltaMergeBuilder:
        """Begin a MERGE of rows, called `batch`, into those of this log, which are called as the table is."""
        where = F.expr(condition)
        if self.is_shared:
            batch = batch.withColumn("log", F.lit(self.log.name))
            where = (F.col(f"{self.table.name}.log") == self.log.name) & where
        return self.delta.alias(self.table.name).merge(batch.alias("batch"), where)

    @property
    def delta(self) -> DeltaTable:
        """The table for MERGE and maintenance."""
        return DeltaTable.forName(self._session, self.identifier)

    def properties(self, *names: str) -> dict[str, str]:
        """Those of its properties that it has, else those that this module gives; none where there is no table."""
        snapshot = self._snapshot()
        if snapshot.version() < 0:
            return {}
        configuration = snapshot.metadata().configuration()
        names = names or (LOG_PROPERTY, _FORMAT_PROPERTY, self._known_as)
        return {name: str(configuration.apply(name)) for name in names if configuration.contains(name)}

    def number(self) -> int:
        """The number of the last commit of this log, -1 before the first."""
        return last_number(self._snapshot(), self._application)

    def content(self) -> Content:
        """The last commit of this log that the content of the table has, as its own metadata says."""
        newest = int(self._snapshot().version())
        if self._known_content is None or self._known_content[0] != newest:
            found = content_of(self._delta_log, newest, self._jvm, self._application, self.log.id)
            self._known_content = newest, found
        return self._known_content[1]

    def position(self) -> Position:
        """How far the table is. The hash is missing where only an earlier version of patchlog has written."""
        number, content = self.number(), self.content()
        return self.log.position(number, content.hash if content.version == number else None)

    def note(self, position: Position, *, is_reset: bool = False) -> None:
        """Set the position, without a change of rows, unless another job was quicker."""
        commit = self.begin_row_commit()
        if commit.number == self.number():
            self._set(commit, position, is_reset=is_reset)

    def clear(self) -> None:
        """Take out all rows of this log, and begin again."""
        commit = self.begin_row_commit()
        commit.take_out_files()
        self._set(commit, self.log.position(-1, EMPTY_HEAD.hash), is_reset=True)

    def keep_only(self, rows: Callable[[DataFrame], DataFrame], wanted: Column, position: Position) -> None:
        """Set the position, and write those files again that have rows which are `wanted`: `rows` says what of them."""
        commit = self.begin_row_commit()
        found = commit.rows_by_file()
        files = [row[0] for row in found.where(wanted).select(FILE).distinct().collect()]
        if files:
            kept = rows(found.where(F.col(FILE).isin(files)).drop(FILE))
            commit.put_in(kept.select(*self.columns))
            commit.take_out_files(files)
        self._set(commit, position)

    def _set(self, commit: RowCommit, position: Position, *, is_reset: bool = False) -> None:
        before = self.number()
        with self.saying(Range(before, position.version), position.hash, is_reset=is_reset):
            commit.commit(position.version)

    def last_row_version(self) -> int:
        """The last version of the log in the rows of `changes`, -1 where there is none. Statistics of files say so."""
        row: Any = self.read().agg(F.max("version")).first()
        return -1 if row[0] is None else int(row[0])

    @property
    def is_empty(self) -> bool:
        """Whether the table has no rows of this log."""
        return not self.files() or (self.is_shared and self.read().isEmpty())

    def present(self) -> tuple[int, int]:
        """The last Delta version, and the number of the last commit of this log in it."""
        snapshot = self._snapshot()
        return int(snapshot.version()), last_number(snapshot, self._application)

    def files(self) -> int:
        """How many files the table has."""
        snapshot = self._snapshot()
        checksum = snapshot.checksumOpt()
        return int(checksum.get().numFiles() if checksum.isDefined() else snapshot.numOfFiles())

    def _bytes(self) -> int:
        snapshot = self._snapshot()
        checksum = snapshot.checksumOpt()
        return int(checksum.get().tableSizeBytes() if checksum.isDefined() else snapshot.sizeInBytes())

    @property
    def has_deletion_vectors(self) -> bool:
        """Whether rows can be taken out without their file being written anew."""
        return self.properties(_DELETION_VECTORS).get(_DELETION_VECTORS) == "true"

    def adopt_deletion_vectors(self) -> None:
        """Have deletion vectors from now on, where the table was made to have them once it is large, and is."""
        found = self.properties(_DELETION_VECTORS, _DELETION_VECTORS_WHEN)
        if found != {_DELETION_VECTORS: "false", _DELETION_VECTORS_WHEN: _LARGE} or self._bytes() < LARGE_BYTES:
            return
        self.set_properties({_DELETION_VECTORS: "true"})

    def begin_row_commit(self) -> RowCommit:
        """Begin a commit of rows of this log, under its numbers. Rows are taken out by deletion vectors only."""
        only = (F.col("log") == self.log.name) if self.is_shared else None
        return RowCommit(self._session, self._delta_log, self._application, only)

    def with_all_columns(self, rows: DataFrame) -> DataFrame:
        """Rows of this log as they stand in the table."""
        return (rows.withColumn("log", F.lit(self.log.name)) if self.is_shared else rows).select(*self.columns)

    def saying(self, whole: Range, hash: bytes | None, *, is_reset: bool = False) -> AbstractContextManager[None]:
        """Have what is committed inside say which versions of the log it took, and the chain hash at the last."""
        says: dict[str, Any] = {"log": self.log.name, "from": whole.after, "to": whole.until}
        if hash is not None:
            says |= {"log_id": self.log.id, "hash": hash.hex()}
        if is_reset:
            says["is_reset"] = True
        return settings(self._session, {_USER_METADATA: json.dumps(says)} | MOST_TRANSACTIONS)

    @contextmanager
    def transaction(self, whole: Range, hash: bytes | None, *, is_from_log: bool = False) -> Iterator[None]:
        """Make what is committed inside the commit of these versions.

        What comes from a log is the same however often it is read, so that Delta need not keep a copy of it.
        """
        values = {f"{_TXN}AppId": self._application, f"{_TXN}Version": str(whole.until)}
        if is_from_log:
            values |= _NO_COPY_OF_SOURCE
        with self.saying(whole, hash), settings(self._session, values):
            yield

    def gaps(self) -> list[Range] | None:
        """Versions that `changes` skips, from the first to the second: a snapshot stands for them.

        None where the table was made by a version of patchlog that did not note them.
        """
        found = self.properties(self._gaps_property).get(self._gaps_property)
        return None if found is None else [Range.parse(gap) for gap in found.split(",") if gap]

    def note_gaps(self, gaps: Iterable[Range]) -> None:
        """Note that `changes` skips these versions."""
        noted = {*(self.gaps() or ()), *gaps}
        ordered = sorted(noted, key=lambda gap: gap.until)
        self.set_properties({self._gaps_property: ",".join(map(str, ordered))})

    @property
    def _gaps_property(self) -> str:
        return f"{_GAPS_PROPERTY}.{self.log.name}" if self.is_shared else _GAPS_PROPERTY

    def said(self) -> list[tuple[int, dict[str, Any]]]:
        """What the commits of this log have said, with their Delta versions, the newest first."""
        rows = self.delta.history().where("userMetadata IS NOT NULL").select("version", "userMetadata").collect()
        said = [(row.version, json.loads(row.userMetadata)) for row in rows if row.userMetadata.startswith('{"log"')]
        return [one for one in said if one[1]["log"] == self.log.name] if self.is_shared else said

    def consumer_name(self) -> str:
        """A name for the reader of the log that writes this table."""
        place = self._warehouse.folder or str(self._warehouse.schema)
        label = re.sub(r"[^A-Za-z0-9_]+", "-", place.rsplit("/", 1)[-1]).strip("-")[:_LABEL]
        table = f"{self._snapshot().metadata().id()} {self._delta_log.dataPath().toString()}"
        return "-".join(filter(None, ("spark", label, sha256(table.encode()).hexdigest()[:_CONSUMER_HASH])))

    @property
    def _known_as(self) -> str:
        return f"{LOG_PROPERTY}.{self.log.name}"

    def _columns(self, *, is_shared: bool) -> StructType:
        columns = StructType.fromDDL(f"{_LOG_COLUMN}, {self.table.columns}" if is_shared else self.table.columns)
        assert isinstance(columns, StructType)
        return columns

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
    """The tables of a log, its own or shared ones, in a folder or in a schema of the catalog (`schema:NAME`)."""

    def __init__(self, session: SparkSession, warehouse: str, log: LogIdentity) -> None:
        self.log: Final = log
        place = Warehouse.of(warehouse)
        self.changes: Final = LogTable(session, CHANGES, place, log)
        self.namespaces: Final = LogTable(session, NAMESPACES, place, log)
        self.quads: Final = LogTable(session, QUADS, place, log)

    def create(self, *, deletion_vectors: bool | None = None, is_shared: bool = False, is_checked: bool = True) -> None:
        """Make the tables that are not there. Raises UsageError where they are of another log or of the other kind.

        What is not checked may be of another log, to be rebuilt. Without a word about deletion vectors, which not
        every reader knows, they come with the need for them.
        """
        for table in self.all:
            if not table.properties():
                may_have_vectors = table.table.may_have_deletion_vectors
                properties = {
                    _DELETION_VECTORS: str(may_have_vectors and deletion_vectors is True).lower(),
                    "delta.enableChangeDataFeed": str(table.table.has_change_feed).lower(),
                    _FORMAT_PROPERTY: _FORMAT,
                }
                if table.table is CHANGES and not is_shared:
                    properties[_GAPS_PROPERTY] = ""
                if may_have_vectors and deletion_vectors is None:
                    properties[_DELETION_VECTORS_WHEN] = _LARGE
                table.create(properties, is_shared=is_shared)
            table.check_kind(is_shared=is_shared)
            if is_shared:
                table.let_in()
        if is_checked:
            self.check()

    def check(self) -> None:
        """Raise UsageError where the tables are missing, or those of another log or a newer format."""
        for table in self.all:
            table.check()

    def consumer_name(self) -> str:
        """The name by which the log knows this warehouse: another one for each, also for copies of a folder."""
        return self.changes.consumer_name()

    @property
    def all(self) -> tuple[LogTable, LogTable, LogTable]:
        """All of them."""
        return self.changes, self.namespaces, self.quads


def quoted(text: str) -> str:
    """A text in SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


@contextmanager
def settings(session: SparkSession, values: Mapping[str, str | None]) -> Iterator[None]:
    """Have settings of a session inside, or not have them where they are None; outside they are as they were."""
    before = {name: session.conf.get(name, None) for name in values}
    _set_all(session, values)
    try:
        yield
    finally:
        _set_all(session, before)


def _set_all(session: SparkSession, values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            session.conf.unset(name)
        else:
            session.conf.set(name, value)
