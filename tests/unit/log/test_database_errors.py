"""What drivers raise, and what becomes of it."""

import sqlite3

import psycopg
import pytest
from sqlalchemy import create_engine, exc
from sqlalchemy.pool import QueuePool

from patchlog.errors import StorageError, StorageFull
from patchlog.log.database_errors import storage_errors_translated, translate


def sqlite_error(code, message="broken", kind=sqlite3.OperationalError):
    error = kind(message)
    error.sqlite_errorcode = code
    return wrapped(error, sqlite3)


def postgresql_error(kind):
    return wrapped(kind("broken\nDETAIL: more"), psycopg)


def wrapped(error, driver):
    """As SQLAlchemy raises it."""
    return exc.DBAPIError.instance("SELECT 1", None, error, driver.Error)


@pytest.mark.parametrize(
    ("error", "reason", "is_transient"),
    [
        (sqlite_error(sqlite3.SQLITE_BUSY), "locked by somebody else", True),
        (sqlite_error(sqlite3.SQLITE_BUSY_SNAPSHOT), "locked by somebody else", True),
        (sqlite_error(sqlite3.SQLITE_LOCKED), "locked by somebody else", True),
        (sqlite_error(sqlite3.SQLITE_IOERR_FSYNC), "disk failed", False),
        (sqlite_error(sqlite3.SQLITE_CORRUPT, kind=sqlite3.DatabaseError), "damaged", False),
        (sqlite_error(sqlite3.SQLITE_NOTADB, kind=sqlite3.DatabaseError), "damaged", False),
        (sqlite_error(sqlite3.SQLITE_READONLY), "cannot be opened or written", False),
        (sqlite_error(sqlite3.SQLITE_CANTOPEN), "cannot be opened or written", False),
        (sqlite_error(sqlite3.SQLITE_ERROR, "no such table: log"), "migrate it", False),
        (sqlite_error(sqlite3.SQLITE_ERROR, "near SELECT"), "database failed", False),
        (sqlite_error(sqlite3.SQLITE_CONSTRAINT, kind=sqlite3.IntegrityError), "another change", True),
        (postgresql_error(psycopg.errors.SerializationFailure), "another change", True),
        (postgresql_error(psycopg.errors.DeadlockDetected), "another change", True),
        (postgresql_error(psycopg.errors.UniqueViolation), "another change", True),
        (postgresql_error(psycopg.errors.ForeignKeyViolation), "another change", True),
        (postgresql_error(psycopg.errors.LockNotAvailable), "locked by somebody else", True),
        (postgresql_error(psycopg.errors.QueryCanceled), "locked by somebody else", True),
        (postgresql_error(psycopg.errors.AdminShutdown), "cannot be reached", True),
        (postgresql_error(psycopg.errors.CannotConnectNow), "cannot be reached", True),
        (postgresql_error(psycopg.errors.ConnectionFailure), "cannot be reached", True),
        (postgresql_error(psycopg.errors.TooManyConnections), "too much to do", True),
        (postgresql_error(psycopg.errors.OutOfMemory), "too much to do", True),
        (postgresql_error(psycopg.errors.UndefinedTable), "migrate it", False),
        (postgresql_error(psycopg.errors.UndefinedColumn), "migrate it", False),
        (postgresql_error(psycopg.errors.InvalidPassword), "user and password", False),
        (postgresql_error(psycopg.errors.InvalidCatalogName), "no such database", False),
        (postgresql_error(psycopg.errors.DataCorrupted), "damaged", False),
        (postgresql_error(psycopg.errors.IoError), "disk failed", False),
        (postgresql_error(psycopg.errors.SyntaxError), "database failed", False),
        (postgresql_error(psycopg.OperationalError), "cannot be reached", True),
        (postgresql_error(psycopg.errors.ConnectionTimeout), "cannot be reached", True),
        (postgresql_error(psycopg.ProgrammingError), "database failed", False),
        (exc.TimeoutError(), "connections", True),
        (exc.ArgumentError("wrong"), "database failed", False),
    ],
    ids=lambda value: repr(value.orig)[:60] if hasattr(value, "orig") else None,
)
def test_errors_of_drivers_are_told_apart(error, reason, is_transient):
    translated = translate(error)

    assert reason in str(translated)
    assert "\n" not in str(translated)
    assert (type(translated), translated.is_transient) == (StorageError, is_transient)


@pytest.mark.parametrize("error", [sqlite_error(sqlite3.SQLITE_FULL), postgresql_error(psycopg.errors.DiskFull)])
def test_disk_that_is_full_has_an_error_of_its_own(error):
    translated = translate(error)

    assert (type(translated), translated.is_transient) == (StorageFull, True)


def error_classes(root):
    return {root}.union(*(error_classes(kind) for kind in root.__subclasses__()))


@pytest.mark.parametrize("kind", sorted(error_classes(psycopg.Error), key=lambda kind: kind.__name__))
def test_no_error_of_postgresql_slips_through(kind):
    with pytest.raises(StorageError) as through_sqlalchemy, storage_errors_translated():
        raise postgresql_error(kind)
    with pytest.raises(StorageError) as directly, storage_errors_translated():
        raise kind("broken")

    assert isinstance(through_sqlalchemy.value.__cause__, exc.DBAPIError)
    assert isinstance(directly.value.__cause__, kind)


@pytest.mark.parametrize(
    "kind", [sqlite3.DatabaseError, sqlite3.InterfaceError, sqlite3.InternalError, sqlite3.NotSupportedError]
)
def test_no_error_of_sqlite_slips_through(kind):
    with pytest.raises(StorageError), storage_errors_translated():
        raise wrapped(kind("broken"), sqlite3)


def test_pool_that_is_used_up_is_a_transient_error():
    engine = create_engine("sqlite://", poolclass=QueuePool, pool_size=1, max_overflow=0, pool_timeout=0.01)

    with engine.connect(), pytest.raises(StorageError) as raised, storage_errors_translated():
        engine.connect()

    assert raised.value.is_transient
    engine.dispose()


def test_errors_of_others_pass():
    with pytest.raises(ZeroDivisionError), storage_errors_translated():
        raise ZeroDivisionError
