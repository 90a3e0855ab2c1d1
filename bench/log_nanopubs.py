"""60,000 nanopublications, four graphs each, as patches over HTTP: in one upload, and in uploads of a thousand."""

from __future__ import annotations

import http.client
import json
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a script

from bench import inputs
from bench.loads import answered
from bench.log_append import patch_bytes
from bench.machine import print_machine, verdict
from bench.services import Server, arguments, new_log, patchlog

TITLE = "Nanopublications as patches over HTTP"

GOAL_SECONDS = 4.0
_STATEMENTS = 1_000_000
_ROUNDS = 3


def nanopublications(statements: int) -> Iterator[str]:
    """The RDF Patch text of each."""
    with inputs.dataset("nanopub", statements).text.open() as lines:
        for _, group in groupby(lines, key=lambda line: line[line.rindex("<") : line.rindex("#")]):
            yield "TX .\n" + "".join(f"A {line}" for line in group) + "TC .\nZ .\n"


def _append(server: Server, name: str, bodies: Sequence[bytes]) -> float:
    path = new_log(server, name)
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)
    begun = time.perf_counter()
    for body in bodies:
        connection.request("POST", f"{path}/patches", body, {"Content-Type": "application/x-jelly-rdf-patch"})
        answered(connection, 201)
    took = time.perf_counter() - begun
    document = json.dumps({"delete": path.rpartition("/")[2]})
    connection.request("DELETE", path, document, {"Content-Type": "application/json"})
    answered(connection, 204)
    connection.close()
    return took


def main() -> None:
    options = arguments(TITLE)
    patches = 1000 if options.quick else 60_000
    texts = [text for text, _ in zip(nanopublications(20_000 if options.quick else _STATEMENTS), range(patches))]  # noqa: B905
    ways = {
        "one upload": [patch_bytes("".join(texts))],
        "uploads of a thousand": [patch_bytes("".join(texts[i : i + 1000])) for i in range(0, len(texts), 1000)],
    }
    size = sum(map(len, ways["one upload"]))
    print_machine(TITLE)
    print(f"{len(texts):,} nanopublications, {sum(map(len, texts)) / 1e6:.0f} MB as text, {size / 1e6:.0f} MB as Jelly")
    for database in options.database:
        print(f"\n## {database}\n")
        with patchlog(database) as server:
            for way, bodies in ways.items():
                server.forget_peak()
                cpu = server.cpu_seconds
                rounds = [_append(server, "nanopubs", bodies) for _ in range(1 if options.quick else _ROUNDS)]
                cpu = (server.cpu_seconds - cpu) / len(rounds)
                best = min(rounds)
                said = f"{best:.2f} s ({len(texts) / best:,.0f} a second, {cpu:.2f} s of CPU)"
                reached = best < GOAL_SECONDS
                print(f"{way:24} {verdict(said, f'under {GOAL_SECONDS:g} s', reached=reached, quick=options.quick)}")
                print(f"{'':24} peak memory of the service {server.peak_bytes / 1e6:.0f} MB", flush=True)


if __name__ == "__main__":
    main()
