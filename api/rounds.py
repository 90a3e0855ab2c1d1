"""Appends that go to the writer in rounds, so that many share one wait for the disk, and one change between threads.

    waiting ──all are back, or it takes too long──▶ with the writer ──durable──▶ answered, all at once

While a round is with the writer, the next one gathers. Whoever was answered by the last round is likely to be back in a
moment: the next one waits for as many, for 0.4 milliseconds each and ten at most. A single client never waits.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from patchlog.log.contract import Upload
from patchlog.log.records import Appended, ExpectedHead

__all__ = ["Rounds"]

_WAIT_SECONDS_EACH: Final = 0.0004
"""In which a client has read its answer, and its next request has been read here, the others being before it."""
_MOST_WAIT_SECONDS: Final = 0.01


@dataclass(slots=True)
class _Append:
    upload: Upload
    expected_head: ExpectedHead
    answer: asyncio.Future[Appended]
    result: Future[Appended] | None = None

    def submit(self) -> bool:
        """Hand it to the writer; False where it is refused."""
        try:
            self.result = self.upload.submit(self.expected_head)
        except Exception as error:  # noqa: BLE001  whoever waits has to hear of it, whatever it is
            if not self.answer.done():
                self.answer.set_exception(error)
        return self.result is not None

    def settle(self) -> None:
        """Say what came of it, unless the client has gone."""
        if self.result is None or self.answer.done():
            return
        if (error := self.result.exception()) is None:
            self.answer.set_result(self.result.result())
        else:
            self.answer.set_exception(error)


class Rounds:
    """The appends of one event loop."""

    def __init__(self) -> None:
        self._waiting: list[_Append] = []
        self._is_with_writer = False
        self._expected = 1
        self._timer: asyncio.TimerHandle | None = None

    def append(self, upload: Upload, expected_head: ExpectedHead) -> asyncio.Future[Appended]:
        """Append an upload that has ended, in the next round."""
        answer: asyncio.Future[Appended] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Append(upload, expected_head, answer))
        self._go_on()
        return answer

    def _go_on(self) -> None:
        if self._is_with_writer or not self._waiting:
            return
        if len(self._waiting) >= self._expected:
            self._begin_round()
        elif self._timer is None:
            seconds = min(self._expected * _WAIT_SECONDS_EACH, _MOST_WAIT_SECONDS)
            self._timer = asyncio.get_running_loop().call_later(seconds, self._begin_round)

    def _begin_round(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting = self._waiting, []
        sent = [append for append in waiting if append.submit()]
        if not sent:
            return
        self._is_with_writer = True
        loop, left = asyncio.get_running_loop(), len(sent)

        def count(_: Future[Appended]) -> None:
            nonlocal left
            left -= 1
            if not left:
                with suppress(RuntimeError):  # the loop has ended
                    loop.call_soon_threadsafe(self._end_round, sent)

        for append in sent:
            assert append.result is not None
            append.result.add_done_callback(count)

    def _end_round(self, sent: list[_Append]) -> None:
        for append in sent:
            append.settle()
        self._is_with_writer = False
        self._expected = len(sent) + len(self._waiting)
        self._go_on()
