"""A file of patches read as if it were a log: its patches are versions 1, 2, 3 and so on.

Only one patch at a time is held, and a large one on disk. A patch without an id has one that follows from what it says
and what came before, so that it is the same each time.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Final, NamedTuple, NoReturn

from patchlog.cli.files import STANDARD, file_name, reading
from patchlog.cli.outcome import Session, naming
from patchlog.codec.ingest import IngestedPatch, header_frame
from patchlog.codec.patch_ids import PatchId, parse_patch_id
from patchlog.engine import PatchIntake
from patchlog.errors import HeadMismatch, UsageError
from patchlog.formats import JELLY_PATCH, RDF_PATCH, choose_format
from patchlog.log.contract import Consumers, PatchFormat
from patchlog.log.records import (
    ANY_HEAD,
    EMPTY_HEAD,
    Appended,
    ExpectedHead,
    Head,
    LogDescription,
    LoggedPatch,
    LogOptions,
    PatchRecord,
    Verification,
    time_of,
)
from patchlog.log.succession import chain_hash, head_after, last_version
from patchlog.streams import CHUNK_BYTES

__all__ = ["FilePatchLog"]

_OPTIONS: Final = LogOptions().patch_options
_POLL_SECONDS: Final = 0.5
_UNBOUNDED: Final = 1 << 62


class _State(NamedTuple):
    """What changes when somebody writes to a file."""

    size: int
    modified_ns: int


class FilePatchLog:
    """The patches of a file, to be read. Standard input can be read once."""

    def __init__(self, path: str, session: Session) -> None:
        chosen = choose_format(
            None, file_name(path), (JELLY_PATCH, RDF_PATCH), default=JELLY_PATCH if path == STANDARD else None
        )
        self._path = path
        self._session = session
        self._format: PatchFormat = "jelly-patch" if chosen is JELLY_PATCH else "rdf-patch"

    @property
    def name(self) -> str:
        """The path of the file."""
        return self._path

    def describe(self) -> LogDescription:
        """Describe all patches of the file."""
        head, operations, size = EMPTY_HEAD, 0, 0
        for logged in self.read():
            head = head_after(logged.record)
            operations += logged.record.operations
            size += logged.record.bytes
        return LogDescription(
            name=Path(self._path).name,
            id=str(uuid.uuid5(uuid.NAMESPACE_OID, head.hash.hex())),
            options=LogOptions(),
            created=self._time(),
            head=head,
            first_version=1,
            operations=operations,
            bytes=size,
        )

    def head(self) -> Head:
        """The last patch."""
        return self.describe().head

    def read(self, after: int = 0, *, limit: int | None = None, until: int | None = None) -> Iterator[LoggedPatch]:
        """The patches behind a version."""
        return self._read(after, last_version(_UNBOUNDED, after, limit, until))

    def find(self, patch: PatchId | int) -> PatchRecord | None:
        """What is known of a patch by its id or version."""
        wanted = parse_patch_id(patch) if isinstance(patch, str) else patch
        records = (logged.record for logged in self.read())
        return next((record for record in records if wanted in (record.id, record.version)), None)

    def verify(self) -> Verification:
        """Read all patches. A file has no hashes of its own: it is sound where its patches can be read."""
        description = self.describe()
        return Verification(description.head, description.patches)

    def wait_for(self, version: int, timeout_seconds: float) -> Head:
        """Return the head once it has reached a version, or as it is when the time is up."""
        deadline = time.monotonic() + timeout_seconds
        while True:
            state = self._state()
            head = self.head()
            while self._state() == state:
                if head.version >= version or time.monotonic() >= deadline:
                    return head
                time.sleep(_POLL_SECONDS)

    def append(
        self,
        chunks: Iterable[bytes],
        *,
        format: PatchFormat = "jelly-patch",
        expected_head: ExpectedHead = ANY_HEAD,
    ) -> Appended:
        """Files are read only."""
        del chunks, format, expected_head
        self._refuse()

    def truncate_before(self, version: int) -> LogDescription:
        """Files are read only."""
        del version
        self._refuse()

    @property
    def consumers(self) -> Consumers:
        """Nobody's position is kept in a file."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise UsageError(f"{self._path} is a file: it can be read as a log, but not changed")

    def _state(self) -> _State:
        found = Path(self._path).stat()
        return _State(found.st_size, found.st_mtime_ns)

    def _time(self) -> str:
        modified_ns = time.time_ns() if self._path == STANDARD else self._state().modified_ns
        return time_of(modified_ns // 1_000_000)

    def _read(self, after: int, last: int) -> Iterator[LoggedPatch]:
        if last <= after:
            return
        before = EMPTY_HEAD
        pieces = naming(self._path, self._pieces())
        while (logged := _next_patch(pieces, before, self._time())) is not None:
            record, body = logged
            with body:
                if record.version > after:
                    yield LoggedPatch(record, _chunks(record, body))
            before = head_after(record)
            if record.version == last:
                return

    def _pieces(self) -> Iterator[bytes | IngestedPatch]:
        intake = PatchIntake(self._format, _OPTIONS)
        for chunk in reading(self._path, self._session):
            yield from intake.feed(chunk)
        yield from intake.finish()


def _next_patch(
    pieces: Iterator[bytes | IngestedPatch], before: Head, time: str
) -> tuple[PatchRecord, IO[bytes]] | None:
    body: IO[bytes] = SpooledTemporaryFile(CHUNK_BYTES)  # noqa: SIM115  who takes the patch closes it
    body_hash = sha256()
    try:
        for piece in pieces:
            if isinstance(piece, IngestedPatch):
                return _record(piece, body, body_hash.digest(), before, time), body
            body.write(piece)
            body_hash.update(piece)
    except BaseException:
        body.close()
        raise
    body.close()
    return None


def _record(ingested: IngestedPatch, body: IO[bytes], body_hash: bytes, before: Head, time: str) -> PatchRecord:
    prev = before.id if before.version else ingested.prev
    if ingested.prev not in (None, prev):
        raise HeadMismatch(ingested.prev, prev)
    patch_id = ingested.id or str(uuid.uuid5(uuid.NAMESPACE_OID, (before.hash + body_hash).hex()))
    header = header_frame(patch_id, prev, _OPTIONS)
    size = len(header) + body.tell()
    content_hash = sha256(header)
    for chunk in _rest_of(body):
        content_hash.update(chunk)
    return PatchRecord(
        version=before.version + 1,
        id=patch_id,
        prev=prev,
        content_hash=content_hash.digest(),
        chain_hash=chain_hash(before.hash, content_hash.digest()),
        body_hash=body_hash,
        bytes=size,
        operations=ingested.operations,
        adds=ingested.adds,
        deletes=ingested.deletes,
        namespaces=ingested.namespaces,
        transactions=ingested.transactions,
        time=time,
    )


def _chunks(record: PatchRecord, body: IO[bytes]) -> Iterator[bytes]:
    yield header_frame(record.id, record.prev, _OPTIONS)
    yield from _rest_of(body)


def _rest_of(body: IO[bytes]) -> Iterator[bytes]:
    body.seek(0)
    while chunk := body.read(CHUNK_BYTES):
        yield chunk
