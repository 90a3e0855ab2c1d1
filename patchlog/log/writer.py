"""The one thread that writes: takes all jobs that wait, does them in one transaction, and answers when it is durable.

So many appends share one wait for the disk (group commit). The more there are, the more share it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, Final, Generic, TypeVar

from sqlalchemy import func, select

from patchlog.codec.patch_ids import PatchId
from patchlog.errors import PatchLogError, StorageError
from patchlog.log.batch import Batch
from patchlog.log.database import Database
from patchlog.log.wakeups import Wakeups

__all__ = ["CHANNEL", "Job", "Writer"]

CHANNEL: Final = "patchlog"
"""On which PostgreSQL tells other processes the names of logs that have changed."""

_MOST_JOBS: Final = 512
_MOST_BYTES: Final = 8 << 20

_Result = TypeVar("_Result")


@dataclass(slots=True)
class Job(Generic[_Result]):
    """A write. It may raise a LogError as long as it has written nothing.

    `log` and `ids` are what it is going to ask the batch for.
    """

    run: Callable[[Batch], _Result]
    log: str | None = None
    ids: Sequence[PatchId] = ()
    size: int = 0
    result: Future[_Result] = field(default_factory=Future)


class Writer:
    """Does jobs, in the order in which they come."""

    def __init__(self, database: Database, wakeups: Wakeups) -> None:
        self._connection = database.writing_often()
        self._is_sqlite = database.is_sqlite
        self._wakeups = wakeups
        self._jobs: SimpleQueue[Job[Any] | None] = SimpleQueue()
        self._closing = Lock()
        self._is_closed = False
        self._thread = Thread(target=self._work, name="patchlog-writer", daemon=True)
        self._thread.start()

    def do(self, job: Job[_Result]) -> _Result:
        """Do a job, and return when what it wrote is durable. Raises what the job raises, and StorageError."""
        return self.submit(job).result()

    def submit(self, job: Job[_Result]) -> Future[_Result]:
        """Have a job done, without waiting for it. Raises StorageError where the writer is closed."""
        with self._closing:
            if self._is_closed:
                raise StorageError("the store of logs is closed")
            self._jobs.put(job)
        return job.result

    def close(self) -> None:
        """Do what waits, and stop."""
        with self._closing:
            if not self._is_closed:
                self._is_closed = True
                self._jobs.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (first := self._jobs.get()) is not None:
            jobs = self._with_those_that_wait(first)
            self._do_together(jobs)
        self._connection.close()

    def _with_those_that_wait(self, first: Job[Any]) -> list[Job[Any]]:
        jobs = [first]
        size = first.size
        while len(jobs) < _MOST_JOBS and size < _MOST_BYTES:
            try:
                job = self._jobs.get_nowait()
            except Empty:
                break
            if job is None:
                self._jobs.put(None)
                break
            jobs.append(job)
            size += job.size
        return jobs

    def _do_together(self, jobs: Sequence[Job[Any]]) -> None:
        try:
            with self._connection.transaction() as connection:
                batch = Batch(connection)
                _ask_ahead(batch, jobs)
                answers = [_outcome_of(job, batch) for job in jobs]
                batch.flush()
                if batch.changed and not self._is_sqlite:
                    for name in batch.changed:
                        connection.execute(select(func.pg_notify(CHANNEL, name)))
        except BaseException as error:  # noqa: BLE001  whoever waits has to hear of it, whatever it is
            answers = [error] * len(jobs)
        else:
            for name in batch.changed:
                self._wakeups.announce(name)
        for job, answer in zip(jobs, answers, strict=True):
            if isinstance(answer, BaseException):
                job.result.set_exception(answer)
            else:
                job.result.set_result(answer)


def _ask_ahead(batch: Batch, jobs: Iterable[Job[Any]]) -> None:
    """Lock the logs of all jobs, and look for all ids, each with one query."""
    ids: dict[str, set[PatchId]] = {}
    for job in jobs:
        if job.log is not None:
            ids.setdefault(job.log, set()).update(job.ids)
    batch.lock(ids)
    for log in batch.locked():
        batch.ask(log, ids[log.name])


def _outcome_of(job: Job[Any], batch: Batch) -> Any:
    """What the job returns, or the error with which it refuses."""
    try:
        return job.run(batch)
    except StorageError:
        raise
    except PatchLogError as refusal:
        return refusal
