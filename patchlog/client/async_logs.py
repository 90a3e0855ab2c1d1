"""The logs of a service, for programs that do not block. docs/client.md."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final, Self

from patchlog.client import store_calls
from patchlog.client.async_connection import AsyncConnection
from patchlog.client.async_consumers import AsyncHttpConsumers
from patchlog.client.async_receiving import AsyncPatchBytes
from patchlog.client.async_snapshots import AsyncHttpSnapshots
from patchlog.client.log_calls import LogCalls
from patchlog.client.sending import prepared_without_blocking
from patchlog.codec.patch_ids import PatchId
from patchlog.errors import StorageError
from patchlog.log.contract import PatchFormat
from patchlog.log.position import After, Position, as_position
from patchlog.log.records import (
    ANY_HEAD,
    Appended,
    ExpectedHead,
    Head,
    LogDescription,
    LogOptions,
    PatchRecord,
    Verification,
    check_log_name,
)
from patchlog.log.succession import last_version

__all__ = ["AsyncHttpLogStore", "AsyncHttpPatchLog", "AsyncLoggedPatch"]

_WAIT_SECONDS: Final = 25.0
_FIRST_PAUSE_SECONDS: Final = 0.2
_LONGEST_PAUSE_SECONDS: Final = 15.0


@dataclass(frozen=True, slots=True)
class AsyncLoggedPatch:
    """A patch and its bytes, in chunks that end anywhere."""

    record: PatchRecord
    chunks: AsyncIterator[bytes] = field(repr=False)


class AsyncHttpLogStore:
    """The logs of a service, `http://HOST:PORT`. The key is `token`, else that in PATCHLOG_TOKEN."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self.connection: Final = AsyncConnection(url, token)

    async def create(self, name: str, options: LogOptions = LogOptions()) -> LogDescription:  # noqa: B008  it is frozen
        """Create an empty log."""
        return await self.connection.carry_out(store_calls.create(name, options))

    def log(self, name: str) -> AsyncHttpPatchLog:
        """The log of that name, whether it is there or not."""
        return AsyncHttpPatchLog(self.connection, check_log_name(name))

    async def list(self, *, after: str = "", limit: int | None = None) -> list[LogDescription]:
        """Describe the logs, in the order of their names."""
        return await self.connection.carry_out(store_calls.list_logs(after, limit))

    async def delete(self, name: str) -> None:
        """Delete a log and all of its patches."""
        await self.connection.carry_out(store_calls.delete(name))

    async def close(self) -> None:
        """Close all connections."""
        await self.connection.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncHttpPatchLog:
    """One log of a service. Its calls promise what those of `patchlog.log.contract.PatchLog` do."""

    def __init__(self, connection: AsyncConnection, name: str) -> None:
        self._connection = connection
        self._calls = LogCalls(name)

    @property
    def name(self) -> str:
        """The name of the log."""
        return self._calls.name

    async def describe(self) -> LogDescription:
        """Describe the log as it stands."""
        return await self._connection.carry_out(self._calls.describe())

    async def head(self) -> Head:
        """The last patch."""
        return await self._connection.carry_out(self._calls.head())

    async def append(
        self,
        chunks: Iterable[bytes] | AsyncIterable[bytes],
        *,
        format: PatchFormat = "jelly-patch",
        expected_head: ExpectedHead = ANY_HEAD,
    ) -> Appended:
        """Append the patches of a stream, all or none.

        Where the answer is lost it is sent again. That needs an id in the first patch and chunks that can be iterated
        again if they are more than a mebibyte; else StorageError says that nobody knows whether it was appended.
        """
        sending = await prepared_without_blocking(chunks, format)
        return await self._connection.carry_out(self._calls.append(sending, expected_head))

    async def position(self, version: int | None = None) -> Position:
        """Return the position at a version, or at the head."""
        return await self._connection.carry_out(self._calls.position(version))

    async def check(self, position: Position) -> None:
        """Raise HistoryMismatch where this log does not have the history of the position."""
        await self._connection.carry_out(self._calls.check(position))

    async def read(
        self, after: After = 0, *, limit: int | None = None, until: int | None = None
    ) -> AsyncGenerator[AsyncLoggedPatch, None]:
        """Yield the patches after a version. Take the chunks of a patch before the next patch."""
        position = as_position(after)
        description = await self.describe()
        last = last_version(description.head.version, position.version, limit, until)
        if last <= position.version:
            await self.check(position)
            return
        log_id = position.log_id or description.id
        position = Position(log_id, position.version, position.hash)
        async with AsyncPatchBytes(self._connection, self._calls, last, log_id) as data:
            while position.version < last:
                for record in await self._connection.carry_out(self._calls.records(position, last)):
                    position = position.follow(record)
                    yield AsyncLoggedPatch(record, data.chunks(record))

    async def tail(self, after: After = 0) -> AsyncGenerator[AsyncLoggedPatch, None]:
        """Yield the patches after a version, and then each new one as it comes, without an end.

        While the service cannot be reached it is tried again and again, and goes on where it was. Raises
        HistoryMismatch where the log is not, or is no longer, the one that was read so far.
        """
        position = as_position(after)
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                head = await self.wait_for(position.version + 1, _WAIT_SECONDS)
                if head.version > position.version:
                    async with aclosing(self.read(position)) as patches:
                        async for logged in patches:
                            yield logged
                            position = position.follow(logged.record)
                elif head.version < position.version or position.hash not in (None, head.hash):
                    await self.check(position)
                pause = _FIRST_PAUSE_SECONDS
            except StorageError as error:
                if not error.is_transient:
                    raise
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    async def find(self, patch: PatchId | int) -> PatchRecord | None:
        """What is known of a patch by its id or version."""
        return await self._connection.carry_out(self._calls.find(patch))

    async def verify(self) -> Verification:
        """Have the service compute all hashes anew."""
        return await self._connection.carry_out(self._calls.verify())

    async def truncate_before(self, version: int | None = None, *, force: bool = False) -> LogDescription:
        """Forget the bytes of all patches below a version."""
        return await self._connection.carry_out(self._calls.truncate_before(version, force=force))

    @property
    def consumers(self) -> AsyncHttpConsumers:
        """How far those who follow the log have read."""
        return AsyncHttpConsumers(self._connection, self._calls.path)

    @property
    def snapshots(self) -> AsyncHttpSnapshots:
        """The whole dataset at some versions."""
        return AsyncHttpSnapshots(self._connection, self._calls.path)

    async def wait_for(self, version: int, timeout_seconds: float) -> Head:
        """Return the head once it has reached a version, or as it is when the time is up."""
        return await self._connection.carry_out(self._calls.wait_for(version, timeout_seconds))
