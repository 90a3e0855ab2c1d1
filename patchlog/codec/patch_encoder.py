"""Operations to Jelly-Patch bytes."""

from __future__ import annotations

from patchlog.codec.frame_writer import FrameWriter
from patchlog.codec.operation_writer import OperationWriter
from patchlog.codec.options import PatchOptions, StreamType
from patchlog.errors import UnexpectedRow
from patchlog.model import Operation, Punctuation
from patchlog.spending import Spendable, spending

__all__ = ["PatchEncoder"]


class PatchEncoder(Spendable):
    """Encodes a Jelly-Patch stream. After an error it is spent."""

    def __init__(self, options: PatchOptions, *, rows_per_frame: int = 512, delimited: bool = True) -> None:
        options.check_writable()
        self._stream_type = options.stream_type
        # A FRAME stream that is not delimited has one frame, and so one patch as a FLAT one.
        self._has_one_patch = self._stream_type == StreamType.FLAT or (
            self._stream_type == StreamType.FRAME and not delimited
        )
        self._frames = FrameWriter(
            rows_per_frame=0 if self._stream_type == StreamType.FRAME else rows_per_frame, delimited=delimited
        )
        self._operations = OperationWriter(options, self._frames)
        self._is_in_patch = False
        self._had_punctuation = False

    @spending
    def accept(self, operation: Operation, /) -> None:
        """Write one operation."""
        if self._had_punctuation and self._has_one_patch:
            raise UnexpectedRow("an operation after the end of the only patch that the stream can hold")
        if isinstance(operation, Punctuation):
            self._punctuate()
        else:
            self._is_in_patch = True
            self._operations.write(operation)
            self._frames.cut_if_full()

    @spending
    def take(self) -> bytes:
        """Take the bytes of the frames that were ended."""
        return self._frames.take()

    @spending
    def finish(self) -> bytes:
        """End the last patch if it is still open, and take what is left."""
        if self._is_in_patch:
            self._punctuate()
        if not self._frames.is_empty:
            self._frames.end_frame()
        return self._frames.take()

    def _punctuate(self) -> None:
        self._is_in_patch = False
        self._had_punctuation = True
        match self._stream_type:
            case StreamType.FRAME:
                self._frames.end_frame()
            case StreamType.PUNCTUATED:
                self._operations.write(Punctuation())
                self._frames.end_frame()
