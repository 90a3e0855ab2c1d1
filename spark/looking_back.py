"""The dataset as it was at any version of the log.

A commit that finishes `quads` says which versions it took, so Delta's own time travel gives the nearest one at or
below; what is between comes from `changes`. Where Delta has forgotten what it held, all of it does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from patchlog.errors import UsageError
from patchlog.log.contract import PatchLog
from patchlog.log.snapshots.reading import namespaces_of
from patchlog.model import Term
from spark.origin import Origin
from spark.reduction import QUAD, added_again, last_namespaces, last_quads
from spark.tables import Tables

__all__ = ["LoggedNamespaces", "Moment", "moment_at", "namespaces_until", "quads_at"]


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
    for table in (tables.changes, tables.quads):
        if table.content().is_restored:
            raise UsageError(f"RESTORE has taken {table.identifier} back: `apply` brings it up to date first")
    applied = tables.changes.number()
    if not 0 <= version <= applied:
        raise UsageError(f"version {version} is not in the tables, which are at version {max(applied, 0)}")
    for gap in tables.changes.gaps() or ():
        if gap.after < version < gap.until:
            nearest = str(gap.until) if gap.after < 0 else f"{gap.after} and {gap.until}"
            raise UsageError(
                f"version {version} is not in the tables: the log had forgotten the versions {max(gap.after, 0) + 1} "
                f"to {gap.until - 1} when they were applied, and its snapshot of version {gap.until} stands for them; "
                f"nearest: {nearest}"
            )
    for delta_version, stands_for in _known_moments(tables):
        if stands_for <= version:
            if _is_kept(tables, delta_version):
                return Moment(version, delta_version, stands_for)
            break  # and nothing before it
    return Moment(version, None, -1)


def quads_at(tables: Tables, version: int) -> DataFrame:
    """The quads of a version, and since when they are there."""
    moment = moment_at(tables, version)
    if moment.delta_version is None:
        return _brought_to(tables, tables.quads.read().limit(0), -1, version)
    return _brought_to(tables, tables.quads.read(moment.delta_version), moment.delta_stands_for, version)


def _known_moments(tables: Tables) -> Iterator[tuple[int, int]]:
    """Delta versions of `quads` and the versions of the log that they stand for, the newest first."""
    # However old the last commit is, the table as it is now can be read.
    yield tables.quads.present()
    for delta_version, said in tables.quads.said():
        yield delta_version, said["to"]


def _is_kept(tables: Tables, delta_version: int) -> bool:
    try:
        tables.quads.read(delta_version)
    except AnalysisException:
        return False
    return True


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
    """The namespaces of a version, by graph and name: those of the table, or out of the log, which is further."""
    # A job that died may have left the table ahead of `changes`.
    if tables.namespaces.number() <= version:
        return {(row.graph, row.name): row.iri for row in tables.namespaces.read().collect()}
    found = namespaces_of_log(session, origin, version)
    if found is None:
        raise UsageError(f"the log has forgotten the namespaces of version {version}: choose a later one")
    return {key: iri for key, (iri, _) in found.namespaces.items()}


@dataclass(frozen=True, slots=True)
class LoggedNamespaces:
    """The namespaces of a version by graph and name, and since when they hold.

    They were read from a snapshot on. Those that hold since its version may hold for longer.
    """

    snapshot: int
    namespaces: dict[tuple[Term, str], tuple[Term, int]]


def namespaces_of_log(session: SparkSession, origin: Origin, version: int) -> LoggedNamespaces | None:
    """The namespaces of a version out of the log; None where the log has forgotten them."""
    with origin.opened() as log:
        begin, found = (0, {}) if origin.is_file else _namespaces_of_snapshot(log, version)
        if begin < version and begin + 1 < log.describe().first_version:
            return None
    options = origin.options() | {"view": "namespaces", "after": str(begin), "until": str(version)}
    for row in last_namespaces(session.read.format("patchlog").options(**options).load()).collect():
        before = found.pop((row.graph, row.name), None)
        if row.iri is not None:
            is_same = before is not None and before[0] == row.iri and not row.was_other
            found[row.graph, row.name] = before if is_same and before else (row.iri, row.since)
    return LoggedNamespaces(begin, found)


def _namespaces_of_snapshot(log: PatchLog, version: int) -> tuple[int, dict[tuple[Term, str], tuple[Term, int]]]:
    """The version of the last snapshot up to a version, as the log may know nothing from before it, and what it has."""
    first = log.describe().first_version
    found = max((one.version for one in log.snapshots.list() if one.version <= version), default=None)
    if found is None or (first == 1 and log.snapshots.find(0) is None):
        return 0, {}
    names = namespaces_of(log.snapshots.read(found))[0]
    return found, {key: (iri, found) for key, iri in names.items()}
