"""Appends that go to the writer in rounds, so that many share one wait for the disk, and one change between threads.

    waiting ──all are back, or too late, or many──▶ with the writer ──durable──▶ answered, all at once

While a round is with the writer, the next one gathers. Whoever was answered by the last round is likely to be back in a
moment: the next one waits for as many, for 0.4 milliseconds each and ten at most. A single client never waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, TypeAlias

from patchlog.log.contract import PreparedAppend, Told
from patchlog.log.records import Appended
from patchlog.log.reservation import PATIENCE_SECONDS, PAUSE_SECONDS, PlaceReserved

__all__ = ["Ended", "Rounds"]

Ended: TypeAlias = Callable[[Appended | BaseException], None]
"""Gets what came of an append, in the event loop."""

_Waiting: TypeAlias = tuple[PreparedAppend, Ended, float | None]
"""With the time at which it is given up, where it waits for another upload to its log."""

_WAIT_SECONDS_EACH: Final = 0.0004
"""In which a client has read its answer, and its next request has been read here, the others being before it."""
_MOST_WAIT_SECONDS: Final = 0.01
_MOST_AT_ONCE: Final = 512
_MOST_BYTES: Final = 8 << 20
"""In one transaction."""


class Rounds:
    """The appends of one event loop."""

    def __init__(self, submit: Callable[[Sequence[PreparedAppend], Told], None]) -> None:
        """`submit` hands appends to the writer."""
        self._hand_over = submit
        self._waiting: list[_Waiting] = []
        self._is_with_writer = False
        self._was_full = False
        """The last round, so that some had to wait."""
        self._expected = 1
        self._timer: asyncio.TimerHandle | None = None

    async def append(self, prepared: PreparedAppend) -> Appended:
        """Append in the next round, and return when it is durable."""
        answer: asyncio.Future[Appended] = asyncio.get_running_loop().create_future()

        def ended(outcome: Appended | BaseException) -> None:
            if answer.done():
                return  # the client has gone
            if isinstance(outcome, BaseException):
                answer.set_exception(outcome)
            else:
                answer.set_result(outcome)

        self.submit(prepared, ended)
        return await answer

    def submit(self, prepared: PreparedAppend, ended: Ended) -> None:
        """As `append`, but tell what came of it: that takes no task, and no future."""
        self._wait((prepared, ended, None))

    def _wait(self, waiting: _Waiting) -> None:
        self._waiting.append(waiting)
        self._go_on()

    def _go_on(self) -> None:
        if self._is_with_writer or not self._waiting:
            return
        if len(self._waiting) >= self._expected or self._was_full:
            self._begin_round()
        elif self._timer is None:
            seconds = min(self._expected * _WAIT_SECONDS_EACH, _MOST_WAIT_SECONDS)
            self._timer = asyncio.get_running_loop().call_later(seconds, self._begin_round)

    def _begin_round(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        fitting = self._fitting
        sent, self._waiting = self._waiting[:fitting], self._waiting[fitting:]
        self._was_full = bool(self._waiting)
        self._is_with_writer = True
        loop = asyncio.get_running_loop()

        def told(outcomes: Sequence[Appended | BaseException]) -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._end_round, sent, outcomes)

        try:
            self._hand_over([prepared for prepared, *_ in sent], told)
        except Exception as error:  # noqa: BLE001  whoever waits has to hear of it, whatever it is
            told([error] * len(sent))

    @property
    def _fitting(self) -> int:
        """How many of those that wait go into one round."""
        size = 0
        for count, (prepared, *_) in enumerate(self._waiting, 1):
            size += prepared.size
            if size >= _MOST_BYTES or count == _MOST_AT_ONCE:
                return count
        return len(self._waiting)

    def _end_round(self, sent: Sequence[_Waiting], outcomes: Sequence[Appended | BaseException]) -> None:
        loop = asyncio.get_running_loop()
        for (prepared, ended, give_up_at), outcome in zip(sent, outcomes, strict=True):
            if isinstance(outcome, PlaceReserved):
                give_up_at = give_up_at or loop.time() + PATIENCE_SECONDS  # noqa: PLW2901
                if loop.time() < give_up_at:
                    loop.call_later(PAUSE_SECONDS, self._wait, (prepared, ended, give_up_at))
                    continue
                outcome = outcome.given_up()  # noqa: PLW2901
            try:
                ended(outcome)
            except Exception as error:  # noqa: BLE001  the others of the round have to be told too
                asyncio.get_running_loop().call_exception_handler(
                    {"message": "an append could not be answered", "exception": error}
                )
        self._is_with_writer = False
        self._expected = len(sent) + len(self._waiting)
        self._go_on()
