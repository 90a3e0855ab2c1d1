"""The bytes of a range of patches, out of one answer, or of several where it breaks: what is stored never changes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final, Self

from patchlog.client.connection import TRIES, Connection, pause_before, translated
from patchlog.errors import StorageError
from patchlog.log.records import PatchRecord

__all__ = ["PatchBytes"]

_JELLY: Final = {"format": "jelly-patch"}


class PatchBytes:
    """Takes patches up to a version from a service, in the order in which they are asked for."""

    def __init__(self, connection: Connection, path: str, last: int) -> None:
        self._connection = connection
        self._path = path
        self._last = last
        self._answer = ExitStack()
        self._pieces: Iterator[bytes] = iter(())
        self._rest = b""
        self._next: tuple[int, int] | None = None
        """The version and the place in it that the answer goes on with."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._hang_up()

    def chunks(self, record: PatchRecord) -> Iterator[bytes]:
        """Yield the bytes of a patch."""
        given = failures = 0
        while given < record.bytes:
            try:
                if self._next != (record.version, given):
                    self._go_to(record.version, given)
                piece = self._piece()
            except StorageError as error:
                self._hang_up()
                failures += 1
                if not error.is_transient or failures == TRIES:
                    raise
                time.sleep(pause_before(failures))
                continue
            failures = 0
            left = record.bytes - given
            piece, self._rest = piece[:left], piece[left:]
            given += len(piece)
            self._next = (record.version, given) if given < record.bytes else (record.version + 1, 0)
            yield piece

    def _go_to(self, version: int, place: int) -> None:
        self._hang_up()
        response = self._answer.enter_context(
            self._connection.answer(
                self._path, {"after": version - 1, "until": self._last, **_JELLY}, asked={"position": version}
            )
        )
        self._pieces = response.iter_bytes()
        while place:
            piece = self._piece()
            self._rest = piece[place:]
            place -= min(place, len(piece))

    def _piece(self) -> bytes:
        piece, self._rest = self._rest, b""
        if not piece:
            with translated(self._connection.url):
                piece = next(self._pieces, b"")
        if not piece:
            raise StorageError("the answer of the service ends inside a patch", is_transient=True)
        return piece

    def _hang_up(self) -> None:
        self._next = None
        self._rest = b""
        self._pieces = iter(())
        self._answer.close()
