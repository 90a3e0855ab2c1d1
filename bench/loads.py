"""Clients of a service, each a process with one connection that is kept, and what they saw."""

from __future__ import annotations

import http.client
import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from typing import TypeAlias

from bench.services import Server

Step: TypeAlias = Callable[[], None]
Client: TypeAlias = Callable[[http.client.HTTPConnection, int], Step]
"""Gets a connection and the number of the client, and gives what it is to do over and over."""

_PROCESSES = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class Load:
    """What all clients saw together."""

    seconds: float
    server_cpu_seconds: float
    latencies: list[float]
    """Of each request, in seconds, sorted."""

    @property
    def per_second(self) -> float:
        return len(self.latencies) / self.seconds

    def milliseconds(self, share: float) -> float:
        """The time within which that share of the requests was answered."""
        return 1000 * self.latencies[min(len(self.latencies) - 1, int(share * len(self.latencies)))]


def drive(server: Server, clients: int, seconds: float, client: Client) -> Load:
    """Let clients work for some seconds, after a warm-up."""
    barrier = _PROCESSES.Barrier(clients + 1)
    pipes, processes = [], []
    for number in range(clients):
        mine, theirs = _PROCESSES.Pipe(duplex=False)
        process = _PROCESSES.Process(target=_run, args=(server.port, number, seconds, client, barrier, theirs))
        process.start()
        pipes.append(mine)
        processes.append(process)
    barrier.wait(60)
    begun, cpu = time.perf_counter(), server.cpu_seconds
    found = [pipe.recv() for pipe in pipes]
    took, cpu = time.perf_counter() - begun, server.cpu_seconds - cpu
    for process in processes:
        process.join()
    return Load(took, cpu, sorted(latency for latencies in found for latency in latencies))


def _run(port: int, number: int, seconds: float, client: Client, barrier: Barrier, answer: Connection) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.connect()
    step = client(connection, number)
    for _ in range(5):
        step()
    barrier.wait(60)
    latencies = []
    now = time.perf_counter()
    deadline = now + seconds
    while now < deadline:
        step()
        before, now = now, time.perf_counter()
        latencies.append(now - before)
    answer.send(latencies)


def answered(connection: http.client.HTTPConnection, status: int = 200) -> bytes:
    """The body of an answer, which has to have that status."""
    response = connection.getresponse()
    data = response.read()
    if response.status != status:
        raise SystemExit(f"the service answered {response.status}: {data[:300]!r}")
    return data
