"""Streams over gRPC beside plain HTTP: the same patches, datasets and statements, up and down."""

from __future__ import annotations

import http.client
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import grpc
import httpx

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a script

from bench.loads import answered
from bench.log_append import patch_bytes
from bench.machine import print_machine, verdict
from bench.services import Server, arguments, new_log, patchlog
from patchlog.codec.framing import FrameSplitter
from patchlog.codec.options import RdfOptions
from patchlog.engine import RdfEncoder
from patchlog.wire import PatchSubscribe, RdfStreamSubscribe

TITLE = "Streams over gRPC, beside plain HTTP"

GOAL = 1.5
"""How much longer than HTTP it may take."""
_RDF = "/eu.ostrzyciel.jelly.core.proto.v1.RdfStreamService"
_PATCHES = "/patchlog.v1.PatchStreamService"
_JELLY_PATCH = "application/x-jelly-rdf-patch"
_JELLY_RDF = "application/x-jelly-rdf"
_A_PATCH = 10_000
_GRAPH = "<http://data.example.org/people/current>"


@dataclass(frozen=True)
class Took:
    """The best of some rounds."""

    seconds: float
    server_cpu_seconds: float
    bytes: int


def statements(number: int):
    """The statements of a patch."""
    for row in range(number * _A_PATCH, (number + 1) * _A_PATCH):
        who, property = divmod(row, 10)
        subject = f"<http://data.example.org/people/person/{who}>"
        yield subject, f"<http://xmlns.com/foaf/0.1/p{property}>", f'"value {property} of {who}, in words"', _GRAPH


def patches_of(many: int) -> bytes:
    """Patches that add them, laid end to end."""
    rows = ("".join(f"A {' '.join(statement)} .\n" for statement in statements(number)) for number in range(many))
    return patch_bytes("".join(f"TX .\n{some}TC .\nZ .\n" for some in rows))


def rdf_of(many: int) -> bytes:
    """The statements as one stream of Jelly-RDF."""
    encoder = RdfEncoder(RdfOptions(), rows_per_frame=1024)
    for number in range(many):
        encoder.statements(statements(number))
    data: bytes = encoder.take() + encoder.finish()
    return data


def frames_of(data: bytes) -> list[bytes]:
    """Frames without their lengths, as messages are."""
    splitter = FrameSplitter(max_frame_bytes=1 << 30, strict=True, delimited=True)
    return [*splitter.feed(data), *splitter.finish()]


def measured(server: Server, rounds: int, run: Callable[[], int]) -> Took:
    """The best of some rounds of what returns a number of bytes."""
    best = Took(float("inf"), float("inf"), 0)
    for _ in range(rounds):
        begun, cpu = time.perf_counter(), server.cpu_seconds
        size = run()
        took = Took(time.perf_counter() - begun, server.cpu_seconds - cpu, size)
        best = min(best, took, key=lambda one: one.seconds)
    return best


def http_get(server: Server, path: str, media_type: str) -> int:
    """How many bytes an answer has."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)
    connection.request("GET", path, headers={"Accept": media_type})
    size = len(answered(connection))
    connection.close()
    return size


def http_post(server: Server, path: str, body: bytes, media_type: str) -> int:
    """Upload in pieces, as a stream would be."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)
    pieces = (body[start : start + (64 << 10)] for start in range(0, len(body), 64 << 10))
    connection.request("POST", path, pieces, {"Content-Type": media_type}, encode_chunked=True)
    answered(connection, 201)
    connection.close()
    return len(body)


