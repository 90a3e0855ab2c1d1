"""A log into `changes`, from Jelly-Patch over HTTP to a commit of Delta, round after round while the table grows.

    python bench/spark_changes.py [--operations 1000000] [--rounds 10] [--memory 4g]

Patches have 1000 operations, three adds for each delete. The goal is 200,000 operations a second on two cores, and the
same at the tenth million as at the second; the first round is the JVM's warming up.

Found: Spark's writer took two thirds of it, to make rows of the columns that come, and columns of the rows.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from patchlog.client import HttpLogStore
from patchlog.log.contract import PatchLog
from patchlog.model import Add, Delete, Operation, Punctuation, TransactionCommit, TransactionStart
from patchlog.patch import canonical
from spark.job import ApplyJob, Done
from spark.origin import Origin
from spark.session import opened_session
from spark.tables import Tables

GOAL = 200_000
OPERATIONS_PER_PATCH = 1000


def main() -> None:
    parser = argparse.ArgumentParser(description="a log into `changes`")
    parser.add_argument("--operations", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--memory", default="4g")
    arguments = parser.parse_args()
    begun = time.perf_counter()
    with (
        tempfile.TemporaryDirectory() as folder,
        running_service(Path(folder)) as url,
        opened_session(memory=arguments.memory) as session,
    ):
        session.sql("SELECT 1").collect()
        print(f"\nsession start to first row: {time.perf_counter() - begun:.1f} s\n")
        store = HttpLogStore(url)
        store.create("bench")
        log, origin = store.log("bench"), Origin.of(url, "bench")
        tables = Tables(session, f"{folder}/tables", origin.identity(log))
        tables.create()
        print(f"{'in the table':>14} {'s':>8} {'operations/s':>14}")
        rates = []
        for round_ in range(arguments.rounds):
            fill(log, arguments.operations, Random(round_))
            done: list[Done] = []
            ApplyJob(session, origin, tables, tell=done.append).run_available()
            seconds = sum(one.seconds for one in done if one.table == "changes")
            rates.append(arguments.operations / seconds)
            print(f"{(round_ + 1) * arguments.operations:14,} {seconds:8.2f} {rates[-1]:14,.0f}", flush=True)
        warm = sorted(rates[1:] or rates)
        median = warm[len(warm) // 2]
        print(f"\nmedian {median:,.0f}/s (goal {GOAL:,}: {'reached' if median >= GOAL else 'NOT REACHED'})")
        store.close()


def fill(log: PatchLog, operations: int, random: Random) -> None:
    """Append so many operations, a thousand a patch."""
    for _ in range(operations // OPERATIONS_PER_PATCH // 100):
        log.append([canonical(operation for _ in range(100) for operation in patch(random))])


def patch(random: Random) -> Iterator[Operation]:
    yield TransactionStart()
    for number in range(OPERATIONS_PER_PATCH):
        person, value = random.randrange(10_000_000), random.randrange(1_000_000)
        kind = Delete if number % 4 == 3 else Add
        subject = f"<http://example.org/person/{person}>"
        yield kind(subject, f"<http://example.org/property/{number % 20}>", f'"value {value}"', "")
    yield TransactionCommit()
    yield Punctuation()


@contextmanager
def running_service(folder: Path) -> Iterator[str]:
    """The URL of a service on SQLite, a process of its own."""
    output = folder / "service.log"
    database = f"sqlite:///{folder}/log.db"
    with output.open("wb") as log:
        command = [sys.executable, "-m", "api", "--port", "0", "--database", database, "--data-dir", str(folder)]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        while not (found := re.search(r"running on (http://[^ ]*:\d+)", output.read_text())):
            if process.poll() is not None:
                raise SystemExit(output.read_text())
            time.sleep(0.05)
        yield found[1]
    finally:
        process.terminate()
        process.wait(20)


if __name__ == "__main__":
    main()
