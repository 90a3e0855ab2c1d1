"""The logs of a service. docs/client.md."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from http import HTTPStatus
from typing import Final

from patchlog.client.connection import Connection, Unsent
from patchlog.client.consumers import HttpConsumers
from patchlog.client.problems import PatchNotFound
from patchlog.client.receiving import PatchBytes
from patchlog.client.sending import prepared
from patchlog.codec.patch_ids import PatchId, parse_patch_id
from patchlog.errors import LogAlreadyExists, PositionGone, StorageError
from patchlog.log.contract import PatchFormat
from patchlog.log.documents import (
    read_appended,
    read_description,
    read_record,
    read_verification,
)
from patchlog.log.records import (
    ANY_HEAD,
    AnyHead,
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

_PAGE: Final = 1000
_LONGEST_WAIT_SECONDS: Final = 50.0
_MOST_VERSION: Final = (1 << 63) - 1
_JSON: Final = {"Accept": "application/json"}


class HttpLogStore:
    """The logs of a service, `http://HOST:PORT`. The key is `token`, else that in PATCHLOG_TOKEN."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self.connection: Final = Connection(url, token)

    def create(self, name: str, options: LogOptions = LogOptions()) -> LogDescription:  # noqa: B008  it is frozen
        """Create an empty log."""
        path = _path(check_log_name(name))
        response = self.connection.ask("PUT", path, json=asdict(options), is_repeatable=False)
        if response.status_code != HTTPStatus.CREATED:
            raise LogAlreadyExists(f"there is a log {name!r} already")
        return read_description(response.json())

    def log(self, name: str) -> HttpPatchLog:
        """The log of that name, whether it is there or not."""
        return HttpPatchLog(self.connection, check_log_name(name))

    def list(self, *, after: str = "", limit: int | None = None) -> list[LogDescription]:
        """Describe the logs, in the order of their names."""
        found: list[LogDescription] = []
        while limit is None or len(found) < limit:
            size = _PAGE if limit is None else min(_PAGE, limit - len(found))
            page = self.connection.ask("GET", "/logs", params={"after": after, "limit": size}).json()
            found += map(read_description, page["logs"])
            if page["next"] is None:
                break
            after = found[-1].name
        return found

    def delete(self, name: str) -> None:
        """Delete a log and all of its patches."""
        self.connection.ask("DELETE", _path(check_log_name(name)), is_repeatable=False)

    def close(self) -> None:
        """Close all connections."""
        self.connection.close()


class HttpPatchLog:
    """One log of a service."""

    def __init__(self, connection: Connection, name: str) -> None:
        self._connection = connection
        self._name = name
        self._path = _path(name)

    @property
    def name(self) -> str:
        """The name of the log."""
        return self._name

    def describe(self) -> LogDescription:
        """Describe the log as it stands."""
        return read_description(self._connection.ask("GET", self._path).json())

    def head(self) -> Head:
        """The last patch."""
        return self.describe().head

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
        sending = prepared(chunks, format)
        headers = {"Content-Type": sending.media_type} | _condition(expected_head)
        asked = {} if isinstance(expected_head, AnyHead) else {"expected_head": expected_head}
        try:
            response = self._connection.ask(
                "POST",
                f"{self._path}/patches",
                content=sending.content,
                headers=headers,
                is_repeatable=sending.is_repeatable,
                asked=asked,
            )
        except StorageError as error:
            if not error.is_transient or sending.is_repeatable or isinstance(error, Unsent):
                raise
            raise StorageError(f"{error}; whether the patches were appended is not known: look at the head") from error
        return read_appended(response.json(), is_retry=response.status_code != HTTPStatus.CREATED)

    def read(self, after: int = 0, *, limit: int | None = None, until: int | None = None) -> Iterator[LoggedPatch]:
        """The patches behind a version. Their chunks end anywhere."""
        last = last_version(self.head().version, after, limit, until)
        if last <= after:
            return iter(())
        return self._read(self._records(after, last), last)

    def _read(self, records: list[PatchRecord], last: int) -> Iterator[LoggedPatch]:
        with PatchBytes(self._connection, f"{self._path}/patches", last) as data:
            while records:
                for record in records:
                    yield LoggedPatch(record, data.chunks(record))
                after = records[-1].version
                records = self._records(after, last) if after < last else []

    def _records(self, after: int, last: int) -> list[PatchRecord]:
        """Some of the records behind a version; all of these are kept."""
        page = self._connection.ask(
            "GET",
            f"{self._path}/patches",
            params={"after": after, "until": last, "limit": _PAGE},
            headers=_JSON,
            asked={"position": after + 1},
        ).json()
        records = [read_record(document) for document in page["patches"]]
        if not records:
            raise StorageError(f"version {after + 1} of the log {self._name!r} is missing: verify it")
        return records

    def find(self, patch: PatchId | int) -> PatchRecord | None:
        """What is known of a patch by its id or version."""
        if isinstance(patch, str):
            patch = parse_patch_id(patch)
        elif not 0 < patch <= _MOST_VERSION:
            return None
        try:
            response = self._connection.ask("GET", f"{self._path}/patches/{patch}", headers=_JSON)
        except PatchNotFound:
            return None
        return read_record(response.json())

    def verify(self) -> Verification:
        """Have the service compute all hashes anew."""
        with self._connection.answer(f"{self._path}/verify", {}, silent_seconds=3600) as response:
            response.read()
            return read_verification(response.json())

    def truncate_before(self, version: int) -> LogDescription:
        """Forget the bytes of all patches below a version."""
        before = {"before": max(1, min(version, _MOST_VERSION))}
        return read_description(self._connection.ask("POST", f"{self._path}/truncate", json=before).json())

    @property
    def consumers(self) -> HttpConsumers:
        """How far those who follow the log have read."""
        return HttpConsumers(self._connection, self._path)

    def wait_for(self, version: int, timeout_seconds: float) -> Head:
        """Return the head once it has reached a version, or as it is when the time is up."""
        deadline = time.monotonic() + timeout_seconds
        while True:
            head = self.head()
            left = deadline - time.monotonic()
            if head.version >= version or left <= 0:
                return head
            seconds = min(left, _LONGEST_WAIT_SECONDS)
            try:
                with self._connection.answer(
                    f"{self._path}/stream", {"after": version - 1, "wait": seconds}, silent_seconds=seconds
                ):
                    pass
            except PositionGone:
                pass  # it came and went


def _path(name: str) -> str:
    return f"/logs/{name}"


def _condition(expected_head: ExpectedHead) -> dict[str, str]:
    if isinstance(expected_head, AnyHead):
        return {}
    return {"If-None-Match": "*"} if expected_head is None else {"If-Match": f'"{parse_patch_id(expected_head)}"'}
