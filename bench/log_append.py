"""How many durable appends a second, beside a loop of bare commits: patches of ten operations, about 1.7 KB as text.

Profiled with 32 clients: of the time that Python's lock is held, four fifths are the event loop's and a fifth the
writer's. Of all, a third is to check a body and to stage it (three fifths of that in the codec), a seventh to answer, a
tenth the log lines and the metrics, as much to know the heads. A round takes a third of its time with the writer, while
most clients wait; about a fifth of both cores is idle.

Tried, and not kept: rounds of a half or a third of the clients, so that some send while others are written (as many
appends for a sixth more CPU: the writer and the event loop take the lock from each other), other intervals of that
lock, rarer collections of garbage, checkpoints of 32 MB, statements of 8 and 32 rows.
"""

from __future__ import annotations

import http.client
import sqlite3
import sys
import tempfile
import time
import uuid
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a script

from bench.loads import Load, Step, answered, drive
from bench.machine import print_machine, verdict
from bench.services import Server, answering_at_once, arguments, new_log, patchlog
from patchlog.codec.options import PatchOptions
from patchlog.engine import Converter

TITLE = "Durable appends over HTTP"

RDF_DELTA = {1: 611, 8: 1263, 32: 1492}
"""Its appends a second by clients, without fsync, on a quiet machine of two cores."""
GOALS = {1: 1.2, 8: 2.0, 32: 3.0}
RDF_DELTA_STORED_BYTES = 204

OPERATIONS = 10
SOME_ID = "00000000-0000-4000-8000-000000000000"
SOMEBODY = "@@@@@@@@@@@@"


def patch_text(who: str, patch_id: str) -> str:
    """One patch: a person is described, ten statements in a graph."""
    subject = f"<http://data.example.org/people/person/{who}>"
    graph = "<http://data.example.org/people/current>"
    rows = [
        f'A {subject} <http://xmlns.com/foaf/0.1/p{n}> "value {n} of {who}, in words" {graph} .'
        for n in range(OPERATIONS)
    ]
    return "\n".join([f"H id <urn:uuid:{patch_id}> .", "TX .", *rows, "TC .", ""])


def patch_bytes(text: str) -> bytes:
    """The same as Jelly-Patch."""
    converter = Converter("rdf-patch", "jelly-patch", patch_options=PatchOptions())
    return converter.feed(text.encode()) + converter.finish()


def appender(path: str, template: bytes, media_type: str):
    """A client that appends patches, each with an id and statements of its own."""

    def client(connection: http.client.HTTPConnection, number: int) -> Step:
        written = 0

        def step() -> None:
            nonlocal written
            written += 1
            patch_id = str(uuid.uuid4()).encode()
            body = template.replace(SOME_ID.encode(), patch_id).replace(
                SOMEBODY.encode(), b"%04d%08d" % (number, written)
            )
            connection.request("POST", f"{path}/patches", body, {"Content-Type": media_type})
            answered(connection, 201)

        return step

    return client


