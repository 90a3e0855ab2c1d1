"""The outbox: a file of SQLite in which patches wait for their log, in order, each with its id.

Several processes may share it. A patch is durable when `put` returns, and leaves only when its log has it, or when it
is dropped by its id. Of a patch that has left, its id stays for a while: those queued after it were built on it, and a
program that holds what was dropped takes it back.

    waiting    it is sent as soon as the log can be reached
    conflict   others have changed the same: it is sent on top of that only if a person says so
    refused    the log will not have it, so trying again does not help
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeAlias

from patchlog.codec.patch_ids import PatchId
from patchlog.engine import RdfPatchReader
from patchlog.errors import PatchLogError, StorageError, StorageFull
from patchlog.log.position import Position
from patchlog.log.sqlite_file import check_own
from patchlog.model import Header

__all__ = ["Basis", "ConflictPolicy", "Outbox", "QueueState", "QueuedPatch", "SettledPatch", "default_path"]

ConflictPolicy: TypeAlias = Literal["rebase", "fail", "last-writer-wins"]
"""What becomes of a change when another writer was first.

- `rebase`: it goes on top of what the other has done, unless both have changed the same: then ConflictError
- `fail`: ConflictError in any case
- `last-writer-wins`: it goes on top of what the other has done
"""

QueueState: TypeAlias = Literal["waiting", "conflict", "refused"]

MAX_PATCHES: Final = 100_000
MAX_BYTES: Final = 1 << 30

_BUSY_SECONDS: Final = 30.0
_REMEMBERED: Final = timedelta(days=30)
_OF_THE_LOG: Final = frozenset({"id", "prev"})
_SCHEMA: Final = (
    """
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
""",
    # In a table of their own: a program of an earlier version sends all that stands in the other one.
    """
