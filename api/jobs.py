"""Long work: it is listed while it waits and goes on, says how far it is, and can be cancelled.

    waiting ──a thread is free──▶ running ──▶ done, failed
       └───────────cancelled─────────┴──────▶ cancelled

What a request waits for is cancelled when its client is gone, unless something else wants it too. A job looks at
`check` all the time, so that it ends soon.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, TypeVar

from fastapi import Request
from starlette.requests import ClientDisconnect

from api.errors import Problem, Refusal, detail_of
from api.pools import CALLER, Pool
from patchlog.errors import PatchLogError, WorkCancelled
from patchlog.log.contract import PatchLog
from patchlog.log.records import LoggedPatch, time_of

__all__ = ["Job", "Jobs", "State", "checked", "checked_log", "client_is_gone"]

State: TypeAlias = Literal["waiting", "running", "done", "failed", "cancelled"]

_MOST_ENDED: Final = 100
_KEPT_SECONDS: Final = 3600.0
_TOO_MANY: Final = Problem(429, "too-many-jobs", "Too much long work was asked for", {"Retry-After": "5"})
_STOPPING: Final = "the service is stopping"
_NO_LONGER_WANTED: Final = "nobody waits for it any more"

_Result = TypeVar("_Result")


@dataclass(slots=True, eq=False)
class Job:
    """Some long work. `check` and `progress` are for the thread that does it."""

    kind: str
    log: str
    caller: str
    is_listed: bool = True
    id: str = field(default_factory=lambda: uuid.uuid4().hex[:16])
    created_ms: int = field(default_factory=lambda: time.time_ns() // 1_000_000)
    started_ms: int | None = None
    ended_ms: int | None = None
    state: State = "waiting"
    done: int | None = None
    total: int | None = None
    error: str | None = None
    can_cancel: bool = True
    is_kept: bool = False
    """Whether it goes on though no request waits for it."""
    waiters: int = 0
    cancelled: str | None = None
    """Why, once it is."""
    check_running: Callable[[], object] = field(default=lambda: None, repr=False)
    dropped: Callable[[str], object] | None = field(default=None, repr=False)
    """Cleans up where it never began; it gets the reason."""
    future: Future[Any] = field(default_factory=Future, repr=False)

    def check(self) -> None:
        """Raise WorkCancelled once nobody wants it any more, and StorageError once the service stops."""
        self.check_running()
        if self.cancelled is not None:
            raise WorkCancelled(f"the job was cancelled: {self.cancelled}")

    def progress(self, done: int, total: int | None = None) -> None:
        """Say how much is done, of how much; and check, as `check` does."""
        self.done = done
        if total is not None:
            self.total = total
        self.check()

    def advance(self) -> None:
        """Say that one more is done."""
        self.progress((self.done or 0) + 1)

    def result(self) -> Any:
        """What it has returned, now that it has ended. Raises what it has raised."""
        if self.future.cancelled():
            self.check_running()
            raise WorkCancelled(f"the job was cancelled: {self.cancelled or _STOPPING}")
        return self.future.result()

    def leave(self) -> None:
        """Say that what it has begun is not wanted any more."""
        self.cancelled = self.cancelled or _NO_LONGER_WANTED

    def document(self) -> dict[str, Any]:
        """What is shown of it."""
        return {
            "id": self.id,
            "kind": self.kind,
            "log": self.log,
            "principal": self.caller or None,
            "state": self.state,
            "progress": None if self.done is None else {"done": self.done, "total": self.total},
            "created": time_of(self.created_ms),
            "started": None if self.started_ms is None else time_of(self.started_ms),
            "ended": None if self.ended_ms is None else time_of(self.ended_ms),
            "error": self.error,
        }


class Jobs:
    """The jobs of a service. All but what a job itself calls belongs to the event loop."""

    def __init__(self, most_per_caller: int, check_running: Callable[[], object]) -> None:
        self._most_per_caller = most_per_caller
        self._check_running = check_running
        self._jobs: dict[str, Job] = {}
        """In the order in which they were asked for."""

    def check_room(self) -> None:
        """Raise Refusal where the caller of this task has too much going on."""
        caller = CALLER.get()
        count = sum(job.caller == caller and job.ended_ms is None for job in self._jobs.values())
        if count >= self._most_per_caller:
            raise Refusal(
                _TOO_MANY, f"{count} jobs of yours wait or go on, and more are not taken: wait for one, or cancel it"
            )

    def begin(
        self,
        pool: Pool,
        kind: str,
        log: str,
        call: Callable[[Job], _Result],
        *,
        is_listed: bool = True,
        can_cancel: bool = True,
        is_kept: bool = False,
        dropped: Callable[[str], object] | None = None,
    ) -> Job:
        """Begin a job as soon as a thread of the pool is free. Raises Refusal where the caller has too many.

        One that `is_kept` goes on though nobody waits for it. `dropped` is called where it is cancelled before it
        began.
        """
        self.check_room()
        job = Job(kind, log, CALLER.get(), is_listed, can_cancel=can_cancel, is_kept=is_kept, dropped=dropped)
        job.check_running = self._check_running
        context = copy_context()  # of traces
        job.future = pool.submit(lambda: context.run(_done, job, call))
        job.future.add_done_callback(lambda future: _end(job, future))
        self._forget_old()
        self._jobs[job.id] = job
        return job

    async def do(
        self,
        pool: Pool,
        kind: str,
        log: str,
        call: Callable[[Job], _Result],
        request: Request | None = None,
        *,
        is_listed: bool = True,
    ) -> _Result:
        """Do it and return what it returns. It is cancelled where the client of the request goes away."""
        job = self.begin(pool, kind, log, call, is_listed=is_listed)
        await self.wait(job, None if request is None else client_is_gone(request))
        result: _Result = job.result()
        return result

    async def wait(self, job: Job, gone: Any = None, seconds: float | None = None) -> bool:
        """Wait until it has ended, or the time is up, and say whether it has. The client is gone when `gone` returns.

        Raises ClientDisconnect where that comes first. Who no longer waits does not want it any more.
        """
        ended = asyncio.wrap_future(_end_of(job.future))
        leaving = None if gone is None else asyncio.ensure_future(gone)
        job.waiters += 1
        is_wanted = False
        try:
            await asyncio.wait(
                [ended] if leaving is None else [ended, leaving],
                timeout=seconds,
                return_when=asyncio.FIRST_COMPLETED,
            )
            is_gone = leaving is not None and leaving.done()
            if is_gone and not job.future.done():
                raise ClientDisconnect
            is_wanted = True
            return job.future.done()
        finally:
            ended.cancel()
            if leaving is not None:
                leaving.cancel()
            job.waiters -= 1
            if not is_wanted and not job.waiters and not job.is_kept:
                self.cancel(job, _NO_LONGER_WANTED)

    def cancel(self, job: Job, reason: str) -> None:
        """End it soon. What has ended stays as it is."""
        if job.ended_ms is not None or job.cancelled is not None:
            return
        job.cancelled = reason
        if job.future.cancel() and job.dropped is not None:
            job.dropped(reason)

    def list(self) -> list[Job]:
        """All that are known, the newest first."""
        self._forget_old()
        return [job for job in reversed(self._jobs.values()) if job.is_listed]

    def find(self, id: str) -> Job | None:
        """The job with that id."""
        job = self._jobs.get(id)
        return job if job is not None and job.is_listed else None

    def running(self, kind: str, log: str) -> Job | None:
        """One of a kind that has not ended."""
        return next(
            (job for job in self._jobs.values() if (job.kind, job.log) == (kind, log) and job.ended_ms is None), None
        )

    def stop(self) -> None:
        """Cancel what has not begun; what has finds out by itself."""
        for job in list(self._jobs.values()):
            if job.future.cancel() and job.dropped is not None:
                job.dropped(_STOPPING)

    def _forget_old(self) -> None:
        ended = [job for job in self._jobs.values() if job.ended_ms is not None]
        oldest_ms = time.time_ns() // 1_000_000 - int(_KEPT_SECONDS * 1000)
        for index, job in enumerate(reversed(ended)):
            if index >= _MOST_ENDED or not job.is_listed or (job.ended_ms or 0) < oldest_ms:
                del self._jobs[job.id]


class _CheckedLog:
    """A log that is read on only as long as a check does not raise."""

    def __init__(self, log: PatchLog, check: Callable[[], object]) -> None:
        self._log = log
        self._check = check

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def read(self, *arguments: Any, **named: Any) -> Iterator[LoggedPatch]:
        patches = self._log.read(*arguments, **named)
        return (LoggedPatch(logged.record, checked(logged.chunks, self._check)) for logged in patches)


def checked_log(log: PatchLog, check: Callable[[], object]) -> PatchLog:
    """The log, with a check at each chunk that is read of its patches."""
    read: Any = _CheckedLog(log, check)
    patch_log: PatchLog = read
    return patch_log


def checked(items: Iterable[_Result], check: Callable[[], object]) -> Iterator[_Result]:
    """The items, with a check at each of them."""
    for item in items:
        check()
        yield item


async def client_is_gone(request: Request) -> None:
    """Return when the client of a request, whose body was read, has gone away."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _end_of(future: Future[Any]) -> Future[None]:
    """A future that is done when another one is, however that has ended, and that does not cancel it."""
    end: Future[None] = Future()
    end.set_running_or_notify_cancel()
    future.add_done_callback(lambda _: end.set_result(None))
    return end


def _done(job: Job, call: Callable[[Job], _Result]) -> _Result:
    job.state = "running"
    job.started_ms = time.time_ns() // 1_000_000
    try:
        job.check()
    except PatchLogError as error:
        if job.dropped is not None:
            job.dropped(str(error))
        raise
    return call(job)


def _end(job: Job, future: Future[Any]) -> None:
    error = None if future.cancelled() else future.exception()
    if future.cancelled() or isinstance(error, WorkCancelled):
        job.state = "cancelled"
        job.error = job.cancelled
    elif error is not None:
        job.state = "failed"
        job.error = str(error) if isinstance(error, Refusal) else type(error).__name__
        if isinstance(error, PatchLogError):
            job.error = detail_of(error)
    else:
        job.state = "done"
    job.ended_ms = time.time_ns() // 1_000_000
