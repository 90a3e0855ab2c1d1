"""The one thread that writes: takes all that waits, writes it in one transaction, and tells when it is durable.

So many appends share one wait for the disk (group commit). The more there are, the more share it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import islice
from logging import getLogger
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, Final, Generic, Protocol, TypeVar

from patchlog.codec.patch_ids import PatchId
from patchlog.errors import PatchLogError, StorageError
from patchlog.log.batch import Batch, Hold
from patchlog.log.contract import Told
from patchlog.log.database import Database
from patchlog.log.driver import execute
from patchlog.log.wakeups import Wakeups

__all__ = ["CHANNEL", "Job", "Write", "Writer"]

_logger: Final = getLogger(__name__)

CHANNEL: Final = "patchlog"
"""On which PostgreSQL tells other processes the names of logs that have changed."""

_MOST_WRITES: Final = 512
_MOST_BYTES: Final = 8 << 20

_Result = TypeVar("_Result")
_Written_co = TypeVar("_Written_co", covariant=True)


class Write(Protocol[_Written_co]):
    """Something to be written."""

    @property
    def log(self) -> str | None:
        """The log that it is going to ask the batch for, which is locked before anything is written."""

    @property
    def hold(self) -> Hold:
        """How firmly that is to be held."""

    @property
    def ids(self) -> Sequence[PatchId]:
        """The ids that it is going to ask the batch for."""

    @property
    def size(self) -> int:
        """About how many bytes it writes."""

    def run(self, batch: Batch, /) -> _Written_co:
        """Do it. It may raise a LogError as long as it has written nothing."""


@dataclass(slots=True)
class Job(Generic[_Result]):
    """A write that is a function."""

    run: Callable[[Batch], _Result]
    log: str | None = None
    ids: Sequence[PatchId] = ()
    size: int = 0
    hold: Hold = Hold.CHANGE


@dataclass(slots=True)
class _Submission:
    """Writes that are told of together."""

    writes: Sequence[Write[Any]]
    told: Told


class Writer:
    """Writes, in the order in which it is asked to."""

    def __init__(self, database: Database, wakeups: Wakeups) -> None:
        self._connection = database.writing_often()
        self._is_sqlite = database.is_sqlite
        self._wakeups = wakeups
        self._waiting: SimpleQueue[_Submission | None] = SimpleQueue()
        self._closing = Lock()
        self._is_closed = False
        self._thread = Thread(target=self._work, name="patchlog-writer", daemon=True)
        self._thread.start()

    def do(self, write: Write[_Result]) -> _Result:
        """Write, and return when it is durable. Raises what `run` raises, and StorageError."""
        done: Future[_Result] = Future()

        def told(outcomes: Sequence[Any]) -> None:
            if isinstance(outcomes[0], BaseException):
                done.set_exception(outcomes[0])
            else:
                done.set_result(outcomes[0])

        self.submit([write], told)
        return done.result()

    def submit(self, writes: Sequence[Write[Any]], told: Told) -> None:
        """Have some written, and told of in the thread that writes: what each returned or raised, once it is durable.

        Raises StorageError where the writer is closed.
        """
        with self._closing:
            if self._is_closed:
                raise StorageError("the store of logs is closed")
            self._waiting.put(_Submission(writes, told))

    def close(self) -> None:
        """Do what waits, and stop."""
        with self._closing:
            if not self._is_closed:
                self._is_closed = True
                self._waiting.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (first := self._waiting.get()) is not None:
            self._do_together(self._with_those_that_wait(first))
        self._connection.close()

    def _with_those_that_wait(self, first: _Submission) -> list[_Submission]:
        taken = [first]
        count, size = _extent(first)
        while count < _MOST_WRITES and size < _MOST_BYTES:
            try:
                submission = self._waiting.get_nowait()
            except Empty:
                break
            if submission is None:
                self._waiting.put(None)
                break
            taken.append(submission)
            more = _extent(submission)
            count, size = count + more[0], size + more[1]
        return taken

    def _do_together(self, submissions: Sequence[_Submission]) -> None:
        writes = [write for submission in submissions for write in submission.writes]
        changed: Iterable[str] = ()
        try:
            with self._connection.transaction() as connection:
                batch = Batch(connection)
                _ask_ahead(batch, writes)
                outcomes = [_outcome_of(write, batch) for write in writes]
                batch.flush()
                if not self._is_sqlite:
                    for name in batch.changed:
                        execute(connection, "SELECT pg_notify(%s, %s)", (CHANNEL, name))
        except BaseException as error:  # noqa: BLE001  whoever waits has to hear of it, whatever it is
            outcomes = [error] * len(writes)
        else:
            changed = batch.changed
        each = iter(outcomes)
        for submission in submissions:
            try:
                submission.told(list(islice(each, len(submission.writes))))
            except Exception:
                _logger.exception("somebody could not be told what came of a write; it is durable unless it failed")
        for name in changed:
            self._wakeups.announce(name)


def _extent(submission: _Submission) -> tuple[int, int]:
    """How many writes it has, and of how many bytes."""
    return len(submission.writes), sum([write.size for write in submission.writes])


def _ask_ahead(batch: Batch, writes: Iterable[Write[Any]]) -> None:
    """Lock the logs of all writes, and look for all ids, each with one query."""
    ids: dict[str, set[PatchId]] = {}
    holds: dict[str, Hold] = {}
    for write in writes:
        if write.log is not None:
            ids.setdefault(write.log, set()).update(write.ids)
            holds[write.log] = max(write.hold, holds.get(write.log, write.hold))
    batch.lock(holds)
    for log in batch.locked():
        batch.ask(log, ids[log.name])


def _outcome_of(write: Write[Any], batch: Batch) -> Any:
    """What the write returns, or the error with which it refuses."""
    try:
        return write.run(batch)
    except StorageError:
        raise
    except PatchLogError as refusal:
        return refusal
