"""What figures have to say of themselves: where they were measured, and whether they decide anything."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

__all__ = ["print_machine", "seconds_of_family", "verdict"]


def print_machine(title: str) -> None:
    """Print what was measured, and on what."""
    from patchlog import __version__
    from patchlog.engine import IMPLEMENTATION

    cpuinfo = Path("/proc/cpuinfo")
    models = [
        line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")
    ]
    print(f"\n# {title}\n")
    print(f"patchlog {__version__} with its {IMPLEMENTATION} codec, Python {sys.version.split()[0]}")
    load = os.getloadavg()[0]
    print(f"{models[0] if models else 'unknown CPU'}, {os.cpu_count()} cores, load {load:.2f}")
    if load > 0.5:
        print("NOTE: the machine is busy; figures by wall clock are too low, ratios by CPU are fairer")
    print()


def verdict(what: str, goal: str, *, reached: bool, quick: bool) -> str:
    """A figure, with its goal and whether that was reached."""
    found = "a quick look decides nothing" if quick else "reached" if reached else "NOT REACHED"
    return f"{what} (goal {goal}: {found})"


def seconds_of_family(process: int) -> float:
    """The processor time of a process, of those that it started, and of theirs, whether they have ended or not."""
    ticks: dict[int, tuple[int, int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            # The name of the program, in brackets, may hold anything.
            fields = stat.read_text().rpartition(")")[2].split()
            ticks[int(stat.parent.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    family = {process}
    while children := {one for one, (parent, _) in ticks.items() if parent in family} - family:
        family |= children
    return sum(ticks[one][1] for one in family if one in ticks) / os.sysconf("SC_CLK_TCK")
