"""Logged patches as changes: decoded, and what they do to what was selected."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from patchlog.codec.ingest import ID, PREV
from patchlog.codec.options import Limits
from patchlog.effect import effect
from patchlog.engine import PatchDecoder
from patchlog.followers.contract import Change, Dataset, DatasetTarget
from patchlog.followers.selection import EVERYTHING, Selection
from patchlog.log.position import Position
from patchlog.log.records import LogDescription, LoggedPatch
from patchlog.model import Header, Operation

__all__ = ["Applying", "change_of"]

_STORED_LIMITS: Final = Limits(max_frame_bytes=1 << 30, max_decoded_frame_bytes=1 << 40)
"""What is stored was held to the limits of its upload."""


class Applying:
    """A target for patches: decodes them, and applies what they do to what was selected."""

    def __init__(self, target: DatasetTarget, selection: Selection = EVERYTHING) -> None:
        self._target = target
        self._selection = selection

    def begin(self, log: LogDescription) -> None:
        """Say which log this is, and which part of it."""
        self._target.begin(log, self._selection.text)

    def position(self) -> Position | None:
        """Ask the target."""
        return self._target.position()

    def keep(self, position: Position | None) -> None:
        """Let the target go on from a position."""
        self._target.keep(position)

    def check(self) -> None:
        """Raise TargetMoved where the target is not where it was left."""
        self._target.check()

    def start_again(self) -> None:
        """Let nothing that is there count."""
        self._target.start_again()

    def take(self, logged: LoggedPatch) -> None:
        """Apply a patch."""
        self._target.apply(change_of(logged, self._selection))

    def load(self, dataset: Dataset) -> None:
        """Load what is selected of a dataset."""
        takes = self._selection.takes_namespace
        namespaces = {key: iri for key, iri in dataset.namespaces.items() if takes(key)}
        self._target.load(Dataset(dataset.position, self._selection.of_quads(dataset.quads), namespaces))

    def close(self) -> None:
        """Close the target."""
        self._target.close()


def change_of(logged: LoggedPatch, selection: Selection = EVERYTHING) -> Change:
    """What a patch does to what is selected, in memory. The headers `id` and `prev` are in its record."""
    headers: list[Header] = []
    found = effect(_setting_aside(headers, _operations_of(logged.chunks)))
    return Change(logged.record, tuple(headers), selection.of_effect(found))


def _operations_of(chunks: Iterable[bytes]) -> Iterator[Operation]:
    decoder = PatchDecoder(limits=_STORED_LIMITS)
    for chunk in chunks:
        yield from decoder.feed(chunk)
    yield from decoder.finish()


def _setting_aside(headers: list[Header], operations: Iterable[Operation]) -> Iterator[Operation]:
    for operation in operations:
        if not isinstance(operation, Header):
            yield operation
        elif operation.key not in (ID, PREV):
            headers.append(operation)
