"""The bodies of uploads: read as they come, decompressed a bounded piece at a time, and never beyond the limits."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import wait
from typing import Any, Final

import zstandard
from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.access import PRINCIPAL, check_still
from api.errors import Problem, Refusal
from api.negotiation import Coding
from api.settings import Settings
from patchlog.errors import MalformedFrame

__all__ = ["BATCH_BYTES", "Inflow", "SmallBodies", "batches_of", "pulled"]

BATCH_BYTES: Final = 256 << 10
"""How much of a body a worker gets at a time."""

_CHECK_SECONDS: Final = 0.5

_PIECE_BYTES: Final = 1 << 20
_ZSTD_SLICE_BYTES: Final = 1 << 10
"""A block of a few bytes can stand for 128 KiB, and the decompressor hands over all blocks of a slice at once."""
_ZSTD_WINDOW_BYTES: Final = 8 << 20
_FREE_BYTES: Final = 8 << 20
"""What may come out of any body, however small."""

_SMALL_BYTES: Final = 1 << 20
_STRANGERS_BYTES: Final = 4 << 10
"""The form for a key is smaller, and who brought none sends nothing else."""
_READ_IN_PIECES: Final = "patchlog.body_is_read_in_pieces"

_TOO_LARGE: Final = Problem(413, "too-large", "The body is too large", {"Connection": "close"})
_TOO_SLOW: Final = Problem(408, "too-slow", "The body did not come in time", {"Connection": "close"})


async def batches_of(request: Request, settings: Settings) -> AsyncIterator[tuple[list[bytes], bool]]:
    """Yield the body as lists of chunks, and whether a list is the last. Raises Refusal and ClientDisconnect.

    Before the last one the key of the request is looked at again: an upload may take longer than its key is good.
    """
    request.scope[_READ_IN_PIECES] = True
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced) > settings.max_body_bytes:
        raise _too_large(settings)
    batch: list[bytes] = []
    size = total = 0
    stream = request.stream()
    while True:
        try:
            async with asyncio.timeout(settings.body_seconds):
                chunk = await anext(stream, None)
        except TimeoutError:
            raise Refusal(
                _TOO_SLOW, f"nothing of the body came for {settings.body_seconds:g} seconds; nothing was appended"
            ) from None
        if chunk is None:
            break
        batch.append(chunk)
        size += len(chunk)
        total += len(chunk)
        if total > settings.max_body_bytes:
            raise _too_large(settings)
        if size >= BATCH_BYTES:
            yield batch, False
            batch, size = [], 0
    await check_still(request)
    yield batch, True


def pulled(
    request: Request,
    settings: Settings,
    coding: Coding | None,
    ended: Callable[[], object] | None = None,
    check: Callable[[], object] = lambda: None,
) -> Iterator[bytes]:
    """The body, decompressed, for a thread that asks for it a piece at a time. Call it in the loop of the request.

    `ended` is called in that loop when all of it has come; `check` in that thread while it waits, and may raise.
    """
    loop = asyncio.get_running_loop()
    batches = batches_of(request, settings)
    pieces: list[bytes] = []
    inflow = Inflow(coding, settings, pieces.append)

    async def following() -> tuple[list[bytes], bool]:
        batch, is_last = await anext(batches)
        if is_last and ended is not None:
            ended()
        return batch, is_last

    def pull() -> Iterator[bytes]:
        is_last = False
        while not is_last:
            coming = asyncio.run_coroutine_threadsafe(following(), loop)
            while not wait([coming], _CHECK_SECONDS).done:
                try:
                    check()
                except BaseException:
                    coming.cancel()
                    raise
            batch, is_last = coming.result()
            for chunk in batch:
                inflow.feed(chunk)
                yield from pieces
                pieces.clear()
        inflow.finish()
        yield from pieces

    return pull()


class SmallBodies:
    """Middleware of ASGI: a body that a route takes whole, such as a JSON document, is small, and comes in time."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        most = left = _SMALL_BYTES if PRINCIPAL in scope else _STRANGERS_BYTES
        seconds: float = scope["app"].state.service.settings.body_seconds
        due = asyncio.get_running_loop().time() + seconds
        is_whole = False

        async def receive_some() -> Message:
            nonlocal left, is_whole
            if is_whole or _READ_IN_PIECES in scope:
                return await receive()
            try:
                async with asyncio.timeout_at(due):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(
                    408, f"the document did not come within {seconds:g} seconds", {"Connection": "close"}
                ) from None
            is_whole = not message.get("more_body", False)
            left -= len(message.get("body", b""))
            if left < 0:
                raise HTTPException(413, f"a document has at most {most} bytes", {"Connection": "close"})
            return message

        await self._app(scope, receive_some, send)


class Inflow:
    """Decompresses, and counts what comes out. Pass all chunks to `feed`, then call `finish`."""

    def __init__(self, coding: Coding | None, settings: Settings, write: Callable[[bytes], object]) -> None:
        self._coding = coding
        self._settings = settings
        self._write = write
        self._came = self._went = 0
        self._member: Any = None

    @property
    def written(self) -> int:
        """How many bytes came out."""
        return self._went

    def feed(self, data: bytes) -> None:
        """Take bytes as they were sent."""
        self._came += len(data)
        try:
            match self._coding:
                case None:
                    self._pass_on(data)
                case "gzip":
                    self._gunzip(data)
                case "zstd":
                    self._unzstd(data)
        except (zlib.error, zstandard.ZstdError) as error:
            raise MalformedFrame(f"the {self._coding} data is damaged ({error})") from error

    def finish(self) -> None:
        """The body has ended. Raises MalformedFrame where it cannot."""
        if self._coding is not None and (self._member is None or not self._member.eof):
            raise MalformedFrame(f"the {self._coding} data is cut short")

    def _gunzip(self, data: bytes) -> None:
        while data:
            if self._member is None or self._member.eof:
                self._member = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
            self._pass_on(self._member.decompress(data, _PIECE_BYTES))
            data = self._member.unused_data if self._member.eof else self._member.unconsumed_tail

    def _unzstd(self, data: bytes) -> None:
        for start in range(0, len(data), _ZSTD_SLICE_BYTES):
            rest = data[start : start + _ZSTD_SLICE_BYTES]
            while rest:
                if self._member is None or self._member.eof:
                    self._member = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES).decompressobj()
                self._pass_on(self._member.decompress(rest))
                rest = self._member.unused_data if self._member.eof else b""

    def _pass_on(self, data: bytes) -> None:
        self._went += len(data)
        if self._went > self._settings.max_body_bytes:
            raise _too_large(self._settings)
        if self._went > _FREE_BYTES + self._came * self._settings.max_compression_ratio:
            raise Refusal(
                _TOO_LARGE,
                f"the body grows to more than {self._settings.max_compression_ratio} times of what was sent: "
                "send it with less compression, or in parts",
            )
        if data:
            self._write(data)


def _too_large(settings: Settings) -> Refusal:
    return Refusal(
        _TOO_LARGE, f"an upload has at most {settings.max_body_bytes} bytes: send its patches in several requests"
    )
