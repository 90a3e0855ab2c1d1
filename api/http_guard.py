"""What uvicorn leaves to whoever stands in front of it: limits on heads, time, and clients that do not read.

    connected ──bytes──▶ head ──complete──▶ body ──complete──▶ (answered) ──▶ connected
                          │ too large: 431, 414    │
                          │ too slow: closed       └ answered before its end: a little more is swallowed, then closed

A head is looked at before the parser gets it. Only one that comes in one piece with the end of a chunked body goes
past: it is held to be whole, and to wish for no upgrade; else the client has to come again.

`Upgrade` is taken out of each head: no other protocol is spoken here, and a server may pass over the wish. The parser
would pass over the body with it, and the clients of RDF Delta send one with each `Upgrade: h2c`. A head with both
framing headers, or with bare line feeds, the parser itself refuses.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from api.errors import PROBLEM_JSON, Problem, problem_document
from api.settings import Settings

__all__ = ["GuardedConfig", "GuardedHttp"]

_HEAD_END: Final = re.compile(rb"\r?\n\r?\n")
_END_BYTES: Final = 4
"""It has at most so many."""
_UPGRADE: Final = re.compile(rb"(?mi)^(?:upgrade|http2-settings)[ \t]*:[^\n]*\n")
_LENGTH: Final = re.compile(rb"(?mi)^content-length[ \t]*:[ \t]*0*(\d{1,20})[ \t]*\r?$")
"""As many digits as the parser takes, and any zeros before them."""
_BLANK_LINES: Final = b"\r\n"
"""Some clients send an empty line behind a body. The parser passes over it before a head, and so does the guard."""
_CHUNKED: Final = re.compile(rb"(?mi)^transfer-encoding[ \t]*:")
_AT_ONCE_BYTES: Final = 16 << 10
_SWALLOWED_BYTES: Final = 1 << 20
"""A client that is still sending reads its answer only when it may go on for a while."""

_MALFORMED: Final = Problem(400, "malformed-request", "The request is not HTTP/1.1 as it is read here")
_LONG_LINE: Final = Problem(414, "uri-too-long", "The request line is too long")
_LARGE_HEAD: Final = Problem(431, "head-too-large", "The head of the request is too large")


class GuardedConfig(uvicorn.Config):
    """Uvicorn's configuration, with what the guard needs."""

    def __init__(self, app: Any, settings: Settings, connection: type[GuardedHttp]) -> None:
        super().__init__(
            app,
            host=settings.host,
            port=settings.port,
            http=connection,
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            lifespan="on",
            limit_concurrency=settings.max_connections,
            timeout_keep_alive=settings.keep_alive_seconds,
            timeout_graceful_shutdown=settings.shutdown_seconds,
        )
        self.settings: Final = settings


