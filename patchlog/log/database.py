"""A database with logs: how it is opened, and what its connections are set to.

SQLite writes ahead and waits for the disk at each commit; one writer at a time begins with the write lock, so it never
has to give up half way. PostgreSQL waits for the disk too, whatever the server's default.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from patchlog.errors import MissingExtra, UsageError
from patchlog.log.database_errors import storage_errors_translated
from patchlog.log.driver import execute
from patchlog.log.sqlite_file import check_own

__all__ = ["Database", "WritingConnection"]

BUSY_SECONDS: Final = 30
_RETRY_SECONDS: Final = 0.01

_PRAGMAS: Final = (
    f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}",
    # Of a new database: patches of about a kilobyte leave less of a page empty, by a tenth of all.
    "PRAGMA page_size = 8192",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA journal_size_limit = 67108864",
)

# A process that hangs in a transaction does not hold its locks for ever.
_POSTGRESQL_OPTIONS: Final = (
    f"-c synchronous_commit=on -c lock_timeout={BUSY_SECONDS}s -c idle_in_transaction_session_timeout=300s"
)


class Database:
    """An open database. What it raises is translated."""

    def __init__(self, url: str) -> None:
        self.url: Final = _checked(url)
        self.is_sqlite: Final = self.url.get_backend_name() == "sqlite"
        # Two engines, as SQLAlchemy asks all listeners of an engine that has options at every step.
        with storage_errors_translated():
            if self.is_sqlite:
                check_own(Path(str(self.url.database)), "alembic_version", "database of logs")
                self._reading = _sqlite_engine(self.url, "BEGIN")
                self._writing = _sqlite_engine(self.url, "BEGIN IMMEDIATE")
            else:
                self._reading = _postgresql_engine(self.url, "AUTOCOMMIT")
                self._writing = _postgresql_engine(self.url, "READ COMMITTED")

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection to read by one statement."""
        with storage_errors_translated(), self._reading.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that writes. It is durable when the block was left without an error."""
        with storage_errors_translated(), self._writing.begin() as connection:
            yield connection

    def writing_often(self) -> WritingConnection:
        """For one thread that writes again and again."""
        return WritingConnection(self._writing, is_kept=self.is_sqlite)

    @property
    def server(self) -> str:
        """SQLite or PostgreSQL, and its version. Asks the database."""
        name, question = (
            ("SQLite", "SELECT sqlite_version()") if self.is_sqlite else ("PostgreSQL", "SHOW server_version")
        )
        with self.reading() as connection:
            return f"{name} {connection.exec_driver_sql(question).scalar_one()}"

    @contextmanager
    def listening(self, channel: str) -> Iterator[Callable[[float], list[str]]]:
        """Give a function that waits some seconds for what PostgreSQL says on a channel."""
        with storage_errors_translated(), self._reading.connect() as connection:
            connection.exec_driver_sql(f"LISTEN {channel}")
            driver: Any = connection.connection.driver_connection
            try:
                yield lambda seconds: [said.payload for said in driver.notifies(timeout=seconds, stop_after=1)]
            finally:
                connection.invalidate()  # nobody else is to have a connection that listens

    def close(self) -> None:
        """Close all connections."""
        self._reading.dispose()
        self._writing.dispose()


class WritingConnection:
    """Transactions that write, one after the other.

    The connection to SQLite is kept between them: to take one from the pool and give it back takes as long as the rest
    of a small append. One to PostgreSQL may have been lost meanwhile, which the pool finds out.
    """

    def __init__(self, engine: Engine, *, is_kept: bool) -> None:
        self._engine = engine
        self._is_kept = is_kept
        self._connection: Connection | None = None

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A transaction. It is durable when the block was left without an error."""
        with storage_errors_translated():
            connection = self._connection or self._engine.connect()
            self._connection = connection
            try:
                with connection.begin():
                    yield connection
            except BaseException:
                self.close()
                raise
            if not self._is_kept:
                self.close()

    def close(self) -> None:
        """Give the connection back."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _sqlite_engine(url: URL, begin: str) -> Engine:
    # What a connection did has ended when it is given back: there is nothing to take back then.
    engine = create_engine(url, pool_reset_on_return=None)
    event.listen(engine, "connect", _set_pragmas)
    event.listen(engine, "begin", lambda connection: execute(connection, begin))
    return engine


def _postgresql_engine(url: URL, isolation_level: Literal["AUTOCOMMIT", "READ COMMITTED"]) -> Engine:
    return create_engine(
        url,
        isolation_level=isolation_level,
        pool_pre_ping=True,  # a server that was restarted is found out before it matters
        connect_args={"options": _POSTGRESQL_OPTIONS, "connect_timeout": 10},
    )


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
        _set_pragma(connection, pragma)


def _set_pragma(connection: Any, pragma: str) -> None:
    """Set a pragma, and wait for others as long as for any lock.

    Where several processes turn a new database to WAL at once, SQLite refuses all but one of them without waiting.
    """
    give_up_at = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute(pragma)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > give_up_at:
                raise
            time.sleep(_RETRY_SECONDS)
        else:
            return
