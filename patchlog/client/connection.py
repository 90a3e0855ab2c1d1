"""A connection to a service, for programs that block. The errors of httpx end here."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeVar

import httpx

from patchlog.client.exchange import Exchange, Pause, Request, Unsent
from patchlog.client.problems import error_of
from patchlog.client.urls import bearer, parse_url, without_password
from patchlog.errors import PatchLogError, StorageError, UsageError

__all__ = ["NEVER_BY_PROXY", "Connection", "client_settings", "timeout_of", "translated"]

NEVER_BY_PROXY: Final[dict[str, Any]] = {"all://localhost": None, "all://127.0.0.1": None, "all://[::1]": None}
"""Mounts for httpx: whatever HTTP_PROXY says, a proxy would look for these on its own machine."""

Result = TypeVar("Result")

_CONNECT_SECONDS: Final = 10.0
_ANSWER_SECONDS: Final = 60.0
"""How long the service may be silent. Its heartbeats and its work take less."""


class Connection:
    """A service, and the key for it. Threads may share it."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self.url: Final = without_password(url.rstrip("/"))
        self._client = httpx.Client(**client_settings(url, token))

    def carry_out(self, exchange: Exchange[Result]) -> Result:
        """Do what an exchange wants until it has its result."""
        go_on = partial(next, exchange)
        while True:
            try:
                wanted = go_on()
            except StopIteration as end:
                result: Result = end.value
                return result
            if isinstance(wanted, Pause):
                time.sleep(wanted.seconds)
                go_on = partial(next, exchange)
                continue
            try:
                with self.answer(wanted) as response:
                    if wanted.takes_body:
                        response.read()
            except PatchLogError as error:
                go_on = partial(exchange.throw, error)
            else:
                go_on = partial(exchange.send, response)

    @contextmanager
    def answer(self, request: Request) -> Iterator[httpx.Response]:
        """Make a request and give the answer, whose body is still to come. Raises what it stands for."""
        with (
            translated(self.url),
            self._client.stream(
                request.method,
                request.path,
                params=dict(request.params) or None,
                json=request.json,
                content=request.content,
                headers=dict(request.headers),
                timeout=timeout_of(request),
            ) as response,
        ):
            if not response.is_success:
                response.read()
                raise error_of(response, request.asked)
            yield response

    def close(self) -> None:
        """Close all connections."""
        self._client.close()


def client_settings(url: str, token: str | None) -> dict[str, Any]:
    """What a client of httpx is made with. Raises UsageError for what is not the URL of a service."""
    parsed, user = parse_url(url.rstrip("/"), "the URL of a service", "http://HOST:PORT")
    token = token or os.environ.get("PATCHLOG_TOKEN")
    return {
        "base_url": parsed,
        "auth": user,
        "follow_redirects": False,
        # Patches are dense already. Whoever has a slow network puts a proxy that compresses before it.
        "headers": {"Accept-Encoding": "identity"} | ({"Authorization": bearer(token)} if token else {}),
        "mounts": NEVER_BY_PROXY,
        "limits": httpx.Limits(max_connections=None, max_keepalive_connections=64),
    }


def timeout_of(request: Request) -> httpx.Timeout:
    """How long to wait for an answer."""
    return httpx.Timeout(_ANSWER_SECONDS + request.silent_seconds, connect=_CONNECT_SECONDS)


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
