"""The loops that drive the codec: bytes in, results out, until the input ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, Protocol, TypeVar

from patchlog.codec.faces import ConverterFace
from patchlog.codec.options import PatchOptions, RdfOptions
from patchlog.errors import UnexpectedRow
from patchlog.streams import Write

__all__ = ["batches", "drain", "first_options", "send"]

_Result_co = TypeVar("_Result_co", covariant=True)
_Options_co = TypeVar("_Options_co", RdfOptions, PatchOptions, covariant=True)
_Item = TypeVar("_Item")

_BATCH: Final = 1024


class _Decoder(Protocol[_Result_co]):
    def feed(self, data: bytes, /) -> Iterable[_Result_co]: ...

    def finish(self) -> Iterable[_Result_co]: ...


def drain(decoder: _Decoder[_Result_co], chunks: Iterable[bytes]) -> Iterator[_Result_co]:
    """Yield all that a decoder makes of the chunks."""
    for chunk in chunks:
        yield from decoder.feed(chunk)
    yield from decoder.finish()


class _OptionsDecoder(_Decoder[object], Protocol[_Options_co]):
    @property
    def options(self) -> _Options_co | None: ...


def first_options(decoder: _OptionsDecoder[_Options_co], chunks: Iterable[bytes]) -> _Options_co:
    """The options that a stream begins with. Takes no more chunks than it needs."""
    for chunk in chunks:
        for _ in decoder.feed(chunk):
            if decoder.options is not None:
                break
        if decoder.options is not None:
            return decoder.options
    for _ in decoder.finish():
        pass
    if decoder.options is None:
        raise UnexpectedRow("the stream has no options row")
    return decoder.options


def send(converter: ConverterFace, chunks: Iterable[bytes], write: Write) -> None:
    """Send one input through a converter, which may then take another."""
    for chunk in chunks:
        write(converter.feed(chunk))
    write(converter.end_input())


def batches(items: Iterable[_Item]) -> Iterator[list[_Item]]:
    """Cut into lists: one call of the codec for many items, and bytes that go out before the last item has come in."""
    iterator = iter(items)
    while batch := list(islice(iterator, _BATCH)):
        yield batch
