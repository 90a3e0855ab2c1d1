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
from spark.looking_back import namespaces_of_log
from spark.origin import Origin, Range
from spark.reduction import QUAD
from spark.tables import NAMESPACES, Tables

__all__ = ["changes_to", "fill_namespaces", "namespaces_at"]


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
    known = tables.namespaces.read().collect() if tables.namespaces.files() else []
    gone = {(row.graph, row.name) for row in known} - found.keys()
    rows: list[tuple[str, str, str | None, int, bool]]
    rows = [(graph, name, iri, version, False) for (graph, name), iri in found.items()]
    rows += [(graph, name, None, version, False) for graph, name in gone]
    if not rows:
        return None
    return session.createDataFrame(rows, "graph STRING, name STRING, iri STRING, since BIGINT, was_other BOOLEAN")


def fill_namespaces(session: SparkSession, origin: Origin, tables: Tables) -> None:
    """Fill `namespaces` out of the log again, where RESTORE or a rebuild has set the table back."""
    namespaces, position = tables.namespaces, tables.changes.position()
    content = namespaces.content()
    if not content.is_reset or content.version is None or position.version < 0:
        return
    logged = namespaces_of_log(session, origin, position.version)
    if logged is None:
        return  # They come with the snapshot from which the tables go on.
    # What the table says of the time before the snapshot is right where it was right at the snapshot.
    known = namespaces.read().collect() if content.version >= logged.snapshot > 0 else []
    before = {(row.graph, row.name, row.iri): row.since for row in known if row.since <= logged.snapshot}
    rows = [
        (graph, name, iri, before.get((graph, name, iri), since) if since == logged.snapshot else since)
        for (graph, name), (iri, since) in logged.namespaces.items()
    ]
    commit = namespaces.begin_row_commit()
    if commit.number != content.version:
        return
    commit.take_out_files()
    commit.put_in(namespaces.with_all_columns(session.createDataFrame(rows, NAMESPACES.columns)))
    with namespaces.saying(Range(content.version, position.version), position.hash):
        commit.commit(position.version)
