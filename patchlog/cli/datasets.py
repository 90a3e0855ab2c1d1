"""Datasets as commands take them: files of any RDF format, or of patches, which stand for what they leave behind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from patchlog import patch, rdf
from patchlog.cli.files import STANDARD, file_name, reading
from patchlog.cli.outcome import Session, naming
from patchlog.cli.seams import watched
from patchlog.codec.options import Limits
from patchlog.effect import Effect, NamespaceKey, effect
from patchlog.formats import NQUADS, PATCH_FORMATS, RDF_FORMATS, RDF_PATCH, Format, choose_format
from patchlog.model import DEFAULT_GRAPH, Operation, Punctuation, Quad, RdfFrame, Term, as_quad
from patchlog.syntaxes import as_frames

__all__ = ["DATASET_FORMATS", "Contents", "Files", "applied"]

DATASET_FORMATS: Final = (*RDF_FORMATS, *PATCH_FORMATS)


@dataclass(slots=True)
class Contents:
    """The quads of a dataset and its namespaces. `is_log` says that they came from patches."""

    quads: set[Quad] = field(default_factory=set)
    namespaces: dict[NamespaceKey, Term] = field(default_factory=dict)
    is_log: bool = False


@dataclass(frozen=True, slots=True)
class Files:
    """How the files of a command are read."""

    session: Session
    limits: Limits
    strict: bool

    def operations(self, paths: Iterable[str], given: str | None) -> Iterator[Operation]:
        """Yield the operations of patch files, one after the other. The end of a file ends its patch."""
        for path in paths:
            chosen = choose_format(given, file_name(path), PATCH_FORMATS, default=_for_pipe(path, RDF_PATCH))
            chunks = watched(path, self.session, chosen, reading(path, self.session))
            yield from naming(path, patch.read(chunks, chosen.name, limits=self.limits, strict=self.strict))
            yield Punctuation()

    def frames(self, path: str, given: str | None) -> Iterator[RdfFrame]:
        """Yield the frames of a dataset."""
        chosen = self.dataset_format(path, given)
        chunks = watched(path, self.session, chosen, reading(path, self.session))
        return naming(path, rdf.read_frames(chunks, chosen.name, limits=self.limits, strict=self.strict))

    def dataset_format(self, path: str, given: str | None) -> Format:
        """The format of a dataset: N-Quads where a pipe does not say another."""
        return choose_format(given, file_name(path), RDF_FORMATS, default=_for_pipe(path, NQUADS))

    def contents(self, path: str, given: str | None) -> Contents:
        """Read a dataset, or what is there after a file of patches, into memory."""
        chosen = choose_format(given, file_name(path), DATASET_FORMATS, default=_for_pipe(path, NQUADS))
        if chosen.is_patch:
            change = effect(self.operations([path], chosen.name))
            left = {key: iri for key, iri in change.namespaces.items() if iri is not None}
            return Contents(set(change.adds), left, is_log=True)
        contents = Contents()
        for frame in self.frames(path, chosen.name):
            contents.quads.update(map(as_quad, frame.statements))
            contents.namespaces.update(((DEFAULT_GRAPH, name), iri) for name, iri in frame.namespaces)
        return contents


def _for_pipe(path: str, default: Format) -> Format | None:
    """A pipe has no name to guess from; a file has."""
    return default if path == STANDARD else None


def applied(frames: Iterator[RdfFrame], change: Effect) -> Iterator[RdfFrame]:
    """Yield a dataset after a change: what stays of each frame as it goes by, then what was added."""
    changed = change.adds | change.deletes
    renamed = {name for _, name in change.namespaces}
    declared = [(name, iri) for (_, name), iri in change.namespaces.items() if iri is not None]
    first = next(frames, None) or RdfFrame(0)
    first.namespaces = [*declared, *first.namespaces]
    for frame in chain([first], frames):
        namespaces = [pair for pair in frame.namespaces if pair[0] not in renamed or pair in declared]
        yield RdfFrame(frame.index, [one for one in frame.statements if as_quad(one) not in changed], namespaces)
    yield from as_frames(sorted(change.adds))
