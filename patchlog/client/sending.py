"""Uploads that may be sent again when nobody knows whether they have arrived.

The service recognises a retry by the ids of its patches, so a small upload gets ids here where it has none. A large one
goes by as a stream. It may be sent again if its first patch has an id: had it arrived, the service would know that id.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final

from patchlog.codec.ingest import IngestedPatch, header_frame, stored_options
from patchlog.engine import PatchDecoder, PatchIntake, RdfPatchReader
from patchlog.errors import PatchLogError, UsageError
from patchlog.formats import JELLY_PATCH, RDF_PATCH, find_format
from patchlog.log.contract import PatchFormat
from patchlog.model import Header, Punctuation

__all__ = ["Sending", "prepared", "prepared_without_blocking"]

_SMALL_BYTES: Final = 1 << 20
_OPTIONS: Final = stored_options()


@dataclass(frozen=True, slots=True)
class Sending:
    """The body of an append. `is_repeatable` says that sending it twice appends it once."""

    content: bytes | Iterable[bytes] | AsyncIterable[bytes]
    media_type: str
    is_repeatable: bool


def prepared(chunks: Iterable[bytes], format: PatchFormat) -> Sending:
    """The body for chunks of patches. Raises UsageError for what is no format of patches."""
    media_type = _media_type(format)
    iterator = iter(chunks)
    begin: list[bytes] = []
    size = 0
    for chunk in iterator:
        begin.append(chunk)
        size += len(chunk)
        if size > _SMALL_BYTES:
            break
    else:
        return _small(b"".join(begin), format, media_type)
    if iterator is chunks:
        return Sending(chain(begin, iterator), media_type, is_repeatable=False)
    return Sending(chunks, media_type, is_repeatable=_begins_with_id(b"".join(begin), format))


async def prepared_without_blocking(chunks: Iterable[bytes] | AsyncIterable[bytes], format: PatchFormat) -> Sending:
    """The same for programs that do not block. Chunks that come asynchronously can be taken once."""
    if not isinstance(chunks, AsyncIterable):
        return await asyncio.to_thread(prepared, chunks, format)
    media_type = _media_type(format)
    iterator = aiter(chunks)
    begin: list[bytes] = []
    size = 0
    async for chunk in iterator:
        begin.append(chunk)
        size += len(chunk)
        if size > _SMALL_BYTES:
            return Sending(_chained(begin, iterator), media_type, is_repeatable=False)
    return await asyncio.to_thread(_small, b"".join(begin), format, media_type)


async def _chained(begin: Iterable[bytes], rest: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    for chunk in begin:
        yield chunk
    async for chunk in rest:
        yield chunk


def _media_type(format: PatchFormat) -> str:
    if format not in ("jelly-patch", "rdf-patch"):
        raise UsageError(f"{format!r} is not a format of patches; there are jelly-patch and rdf-patch")
    return find_format(format, (JELLY_PATCH, RDF_PATCH)).media_types[0]


def _small(data: bytes, format: PatchFormat, media_type: str) -> Sending:
    try:
        patches = list(_patches(data, format))
    except PatchLogError:
        # The service says so too, and whether there is such a log at all.
        return Sending(data, media_type, is_repeatable=True)
    if all(ingested.id for ingested, _ in patches):
        return Sending(data, media_type, is_repeatable=True)
    named = b"".join(
        header_frame(ingested.id or str(uuid.uuid4()), ingested.prev, _OPTIONS) + body for ingested, body in patches
    )
    return Sending(named, JELLY_PATCH.media_types[0], is_repeatable=True)


def _patches(data: bytes, format: PatchFormat) -> Iterator[tuple[IngestedPatch, bytes]]:
    intake = PatchIntake(format, _OPTIONS)
    body: list[bytes] = []
    for pieces in (intake.feed(data), intake.finish()):
        for piece in pieces:
            if isinstance(piece, IngestedPatch):
                yield piece, b"".join(body)
                body = []
            else:
                body.append(piece)


def _begins_with_id(begin: bytes, format: PatchFormat) -> bool:
    decoder = PatchDecoder() if format == "jelly-patch" else RdfPatchReader()
    try:
        for operation in decoder.feed(begin):
            match operation:
                case Header("id", _):
                    return True
                case Punctuation():
                    return False
    except PatchLogError:
        pass  # the service says so too
    return False
