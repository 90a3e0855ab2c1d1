"""The logs of a service, for programs that block. docs/client.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from patchlog.client import store_calls
from patchlog.client.connection import Connection
from patchlog.client.consumers import HttpConsumers
from patchlog.client.log_calls import LogCalls
from patchlog.client.receiving import PatchBytes
from patchlog.client.sending import prepared
from patchlog.client.snapshots import HttpSnapshots
from patchlog.codec.patch_ids import PatchId
from patchlog.log.contract import PatchFormat
from patchlog.log.position import After, Position, as_position
from patchlog.log.records import (
    ANY_HEAD,
    Appended,
    ExpectedHead,
    Head,
    LogDescription,
    LoggedPatch,
    LogOptions,
    PatchRecord,
    Verification,
    check_log_name,
)
from patchlog.log.succession import last_version

__all__ = ["HttpLogStore", "HttpPatchLog"]


class HttpLogStore:
    """The logs of a service, `http://HOST:PORT`. The key is `token`, else that in PATCHLOG_TOKEN."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self.connection: Final = Connection(url, token)

    def create(self, name: str, options: LogOptions = LogOptions()) -> LogDescription:  # noqa: B008  it is frozen
        """Create an empty log."""
        return self.connection.carry_out(store_calls.create(name, options))

    def log(self, name: str) -> HttpPatchLog:
        """The log of that name, whether it is there or not."""
        return HttpPatchLog(self.connection, check_log_name(name))

    def list(self, *, after: str = "", limit: int | None = None) -> list[LogDescription]:
        """Describe the logs, in the order of their names."""
        return self.connection.carry_out(store_calls.list_logs(after, limit))

    def delete(self, name: str) -> None:
        """Delete a log and all of its patches."""
        self.connection.carry_out(store_calls.delete(name))

    def close(self) -> None:
        """Close all connections."""
        self.connection.close()


class HttpPatchLog:
    """One log of a service."""

    def __init__(self, connection: Connection, name: str) -> None:
        self._connection = connection
        self._calls = LogCalls(name)

    @property
    def name(self) -> str:
        """The name of the log."""
        return self._calls.name

    def describe(self) -> LogDescription:
        """Describe the log as it stands."""
        return self._connection.carry_out(self._calls.describe())

    def head(self) -> Head:
        """The last patch."""
        return self._connection.carry_out(self._calls.head())

    def append(
        self,
        chunks: Iterable[bytes],
        *,
        format: PatchFormat = "jelly-patch",
        expected_head: ExpectedHead = ANY_HEAD,
    ) -> Appended:
        """Append the patches of a stream, all or none.

        Where the answer is lost it is sent again. That needs an id in the first patch and chunks that can be iterated
        again if they are more than a mebibyte; else StorageError says that nobody knows whether it was appended.
        """
        return self._connection.carry_out(self._calls.append(prepared(chunks, format), expected_head))

    def position(self, version: int | None = None) -> Position:
        """Return the position at a version, or at the head."""
        return self._connection.carry_out(self._calls.position(version))

    def check(self, position: Position) -> None:
        """Raise HistoryMismatch where this log does not have the history of the position."""
        self._connection.carry_out(self._calls.check(position))

    def read(self, after: After = 0, *, limit: int | None = None, until: int | None = None) -> Iterator[LoggedPatch]:
        """Yield the patches after a version. Their chunks end anywhere."""
        position = as_position(after)
        description = self.describe()
        last = last_version(description.head.version, position.version, limit, until)
        if last <= position.version:
            self.check(position)
            return iter(())
        position = Position(position.log_id or description.id, position.version, position.hash)
        return self._read(position, self._records(position, last), last)

    def _read(self, position: Position, records: list[PatchRecord], last: int) -> Iterator[LoggedPatch]:
        with PatchBytes(self._connection, self._calls, last, position.log_id or "") as data:
            while records:
                for record in records:
                    position = position.follow(record)
                    yield LoggedPatch(record, data.chunks(record))
                records = self._records(position, last) if position.version < last else []

    def _records(self, after: Position, last: int) -> list[PatchRecord]:
        return self._connection.carry_out(self._calls.records(after, last))

    def find(self, patch: PatchId | int) -> PatchRecord | None:
        """What is known of a patch by its id or version."""
        return self._connection.carry_out(self._calls.find(patch))

    def verify(self) -> Verification:
        """Have the service compute all hashes anew."""
        return self._connection.carry_out(self._calls.verify())

    def truncate_before(self, version: int | None = None, *, force: bool = False) -> LogDescription:
        """Forget the bytes of all patches below a version."""
        return self._connection.carry_out(self._calls.truncate_before(version, force=force))

    @property
    def consumers(self) -> HttpConsumers:
        """How far those who follow the log have read."""
        return HttpConsumers(self._connection, self._calls.path)

    @property
    def snapshots(self) -> HttpSnapshots:
        """The whole dataset at some versions."""
        return HttpSnapshots(self._connection, self._calls.path)

    def wait_for(self, version: int, timeout_seconds: float) -> Head:
        """Return the head once it has reached a version, or as it is when the time is up."""
        return self._connection.carry_out(self._calls.wait_for(version, timeout_seconds))
