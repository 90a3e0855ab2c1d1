"""Statements that come as frames of Jelly-RDF, on their way into a log: decoded, and made into patches that add them.

A flat stream is one patch. In a grouped stream each frame is a graph or a dataset, and becomes a patch of its own; all
of them are appended, or none.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc

from api.grpc_door.calls import Context, check_complete, refuse
from api.service import Service
from patchlog.codec.fields import varint
from patchlog.engine import CanonicalPatchEncoder, RdfDecoder
from patchlog.errors import UsageError
from patchlog.log.contract import Upload
from patchlog.log.records import Appended, check_log_name
from patchlog.model import Add, NamespaceAdd, Punctuation, RdfFrame, TransactionCommit, TransactionStart, as_quad

__all__ = ["Publication", "published"]


class Publication:
    """A stream whose first frame has come."""

    def __init__(self, log: str, first: bytes, rest: AsyncIterator[bytes]) -> None:
        self.log = log
        self.first = first
        self.rest = rest

    @classmethod
    async def begun(cls, frames: AsyncIterator[bytes], topic: str | None) -> Publication:
        """Wait for the first frame, and see which log is meant."""
        rest = aiter(frames)
        first = await anext(rest, None)
        if first is None:
            refuse(
                grpc.StatusCode.INVALID_ARGUMENT, "the stream has no frames; the first begins with the stream options"
            )
        decoder = RdfDecoder(delimited=True)
        for _ in decoder.feed(_delimited(first)):
            pass
        if decoder.options is None:
            refuse(grpc.StatusCode.INVALID_ARGUMENT, "the first frame does not begin with the stream options")
        name = topic or decoder.options.stream_name
        if not name:
            refuse(
                grpc.StatusCode.INVALID_ARGUMENT,
                "which log? Name it by the metadata 'topic', or by stream_name in the stream options",
            )
        return cls(check_log_name(name), first, rest)


async def published(service: Service, publication: Publication, context: Context) -> Appended:
    """Append a publication, and return when it is durable."""
    upload = await service.run(service.log(publication.log).stage)
    translation = _Translation()
    try:
        frame: bytes | None = publication.first
        while frame is not None:
            await service.run(_taking(upload, translation, frame))
            frame = await anext(publication.rest, None)
        await check_complete(context)
        return await service.run(lambda: _append(upload, translation))
    except BaseException:
        await service.run(upload.discard)
        raise


class _Translation:
    """Frames to the bytes of patches."""

    def __init__(self) -> None:
        self._decoder = RdfDecoder(delimited=True)
        self._encoder: Any = None
        self._is_open = False

    def take(self, frame: bytes) -> bytes:
        """Take a frame of the stream."""
        for decoded in self._decoder.feed(_delimited(frame)):
            self._write(decoded)
        written: bytes = self._encoder.take() if self._encoder else b""
        return written

    def finish(self) -> bytes:
        """The stream has ended."""
        for decoded in self._decoder.finish():
            self._write(decoded)
        if self._encoder is None:
            raise UsageError("the stream has no statements")
        self._close()
        written: bytes = self._encoder.finish()
        return written

    def _write(self, frame: RdfFrame) -> None:
        options = self._decoder.options
        if self._encoder is None:
            self._encoder = CanonicalPatchEncoder()
        if not self._is_open:
            self._encoder.accept(TransactionStart())
            self._is_open = True
        for name, iri in frame.namespaces:
            self._encoder.accept(NamespaceAdd(name, iri))
        for statement in frame.statements:
            self._encoder.accept(Add(*as_quad(statement)))
        if options is not None and options.logical_type.is_grouped:
            self._close()

    def _close(self) -> None:
        if self._is_open:
            self._encoder.accept(TransactionCommit())
            self._encoder.accept(Punctuation())
            self._is_open = False


def _taking(upload: Upload, translation: _Translation, frame: bytes) -> Any:
    return lambda: upload.write(translation.take(frame))


def _append(upload: Upload, translation: _Translation) -> Appended:
    upload.write(translation.finish())
    return upload.append()


def _delimited(frame: bytes) -> bytes:
    return varint(len(frame)) + frame
