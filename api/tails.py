"""Live tails: who follows a log gets each patch when it is durable.

All tails of a log share one **feed**, which reads each new patch once. It holds the newest patches, up to a limit; who
has fallen behind them reads from the store. So an idle tail costs a timer, a thousand of them one read a patch, and a
slow one its place and what is on its way to it: the feed waits for nobody.

    store, some thread ──announce──▶ Tails ──wake──▶ Feed ──new patches──▶ tails
                 head versions ──poll──┘

A feed lives as long as it has tails. It ends when its log does, and all end when the service stops. What nobody
announces, as another process on the same SQLite, is found by one query a second for all feeds together.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import Context
from dataclasses import dataclass
from functools import partial
from itertools import islice
from logging import getLogger
from typing import Final, Protocol, TypeVar

from api.outgoing import Piece, cut
from patchlog.errors import HistoryMismatch, LogNotFound, PositionGone, StorageError
from patchlog.log.contract import LogStore, PatchLog, PreparedAppend, Told
from patchlog.log.position import After, Position
from patchlog.log.records import ANY_HEAD, ExpectedHead, LoggedPatch
from patchlog.log.wakeups import Wakeups

__all__ = ["Feed", "LocalLogStore", "Run", "Tails", "checked_head"]

_logger: Final = getLogger("patchlog.service")

_HELD_BYTES: Final = 1 << 20
_LARGE_BYTES: Final = 256 << 10
"""A patch of more bytes is not held; each tail reads it for itself."""
_SENT_BYTES: Final = 64 << 10
"""About what a tail has in memory while its client does not read."""
_READ_AT_ONCE: Final = 256

_Result = TypeVar("_Result")


class Run(Protocol):
    """Runs a call that blocks in a thread of its own."""

    def __call__(self, call: Callable[[], _Result], /) -> Awaitable[_Result]:
        """Return what the call returns."""


class LocalLogStore(LogStore, Protocol):
    """A store of this process, which says when logs change."""

    @property
    def wakeups(self) -> Wakeups:
        """Where it says so."""

    def listen(self) -> None:
        """Hear of appends by other processes from now on."""

    def begin_delete(self, name: str, expected_head: ExpectedHead = ANY_HEAD) -> None:
        """Have a log gone, and its name free, in no time. Raises LogNotFound, and HeadMismatch for another head."""

    def sweep(self, meanwhile: Callable[[int], object] | None = None) -> None:
        """Delete what deleted logs have left; `meanwhile` is called with the number of steps, and may raise."""

    def submit(self, appends: Sequence[PreparedAppend], told: Told) -> None:
        """Append what was prepared, and tell once what came of each: in any thread, maybe before this returns.

        Raises StorageError, and tells nothing, where the store is closed.
        """

    def head_versions(self, names: Collection[str]) -> Mapping[str, int]:
        """The version of the head of each of these logs that is there."""


@dataclass(frozen=True, slots=True)
class _Held:
    """A patch that all tails may take; without its bytes where they are many."""

    version: int
    data: bytes | None


def checked_head(log: PatchLog, after: After) -> Position:
    """Return the head of a log whose patches after a position are kept. Raises HistoryMismatch, PositionGone."""
    head = log.position()
    log.read(after, limit=1)
    return head


class Tails:
    """The feeds of a process. All but `hear` belongs to the event loop."""

    def __init__(self, store: LocalLogStore, run: Run, poll_seconds: float) -> None:
        self._store = store
        self._run = run
        self._poll_seconds = poll_seconds
        self._loop = asyncio.get_running_loop()
        self._feeds: dict[str, Feed] = {}
        self._is_stopped = False
        self.open = 0
        self._poll = self._loop.create_task(self._look_for_what_nobody_says())
        store.wakeups.subscribe(self.hear)

    @contextmanager
    def feed(self, log: PatchLog, head: Position) -> Iterator[Feed]:
        """The feed of a log, which is at this head or beyond, for as long as the block lasts."""
        feed = self._feeds.get(log.name)
        if feed is None or feed.has_ended:
            self._store.listen()
            feed = self._feeds[log.name] = Feed(log, head, self._run)
            if self._is_stopped:
                feed.end()
        self.open += 1
        feed.tails += 1
        try:
            yield feed
        finally:
            self.open -= 1
            feed.tails -= 1
            if feed.tails == 0:
                feed.end()
                if self._feeds.get(log.name) is feed:
                    del self._feeds[log.name]

    def hear(self, name: str) -> None:
        """A log has changed; an empty name is any log. May be called from any thread."""
        if not name or name in self._feeds:
            with suppress(RuntimeError):  # the loop is closed: nobody follows any more
                self._loop.call_soon_threadsafe(self._wake, name)

    def stop(self) -> None:
        """End all feeds, and those that are still to come."""
        self._is_stopped = True
        self._loop.call_soon_threadsafe(self._poll.cancel)
        self._store.wakeups.unsubscribe(self.hear)
        for feed in self._feeds.values():
            feed.end()

    async def _look_for_what_nobody_says(self) -> None:
        while True:
            await asyncio.sleep(self._poll_seconds)
            if feeds := dict(self._feeds):
                with suppress(StorageError):  # heartbeats go on while the database is away
                    versions = await self._run(partial(self._store.head_versions, feeds.keys()))
                    for name, feed in feeds.items():
                        if versions.get(name) != feed.version:
                            feed.wake()

    def _wake(self, name: str) -> None:
        for feed in self._feeds.values() if not name else filter(None, [self._feeds.get(name)]):
            feed.wake()


class Feed:
    """The newest patches of one log."""

    def __init__(self, log: PatchLog, head: Position, run: Run) -> None:
        self.tails = 0
        self.has_ended = False
        self._position = head
        """Of the newest patch that it knows."""
        self._log = log
        self._run = run
        self._held: deque[_Held] = deque()
        self._held_bytes = 0
        self._woken = asyncio.Event()
        self._changed = asyncio.Event()
        # It reads for all tails, and not for whoever was the first.
        self._task = asyncio.create_task(self._follow(), context=Context())

    @property
    def version(self) -> int:
        """The newest patch that it knows."""
        return self._position.version

    def wake(self) -> None:
        """Look at the log."""
        self._woken.set()

    def end(self) -> None:
        """Let all tails end."""
        self.has_ended = True
        self._task.cancel()
        self._changed.set()

    async def patches(self, after: int, heartbeat_seconds: float) -> AsyncIterator[list[Piece]]:
        """Yield the pieces of all patches behind a version, as they come; an empty list is a heartbeat."""
        while not self.has_ended:
            if after < self.version:
                async for pieces in self._between(after):
                    yield pieces
                    if pieces[-1].ends_patch:
                        after = pieces[-1].version
            else:
                changed = self._changed
                try:
                    async with asyncio.timeout(heartbeat_seconds):
                        await changed.wait()
                except TimeoutError:
                    yield []

    async def wait(self, after: int, seconds: float) -> bool:
        """Whether there is a patch behind a version, at the latest when the time is up."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while after >= self.version and not self.has_ended:
                    await self._changed.wait()
        return after < self.version

    async def _between(self, after: int) -> AsyncIterator[list[Piece]]:
        """Some of the patches behind a version, up to the newest."""
        if ready := self._ready(after):
            yield ready
            return
        position = Position(self._position.log_id, after, None)
        patches = await self._run(lambda: cut(self._log.read(position, limit=_READ_AT_ONCE), _SENT_BYTES))
        while pieces := await self._run(partial(_next_of, patches)):
            if pieces[-1].ends_patch:
                patches = iter(())  # what was read ahead is not to wait in memory for a client that does not read
            yield pieces

    def _ready(self, after: int) -> list[Piece]:
        """Some of the patches behind a version, as far as they are held."""
        ready: list[Piece] = []
        if not self._held or self._held[0].version > after + 1:
            return ready
        size = 0
        for patch in islice(self._held, after + 1 - self._held[0].version, None):
            if patch.data is None or size > _SENT_BYTES:
                break
            ready.append(Piece(patch.version, patch.data, ends_patch=True))
            size += len(patch.data)
        return ready

    async def _follow(self) -> None:
        try:
            while True:
                self._woken.clear()
                with suppress(StorageError):  # the poll wakes us again
                    while await self._read_some():
                        pass
                await self._woken.wait()
        except (LogNotFound, PositionGone, HistoryMismatch):
            self.end()
        except Exception:
            # Tails that only got heartbeats from now on would look as if nothing were appended.
            _logger.exception("the tails of the log %r end, as it cannot be followed", self._log.name)
            self.end()

    async def _read_some(self) -> bool:
        """Take what is new, and say whether there may be more."""
        new, position = await self._run(self._new_patches)
        if not new:
            return False
        for version, data in new:
            self._held.append(_Held(version, data))
            self._held_bytes += len(data or b"")
        while self._held_bytes > _HELD_BYTES and len(self._held) > 1:
            self._held_bytes -= len(self._held.popleft().data or b"")
        self._position = position
        self._changed.set()
        self._changed = asyncio.Event()
        return True

    def _new_patches(self) -> tuple[list[tuple[int, bytes | None]], Position]:
        """The next patches and the position after them. Raises HistoryMismatch where the log has become another one."""
        position = self._position
        head = self._log.head()
        if (head.version, head.hash) == (position.version, position.hash):
            return [], position
        new: list[tuple[int, bytes | None]] = []
        size = 0
        for logged in self._log.read(position, limit=_READ_AT_ONCE):
            position = position.follow(logged.record)
            new.append((logged.record.version, _small(logged)))
            size += len(new[-1][1] or b"")
            if size > _HELD_BYTES:
                break
        return new, position


def _next_of(patches: Iterator[list[Piece]]) -> list[Piece]:
    return next(patches, [])


def _small(logged: LoggedPatch) -> bytes | None:
    return None if logged.record.bytes > _LARGE_BYTES else b"".join(logged.chunks)
