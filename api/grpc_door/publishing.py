"""Statements that come as frames of Jelly-RDF, on their way into a log: as patches that add them.

A flat stream is one patch. In a grouped stream each frame is a graph or a dataset, and becomes a patch of its own; all
of them are appended, or none. Statements go through RDF Patch text, as rows of text and patches can be laid together
without looking into them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import grpc

from api.grpc_door.calls import Context, check_complete, feed, refuse
from api.principal import Principal
from api.service import Service
from patchlog.codec.fields import varint
from patchlog.engine import Converter, RdfDecoder
from patchlog.errors import InvalidTerm, UnsupportedOption
from patchlog.log.contract import PatchLog, Upload
from patchlog.log.records import Appended, check_log_name
from patchlog.log.reservation import Steps
from patchlog.log.upload import DEFAULT_LIMITS

__all__ = ["Publication", "published"]

_BEGIN: Final = b"TX .\n"
_END: Final = b"TC .\nZ .\n"


class Publication:
    """A stream whose first frame has come."""

    def __init__(self, log: str, first: bytes, rest: AsyncIterator[bytes], *, is_grouped: bool) -> None:
        self.log = log
        self.first = first
        self.rest = rest
        self.is_grouped = is_grouped

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
        return cls(check_log_name(name), first, rest, is_grouped=decoder.options.logical_type.is_grouped)


async def published(service: Service, principal: Principal, publication: Publication, context: Context) -> Appended:
    """Append a publication, and return when it is durable."""
    log = service.log(publication.log)
    upload = await service.upload(lambda: log.stage("rdf-patch"))
    taking = _Taking(log, upload, is_grouped=publication.is_grouped)
    try:
        await service.upload(lambda: taking.take([publication.first]))
        await feed(service, publication.rest, taking.take)
        await check_complete(context)
        await service.access.check_still(principal)
        return await service.append(taking.appending())
    except BaseException:
        await service.upload(upload.discard)
        raise


class _Taking:
    """Frames into an upload."""

    def __init__(self, log: PatchLog, upload: Upload, *, is_grouped: bool) -> None:
        self._log = log
        self._upload = upload
        self._frames = 0
        self._is_grouped = is_grouped
        self._converter = Converter(
            "jelly", "rdf-patch", limits=DEFAULT_LIMITS, delimited=True, namespace_declarations=True
        )
        if not is_grouped:
            upload.write(_BEGIN)

    def take(self, frames: list[bytes]) -> None:
        """Take frames of the stream."""
        for frame in frames:
            rows = self._converter.feed(_delimited(frame))
            try:
                self._upload.write(_BEGIN + rows + _END if self._is_grouped else rows)
            except InvalidTerm as error:
                raise self._not_for_the_log(error) from error
            self._frames += 1

    def appending(self) -> Steps[Appended]:
        """The stream has ended."""
        rows = self._converter.finish()
        if not self._is_grouped:
            self._upload.write(rows + _END)
        return (yield from self._upload.appending())

    def _not_for_the_log(self, error: InvalidTerm) -> UnsupportedOption:
        """The stream declares what it holds, but the log does not. The error is about text that nobody has sent."""
        options = self._log.describe().options
        lacking = [name for name in ("rdf_star", "generalized_statements") if not getattr(options, name)]
        why = f", and the log was created without {' and '.join(lacking)}" if lacking else ""
        return UnsupportedOption(error.reason + why, frame=self._frames)


def _delimited(frame: bytes) -> bytes:
    return varint(len(frame)) + frame
