"""Conversations with a service without its sockets: generators that yield requests and pauses, and are sent answers.

    describe()  ──Request──▶  Connection, AsyncConnection  ──▶  service
                ◀─Response──
                ──Pause────▶

So what is asked, what an answer means, and what is tried again stands once, for programs that block and for those that
do not.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar

import httpx

from patchlog.client.problems import Later
from patchlog.errors import StorageError

__all__ = ["Exchange", "Failures", "Pause", "Request", "Unsent", "asked"]

Result = TypeVar("Result")

_TRIES: Final = 4
_FIRST_PAUSE_SECONDS: Final = 0.1
_LONGEST_PAUSE_SECONDS: Final = 5.0
_LONGEST_WISH_SECONDS: Final = 30.0
"""What a service may ask us to wait; it may ask for an hour."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request. `is_repeatable` says that making it twice is making it once.

    The service may be silent for `silent_seconds` longer than it is in general. What was `asked` completes the error
    that an answer stands for. Without `takes_body` only the head of the answer is waited for.
    """

    method: str
    path: str
    params: Mapping[str, Any] = field(default_factory=dict)
    json: Any = None
    content: bytes | Iterable[bytes] | AsyncIterable[bytes] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    is_repeatable: bool = True
    silent_seconds: float = 0
    takes_body: bool = True
    asked: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing is to happen for so long."""

    seconds: float


Exchange: TypeAlias = Generator[Request | Pause, httpx.Response, Result]
"""Yields what is to be done and returns what came of it. For a request it is sent the answer, or thrown its error."""


class Unsent(StorageError):
    """There was no connection, so nothing has happened: any request may be made again."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, is_transient=True)


class Failures:
    """Counts how often something was tried in vain, one time after the other."""

    def __init__(self) -> None:
        self._count = 0

    def pause_after(self, error: StorageError) -> float:
        """How many seconds to wait before the next try. Raises the error where there is to be none."""
        self._count += 1
        if not error.is_transient or self._count == _TRIES:
            raise error
        return max(_pause_before(self._count), _wish(error))

    def forget(self) -> None:
        """It went well."""
        self._count = 0


def asked(request: Request) -> Exchange[httpx.Response]:
    """Make a request, and again where that may help.

    What is not repeatable is made again only if nothing has happened yet.
    """
    failures = Failures()
    while True:
        try:
            return (yield request)
        except StorageError as error:
            if not (request.is_repeatable or isinstance(error, Unsent)):
                raise
            seconds = failures.pause_after(error)
        yield Pause(seconds)


def _pause_before(again: int) -> float:
    """How many seconds to wait before something is done again, for the first time or the next."""
    pause = min(_FIRST_PAUSE_SECONDS * 4.0 ** (again - 1), _LONGEST_PAUSE_SECONDS)
    # Clients that lost their service together do not come back together.
    return pause * random.uniform(0.5, 1.5)  # noqa: S311  nothing secret


def _wish(error: StorageError) -> float:
    return min(error.retry_after_seconds, _LONGEST_WISH_SECONDS) if isinstance(error, Later) else 0.0
