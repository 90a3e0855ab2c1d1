"""Patches out of the bytes of a file, with the place where each ends: how a file is read as if it were a log.

The bytes are cut where a patch may end, behind each frame or behind each line `Z`, and go on to the codec piece by
piece. So the end of a patch is the end of a piece, unless its writer put more into a frame.

Only one patch at a time is held, and a large one on disk. A patch without an id has one that follows from what it says
and what came before, so that it is the same each time.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator
from hashlib import sha256
from tempfile import SpooledTemporaryFile
from typing import IO, Final, NamedTuple

from patchlog.codec.fields import varint
from patchlog.codec.framing import FrameSplitter
from patchlog.codec.ingest import IngestedPatch, header_frame
from patchlog.codec.options import Limits, PatchOptions
from patchlog.engine import PatchIntake
from patchlog.errors import CodecError, HeadMismatch, InvalidSyntax, MalformedFrame, TransactionError
from patchlog.log.contract import PatchFormat
from patchlog.log.records import Head, PatchRecord
from patchlog.log.succession import chain_hash, head_after
from patchlog.streams import CHUNK_BYTES

__all__ = ["UNWRITTEN", "CutOff", "ScannedPatch", "scanned"]

UNWRITTEN: Final = b"\0"
"""What patches begin with that are not yet written to their end: no line of RDF Patch does, and no frame with rows."""

_HEARTBEAT: Final = b"\0"
"""A frame without rows, as live tails have them between patches."""

_END_OF_PATCH: Final = re.compile(rb"^[ \t]*Z[^\n]*\n", re.MULTILINE)
_UNWRITTEN_LINE: Final = re.compile(rb"^\0", re.MULTILINE)


class CutOff(Exception):
    """The bytes end inside a patch, which begins at a place. `reason` is what the codec says of it."""

    def __init__(self, at: int, reason: CodecError | TransactionError) -> None:
        super().__init__(at, reason)
        self.at = at
        self.reason = reason


class ScannedPatch(NamedTuple):
    """A patch of a file. Whoever takes it closes the body."""

    record: PatchRecord
    header: bytes
    body: IO[bytes]
    end: int | None
    """Where it ends; None where that is inside a piece."""
    is_ended: bool
    """Whether more than the end of the file ends it."""
    is_as_stored: bool
    """Whether its bytes in the file are those that a log stores."""

    def chunks(self) -> Iterator[bytes]:
        """Yield its bytes as a log stores them."""
        yield self.header
        yield from _rest_of(self.body)


def scanned(
    chunks: Iterable[bytes], format: PatchFormat, options: PatchOptions, before: Head, start: int, time: str
) -> Iterator[ScannedPatch]:
    """Yield the patches in the bytes from `start` on, which follow the patch `before`. Raises CutOff in the end."""
    intake = PatchIntake(format, options)
    place = whole = start
    raw_hash = sha256()
    body = _Body()
    heartbeat = None
    has_fed = False
    try:
        for piece in _frames(chunks) if format == "jelly-patch" else _runs(chunks):
            if isinstance(piece, CodecError):
                raise CutOff(whole if heartbeat is None else heartbeat, piece)
            place += len(piece)
            if piece == _HEARTBEAT and place - len(piece) == whole:
                heartbeat, whole = whole, place
                continue
            has_fed = True
            raw_hash.update(piece)
            try:
                results = list(intake.feed(piece))
            except CodecError as error:
                if heartbeat is None:
                    raise
                raise CutOff(heartbeat, error) from None
            for index, result in enumerate(results, 1):
                if not isinstance(result, IngestedPatch):
                    body.write(result)
                    continue
                end = place if index == len(results) else None
                patch = body.end(result, before, options, time, end, raw_hash.digest())
                before, whole = head_after(patch.record), place
                raw_hash, body, heartbeat = sha256(), _Body(), None
                yield patch
        if whole == place and place > start and not has_fed:
            return
        try:
            results = list(intake.finish())
        except (CodecError, TransactionError) as error:
            raise CutOff(whole if heartbeat is None else heartbeat, error) from None
        for result in results:
            if isinstance(result, IngestedPatch):
                yield body.end(result, before, options, time, None, None)
                body = _Body()
            else:
                body.write(result)
    finally:
        body.close()


class _Body:
    """The body of a patch that is being read."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._hash = sha256()

    def write(self, data: bytes) -> None:
        if self._file is None:
            self._file = SpooledTemporaryFile(CHUNK_BYTES)  # noqa: SIM115  who takes the patch closes it
        self._file.write(data)
        self._hash.update(data)

    def end(
        self,
        ingested: IngestedPatch,
        before: Head,
        options: PatchOptions,
        time: str,
        end: int | None,
        raw_hash: bytes | None,
    ) -> ScannedPatch:
        """The patch that ends here; without a hash of its bytes where nothing ends it. Its body is no longer ours."""
        body_hash = self._hash.digest()
        prev = before.id if before.version else ingested.prev
        if ingested.prev not in (None, prev):
            raise HeadMismatch(ingested.prev, prev)
        patch_id = ingested.id or str(uuid.uuid5(uuid.NAMESPACE_OID, (before.hash + body_hash).hex()))
        header = header_frame(patch_id, prev, options)
        file = self._file
        assert file is not None, "a patch has a punctuation at least"
        content_hash = sha256(header)
        size = len(header) + file.tell()
        for chunk in _rest_of(file):
            content_hash.update(chunk)
        record = PatchRecord(
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
        self._file = None
        is_as_stored = end is not None and raw_hash == record.content_hash
        return ScannedPatch(record, header, file, end, raw_hash is not None, is_as_stored)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def _rest_of(body: IO[bytes]) -> Iterator[bytes]:
    body.seek(0)
    while chunk := body.read(CHUNK_BYTES):
        yield chunk


def _frames(chunks: Iterable[bytes]) -> Iterator[bytes | CodecError]:
    """Cut behind each frame. An error in the end says that the last frame is not whole."""
    splitter = FrameSplitter(max_frame_bytes=Limits().max_frame_bytes, strict=True, delimited=None)
    for chunk in chunks:
        yield from _delimited(splitter, splitter.feed(chunk))
    try:
        yield from _delimited(splitter, splitter.finish())
    except MalformedFrame as error:
        yield error


def _delimited(splitter: FrameSplitter, frames: Iterator[bytes]) -> Iterator[bytes]:
    for frame in frames:
        yield varint(len(frame)) + frame if splitter.delimited else frame


def _runs(chunks: Iterable[bytes]) -> Iterator[bytes | CodecError]:
    """Cut text behind lines that may end a patch. An error in the end says that a patch was never written whole."""
    rest = b""
    for chunk in chunks:
        rest += chunk
        if unwritten := _UNWRITTEN_LINE.search(rest):
            yield from _cut(rest[: unwritten.start()])
            yield InvalidSyntax("here begins a patch that was not written to its end")
            return
        lines = len(rest) if len(rest) > CHUNK_BYTES else rest.rfind(b"\n") + 1
        yield from _cut(rest[:lines])
        rest = rest[lines:]
    yield from _cut(rest)


def _cut(lines: bytes) -> Iterator[bytes]:
    start = 0
    for found in _END_OF_PATCH.finditer(lines):
        yield lines[start : found.end()]
        start = found.end()
    if start < len(lines):
        yield lines[start:]
