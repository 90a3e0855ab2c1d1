"""Patches between their upload and their place in a log: bodies in memory up to a limit, beyond it in a spool.

The first patch of an upload follows whatever the head will be, so its header frame, and with it the hash of all of its
bytes, is made when that is known. Of those behind it all is known here.

The chunks of a body are numbered from 1; a header frame that does not stand in chunk 1 is chunk 0.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final, Protocol

from patchlog.codec.ingest import HeaderFrames, IngestedPatch
from patchlog.codec.patch_ids import PatchId
from patchlog.errors import HeadMismatch, LimitExceeded, UnexpectedRow

__all__ = ["CHUNK_BYTES", "MAX_PATCHES", "Spool", "SpooledChunk", "StagedPatch", "Staging"]

CHUNK_BYTES: Final = (1 << 20) + 8
"""A frame of one MiB, and its length."""

MAX_PATCHES: Final = 1 << 16
"""In one upload: what is known of each is held in memory."""


@dataclass(frozen=True, slots=True)
class SpooledChunk:
    """A chunk of a patch, which is known by its place in the upload."""

    ordinal: int
    number: int
    data: bytes


class Spool(Protocol):
    """Where chunks wait that are too many for memory."""

    def put(self, chunks: Sequence[SpooledChunk], /) -> None:
        """Keep chunks."""

    def chunks(self, ordinal: int, /) -> Iterator[bytes]:
        """Yield the chunks of a patch in the order of their numbers."""

    def discard(self) -> None:
        """Forget them all."""


@dataclass(slots=True)
class StagedPatch:
    """A patch of an upload. Its chunks are in memory, or `spooled` says how many are in the spool."""

    ordinal: int
    id: PatchId
    ingested: IngestedPatch
    body_hash: bytes
    size: int
    """In bytes, of the body; with the header frame where `content_hash` is known."""
    chunks: list[bytes] = field(repr=False)
    spooled: int
    may_be_there: bool
    """Whether the log may have a patch with this id: not where it was made up just now."""
    content_hash: bytes | None = None


class Staging:
    """The patches of one upload."""

    def __init__(self, headers: HeaderFrames, spool: Spool | None, memory_bytes: int = CHUNK_BYTES) -> None:
        self.patches: list[StagedPatch] = []
        self._headers = headers
        self._spool = spool
        self._memory_bytes = memory_bytes
        self.held_bytes = 0
        """In memory."""
        self._in_memory: list[StagedPatch] = []
        self._ids: set[PatchId] = set()
        self._first_header: tuple[PatchId | None, bytes] | None = None
        self._chunks: list[bytes] = []
        self._spooled = 0
        self._body_hash: Any = None  # one of hashlib's, from the first frames on
        self._body_bytes = 0

    @property
    def ingested(self) -> Sequence[IngestedPatch]:
        """What is known of the patches."""
        return [patch.ingested for patch in self.patches]

    @property
    def is_large(self) -> bool:
        """Whether hashing the first patch takes more than a moment."""
        return self.patches[0].size > CHUNK_BYTES

    def add(self, piece: bytes | IngestedPatch) -> None:
        """Take frames of a body, or the end of its patch."""
        if isinstance(piece, IngestedPatch):
            self._end_patch(piece)
            return
        size = len(piece)
        if self._body_hash is None:
            self._body_hash = sha256(piece)
        else:
            self._body_hash.update(piece)
        self._body_bytes += size
        self.held_bytes += size
        if size <= CHUNK_BYTES:
            self._chunks.append(piece)
        else:  # a frame that holds a single row
            self._chunks += (piece[start : start + CHUNK_BYTES] for start in range(0, size, CHUNK_BYTES))
        if self._spool is not None and self.held_bytes > self._memory_bytes:
            self._put(self._spool)

    def first_header(self, prev: PatchId | None) -> bytes:
        """The header frame of the first patch, if this is the one before it."""
        if self._first_header is None or self._first_header[0] != prev:
            self._first_header = (prev, self._headers.frame(self.patches[0].id, prev))
        return self._first_header[1]

    def first_content_hash(self, prev: PatchId | None, on_chunk: Callable[[], object] | None = None) -> bytes:
        """The hash of all bytes of the first patch, if this is the one before it. Reads a body that is in the spool.

        `on_chunk` is called all the time; what it raises ends it.
        """
        return self._content_hash(self.first_header(prev), self.patches[0], on_chunk)

    def may_be_there(self) -> None:
        """Say that an append of them has failed, so that nobody knows whether they are in the log."""
        for patch in self.patches:
            patch.may_be_there = True

    def discard(self) -> None:
        """Leave nothing in the spool."""
        if self._spool is not None:
            self._spool.discard()

    def _begin_body(self) -> None:
        self._chunks = []
        self._spooled = 0
        self._body_hash = None
        self._body_bytes = 0

    def _put(self, spool: Spool) -> None:
        waiting = [
            SpooledChunk(patch.ordinal, number, data)
            for patch in self._in_memory
            for number, data in enumerate(patch.chunks, 1)
        ]
        waiting += (
            SpooledChunk(len(self.patches), number, data) for number, data in enumerate(self._chunks, self._spooled + 1)
        )
        if waiting:
            spool.put(waiting)
        for patch in self._in_memory:
            patch.spooled = len(patch.chunks)
            patch.chunks = []
        self._in_memory.clear()
        self._spooled += len(self._chunks)
        self._chunks = []
        self.held_bytes = 0

    def _end_patch(self, ingested: IngestedPatch) -> None:
        if self._spooled and self._spool is not None:
            self._put(self._spool)
        patch = StagedPatch(
            ordinal=len(self.patches),
            id=self._new_id(ingested),
            ingested=ingested,
            body_hash=(self._body_hash or sha256()).digest(),
            size=self._body_bytes,
            chunks=self._chunks,
            spooled=self._spooled,
            may_be_there=ingested.id is not None,
        )
        if self.patches:
            self._seal(patch, prev=self.patches[-1].id)
        self.patches.append(patch)
        if patch.chunks:
            self._in_memory.append(patch)
        self._begin_body()

    def _new_id(self, ingested: IngestedPatch) -> PatchId:
        if len(self.patches) == MAX_PATCHES:
            raise LimitExceeded(f"an upload of more than {MAX_PATCHES} patches: divide it")
        patch_id = ingested.id or str(uuid.uuid4())
        if patch_id in self._ids:
            raise UnexpectedRow(f"two patches of the upload have the id {patch_id}")
        self._ids.add(patch_id)
        return patch_id

    def _seal(self, patch: StagedPatch, prev: PatchId) -> None:
        if patch.ingested.prev not in (None, prev):
            raise HeadMismatch(patch.ingested.prev, prev)
        header = self._headers.frame(patch.id, prev)
        patch.content_hash = self._content_hash(header, patch)
        patch.size += len(header)
        if patch.spooled and self._spool is not None:
            self._spool.put([SpooledChunk(patch.ordinal, 0, header)])
            patch.spooled += 1
        else:
            patch.chunks[0] = header + patch.chunks[0]
            self.held_bytes += len(header)

    def _content_hash(self, header: bytes, patch: StagedPatch, on_chunk: Callable[[], object] | None = None) -> bytes:
        content_hash = sha256(header)
        body: Iterable[bytes] = patch.chunks
        if patch.spooled and self._spool is not None:
            body = self._spool.chunks(patch.ordinal)
        for chunk in body:
            content_hash.update(chunk)
            if on_chunk is not None:
                on_chunk()
        return content_hash.digest()
