"""Where a large upload waits in the database: its chunks are written once, before they have a version."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from sqlalchemy import Connection, delete, insert, select

from patchlog.errors import LogNotFound, StorageError
from patchlog.log.batch import Batch, Hold
from patchlog.log.chunks import StoredBody
from patchlog.log.database import Database
from patchlog.log.driver import insert_rows
from patchlog.log.rows import now_ms
from patchlog.log.staging import MAX_PATCHES, SpooledChunk
from patchlog.log.tables import PATCH_CHUNK, STAGE, body_of_stage
from patchlog.log.writer import Job, Writer

__all__ = ["SqlSpool", "sweep_stages"]

_STAGE_LIVES_MS: Final = 24 * 60 * 60 * 1000
"""What is older belongs to an upload that was cut off with its process."""


class SqlSpool:
    """The stage of one upload. It begins with the first chunks."""

    def __init__(self, database: Database, writer: Writer, log: str) -> None:
        self.stage: int | None = None
        self._log_key = 0
        self._database = database
        self._writer = writer
        self._log = log

    def put(self, chunks: Sequence[SpooledChunk], /) -> None:
        """Keep chunks."""
        if self.stage is None:
            self._log_key, self.stage = self._writer.do(Job(self._begin, self._log, hold=Hold.PRESENCE))
        rows = [(self._log_key, body_of_stage(self.stage, chunk.ordinal), chunk.number, chunk.data) for chunk in chunks]

        def write(batch: Batch) -> None:
            if batch.log(self._log, Hold.PRESENCE).key != self._log_key:
                raise LogNotFound(f"the log {self._log!r} was deleted during an upload to it")
            insert_rows(batch.connection, PATCH_CHUNK, rows)

        size = sum(len(chunk.data) for chunk in chunks)
        self._writer.do(Job(write, self._log, size=size, hold=Hold.PRESENCE))

    def chunks(self, ordinal: int, /) -> Iterator[bytes]:
        """Yield the chunks of a patch."""
        assert self.stage is not None
        return iter(StoredBody(self._database, self._log_key, body_of_stage(self.stage, ordinal)))

    def discard(self) -> None:
        """Delete the chunks. Where the database fails, they are swept later."""
        stage = self.stage
        if stage is not None:
            with suppress(StorageError):
                self._writer.do(Job(lambda batch: _delete_stage(batch.connection, self._log_key, stage)))

    def _begin(self, batch: Batch) -> tuple[int, int]:
        sweep_stages(batch)
        log_key = batch.log(self._log, Hold.PRESENCE).key
        row = {"log": log_key, "begun_ms": now_ms()}
        return log_key, batch.connection.execute(insert(STAGE).returning(STAGE.c.key), row).scalar_one()


def sweep_stages(batch: Batch) -> None:
    """Delete what is left of uploads that were cut off."""
    connection = batch.connection
    # What another process sweeps or takes into a log at this moment is left to it.
    is_old = STAGE.c.begun_ms < batch.now_ms - _STAGE_LIVES_MS
    old = connection.execute(select(STAGE).where(is_old).with_for_update(skip_locked=True)).all()
    for row in old:
        _delete_stage(connection, row.log, row.key)


def _delete_stage(connection: Connection, log_key: int, stage: int) -> None:
    connection.execute(
        delete(PATCH_CHUNK).where(
            PATCH_CHUNK.c.log == log_key,
            PATCH_CHUNK.c.body.between(body_of_stage(stage, MAX_PATCHES - 1), body_of_stage(stage, 0)),
        )
    )
    connection.execute(delete(STAGE).where(STAGE.c.key == stage))
