"""`RdfStreamService` of Jelly: subscribe to a log as a stream of statements, and publish statements into one.

    NAME      the dataset as it is, then what is added, without end; a delete ends it with FAILED_PRECONDITION
    NAME@V    the dataset at version V, and the end

A publisher names the log by the metadata `topic`, else by the stream's own name (`stream_name`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import Any, Final

import grpc
from google.protobuf.message import DecodeError

from api.access import require
from api.audit import note
from api.grpc_door.calls import Context, accept, metadata_of, read_ahead, refuse, refuse_to_go_on
from api.grpc_door.growing import Deleted, GrowingStream, dataset_version, local_snapshots
from api.grpc_door.publishing import Publication, published
from api.grpc_door.requested import stream_options
from api.principal import Principal
from api.service import Service
from patchlog.log.contract import StagingPatchLog
from patchlog.log.position import head_position
from patchlog.log.records import check_log_name
from patchlog.wire import RdfStreamReceived, RdfStreamSubscribe

__all__ = ["publish_rdf", "subscribe_rdf"]

_RECEIVED: Final[bytes] = RdfStreamReceived().SerializeToString()


async def subscribe_rdf(
    service: Service, principal: Principal, request: bytes, context: Context
) -> AsyncIterator[bytes]:
    """Yield the frames of a topic."""
    try:
        asked = RdfStreamSubscribe.FromString(request)
    except DecodeError:
        refuse(grpc.StatusCode.INVALID_ARGUMENT, "the request is no RdfStreamSubscribe")
    name, at = _topic(asked.topic)
    require(principal, "read", name)
    log = service.log(name)
    description = await service.run(log.describe)
    options = stream_options(asked.requested_options, description.options)
    head = description.head
    if at is not None and at > head.version:
        refuse(grpc.StatusCode.NOT_FOUND, f"the log {name!r} has no version {at}; its head is {head.version}")
    await accept(context)
    stream = GrowingStream(options)
    version = await service.run(partial(_snapshot_version, log, at, head.version))
    if version is None:
        # As `POST /logs/{log}/snapshots` does.
        require(principal, "append", name)
        version = await service.jobs.do(
            service.builds,
            "dataset",
            name,
            lambda job: local_snapshots(log).build(head.version if at is None else at, job.check).version,
        )
    try:
        if version:
            chunks = log.snapshots.read(version)
            frames = stream.snapshot(chunks) if at is None else stream.stored(chunks)
            async for frame in read_ahead(service, frames):
                yield frame
        if at is None:
            with service.tails.feed(log, head_position(description)) as feed:
                async for pieces in feed.patches(version, service.settings.heartbeat_seconds):
                    await service.access.check_still(principal)
                    for frame in await service.stream(partial(_frames_of, stream, pieces)):
                        yield frame
            refuse_to_go_on(service, name)
        if not version:
            for frame in stream.finish():
                yield frame
    except Deleted as deleted:
        refuse(grpc.StatusCode.FAILED_PRECONDITION, str(deleted))


async def publish_rdf(service: Service, principal: Principal, frames: AsyncIterator[bytes], context: Context) -> bytes:
    """Append the statements of a stream to a log, and answer when they are durable."""
    publication = await Publication.begun(frames, topic=metadata_of(context, "topic"))
    note(log=publication.log)
    require(principal, "append", publication.log)
    appended = await published(service, principal, publication, context)
    service.count_append(publication.log, appended)
    context.set_trailing_metadata((("version", str(appended.version)), ("patch-id", appended.id)))
    return _RECEIVED


def _topic(topic: str) -> tuple[str, int | None]:
    """The log that a topic names, and the version."""
    name, is_at, version = topic.partition("@")
    if not topic:
        refuse(grpc.StatusCode.INVALID_ARGUMENT, "the topic is empty: it is the name of a log, NAME, or NAME@VERSION")
    if not is_at:
        return check_log_name(name), None
    if not (version.isascii() and version.isdigit() and len(version) < 19):
        refuse(
            grpc.StatusCode.INVALID_ARGUMENT, f"{version!r} is no version: the topic is NAME@VERSION, such as people@3"
        )
    return check_log_name(name), int(version)


def _snapshot_version(log: StagingPatchLog, at: int | None, head: int) -> int | None:
    """The version of the snapshot that a topic begins with, 0 for the empty dataset; None where it has to be made."""
    if at is None:
        return dataset_version(log, head)
    return at if at == 0 or log.snapshots.find(at) is not None else None


def _frames_of(stream: GrowingStream, pieces: list[Any]) -> list[bytes]:
    found: list[bytes] = []
    for piece in pieces:
        found += stream.patch(piece.version, piece.data, ends_patch=piece.ends_patch)
    return found
