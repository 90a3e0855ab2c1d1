"""What it costs to bring `quads` up to date: our one commit beside the plain MERGE and deltalake's, in CPU seconds.

    python bench/spark_merge.py [--quads 1000000] [--operations 10000 100000] [--warm-up 4] [--rounds 3] [--memory 4g]

The operations are uniform over the table, half deletes of what is there and half adds of what is not. Each side has a
table of its own, made from the same rows; the sides take turns, and each turn is printed. CPU seconds are those of
this process, and for Spark those of the JVM and its Python workers too; deltalake is handed the batch as an Arrow
table. The plain MERGE joins on the four texts, into a table with deletion vectors and without the change feed that ours
has, which would cost it more.

A job that follows a log merges again and again in one session. So the goal is judged by the median of the turns behind
the warm-up; the first turn is what a job costs that is started for one batch, without the start of Spark.

Found: Delta's MERGE looks at the table three times, reads all columns for the change feed, and runs some forty jobs,
each with a plan of its own. To hash the texts of ten million quads in the JVM took 6 CPU seconds, to read them and join
on the hashes 3; beside the JVM it is 4 for all of it, of which hashing is 1.3 and the rest Parquet's. What is left
follows neither the table nor, up to 100,000 operations, the batch: plans, the compiling of code, and some twenty small
jobs. Half of that was the JVM's compilers: generated code fell out of Spark's cache of a hundred pieces and was
compiled anew (35 to 47 pieces a merge, now 12), and what runs a few times was compiled for the best of speed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a script

import deltalake
import pyarrow as pa
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from bench.machine import seconds_of_family
from spark.merging import merge_quads
from spark.origin import LogIdentity, Range
from spark.session import opened_session
from spark.tables import Tables

GOAL = 4.0
QUAD = (
    "'' AS graph",
    "concat('<http://example.org/person/', lpad(id, 10, '0'), '>') AS subject",
    "concat('<http://example.org/property/', id % 20, '>') AS predicate",
    "concat('\"', sha1(cast(id AS string)), '\"') AS object",
)
SAME = " AND ".join(f"t.{name} = s.{name}" for name in ("graph", "subject", "predicate", "object"))


def main() -> None:
    parser = argparse.ArgumentParser(description="MERGE of uniform operations")
    parser.add_argument("--quads", type=int, default=1_000_000)
    parser.add_argument("--operations", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--warm-up", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", default="4g")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, opened_session(memory=arguments.memory) as session:
        bench = MergeBench(session, Path(folder), arguments.quads)
        for operations in arguments.operations:
            print(f"\n# MERGE of {operations:,} operations into {arguments.quads:,} quads\n")
            sides = "".join(f" {f'{side}: s':>14} {'CPU-s':>8}" for side in ("plain", "deltalake", "ours"))
            print(f"{'turn':>12}{sides} {'plain/ours':>11}")
            bench.ask(operations, arguments.warm_up, arguments.rounds)


class MergeBench:
    """Tables with the same rows."""

    def __init__(self, session: SparkSession, folder: Path, quads: int) -> None:
        self.session, self.quads = session, quads
        self.version = 1
        self.added = quads
        self.tables = Tables(session, str(folder / "ours"), LogIdentity("bench", "bench"))
        self.tables.create()
        rows = session.range(quads).selectExpr(*QUAD, "1L AS since")
        with self.tables.changes.transaction(Range(0, 1), None):
            nothing = self._changes(session.range(0), "+")
            nothing.write.format("delta").mode("append").save(str(folder / "ours/changes"))
        with self.tables.quads.transaction(Range(0, 1), None):
            rows.write.format("delta").mode("append").save(str(folder / "ours/quads"))
        self.folder = folder
        rows = self.tables.quads.read()
        rows.write.format("delta").option("delta.enableDeletionVectors", "true").save(str(folder / "plain"))
        # deltalake writes no deletion vectors.
        rows.write.format("delta").option("delta.enableDeletionVectors", "false").save(str(folder / "deltalake"))

    def ask(self, operations: int, warm_up: int, count: int) -> None:
        rounds: list[tuple[tuple[float, float], ...]] = []
        for turn in range(warm_up + count):
            self.version += 1
            step = max(1, self.quads // (operations // 2))
            deletes = self.session.range(self.version % step, self.quads, step).limit(operations // 2)
            adds = self.session.range(self.added, self.added + operations // 2)
            self.added += operations // 2
            batch = self._changes(deletes, "-").unionByName(self._changes(adds, "+"))
            with self.tables.changes.transaction(Range(self.version - 1, self.version), None):
                batch.write.format("delta").mode("append").save(str(self.folder / "ours/changes"))
            source = self.tables.changes.read().where(f"version = {self.version}")
            rounds.append(
                (
                    _measure(partial(self._plain, source), self._spark_seconds),
                    _measure(partial(self._deltalake, source.toArrow()), time.process_time),
                    _measure(self._ours, self._spark_seconds),
                )
            )
            _print(f"{turn + 1}{' (cold)' * (turn == 0)}", rounds[-1])
        warm = tuple(_median(list(side)) for side in zip(*rounds[warm_up:], strict=True))
        is_judged = self.quads >= 10_000_000 and operations == 100_000
        _print("median, warm", warm, GOAL if is_judged else None)

    def _plain(self, source: DataFrame) -> None:
        target = DeltaTable.forPath(self.session, str(self.folder / "plain"))
        merge = target.alias("t").merge(source.alias("s"), SAME)
        values = {name: f"s.{name}" for name in ("graph", "subject", "predicate", "object")} | {"since": "s.version"}
        merge.whenMatchedDelete("s.operation = '-'").whenNotMatchedInsert("s.operation = '+'", values).execute()

    def _deltalake(self, batch: pa.Table) -> None:
        values = {name: f"s.{name}" for name in ("graph", "subject", "predicate", "object")} | {"since": "s.version"}
        table = deltalake.DeltaTable(str(self.folder / "deltalake"))
        merge = table.merge(batch, SAME, source_alias="s", target_alias="t")
        merge.when_matched_delete("s.operation = '-'").when_not_matched_insert(values, "s.operation = '+'").execute()

    def _ours(self) -> None:
        assert merge_quads(self.session, self.tables) is not None

    def _changes(self, ids: DataFrame, operation: str) -> DataFrame:
        return ids.selectExpr(
            f"{self.version}L AS version",
            "id AS position",
            f"'{operation}' AS operation",
            *QUAD,
            "'' AS patch_id",
            "timestamp_seconds(0) AS time",
        )

    def _spark_seconds(self) -> float:
        jvm = self.session.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
        return time.process_time() + seconds_of_family(jvm)


def _print(turn: str, sides: tuple[tuple[float, float], ...], goal: float | None = None) -> None:
    ratio = sides[0][1] / sides[-1][1]
    seconds = "".join(f" {side[0]:14.1f} {side[1]:8.1f}" for side in sides)
    verdict = "" if goal is None else f" (goal {goal:g}: {'reached' if ratio >= goal else 'NOT REACHED'})"
    print(f"{turn:>12}{seconds} {ratio:10.2f}x{verdict}", flush=True)


def _median(turns: list[tuple[float, float]]) -> tuple[float, float]:
    wall, cpu = (median(values) for values in zip(*turns, strict=True))
    return wall, cpu


def _measure(step: Callable[[], None], cpu_seconds: Callable[[], float]) -> tuple[float, float]:
    begun, cpu = time.perf_counter(), cpu_seconds()
    step()
    return time.perf_counter() - begun, cpu_seconds() - cpu


if __name__ == "__main__":
    main()
