"""What figures have to say of themselves: where they were measured, and whether they decide anything."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["print_machine", "verdict"]


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
