"""Where the snapshots of a database go, where nobody says so."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from patchlog.log.database import Database
from patchlog.log.snapshots.files import StoredFiles

__all__ = ["files_for"]

_FOLDER: Final = "patchlog-data/snapshots"


def files_for(database: Database, root: str | None) -> StoredFiles:
    """The files at a folder or URL, at that in PATCHLOG_SNAPSHOTS, beside an SQLite file, or in `patchlog-data`."""
    root = root or os.environ.get("PATCHLOG_SNAPSHOTS") or None
    if database.is_sqlite:
        return StoredFiles(root, Path(f"{database.url.database}.snapshots").absolute())
    return StoredFiles(root or _FOLDER, Path.cwd())
