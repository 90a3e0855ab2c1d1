"""Who may do what: the principal of a request, and the right that a route asks for."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, TypeAlias

from fastapi import Depends, Request

from api.errors import Problem, Refusal, problem_of
from api.keys import ApiKey, Right, find_key, key_id_of
from api.pools import CALLER
from api.principal import OPEN_ACCESS, Principal
from api.tails import Run
from patchlog.errors import StorageError
from patchlog.log.contract import LogStore
from patchlog.log.database import Database
from patchlog.log.records import LogDescription

__all__ = [
    "COOKIE",
    "FORBIDDEN",
    "PRINCIPAL",
    "Access",
    "authorization_of",
    "check_right",
    "check_still",
    "may",
    "principal_of",
    "readable_logs",
    "require",
]

COOKIE: Final = "patchlog_key"
PRINCIPAL: Final = "patchlog.principal"
"""In the scope of a request: who makes it, where that is known."""

_logger: Final = logging.getLogger("patchlog.service")

_KNOWN_SECONDS: Final = 2.0
"""How long a key that was revoked by another process may still be good here."""

_LISTED: Final = 1000
"""Logs that are asked of the store at once, of which the key may read some."""

_UNAUTHORIZED: Final = Problem(401, "unauthorized", "The request needs an API key", {"WWW-Authenticate": "Bearer"})
FORBIDDEN: Final = Problem(403, "forbidden", "The API key does not allow this")
_NO_SUCH_KEY: Final = "this service has no such key, or no longer"
_EXPIRED: Final = "the key has expired: ask for a new one"

_Found: TypeAlias = tuple[ApiKey, Principal]


class Access:
    """Finds the principals of requests. Without a database there are no keys, and everyone may do everything."""

    def __init__(self, database: Database | None, run: Run) -> None:
        self._database = database
        self._run = run
        self._known: dict[str, tuple[float, ApiKey, Principal]] = {}
        self._lookups: dict[str, asyncio.Future[_Found | None]] = {}

    @property
    def is_open(self) -> bool:
        """Whether no keys are asked for."""
        return self._database is None

    async def principal(self, authorization: str) -> Principal:
        """The principal that an authorization stands for. Raises Refusal where it is no key of this service."""
        if self._database is None:
            CALLER.set("")
            return OPEN_ACCESS
        text = _bearer_of(authorization)
        key_id = key_id_of(text)
        if key_id is None:
            raise Refusal(_UNAUTHORIZED, "send the header 'Authorization: Bearer pl_…', with a key of this service")
        known = self._known_key(key_id) or await self._look_up(key_id)
        if known is None or not known[0].is_opened_by(text):
            raise Refusal(_UNAUTHORIZED, _NO_SUCH_KEY)
        key, principal = known
        if key.is_expired:
            raise Refusal(_UNAUTHORIZED, _EXPIRED)
        CALLER.set(principal.id)
        return principal

    async def check_still(self, principal: Principal) -> None:
        """Raise Refusal where the key of a principal was revoked, or has expired, since it was found.

        For what takes long. While the database is away nobody can know, and it goes on.
        """
        if self._database is None or principal.kind != "key":
            return
        key_id = principal.id.partition(":")[2]
        try:
            known = self._known_key(key_id) or await self._look_up(key_id)
        except Refusal:
            return
        if known is None:
            raise Refusal(_UNAUTHORIZED, _NO_SUCH_KEY)
        if known[0].is_expired:
            raise Refusal(_UNAUTHORIZED, _EXPIRED)

    async def is_gone(self, principal_id: str) -> bool:
        """Whether a principal that there was is none any more: its key was revoked, or has expired."""
        kind, _, key_id = principal_id.partition(":")
        if self._database is None or kind != "key":
            return False
        found = await self._look_up(key_id)
        return found is None or found[0].is_expired

    def known_principal(self, authorization: str) -> Principal | None:
        """The same, as far as it is known without asking the database; None where it is not, or is refused."""
        if self._database is None:
            return OPEN_ACCESS
        text = _bearer_of(authorization)
        key_id = key_id_of(text)
        known = None if key_id is None else self._known_key(key_id)
        if known is None:
            return None
        key, principal = known
        return principal if key.is_opened_by(text) and not key.is_expired else None

    async def _look_up(self, key_id: str) -> _Found | None:
        """Ask the database for a key, once for all who wait for it. Raises Refusal where the database fails."""
        lookup = self._lookups.get(key_id)
        if lookup is None:
            lookup = self._lookups[key_id] = asyncio.ensure_future(self._read(key_id))
            lookup.add_done_callback(partial(self._end_lookup, key_id))
        try:
            return await asyncio.shield(lookup)
        except StorageError as error:
            # Who has shown no key learns nothing of the database.
            raise Refusal(problem_of(error), "keys cannot be looked up now: the log of the service says why") from error

    async def _read(self, key_id: str) -> _Found | None:
        database = self._database
        assert database is not None
        begun = time.monotonic()
        try:
            key = await self._run(lambda: find_key(database, key_id))
        except StorageError as error:
            _logger.warning("keys cannot be looked up: %s", error)
            raise
        self._known.pop(key_id, None)
        if key is None:
            return None
        found = key, Principal.of_key(key)
        self._known[key_id] = (begun, *found)
        return found

    def _end_lookup(self, key_id: str, lookup: asyncio.Future[_Found | None]) -> None:
        del self._lookups[key_id]
        if not lookup.cancelled():
            lookup.exception()  # where nobody waits for it any more, it is not to be logged as lost

    def _known_key(self, key_id: str) -> _Found | None:
        """The key of that id, if it was asked for a moment ago."""
        known = self._known.get(key_id)
        if known is None or time.monotonic() - known[0] > _KNOWN_SECONDS:
            return None
        return known[1:]


def require(principal: Principal, right: Right, log: str) -> None:
    """Raise Refusal where the principal does not have a right on a log. The name `*` is all logs."""
    if not principal.allows(right, log):
        raise Refusal(FORBIDDEN, f"this needs the scope log:{log}:{right}")


def _bearer_of(authorization: str) -> str:
    """What is to be a key."""
    kind, _, text = authorization.partition(" ")
    return text.strip() if kind.lower() == "bearer" else ""


async def principal_of(request: Request) -> Principal:
    """The principal of a request. Raises Refusal."""
    if (known := request.scope.get(PRINCIPAL)) is not None:
        found: Principal = known
        return found
    access: Access = request.app.state.service.access
    return await access.principal(authorization_of(request))


async def check_still(request: Request) -> None:
    """Raise Refusal where the key of a request was revoked, or has expired, since the request came."""
    access: Access = request.app.state.service.access
    await access.check_still(await principal_of(request))


async def check_right(request: Request, right: Right, log: str) -> Principal:
    """Return the principal of a request. Raises Refusal where it does not have this right on that log."""
    principal = await principal_of(request)
    require(principal, right, log)
    return principal


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


def readable_logs(store: LogStore, principal: Principal, after: str, limit: int) -> list[LogDescription]:
    """The next logs that the principal may read, by name."""
    found: list[LogDescription] = []
    while len(found) < limit:
        page = store.list(after=after, limit=_LISTED)
        found += (log for log in page if principal.allows("read", log.name))
        if len(page) < _LISTED:
            break
        after = page[-1].name
    return found[:limit]
