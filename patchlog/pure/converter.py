"""Bytes of one format to bytes of another. docs/protocol.md, "Converting"."""

from __future__ import annotations

from collections.abc import Iterable

from patchlog.codec.faces import OperationEncoderFace, SinkFormat, SourceFormat
from patchlog.codec.options import Limits, PatchOptions, RdfOptions
from patchlog.codec.patch_decoder import PatchDecoder
from patchlog.errors import UsageError
from patchlog.model import Operation, Punctuation, RdfFrame
from patchlog.pure.sinks import PATCH_SINKS, StatementWriter, Writing
from patchlog.pure.sources import PATCH_SOURCES, Reading
from patchlog.spending import Spendable, spending
from patchlog.text.lines import MAX_LINE_BYTES

__all__ = ["Converter"]


class Converter(Spendable):
    """A pipe from one format to another. Its face: `patchlog.codec.faces.ConverterFace`.

    `max_line_bytes` is more than the face has: the native one reads no longer lines than the default.
    """

    def __init__(
        self,
        source: SourceFormat,
        sink: SinkFormat,
        *,
        limits: Limits = Limits(),  # noqa: B008  it is frozen
        strict: bool = True,
        concatenated: bool = False,
        delimited: bool | None = None,
        rdf_options: RdfOptions | None = None,
        patch_options: PatchOptions | None = None,
        rows_per_frame: int | None = None,
        output_delimited: bool = True,
        namespace_declarations: bool = False,
        keep_frames: bool = False,
        frames: tuple[int, int | None] | None = None,
        max_line_bytes: int = MAX_LINE_BYTES,
    ) -> None:
        reading = Reading(
            source=source,
            limits=limits,
            strict=strict,
            concatenated=concatenated,
            delimited=delimited,
            max_line_bytes=max_line_bytes,
        )
        writing = Writing(
            sink=sink,
            rdf_options=rdf_options,
            patch_options=patch_options,
            rows_per_frame=0 if keep_frames else rows_per_frame,
            delimited=output_delimited,
            namespace_declarations=namespace_declarations,
        )
        for index in frames or ():
            if index is not None and index < 0:
                raise UsageError(f"{index} is not a number of rows or frames: those begin with 0")
        if frames is not None and source != "jelly":
            raise UsageError(f"frames can be chosen from Jelly-RDF, not from {source}")
        self._pipe: _StatementPipe | _OperationPipe
        if source not in PATCH_SOURCES:
            keeps_frames = keep_frames and source == "jelly"
            self._pipe = _StatementPipe(reading, writing, keep_frames=keeps_frames, frames=frames or (0, None))
        elif sink in PATCH_SINKS:
            self._pipe = _OperationPipe(reading, writing)
        else:
            raise UsageError(
                f"{sink} holds statements, and {source} holds changes of them: apply the patch to a dataset instead"
            )
        self._has_had_input = False
        self._is_in_input = False

    @property
    def statements(self) -> int:
        """How many statements were written so far; of a patch, how many operations but punctuations."""
        return self._pipe.written

    @spending
    def feed(self, data: bytes, /) -> bytes:
        """Take some bytes and return the output that is complete."""
        self._has_had_input = self._is_in_input = True
        self._pipe.feed(data)
        return self._pipe.take()

    @spending
    def end_frame(self) -> None:
        """End the current frame of Jelly-RDF output here."""
        self._pipe.end_frame()

    @spending
    def end_input(self) -> bytes:
        """The input ends here, and another input of the same format may begin; the output goes on."""
        self._has_had_input = True
        self._is_in_input = False
        self._pipe.end_input()
        return self._pipe.take()

    @spending
    def finish(self) -> bytes:
        """Say that the input has ended and return the rest."""
        rest = self.end_input() if self._is_in_input or not self._has_had_input else b""
        return rest + self._pipe.finish()


class _StatementPipe:
    """Frames in; statements, namespaces and the ends of frames out."""

    def __init__(
        self, reading: Reading, writing: Writing, *, keep_frames: bool, frames: tuple[int, int | None]
    ) -> None:
        self._reading = reading
        self._writing = writing
        self._keep_frames = keep_frames
        self._first_frame, self._last_frame = frames
        self._decoder = reading.frame_decoder()
        self._writer: StatementWriter | None = None
        self.written = 0

    def feed(self, data: bytes) -> None:
        self._write(self._decoder.feed(data))

    def end_frame(self) -> None:
        self._begun_writer().end_frame()

    def end_input(self) -> None:
        self._write(self._decoder.finish())
        self._begun_writer()
        self._decoder = self._reading.frame_decoder()

    def take(self) -> bytes:
        return self._writer.take() if self._writer else b""

    def finish(self) -> bytes:
        return self._begun_writer().finish()

    def _begun_writer(self) -> StatementWriter:
        """The writer. It begins as late as it can, as its options may be those of the input."""
        if self._writer is None:
            self._writer = self._writing.statement_writer(self._decoder.options)
        return self._writer

    def _write(self, frames: Iterable[RdfFrame]) -> None:
        for frame in frames:
            if frame.index < self._first_frame or (self._last_frame is not None and frame.index > self._last_frame):
                continue
            writer = self._begun_writer()
            for name, iri in frame.namespaces:
                writer.namespace(name, iri)
            writer.statements(frame.statements)
            self.written += len(frame.statements)
            if self._keep_frames:
                writer.end_frame(frame.metadata)


class _OperationPipe:
    """Operations in, the same operations out."""

    def __init__(self, reading: Reading, writing: Writing) -> None:
        self._reading = reading
        self._writing = writing
        self._decoder = reading.operation_decoder()
        self._encoder: OperationEncoderFace | None = None
        self._is_in_patch = False
        self._owes_punctuation = False
        self.written = 0

    def feed(self, data: bytes) -> None:
        self._write(self._decoder.feed(data))

    def end_frame(self) -> None:
        """Frames of statements are nothing to a patch."""

    def end_input(self) -> None:
        self._write(self._decoder.finish())
        self._begun_encoder()
        self._decoder = self._reading.operation_decoder()
        self._owes_punctuation = self._is_in_patch

    def take(self) -> bytes:
        return self._encoder.take() if self._encoder else b""

    def finish(self) -> bytes:
        return self._begun_encoder().finish()

    def _begun_encoder(self) -> OperationEncoderFace:
        """The encoder. It begins as late as it can, as its options may be those of the input."""
        if self._encoder is None:
            options = self._decoder.options if isinstance(self._decoder, PatchDecoder) else None
            self._encoder = self._writing.operation_encoder(options)
        return self._encoder

    def _write(self, operations: Iterable[Operation]) -> None:
        for operation in operations:
            encoder = self._begun_encoder()
            if self._owes_punctuation:
                encoder.accept(Punctuation())
                self._owes_punctuation = False
            encoder.accept(operation)
            self._is_in_patch = not isinstance(operation, Punctuation)
            self.written += self._is_in_patch
