"""API keys: `pl_<id>_<secret>`, of which the database holds the id and a hash of the secret.

A key has scopes, each `log:{name or prefix*}:{read|append|admin}`. Who may append may read, and who administers may
both. The secret has 256 random bits, so a plain hash of it tells nobody anything.
"""

from __future__ import annotations

import hmac
import re
import secrets
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, Literal, get_args

from sqlalchemy import Row, delete, insert, select

from patchlog.errors import UsageError
from patchlog.log.database import Database
from patchlog.log.records import time_of
from patchlog.log.tables import API_KEY

__all__ = ["ApiKey", "Right", "Scope", "create_key", "find_key", "has_keys", "key_id_of", "list_keys", "revoke_key"]

Right = Literal["read", "append", "admin"]
_RIGHTS: Final[tuple[str, ...]] = get_args(Right)
"""Each holds those before it."""

_SCOPE: Final = re.compile(r"log:([A-Za-z0-9_][A-Za-z0-9._-]{0,99}\*?|\*):(read|append|admin)")
_ID_LENGTH: Final = 16
_KEY: Final = re.compile(r"pl_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")


@dataclass(frozen=True, slots=True)
class Scope:
    """A right on the log of a name, or on all whose names begin with a prefix."""

    logs: str
    right: Right

    @classmethod
    def parse(cls, text: str) -> Scope:
        """Read `log:{name or prefix*}:{right}`. Raises UsageError."""
        found = _SCOPE.fullmatch(text)
        if found is None:
            raise UsageError(f"{text!r} is not a scope: write log:NAME:read, log:PREFIX*:append or log:*:admin")
        right: Any = found[2]
        return cls(found[1], right)

    def __str__(self) -> str:
        return f"log:{self.logs}:{self.right}"

    def allows(self, right: Right, log: str) -> bool:
        """Whether it holds a right on a log. The name `*` is all logs."""
        is_of_log = log.startswith(self.logs[:-1]) if self.logs.endswith("*") else log == self.logs
        return is_of_log and _RIGHTS.index(self.right) >= _RIGHTS.index(right)


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key without its secret. Times are milliseconds since 1970."""

    id: str
    name: str
    scopes: tuple[Scope, ...]
    created_ms: int
    expires_ms: int | None
    secret_hash: bytes

    @property
    def created(self) -> str:
        """When it was made."""
        return time_of(self.created_ms)

    @property
    def is_expired(self) -> bool:
        """Whether its time is over."""
        return self.expires_ms is not None and self.expires_ms <= _now_ms()

    def allows(self, right: Right, log: str) -> bool:
        """Whether one of its scopes does."""
        return any(scope.allows(right, log) for scope in self.scopes)

    def is_opened_by(self, text: str) -> bool:
        """Whether the text is this key. Takes the same time for every wrong secret."""
        found = _KEY.fullmatch(text)
        return found is not None and hmac.compare_digest(_hash(found[2]), self.secret_hash)


def create_key(
    database: Database, scopes: Iterable[str], *, name: str = "", expires_seconds: float | None = None
) -> tuple[ApiKey, str]:
    """Make a key and return it with its text, which is not to be had again."""
    key_id, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
    now = _now_ms()
    key = ApiKey(
        id=key_id,
        name=name,
        scopes=tuple(Scope.parse(text) for text in scopes),
        created_ms=now,
        expires_ms=None if expires_seconds is None else now + int(expires_seconds * 1000),
        secret_hash=_hash(secret),
    )
    if not key.scopes:
        raise UsageError("a key without a scope opens nothing: name at least one, such as log:*:read")
    row = {
        "id": key.id,
        "name": key.name,
        "secret_hash": key.secret_hash,
        "scopes": " ".join(map(str, key.scopes)),
        "created_ms": key.created_ms,
        "expires_ms": key.expires_ms,
    }
    with database.writing() as connection:
        connection.execute(insert(API_KEY), row)
    return key, f"pl_{key_id}_{secret}"


def list_keys(database: Database) -> list[ApiKey]:
    """All keys, the oldest first."""
    with database.reading() as connection:
        return [_key_of(row) for row in connection.execute(select(API_KEY).order_by(API_KEY.c.created_ms))]


def revoke_key(database: Database, key_id: str) -> None:
    """Forget the key of an id, or of a whole text. Raises UsageError where there is none."""
    key_id = key_id_of(key_id) or key_id
    with database.writing() as connection:
        if connection.execute(delete(API_KEY).where(API_KEY.c.id == key_id)).rowcount == 0:
            raise UsageError(f"there is no key with the id {_shown(key_id)}: list the keys to see their ids")


def _shown(key_id: str) -> str:
    """What may be said of an id: nothing of what may be a secret."""
    return repr(key_id) if len(key_id) <= _ID_LENGTH else "that was given"


def find_key(database: Database, key_id: str) -> ApiKey | None:
    """The key of that id."""
    with database.reading() as connection:
        row = connection.execute(select(API_KEY).where(API_KEY.c.id == key_id)).first()
    return None if row is None else _key_of(row)


def has_keys(database: Database) -> bool:
    """Whether there is any key."""
    with database.reading() as connection:
        return connection.execute(select(API_KEY.c.id).limit(1)).first() is not None


def key_id_of(text: str) -> str | None:
    """The id in the text of a key; None where it is no such text."""
    found = _KEY.fullmatch(text)
    return None if found is None else found[1]


def _key_of(row: Row[*tuple[Any, ...]]) -> ApiKey:
    scopes: Sequence[str] = row.scopes.split()
    return ApiKey(
        id=row.id,
        name=row.name,
        scopes=tuple(Scope.parse(text) for text in scopes),
        created_ms=row.created_ms,
        expires_ms=row.expires_ms,
        secret_hash=row.secret_hash,
    )


def _hash(secret: str) -> bytes:
    return sha256(secret.encode()).digest()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
