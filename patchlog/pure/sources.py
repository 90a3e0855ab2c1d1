"""The decoders behind the names of source formats: one face for statements, one for operations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol, get_args

from patchlog.codec.faces import SourceFormat
from patchlog.codec.options import Limits, RdfOptions
from patchlog.codec.patch_decoder import PatchDecoder
from patchlog.codec.rdf_decoder import RdfDecoder
from patchlog.errors import UsageError
from patchlog.model import RdfFrame
from patchlog.text.lines import MAX_LINE_BYTES
from patchlog.text.nquads import NQuadsReader
from patchlog.text.rdf_patch_reader import RdfPatchReader

__all__ = ["PATCH_SOURCES", "FrameDecoder", "Reading"]

PATCH_SOURCES: Final = frozenset({"jelly-patch", "rdf-patch"})


class FrameDecoder(Protocol):
    """What `RdfDecoder` offers; text is handed over as if the lines of a chunk were a frame."""

    @property
    def options(self) -> RdfOptions | None:
        """The stream's options, once they are known."""

    def feed(self, data: bytes, /) -> Iterator[RdfFrame]:
        """Take some bytes and yield what is complete."""

    def finish(self) -> Iterator[RdfFrame]:
        """Say that the input has ended, and yield what was waiting for that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How input is read. Text has no use for most of it."""

    source: SourceFormat
    limits: Limits
    strict: bool
    concatenated: bool
    delimited: bool | None
    max_line_bytes: int = MAX_LINE_BYTES

    def __post_init__(self) -> None:
        if self.source not in get_args(SourceFormat):
            raise UsageError(f"unknown source format {self.source!r}; there are {', '.join(get_args(SourceFormat))}")

    def frame_decoder(self) -> FrameDecoder:
        """A decoder for one input of statements."""
        if self.source == "nquads":
            return _LinesAsFrames(self.max_line_bytes)
        return RdfDecoder(
            limits=self.limits, strict=self.strict, concatenated=self.concatenated, delimited=self.delimited
        )

    def operation_decoder(self) -> PatchDecoder | RdfPatchReader:
        """A decoder for one input of operations."""
        if self.source == "rdf-patch":
            return RdfPatchReader(strict=self.strict, max_line_bytes=self.max_line_bytes)
        return PatchDecoder(
            limits=self.limits, strict=self.strict, concatenated=self.concatenated, delimited=self.delimited
        )


class _LinesAsFrames:
    options: Final = None

    def __init__(self, max_line_bytes: int) -> None:
        self._reader = NQuadsReader(max_line_bytes=max_line_bytes)

    def feed(self, data: bytes, /) -> Iterator[RdfFrame]:
        yield RdfFrame(0, self._reader.feed(data))

    def finish(self) -> Iterator[RdfFrame]:
        yield RdfFrame(0, self._reader.finish())
