"""Runs the sides of a question, each in a process of its own, and prints them beside each other.

A side is a function that takes the path of its input and returns the round to be timed. What it does before it returns
(to load objects that are to be written, say) is not timed, but its memory counts. Rounds are repeated; the best is
printed, which for a JVM is a warm one. Peak memory is that of the whole process, as the system counts it at its end.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import inputs
import jvm

Round = Callable[[], "Outcome | None"]
Prepare = Callable[[Path], Round]

SECONDS_PER_SIDE = 10.0


@dataclass(frozen=True)
class Outcome:
    """What a round did: statements, where the side counts them, and bytes of output, where it makes bytes."""

    statements: int | None = None
    output_bytes: int | None = None


@dataclass(frozen=True)
class Side:
    """One way of doing it: ours or a peer's, from an input file with that suffix."""

    name: str
    suffix: str
    prepare: Prepare | None = None
    jvm_task: str | None = None
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Goal:
    """Ours divided by the peer's: statements a second (`at_least`) or bytes of output (`at_most`)."""

    what: str
    ours: str
    peer: str
    at_least: float | None = None
    at_most: float | None = None


@dataclass(frozen=True)
class Question:
    """The sides that answer one question, on which data, and the goals."""

    title: str
    sides: Sequence[Side]
    goals: Sequence[Goal]
    datasets: Sequence[str] = ("real", "iot", "nanopub")
    statements: int | None = None


@dataclass(frozen=True)
class Measured:
    """The best round of a side."""

    statements: int
    wall: float
    cpu: float
    peak_bytes: int
    output_bytes: int | None

    @property
    def per_second(self) -> float:
        return self.statements / self.wall


def main(question: Question) -> None:
    """The command line of every question."""
    parser = argparse.ArgumentParser(description=question.title)
    parser.add_argument("--quick", action="store_true", help="small data and few rounds: shows that all sides work")
    parser.add_argument("--data", action="append", choices=inputs.NAMES, help="only these data (can be repeated)")
    parser.add_argument("--only", help="only the sides whose name contains this")
    parser.add_argument("--child", nargs=3, metavar=("SIDE", "FILE", "ROUNDS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        name, path, rounds = arguments.child
        _run_child(next(side for side in question.sides if side.name == name), Path(path), int(rounds))
        return
    print(f"\n# {question.title}\n")
    _print_machine()
    for data in arguments.data or question.datasets:
        statements = 20_000 if arguments.quick else question.statements
        _ask(question, inputs.dataset(data, statements), quick=arguments.quick, only=arguments.only)


def _ask(question: Question, dataset: inputs.Dataset, *, quick: bool, only: str | None) -> None:
    print(
        f"## {dataset.name}: {dataset.statements:,} statements, {dataset.text.stat().st_size / 1e6:,.1f} MB as text\n"
    )
    print(f"{'':52} {'M/s':>8} {'wall s':>8} {'CPU s':>8} {'peak MB':>8} {'out MB':>8}")
    measured: dict[str, Measured] = {}
    for side in question.sides:
        if only and only not in side.name:
            continue
        try:
            result = _measure(side, dataset, rounds=2 if quick else 20)
        except jvm.Missing as missing:
            print(f"{side.name:52} left out: {missing}")
            continue
        measured[side.name] = result
        output = f"{result.output_bytes / 1e6:8.2f}" if result.output_bytes else ""
        print(
            f"{side.name:52} {result.per_second / 1e6:8.3f} {result.wall:8.3f} {result.cpu:8.3f} "
            f"{result.peak_bytes / 1e6:8.0f} {output}",
            flush=True,
        )
    print()
    for goal in question.goals:
        if goal.ours in measured and goal.peer in measured:
            print(_verdict(goal, measured[goal.ours], measured[goal.peer], is_final=not quick))
    print(flush=True)


def _verdict(goal: Goal, ours: Measured, peer: Measured, *, is_final: bool) -> str:
    if goal.at_most is not None:
        ratio = (ours.output_bytes or 0) / (peer.output_bytes or 1)
        reached, wanted = ratio <= goal.at_most, f"at most {goal.at_most:g}x"
        ratios = f"{ratio:.3f}x the bytes"
    else:
        ratio = ours.per_second / peer.per_second
        reached, wanted = ratio >= (goal.at_least or 0), f"at least {goal.at_least:g}x"
        ratios = f"{ratio:.2f}x by wall, {peer.cpu / peer.statements / (ours.cpu / ours.statements):.2f}x by CPU"
    verdict = ("reached" if reached else "NOT REACHED") if is_final else "a quick look decides nothing"
    return f"{goal.what}: {ratios} of {goal.peer} (goal {wanted}: {verdict})"


def _measure(side: Side, dataset: inputs.Dataset, rounds: int) -> Measured:
    path = dataset.path(side.suffix)
    if side.jvm_task is not None:
        command = [*jvm.command(), side.jvm_task, str(path), str(rounds)]
    else:
        command = [sys.executable, sys.argv[0], "--child", side.name, str(path), str(rounds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ | side.environment) as process:
        assert process.stdout is not None
        answer = process.stdout.read()
        # wait4 is the only call that says how much memory this one child had at most.
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{side.name} failed on {path}")
    round_ = json.loads(answer.splitlines()[-1])
    counted = round_["statements"]
    if counted not in (None, dataset.statements):
        raise SystemExit(f"{side.name} counted {counted} statements of {dataset.statements}")
    return Measured(
        statements=dataset.statements,
        wall=round_["wall"],
        cpu=round_["cpu"],
        peak_bytes=usage.ru_maxrss * 1024,
        output_bytes=round_["output_bytes"] or None,
    )


def _run_child(side: Side, path: Path, rounds: int) -> None:
    assert side.prepare is not None
    run = side.prepare(path)
    gc.collect()
    gc.freeze()  # what was prepared is not the round's garbage to look through
    outcome = None
    best_wall = best_cpu = float("inf")
    begin = time.perf_counter()
    for _ in range(rounds):
        gc.collect()  # graphs are rings of references: those of the round before would stay in memory
        wall, cpu = time.perf_counter(), time.process_time()
        outcome = run()
        best_wall = min(best_wall, time.perf_counter() - wall)
        best_cpu = min(best_cpu, time.process_time() - cpu)
        if time.perf_counter() - begin > SECONDS_PER_SIDE:
            break
    outcome = outcome or Outcome()
    print(
        json.dumps(
            {
                "statements": outcome.statements,
                "wall": best_wall,
                "cpu": best_cpu,
                "output_bytes": outcome.output_bytes,
            }
        )
    )


def _print_machine() -> None:
    from patchlog import __version__
    from patchlog.engine import IMPLEMENTATION

    cpuinfo = Path("/proc/cpuinfo")
    models = [
        line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")
    ]
    print(f"patchlog {__version__} with its {IMPLEMENTATION} codec, Python {sys.version.split()[0]}")
    load = os.getloadavg()[0]
    print(f"{models[0] if models else 'unknown CPU'}, {os.cpu_count()} cores, load {load:.2f}")
    if load > 0.5:
        print("NOTE: the machine is busy; figures by wall clock are too low, ratios by CPU are fairer")
    print()
