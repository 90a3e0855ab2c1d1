"""What can be asked about one log of a service, and what the answers mean."""

from __future__ import annotations

import time
from contextlib import suppress
from http import HTTPStatus
from typing import Final

from patchlog.client.exchange import Exchange, Request, Unsent, asked
from patchlog.client.problems import PatchNotFound, read_answer
from patchlog.client.sending import Sending
from patchlog.codec.patch_ids import PatchId, parse_patch_id
from patchlog.errors import PositionGone, StorageError, UsageError
from patchlog.log.documents import read_appended, read_description, read_position, read_record, read_verification
from patchlog.log.position import Position
from patchlog.log.records import (
    AnyHead,
    Appended,
    ExpectedHead,
    Head,
    LogDescription,
    PatchRecord,
    Verification,
)

__all__ = ["LogCalls"]

_PAGE: Final = 1000
_LONGEST_WAIT_SECONDS: Final = 50.0
_LONGEST_VERIFICATION_SECONDS: Final = 3600.0
_MOST_VERSION: Final = (1 << 63) - 1
_JSON: Final = {"Accept": "application/json"}


class LogCalls:
    """The calls of the contract (`patchlog.log.contract`) as exchanges with a service."""

    def __init__(self, name: str) -> None:
        self.name: Final = name
        self.path: Final = f"/logs/{name}"
        self.patches_path: Final = f"{self.path}/patches"

    def describe(self) -> Exchange[LogDescription]:
        """Describe the log as it stands."""
        response = yield from asked(Request("GET", self.path))
        return read_answer(response, read_description)

    def head(self) -> Exchange[Head]:
        """The last patch."""
        return (yield from self.describe()).head

    def append(self, sending: Sending, expected_head: ExpectedHead) -> Exchange[Appended]:
        """Append what was prepared."""
        request = Request(
            "POST",
            self.patches_path,
            content=sending.content,
            headers={"Content-Type": sending.media_type} | _condition(expected_head),
            is_repeatable=sending.is_repeatable,
            asked={} if isinstance(expected_head, AnyHead) else {"expected_head": expected_head},
        )
        try:
            response = yield from asked(request)
        except StorageError as error:
            if not error.is_transient or sending.is_repeatable or isinstance(error, Unsent):
                raise
            raise StorageError(f"{error}; whether the patches were appended is not known: look at the head") from error
        is_retry = response.status_code != HTTPStatus.CREATED
        return read_answer(response, lambda document: read_appended(document, is_retry=is_retry))

    def position(self, version: int | None) -> Exchange[Position]:
        """Return the position at a version, or at the head."""
        if version is not None and not 0 <= version <= _MOST_VERSION:
            raise UsageError(f"no log has a version {version}")
        params = {} if version is None else {"version": version}
        response = yield from asked(Request("GET", f"{self.path}/position", params=params))
        return read_answer(response, read_position)

    def check(self, position: Position) -> Exchange[None]:
        """Raise HistoryMismatch where the log does not have the history of the position."""
        if position.log_id is not None or position.hash is not None:
            params = {"version": position.version} | _history(position)
            yield from asked(Request("GET", f"{self.path}/position", params=params))

    def records(self, after: Position, last: int) -> Exchange[list[PatchRecord]]:
        """Some of the records after a position, which is checked; all of these are kept."""
        response = yield from asked(
            Request(
                "GET",
                self.patches_path,
                params={"after": after.version, "until": last, "limit": _PAGE} | _history(after),
                headers=_JSON,
                asked={"position": after.version + 1},
            )
        )
        records = read_answer(response, lambda page: [read_record(document) for document in page["patches"]])
        if not records:
            raise StorageError(f"version {after.version + 1} of the log {self.name!r} is missing: verify it")
        return records

    def bytes_after(self, after: int, last: int, log_id: str) -> Request:
        """The request for the bytes of patches of the log with this id."""
        params = {"after": after, "until": last, "format": "jelly-patch", "log_id": log_id}
        return Request("GET", self.patches_path, params=params, asked={"position": after + 1})

    def find(self, patch: PatchId | int) -> Exchange[PatchRecord | None]:
        """What is known of a patch by its id or version."""
        if isinstance(patch, str):
            patch = parse_patch_id(patch)
        elif not 0 < patch <= _MOST_VERSION:
            return None
        try:
            response = yield from asked(Request("GET", f"{self.patches_path}/{patch}", headers=_JSON))
        except PatchNotFound:
            return None
        return read_answer(response, read_record)

    def verify(self) -> Exchange[Verification]:
        """Have the service compute all hashes anew."""
        response = yield from asked(
            Request("GET", f"{self.path}/verify", silent_seconds=_LONGEST_VERIFICATION_SECONDS, is_repeatable=False)
        )
        return read_answer(response, read_verification)

    def truncate_before(self, version: int | None, *, force: bool) -> Exchange[LogDescription]:
        """Forget the bytes of all patches below a version."""
        before = None if version is None else max(1, min(version, _MOST_VERSION))
        response = yield from asked(Request("POST", f"{self.path}/truncate", json={"before": before, "force": force}))
        return read_answer(response, read_description)

    def wait_for(self, version: int, timeout_seconds: float) -> Exchange[Head]:
        """Return the head once it has reached a version, or as it is when the time is up."""
        deadline = time.monotonic() + timeout_seconds
        while True:
            head = yield from self.head()
            left = deadline - time.monotonic()
            if head.version >= version or left <= 0:
                return head
            seconds = min(left, _LONGEST_WAIT_SECONDS)
            wait = {"after": version - 1, "wait": seconds}
            with suppress(PositionGone):  # it came and went
                yield Request("GET", f"{self.path}/stream", params=wait, silent_seconds=seconds, takes_body=False)


def _history(position: Position) -> dict[str, str]:
    """The parameters by which the service checks a position."""
    asserted = {} if position.log_id is None else {"log_id": position.log_id}
    return asserted if position.hash is None else asserted | {"hash": position.hash.hex()}


def _condition(expected_head: ExpectedHead) -> dict[str, str]:
    if isinstance(expected_head, AnyHead):
        return {}
    return {"If-None-Match": "*"} if expected_head is None else {"If-Match": f'"{parse_patch_id(expected_head)}"'}
