"""A database with logs: how it is opened, and what its connections are set to.

SQLite writes ahead and waits for the disk at each commit; one writer at a time begins with the write lock, so it never
has to give up half way. PostgreSQL waits for the disk too, whatever the server's default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from sqlalchemy import URL, Connection, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from patchlog.errors import MissingExtra, UsageError
from patchlog.log.database_errors import storage_errors_translated

__all__ = ["Database"]

BUSY_SECONDS: Final = 30

_PRAGMAS: Final = (
    f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA journal_size_limit = 67108864",
)

_POSTGRESQL_OPTIONS: Final = (
    f"-c synchronous_commit=on -c lock_timeout={BUSY_SECONDS}s -c idle_in_transaction_session_timeout={BUSY_SECONDS}s"
)

_WRITES: Final = "patchlog_writes"


class Database:
    """An open database. What it raises is translated."""

    def __init__(self, url: str) -> None:
        self.url: Final = _checked(url)
        self.is_sqlite: Final = self.url.get_backend_name() == "sqlite"
        with storage_errors_translated():
            self._engine = create_engine(
                self.url,
                pool_pre_ping=not self.is_sqlite,  # a server that was restarted is found out before it matters
                connect_args={} if self.is_sqlite else {"options": _POSTGRESQL_OPTIONS, "connect_timeout": 10},
            )
        if self.is_sqlite:
            event.listen(self._engine, "connect", _set_pragmas)
            event.listen(self._engine, "begin", _begin)
        self._writing_engine = self._engine.execution_options(**{_WRITES: True})

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that only reads."""
        with storage_errors_translated(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that writes. It is durable when the block was left without an error."""
        with storage_errors_translated(), self._writing_engine.begin() as connection:
            yield connection

    @contextmanager
    def listening(self, channel: str) -> Iterator[Callable[[float], list[str]]]:
        """Give a function that waits some seconds for what PostgreSQL says on a channel."""
        engine = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        with storage_errors_translated(), engine.connect() as connection:
            connection.exec_driver_sql(f"LISTEN {channel}")
            driver: Any = connection.connection.driver_connection
            yield lambda seconds: [notified.payload for notified in driver.notifies(timeout=seconds, stop_after=1)]

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()


def _checked(text: str) -> URL:
    try:
        url = make_url(text)
        backend, driver = url.get_backend_name(), url.get_driver_name()
    except (ArgumentError, NoSuchModuleError):
        raise UsageError(
            f"{text!r} is not the URL of a database: write sqlite:///FILE or postgresql+psycopg://…"
        ) from None
    except ModuleNotFoundError as error:
        raise MissingExtra(str(error.name), "postgres") from None
    if backend == "postgresql":
        try:
            import psycopg as _  # noqa: F401
        except ImportError:
            raise MissingExtra("psycopg", "postgres") from None
        return url.set(drivername="postgresql+psycopg")
    if (backend, driver) != ("sqlite", "pysqlite"):
        raise UsageError(
            f"logs are kept in SQLite (sqlite:///FILE) and PostgreSQL (postgresql+psycopg://…), not in {backend}"
        )
    if url.database in (None, "", ":memory:"):
        raise UsageError("a SQLite database in memory is not shared by connections: name a file")
    return url


def _set_pragmas(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # the driver begins no transactions of its own
    for pragma in _PRAGMAS:
        connection.execute(pragma)


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get(_WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