CREATE TABLE IF NOT EXISTS settled (
    id TEXT PRIMARY KEY,
    log TEXT NOT NULL,
    expected_head TEXT,
    version INTEGER,
    is_rebased INTEGER NOT NULL,
    content BLOB,
    settled TEXT NOT NULL
) STRICT
""",
)
# What outboxes of earlier versions lack.
_ADDED_COLUMNS: Final = (
    "base TEXT",
    "conflicts TEXT NOT NULL DEFAULT 'rebase'",
    "state TEXT NOT NULL DEFAULT 'waiting'",
)
_COLUMNS: Final = (
    "number, log, id, expected_head, length(content), queued, attempts, error, state, conflicts, base, "
    "substr(content, 1, 4096)"
)


def default_path() -> Path:
    """The outbox of this user: PATCHLOG_OUTBOX, else a file where programs keep their state."""
    if chosen := os.environ.get("PATCHLOG_OUTBOX"):
        return Path(chosen)
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "patchlog" / "outbox.db"


@dataclass(frozen=True, slots=True)
class Basis:
    """What a writer had seen of the log when it made a patch: a position, and the patch that the next one goes on.

    That is the one at the position, or the last of those that wait.
    """

    head: PatchId | None
    position: Position | None = None


@dataclass(frozen=True, slots=True)
class QueuedPatch:
    """A patch that waits, in the outbox for the log at `log`.

    `error` is why it could not be delivered the last time, `headers` are what its writer said of it (who, why, when).
    """

    number: int
    log: str
    id: PatchId
    expected_head: PatchId | None
    bytes: int
    queued: str
    attempts: int
    error: str | None
    state: QueueState
    conflicts: ConflictPolicy
    base: Position | None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def basis(self) -> Basis:
        """What its writer had seen of the log."""
        return Basis(self.expected_head, self.base)


@dataclass(frozen=True, slots=True)
class SettledPatch:
    """A patch that waits no more: it is in the log as `version`, or was dropped where that is None.

    `is_rebased` says that it went on top of patches which its writer had not seen.
    """

    id: PatchId
    expected_head: PatchId | None
    version: int | None
    is_rebased: bool


class Outbox:
    """Patches that wait, in a file. Threads may share it. As a context it is closed in the end."""

    def __init__(
        self, path: Path | str | None = None, *, max_patches: int = MAX_PATCHES, max_bytes: int = MAX_BYTES
    ) -> None:
        self.path: Final = default_path() if path is None else Path(path)
        self._max_patches = max_patches
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        check_own(self.path, "queued", "outbox")
        with _translated(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.touch(mode=0o600)  # what waits is the user's own; the files that SQLite puts beside it follow
            self._connection = sqlite3.connect(
                self.path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            # What was put survives the loss of power, too.
            for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", *_SCHEMA):
                self._connection.execute(statement).close()
        self._add_columns()

    def _add_columns(self) -> None:
        names = {column.partition(" ")[0] for column in _ADDED_COLUMNS}
        with self._cursor() as cursor:
            if names <= {row[1] for row in cursor.execute("PRAGMA table_info(queued)")}:
                return
        with self._transaction() as cursor:
            there = {row[1] for row in cursor.execute("PRAGMA table_info(queued)")}
            for column in _ADDED_COLUMNS:
                if column.partition(" ")[0] not in there:
                    cursor.execute(f"ALTER TABLE queued ADD COLUMN {column}")

    def put(
        self,
        log: str,
        patch_id: PatchId,
        basis: Basis,
        content: bytes,
        conflicts: ConflictPolicy = "rebase",
    ) -> None:
        """Let a patch wait. Raises StorageFull where there is no room for it; then nothing has changed."""
        base = None if basis.position is None else str(basis.position)
        with self._transaction() as cursor:
            patches, size = cursor.execute("SELECT count(*), coalesce(sum(length(content)), 0) FROM queued").fetchone()
            if patches >= self._max_patches or size + len(content) > self._max_bytes:
                raise StorageFull(
                    f"the outbox {self.path} is full: {patches:,} patches, {size:,} bytes; the change stays uncommitted"
                )
            cursor.execute(
                "INSERT INTO queued (log, id, expected_head, content, queued, conflicts, base) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                (log, patch_id, basis.head, content, _now(), conflicts, base),
            )

    def waiting(self, log: str | None = None) -> list[QueuedPatch]:
        """The patches that wait, for all logs or for one, in the order in which they go."""
        with self._cursor() as cursor:
            rows = cursor.execute(
                f"SELECT {_COLUMNS} FROM queued WHERE log = ? OR ? IS NULL ORDER BY number",  # noqa: S608 - constants
                (log, log),
            )
            return [_queued(row) for row in rows]

    def first(self, log: str) -> QueuedPatch | None:
        """The patch that is next to go into a log."""
        with self._cursor() as cursor:
            row = cursor.execute(
                f"SELECT {_COLUMNS} FROM queued WHERE log = ? ORDER BY number LIMIT 1",  # noqa: S608 - constants
                (log,),
            ).fetchone()
        return None if row is None else _queued(row)

    def ids(self, log: str) -> list[PatchId]:
        """The ids of the patches that wait for a log, in the order in which they go."""
        with self._cursor() as cursor:
            return [row[0] for row in cursor.execute("SELECT id FROM queued WHERE log = ? ORDER BY number", (log,))]

    def content(self, patch_id: PatchId) -> bytes | None:
        """The bytes of a patch, as RDF Patch; None where it does not wait any more."""
        with self._cursor() as cursor:
            row = cursor.execute("SELECT content FROM queued WHERE id = ?", (patch_id,)).fetchone()
        return None if row is None else bytes(row[0])

    def dropped_content(self, patch_id: PatchId) -> bytes | None:
        """The bytes of a patch that was dropped; None where it was not, or long ago."""
        with self._cursor() as cursor:
            row = cursor.execute("SELECT content FROM settled WHERE id = ?", (patch_id,)).fetchone()
        return None if row is None or row[0] is None else bytes(row[0])

    def settled(self, patch_id: PatchId | None) -> SettledPatch | None:
        """What is known of a patch that waits no more."""
        with self._cursor() as cursor:
            row = cursor.execute(
                "SELECT id, expected_head, version, is_rebased FROM settled WHERE id = ?", (patch_id,)
            ).fetchone()
        return None if row is None else SettledPatch(row[0], row[1], row[2], bool(row[3]))

    def settle(self, patch_id: PatchId, version: int, *, is_rebased: bool) -> None:
        """Take a patch out that its log has."""
        with self._transaction() as cursor:
            cursor.execute(
                "INSERT OR IGNORE INTO settled SELECT id, log, expected_head, ?, ?, NULL, ? FROM queued WHERE id = ?",
                (version, is_rebased, _now(), patch_id),
            )
            cursor.execute("DELETE FROM queued WHERE id = ?", (patch_id,))
            self._forget_old(cursor)

    def drop(self, *patch_ids: PatchId) -> list[PatchId]:
        """Take patches out that their log is not to have. Returns those that were there."""
        with self._transaction() as cursor:
            dropped = []
            for patch_id in patch_ids:
                cursor.execute(
                    "INSERT OR IGNORE INTO settled "
                    "SELECT id, log, expected_head, NULL, 0, content, ? FROM queued WHERE id = ?",
                    (_now(), patch_id),
                )
                if cursor.execute("DELETE FROM queued WHERE id = ?", (patch_id,)).rowcount:
                    dropped.append(patch_id)
            self._forget_old(cursor)
        return dropped

    def _forget_old(self, cursor: sqlite3.Cursor) -> None:
        cursor.execute("DELETE FROM settled WHERE settled < ?", (_time(datetime.now(UTC) - _REMEMBERED),))

    def note_attempt(self, patch_id: PatchId, error: str, state: QueueState = "waiting") -> None:
        """Keep why a patch could not be delivered, and whether that is worth another try."""
        with self._transaction() as cursor:
            cursor.execute(
                "UPDATE queued SET attempts = attempts + 1, error = ?, state = ? WHERE id = ?", (error, state, patch_id)
            )

    def close(self) -> None:
        """Close the file. What waits goes on waiting."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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


def _queued(row: tuple[Any, ...]) -> QueuedPatch:
    number, log, id, expected_head, size, queued, attempts, error, state, conflicts, base, beginning = row
    position = None if base is None else Position.parse(base)
    headers = _headers(beginning)
    return QueuedPatch(
        number, log, id, expected_head, size, queued, attempts, error, state, conflicts, position, headers
    )


def _headers(beginning: bytes) -> dict[str, str]:
    """The headers of a patch, from its first bytes."""
    lines = []
    for line in beginning.splitlines(keepends=True):
        if not (line.startswith(b"H ") and line.endswith(b"\n")):
            break
        lines.append(line)
    with suppress(PatchLogError):
        operations = RdfPatchReader().feed(b"".join(lines))
        return {
            operation.key: operation.value
            for operation in operations
            if isinstance(operation, Header) and operation.key not in _OF_THE_LOG
        }
    return {}


def _now() -> str:
    return _time(datetime.now(UTC))


def _time(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """The errors of SQLite and of the file end here."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise StorageError(f"the outbox {path} cannot be used: {error}") from error
