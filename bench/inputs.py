"""The data of the benchmarks: text from the shared data, and what is derived from it, made once and kept in .data/."""

from __future__ import annotations

import gzip
import importlib.util
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from types import ModuleType

from patchlog.codec.options import LogicalType, PatchOptions, PhysicalType, RdfOptions
from patchlog.engine import Converter
from patchlog.streams import CHUNK_BYTES

NAMES = ("real", "iot", "nanopub")

CACHE = Path(__file__).parent / ".data"
STATEMENTS = 1_000_000
PATCH_STATEMENTS = 1000


@dataclass(frozen=True)
class Dataset:
    """Statements as text, and by suffix in every format that a side reads."""

    name: str
    statements: int
    text: Path

    def path(self, suffix: str) -> Path:
        """The file of that suffix: `text` (N-Quads or N-Triples), `jelly`, `jellyp` or `rdfp`."""
        if suffix == "text":
            return self.text
        path = self.text.with_suffix(f".{suffix}")
        if not path.exists():
            _write(path, _DERIVED[suffix](self))
        return path


def dataset(name: str, statements: int | None = None) -> Dataset:
    """The data of that name: all there is or a million statements, or the first so many."""
    limit = statements or STATEMENTS
    suffix = "nt" if name == "iot" else "nq"
    text = CACHE / f"{name}-{limit}.{suffix}"
    if not text.exists():
        _write(text, (line.encode() for line in _lines(name, limit)))
    with text.open("rb") as file:
        return Dataset(name, sum(1 for _ in file), text)


def _lines(name: str, limit: int) -> Iterator[str]:
    if name == "real":
        with gzip.open(_shared() / "real.nq.gz", "rt", encoding="utf-8") as lines:
            yield from islice(lines, limit)
        return
    generate = _generator()
    yield from generate.iot(limit, Random(42), False) if name == "iot" else generate.nanopub(limit, Random(42))


def _shared() -> Path:
    shared = os.environ.get("PATCHLOG_SHARED")
    return Path(shared) / "data" if shared else Path(__file__).parents[2] / "shared" / "data"


def _generator() -> ModuleType:
    path = _shared() / "generate.py"
    spec = importlib.util.spec_from_file_location("generate", path)
    if spec is None or spec.loader is None or not path.exists():
        raise SystemExit(f"{path} is missing; set PATCHLOG_SHARED to the folder that holds data/")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _jelly(data: Dataset) -> Iterator[bytes]:
    return _converted(data.text, Converter("nquads", "jelly", rdf_options=rdf_options(data.text)))


def _jelly_patch(data: Dataset) -> Iterator[bytes]:
    return _converted(data.path("rdfp"), Converter("rdf-patch", "jelly-patch", patch_options=PatchOptions()))


def _rdf_patch(data: Dataset) -> Iterator[bytes]:
    """Patches of a thousand operations, a transaction each, every fourth operation a delete."""
    with data.text.open("rb") as lines:
        while rows := list(islice(lines, PATCH_STATEMENTS)):
            patch = (b"D " + row if number % 4 == 3 else b"A " + row for number, row in enumerate(rows))
            yield b"TX .\n" + b"".join(patch) + b"TC .\nZ .\n"


_DERIVED: dict[str, Callable[[Dataset], Iterable[bytes]]] = {
    "jelly": _jelly,
    "jellyp": _jelly_patch,
    "rdfp": _rdf_patch,
}


def rdf_options(text: Path) -> RdfOptions:
    """Flat triples for N-Triples, flat quads for N-Quads, with the big tables."""
    if text.suffix == ".nt":
        return RdfOptions(physical_type=PhysicalType.TRIPLES, logical_type=LogicalType.FLAT_TRIPLES)
    return RdfOptions(physical_type=PhysicalType.QUADS, logical_type=LogicalType.FLAT_QUADS)


def chunks(path: Path, size: int = CHUNK_BYTES) -> Iterator[bytes]:
    """The bytes of a file, a chunk at a time."""
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(size):
            yield chunk


def _converted(path: Path, converter: Converter) -> Iterator[bytes]:
    for chunk in chunks(path):
        yield converter.feed(chunk)
    yield converter.finish()


def _write(path: Path, pieces: Iterable[bytes]) -> None:
    CACHE.mkdir(exist_ok=True)
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        file.writelines(pieces)
    shutil.move(part, path)
