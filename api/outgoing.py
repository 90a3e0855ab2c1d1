"""Patches on their way out: in which form, and in how large pieces.

What is stored goes out as it is. The other forms are made of it by the codec, a piece at a time.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, Protocol

import zstandard

from api.negotiation import Coding
from patchlog.codec.options import Limits, PatchOptions, StreamType
from patchlog.engine import Converter
from patchlog.log.records import LoggedPatch

__all__ = ["PIECES_BYTES", "Compressor", "Outflow", "Piece", "as_events", "as_stored", "as_stream_of", "as_text", "cut"]

PIECES_BYTES: Final = 256 << 10
_EMPTY_FRAME: Final = b"\0"
"""Its length, which is zero."""

_STORED_LIMITS: Final = Limits(max_frame_bytes=1 << 30, max_decoded_frame_bytes=1 << 40)
"""What is stored was held to the limits of its upload."""


class Piece(NamedTuple):
    """Some of the bytes of a patch."""

    version: int
    data: bytes
    ends_patch: bool


def cut(patches: Iterable[LoggedPatch], least_bytes: int = PIECES_BYTES) -> Iterator[list[Piece]]:
    """Cut patches into lists of pieces: many small patches, or some of a large one."""
    pieces: list[Piece] = []
    size = 0
    for logged in patches:
        left = logged.record.bytes
        for chunk in logged.chunks:
            left -= len(chunk)
            pieces.append(Piece(logged.record.version, chunk, left == 0))
            size += len(chunk)
            if size >= least_bytes:
                yield pieces
                pieces, size = [], 0
    if pieces:
        yield pieces


class Outflow(Protocol):
    """A form of patches that goes out as a stream."""

    heartbeat: bytes
    """What says, between patches, that the stream lives."""

    def encode(self, pieces: Sequence[Piece], /) -> bytes:
        """Take pieces in their order and return what can be sent."""

    def finish(self) -> bytes:
        """The stream ends here."""


class _Stored:
    heartbeat = _EMPTY_FRAME

    def encode(self, pieces: Sequence[Piece], /) -> bytes:
        return b"".join([piece.data for piece in pieces])

    def finish(self) -> bytes:
        return b""


class _OfAnotherType:
    heartbeat = _EMPTY_FRAME

    def __init__(self, stream_type: StreamType, options: PatchOptions) -> None:
        self._converter = Converter(
            "jelly-patch", "jelly-patch", limits=_STORED_LIMITS, patch_options=replace(options, stream_type=stream_type)
        )
        self._has_begun = False

    def encode(self, pieces: Sequence[Piece], /) -> bytes:
        self._has_begun = self._has_begun or bool(pieces)
        return b"".join([self._converter.feed(piece.data) for piece in pieces])

    def finish(self) -> bytes:
        return self._converter.finish() if self._has_begun else b""


class _Text:
    """RDF Patch. A line `Z .` stands between patches, and may be left out where something else does."""

    heartbeat = b"#\n"

    def __init__(self, *, punctuated: bool) -> None:
        self._converter = Converter("jelly-patch", "rdf-patch", limits=_STORED_LIMITS)
        self._left_out = b"" if punctuated else b"Z .\n"

    def encode(self, pieces: Sequence[Piece], /) -> bytes:
        lines = []
        for piece in pieces:
            text = self._converter.feed(piece.data)
            lines.append(text.removesuffix(self._left_out) if piece.ends_patch else text)
        return b"".join(lines)

    def finish(self) -> bytes:
        return b""


class _Events:
    """Server-sent events, one a patch: its id is the version, its data the text of the patch."""

    heartbeat = b":\n\n"

    def __init__(self) -> None:
        self._text = as_text(punctuated=False)

    def encode(self, pieces: Sequence[Piece], /) -> bytes:
        sent = []
        for piece in pieces:
            lines = self._text.encode([piece]).splitlines()
            sent += [b"data: %b\n" % line for line in lines if line]
            if piece.ends_patch:
                sent.append(b"event: patch\nid: %d\n\n" % piece.version)
        return b"".join(sent)

    def finish(self) -> bytes:
        return b""


def as_stored() -> Outflow:
    """Jelly-Patch, PUNCTUATED: a copy of the bytes."""
    return _Stored()


def as_text(*, punctuated: bool = True) -> Outflow:
    """RDF Patch, with or without the line that ends a patch."""
    return _Text(punctuated=punctuated)


def as_stream_of(stream_type: StreamType, options: PatchOptions) -> Outflow:
    """Jelly-Patch of another kind of stream: each patch is a frame, or there is one patch."""
    return _OfAnotherType(stream_type, options)


def as_events() -> Outflow:
    """Server-sent events."""
    return _Events()


class Compressor:
    """Compresses a stream, for speed rather than for size. Without a coding it passes all through."""

    def __init__(self, coding: Coding | None) -> None:
        self._gzip = zlib.compressobj(1, wbits=zlib.MAX_WBITS | 16) if coding == "gzip" else None
        self._zstd = zstandard.ZstdCompressor(level=1).compressobj() if coding == "zstd" else None

    def compress(self, data: bytes) -> bytes:
        """Take bytes and return what can be sent."""
        if self._gzip is not None:
            return self._gzip.compress(data)
        return data if self._zstd is None else self._zstd.compress(data)

    def finish(self) -> bytes:
        """Return the rest."""
        if self._gzip is not None:
            return self._gzip.flush()
        return b"" if self._zstd is None else self._zstd.flush()
