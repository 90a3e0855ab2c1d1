"""What can be asked about the snapshots of a log of a service, and what the answers mean."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, TypeAlias

import httpx

from patchlog.client.exchange import Exchange, Pause, Request, asked
from patchlog.client.problems import read_answer
from patchlog.errors import HistoryMismatch, SnapshotNotFound, SnapshotRefused, StorageError, UsageError
from patchlog.formats import JELLY, NQUADS
from patchlog.log.contract import SnapshotFormat
from patchlog.log.documents import read_build, read_snapshot
from patchlog.log.position import Position
from patchlog.log.records import Snapshot, SnapshotBuild

__all__ = ["SnapshotCalls", "bytes_before", "check_complete"]

_MEDIA_TYPES: Final = {"jelly": JELLY.media_types[0], "nquads": NQUADS.media_types[0]}
_JSON: Final = {"Accept": "application/json"}
_POLL_SECONDS: Final = 0.2
_LONGEST_POLL_SECONDS: Final = 5.0
_WAIT: Final = {"wait": 20}
_LONGEST_UPLOAD_SECONDS: Final = 3600.0

_Either: TypeAlias = Snapshot | SnapshotBuild
"""A snapshot that is there, or one that is not: it is being made, or could not be."""


class SnapshotCalls:
    """The calls of `patchlog.log.contract.Snapshots` as exchanges with a service."""

    def __init__(self, log_path: str) -> None:
        self.path: Final = f"{log_path}/snapshots"

    def list(self) -> Exchange[list[Snapshot]]:
        """All snapshots, by version."""
        return [found for found in (yield from self._all()) if isinstance(found, Snapshot)]

    def find(self, version: int) -> Exchange[Snapshot | None]:
        """The snapshot at a version."""
        return next((snapshot for snapshot in (yield from self.list()) if snapshot.version == version), None)

    def found(self, version: int) -> Exchange[Snapshot]:
        """The snapshot at a version. Raises SnapshotNotFound."""
        snapshot = yield from self.find(version)
        if snapshot is None:
            raise SnapshotNotFound(f"the log has no snapshot at version {version}")
        return snapshot

    def pending(self) -> Exchange[SnapshotBuild | None]:
        """The snapshot that is being made, or the last that could not be made."""
        return next((found for found in (yield from self._all()) if isinstance(found, SnapshotBuild)), None)

    def build(self, version: int | None) -> Exchange[Snapshot]:
        """Have the service make a snapshot, and wait for it."""
        body = {} if version is None else {"version": version}
        response = yield from asked(Request("POST", self.path, params=_WAIT, json=body))
        seconds = _POLL_SECONDS
        while isinstance(found := read_answer(response, _read_either), SnapshotBuild):
            if found.error is not None:
                raise SnapshotRefused(f"the snapshot at version {found.version} failed: {found.error}")
            yield Pause(seconds)
            seconds = min(2 * seconds, _LONGEST_POLL_SECONDS)
            response = yield from asked(Request("GET", f"{self.path}/{found.version}", headers=_JSON))
        return found

    def put(
        self, version: int, content: Iterable[bytes] | AsyncIterable[bytes], format: SnapshotFormat
    ) -> Exchange[Snapshot]:
        """Send a dataset."""
        if format not in _MEDIA_TYPES:
            raise UsageError(f"{format!r} is not a format of snapshots; there are {' and '.join(_MEDIA_TYPES)}")
        response = yield from asked(
            Request(
                "PUT",
                f"{self.path}/{version}",
                content=content,
                headers={"Content-Type": _MEDIA_TYPES[format]},
                is_repeatable=False,
                silent_seconds=_LONGEST_UPLOAD_SECONDS,
            )
        )
        return read_answer(response, read_snapshot)

    def delete(self, version: int) -> Exchange[None]:
        """Delete a snapshot."""
        path = f"{self.path}/{version}"
        yield from asked(Request("DELETE", path, json={"delete": version}, is_repeatable=False))

    def bytes_behind(self, version: int, place: int) -> Request:
        """The request for the bytes of a snapshot from a place on."""
        headers = {"Accept": JELLY.media_types[0]} | ({"Range": f"bytes={place}-"} if place else {})
        return Request("GET", f"{self.path}/{version}", headers=headers)

    def _all(self) -> Exchange[Sequence[_Either]]:
        response = yield from asked(Request("GET", self.path))
        return read_answer(response, lambda page: [_read_either(document) for document in page["snapshots"]])


def _read_either(document: Mapping[str, Any]) -> _Either:
    return read_snapshot(document) if document["state"] == "complete" else read_build(document)


def bytes_before(place: int, response: httpx.Response, snapshot: Snapshot) -> int:
    """How many bytes of the answer come before a place: not all servers know of ranges.

    Raises HistoryMismatch where the answer is of another snapshot: the log may have become another one meanwhile.
    """
    position = str(Position.of(snapshot))
    if (found := response.headers.get("Patchlog-Position", position)) != position:
        raise HistoryMismatch(
            f"the snapshot at version {snapshot.version} was at {position}, and is now at {found}: the log was deleted "
            "and created again, or replaced",
            version=snapshot.version,
            log_id=Position.parse(found).log_id,
        )
    return place if response.status_code == HTTPStatus.OK else 0


def check_complete(snapshot: Snapshot, place: int) -> None:
    """Raise StorageError where an answer has ended before the snapshot."""
    if place < snapshot.bytes:
        raise StorageError("the answer of the service ends inside the snapshot", is_transient=True)