def bare_commits(seconds: float) -> float:
    """Commits a second of rows of the same size, by the sqlite3 of Python, durable as ours are."""
    with tempfile.TemporaryDirectory(prefix="patchlog-bench-") as folder:
        connection = sqlite3.connect(f"{folder}/bare.db", isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE patch (version INTEGER PRIMARY KEY, bytes BLOB)")
        data = patch_bytes(patch_text(SOMEBODY, SOME_ID))
        begun = time.perf_counter()
        count = 0
        while time.perf_counter() - begun < seconds:
            connection.execute("INSERT INTO patch (bytes) VALUES (?)", (data,))
            count += 1
        took = time.perf_counter() - begun
        connection.close()
    return count / took


def main() -> None:
    options = arguments(TITLE)
    seconds = 1.0 if options.quick else 5.0
    text = patch_text(SOMEBODY, SOME_ID)
    bodies = {
        "application/x-jelly-rdf-patch": patch_bytes(text),
        "application/rdf-patch": text.encode(),
    }
    print_machine(TITLE)
    print(", ".join(f"{name}: {len(body):,} bytes" for name, body in bodies.items()))
    _print_ceiling(bodies, seconds)
    for database in options.database:
        print(f"\n## {database}\n")
        print(f"{'':44} {'1/s':>8} {'p50 ms':>8} {'p99 ms':>8} {'CPU ms':>8} {'x RDF Delta':>12}")
        with patchlog(database) as server:
            for media_type, template in bodies.items():
                for clients, yardstick in RDF_DELTA.items():
                    bare = bare_commits(seconds / 5)
                    path = new_log(server, f"{media_type.rpartition('/')[2]}-{clients}")
                    load = drive(server, clients, seconds, appender(path, template, media_type))
                    _print(f"{media_type}, {clients} clients", load, yardstick)
                    if media_type.endswith("jelly-rdf-patch"):
                        _print_goals(clients, load, bare, quick=options.quick)
            print(f"peak memory of the service: {server.peak_bytes / 1e6:.0f} MB")
        if database == "sqlite":
            _print_stored(500 if options.quick else 20_000, quick=options.quick)


def _print(name: str, load: Load, yardstick: float) -> None:
    cpu = 1000 * load.server_cpu_seconds / len(load.latencies)
    print(
        f"{name:44} {load.per_second:8,.0f} {load.milliseconds(0.5):8.2f} {load.milliseconds(0.99):8.2f} {cpu:8.3f} "
        f"{load.per_second / yardstick:12.2f}",
        flush=True,
    )


def _print_ceiling(bodies: dict[str, bytes], seconds: float) -> None:
    """How fast these clients are where the server has nothing to do: they share the cores with it."""
    media_type, body = next(iter(bodies.items()))
    with answering_at_once() as server:
        found = {n: drive(server, n, seconds, appender("/logs/none", body, media_type)).per_second for n in RDF_DELTA}
    of_all = ", ".join(f"{rate:,.0f} with {clients}" for clients, rate in found.items())
    print(f"a server that does nothing but answer: {of_all} clients, a second")


def _print_goals(clients: int, load: Load, bare: float, *, quick: bool) -> None:
    ratio = load.per_second / RDF_DELTA[clients]
    said = [verdict(f"{ratio:.2f}x RDF Delta", f"{GOALS[clients]:g}x", reached=ratio >= GOALS[clients], quick=quick)]
    if clients == 8:
        p99 = load.milliseconds(0.99)
        said.append(verdict(f"p99 {p99:.1f} ms", "under 10 ms", reached=p99 < 10, quick=quick))
    said.append(f"{load.per_second / bare:.2f} of {bare:,.0f} bare commits a second, one after the other")
    for line in said:
        print(f"    {line}")


def _print_stored(patches: int, *, quick: bool) -> None:
    """How large the database is with so many patches."""
    with patchlog("sqlite") as server:
        fill(server, new_log(server, "stored"), patches)
        with closing(sqlite3.connect(server.folder / "log.db")) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        stored = server.stored_bytes
    per_operation = stored / patches / OPERATIONS
    ratio = per_operation / RDF_DELTA_STORED_BYTES
    print(f"\n{patches:,} patches in {stored:,} bytes of SQLite: {per_operation:.0f} bytes an operation")
    print(f"    {verdict(f'{ratio:.2f}x RDF Delta', 'at most 0.6x', reached=ratio <= 0.6, quick=quick)}")


def fill(server: Server, path: str, patches: int) -> None:
    """Append different patches, in a few uploads."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    for start in range(0, patches, 1000):
        some = range(start, min(start + 1000, patches))
        text = "".join(f"{patch_text(f'{number:012}', str(uuid.uuid4()))}Z .\n" for number in some)
        headers = {"Content-Type": "application/x-jelly-rdf-patch"}
        connection.request("POST", f"{path}/patches", patch_bytes(text), headers)
        answered(connection, 201)
    connection.close()


if __name__ == "__main__":
    main()
