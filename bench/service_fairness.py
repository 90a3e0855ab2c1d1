"""How soon short requests are answered while the threads for long ones are all taken."""

from __future__ import annotations

import http.client
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a script

from bench.log_append import SOMEBODY
from bench.machine import print_machine
from bench.services import Server, arguments, new_log, patchlog

TITLE = "Short requests beside long ones"
TEXT = {"Content-Type": "application/rdf-patch"}
_ROW = (
    f'H who "{SOMEBODY}" .\nTX .\nA <http://example.org/s{{number}}> <http://example.org/p> "{{number}}" .\nTC .\nZ .\n'
)
SHORT = ("/healthz", "/readyz", "{log}", "{log}/patches/1", "{log}/consumers")
LONG = ("{log}/verify", "{log}/diff?from=0&to={half}", "{log}/history?subject=http://example.org/s1", "{log}/patches")


def fill(server: Server, log: str, patches: int) -> None:
    """Append patches of about 200 bytes, a thousand to a request."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    for start in range(0, patches, 1000):
        rows = (_ROW.format(number=number) for number in range(start, start + 1000))
        connection.request("POST", f"{log}/patches", "".join(rows), TEXT)
        answer = connection.getresponse()
        if answer.status != 201:
            raise SystemExit(answer.read().decode())
        answer.read()
    connection.close()


def ask(server: Server, path: str) -> Callable[[], None]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)

    def get() -> None:
        connection.request("GET", path)
        connection.getresponse().read()

    return get


def measure(server: Server, log: str, half: int, long_clients: int, seconds: float) -> None:
    """Print a row for each short request, asked again and again while so many clients ask for each long one."""
    is_over = threading.Event()

    def load(path: str) -> None:
        get = ask(server, path)
        while not is_over.is_set():
            get()

    paths = [path.format(log=log, half=half) for path in LONG for _ in range(long_clients)]
    loads = [threading.Thread(target=load, args=[path], daemon=True) for path in paths]
    for one in loads:
        one.start()
    time.sleep(0.5 if loads else 0)
    for path in SHORT:
        get = ask(server, path.format(log=log))
        delays = []
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            begun = time.perf_counter()
            get()
            delays.append(1000 * (time.perf_counter() - begun))
        delays.sort()
        p50, p99 = (delays[int(share * (len(delays) - 1))] for share in (0.5, 0.99))
        print(f"{len(loads):6} {path:20} {len(delays):8,} {p50:9.2f} {p99:9.2f} {delays[-1]:9.2f}", flush=True)
    is_over.set()
    for one in loads:
        one.join()


def main() -> None:
    options = arguments(TITLE)
    print_machine(TITLE)
    for database in options.database:
        print(f"\n## {database}\n")
        print(f"{'long':>6} {'request':20} {'answers':>8} {'p50 ms':>9} {'p99 ms':>9} {'max ms':>9}")
        with patchlog(database) as server:
            log = new_log(server, "people")
            patches = 5_000 if options.quick else 100_000
            fill(server, log, patches)
            for long_clients in (0, 1, 8):
                measure(server, log, patches // 2, long_clients, 0.5 if options.quick else 5)


if __name__ == "__main__":
    main()
