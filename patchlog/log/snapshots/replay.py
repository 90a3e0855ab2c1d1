"""Chunks that can be read only once, and may be needed again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from patchlog.log.snapshots.files import errors_of_files, temporary_file

__all__ = ["Replay"]

_CHUNK_BYTES: Final = 256 << 10


class Replay:
    """Passes chunks on, and keeps them on disk: each time they are read from the first on."""

    def __init__(self, chunks: Iterable[bytes], folder: Path | None) -> None:
        self._rest = iter(chunks)
        self._file = temporary_file(self, folder)

    def __iter__(self) -> Iterator[bytes]:
        with errors_of_files():
            self._file.seek(0)
        while chunk := self._read():
            yield chunk
        for chunk in self._rest:
            with errors_of_files():
                self._file.write(chunk)
            yield chunk

    def _read(self) -> bytes:
        with errors_of_files():
            return self._file.read(_CHUNK_BYTES)
