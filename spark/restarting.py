"""From a snapshot, where the log begins with one or has forgotten the patches that a table needs next.

The tables go on as if one patch had made the snapshot out of what is there: `changes` has that difference at the
version of the snapshot, and `quads` follows it as any other.
"""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as everybody has it

from patchlog.log.contract import PatchLog
from patchlog.log.records import PatchRecord
from patchlog.log.snapshots.reading import namespaces_of
from spark.reduction import QUAD
from spark.tables import Tables

__all__ = ["changes_to", "namespaces_at"]


def changes_to(tables: Tables, dataset: DataFrame, version: int, record: PatchRecord | None) -> DataFrame:
    """The operations that make a dataset of the present quads, as rows of `changes` at a version."""
    dataset = dataset.select(*QUAD)
    if tables.quads.files():
        present = tables.quads.read().select(*QUAD)
        adds = dataset.join(present, [*QUAD], "left_anti").withColumn("operation", F.lit("+"))
        deletes = present.join(dataset, [*QUAD], "left_anti").withColumn("operation", F.lit("-"))
        changes = adds.unionByName(deletes)
    else:
        changes = dataset.withColumn("operation", F.lit("+"))
    return changes.select(
        F.lit(version).cast("bigint").alias("version"),
        F.monotonically_increasing_id().alias("position"),
        "operation",
        *QUAD,
        F.lit(str(record.id) if record else "").alias("patch_id"),
        F.lit(datetime.fromisoformat(record.time) if record else datetime.fromtimestamp(0).astimezone()).alias("time"),
    )


def namespaces_at(session: SparkSession, tables: Tables, log: PatchLog, version: int) -> DataFrame | None:
    """What each namespace is in a snapshot, as `spark.reduction.last_namespaces` gives it; None where nothing is."""
    found, _ = namespaces_of(log.snapshots.read(version))
    known = tables.namespaces.read().collect() if tables.namespaces.number() >= 0 else []
    gone = {(row.graph, row.name) for row in known} - found.keys()
    rows: list[tuple[str, str, str | None, int, bool]]
    rows = [(graph, name, iri, version, False) for (graph, name), iri in found.items()]
    rows += [(graph, name, None, version, False) for graph, name in gone]
    if not rows:
        return None
    return session.createDataFrame(rows, "graph STRING, name STRING, iri STRING, since BIGINT, was_other BOOLEAN")
