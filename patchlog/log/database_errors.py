"""What databases complain of, in our words. The only place that knows the errors of drivers.

What passes by itself, or when the operator has made room, is transient: the same request may then succeed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from patchlog.errors import StorageError, StorageFull

__all__ = ["storage_errors_translated", "translate"]

_BUSY: Final = "the database was locked by somebody else for too long"
_LOST: Final = "the database cannot be reached"
_CONFLICT: Final = "another change came in between"
_FULL: Final = "there is no room left for the database"
_DAMAGED: Final = "the database is damaged: restore it, or verify its logs"
_UNWRITABLE: Final = "the database cannot be opened or written: check the path and its permissions"
_NO_SCHEMA: Final = "the database has no tables for logs, or old ones: migrate it"
_DISK_FAILED: Final = "the disk failed under the database"
_REFUSED: Final = "the database refuses the connection: check user and password"
_OTHER: Final = "the database failed"

_SQLITE_CODES: Final[dict[int, tuple[str, bool]]] = {
    sqlite3.SQLITE_BUSY: (_BUSY, True),
    sqlite3.SQLITE_LOCKED: (_BUSY, True),
    sqlite3.SQLITE_IOERR: (_DISK_FAILED, False),
    sqlite3.SQLITE_CORRUPT: (_DAMAGED, False),
    sqlite3.SQLITE_NOTADB: (_DAMAGED, False),
    sqlite3.SQLITE_READONLY: (_UNWRITABLE, False),
    sqlite3.SQLITE_CANTOPEN: (_UNWRITABLE, False),
    sqlite3.SQLITE_PERM: (_UNWRITABLE, False),
    sqlite3.SQLITE_AUTH: (_UNWRITABLE, False),
}

# SQLSTATEs, or the two characters of their class.
_SQLSTATES: Final[dict[str, tuple[str, bool]]] = {
    "08": (_LOST, True),
    "28": (_REFUSED, False),
    "40": (_CONFLICT, True),
    "42P01": (_NO_SCHEMA, False),
    "42703": (_NO_SCHEMA, False),
    "3D": ("there is no such database", False),
    "53": ("the database has too much to do", True),
    "55P03": (_BUSY, True),
    "57": (_LOST, True),
    "57014": (_BUSY, True),
    "58": (_DISK_FAILED, False),
    "XX001": (_DAMAGED, False),
    "XX002": (_DAMAGED, False),
}
_DISK_FULL_STATE: Final = "53100"


@contextmanager
def storage_errors_translated() -> Iterator[None]:
    """Raise StorageError for what the database raises in the block."""
    try:
        yield
    except SQLAlchemyError as error:
        raise translate(error) from error
    except Exception as error:
        if _is_of_driver(error):  # from a connection that is listened to, past SQLAlchemy
            raise StorageError(f"{_LOST}: {_first_line(error)}", is_transient=True) from error
        raise


def translate(error: SQLAlchemyError) -> StorageError:
    """The error in our words, with the first line of the driver's own."""
    if isinstance(error, PoolTimeoutError):
        return StorageError("all connections to the database are in use", is_transient=True)
    if not isinstance(error, DBAPIError) or error.orig is None:
        return StorageError(f"{_OTHER}: {_first_line(error)}")
    cause = error.orig
    code = getattr(cause, "sqlite_errorcode", None)
    if (code or 0) & 0xFF == sqlite3.SQLITE_FULL or getattr(cause, "sqlstate", None) == _DISK_FULL_STATE:
        return StorageFull(f"{_FULL}: {_first_line(cause)}")
    if code is not None:
        reason, is_transient = _of_sqlite(code, cause)
    elif sqlstate := getattr(cause, "sqlstate", None):
        reason, is_transient = _SQLSTATES.get(sqlstate) or _SQLSTATES.get(sqlstate[:2]) or (_OTHER, False)
    else:
        # A driver without a code has not heard from the server, or no longer.
        reason, is_transient = (_LOST, True) if _is_connection_error(error) else (_OTHER, False)
    if isinstance(error, IntegrityError):
        reason, is_transient = _CONFLICT, True
    return StorageError(f"{reason}: {_first_line(cause)}", is_transient=is_transient)


def _of_sqlite(code: int, cause: BaseException) -> tuple[str, bool]:
    if code == sqlite3.SQLITE_ERROR and str(cause).startswith("no such"):
        return _NO_SCHEMA, False
    return _SQLITE_CODES.get(code & 0xFF, (_OTHER, False))


def _is_of_driver(error: Exception) -> bool:
    return type(error).__module__.partition(".")[0] == "psycopg"


def _is_connection_error(error: DBAPIError) -> bool:
    return error.connection_invalidated or type(error.orig).__name__ in ("OperationalError", "ConnectionTimeout")


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
