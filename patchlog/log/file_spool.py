"""Where a large upload waits that goes into a file: a temporary file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from tempfile import TemporaryFile
from typing import IO, NamedTuple

from patchlog.log.staging import SpooledChunk

__all__ = ["FileSpool"]


class _Place(NamedTuple):
    number: int
    offset: int
    size: int


class FileSpool:
    """The chunks of one upload. The file is made with the first of them, and has no name."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._places: defaultdict[int, list[_Place]] = defaultdict(list)
        self._end = 0

    def put(self, chunks: Sequence[SpooledChunk], /) -> None:
        """Keep chunks."""
        if self._file is None:
            self._file = TemporaryFile()  # noqa: SIM115  it lives as long as the upload
        self._file.seek(self._end)
        for chunk in chunks:
            self._file.write(chunk.data)
            self._places[chunk.ordinal].append(_Place(chunk.number, self._end, len(chunk.data)))
            self._end += len(chunk.data)

    def chunks(self, ordinal: int, /) -> Iterator[bytes]:
        """Yield the chunks of a patch."""
        assert self._file is not None
        for place in sorted(self._places[ordinal]):
            self._file.seek(place.offset)
            yield self._file.read(place.size)

    def discard(self) -> None:
        """Forget them all."""
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
