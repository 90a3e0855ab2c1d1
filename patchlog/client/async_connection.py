"""A connection to a service, for programs that do not block."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, TypeVar

import httpx

from patchlog.client.connection import client_settings, timeout_of, translated
from patchlog.client.exchange import Exchange, Pause, Request
from patchlog.client.problems import error_of
from patchlog.client.urls import without_password
from patchlog.errors import PatchLogError

__all__ = ["AsyncConnection"]

Result = TypeVar("Result")


class AsyncConnection:
    """A service, and the key for it. The tasks of an event loop may share it."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self.url: Final = without_password(url.rstrip("/"))
        self._client = httpx.AsyncClient(**client_settings(url, token))

    async def carry_out(self, exchange: Exchange[Result]) -> Result:
        """Do what an exchange wants until it has its result."""
        go_on = partial(next, exchange)
        while True:
            try:
                wanted = go_on()
            except StopIteration as end:
                result: Result = end.value
                return result
            if isinstance(wanted, Pause):
                await asyncio.sleep(wanted.seconds)
                go_on = partial(next, exchange)
                continue
            try:
                async with self.answer(wanted) as response:
                    if wanted.takes_body:
                        await response.aread()
            except PatchLogError as error:
                go_on = partial(exchange.throw, error)
            else:
                go_on = partial(exchange.send, response)

    @asynccontextmanager
    async def answer(self, request: Request) -> AsyncIterator[httpx.Response]:
        """Make a request and give the answer, whose body is still to come. Raises what it stands for."""
        with translated(self.url):
            async with self._client.stream(
                request.method,
                request.path,
                params=dict(request.params) or None,
                json=request.json,
                content=_unblocked(request.content),
                headers=dict(request.headers),
                timeout=timeout_of(request),
            ) as response:
                if not response.is_success:
                    await response.aread()
                    raise error_of(response, request.asked)
                yield response

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()


def _unblocked(
    content: bytes | Iterable[bytes] | AsyncIterable[bytes] | None,
) -> bytes | AsyncIterable[bytes] | None:
    """What takes time to read, such as a file, does not hold up the event loop."""
    if isinstance(content, Iterable) and not isinstance(content, bytes):
        return _taken_in_threads(content)
    return content


async def _taken_in_threads(chunks: Iterable[bytes]) -> AsyncIterator[bytes]:
    iterator = iter(chunks)
    while (chunk := await asyncio.to_thread(next, iterator, None)) is not None:
        yield chunk
