"""Whether the tables say what the log says: counted and hashed by version, in whatever order the rows are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as everybody has it

from patchlog.errors import HistoryMismatch
from patchlog.log.contract import PatchLog
from patchlog.log.position import Position
from spark.looking_back import namespaces_of_log
from spark.origin import Origin
from spark.reconciling import last_common_version
from spark.reduction import QUAD, added_again, last_quads
from spark.tables import Tables

__all__ = ["PLACE", "Difference", "Report", "doubled_versions", "first_bad_version", "verify"]

PLACE: Final = ("version", "position")
"""Where an operation stands, which no other does."""

_SHOWN: Final = 10
_OPERATION: Final = ("version", "operation", *QUAD)


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that a table and what it should hold do not agree on."""

    table: str
    what: str

    def __str__(self) -> str:
        return f"{self.table}: {self.what}"


@dataclass(frozen=True, slots=True)
class Report:
    """What was compared, the hash of the quads, and the first differences."""

    versions: int
    changes: int
    quads: int
    quads_hash: str
    differences: tuple[Difference, ...]


def verify(session: SparkSession, origin: Origin, tables: Tables) -> Report:
    """Compare `changes` with the log, version by version, and `quads` and `namespaces` with what the changes come to.

    Of versions that the log has forgotten only the ids of patches are compared.
    """
    position = tables.changes.position()
    applied = max(position.version, 0)
    with origin.opened() as log:
        of_history = [*_by_history(tables, log, position)]
        until = min(applied, log.head().version)
    differences = [*_by_version(session, origin, tables, until), *of_history, *_twice(tables)]
    changes = tables.changes.read()
    past = changes.where(f"version <= {tables.quads.number()}")
    wanted = added_again(past, last_quads(past)).where("is_added").select(*QUAD, "since")
    found = tables.quads.read()
    differences += _by_row(wanted, found)
    if not of_history:
        differences += _by_namespace(session, origin, tables, applied)
    total, hash_ = _summary(found)
    return Report(applied, changes.count(), total, hash_, tuple(differences))


def _by_history(tables: Tables, log: PatchLog, position: Position) -> Iterator[Difference]:
    try:
        if position.version >= 0:
            log.check(position)
    except HistoryMismatch as error:
        yield Difference("changes", error.reason)
    last = min(tables.changes.last_row_version(), log.head().version)
    common = last_common_version(tables, log, last)
    if common < last:
        yield Difference("changes", f"the tables and the log have the same patches up to version {common}, not {last}")


def doubled_versions(tables: Tables) -> list[int]:
    """Versions of which `changes` has an operation twice, the first and the last of many."""
    places = tables.changes.read().groupBy(*PLACE).count().where("count > 1")
    row: Any = places.agg(F.min("version").alias("first"), F.max("version").alias("last")).first()
    return [] if row["first"] is None else [row["first"], row["last"]]


def _twice(tables: Tables) -> Iterator[Difference]:
    if doubled := doubled_versions(tables):
        yield Difference("changes", f"operations of the versions {doubled[0]} to {doubled[-1]} stand there twice")


def first_bad_version(session: SparkSession, origin: Origin, tables: Tables, until: int) -> int | None:
    """The first version up to one, of those that the log has, that `changes` has otherwise, each operation once."""
    row: Any = _different(session, origin, tables, until, is_once=True).agg(F.min("version")).first()
    return None if row[0] is None else int(row[0])


def _by_version(session: SparkSession, origin: Origin, tables: Tables, until: int) -> Iterator[Difference]:
    for row in _different(session, origin, tables, until).orderBy("version").limit(_SHOWN).collect():
        counts = f"{row.table_count or 0} operations in the table, {row.log_count or 0} in the log"
        same = " with other content" if row.table_count == row.log_count else ""
        yield Difference("changes", f"version {row.version} has {counts}{same}")


def _different(
    session: SparkSession, origin: Origin, tables: Tables, until: int, *, is_once: bool = False
) -> DataFrame:
    """The versions of which `changes` and the log have other operations."""
    with origin.opened() as log:
        first = log.describe().first_version
    options = origin.options() | {"after": str(first - 1), "until": str(max(until, first - 1))}
    logged = session.read.format("patchlog").options(**options).load()
    kept = tables.changes.read().where(f"version >= {first} AND version <= {until}")
    for gap in tables.changes.gaps() or ():
        # What a snapshot stands for, and the difference that it made.
        logged, kept = (
            rows.where(f"NOT (version > {gap.after} AND version <= {gap.until})") for rows in (logged, kept)
        )
    if is_once:
        kept = kept.dropDuplicates([*PLACE])
    both = _summaries(logged, "log").join(_summaries(kept, "table"), "version", "full_outer")
    return both.where("NOT (log_count <=> table_count AND log_hash <=> table_hash)")


def _by_row(wanted: DataFrame, found: DataFrame) -> Iterator[Difference]:
    if _summary(wanted) == _summary(found):
        return
    for word, more, less in (("lacks", wanted, found), ("has too much", found, wanted)):
        for row in more.exceptAll(less).limit(_SHOWN).collect():
            quad = " ".join(filter(None, (row.subject, row.predicate, row.object, row.graph)))
            yield Difference("quads", f"{word}: {quad}, since version {row.since}")


def _by_namespace(session: SparkSession, origin: Origin, tables: Tables, version: int) -> Iterator[Difference]:
    logged = namespaces_of_log(session, origin, version)
    if logged is None or tables.namespaces.number() > version:
        return
    wanted = logged.namespaces
    found = {(row.graph, row.name): row.iri for row in tables.namespaces.read().collect()}
    shown = 0
    for key in sorted(wanted.keys() | found.keys()):
        iri = wanted[key][0] if key in wanted else None
        if found.get(key) != iri and (shown := shown + 1) <= _SHOWN:
            named = " ".join(filter(None, (key[1], key[0])))
            yield Difference("namespaces", f"{named!r} is {found.get(key)} in the table, and {iri} in the log")


def _summaries(operations: DataFrame, side: str) -> DataFrame:
    return operations.groupBy("version").agg(
        F.count("*").alias(f"{side}_count"), _hash_of(_OPERATION).alias(f"{side}_hash")
    )


def _summary(quads: DataFrame) -> tuple[int, str]:
    row = quads.agg(F.count("*").alias("total"), _hash_of((*QUAD, "since")).alias("hash")).first()
    assert row is not None
    return row.total, f"{int(row.hash or 0) % (1 << 128):032x}"


def _hash_of(columns: tuple[str, ...]) -> Column:
    # A sum, unlike an exclusive or, does not lose what stands twice. Of two hashes, as one of 64 bits is short.
    first, second = (F.sum(F.xxhash64(*seed, *columns).cast("decimal(38,0)")) for seed in ((), (F.lit("patchlog"),)))
    return (first * F.lit(31) + second).cast("decimal(38,0)")
