"""What can be asked about the snapshots of a log of a service, and what the answers mean."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final

import httpx

from patchlog.client.exchange import Exchange, Pause, Request, asked
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


class SnapshotCalls:
    """The calls of `patchlog.log.contract.Snapshots` as exchanges with a service."""

    def __init__(self, log_path: str) -> None:
        self.path: Final = f"{log_path}/snapshots"

    def list(self) -> Exchange[list[Snapshot]]:
        """All snapshots, by version."""
        documents = yield from self._documents()
        return [read_snapshot(document) for document in documents if document["state"] == "complete"]

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
        documents = yield from self._documents()
        return next((read_build(document) for document in documents if document["state"] != "complete"), None)

    def build(self, version: int | None) -> Exchange[Snapshot]:
        """Have the service make a snapshot, and wait for it."""
        body = {} if version is None else {"version": version}
        document = (yield from asked(Request("POST", self.path, params=_WAIT, json=body))).json()
        seconds = _POLL_SECONDS
        while document["state"] == "building":
            yield Pause(seconds)
            seconds = min(2 * seconds, _LONGEST_POLL_SECONDS)
            place = f"{self.path}/{document['version']}"
            document = (yield from asked(Request("GET", place, headers=_JSON))).json()
        if document["state"] == "failed":
            raise SnapshotRefused(f"the snapshot at version {document['version']} failed: {document['error']}")
        return read_snapshot(document)

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
        return read_snapshot(response.json())

    def delete(self, version: int) -> Exchange[None]:
        """Delete a snapshot."""
        path = f"{self.path}/{version}"
        yield from asked(Request("DELETE", path, json={"delete": version}, is_repeatable=False))

    def bytes_behind(self, version: int, place: int) -> Request:
        """The request for the bytes of a snapshot from a place on."""
        headers = {"Accept": JELLY.media_types[0]} | ({"Range": f"bytes={place}-"} if place else {})
        return Request("GET", f"{self.path}/{version}", headers=headers)

    def _documents(self) -> Exchange[Iterable[Mapping[str, Any]]]:
        documents: Iterable[Mapping[str, Any]] = (yield from asked(Request("GET", self.path))).json()["snapshots"]
        return documents


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
