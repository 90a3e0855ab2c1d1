"""Answers that are streams of patches."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from fastapi.responses import StreamingResponse
from starlette.types import Send

from api.outgoing import PIECES_BYTES, Compressor, Outflow, Piece
from api.tails import Run

__all__ = ["Streamed", "sent"]

_INLINE_BYTES = 16 << 10
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
    run: Run, first: Sequence[Piece], rest: Iterator[list[Piece]], outflow: Outflow, compressor: Compressor
) -> AsyncIterator[bytes]:
    """Yield a finite stream. Reading, converting and compressing are done in threads."""

    def encoded(pieces: Sequence[Piece]) -> bytes:
        return compressor.compress(outflow.encode(pieces))

    def read_and_encoded() -> bytes | None:
        pieces = next(rest, None)
        return None if pieces is None else encoded(pieces)

    size = sum(len(piece.data) for piece in first)
    yield encoded(first) if size < _INLINE_BYTES else await run(lambda: encoded(first))
    if size >= PIECES_BYTES:
        while (data := await run(read_and_encoded)) is not None:
            yield data
    yield compressor.compress(outflow.finish()) + compressor.finish()
