"""What each append and each fetch asks of the database, put to the driver as it is.

SQLAlchemy takes several times as long to arrange the values of a statement and its answer as SQLite to run it. So what
is asked all the time is put into the driver's words once, and its errors are those that SQLAlchemy would have raised.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final, TypeAlias

from sqlalchemy import Connection, Select, Table, Update
from sqlalchemy.engine.interfaces import Dialect
from sqlalchemy.exc import DBAPIError

__all__ = ["DriverStatement", "Rows", "Values", "execute", "insert_rows", "marks"]

Values: TypeAlias = Sequence[object] | Mapping[str, object]
Rows: TypeAlias = list[tuple[Any, ...]]

_ROWS_AT_ONCE: Final = (64, 16, 4, 1)
"""Few sizes, so that the driver finds the statements that it has prepared."""


def execute(connection: Connection, text: str, values: Values = ()) -> Rows:
    """Run a statement of the driver's, and return what it answers."""
    cursor = connection.connection.cursor()
    try:
        cursor.execute(text, values)
        return list(cursor.fetchall()) if cursor.description else []
    except Exception as error:
        raise _raised(connection, text, error) from error
    finally:
        cursor.close()


def insert_rows(connection: Connection, table: Table, rows: Sequence[tuple[object, ...]]) -> None:
    """Write whole rows, whose values are what the driver takes."""
    mark = _mark(connection)
    if connection.dialect.name != "sqlite":
        _execute_many(connection, _insert(table, 1, mark), rows)
        return
    # At each statement Python's lock is let go and has to be got again, which is dear where others want it too.
    start = 0
    for size in _ROWS_AT_ONCE:
        while len(rows) - start >= size:
            values = [value for row in rows[start : start + size] for value in row]
            execute(connection, _insert(table, size, mark), values)
            start += size


def marks(connection: Connection, count: int) -> str:
    """Where so many values go in a statement of the driver's."""
    return ", ".join([_mark(connection)] * count)


def _mark(connection: Connection) -> str:
    return "?" if connection.dialect.paramstyle == "qmark" else "%s"


@cache
def _insert(table: Table, rows: int, mark: str) -> str:
    names = table.columns.keys()
    row = f"({', '.join([mark] * len(names))})"
    return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES {', '.join([row] * rows)}"  # noqa: S608


class DriverStatement:
    """A statement with parameters, in the words of whichever driver it is put to."""

    def __init__(self, statement: Select[*tuple[Any, ...]] | Update) -> None:
        self._statement = statement
        self._put: dict[str, _Put] = {}

    def rows(self, connection: Connection, values: Mapping[str, object]) -> list[Any]:
        """Run it. The rows have their values by the names of the columns, as the driver has them."""
        put = self._for(connection.dialect)
        return [put.row._make(row) for row in execute(connection, put.text, put.values(values))]

    def do(self, connection: Connection, many: Iterable[Mapping[str, object]]) -> None:
        """Run it with some values after the other."""
        put = self._for(connection.dialect)
        _execute_many(connection, put.text, [put.values(values) for values in many])

    def _for(self, dialect: Dialect) -> _Put:
        put = self._put.get(dialect.name)
        if put is None:
            put = self._put[dialect.name] = _Put(self._statement, dialect)
        return put


class _Put:
    """A statement in the words of one driver."""

    def __init__(self, statement: Select[*tuple[Any, ...]] | Update, dialect: Dialect) -> None:
        compiled: Any = statement.compile(dialect=dialect)
        columns = statement.selected_columns.keys() if isinstance(statement, Select) else ()
        self.text: Final[str] = compiled.string
        self.row: Final[Any] = _row_of(columns)
        self._order: Sequence[str] | None = compiled.positiontup
        self._constants = {name: value for name, value in compiled.params.items() if value is not None}

    def values(self, named: Mapping[str, object]) -> Values:
        whole = {**self._constants, **named}
        return whole if self._order is None else [whole[name] for name in self._order]


def _row_of(columns: Sequence[str]) -> Any:
    return namedtuple("Row", columns)  # noqa: PYI024  # the columns are known only now


def _execute_many(connection: Connection, text: str, rows: Sequence[Any]) -> None:
    if len(rows) == 1:
        execute(connection, text, rows[0])  # to send many in one go takes twice as long, for one
        return
    cursor = connection.connection.cursor()
    try:
        cursor.executemany(text, rows)
    except Exception as error:
        raise _raised(connection, text, error) from error
    finally:
        cursor.close()


def _raised(connection: Connection, text: str, error: Exception) -> BaseException:
    """What SQLAlchemy raises for an error of its driver. A connection that is lost is not used again."""
    dialect = connection.dialect
    errors = dialect.loaded_dbapi.Error
    if not isinstance(error, errors):
        return error
    is_lost = dialect.is_disconnect(error, connection.connection.dbapi_connection, None)
    if is_lost:
        connection.invalidate(error)
    return DBAPIError.instance(text, None, error, errors, connection_invalidated=is_lost, dialect=dialect)
