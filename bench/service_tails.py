"""How soon a new patch is at all who follow a log, and what idle tails cost."""

from __future__ import annotations

import http.client
import selectors
import socket
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a script

from bench.log_append import SOME_ID, SOMEBODY, appender, patch_bytes, patch_text
from bench.machine import print_machine
from bench.services import Server, arguments, new_log, patchlog

TITLE = "Live tails"


def measure(server: Server, tails: int, patches: int, seconds: float) -> None:
    """Print a row: memory and CPU of so many idle tails, and how soon each of some patches is at the last of them."""
    path = new_log(server, f"tails-{tails}")
    before = server.peak_bytes
    selector = selectors.DefaultSelector()
    connections = []
    for _ in range(tails):
        connection = socket.create_connection(("127.0.0.1", server.port))
        connection.sendall(f"GET {path}/stream HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        selector.register(connection, selectors.EVENT_READ)
        connections.append(connection)
    for connection in connections:
        connection.recv(4096)
    cpu = server.cpu_seconds
    time.sleep(seconds)
    cpu = (server.cpu_seconds - cpu) / seconds
    writer = http.client.HTTPConnection("127.0.0.1", server.port)
    append = appender(path, patch_bytes(patch_text(SOMEBODY, SOME_ID)), "application/x-jelly-rdf-patch")(writer, 0)
    delays = []
    for _ in range(patches):
        append()
        begun = time.perf_counter()
        waiting = set(connections)
        while waiting:
            for key, _ in selector.select():
                if key.fileobj in waiting and key.fileobj.recv(1 << 16):
                    delays.append(time.perf_counter() - begun)
                    waiting.discard(key.fileobj)
    memory = (server.peak_bytes - before) / tails
    for connection in connections:
        connection.close()
    writer.close()
    delays.sort()
    p50, p99 = (1000 * delays[int(share * (len(delays) - 1))] for share in (0.5, 0.99))
    print(f"{tails:8,} {p50:10.2f} {p99:10.2f} {memory / 1e3:14.1f} {100 * cpu:12.1f}", flush=True)


def main() -> None:
    options = arguments(TITLE)
    print_machine(TITLE)
    for database in options.database:
        print(f"\n## {database}\n")
        print(f"{'tails':>8} {'p50 ms':>10} {'p99 ms':>10} {'kB a tail':>14} {'idle CPU %':>12}")
        with patchlog(database) as server:
            for tails in (1, 20) if options.quick else (1, 200, 2000):
                measure(server, tails, 20, 1 if options.quick else 5)


if __name__ == "__main__":
    main()
