"""How fast do followers take a log to their targets, beside the bare download and decoding of the same bytes?

The log is one of a service: patches of a thousand operations, every fourth a delete. All that is timed runs in this
process; the service is another.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a script

import pyoxigraph
from rdflib import Dataset

from bench import inputs
from bench.machine import print_machine
from bench.services import arguments, patchlog
from patchlog import follow
from patchlog.effect import apply_effect
from patchlog.engine import PatchDecoder
from patchlog.log.stores import open_store
from patchlog.places import open_log

TITLE = "Followers of a log, by their targets"

_STATEMENTS = 200_000
_ROUNDS = 3

Work = Callable[[str], object]
"""Takes the log at a URL somewhere."""


def downloaded(url: str) -> None:
    """The bytes of the log, and nothing done with them."""
    with open_log(url) as log:
        for logged in log.read():
            for _ in logged.chunks:
                pass


def decoded(url: str) -> None:
    """The bytes of the log, decoded into operations."""
    with open_log(url) as log:
        decoder = PatchDecoder()
        for logged in log.read():
            for chunk in logged.chunks:
                for _ in decoder.feed(chunk):
                    pass


def into_a_function(url: str) -> None:
    follow(url, into=lambda _: None).close()


def into_a_set(url: str) -> None:
    quads: set[tuple[str, str, str, str]] = set()
    follow(url, into=lambda change: apply_effect(quads, {}, change.effect)).close()


def into_a_dataset(url: str) -> None:
    follow(url, into=Dataset()).close()


def into_a_log(url: str) -> None:
    with TemporaryDirectory(prefix="patchlog-bench-") as folder:
        store = open_store(f"sqlite:///{folder}/copy.db")
        store.create("copy")
        follow(url, into=store.log("copy")).close()
        store.close()


def into_a_file(url: str) -> None:
    with TemporaryDirectory(prefix="patchlog-bench-") as folder:
        follow(url, into=f"{folder}/copy.jellyp").close()


def into_an_endpoint(url: str) -> None:
    with _endpoint() as endpoint:
        follow(url, into=endpoint).close()


def bare_updates(url: str) -> None:
    """What the endpoint itself takes: the same changes, given to the store as objects."""
    store = pyoxigraph.Store()

    def take(change: object) -> None:
        for quads, call in ((change.effect.deletes, store.remove), (change.effect.adds, store.add)):  # type: ignore[attr-defined]
            lines = "".join(f"{' '.join(quad)} .\n" for quad in quads)
            for quad in pyoxigraph.parse(lines, format=pyoxigraph.RdfFormat.N_QUADS):
                call(quad)

    follow(url, into=take).close()


WORKS: dict[str, Work] = {
    "bare: downloaded": downloaded,
    "bare: downloaded and decoded": decoded,
    "a function": into_a_function,
    "a set, by a function": into_a_set,
    "a log in SQLite (a copy)": into_a_log,
    "a file .jellyp (a copy)": into_a_file,
    "rdflib Memory": into_a_dataset,
    "Oxigraph, by SPARQL updates": into_an_endpoint,
    "bare: Oxigraph, by its own calls": bare_updates,
}


class _Handler(BaseHTTPRequestHandler):
    """As much of the SPARQL protocol as a follower uses."""

    protocol_version = "HTTP/1.1"
    store: pyoxigraph.Store

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        body = b""
        if self.path == "/update":
            self.store.update(text)
        else:
            body = self.store.query(text).serialize(format=pyoxigraph.QueryResultsFormat.JSON) or b""
        self.send_response(200)
        self.send_header("Content-Type", "application/sparql-results+json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def _endpoint() -> Iterator[str]:
    handler = type("Handler", (_Handler,), {"store": pyoxigraph.Store()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/update"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def main() -> None:
    options = arguments(TITLE)
    statements = 20_000 if options.quick else _STATEMENTS
    print_machine(TITLE)
    data = inputs.dataset("iot", statements).path("jellyp")
    for database in options.database:
        with patchlog(database) as server:
            url = f"{server.url}/logs/iot"
            with open_log(url, creates=True) as log:
                patches = log.append([data.read_bytes()]).version
            print(
                f"\n## {database}, {patches:,} patches, {statements:,} statements, {data.stat().st_size / 1e6:.1f} MB\n"
            )
            print(f"{'':34} {'statements/s':>14} {'CPU s':>8} {'of bare':>8}")
            bare = None
            for name, work in WORKS.items():
                wall, cpu = _best(work, url, rounds=1 if options.quick else _ROUNDS)
                bare = cpu if work is decoded else bare
                times = "" if bare is None else f"{cpu / bare:7.1f}x"
                print(f"{name:34} {statements / wall:14,.0f} {cpu:8.2f} {times:>8}", flush=True)
    print("\n'of bare' is the processor time of this process, divided by that of downloading and decoding.")


def _best(work: Work, url: str, rounds: int) -> tuple[float, float]:
    """The least seconds, by wall and of this process."""
    walls, cpus = [], []
    for _ in range(rounds):
        wall, cpu = time.perf_counter(), time.process_time()
        work(url)
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return min(walls), min(cpus)


if __name__ == "__main__":
    main()
