"""The bytes of a range of patches, out of one answer, or of several where it breaks: what is stored never changes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Self

from patchlog.client.connection import Connection, translated
from patchlog.client.exchange import Failures
from patchlog.client.log_calls import LogCalls
from patchlog.errors import StorageError
from patchlog.log.records import PatchRecord

__all__ = ["Cutter", "PatchBytes"]


class Cutter:
    """Where an answer is in the patches that it holds, and what came too early."""

    def __init__(self) -> None:
        self.rest = b""
        self._next: tuple[int, int] | None = None
        """The version and the place in it that the answer goes on with."""

    def is_at(self, record: PatchRecord, place: int) -> bool:
        """Whether the answer goes on there."""
        return self._next == (record.version, place)

    def is_behind(self, version: int) -> bool:
        """Whether the answer has given all patches up to a version."""
        return self._next == (version + 1, 0)

    def begin(self) -> None:
        """There is another answer, or none."""
        self.rest = b""
        self._next = None

    def skip(self, piece: bytes, size: int) -> int:
        """Leave out so many bytes. Returns how many are still to be left out."""
        self.rest = piece[size:]
        return size - min(size, len(piece))

    def cut(self, piece: bytes, record: PatchRecord, place: int) -> bytes:
        """As much of a piece as belongs to a patch, of which so much was given."""
        left = record.bytes - place
        piece, self.rest = piece[:left], piece[left:]
        place += len(piece)
        self._next = (record.version, place) if place < record.bytes else (record.version + 1, 0)
        return piece

    def taken(self, piece: bytes) -> bytes:
        """A piece of the answer, which has to go on."""
        if not piece:
            raise StorageError("the answer of the service ends inside a patch", is_transient=True)
        return piece


class PatchBytes:
    """Takes patches up to a version from a service, in the order in which they are asked for."""

    def __init__(self, connection: Connection, calls: LogCalls, last: int, log_id: str) -> None:
        self._connection = connection
        self._calls = calls
        self._last = last
        self._log_id = log_id
        self._answer = ExitStack()
        self._pieces: Iterator[bytes] = iter(())
        self._cutter = Cutter()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._cutter.is_behind(self._last):
            # A connection whose answer was read to its end can be used again.
            with suppress(StorageError), translated(self._connection.url):
                next(self._pieces, b"")
        self._hang_up()

    def chunks(self, record: PatchRecord) -> Iterator[bytes]:
        """Yield the bytes of a patch."""
        given = 0
        failures = Failures()
        while given < record.bytes:
            try:
                if not self._cutter.is_at(record, given):
                    self._go_to(record.version, given)
                piece = self._cutter.cut(self._piece(), record, given)
            except StorageError as error:
                self._hang_up()
                time.sleep(failures.pause_after(error))
                continue
            failures.forget()
            given += len(piece)
            yield piece

    def _go_to(self, version: int, place: int) -> None:
        self._hang_up()
        request = self._calls.bytes_after(version - 1, self._last, self._log_id)
        self._pieces = self._answer.enter_context(self._connection.answer(request)).iter_bytes()
        while place:
            place = self._cutter.skip(self._piece(), place)

    def _piece(self) -> bytes:
        piece, self._cutter.rest = self._cutter.rest, b""
        if not piece:
            with translated(self._connection.url):
                piece = next(self._pieces, b"")
        return self._cutter.taken(piece)

    def _hang_up(self) -> None:
        self._cutter.begin()
        self._pieces = iter(())
        self._answer.close()
