"""The outbox: a file of SQLite in which patches wait for their log, in order, each with its id.

Several processes may share it. A patch is durable when `put` returns, and leaves only when its log has it, or when
somebody drops it by its id.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from patchlog.codec.patch_ids import PatchId
from patchlog.errors import StorageError, StorageFull

__all__ = ["Outbox", "QueuedPatch", "default_path"]

MAX_PATCHES: Final = 100_000
MAX_BYTES: Final = 1 << 30

_BUSY_SECONDS: Final = 30.0
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS queued (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    log TEXT NOT NULL,
    id TEXT NOT NULL UNIQUE,
    expected_head TEXT,
    content BLOB NOT NULL,
    queued TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    error TEXT
) STRICT
"""
_COLUMNS: Final = "number, log, id, expected_head, length(content), queued, attempts, error"


def default_path() -> Path:
    """The outbox of this user: PATCHLOG_OUTBOX, else a file where programs keep their state."""
    if chosen := os.environ.get("PATCHLOG_OUTBOX"):
        return Path(chosen)
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "patchlog" / "outbox.db"


@dataclass(frozen=True, slots=True)
class QueuedPatch:
    """A patch that waits. `error` is why it could not be delivered the last time."""

    number: int
    log: str
    id: PatchId
    expected_head: PatchId | None
    bytes: int
    queued: str
    attempts: int
    error: str | None


class Outbox:
    """Patches that wait, in a file. Threads may share it."""

    def __init__(self, path: Path | str, *, max_patches: int = MAX_PATCHES, max_bytes: int = MAX_BYTES) -> None:
        self.path: Final = Path(path)
        self._max_patches = max_patches
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        with _translated(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.touch(mode=0o600)  # what waits is the user's own; the files that SQLite puts beside it follow
            self._connection = sqlite3.connect(
                self.path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            # What was put survives the loss of power, too.
            for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", _SCHEMA):
                self._connection.execute(statement).close()

    def put(self, log: str, patch_id: PatchId, expected_head: PatchId | None, content: bytes) -> None:
        """Let a patch wait. Raises StorageFull where there is no room for it; then nothing has changed."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        with self._transaction() as cursor:
            patches, size = cursor.execute("SELECT count(*), coalesce(sum(length(content)), 0) FROM queued").fetchone()
            if patches >= self._max_patches or size + len(content) > self._max_bytes:
                raise StorageFull(
                    f"the outbox {self.path} is full: {patches:,} patches, {size:,} bytes; the change stays uncommitted"
                )
            cursor.execute(
                "INSERT INTO queued (log, id, expected_head, content, queued) VALUES (?, ?, ?, ?, ?)",
                (log, patch_id, expected_head, content, now),
            )

    def waiting(self, log: str | None = None) -> list[QueuedPatch]:
        """The patches that wait, for all logs or for one, in the order in which they go."""
        with self._cursor() as cursor:
            rows = cursor.execute(
                f"SELECT {_COLUMNS} FROM queued WHERE log = ? OR ? IS NULL ORDER BY number",  # noqa: S608 - constants
                (log, log),
            )
            return [QueuedPatch(*row) for row in rows]

    def content(self, patch_id: PatchId) -> bytes | None:
        """The bytes of a patch, as RDF Patch; None where it does not wait any more."""
        with self._cursor() as cursor:
            row = cursor.execute("SELECT content FROM queued WHERE id = ?", (patch_id,)).fetchone()
        return None if row is None else bytes(row[0])

    def drop(self, patch_id: PatchId) -> bool:
        """Take a patch out: its log has it, or somebody has decided so. Returns whether it was there."""
        with self._transaction() as cursor:
            return cursor.execute("DELETE FROM queued WHERE id = ?", (patch_id,)).rowcount > 0

    def rebase(self, log: str, head: PatchId | None) -> None:
        """Let the first patch that waits for a log go on another head than the one that it was built on."""
        with self._transaction() as cursor:
            cursor.execute(
                "UPDATE queued SET expected_head = ? WHERE number = (SELECT min(number) FROM queued WHERE log = ?)",
                (head, log),
            )

    def note_attempt(self, patch_id: PatchId, error: str) -> None:
        """Keep why a patch could not be delivered."""
        with self._transaction() as cursor:
            cursor.execute("UPDATE queued SET attempts = attempts + 1, error = ? WHERE id = ?", (error, patch_id))

    def close(self) -> None:
        """Close the file. What waits goes on waiting."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def _cursor(self) -> Iterator[sqlite3.Cursor]:
        with self._lock, _translated(self.path), closing(self._connection.cursor()) as cursor:
            yield cursor

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Cursor]:
        with self._cursor() as cursor:
            cursor.execute("BEGIN IMMEDIATE")
            try:
                yield cursor
            except BaseException:
                cursor.execute("ROLLBACK")
                raise
            cursor.execute("COMMIT")


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """The errors of SQLite and of the file end here."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise StorageError(f"the outbox {path} cannot be used: {error}") from error
