"""What does it cost to record the changes of an rdflib dataset?

Each side does the same to a dataset in rdflib's Memory: bare, or captured by a log in memory or in SQLite, with the
commits that record it.
"""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from harness import Goal, Outcome, Question, Round, Side, main
from inputs import chunks
from rdflib import Dataset, URIRef

from patchlog import capture
from patchlog.rdflib_hook import RdflibDecoder

warnings.simplefilter("ignore", DeprecationWarning)  # rdflib's own calls of its own
logging.disable(logging.WARNING)

PER_UPDATE = 10
UPDATES = 500
PER_TRANSACTION = 1000

Work = Callable[[Dataset, list], None]


def loaded(path: Path) -> list:
    decoder = RdflibDecoder("jelly")
    return [quad for chunk in chunks(path) for quad in decoder.feed(chunk)] + decoder.finish()


def add_in_bulk(dataset: Dataset, quads: list) -> None:
    graph = dataset.default_graph
    dataset.addN((quad[0], quad[1], quad[2], graph) for quad in quads)
    dataset.commit()


def add_one_by_one(dataset: Dataset, quads: list) -> None:
    for number, quad in enumerate(quads):
        dataset.add(quad[:3])
        if number % PER_TRANSACTION == 0:
            dataset.commit()
    dataset.commit()


def add_and_remove(dataset: Dataset, quads: list) -> None:
    add_in_bulk(dataset, quads)
    for quad in quads:
        dataset.remove(quad[:3])
    dataset.commit()


def add_and_remove_by_pattern(dataset: Dataset, quads: list) -> None:
    add_in_bulk(dataset, quads)
    for subject in {quad[0] for quad in quads}:
        dataset.remove((subject, None, None))
    dataset.commit()


def update(dataset: Dataset, quads: list) -> None:
    """Inserts of ten triples and a change of one of their objects, with a commit behind each."""
    iterator = ((s, p, o) for s, p, o, *_ in quads if isinstance(s, URIRef))
    for _ in range(UPDATES):
        triples = [" ".join(term.n3() for term in triple) for triple in islice(iterator, PER_UPDATE)]
        if not triples:
            return
        subject, predicate, _ = triples[0].split(" ", 2)
        dataset.update(
            f"INSERT {{ {' . '.join(triples)} }} WHERE {{}} ; DELETE {{ {subject} {predicate} ?o }} "
            f"INSERT {{ {subject} {predicate} 'changed' }} WHERE {{ {subject} {predicate} ?o }}"
        )
        dataset.commit()


def bare(work: Work):
    def prepare(path: Path) -> Round:
        quads = loaded(path)

        def run() -> Outcome:
            work(Dataset(), quads)
            return Outcome()

        return run

    return prepare


def captured(work: Work, database: str):
    def prepare(path: Path) -> Round:
        quads = loaded(path)

        def run() -> Outcome:
            with tempfile.TemporaryDirectory() as folder:
                dataset = Dataset(store=capture(log=database.format(folder=folder)))
                work(dataset, quads)
                dataset.close()
            return Outcome()

        return run

    return prepare


WORKS = {
    "bulk adds": add_in_bulk,
    "adds, a commit per 1000": add_one_by_one,
    "bulk adds, then removes": add_and_remove,
    "bulk adds, then removes by subject": add_and_remove_by_pattern,
    "500 SPARQL updates, a commit each": update,
}
MEMORY, SQLITE = "memory:#log", "sqlite:///{folder}/log.db#log"

QUESTION = Question(
    "What does it cost to record the changes of an rdflib dataset?",
    sides=[
        side
        for name, work in WORKS.items()
        for side in (
            Side(f"bare Memory: {name}", "jelly", bare(work)),
            Side(f"log in memory: {name}", "jelly", captured(work, MEMORY)),
            Side(f"log in SQLite: {name}", "jelly", captured(work, SQLITE)),
        )
    ],
    # A quarter more time is four fifths of the speed.
    goals=[
        Goal(f"{name}, {log}", f"log in {log}: {name}", f"bare Memory: {name}", at_least=0.8)
        for name in WORKS
        for log in ("memory", "SQLite")
    ],
    datasets=("iot",),
    statements=100_000,
)

if __name__ == "__main__":
    main(QUESTION)
