"""Where bytes come from and where they go: paths, bytes, files, sockets. Knows no RDF format.

All reading is in chunks and all writing is of what is complete, so a stream of any length needs the memory of one
chunk. Input that is compressed by gzip or zstd is recognised by its first bytes; output is compressed where the path
ends in `.gz` or `.zst`. For zstd the package zstandard has to be there.
"""

from __future__ import annotations

import gzip
import os
import secrets
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Final, Protocol, TypeAlias

from patchlog.errors import MalformedFrame, MissingExtra, UsageError

__all__ = ["CHUNK_BYTES", "Sink", "Source", "Write", "chunks_of", "name_of", "writing_to"]

CHUNK_BYTES: Final = 1 << 18
"""What is read at once: less than the processor's second cache, or each byte comes from memory twice."""
_GZIP_MAGIC: Final = b"\x1f\x8b"
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_MAX_ZSTD_WINDOW: Final = 128 << 20
_ZSTD_SLICE_BYTES: Final = 1 << 10
"""Input that is unpacked at once. Four bytes may become 128 KiB, and there is no other bound on what comes out."""


class _Reads(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _Receives(Protocol):
    def recv(self, size: int, /) -> bytes: ...


class _Writes(Protocol):
    def write(self, data: bytes, /) -> object: ...


class _Sends(Protocol):
    def sendall(self, data: bytes, /) -> object: ...


Source: TypeAlias = "str | os.PathLike[str] | bytes | bytearray | memoryview | _Reads | _Receives | Iterable[bytes]"
"""A path, the bytes themselves, a binary file, a socket, or chunks of bytes."""

Sink: TypeAlias = "str | os.PathLike[str] | _Writes | _Sends"
"""A path, a binary file, or a socket."""

Write: TypeAlias = Callable[[bytes], object]


def name_of(stream: object) -> str | None:
    """The name of the file behind a source or sink, where there is one: formats are guessed from it."""
    if isinstance(stream, str | os.PathLike):
        return os.fspath(stream)
    name = getattr(stream, "name", None)
    return name if isinstance(name, str) else None


def chunks_of(source: Source, *, on_read: Callable[[int], object] | None = None) -> Iterator[bytes]:
    """Yield the bytes of a source, decompressed.

    A path is opened when the first chunk is asked for and closed after the last; what is already open stays open.
    `on_read` is told how many bytes were read each time, before they are decompressed.
    """
    chunks = _raw_chunks(source)
    if on_read is not None:
        chunks = _counted(chunks, on_read)
    return _decompressed(chunks)


def _raw_chunks(source: Source) -> Iterator[bytes]:
    match source:
        case str() | os.PathLike():
            with _naming_errors(Path(source)), Path(source).open("rb", buffering=0) as file:
                yield from _until_empty(file.read)
        case bytes() | bytearray() | memoryview():
            for start in range(0, len(source), CHUNK_BYTES):
                yield bytes(source[start : start + CHUNK_BYTES])
        case _ if read := getattr(source, "read1", None) or getattr(source, "read", None):
            # `read1` hands over what has arrived, where `read` would wait for a whole chunk of a live stream.
            yield from _until_empty(read)
        case _ if receive := getattr(source, "recv", None):
            yield from _until_empty(receive)
        case Iterable():
            yield from source
        case _:
            raise UsageError(f"cannot read bytes from {type(source).__name__}")


def _until_empty(read: Callable[[int], Any]) -> Iterator[bytes]:
    while chunk := read(CHUNK_BYTES):
        if isinstance(chunk, str):
            raise UsageError("the file was opened as text; open it as binary ('rb')")
        yield chunk


def _counted(chunks: Iterator[bytes], on_read: Callable[[int], object]) -> Iterator[bytes]:
    for chunk in chunks:
        on_read(len(chunk))
        yield chunk


def _decompressed(chunks: Iterator[bytes]) -> Iterator[bytes]:
    first = b""
    for chunk in chunks:
        first += chunk
        # No longer than there is doubt: the next bytes of a live stream may be far away.
        if not any(magic.startswith(first) for magic in (_GZIP_MAGIC, _ZSTD_MAGIC)):
            break
    rest = _chained(first, chunks)
    if first.startswith(_GZIP_MAGIC):
        yield from _gunzipped(rest)
    elif first.startswith(_ZSTD_MAGIC):
        yield from _unzstd(rest)
    else:
        yield from rest


def _chained(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    if first:
        yield first
    yield from rest


def _gunzipped(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Decompress one or more gzip members, a bounded piece at a time: a bomb costs time, not memory."""
    member = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        for chunk in chunks:
            rest = chunk
            while rest:
                if member.eof:
                    rest = rest.lstrip(b"\0")  # padding between and after members
                    if not rest:
                        break
                    member = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
                if piece := member.decompress(rest, CHUNK_BYTES):
                    yield piece
                rest = member.unused_data if member.eof else member.unconsumed_tail
        if piece := member.flush():
            yield piece
    except zlib.error as error:
        raise MalformedFrame(f"the gzip data is damaged ({error})") from error
    if not member.eof:
        raise MalformedFrame("the gzip data is cut short")


def _unzstd(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Decompress one or more zstd frames, a bounded piece at a time."""
    zstandard = _zstandard()
    frame = None
    try:
        for chunk in chunks:
            for start in range(0, len(chunk), _ZSTD_SLICE_BYTES):
                rest = chunk[start : start + _ZSTD_SLICE_BYTES]
                while rest:
                    if frame is None or frame.eof:
                        frame = zstandard.ZstdDecompressor(max_window_size=_MAX_ZSTD_WINDOW).decompressobj()
                    if piece := frame.decompress(rest):
                        yield piece
                    rest = frame.unused_data if frame.eof else b""
    except zstandard.ZstdError as error:
        raise MalformedFrame(f"the zstd data is damaged ({error})") from error
    if frame is not None and not frame.eof:
        raise MalformedFrame("the zstd data is cut short")


def _zstandard() -> Any:
    try:
        return import_module("zstandard")
    except ImportError as error:
        raise MissingExtra("zstandard", "zstd") from error


@contextmanager
def writing_to(sink: Sink) -> Iterator[Write]:
    """Give a function that writes bytes to the sink.

    A path is written under another name beside it and renamed when the block ends well: after an error there is no
    half file, and an old file is as it was. What is already open stays open, and is flushed.
    """
    match sink:
        case str() | os.PathLike():
            with _replacing(Path(sink)) as write:
                yield write
        case _ if hasattr(sink, "write"):
            yield _write_all(sink)
            if flush := getattr(sink, "flush", None):
                flush()
        case _ if send := getattr(sink, "sendall", None):
            yield send
        case _:
            raise UsageError(f"cannot write bytes to {type(sink).__name__}")


def _write_all(sink: Any) -> Write:
    """The `write` of a file; a raw file may take less than it was given."""

    def write(data: bytes) -> None:
        while data:
            taken = sink.write(data)
            if not isinstance(taken, int) or taken >= len(data):
                return
            data = data[taken:]

    return write


@contextmanager
def _replacing(path: Path) -> Iterator[Write]:
    target = Path(os.path.realpath(path))  # a link stays a link
    if target.exists() and not target.is_file():
        with _naming_errors(path, target), target.open("wb") as device:  # or a named pipe; a folder is refused here
            yield device.write
        return
    part = target.with_name(f".{target.name[:200]}.{secrets.token_hex(4)}.part")
    try:
        with _naming_errors(path, part), part.open("xb") as file:
            if target.exists():
                part.chmod(stat.S_IMODE(target.stat().st_mode))
            with _compressing(file, path) as stream:
                yield stream.write
        with _naming_errors(path, part):
            part.replace(target)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _compressing(file: IO[bytes], path: Path) -> Iterator[_Writes]:
    match path.suffix.lower():
        case ".gz":
            # Without a name and a time in its header the same data is the same file.
            with gzip.GzipFile(fileobj=file, filename="", mode="wb", mtime=0, compresslevel=6) as compressed:
                yield compressed
        case ".zst":
            with _zstandard().ZstdCompressor().stream_writer(file, closefd=False) as compressed:
                yield compressed
        case _:
            yield file


@contextmanager
def _naming_errors(path: Path, also: Path | None = None) -> Iterator[None]:
    """Let an error of the operating system name the file that the user knows: a failed write names none."""
    try:
        yield
    except OSError as error:
        if error.filename is None or error.filename == str(also):
            error.filename = str(path)
        raise
