"""A connection on which small appends take a short way: from bytes to bytes, past the parser, ASGI and all routes.

    between requests ──head of a small append──▶ held ──its body is whole──▶ with the writer ──▶ answered
                     └──anything else──▶ the guard    └──too slow, refused──▶ the guard, which gets all that came

The long way gives every answer that is out of the ordinary, errors above all, and whoever takes traces sees that only.
"""

from __future__ import annotations

import asyncio
from functools import partial
from http import HTTPStatus
from typing import Any, Final

from api.alarm import Alarm
from api.errors import answer_to
from api.http_guard import GuardedHttp
from api.principal import OPEN_ACCESS, Principal
from api.service import Service
from api.small_appends import SmallAppend, answer_of, small_append_in
from api.telemetry import BEGUN, Exchange
from patchlog.errors import PatchLogError, StorageError
from patchlog.log.records import Appended

__all__ = ["ShortWayHttp"]

_HELD_SECONDS: Final = 1.0
"""Then the guard may see how slow the body is."""

_STATUS_LINES: Final = {status.value: f"HTTP/1.1 {status} {status.phrase}\r\n".encode() for status in HTTPStatus}


class ShortWayHttp(GuardedHttp):
    """A connection."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._service_app: Final[Any] = self.config.app
        self._service: Service
        self._small: SmallAppend | None = None
        self._exchange: Exchange | None = None
        """Of the small append."""
        self._is_with_writer = False
        self._principal: Principal = OPEN_ACCESS
        """Who makes what is with the writer."""
        self._came = b""
        """Of the small append, and of what follows it."""
        self._alarm = Alarm(self.loop)
        """Of a body that does not come, and of a client that does not come again."""
        self._begun: float | None = None
        """When what now goes the long way has come."""
        self._closes_then = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """A client has connected."""
        super().connection_made(transport)
        self._service = self._service_app.state.service

    def data_received(self, data: bytes) -> None:
        """Take bytes of the client."""
        small = self._small
        if small is None:
            small = self._small_append_in(data)
            if small is None:
                super().data_received(data)
                return
            self.stop_timers()
            self._small = small
            self._exchange = Exchange("POST", small.path, self.client, small.request_ids)
        self._came += data
        if self._is_with_writer:
            self.flow.pause_reading()
        elif len(self._came) >= small.size:
            self._begin(small)
        elif len(self._came) == len(data):  # nothing came before
            self._alarm.set(_HELD_SECONDS, self._go_the_long_way)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone. What is with the writer is told of when it is done, and what is not whole now."""
        if self._exchange is not None and not self._is_with_writer:
            exchange = self._taken()[0]
            exchange.begin_answer(HTTPStatus.BAD_REQUEST)
            self._service.ledger.note(exchange)
        self._alarm.close()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Close as soon as the client has its answer."""
        self._closes_then = True
        if self._small is None:
            super().shutdown()
        elif not self._is_with_writer:
            self._go_the_long_way()

    def on_message_begin(self) -> None:
        """A request begins for the parser."""
        super().on_message_begin()
        if self._begun is not None:
            self.scope["state"][BEGUN] = self._begun
            self._begun = None

    @property
    def _address(self) -> str:
        return self.client[0] if self.client else ""

    def _small_append_in(self, data: bytes) -> SmallAppend | None:
        if not self.is_between_requests or self._service_app.is_traced:
            return None
        if self._closes_then or self.flow.write_paused:
            return None
        small = small_append_in(data)
        if small is None or small.head_size > self._settings.max_head_bytes:
            return None
        return small if small.size - small.head_size <= self._settings.max_body_bytes else None

    def _begin(self, small: SmallAppend) -> None:
        # More than one request came: who does not wait for answers can wait for the parser.
        is_alone = len(self._came) == small.size
        principal = None
        if is_alone:
            body = self._came[small.head_size :]
            principal = small.begin(self._service, self._address, body, partial(self._end, small))
        if principal is None:
            self._go_the_long_way()
            return
        self._alarm.unset()
        self._is_with_writer = True
        self._principal = principal

    def _end(self, small: SmallAppend, outcome: Appended | BaseException) -> None:
        try:
            self._answer_or_refuse(small, outcome)
        except BaseException:
            self.transport.abort()  # nobody else would end a connection that waits for nothing
            raise

    def _answer_or_refuse(self, small: SmallAppend, outcome: Appended | BaseException) -> None:
        is_refused = isinstance(outcome, PatchLogError) and not isinstance(outcome, StorageError)
        if is_refused and not self.transport.is_closing():
            self._go_the_long_way()
            return
        exchange, came = self._taken()
        if isinstance(outcome, Appended):
            exchange.principal = self._principal.owner
            self._answer(exchange, *answer_of(small.log, outcome))
            self._service.ledger.note(exchange, small.size - small.head_size, outcome)
        else:
            # It may be in the log in spite of this, and a patch without an id would be appended once more.
            response = answer_to(outcome, small.log)
            exchange.principal = self._principal.owner
            self._answer(exchange, response.status_code, response.raw_headers, bytes(response.body))
            self._service.ledger.note(exchange)
        if (audit := self._service.audit).is_on:
            appended = outcome if isinstance(outcome, Appended) else None
            audit.append(self._principal, self._address, small.log, appended, exchange.status, exchange.id)
        if len(came) > small.size and not self.transport.is_closing():
            self.data_received(came[small.size :])

    def _answer(self, exchange: Exchange, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        exchange.answer(status, len(body))
        if self.transport.is_closing():
            return
        fields = [*self.server_state.default_headers, *headers, exchange.id_header]
        if self._closes_then:
            fields.append((b"connection", b"close"))
        transport: Any = self.transport  # the guard's
        transport.write_at_once(
            b"".join([_STATUS_LINES[status], *[b"%b: %b\r\n" % field for field in fields], b"\r\n", body])
        )
        self.server_state.total_requests += 1
        if self._closes_then:
            self.transport.close()
        else:
            self.flow.resume_reading()
            self._alarm.set(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def _go_the_long_way(self) -> None:
        """Have the guard see all that came, from the beginning."""
        exchange, came = self._taken()
        if not self.transport.is_closing():
            self._begun = exchange.begun
            super().data_received(came)
            if self._closes_then:
                super().shutdown()

    def _taken(self) -> tuple[Exchange, bytes]:
        """What is known of the small append, of which the connection then knows nothing any more."""
        self._alarm.unset()
        exchange, came = self._exchange, self._came
        assert exchange is not None
        self._small = self._exchange = None
        self._is_with_writer = False
        self._came = b""
        return exchange, came

    def _unset_keepalive_if_required(self) -> None:
        self._alarm.unset()
        super()._unset_keepalive_if_required()
