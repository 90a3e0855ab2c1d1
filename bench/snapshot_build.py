"""How fast are snapshots made, and in how much memory?

A dataset of so many quads is appended in patches, and a snapshot is made of all of them; then one patch more, and
another snapshot is made from the first. Beside it the bare codec: the same patches decoded to text, and the same quads
encoded.
Every step is a process of its own; peak memory is that of the whole process.

    python bench/snapshot_build.py [--quick] [--quads 1000000] [--memory-mib 32] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from resource import RUSAGE_SELF, getrusage

from machine import print_machine

_PATCH_QUADS = 250_000


def quads(begin: int, end: int) -> Iterator[bytes]:
    """Yield blocks of N-Quads: few predicates and graphs, many subjects and values, as data sets are."""
    for start in range(begin, end, 10_000):
        yield b"".join(
            b'<http://example.org/resource/item%d> <http://example.org/ontology/p%d> "value %d of the thing"@en '
            b"<http://example.org/graph/%d> .\n" % (number // 4, number % 20, number, number % 7)
            for number in range(start, min(start + 10_000, end))
        )


def append(folder: Path, options: argparse.Namespace) -> int:
    """Append the dataset, in patches."""
    from patchlog.codec.options import CANONICAL_PATCH
    from patchlog.engine import Converter
    from patchlog.log.stores import open_store

    store = open_store(f"sqlite:///{folder}/log.db")
    store.create("bench")
    log = store.log("bench")

    def patch(begin: int, end: int) -> Iterator[bytes]:
        converter = Converter("nquads", "jelly-patch", patch_options=CANONICAL_PATCH)
        for block in quads(begin, end):
            yield converter.feed(block)
        yield converter.finish()

    for begin in range(0, options.quads, _PATCH_QUADS):
        log.append(patch(begin, min(begin + _PATCH_QUADS, options.quads)))
    store.close()
    return options.quads


def build(folder: Path, options: argparse.Namespace) -> int:
    """Make the snapshot at the head."""
    from patchlog.log.stores import open_store

    store = open_store(f"sqlite:///{folder}/log.db", snapshot_memory_bytes=options.memory_mib << 20)
    snapshot = store.log("bench").snapshots.build()
    store.close()
    return snapshot.quads


def build_again(folder: Path, options: argparse.Namespace) -> int:
    """Append a small patch, and make the next snapshot."""
    from patchlog.log.stores import open_store
    from patchlog.patch import Add, canonical

    store = open_store(f"sqlite:///{folder}/log.db")
    store.log("bench").append([canonical([Add("<http://example.org/new>", "<http://example.org/p>", '"new"', "")])])
    store.close()
    return build(folder, options)


def codec(folder: Path, options: argparse.Namespace) -> int:
    """Decode the patches to text, and encode the quads: what no snapshot can do without."""
    from patchlog.codec.options import LogicalType, RdfOptions
    from patchlog.engine import Converter
    from patchlog.log.stores import open_store

    store = open_store(f"sqlite:///{folder}/log.db")
    text = Converter("jelly-patch", "rdf-patch")
    for logged in store.log("bench").read():
        for chunk in logged.chunks:
            text.feed(chunk)
    jelly = Converter("nquads", "jelly", rdf_options=RdfOptions(logical_type=LogicalType.FLAT_QUADS))
    for block in quads(0, options.quads):
        jelly.feed(block)
    store.close()
    return options.quads


STEPS: dict[str, Callable[[Path, argparse.Namespace], int]] = {
    "append": append,
    "codec": codec,
    "build": build,
    "build_again": build_again,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quads", type=int, default=1_000_000)
    parser.add_argument("--quick", action="store_true", help="20,000 quads: shows that it works, proves nothing")
    parser.add_argument("--memory-mib", type=int, default=32)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--step", choices=STEPS)
    options = parser.parse_args()
    if options.quick:
        options.quads = 20_000
    if options.step:
        begin = time.perf_counter()
        count = STEPS[options.step](options.folder, options)
        seconds, cpu = time.perf_counter() - begin, time.process_time()
        peak = getrusage(RUSAGE_SELF).ru_maxrss >> 10
        print(json.dumps({"quads": count, "seconds": seconds, "cpu": cpu, "peak_mib": peak}))
        return
    print_machine(f"Snapshots of {options.quads:,} quads in {options.memory_mib} MiB")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for step, run in STEPS.items():
            words = [sys.executable, __file__, "--step", step, "--folder", folder]
            words += ["--quads", str(options.quads), "--memory-mib", str(options.memory_mib)]
            told = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
            rate = told["quads"] / told["seconds"]
            times = f"{told['seconds']:7.2f} s, {told['cpu']:6.2f} s of CPU"
            print(f"{step:12} {times}  {rate:10,.0f} quads/s  {told['peak_mib']:4} MiB   {run.__doc__}")


if __name__ == "__main__":
    main()