class Sides:
    """Each pair of ways, on one service."""

    def __init__(self, server: Server, channel: grpc.Channel, patches: int) -> None:
        self._server = server
        self._channel = channel
        self._names = (f"log-{number}" for number in count())
        self._patches = patches_of(patches)
        self._rdf = rdf_of(patches)
        self._many = patches
        new_log(server, "read")
        http_post(server, "/logs/read/patches", self._patches, _JELLY_PATCH)
        httpx.post(f"{server.url}/logs/read/snapshots?wait=60", timeout=90).raise_for_status()

    def subscribe_to_patches(self) -> tuple[Callable[[], int], Callable[[], int]]:
        request = PatchSubscribe(log="read", until=self._many).SerializeToString()
        call = self._channel.unary_stream(f"{_PATCHES}/SubscribePatches")
        return (
            lambda: sum(map(len, call(request))),
            lambda: http_get(self._server, "/logs/read/patches", _JELLY_PATCH),
        )

    def subscribe_to_statements(self) -> tuple[Callable[[], int], Callable[[], int]]:
        request = RdfStreamSubscribe(topic=f"read@{self._many}").SerializeToString()
        call = self._channel.unary_stream(f"{_RDF}/SubscribeRdf")
        path = f"/logs/read/snapshots/{self._many}"
        return lambda: sum(map(len, call(request))), lambda: http_get(self._server, path, _JELLY_RDF)

    def publish_patches(self) -> tuple[Callable[[], int], Callable[[], int]]:
        frames = frames_of(self._patches)
        return lambda: self._publish(f"{_PATCHES}/PublishPatches", frames), self._post

    def publish_statements(self) -> tuple[Callable[[], int], Callable[[], int]]:
        frames = frames_of(self._rdf)
        return lambda: self._publish(f"{_RDF}/PublishRdf", frames), self._post

    def _publish(self, method: str, frames: list[bytes]) -> int:
        name = next(self._names)
        new_log(self._server, name)
        self._channel.stream_unary(method)(iter(frames), metadata=(("log", name), ("topic", name)))
        return sum(map(len, frames))

    def _post(self) -> int:
        path = new_log(self._server, next(self._names))
        return http_post(self._server, f"{path}/patches", self._patches, _JELLY_PATCH)


def main() -> None:
    options = arguments(TITLE)
    patches, rounds = (2, 2) if options.quick else (100, 8)
    print_machine(TITLE)
    for database in options.database:
        print(f"\n## {database}, {patches * _A_PATCH:,} statements\n")
        print(f"{'':36} {'k/s':>8} {'MB/s':>8} {'CPU ms':>8}")
        with patchlog(database, grpc_port=0) as server, grpc.insecure_channel(_address(server)) as channel:
            sides = Sides(server, channel, patches)
            for ask in (
                sides.subscribe_to_patches,
                sides.subscribe_to_statements,
                sides.publish_patches,
                sides.publish_statements,
            ):
                ours, plain = (measured(server, rounds, run) for run in ask())
                what = ask.__name__.replace("_", " ")
                for name, took in ((f"{what}, gRPC", ours), ("    HTTP", plain)):
                    _print(name, took, patches)
                ratio = ours.seconds / plain.seconds
                said = f"{ratio:.2f}x the time of HTTP"
                if plain.server_cpu_seconds:  # it is counted in hundredths
                    said += f", {ours.server_cpu_seconds / plain.server_cpu_seconds:.2f}x the CPU of the service"
                print(f"    {verdict(said, f'at most {GOAL:g}x', reached=ratio <= GOAL, quick=options.quick)}")


def _print(name: str, took: Took, patches: int) -> None:
    rate = patches * _A_PATCH / took.seconds / 1e3
    megabytes = took.bytes / took.seconds / 1e6
    print(f"{name:36} {rate:8,.0f} {megabytes:8.1f} {1000 * took.server_cpu_seconds:8,.0f}", flush=True)


def _address(server: Server) -> str:
    deadline = time.monotonic() + 20
    while (found := re.search(r"gRPC is at ([0-9.:]+)", (server.folder / "server.log").read_text())) is None:
        if time.monotonic() > deadline:
            raise SystemExit("the service does not listen for gRPC")
        time.sleep(0.05)
    return found[1]


if __name__ == "__main__":
    main()
