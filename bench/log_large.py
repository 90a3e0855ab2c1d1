"""A patch of a million operations up and down: time, and the memory of the service."""

from __future__ import annotations

import http.client
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a script

from bench.loads import answered
from bench.log_append import patch_bytes
from bench.machine import print_machine, verdict
from bench.services import Server, arguments, new_log, patchlog

TITLE = "A patch of a million operations over HTTP"

RDF_DELTA = {"up": 4.1, "down": 3.0}
"""Its seconds for 160 MB of text; it then takes 7.4 GiB."""
_ROUNDS = 3


def patch(operations: int) -> Iterator[str]:
    """The text, about 160 bytes an operation."""
    yield "TX .\n"
    for number in range(operations):
        person = f"http://data.example.org/people/person/{number // 10:012}"
        yield (
            f'A <{person}> <http://xmlns.com/foaf/0.1/p{number % 10}> "value {number} in words" '
            f"<http://data.example.org/people/current> .\n"
        )
    yield "TC .\n"


def _once(server: Server, body: bytes, media_type: str) -> tuple[dict[str, float], int, int]:
    path = new_log(server, "large")
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)
    server.forget_peak()
    begun = time.perf_counter()
    connection.request("POST", f"{path}/patches", body, {"Content-Type": media_type})
    answered(connection, 201)
    up = time.perf_counter() - begun
    begun = time.perf_counter()
    connection.request("GET", f"{path}/patches/1", headers={"Accept": media_type})
    response = connection.getresponse()
    size = 0
    while piece := response.read(1 << 18):
        size += len(piece)
    down = time.perf_counter() - begun
    peak = server.peak_bytes
    document = json.dumps({"delete": path.rpartition("/")[2]})
    connection.request("DELETE", path, document, {"Content-Type": "application/json"})
    answered(connection, 204)
    connection.close()
    return {"up": up, "down": down}, size, peak


def main() -> None:
    options = arguments(TITLE)
    operations = 20_000 if options.quick else 1_000_000
    text = "".join(patch(operations))
    bodies = {"application/x-jelly-rdf-patch": patch_bytes(text), "application/rdf-patch": text.encode()}
    del text
    print_machine(TITLE)
    for database in options.database:
        print(f"\n## {database}\n")
        with patchlog(database) as server:
            for media_type, body in bodies.items():
                rounds = [_once(server, body, media_type) for _ in range(1 if options.quick else _ROUNDS)]
                best = {way: min(times[way] for times, _, _ in rounds) for way in RDF_DELTA}
                peak = max(peak for _, _, peak in rounds)
                print(
                    f"{media_type}: {len(body) / 1e6:.0f} MB up in {best['up']:.2f} s, "
                    f"{rounds[0][1] / 1e6:.0f} MB down in {best['down']:.2f} s, peak memory {peak / 1e6:.0f} MB"
                )
                for way, yardstick in RDF_DELTA.items():
                    ratio = yardstick / best[way]
                    said = f"{way} {ratio:.1f}x RDF Delta"
                    print(f"    {verdict(said, '3x', reached=ratio >= 3, quick=options.quick)}")
                reached = peak <= 200 << 20
                print(f"    {verdict(f'{peak >> 20} MiB', 'at most 200 MiB', reached=reached, quick=options.quick)}")


if __name__ == "__main__":
    main()
