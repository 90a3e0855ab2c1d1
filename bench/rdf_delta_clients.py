"""What clients of RDF Delta do, one after the other: describe the log and append a patch; fetch patches one by one."""

from __future__ import annotations

import http.client
import json
import sys
import uuid
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a script

from bench.loads import Load, Step, answered, drive
from bench.log_append import SOME_ID, SOMEBODY, patch_text
from bench.log_download import one_by_one
from bench.machine import print_machine
from bench.services import arguments, patchlog

TITLE = "The pattern of RDF Delta's clients"

_BASE = "/rdf-delta"
_CLIENTS = (1, 8, 32)
RDF_DELTA_APPENDS = {1: 611, 8: 1263, 32: 1492}
"""Its appends a second, without the describing, to one log, and without fsync; on a quiet machine of two cores."""
RDF_DELTA_FETCHES = {8: 1652}


def _asked(connection: http.client.HTTPConnection, operation: str, **argument: str) -> dict:
    call = {"opid": "", "operation": operation, "arg": argument}
    connection.request("POST", f"{_BASE}/$/rpc", json.dumps(call), {"Content-Type": "application/json"})
    return json.loads(answered(connection))


def writer(connection: http.client.HTTPConnection, number: int) -> Step:
    """A client with a log of its own: describes it, and appends to what it was told is the head."""
    source = _asked(connection, "create_datasource", name=f"log-{uuid.uuid4()}")["id"]
    template = patch_text(SOMEBODY, SOME_ID).partition("\n")[2]
    written = 0

    def step() -> None:
        nonlocal written
        written += 1
        latest = _asked(connection, "describe_log", datasource=source)["latest"]
        prev = f"H prev <uuid:{latest.removeprefix('id:')}> .\n" if latest else ""
        rows = template.replace(SOMEBODY, f"{number:04}{written:08}")
        connection.request("POST", f"{_BASE}/{source}", f"H id <uuid:{uuid.uuid4()}> .\n{prev}{rows}".encode())
        answered(connection)

    return step


def _filled(port: int, patches: int) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    source = _asked(connection, "create_datasource", name="people")["id"]
    texts = (patch_text(f"{number:012}", str(uuid.uuid4())) for number in range(patches))
    body = "".join(f"{text}Z .\n" for text in texts)
    connection.request("POST", "/logs/people/patches", body.encode(), {"Content-Type": "application/rdf-patch"})
    answered(connection, 201)
    connection.close()
    return source


def main() -> None:
    options = arguments(TITLE)
    seconds = 1.0 if options.quick else 5.0
    patches = 200 if options.quick else 2000
    print_machine(TITLE)
    for database in options.database:
        print(f"\n## {database}\n")
        print(f"{'':36} {'1/s':>8} {'p50 ms':>8} {'p99 ms':>8} {'CPU ms':>8} {'x RDF Delta':>12}")
        with patchlog(database) as server:
            source = _filled(server.port, patches)
            for clients in _CLIENTS:
                load = drive(server, clients, seconds, writer)
                _print(f"describe, then append, {clients} clients", load, RDF_DELTA_APPENDS[clients])
            for clients in _CLIENTS:
                load = drive(server, clients, seconds, one_by_one(f"{_BASE}/{source}", patches))
                _print(f"fetch one by one, {clients} clients", load, RDF_DELTA_FETCHES.get(clients))
            print(f"peak memory of the service: {server.peak_bytes / 1e6:.0f} MB")


def _print(name: str, load: Load, yardstick: float | None) -> None:
    cpu = 1000 * load.server_cpu_seconds / len(load.latencies)
    ratio = "" if yardstick is None else f"{load.per_second / yardstick:12.2f}"
    p50, p99 = load.milliseconds(0.5), load.milliseconds(0.99)
    print(f"{name:36} {load.per_second:8,.0f} {p50:8.2f} {p99:8.2f} {cpu:8.3f} {ratio}", flush=True)


if __name__ == "__main__":
    main()
