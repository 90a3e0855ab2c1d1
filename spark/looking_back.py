"""The dataset as it was at any version of the log.

A commit that finishes `quads` says which versions it took, so Delta's own time travel gives the nearest one at or
below; what is between comes from `changes`. Where Delta's history has gone, all of it does.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from patchlog.errors import UsageError
from patchlog.model import Term
from spark.origin import Origin
from spark.reduction import QUAD, added_again, last_namespaces, last_quads
from spark.tables import Tables

__all__ = ["Moment", "moment_at", "namespaces_until", "quads_at"]


@dataclass(frozen=True, slots=True)
class Moment:
    """A version of the log, and what of the tables stands for the nearest one at or below (None: nothing)."""

    version: int
    delta_version: int | None
    delta_stands_for: int

    @property
    def is_exact(self) -> bool:
        """Whether Delta's own time travel gives the version."""
        return self.delta_version is not None and self.delta_stands_for == self.version


def moment_at(tables: Tables, version: int) -> Moment:
    """Find a version in the history. Raises UsageError for one that was not applied yet."""
    applied = tables.changes.number()
    if not 0 <= version <= applied:
        raise UsageError(f"version {version} is not in the tables, which are at version {max(applied, 0)}")
    for delta_version, said in tables.quads.said():
        if said["to"] <= version:
            return Moment(version, delta_version, said["to"])
    return Moment(version, None, -1)


def quads_at(session: SparkSession, tables: Tables, version: int) -> DataFrame:
    """The quads of a version, with the columns of `quads`."""
    moment = moment_at(tables, version)
    if moment.delta_version is not None:
        try:
            before = session.sql(f"SELECT * FROM {tables.quads.identifier} VERSION AS OF {moment.delta_version}")  # noqa: S608
            return _brought_to(tables, before, moment.delta_stands_for, version)
        except AnalysisException:
            pass  # VACUUM has taken its files
    return _brought_to(tables, tables.quads.read().limit(0), -1, version)


def _brought_to(tables: Tables, before: DataFrame, after: int, version: int) -> DataFrame:
    if after == version:
        return before
    changes = tables.changes.read().where(f"version > {after} AND version <= {version}")
    quads = added_again(changes, last_quads(changes))
    # An add without a delete of what was there before changes nothing.
    touched = quads.where("NOT is_added OR deleted IS NOT NULL")
    kept = before.join(touched, [*QUAD], "left_anti")
    added = quads.where("is_added").join(kept, [*QUAD], "left_anti")
    return kept.unionByName(added.select(*QUAD, "since"))


def namespaces_until(
    session: SparkSession, origin: Origin, tables: Tables, version: int
) -> dict[tuple[Term, str], Term]:
    """The namespaces of a version, by graph and name: those of the table, or out of the log where that is further."""
    if version >= tables.changes.number():
        found = tables.namespaces.read()
    else:
        options = origin.options() | {"view": "namespaces", "until": str(version)}
        found = last_namespaces(session.read.format("patchlog").options(**options).load()).where("iri IS NOT NULL")
    return {(row.graph, row.name): row.iri for row in found.collect()}
