"""jelly-text: frames shown as protobuf's text format, and put back into bytes. Imported where it is wanted."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

from patchlog.cli.options import FrameRange
from patchlog.codec.options import Limits
from patchlog.frames import frames_from_text, frames_to_text, read_frame_messages
from patchlog.pipes import drain
from patchlog.streams import Write
from patchlog.text.lines import LineReader
from patchlog.wire import RdfPatchFrame, RdfStreamFrame

__all__ = ["PATCH", "RDF", "assemble", "dump"]

RDF: Final = RdfStreamFrame
PATCH: Final = RdfPatchFrame


def dump(
    chunks: Iterable[bytes], message: Any, write: Write, *, frames: FrameRange | None, limits: Limits, strict: bool
) -> None:
    """Write the frames of a range as text."""
    first, last = frames or (0, None)
    messages = (frame for frame, _ in read_frame_messages(chunks, message, limits=limits, strict=strict))
    for text in frames_to_text(islice(enumerate(messages), first, None if last is None else last + 1)):
        write(text)


def assemble(chunks: Iterable[bytes], message: Any, write: Write, *, delimited: bool) -> None:
    """Write the bytes of the frames in a text."""
    for frame in frames_from_text(drain(LineReader(), chunks), message, delimited=delimited):
        write(frame)
