"""Whole datasets out of the tables and into them, in quads a second, beside Spark's plain Parquet of the same rows.

    python bench/spark_snapshots.py [--quads 2000000] [--rounds 3] [--memory 4g]

Out: `quads` as files of Jelly-RDF. In: a file of Jelly-RDF is given to a service, whose log begins with it, and from
there goes into `changes` and `quads`: what `snapshot export` and `snapshot import` do. The goal of both is 500,000
quads a second on two cores. Parquet is written from `quads`, and read into one Delta table.

Found: by Spark's writer the two tables took three quarters of an import, as all rows pass the JVM, and one table is
read for the other. Written by executors as Parquet, both take 0.6 microseconds a quad. The service took four
microseconds a quad for a set of lines in Python, then 1.3 by way of text, and takes 0.6 where statements are written as
they are read. Two commits took two seconds, as Delta reckoned its log up after each, and now 0.2.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a script

from bench.spark_changes import running_service
from patchlog.client import HttpLogStore
from patchlog.log.records import LogOptions
from spark.job import ApplyJob
from spark.origin import LogIdentity, Origin, Range
from spark.session import opened_session
from spark.snapshots import export, joined
from spark.tables import Tables

GOAL = 500_000
ROWS = (
    "if(id % 5 = 0, '', '<http://example.org/people/current>') AS graph",
    "concat('<http://example.org/person/', id div 10, '>') AS subject",
    "concat('<http://example.org/property/', id % 10, '>') AS predicate",
    "concat('\"value ', id, ' of somebody, in words\"') AS object",
)


def main() -> None:
    parser = argparse.ArgumentParser(description="datasets out of Delta tables and into them")
    parser.add_argument("--quads", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", default="4g")
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as name,
        running_service(Path(name)) as url,
        opened_session(memory=arguments.memory) as session,
    ):
        bench = SnapshotBench(session, Path(name), url, arguments.quads)
        for step, goal in ((bench.out, GOAL), (bench.parquet_out, 0), (bench.into, GOAL), (bench.parquet_in, 0)):
            best = min(_seconds(step, turn) for turn in range(arguments.rounds))
            rate = arguments.quads / best
            verdict = f"   (goal {goal:,}: {'reached' if rate >= goal else 'NOT REACHED'})" if goal else ""
            print(f"{step.__name__.replace('_', ' '):12} {best:6.1f} s {rate:10,.0f} quads/s{verdict}", flush=True)


class SnapshotBench:
    """A table of quads, and the same as a file."""

    def __init__(self, session: SparkSession, folder: Path, url: str, quads: int) -> None:
        self.session, self.folder, self.url = session, folder, url
        self.tables = Tables(session, str(folder / "full"), LogIdentity("bench", "bench"))
        self.tables.create()
        rows = session.range(quads).selectExpr(*ROWS, "1L AS since")
        with self.tables.quads.transaction(Range(0, 1), None):
            rows.write.format("delta").mode("append").save(str(folder / "full/quads"))

    def out(self, turn: int) -> None:
        self.exported = self._export(f"out-{turn}")

    def parquet_out(self, turn: int) -> None:
        self.tables.quads.read().write.parquet(str(self.folder / f"parquet-{turn}"))

    def into(self, turn: int) -> None:
        store = HttpLogStore(self.url)
        store.create(f"log-{turn}")
        log = store.log(f"log-{turn}")
        log.snapshots.put(0, joined(self.exported))
        origin = Origin.of(self.url, log.name)
        tables = Tables(self.session, str(self.folder / f"in-{turn}"), origin.identity(log))
        tables.create()
        ApplyJob(self.session, origin, tables).run_available()
        store.close()

    def parquet_in(self, turn: int) -> None:
        rows = self.session.read.parquet(str(self.folder / "parquet-0"))
        rows.write.format("delta").save(str(self.folder / f"delta-{turn}"))

    def _export(self, name: str) -> tuple[Path, ...]:
        quads = self.tables.quads.read().select("subject", "predicate", "object", "graph")
        return export(quads, {}, LogOptions(), self.folder / name).files


def _seconds(step: Callable[[int], None], turn: int) -> float:
    begun = time.perf_counter()
    step(turn)
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
