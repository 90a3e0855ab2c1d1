"""Who may do what: the key of a request, and the right that a route asks for."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from fastapi import Depends, Request

from api.errors import Problem, Refusal
from api.keys import ApiKey, Right, find_key, key_id_of
from api.tails import Run
from patchlog.log.contract import LogStore
from patchlog.log.database import Database
from patchlog.log.records import LogDescription

__all__ = ["COOKIE", "Access", "check_right", "may", "readable_logs"]

COOKIE: Final = "patchlog_key"

_KNOWN_SECONDS: Final = 2.0
"""How long a key that was revoked by another process may still be good here."""

_LISTED: Final = 1000
"""Logs that are asked of the store at once, of which the key may read some."""

_UNAUTHORIZED: Final = Problem(401, "unauthorized", "The request needs an API key", {"WWW-Authenticate": "Bearer"})
_FORBIDDEN: Final = Problem(403, "forbidden", "The API key does not allow this")


class Access:
    """Finds the keys of requests. Without a database there are none, and everyone may do everything."""

    def __init__(self, database: Database | None, run: Run) -> None:
        self._database = database
        self._run = run
        self._known: dict[str, tuple[float, ApiKey]] = {}

    @property
    def is_open(self) -> bool:
        """Whether no keys are asked for."""
        return self._database is None

    async def key_of(self, request: Request) -> ApiKey | None:
        """The key of a request; None where no keys are asked for. Raises Refusal."""
        return await self._key_of(authorization_of(request))

    async def check_key(self, authorization: str) -> None:
        """Raise Refusal where what was sent as authorization is no key of this service."""
        await self._key_of(authorization)

    async def check(self, authorization: str, right: Right, log: str) -> None:
        """Raise Refusal where what was sent as authorization does not allow this on that log."""
        if self.is_open:
            return
        key = await self._key_of(authorization)
        if key is not None and not key.allows(right, log):
            raise Refusal(_FORBIDDEN, f"this needs the scope log:{log}:{right}")

    def allows_at_once(self, authorization: str, right: Right, log: str) -> bool:
        """Whether this is allowed, as far as that is known without asking the database."""
        if self.is_open:
            return True
        text = _bearer_of(authorization)
        key_id = key_id_of(text)
        key = None if key_id is None else self._known_key(key_id)
        return key is not None and key.is_opened_by(text) and not key.is_expired and key.allows(right, log)

    async def _key_of(self, authorization: str) -> ApiKey | None:
        database = self._database
        if database is None:
            return None
        text = _bearer_of(authorization)
        key_id = key_id_of(text)
        if key_id is None:
            raise Refusal(_UNAUTHORIZED, "send the header 'Authorization: Bearer pl_…', with a key of this service")
        key = self._known_key(key_id)
        if key is None:
            key = await self._run(lambda: find_key(database, key_id))
            self._known.pop(key_id, None)
            if key is not None:
                self._known[key_id] = (time.monotonic(), key)
        if key is None or not key.is_opened_by(text):
            raise Refusal(_UNAUTHORIZED, "this service has no such key, or no longer")
        if key.is_expired:
            raise Refusal(_UNAUTHORIZED, "the key has expired: ask for a new one")
        return key

    def _known_key(self, key_id: str) -> ApiKey | None:
        """The key of that id, if it was asked for a moment ago."""
        since, key = self._known.get(key_id, (0.0, None))
        return key if time.monotonic() - since <= _KNOWN_SECONDS else None


def _bearer_of(authorization: str) -> str:
    """What is to be a key."""
    kind, _, text = authorization.partition(" ")
    return text.strip() if kind.lower() == "bearer" else ""


async def check_right(request: Request, right: Right, log: str) -> None:
    """Raise Refusal where the key of a request does not allow this on that log."""
    access: Access = request.app.state.service.access
    await access.check(authorization_of(request), right, log)


def authorization_of(request: Request) -> str:
    """What a request brings: a header, or for what only looks, the cookie that the pages have set."""
    authorization = request.headers.get("authorization", "")
    if not authorization and request.method in ("GET", "HEAD") and (key := request.cookies.get(COOKIE)):
        return f"Bearer {key}"
    return authorization


def may(right: Right) -> Any:
    """What a route depends on: a right on the log in its path; on all logs where there is none in it."""

    async def check(request: Request) -> None:
        await check_right(request, right, request.path_params.get("log", "*"))

    dependency: Callable[[Request], Awaitable[None]] = check
    return Depends(dependency)


def readable_logs(store: LogStore, key: ApiKey | None, after: str, limit: int) -> list[LogDescription]:
    """The next logs that the key may read, by name."""
    found: list[LogDescription] = []
    while len(found) < limit:
        page = store.list(after=after, limit=_LISTED)
        found += (log for log in page if key is None or key.allows("read", log.name))
        if len(page) < _LISTED:
            break
        after = page[-1].name
    return found[:limit]
