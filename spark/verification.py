"""Whether the tables say what the log says: counted and hashed by version, in whatever order the rows are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as everybody has it

from spark.origin import Origin
from spark.reduction import QUAD, added_again, last_quads
from spark.tables import Tables

__all__ = ["Difference", "Report", "verify"]

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
    """Compare `changes` with the log, version by version, and `quads` with what `changes` come to.

    Versions that the log has forgotten are compared with nothing.
    """
    applied = max(tables.changes.number(), 0)
    with origin.opened() as log:
        first = log.describe().first_version
    changes = tables.changes.read()
    kept = changes.where(f"version >= {first} AND version <= {applied}")
    options = origin.options() | {"after": str(first - 1), "until": str(applied)}
    logged = session.read.format("patchlog").options(**options).load()
    past = changes.where(f"version <= {tables.quads.number()}")
    wanted = added_again(past, last_quads(past)).where("is_added").select(*QUAD, "since")
    found = tables.quads.read()
    differences = [*_by_version(logged, kept), *_by_row(wanted, found)]
    total, hash_ = _summary(found)
    return Report(applied, changes.count(), total, hash_, tuple(differences))


def _by_version(logged: DataFrame, kept: DataFrame) -> Iterator[Difference]:
    both = _summaries(logged, "log").join(_summaries(kept, "table"), "version", "full_outer")
    different = both.where("NOT (log_count <=> table_count AND log_hash <=> table_hash)").orderBy("version")
    for row in different.limit(_SHOWN).collect():
        counts = f"{row.table_count or 0} operations in the table, {row.log_count or 0} in the log"
        same = " with other content" if row.table_count == row.log_count else ""
        yield Difference("changes", f"version {row.version} has {counts}{same}")


def _summaries(operations: DataFrame, side: str) -> DataFrame:
    return operations.groupBy("version").agg(
        F.count("*").alias(f"{side}_count"), _hash_of(_OPERATION).alias(f"{side}_hash")
    )


def _by_row(wanted: DataFrame, found: DataFrame) -> Iterator[Difference]:
    if _summary(wanted) == _summary(found):
        return
    for word, more, less in (("lacks", wanted, found), ("has too much", found, wanted)):
        for row in more.exceptAll(less).limit(_SHOWN).collect():
            quad = " ".join(filter(None, (row.subject, row.predicate, row.object, row.graph)))
            yield Difference("quads", f"{word}: {quad}, since version {row.since}")


def _summary(quads: DataFrame) -> tuple[int, str]:
    row = quads.agg(F.count("*").alias("total"), _hash_of((*QUAD, "since")).alias("hash")).first()
    assert row is not None
    return row.total, f"{int(row.hash or 0) % (1 << 128):032x}"


def _hash_of(columns: tuple[str, ...]) -> Column:
    # A sum, unlike an exclusive or, does not lose what stands twice. Of two hashes, as one of 64 bits is short.
    first, second = (F.sum(F.xxhash64(*seed, *columns).cast("decimal(38,0)")) for seed in ((), (F.lit("patchlog"),)))
    return (first * F.lit(31) + second).cast("decimal(38,0)")
