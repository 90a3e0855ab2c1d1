"""What a file of SQLite holds, looked at before anything is written to it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from patchlog.errors import UsageError

__all__ = ["check_own", "is_sqlite_file"]

_MAGIC: Final = b"SQLite format 3\0"


def is_sqlite_file(path: Path) -> bool:
    """Whether it begins as files of SQLite do."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def check_own(path: Path, table: str, kind: str) -> None:
    """Raise UsageError where the file is a database of another program: it has tables, and not that one."""
    try:
        if not is_sqlite_file(path):
            return
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except (OSError, sqlite3.Error):
        return  # who opens it to write says what is wrong with it
    if names and table not in names:
        raise UsageError(
            f"{path} is a database of another program (it has {_some(names)}), and no {kind}: name another file"
        )


def _some(names: set[str]) -> str:
    shown = ", ".join(sorted(names)[:3])
    if len(names) == 1:
        return f"a table {shown}"
    return f"the tables {shown}{' …' if len(names) > 3 else ''}"
