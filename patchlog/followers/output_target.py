"""Bytes that are written as changes come: N-Quads for what is added, or RDF Patch or Jelly-Patch for all changes.

N-Quads have no word for a delete, so one ends the output with an error. An output keeps no position.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Literal, TypeAlias

from patchlog.effect import Effect
from patchlog.engine import CanonicalPatchEncoder, RdfPatchWriter
from patchlog.errors import UsageError
from patchlog.followers.contract import Change, Dataset
from patchlog.log.position import Position
from patchlog.log.records import LogDescription
from patchlog.model import (
    DEFAULT_GRAPH,
    Add,
    Header,
    NamespaceAdd,
    Operation,
    Punctuation,
    Quad,
    TransactionCommit,
    TransactionStart,
)
from patchlog.pipes import batches
from patchlog.text.terms import iri_term

__all__ = ["OutputFormat", "OutputTarget"]

OutputFormat: TypeAlias = Literal["nq", "rdf-patch", "jelly-patch"]


class OutputTarget:
    """Something that takes bytes."""

    def __init__(self, write: Callable[[bytes], object], format: OutputFormat = "nq") -> None:
        self._write = write
        self._format = format
        self._has_written = False
        self._log_id = ""
        self._kept: Position | None = None

    def begin(self, log: LogDescription, part: str) -> None:
        """Say which log this is; an output does not say which part it has."""
        del part
        self._log_id = log.id

    def position(self) -> Position | None:
        """What was kept: an output does not say."""
        return self._kept

    def keep(self, position: Position | None) -> None:
        """Go on from a position."""
        self._kept = position

    def check(self) -> None:
        """An output is where it was."""

    def start_again(self) -> None:
        """Raise UsageError: what was written cannot be taken back."""
        raise UsageError("what was written cannot be taken back: write to a new file")

    def apply(self, change: Change) -> None:
        """Write a change."""
        self._write_change(change)
        self._kept = Position(self._log_id, change.record.version, change.record.chain_hash)

    def _write_change(self, change: Change) -> None:
        self._has_written = True
        if self._format != "nq":
            if change.effect != Effect():
                said = [Header("id", iri_term(f"urn:uuid:{change.record.id}")), *change.headers]
                self._patch(chain(said, change.effect.operations()))
            return
        if change.effect.deletes:
            raise UsageError(
                f"version {change.record.version} deletes {_line(min(change.effect.deletes)).strip()} and N-Quads "
                "cannot say so: write rdf-patch or jelly-patch"
            )
        self._lines(sorted(change.effect.adds))

    def load(self, dataset: Dataset) -> None:
        """Write a dataset as a change that adds all of it. Only a beginning can be that."""
        if self._has_written:
            raise UsageError(
                f"patches before version {dataset.version} were truncated away, and what was written cannot be taken "
                "back: begin anew, and as a --consumer, for which a log waits"
            )
        self._has_written = True
        self._kept = dataset.position
        if self._format == "nq":
            self._lines(dataset.quads)
            return
        namespaces = (NamespaceAdd(name, iri, graph) for (graph, name), iri in dataset.namespaces.items())
        adds = (Add(*quad) for quad in dataset.quads)
        self._patch(chain([TransactionStart()], namespaces, adds, [TransactionCommit()]))

    def close(self) -> None:
        """The output is its owner's."""

    def _lines(self, quads: Iterable[Quad]) -> None:
        for batch in batches(quads):
            self._write("".join(map(_line, batch)).encode())

    def _patch(self, operations: Iterable[Operation]) -> None:
        encoder = RdfPatchWriter() if self._format == "rdf-patch" else CanonicalPatchEncoder()
        for operation in operations:
            encoder.accept(operation)
            if piece := encoder.take():
                self._write(piece)
        encoder.accept(Punctuation())
        self._write(encoder.finish())


def _line(quad: Quad) -> str:
    subject, predicate, object, graph = quad
    return f"{subject} {predicate} {object} .\n" if graph == DEFAULT_GRAPH else f"{' '.join(quad)} .\n"
