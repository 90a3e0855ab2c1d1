"""Where a large upload waits in the database: its chunks are written once, before they have a version."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from sqlalchemy import insert

from patchlog.errors import LogNotFound, StorageError
from patchlog.log.batch import Batch, Hold
from patchlog.log.chunks import StoredBody
from patchlog.log.database import Database
from patchlog.log.driver import insert_rows
from patchlog.log.rows import now_ms
from patchlog.log.sql_steps import check_stage, delete_some_of_stage, mark_old_stages, unfinished_stages
from patchlog.log.staging import SpooledChunk
from patchlog.log.tables import PATCH_CHUNK, STAGE, body_of_stage
from patchlog.log.writer import Job, Writer

__all__ = ["SqlSpool"]


class SqlSpool:
    """The stage of one upload. It begins with the first chunks."""

    def __init__(self, database: Database, writer: Writer, log: str) -> None:
        self.stage: int | None = None
        self.log_key = 0
        self._database = database
        self._writer = writer
        self._log = log

    def put(self, chunks: Sequence[SpooledChunk], /) -> None:
        """Keep chunks."""
        if self.stage is None:
            self.log_key, self.stage = self._writer.do(Job(self._begin, self._log, hold=Hold.PRESENCE))
            for old in unfinished_stages(self._database):
                self._delete(old)
        stage = self.stage
        rows = [(self.log_key, body_of_stage(stage, chunk.ordinal), chunk.number, chunk.data) for chunk in chunks]

        def write(batch: Batch) -> None:
            if batch.log(self._log, Hold.PRESENCE).key != self.log_key:
                raise LogNotFound(f"the log {self._log!r} was deleted during an upload to it")
            check_stage(batch, stage)
            insert_rows(batch.connection, PATCH_CHUNK, rows)

        size = sum(len(chunk.data) for chunk in chunks)
        self._writer.do(Job(write, self._log, size=size, hold=Hold.PRESENCE))

    def chunks(self, ordinal: int, /) -> Iterator[bytes]:
        """Yield the chunks of a patch."""
        assert self.stage is not None
        return iter(StoredBody(self._database, self.log_key, body_of_stage(self.stage, ordinal)))

    def discard(self) -> None:
        """Delete the chunks. Where the database fails, they are swept later."""
        stage = self.stage
        if stage is not None:
            with suppress(StorageError):
                self._delete((self.log_key, stage))

    def _begin(self, batch: Batch) -> tuple[int, int]:
        mark_old_stages(batch)
        log_key = batch.log(self._log, Hold.PRESENCE).key
        row = {"log": log_key, "begun_ms": now_ms()}
        return log_key, batch.connection.execute(insert(STAGE).returning(STAGE.c.key), row).scalar_one()

    def _delete(self, stage: tuple[int, int]) -> None:
        while not self._writer.do(Job(lambda batch: delete_some_of_stage(batch, stage))):
            pass
