"""What others have changed in a Delta table of quads, commit by commit, as operations.

A table is a bag of rows, and a dataset is a set of quads. So the rows of a commit are first added up for each quad:

    more of it than before    the quad is added (it may have been there: to add it again changes nothing)
    less of it than before    the quad is deleted, unless the table still has a row of it behind that commit
    as many as before         nothing: an update of another column, a row that was only moved
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812  as everybody has it

from patchlog.errors import UsageError
from patchlog.log.records import time_of
from spark.origin import Range
from spark.reduction import QUAD
from spark.tables import LOG_PROPERTY

__all__ = ["BEGIN_ANEW", "Commit", "QuadTable"]

_FEED: Final = "delta.enableChangeDataFeed"
_NEEDED: Final = ("subject", "predicate", "object")
_MORE: Final = ("insert", "update_postimage")
BEGIN_ANEW: Final = "capture into a new log, which begins with what the table holds now"


@dataclass(frozen=True, slots=True)
class Commit:
    """A version of a Delta table, and what its history says of it."""

    version: int
    operation: str
    time: str
    fingerprint: str
    """What no other commit says of itself, so that a table that was put back and then changed is known."""


class QuadTable:
    """A Delta table with the columns subject, predicate, object, and graph or none: a folder, or a name of the catalog.

    Raises UsageError where it is none, or one that is not to be captured.
    """

    def __init__(self, session: SparkSession, table: str) -> None:
        self._session = session
        self._is_folder = "/" in table or Path(table).is_dir()
        self._place = table if "://" in table or not self._is_folder else str(Path(table).resolve())
        self.identifier: Final = f"delta.`{self._place}`" if self._is_folder else table
        try:
            found: Any = session.sql(f"DESCRIBE DETAIL {self.identifier}").first()
        except AnalysisException:
            raise UsageError(f"{table} is not a Delta table: name a folder, or a table of the catalog") from None
        self.id: Final[str] = found.id
        self.location: Final[str] = found.location
        self._check(found.properties)

    def newest(self) -> Commit:
        """The last commit."""
        return self._history(1)[-1]

    def commit_at(self, version: int) -> Commit | None:
        """The commit that made a version; None where the table has forgotten it."""
        found = [one for one in self._history(self.newest().version - version + 1) if one.version == version]
        return found[0] if found else None

    def commits(self, after: int) -> list[Commit]:
        """The commits behind a version. Raises UsageError where the table has forgotten some, or was replaced."""
        count = 1
        while True:
            # Commits may come meanwhile.
            found = self._history(count)
            lacking = found[0].version - after - 1
            if lacking <= 0:
                return [self._of_this_table(commit) for commit in found if commit.version > after]
            if len(found) < count:
                raise self._gone(Range(after, found[-1].version))
            count += lacking

    def contents(self, version: int) -> DataFrame:
        """The quads of a version, as operations that add them."""
        return (
            self._at(version)
            .distinct()
            .select(F.lit(version).cast("bigint").alias("version"), F.lit("+").alias("operation"), *QUAD)
        )

    def operations(self, versions: Range, *, has_duplicates: bool = True) -> DataFrame:
        """What the commits behind one version, up to another, have changed: version, operation and quad.

        A table that never holds a quad twice need not be looked at for what is left of a deleted one.
        """
        changes = self._changes(versions)
        more = changes.where("change > 0").withColumn("operation", F.lit("+"))
        less = changes.where("change < 0").withColumn("operation", F.lit("-"))
        if has_duplicates:
            in_the_end = (
                self._at(versions.until)
                .join(less.select(*QUAD).distinct(), [*QUAD], "left_semi")
                .groupBy(*QUAD)
                .agg(F.count("*").alias("in_the_end"))
            )
            left = "coalesce(in_the_end, 0) - coalesce(later, 0) > 0"
            less = less.join(in_the_end, [*QUAD], "left").where(f"NOT ({left})")
        columns = ("version", "operation", *QUAD)
        return more.select(*columns).unionByName(less.select(*columns))

    @contextmanager
    def errors_explained(self, versions: Range) -> Iterator[None]:
        """Say what to do where Spark finds that the changes of these versions are not there."""
        try:
            yield
        except (PySparkException, Py4JJavaError) as error:
            text = str(error)
            if "DELTA_MISSING_CHANGE_DATA" in text:
                raise UsageError(
                    f"{self.identifier} had no change data feed in some of the versions {versions.after + 1} to "
                    f"{versions.until}, so that nobody knows what they changed: {BEGIN_ANEW}"
                ) from error
            if "FILE_NOT_EXIST" in text:
                raise self._gone(versions) from error
            raise

    def _changes(self, versions: Range) -> DataFrame:
        """By how many rows each quad is more in each commit, and in all `later` ones of these together."""
        reader = self._session.read.format("delta").option("readChangeFeed", "true")
        reader = reader.option("startingVersion", versions.after + 1).option("endingVersion", versions.until)
        feed = reader.load(self._place) if self._is_folder else reader.table(self._place)
        change = F.when(F.col("_change_type").isin(*_MORE), 1).otherwise(-1)
        later = Window.partitionBy(*QUAD).orderBy(F.desc("version")).rowsBetween(Window.unboundedPreceding, -1)
        return (
            _quads(feed, F.col("_commit_version").alias("version"), change.alias("one"))
            .groupBy("version", *QUAD)
            .agg(F.sum("one").alias("change"))
            .where("change != 0")
            .withColumn("later", F.sum("change").over(later))
        )

    def _at(self, version: int) -> DataFrame:
        return _quads(self._session.sql(f"SELECT * FROM {self.identifier} VERSION AS OF {version}"))  # noqa: S608

    def _history(self, count: int) -> list[Commit]:
        rows = self._session.sql(f"DESCRIBE HISTORY {self.identifier} LIMIT {count}")
        parts = F.to_json(
            F.struct("operation", "operationParameters", "operationMetrics", "userMetadata", "readVersion")
        )
        columns = (F.unix_millis("timestamp").alias("time"), F.sha2(parts, 256).alias("fingerprint"))
        found = rows.select("version", "operation", *columns).orderBy("version").collect()
        return [Commit(row.version, row.operation, time_of(row.time), row.fingerprint) for row in found]

    def _check(self, properties: dict[str, str]) -> None:
        if LOG_PROPERTY in properties:
            raise UsageError(
                f"{self.identifier} is written by `python -m spark apply` from a log: read that log, as changes would "
                "go round in a circle"
            )
        columns = self._session.table(self.identifier).columns
        missing = [name for name in _NEEDED if name not in columns]
        if missing:
            raise UsageError(
                f"{self.identifier} has no column {missing[0]!r}: a table of quads has {', '.join(_NEEDED)} and graph"
            )
        if properties.get(_FEED) != "true":
            raise UsageError(
                f"{self.identifier} has no change data feed, so that nobody knows what its commits change: "
                f"ALTER TABLE {self.identifier} SET TBLPROPERTIES ({_FEED} = true)"
            )

    def _of_this_table(self, commit: Commit) -> Commit:
        # A replaced table has another id, and its feed does not say what is gone.
        if "REPLACE TABLE" in commit.operation:
            raise UsageError(f"{self.identifier} was replaced by version {commit.version}: {BEGIN_ANEW}")
        return commit

    def _gone(self, versions: Range) -> UsageError:
        return UsageError(
            f"{self.identifier} has forgotten changes of the versions {versions.after + 1} to {versions.until} (VACUUM "
            f"or delta.logRetentionDuration): {BEGIN_ANEW}; capture more often, or let the table keep them for longer"
        )


def _quads(rows: DataFrame, *more: Any) -> DataFrame:
    graph = F.coalesce("graph", F.lit("")) if "graph" in rows.columns else F.lit("")
    return rows.select(*more, graph.alias("graph"), *_NEEDED)
