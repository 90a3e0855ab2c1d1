"""Bytes of any patch format to what a log stores of them, as they come. docs/protocol.md, "The stored patch"."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from patchlog.codec.ingest import IngestedPatch, PatchIngest
from patchlog.codec.options import Limits, PatchOptions, StreamType
from patchlog.codec.patch_decoder import PatchDecoder
from patchlog.errors import UnexpectedRow, UsageError
from patchlog.model import Operation
from patchlog.spending import Spendable, spending_iteration
from patchlog.text.rdf_patch_reader import RdfPatchReader

__all__ = ["PatchIntake", "WholeIntake"]


class PatchIntake(Spendable):
    """Decodes, checks and encodes. Its face: `patchlog.codec.faces.PatchIntakeFace`."""

    def __init__(
        self,
        source: str,
        options: PatchOptions,
        *,
        limits: Limits = Limits(),  # noqa: B008  it is frozen
    ) -> None:
        if source not in ("jelly-patch", "rdf-patch"):
            raise UsageError(f"{source!r} is not a format of patches; there are jelly-patch and rdf-patch")
        self._jelly = PatchDecoder(limits=limits) if source == "jelly-patch" else None
        self._decoder = self._jelly or RdfPatchReader()
        self._ingest = PatchIngest(options)
        self._first_frames: tuple[int | None, int | None] = (None, None)
        """Of the patch that was begun last: the frame that it began in, and that of its first operation but ids."""

    @spending_iteration
    def feed(self, data: bytes, /) -> Iterator[bytes | IngestedPatch]:
        """Take some bytes and yield what is complete. Exhaust it before the next call."""
        return self._ingested(self._decoder.feed(data))

    @spending_iteration
    def finish(self) -> Iterator[bytes | IngestedPatch]:
        """Say that the input has ended, and yield the rest. Exhaust it."""
        yield from self._ingested(self._decoder.finish())
        if self._is_cut:
            raise UnexpectedRow("the stream ends inside a patch: its punctuation row is missing")
        if ended := self._ingest.finish():
            yield self._ingest.take()
            yield ended

    @property
    def _is_cut(self) -> bool:
        """Whether the input ends inside a patch of which the writer never leaves the punctuation out.

        Logs store the headers of a patch in a frame of their own. Other writers may leave the last punctuation out.
        """
        options = self._jelly.options if self._jelly else None
        if options is None or options.stream_type != StreamType.PUNCTUATED or not self._ingest.is_in_patch:
            return False
        return self._first_frames[0] != self._first_frames[1]

    def _ingested(self, operations: Iterable[Operation]) -> Iterator[bytes | IngestedPatch]:
        for operation in operations:
            frame = self._jelly.frame if self._jelly else None
            if not self._ingest.is_in_patch:
                self._first_frames = (frame, None)
            ended = self._ingest.accept(operation)
            if self._first_frames[1] is None and self._ingest.has_operations:
                self._first_frames = (self._first_frames[0], frame)
            if frames := self._ingest.take():
                yield frames
            if ended:
                yield ended


class WholeIntake:
    """As `PatchIntake`, for input that is there whole. Its face: `patchlog.codec.faces.WholeIntakeFace`."""

    def __init__(
        self,
        source: str,
        options: PatchOptions,
        *,
        limits: Limits = Limits(),  # noqa: B008  it is frozen
    ) -> None:
        self._begin = partial(PatchIntake, source, options, limits=limits)
        self._begin()  # so that what cannot be is refused now

    def take(self, data: bytes, /) -> Sequence[bytes | IngestedPatch]:
        """Take one input, and hand over all of it."""
        intake = self._begin()
        return [*intake.feed(data), *intake.finish()]
