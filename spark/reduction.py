"""Many operations to what they come to: the last word on each quad and each namespace, and since when it holds.

`since` does not depend on how a history is cut into batches. So operations may be reduced and merged again, together
with earlier ones, and the tables come out the same.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  as everybody has it

__all__ = ["HASH", "IS_AGAIN", "QUAD", "added_again", "last_namespaces", "last_quads", "with_hash"]

QUAD: Final = ("graph", "subject", "predicate", "object")

HASH: Final = "hash"
"""A number for a quad, by which equal ones are found before their texts are compared."""


def with_hash(quads: DataFrame) -> DataFrame:
    """Quads with HASH beside them."""
    return quads.withColumn(HASH, F.xxhash64(*QUAD))


def last_quads(changes: DataFrame, *, is_one_version: bool = False) -> DataFrame:
    """One row a quad: `is_added`, the version of the last delete in `deleted` (null: none), and `since`.

    `since` is the version of the first add, which need not be behind the last delete: `added_again` sees to those.
    One version says one thing of a quad, so nothing is to be gathered of it.
    """
    is_add = F.col("operation") == "+"
    deleted, added = F.when(~is_add, F.col("version")), F.when(is_add, F.col("version"))
    if is_one_version:
        return changes.select(*QUAD, is_add.alias("is_added"), deleted.alias("deleted"), added.alias("since"))
    return (
        changes.groupBy(*QUAD)
        .agg(
            F.max(F.col("version") * 2 + is_add.cast("int")).alias("last"),
            F.max(deleted).alias("deleted"),
            F.min(added).alias("since"),
        )
        .select(*QUAD, (F.col("last") % 2 == 1).alias("is_added"), "deleted", "since")
    )


IS_AGAIN: Final = "is_added AND deleted > since"
"""Whether a quad was added, deleted and added again."""


def added_again(changes: DataFrame, quads: DataFrame) -> DataFrame:
    """The same of `last_quads`, with `since` as the version of the first add behind the last delete."""
    again = quads.where(IS_AGAIN).drop("since")
    adds = changes.where("operation = '+'").select(*QUAD, "version")
    since = (
        adds.join(again, [*QUAD])
        .where("version > deleted")
        .groupBy(*again.columns)
        .agg(F.min("version").alias("since"))
    )
    return quads.where(f"NOT coalesce({IS_AGAIN}, false)").unionByName(since)


def last_namespaces(changes: DataFrame) -> DataFrame:
    """One row a namespace: its `iri` (null: none), `since` when, and whether it `was_other` on the way.

    One that was nothing else on the way may have been the same before, and then has its `since` from there.
    """
    in_order = Window.partitionBy("graph", "name").orderBy("version")
    iri: Column = F.when(F.col("operation") == "+", F.col("iri"))
    return (
        changes.withColumn("iri", iri)
        .withColumn("before", F.lag("iri").over(in_order))
        .withColumn("is_first", F.row_number().over(in_order) == 1)
        .where(F.col("is_first") | ~F.col("iri").eqNullSafe(F.col("before")))
        .groupBy("graph", "name")
        .agg(
            F.max_by("iri", "version").alias("iri"),
            F.max("version").alias("since"),
            (F.count("*") > 1).alias("was_other"),
        )
    )