class _JoinedWrites:
    """A transport that sends what is written in one round of the event loop in one piece: a head with its body."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._waiting: list[bytes] = []
        # What can be written to as to a file.
        is_plain = os.name == "posix" and transport.get_extra_info("sslcontext") is None
        self._file: int | None = transport.get_extra_info("socket").fileno() if is_plain else None
        self.is_closing = transport.is_closing

    def write(self, data: bytes) -> None:
        """Send some bytes, soon."""
        self._waiting.append(data)
        if len(data) >= _AT_ONCE_BYTES:
            self._send()  # so that the transport can say that it has too much
        elif len(self._waiting) == 1:
            self._loop.call_soon(self._send)

    def write_at_once(self, data: bytes) -> None:
        """Send some bytes before anything else is done.

        Past the transport where nothing waits there: that keeps Python's lock while the system wakes the client.
        """
        sent = 0
        if self._file is not None and not self._waiting and self._transport.get_write_buffer_size() == 0:
            with suppress(OSError):  # the transport meets it again, be it that there is no room or nobody
                sent = os.write(self._file, data)
        if sent < len(data):
            self._waiting.append(data[sent:])
            self._send()

    def close(self) -> None:
        """Send what waits, and close."""
        self._send()
        self._transport.close()

    def _send(self) -> None:
        waiting = self._waiting
        if waiting and not self.is_closing():
            self._transport.write(b"".join(waiting) if len(waiting) > 1 else waiting[0])
        waiting.clear()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class _NotAsTheGuardHasIt(Exception):
    """The parser sees a request where the guard does not."""


class GuardedHttp(HttpToolsProtocol):
    """A connection."""

    config: GuardedConfig

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._settings = self.config.settings
        self._head = bytearray()
        self._searched = 0
        """So many bytes of the head hold no end of it."""
        self._is_in_head = False
        self._is_in_body = False
        self._body_left: int | None = 0
        """None where only the parser knows: the body is chunked."""
        self._is_past_guard = False
        self._ignores_rest = False
        self._swallowed = 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._send_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """A client has connected."""
        joined: Any = _JoinedWrites(transport, self.loop)
        super().connection_made(joined)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        for timer in (self._head_timer, self._send_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes of the client."""
        self._unset_keepalive_if_required()
        while data and not self._ignores_rest:
            if not self._is_in_body:
                self._head += data if self._head else data.lstrip(_BLANK_LINES)
                head = self._taken_head()
                if head is None:
                    return
                data = bytes(self._head)
                self._head.clear()
                self._feed(head)
                continue
            if self._body_left is None:
                self._feed(data)
                return
            body, data = data[: self._body_left], data[self._body_left :]
            self._body_left -= len(body)
            self._feed(body)

    @property
    def is_between_requests(self) -> bool:
        """Whether all that came is answered, and another request is welcome."""
        return (
            not (self._is_in_body or self._head or self._ignores_rest or self._is_answering)
            and len(self.connections) < self._settings.max_connections
        )

    @property
    def _is_answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle  # as uvicorn has it, though it says otherwise
        return cycle is not None and not cycle.response_complete

    def stop_timers(self) -> None:
        """A head has come."""
        self._unset_keepalive_if_required()
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def on_message_begin(self) -> None:
        """A request begins."""
        if not self._is_in_body:
            if self._body_left is not None:
                raise _NotAsTheGuardHasIt
            self._is_in_body = self._is_past_guard = True
        self._is_in_head = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a field of its head. Those behind a chunked body are none: what a proxy has checked is the head."""
        if self._is_in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Its head is here."""
        self._is_in_head = False
        if self._is_past_guard and self.parser.should_upgrade():
            raise _NotAsTheGuardHasIt
        self._is_past_guard = False
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take some of the body; of one that nobody wants any more only a little."""
        super().on_body(body)
        if self.cycle.response_complete:
            self._swallowed += len(body)
            if self._swallowed > _SWALLOWED_BYTES:
                self.transport.close()

    def on_message_complete(self) -> None:
        """The request is here."""
        super().on_message_complete()
        self._is_in_body = False

    def on_response_complete(self) -> None:
        """The answer is sent."""
        super().on_response_complete()
        # Not where the body is that of the next request, which was sent before this answer.
        if self._is_in_body and not self._is_answering and not self.transport.is_closing():
            self._await_head()

    def pause_writing(self) -> None:
        """The client does not read."""
        super().pause_writing()
        self._send_timer = self.loop.call_later(self._settings.send_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """The client reads again."""
        if self._send_timer is not None:
            self._send_timer.cancel()
        super().resume_writing()

    def _taken_head(self) -> bytes | None:
        """The head, once it is complete. What came behind it stays."""
        if self._head_timer is None:
            self._await_head()
        # An end may have begun in what was searched.
        end = _HEAD_END.search(self._head, max(0, self._searched - _END_BYTES + 1))
        self._searched = 0 if end else len(self._head)
        if (end.end() if end else len(self._head)) > self._settings.max_head_bytes:
            line_end = self._head.find(b"\n")
            is_line_too_long = line_end < 0 or line_end > self._settings.max_head_bytes
            problem = _LONG_LINE if is_line_too_long else _LARGE_HEAD
            self._refuse(problem, f"a request line and its headers have at most {self._settings.max_head_bytes} bytes")
            return None
        if end is None:
            return None
        self.stop_timers()
        head = bytes(self._head[: end.end()])
        del self._head[: end.end()]
        length = _LENGTH.search(head)
        self._body_left = None if _CHUNKED.search(head) else int(length[1]) if length else 0
        self._is_in_body = True
        self._swallowed = 0
        return _UPGRADE.sub(b"", head)

    def _feed(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._ignores_rest = True
            self._give_up()
        else:
            # Where the parser waits for more than there is, nobody can say where the next request begins.
            if self._is_past_guard or (self._is_in_body and self._body_left == 0):
                self._ignores_rest = True
                self._give_up()

    def _give_up(self) -> None:
        """What follows cannot be understood. An answer that is on its way still goes out."""
        cycle: RequestResponseCycle | None = getattr(self, "cycle", None)
        if cycle is not None and not cycle.response_complete and not cycle.more_body:
            cycle.keep_alive = False
        elif cycle is not None and not cycle.response_complete and cycle.response_started:
            self.transport.close()
        else:
            self._refuse(_MALFORMED, "the head or the framing of the body is not well formed: the connection is closed")

    def _await_head(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
        self._head_timer = self.loop.call_later(self._settings.head_seconds, self.transport.close)

    def _refuse(self, problem: Problem, detail: str) -> None:
        """Answer what never reaches the app, and close."""
        self._ignores_rest = True
        body = json.dumps(problem_document(problem, detail)).encode()
        head = (
            f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}\r\n"
            f"connection: close\r\ncontent-type: {PROBLEM_JSON}\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()
