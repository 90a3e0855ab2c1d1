"""Threads, divided by what work costs, so that no request waits for one that costs more.

    read     short reads: heads, single patches, keys, health
    commit   short writes, which wait for the disk: consumers, new logs, snapshots begun
    append   uploads, a piece at a time
    stream   ranges, live tails and downloads, a piece at a time
    job      long reads: verify, differences, histories, datasets
    build    long writes: snapshots, truncation, copies, what is left of deleted logs

In a pool callers take turns, and one that asks for much has no more than its share of the threads.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import ContextVar
from threading import Condition, Thread
from typing import Any, Final, TypeVar

__all__ = ["CALLER", "Pool"]

CALLER: Final[ContextVar[str]] = ContextVar("patchlog_caller", default="")
"""Who asks for what is done in this task; empty where everyone is the same, and has no limits of its own."""

_Result = TypeVar("_Result")


class _Task:
    """A call that waits for a thread."""

    def __init__(self, call: Callable[[], Any], caller: str) -> None:
        self.call = call
        self.caller = caller
        self.future: Future[Any] = Future()

    def run(self) -> None:
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            result = self.call()
        except BaseException as error:  # noqa: BLE001  who waits gets it, whatever it is
            self.future.set_exception(error)
        else:
            self.future.set_result(result)


class Pool:
    """Some threads. A caller has at most `per_caller` of them at one time; 0 is no limit."""

    def __init__(self, name: str, threads: int, per_caller: int = 0) -> None:
        self.name: Final = name
        self._most = threads
        self._per_caller = per_caller or threads
        self._changed = Condition()
        self._waiting: dict[str, deque[_Task]] = {}
        """By callers, in the order of their turns."""
        self._running: Counter[str] = Counter()
        self._threads: list[Thread] = []
        self._idle = 0
        self._count = 0
        """Of those that wait."""
        self._is_closed = False

    def submit(self, call: Callable[[], _Result], caller: str | None = None) -> Future[_Result]:
        """Have it done, for the caller of this task where no other is named."""
        task = _Task(call, CALLER.get() if caller is None else caller)
        with self._changed:
            if self._is_closed:
                raise RuntimeError(f"the pool {self.name} is closed")
            self._waiting.setdefault(task.caller, deque()).append(task)
            self._count += 1
            if self._count > self._idle and len(self._threads) < self._most:
                thread = Thread(target=self._work, name=f"patchlog-{self.name}-{len(self._threads)}", daemon=True)
                self._threads.append(thread)
                thread.start()
            else:
                self._changed.notify()
        task.future.add_done_callback(lambda future: self._drop(task) if future.cancelled() else None)
        return task.future

    def run(self, call: Callable[[], _Result]) -> asyncio.Future[_Result]:
        """As `submit`, for a task of the event loop."""
        return asyncio.wrap_future(self.submit(call))

    @property
    def waiting(self) -> int:
        """How many calls wait for a thread."""
        with self._changed:
            return self._count

    @property
    def running(self) -> int:
        """How many calls have one."""
        with self._changed:
            return self._running.total()

    def close(self, *, cancel: bool = False) -> None:
        """Do what waits, unless it is to be cancelled, and end the threads."""
        with self._changed:
            self._is_closed = True
            if cancel:
                dropped = [task for tasks in self._waiting.values() for task in tasks]
                self._waiting.clear()
                self._count = 0
            else:
                dropped = []
            self._changed.notify_all()
        for task in dropped:
            task.future.cancel()
        for thread in self._threads:
            thread.join()

    def _drop(self, task: _Task) -> None:
        """Keep nothing of a task that was cancelled while it waited."""
        with self._changed:
            tasks = self._waiting.get(task.caller)
            if tasks is None or task not in tasks:
                return
            tasks.remove(task)
            self._count -= 1
            if not tasks:
                del self._waiting[task.caller]
                self._changed.notify_all()  # that may have been all that a closed pool waits for

    def _work(self) -> None:
        while (task := self._next()) is not None:
            task.run()
            with self._changed:
                self._running[task.caller] -= 1
                if not self._running[task.caller]:
                    del self._running[task.caller]

    def _next(self) -> _Task | None:
        with self._changed:
            while (task := self._taken()) is None:
                if self._is_closed and not self._waiting:
                    self._changed.notify_all()
                    return None
                self._idle += 1
                self._changed.wait()
                self._idle -= 1
            return task

    def _taken(self) -> _Task | None:
        """The first task of the next caller who may have a thread more."""
        for caller, tasks in self._waiting.items():
            if caller and self._running[caller] >= self._per_caller:
                continue
            task = tasks.popleft()
            del self._waiting[caller]
            if tasks:
                self._waiting[caller] = tasks  # its next turn is after all others
            self._running[caller] += 1
            self._count -= 1
            return task
        return None
