"""`PatchStreamService`: patches as they are stored, and patches into a log."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import grpc
from google.protobuf.message import DecodeError

from api.access import require
from api.audit import note
from api.grpc_door.calls import (
    Context,
    accept,
    check_complete,
    feed,
    metadata_of,
    read_ahead,
    refuse,
    refuse_to_go_on,
)
from api.outgoing import Piece, cut
from api.principal import Principal
from api.service import Service
from api.tails import checked_head
from patchlog.codec.fields import varint
from patchlog.codec.framing import FrameSplitter
from patchlog.codec.patch_ids import parse_patch_id
from patchlog.log.position import Position
from patchlog.log.records import ANY_HEAD, EMPTY_HEAD, Appended, ExpectedHead
from patchlog.wire import PatchReceived, PatchSubscribe

__all__ = ["publish_patches", "subscribe_patches"]

_MOST_FRAME_BYTES: Final = 1 << 30
"""Of those that are stored: a row that is larger than usual has a frame of its own."""


async def subscribe_patches(
    service: Service, principal: Principal, request: bytes, context: Context
) -> AsyncIterator[bytes]:
    """Yield the frames of patches, as they were stored."""
    try:
        asked = PatchSubscribe.FromString(request)
    except DecodeError:
        refuse(grpc.StatusCode.INVALID_ARGUMENT, "the request is no PatchSubscribe")
    require(principal, "read", asked.log)
    log = service.log(asked.log)
    after = _position(asked)
    head = await service.run(lambda: checked_head(log, after))
    await accept(context)
    frames = _Frames()
    if asked.until:
        patches = await service.stream(lambda: cut(log.read(after, until=asked.until)))
        async for frame in read_ahead(service, map(frames.of, patches)):
            yield frame
        return
    with service.tails.feed(log, head) as feed:
        async for pieces in feed.patches(asked.after, service.settings.heartbeat_seconds):
            await service.access.check_still(principal)
            if not pieces:
                yield b""  # an empty frame is a heartbeat
            for frame in frames.of(pieces):
                yield frame
    refuse_to_go_on(service, asked.log)


async def publish_patches(
    service: Service, principal: Principal, frames: AsyncIterator[bytes], context: Context
) -> bytes:
    """Append the patches of a stream, all or none, and answer when they are durable."""
    name = metadata_of(context, "log")
    if name is None:
        refuse(grpc.StatusCode.INVALID_ARGUMENT, "which log? Name it by the metadata 'log'")
    note(log=name)
    require(principal, "append", name)
    expected = _expected_head(metadata_of(context, "if-match"))
    upload = await service.upload(service.log(name).stage)
    try:
        await feed(service, frames, lambda some: upload.write(b"".join(varint(len(frame)) + frame for frame in some)))
        await check_complete(context)
        await service.access.check_still(principal)
        appended = await service.append(upload.appending(expected))
    except BaseException:
        await service.upload(upload.discard)
        raise
    service.count_append(name, appended)
    return _received(appended)


def _position(asked: PatchSubscribe) -> Position:
    """What the first patch follows; what is empty is not checked."""
    position = Position(asked.log_id.lower() or None, asked.after, asked.hash or None)
    if position.hash is not None and len(position.hash) != len(EMPTY_HEAD.hash):
        refuse(grpc.StatusCode.INVALID_ARGUMENT, f"the hash has {len(position.hash)} bytes; it is 32 bytes of SHA-256")
    return position


class _Frames:
    """Takes apart stored patches. A frame that is larger than a chunk comes in several pieces."""

    def __init__(self) -> None:
        self._splitter = FrameSplitter(max_frame_bytes=_MOST_FRAME_BYTES, strict=True, delimited=True)

    def of(self, pieces: list[Piece]) -> list[bytes]:
        """The frames that are whole now."""
        return list(self._splitter.feed(b"".join([piece.data for piece in pieces])))


def _expected_head(if_match: str | None) -> ExpectedHead:
    if if_match is None:
        return ANY_HEAD
    return None if if_match == "*" else parse_patch_id(if_match.strip('"'))


def _received(appended: Appended) -> bytes:
    message: bytes = PatchReceived(
        first_version=appended.first_version,
        version=appended.version,
        id=appended.id,
        operations=appended.operations,
        bytes=appended.bytes,
        is_retry=appended.is_retry,
    ).SerializeToString()
    return message
