"""How fast patches are had again: one by one, as a range, and beside a server of static files with the same bytes."""

from __future__ import annotations

import http.client
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a script

from bench.loads import Step, answered, drive
from bench.log_append import fill
from bench.machine import print_machine, verdict
from bench.services import Server, arguments, new_log, patchlog, static_files

TITLE = "Patches downloaded over HTTP"

RDF_DELTA_FETCHES = 1652
"""Its patches a second, fetched one by one by eight clients; it has no ranges."""
_MANY = 20_000


def one_by_one(path: str, patches: int):
    """A client that gets one patch after the other, each at its version under the path."""

    def client(connection: http.client.HTTPConnection, number: int) -> Step:
        version = 997 * number

        def step() -> None:
            nonlocal version
            version = version % patches + 1
            connection.request("GET", f"{path}/{version}")
            answered(connection)

        return step

    return client


def _whole(server: Server, path: str) -> tuple[float, int, bytes]:
    """The best of some downloads: its seconds, and how many bytes and which they are."""
    best, data = float("inf"), b""
    for _ in range(5):
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        begun = time.perf_counter()
        connection.request("GET", path)
        data = answered(connection)
        best = min(best, time.perf_counter() - begun)
        connection.close()
    return best, len(data), data


def main() -> None:
    options = arguments(TITLE)
    seconds = 1.0 if options.quick else 5.0
    patches = 2000 if options.quick else _MANY
    print_machine(TITLE)
    for database in options.database:
        print(f"\n## {database}, {patches:,} patches of ten operations\n")
        with patchlog(database) as server, tempfile.TemporaryDirectory(prefix="patchlog-bench-") as folder:
            path = new_log(server, "people")
            fill(server, path, patches)
            took, size, data = _whole(server, f"{path}/patches")
            Path(folder, "patches.jellyp").write_bytes(data)
            with static_files(Path(folder)) as static:
                static_took, _, _ = _whole(static, "/patches.jellyp")
            single = drive(server, 8, seconds, one_by_one(f"{path}/patches", patches))
            peak = server.peak_bytes
        print(f"{'a range of all':32} {patches / took:10,.0f} patches/s {size / took / 1e6:8.0f} MB/s")
        print(f"{'the same as a static file':32} {'':10} {'':9} {size / static_took / 1e6:9.0f} MB/s")
        p50, p99 = single.milliseconds(0.5), single.milliseconds(0.99)
        cpu = 1000 * single.server_cpu_seconds / len(single.latencies)
        print(
            f"{'one by one, 8 clients':32} {single.per_second:10,.0f} patches/s, p50 {p50:.2f} ms, p99 {p99:.2f} ms, "
        )
        print(f"{'':32} CPU {cpu:.2f} ms a patch; peak memory of the service {peak / 1e6:.0f} MB")
        ratio = patches / took / RDF_DELTA_FETCHES
        print(f"    {verdict(f'range {ratio:.0f}x RDF Delta', '20x', reached=ratio >= 20, quick=options.quick)}")
        ratio = took / static_took
        reached = ratio <= 2
        print(f"    {verdict(f'{ratio:.1f}x the static file', 'at most 2x', reached=reached, quick=options.quick)}")
        print(f"    one by one {single.per_second / RDF_DELTA_FETCHES:.2f}x RDF Delta")


if __name__ == "__main__":
    main()
