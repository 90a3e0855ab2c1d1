"""What all calls share: the key of the caller, and what becomes of errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any, Final, NoReturn, TypeVar
from urllib.parse import unquote

import grpc

from api.errors import Refusal, detail_of
from api.principal import Principal
from api.service import Service
from patchlog import errors

__all__ = [
    "Context",
    "Refused",
    "accept",
    "address_of",
    "answering",
    "check_complete",
    "feed",
    "headers_of",
    "metadata_of",
    "principal_of",
    "read_ahead",
    "refuse",
    "refuse_to_go_on",
    "streaming",
]

Context = Any
"""A `grpc.aio.ServicerContext`, whose stubs are generic in what nobody needs here."""

_Answer = TypeVar("_Answer")

_BATCH_BYTES: Final = 256 << 10
_MOST_CHARACTERS: Final = 500
"""Of a message, which goes out as a header: clients take one of 8 KiB, and a character may be twelve bytes there."""

_STATUSES: Final[Mapping[type[errors.PatchLogError], grpc.StatusCode]] = {
    errors.CodecError: grpc.StatusCode.INVALID_ARGUMENT,
    errors.TransactionError: grpc.StatusCode.INVALID_ARGUMENT,
    errors.UsageError: grpc.StatusCode.INVALID_ARGUMENT,
    errors.LogNotFound: grpc.StatusCode.NOT_FOUND,
    errors.SnapshotNotFound: grpc.StatusCode.NOT_FOUND,
    errors.PatchAlreadyExists: grpc.StatusCode.ALREADY_EXISTS,
    errors.HeadMismatch: grpc.StatusCode.FAILED_PRECONDITION,
    errors.PositionGone: grpc.StatusCode.OUT_OF_RANGE,
    errors.LogError: grpc.StatusCode.FAILED_PRECONDITION,
    errors.WorkCancelled: grpc.StatusCode.ABORTED,
    errors.StorageFull: grpc.StatusCode.RESOURCE_EXHAUSTED,
    errors.StorageError: grpc.StatusCode.INTERNAL,
}
_REFUSALS: Final = {
    HTTPStatus.UNAUTHORIZED: grpc.StatusCode.UNAUTHENTICATED,
    HTTPStatus.FORBIDDEN: grpc.StatusCode.PERMISSION_DENIED,
    HTTPStatus.SERVICE_UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
    HTTPStatus.INTERNAL_SERVER_ERROR: grpc.StatusCode.INTERNAL,
    HTTPStatus.TOO_MANY_REQUESTS: grpc.StatusCode.RESOURCE_EXHAUSTED,
}


class Refused(Exception):
    """A call that is refused with a status of its own."""

    def __init__(self, status: grpc.StatusCode, message: str) -> None:
        super().__init__(message)
        self.status = status


def refuse(status: grpc.StatusCode, message: str) -> NoReturn:
    """End the call."""
    raise Refused(status, message)


def refuse_to_go_on(service: Service, log: str) -> NoReturn:
    """End a stream that has no end of its own: nothing follows the log any more."""
    if service.is_stopping:
        refuse(grpc.StatusCode.UNAVAILABLE, "the service is stopping: subscribe again")
    refuse(grpc.StatusCode.NOT_FOUND, f"the log {log!r} was deleted, or what comes next was truncated away")


async def check_complete(context: Context) -> None:
    """Raise Refused where the requests came to an end because the client is gone.

    gRPC ends them then as if all had come. But only to a call that is alive can something be sent.
    """
    try:
        await context.send_initial_metadata(())
    except Exception:  # noqa: BLE001  gRPC's own classes for this have no public names
        refuse(grpc.StatusCode.CANCELLED, "the stream of requests broke off")


def metadata_of(context: Context, name: str) -> str | None:
    """What a caller has sent beside the messages, under a name."""
    for key, value in context.invocation_metadata() or ():
        if key == name:
            return value if isinstance(value, str) else value.decode("utf-8", "replace")
    return None


def headers_of(context: Context) -> dict[str, str]:
    """All that a caller has sent beside the messages, as far as it is text."""
    return {key: value for key, value in context.invocation_metadata() or () if isinstance(value, str)}


def address_of(context: Context) -> str:
    """The address of the caller, which gRPC writes as `ipv4:127.0.0.1:1234` or `ipv6:%5B::1%5D:1234`."""
    peer = unquote(context.peer())
    return peer.partition(":")[2].rpartition(":")[0].strip("[]") if peer.startswith("ipv") else peer


async def principal_of(service: Service, context: Context) -> Principal:
    """The principal of the caller. Raises Refusal."""
    return await service.access.principal(metadata_of(context, "authorization") or "")


async def _batches_of(service: Service, frames: AsyncIterator[bytes]) -> AsyncIterator[list[bytes]]:
    """Frames as they come, some together: it takes longer to go to a thread with a frame than to read it there.

    Raises Refused where they are more than an upload may be.
    """
    batch: list[bytes] = []
    size = total = 0
    async for frame in frames:
        batch.append(frame)
        size += len(frame)
        total += len(frame)
        if total > service.settings.max_body_bytes:
            refuse(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                f"the stream has more than {service.settings.max_body_bytes:,} bytes: publish it in parts",
            )
        if size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


async def feed(service: Service, frames: AsyncIterator[bytes], write: Callable[[list[bytes]], None]) -> None:
    """Have frames written in a thread, some while those behind them come."""
    writing: asyncio.Future[None] | None = None
    try:
        async for some in _batches_of(service, frames):
            if writing is not None:
                await writing
            writing = service.upload(partial(write, some))
        if writing is not None:
            await writing
    finally:
        if writing is not None and not writing.done():
            await asyncio.wait([writing])  # whoever cleans up is not to meet it at work


async def accept(context: Context) -> None:
    """Tell the caller that its subscription is good, before there is anything to send."""
    await context.send_initial_metadata(())


async def read_ahead(service: Service, frames: Iterator[list[bytes]]) -> AsyncIterator[bytes]:
    """Frames that are read in a thread, some while those before them are sent."""
    reading = service.stream(lambda: next(frames, None))
    try:
        while (some := await reading) is not None:
            reading = service.stream(lambda: next(frames, None))
            for frame in some:
                yield frame
    finally:
        reading.cancel()


async def answering(context: Context, answer: Callable[[], Awaitable[_Answer]]) -> _Answer:
    """Answer a call; an error becomes its status."""
    try:
        return await answer()
    except (errors.PatchLogError, Refusal, Refused) as error:
        await context.abort(*_status_of(error))
        raise


async def streaming(context: Context, messages: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Answer a call with a stream; an error becomes its status."""
    try:
        async for message in messages:
            yield message
    except (errors.PatchLogError, Refusal, Refused) as error:
        await context.abort(*_status_of(error))


def _status_of(error: Exception) -> tuple[grpc.StatusCode, str]:
    status, message = _whole_status_of(error)
    return status, message if len(message) <= _MOST_CHARACTERS else f"{message[:_MOST_CHARACTERS]}…"


def _whole_status_of(error: Exception) -> tuple[grpc.StatusCode, str]:
    if isinstance(error, Refused):
        return error.status, str(error)
    if isinstance(error, Refusal):
        status = _REFUSALS.get(HTTPStatus(error.problem.status), grpc.StatusCode.INVALID_ARGUMENT)
        return status, error.detail
    if isinstance(error, errors.StorageError) and error.is_transient and not isinstance(error, errors.StorageFull):
        return grpc.StatusCode.UNAVAILABLE, detail_of(error)
    assert isinstance(error, errors.PatchLogError)
    return next(_STATUSES[kind] for kind in type(error).__mro__ if kind in _STATUSES), detail_of(error)
