"""An upload, whatever takes it: bytes are checked and staged as they come, and placed in the log at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Self

from patchlog.codec.ingest import IngestedPatch, header_frames
from patchlog.codec.options import Limits, PatchOptions
from patchlog.engine import PatchIntake, WholeIntake
from patchlog.errors import StorageError, UsageError
from patchlog.log.contract import PatchFormat, Upload
from patchlog.log.records import ANY_HEAD, Appended, ExpectedHead
from patchlog.log.reservation import Steps, waited
from patchlog.log.staging import CHUNK_BYTES, Spool, Staging

__all__ = ["DEFAULT_LIMITS", "LocalUpload", "WholeUploads", "append_all"]

DEFAULT_LIMITS: Final = Limits(max_frame_bytes=16 << 20, max_rows_per_frame=1 << 18, max_decoded_frame_bytes=64 << 20)
"""A frame is decoded as a whole, so this is what bounds the memory of an upload."""


_NO_PATCH: Final = "there is no patch in the input"


class LocalUpload:
    """Patches on their way into a log of this process."""

    def __init__(
        self,
        format: PatchFormat,
        options: PatchOptions,
        place: Callable[[Staging, ExpectedHead], Steps[Appended]],
        *,
        spool: Spool | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._intake: PatchIntake | None = PatchIntake(format, options, limits=limits)
        self._staging = Staging(header_frames(options), spool)
        self._place = place
        self._is_over = False

    def write(self, data: bytes, /) -> None:
        """Take some bytes."""
        if self._intake is None:
            raise UsageError("this upload has ended: begin a new one for what comes after it")
        self._stage(self._intake.feed(data))

    def finish(self) -> Sequence[IngestedPatch]:
        """Say that the input has ended, and return what is known of its patches."""
        if self._intake is not None:
            self._stage(self._intake.finish())
            # Its tables take megabytes, which many uploads that wait for the writer would keep.
            self._intake = None
        return self._staging.ingested

    def append(self, expected_head: ExpectedHead = ANY_HEAD) -> Appended:
        """Say that the input has ended and append its patches."""
        return waited(self.appending(expected_head))

    def appending(self, expected_head: ExpectedHead = ANY_HEAD) -> Steps[Appended]:
        """As `append`, in steps that do not wait for another upload."""
        if not self.finish():
            raise UsageError(_NO_PATCH)
        try:
            appended = yield from self._place(self._staging, expected_head)
        except StorageError:
            self._staging.may_be_there()
            raise
        if appended.is_retry:
            self._staging.discard()  # the log has them already
        self._is_over = True
        return appended

    def discard(self) -> None:
        """Leave nothing of it."""
        if not self._is_over:
            self._staging.discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()

    def _stage(self, pieces: Iterable[bytes | IngestedPatch]) -> None:
        for piece in pieces:
            self._staging.add(piece)


class WholeUploads:
    """Takes uploads to logs with the same options that came whole, one after the other."""

    def __init__(self, options: PatchOptions, limits: Limits) -> None:
        self._options = options
        self._headers = header_frames(options)
        self._limits = limits
        self._intakes: dict[PatchFormat, WholeIntake] = {}

    def stage(self, data: bytes, format: PatchFormat) -> Staging | None:
        """Check and stage one; None where it has grown so much that it cannot wait in memory."""
        intake = self._intakes.get(format)
        if intake is None:
            intake = self._intakes[format] = WholeIntake(format, self._options, limits=self._limits)
        staging = Staging(self._headers, None)
        for piece in intake.take(data):
            staging.add(piece)
        if not staging.patches:
            raise UsageError(_NO_PATCH)
        return staging if staging.held_bytes <= CHUNK_BYTES else None


def append_all(upload: Upload, chunks: Iterable[bytes], expected_head: ExpectedHead) -> Appended:
    """Send all chunks through an upload and append it."""
    with upload:
        for chunk in chunks:
            upload.write(chunk)
        return upload.append(expected_head)
