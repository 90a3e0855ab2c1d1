"""Requests to a service: which of them are made again, and what becomes of errors.

What cannot change anything when it is made twice is made up to four times, with growing pauses. The errors of httpx end
here.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final, TypeVar

import httpx

from patchlog.client.problems import error_of
from patchlog.errors import StorageError, UsageError

__all__ = ["TRIES", "Connection", "Unsent", "pause_before", "translated"]

Result = TypeVar("Result")

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
TRIES: Final = 4
_FIRST_PAUSE_SECONDS: Final = 0.1
_LONGEST_PAUSE_SECONDS: Final = 5.0

_CONNECT_SECONDS: Final = 10.0
_ANSWER_SECONDS: Final = 60.0
"""How long the service may be silent. Its heartbeats and its work take less."""


class Unsent(StorageError):
    """There was no connection, so nothing has happened: any request may be made again."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, is_transient=True)


class Connection:
    """A service, and the key for it. Threads may share it."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self.url: Final = url.rstrip("/")
        token = token or os.environ.get("PATCHLOG_TOKEN")
        with translated(self.url):
            self._client = httpx.Client(
                base_url=self.url,
                # Patches are dense already. Whoever has a slow network puts a proxy that compresses before it.
                headers={"Accept-Encoding": "identity"} | ({"Authorization": f"Bearer {token}"} if token else {}),
                timeout=httpx.Timeout(_ANSWER_SECONDS, connect=_CONNECT_SECONDS),
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=64),
            )
        if self._client.base_url.scheme not in ("http", "https") or not self._client.base_url.host:
            raise UsageError(f"{url!r} is not the URL of a service: write http://HOST:PORT")

    def ask(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        json: Any = None,
        content: bytes | Iterable[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
        is_repeatable: bool = True,
        asked: Mapping[str, Any] = NOTHING,
    ) -> httpx.Response:
        """Make a request and read the answer. Raises what it stands for; what was `asked` completes such an error."""

        def once() -> httpx.Response:
            with translated(self.url):
                response = self._client.request(
                    method, path, params=params, json=json, content=content, headers=headers
                )
            if response.is_success:
                return response
            raise error_of(response, asked)

        return repeated(once, is_repeatable=is_repeatable)

    @contextmanager
    def answer(
        self, path: str, params: Mapping[str, Any], *, silent_seconds: float = 0, asked: Mapping[str, Any] = NOTHING
    ) -> Iterator[httpx.Response]:
        """Get an answer whose body is still to come. `silent_seconds` may pass before it comes. Made once."""
        timeout = httpx.Timeout(_ANSWER_SECONDS + silent_seconds, connect=_CONNECT_SECONDS)
        with (
            translated(self.url),
            self._client.stream("GET", path, params=dict(params), timeout=timeout) as response,
        ):
            if not response.is_success:
                response.read()
                raise error_of(response, asked)
            yield response

    def close(self) -> None:
        """Close all connections."""
        self._client.close()


def repeated(once: Callable[[], Result], *, is_repeatable: bool = True) -> Result:
    """Do it, and again where that may help. What is not repeatable is done again only if nothing has happened yet."""
    for tried in range(1, TRIES):
        try:
            return once()
        except StorageError as error:
            if not (error.is_transient and (is_repeatable or isinstance(error, Unsent))):
                raise
        time.sleep(pause_before(tried))
    return once()


def pause_before(again: int) -> float:
    """How many seconds to wait before something is done again, for the first time or the next."""
    pause = min(_FIRST_PAUSE_SECONDS * 4.0 ** (again - 1), _LONGEST_PAUSE_SECONDS)
    # Clients that lost their service together do not come back together.
    return pause * random.uniform(0.5, 1.5)  # noqa: S311  nothing secret


@contextmanager
def translated(url: str) -> Iterator[None]:
    """Let the errors of httpx come out as ours."""
    try:
        yield
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise UsageError(f"{url!r} is not the URL of a service: {error}") from error
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError) as error:
        raise Unsent(f"{url} cannot be reached: {_reason(error)}") from error
    except httpx.HTTPError as error:
        is_transient = isinstance(error, httpx.TransportError)
        raise StorageError(f"the connection to {url} broke: {_reason(error)}", is_transient=is_transient) from error


def _reason(error: httpx.HTTPError) -> str:
    return str(error) or type(error).__name__
