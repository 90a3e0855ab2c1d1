"""What the routes of a running service share: the store, threads for it, live tails, keys and metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, TypeVar

from fastapi import Request

from api.access import Access
from api.audit import Audit, note, versions
from api.errors import Refusal
from api.jobs import Jobs
from api.keys import has_keys
from api.ledger import Ledger
from api.limits import limits_of
from api.metrics import Metrics
from api.origins import Origins
from api.pools import Pool
from api.rounds import Rounds
from api.settings import Settings
from api.tails import LocalLogStore, Tails
from api.tracing import tell_append
from patchlog.errors import StorageError, UsageError
from patchlog.log.contract import StagingPatchLog
from patchlog.log.database import Database
from patchlog.log.records import ANY_HEAD, Appended, ExpectedHead
from patchlog.log.reservation import PAUSE_SECONDS, Steps, step

__all__ = ["Service", "service_of"]

_Result = TypeVar("_Result")


class Service:
    """Lives from the start of an app to its end, in one event loop."""

    def __init__(self, settings: Settings, store: LocalLogStore) -> None:
        self.settings: Final = settings
        self.store: Final = store
        self.metrics: Final = Metrics()
        # Short reads are a large part of what a request takes, and need no turns.
        self._readers = ThreadPoolExecutor(settings.read_threads, "patchlog-read")
        self.commits: Final = Pool("commit", settings.commit_threads)
        self.uploads: Final = Pool("append", settings.append_threads, settings.append_threads_per_key)
        self.takings: Final = Pool("take", settings.snapshot_uploads, settings.jobs_per_key)
        self.streams: Final = Pool("stream", settings.stream_threads, settings.stream_threads_per_key)
        self.works: Final = Pool("job", settings.job_threads, settings.jobs_per_key)
        self.builds: Final = Pool("build", settings.build_threads, settings.jobs_per_key)
        self._pools: Final = (self.commits, self.uploads, self.takings, self.streams, self.works, self.builds)
        self.metrics.show_pools(self._pools)
        self.jobs: Final = Jobs(settings.max_jobs_per_key, self.check_running)
        self.access: Final = Access(_database_with_keys(settings, store), self.run)
        self.origins: Final = Origins(settings)
        self.audit: Final = Audit(settings)
        self.limits: Final = limits_of(settings)
        self.ledger: Final = Ledger(self.metrics)
        self.rounds: Final = Rounds(store.submit)
        self.tails: Final = Tails(store, self.stream, settings.poll_seconds)
        self.is_stopping = False

    def log(self, name: str) -> StagingPatchLog:
        """The log of that name."""
        log: Any = self.store.log(name)
        staging: StagingPatchLog = log
        return staging

    def run(self, call: Callable[[], _Result]) -> asyncio.Future[_Result]:
        """Do in a thread a short read of the database."""
        return asyncio.get_running_loop().run_in_executor(self._readers, call)

    def commit(self, call: Callable[[], _Result]) -> asyncio.Future[_Result]:
        """Do in a thread a short write, which waits for the disk."""
        return self.commits.run(call)

    def stream(self, call: Callable[[], _Result]) -> asyncio.Future[_Result]:
        """Do in a thread a piece of an answer that may be large."""
        return self.streams.run(call)

    def upload(self, call: Callable[[], _Result]) -> asyncio.Future[_Result]:
        """Do in a thread what takes a piece of an upload, or appends it."""
        return self.uploads.run(call)

    def submit_append(self, call: Callable[[], _Result]) -> Future[_Result]:
        """As `upload`, for who has no task that waits for it."""
        return self.uploads.submit(call)

    async def append(self, steps: Steps[Appended]) -> Appended:
        """Append in threads; who waits for another upload to the log has none meanwhile."""
        while (appended := await self.upload(lambda: step(steps))) is None:  # noqa: ASYNC110  others end it
            await asyncio.sleep(PAUSE_SECONDS)
        return appended

    async def delete(self, log: str, expected_head: ExpectedHead = ANY_HEAD) -> None:
        """Delete a log: its name is free at once, and a job gives its room back.

        Raises LogNotFound, and HeadMismatch where it has another head than is expected.
        """
        self.jobs.check_room()
        await self.commit(lambda: self.store.begin_delete(log, expected_head))
        with suppress(Refusal):  # the next job of this kind does it too
            self.jobs.begin(
                self.builds,
                "delete",
                log,
                lambda job: self.store.sweep(job.progress),
                can_cancel=False,
                is_kept=True,
            )

    def count_append(self, log: str, appended: Appended) -> None:
        """Take notice of an append, in metrics, traces and the audit log."""
        note(log=log, **versions(appended))
        self.metrics.count([appended])
        tell_append(log, appended)

    def check_running(self) -> None:
        """Raise StorageError once the service stops, to end what takes long."""
        if self.is_stopping:
            raise StorageError("the service is stopping", is_transient=True)

    def stop(self) -> None:
        """Begin to stop: live tails and jobs that wait end, and the service is not ready any more."""
        self.is_stopping = True
        self.jobs.stop()
        self.tails.stop()

    def close(self) -> None:
        """Let go of all."""
        self.stop()
        for pool in (self.builds, self.works, self.takings, self.streams):
            pool.close(cancel=True)
        for pool in (self.uploads, self.commits):
            pool.close()
        self._readers.shutdown()
        self.audit.close()


def service_of(request: Request) -> Service:
    """The service that a request came to."""
    service: Service = request.app.state.service
    return service


def _database_with_keys(settings: Settings, store: LocalLogStore) -> Database | None:
    """The database of the keys that requests have to bring. Raises UsageError where nobody could ever bring one."""
    if not settings.needs_keys:
        return None
    database = getattr(store, "database", None)
    if not isinstance(database, Database):
        raise UsageError("a service with logs in memory has no API keys: listen on 127.0.0.1, or set PATCHLOG_KEYS=off")
    if settings.keys == "auto" and not has_keys(database):
        raise UsageError(
            f"the service does not listen on {settings.host} without API keys: make one with 'patchlog key create', "
            "or set PATCHLOG_KEYS=off if something else keeps strangers out"
        )
    return database
