"""One commit to a Delta table that takes rows out by where they stand, and puts others in.

Delta's own MERGE looks for the rows that it changes up to three times, and reads all of their columns for the change
feed. Who knows where rows stand can have deletion vectors written for them, by the code by which Delta's DELETE does
it, and the change feed follows from those. Delta's Python does not have it, so it is asked for in the JVM.

Nobody sees half of it. Delta refuses the commit where another has changed meanwhile what was read here, and raises what
`spark.conflicts` knows. What is not committed leaves files that VACUUM takes.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as everybody has it

from spark.data_files import PREFIX_IN_STATISTICS, DataFile
from spark.deletion_vectors import DeletionVector

__all__ = ["FILE", "ROW", "RowCommit", "last_number"]

FILE: Final = "in_file"
ROW: Final = "at_row"
_PLAIN_PATH: Final = re.compile(r"[\w.=-]+(/[\w.=-]+)*", re.ASCII)
"""A path that is the same however it is quoted, and relative."""


class RowCommit:
    """A transaction on a table that has deletion vectors, under the numbers of one application.

    With `only`, a condition on its partitions, it sees nothing beside them, and nothing beside them is in its way. One
    that only puts rows in has nothing in its way but a commit of the same application.
    """

    def __init__(self, session: SparkSession, delta_log: Any, application: str, only: Column | None = None) -> None:
        self._session = session
        self._delta: Any = self._jvm.org.apache.spark.sql.delta
        self._log = delta_log
        self._application = application
        self._nothing = self._jvm.scala.Option.empty()
        self._actions = self._none = _object(self._jvm.scala.collection.immutable, "Nil")
        self._only = only
        self._takes_out = False
        self._transaction = delta_log.startTransaction(self._nothing, self._nothing)

    @property
    def number(self) -> int:
        """The number of the last commit of the application, -1 before the first."""
        # Delta's own `txnVersion` notes this too, but reckons its log up for the number.
        self._transaction.readTxn().addOne(self._application)
        return last_number(self._transaction.snapshot(), self._application)

    @cached_property
    def _files(self) -> Any:
        """The files that may be read. Delta is told by this what must not change meanwhile."""
        return self._transaction.filterFiles(self._none.appended(self._resolved(self._only)), False)

    @property
    def is_empty(self) -> bool:
        """Whether the table has no rows."""
        return bool(self._files.isEmpty())

    def rows(self) -> DataFrame:
        """The rows, and where each stands: FILE and ROW."""
        return self._read(self._files).select(
            "*", F.col("_metadata.file_path").alias(FILE), F.col("_metadata.row_index").alias(ROW)
        )

    def rows_by_file(self) -> DataFrame:
        """The rows, and the FILE of each."""
        return self._read(self._files).select("*", F.col("_metadata.file_path").alias(FILE))

    def data_files(self) -> list[DataFile] | None:
        """The files that `rows` reads; None where they are not to be read by others than Spark."""
        folder = self._log.dataPath().toUri()
        is_mapped = self._transaction.metadata().columnMappingMode().name() != "none"
        if folder.getScheme() != "file" or is_mapped:
            return None
        found = [self._data_file(add, folder) for add in _each(self._files)]
        return None if None in found else [file for file in found if file]

    def _data_file(self, add: Any, folder: Any) -> DataFile | None:
        told = json.loads(add.json())["add"]
        name, path = f"{folder.toString()}/{told['path']}", f"{folder.getPath()}/{told['path']}"
        if not _PLAIN_PATH.fullmatch(told["path"]):
            place = self._place(told["path"])
            if place.getScheme() != "file":
                return None
            name, path = place.toString(), place.getPath()
        vector = told.get("deletionVector")
        if vector is None:
            return DataFile(name, path, told["size"], None)
        if vector["storageType"] == "i":
            return None
        place = add.deletionVector().absolutePath(self._log.dataPath()).toUri()
        return DataFile(
            name, path, told["size"], DeletionVector(place.getPath(), vector.get("offset", 0), vector["sizeInBytes"])
        )

    def _name(self, add: Any) -> str:
        return str(self._place(add.path()).toString())

    def _place(self, path: str) -> Any:
        operations = _object(self._delta.util, "DeltaFileOperations")
        return operations.absolutePath(self._log.dataPath().toString(), path).toUri()

    def take_out(self, places: DataFrame) -> None:
        """Take out the rows that stand at FILE and ROW."""
        self._takes_out = True
        option, session = self._jvm.scala.Option.apply, _java(self._session)
        commands = self._delta.commands
        deletes = _object(commands, "DMLWithDeletionVectorsHelper")
        vectors = _object(commands, "DeletionVectorBitmapGenerator").buildRowIndexSetsForFilesMatchingCondition(
            session,
            self._transaction,
            True,
            _java(places),
            self._files,
            self._resolved(None),
            option(_java_column(F.col(FILE))),
            option(_java_column(F.col(ROW))),
        )
        files = deletes.generateCandidateFileMap(self._log.dataPath(), self._files)
        touched = deletes.findFilesWithMatchingRows(self._transaction, files, vectors)
        changed = deletes.processUnmodifiedData(session, touched, self._transaction.snapshot(), PREFIX_IN_STATISTICS)
        self._actions = self._actions.appendedAll(changed.productElement(0))

    def take_out_files(self, names: Iterable[str] | None = None) -> None:
        """Take out all rows, or those of some files, each as it is in FILE."""
        self._takes_out = True
        wanted, now = None if names is None else set(names), int(time.time() * 1000)
        for add in _each(self._files):
            if wanted is None or self._name(add) in wanted:
                self._actions = self._actions.appended(add.removeWithTimestamp(now, True))

    def put_in(self, rows: DataFrame) -> None:
        """Put in rows that have all columns of the table."""
        self._actions = self._actions.appendedAll(self._transaction.writeFiles(_java(rows)))

    def put_in_files(self, adds: Iterable[str]) -> None:
        """Put in files that stand in the table's folder, each as an `add` of Delta's log, in JSON."""
        parse = _object(self._delta.actions, "Action").fromJson
        for add in adds:
            self._actions = self._actions.appended(parse(add))

    def commit(self, number: int, *, source_rows: int = 0) -> None:
        """Do it, under this number. `source_rows`: from how many rows it follows, for the history of the table."""
        now = self._jvm.scala.Option.apply(int(time.time() * 1000))
        taken = self._delta.actions.SetTransaction(self._application, number, now)
        self._transaction.commit(self._actions.appended(taken), self._operation(source_rows))

    def _operation(self, source_rows: int) -> Any:
        """What the history of the table calls it.

        Not a manual update: after one Delta does not know what the table has, and reckons all of its log up.
        """
        nothing, none = self._nothing, self._none
        if not self._takes_out:
            append = self._jvm.org.apache.spark.sql.SaveMode.Append
            return getattr(self._delta, "DeltaOperations$Write")(append, *[nothing] * 8)
        metrics = self._jvm.org.apache.spark.sql.execution.metric.SQLMetrics
        rows = metrics.createMetric(_java(self._session).sparkContext(), "source rows")
        rows.set(source_rows)
        measured = _object(self._jvm.scala.collection.immutable, "Map").empty().updated("operationNumSourceRows", rows)
        self._transaction.registerSQLMetrics(_java(self._session), measured)
        return getattr(self._delta, "DeltaOperations$Merge")(nothing, nothing, nothing, nothing, none, none, none)

    @property
    def _jvm(self) -> Any:
        return self._session.sparkContext._jvm  # noqa: SLF001  Delta has all of this in the JVM only

    def _read(self, files: Any) -> DataFrame:
        found = self._log.createDataFrame(self._transaction.snapshot(), files, False, self._nothing)
        return DataFrame(found, self._session)

    def _resolved(self, condition: Column | None) -> Any:
        """A condition on columns of the table as Delta takes it; no condition is one that always holds."""
        if condition is None:
            always = _java_column(F.lit(True))
            return self._jvm.org.apache.spark.sql.classic.ExpressionUtils.expression(always)
        return _java(self._read(self._none).where(condition)).queryExecution().analyzed().condition()


def last_number(snapshot: Any, application: str) -> int:
    """The number of the last commit of an application in a snapshot of Delta, -1 before the first."""
    checksum = snapshot.checksumOpt()
    if checksum.isDefined() and (noted := checksum.get().setTransactions()).isDefined():
        # A commit notes them beside it; otherwise Delta has to reckon all of its log up, which takes three jobs.
        all_ = noted.get()
        found = [one for one in map(all_.apply, range(all_.size())) if one.appId() == application]
        return int(found[0].version()) if found else -1
    of_application = snapshot.transactions().get(application)
    return int(of_application.get()) if of_application.isDefined() else -1


def _each(of_scala: Any) -> Iterator[Any]:
    iterator = of_scala.iterator()
    while iterator.hasNext():
        yield iterator.next()


def _object(package: Any, name: str) -> Any:
    """An object of Scala."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")


def _java(of_python: DataFrame | SparkSession) -> Any:
    """What stands in the JVM for something of PySpark."""
    return of_python._jsparkSession if isinstance(of_python, SparkSession) else of_python._jdf  # noqa: SLF001


def _java_column(column: Column) -> Any:
    return column._jc  # noqa: SLF001
