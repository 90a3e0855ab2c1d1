"""Answers that are streams of patches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, Self

from fastapi import Request
from fastapi.responses import Response, StreamingResponse
from starlette.types import Send

from api.negotiation import PATCH_TEXT, Representation, coding_of_answer
from api.outgoing import PIECES_BYTES, Compressor, Outflow, Piece, as_stored, as_stream_of, as_text, cut
from api.service import Service
from api.tails import Run
from patchlog.codec.options import PatchOptions, StreamType
from patchlog.errors import UsageError
from patchlog.log.contract import PatchLog
from patchlog.log.records import LoggedPatch

__all__ = ["Outgoing", "Streamed", "answer_patches", "sent"]

_MOST_FRAME_BYTES: Final = 64 << 20
_INLINE_BYTES: Final = 16 << 10
"""Fewer bytes are converted at once: going to a thread and back takes longer."""


class Streamed(StreamingResponse):
    """A stream that is closed when the client is gone, not when the garbage is collected."""

    def __init__(self, content: AsyncIterator[bytes], media_type: str, headers: Mapping[str, str]) -> None:
        super().__init__(content, headers=dict(headers), media_type=media_type)
        if media_type.startswith("text/") and media_type != "text/event-stream":
            self.headers["content-type"] = f"{media_type}; charset=utf-8"

    async def stream_response(self, send: Send) -> None:
        """Send it all."""
        content: Any = self.body_iterator
        async with aclosing(content):
            await super().stream_response(send)


async def sent(
    run: Run,
    first: Sequence[Piece],
    rest: Iterator[list[Piece]],
    outflow: Outflow,
    compressor: Compressor,
    ended: Callable[[], object] | None = None,
) -> AsyncIterator[bytes]:
    """Yield a finite stream. Reading, converting and compressing are done in threads; `ended` is called at its end."""

    def encoded(pieces: Sequence[Piece]) -> bytes:
        return compressor.compress(outflow.encode(pieces))

    def read_and_encoded() -> bytes | None:
        pieces = next(rest, None)
        return None if pieces is None else encoded(pieces)

    size = _size_of(first)
    yield encoded(first) if size < _INLINE_BYTES else await run(lambda: encoded(first))
    if size >= PIECES_BYTES:
        reading = asyncio.ensure_future(run(read_and_encoded))
        try:
            while (data := await reading) is not None:
                reading = asyncio.ensure_future(run(read_and_encoded))  # while this one is sent
                yield data
        finally:
            reading.cancel()
            if ended is not None:
                ended()
    yield compressor.compress(outflow.finish()) + compressor.finish()


@dataclass(slots=True)
class Outgoing:
    """Patches on their way out: the first of their pieces, and where the rest comes from."""

    first: list[Piece]
    rest: Iterator[list[Piece]]
    stream: tuple[StreamType, PatchOptions] | None = None
    """Of Jelly-Patch, where it is not what is stored."""
    is_alone: bool = False
    """It is one patch, which needs no line behind it in text."""

    @classmethod
    def of(
        cls,
        log: PatchLog,
        patches: Iterable[LoggedPatch],
        count: int,
        stream_type: str | None,
        *,
        is_alone: bool = False,
    ) -> Self:
        """The patches of a log. Reads the first of them. Raises UsageError where there is no such stream of them."""
        return cls.of_pieces(log, cut(patches), count, stream_type, is_alone=is_alone)

    @classmethod
    def of_stored(cls, stored: Iterator[bytes]) -> Self:
        """Whole patches as they are stored, of which none needs to be told from the next."""
        pieces = ([Piece(0, data, ends_patch=True)] for data in stored)
        return cls(next(pieces, []), pieces)

    @classmethod
    def of_pieces(
        cls,
        log: PatchLog,
        pieces: Iterator[list[Piece]],
        count: int,
        stream_type: str | None,
        *,
        is_alone: bool = False,
    ) -> Self:
        """As `of`, with pieces that are cut already."""
        first = next(pieces, [])
        if stream_type in (None, "punctuated"):
            return cls(first, pieces, None, is_alone)
        if stream_type == "flat" and count > 1:
            raise UsageError("a flat stream holds one patch: ask for patches one by one, or for stream-type=frame")
        options = log.describe().options.patch_options
        if stream_type == "flat":
            return cls(first, pieces, (StreamType.FLAT, options), is_alone)
        return cls(first, _frames_checked(pieces), (StreamType.FRAME, options), is_alone)


def answer_patches(
    service: Service,
    request: Request,
    outgoing: Outgoing,
    form: Representation,
    headers: Mapping[str, str],
    *,
    compressible: bool = True,
    run: Run | None = None,
    outflow: Outflow | None = None,
    ended: Callable[[], object] | None = None,
) -> Response:
    """Answer with patches in a form of them; `run` reads the rest of them, where that may take long.

    With an `outflow` it is that which makes the form. `ended` is called when nothing is read any more.
    """
    coding = coding_of_answer(request) if compressible else None
    if coding is not None:
        headers = {**headers, "Content-Encoding": coding}
    outflow = outflow or _outflow(outgoing, form)
    compressor = Compressor(coding)
    if _size_of(outgoing.first) < _INLINE_BYTES:  # it is all there is, and a stream takes longer to begin than to send
        data = compressor.compress(outflow.encode(outgoing.first) + outflow.finish()) + compressor.finish()
        return Response(data, media_type=form.media_type, headers=dict(headers))
    content = sent(run or service.stream, outgoing.first, outgoing.rest, outflow, compressor, ended)
    return Streamed(content, form.media_type, headers)


def _outflow(outgoing: Outgoing, form: Representation) -> Outflow:
    if form is PATCH_TEXT:
        return as_text(punctuated=not outgoing.is_alone)
    return as_stored() if outgoing.stream is None else as_stream_of(*outgoing.stream)


def _size_of(pieces: Sequence[Piece]) -> int:
    return sum(len(piece.data) for piece in pieces)


def _frames_checked(rest: Iterator[list[Piece]]) -> Iterator[list[Piece]]:
    """A frame is made in memory, so a patch may be too large for one."""
    size = 0
    for pieces in rest:
        for piece in pieces:
            size = 0 if piece.ends_patch else size + len(piece.data)
            if size > _MOST_FRAME_BYTES:
                raise UsageError("a patch is too large for one frame: ask for stream-type=punctuated")
        yield pieces
