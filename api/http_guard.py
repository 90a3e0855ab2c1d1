"""What uvicorn leaves to whoever stands in front of it: limits on heads, time, and clients that do not read.

    connected ──bytes──▶ head ──complete──▶ body ──complete──▶ (answered) ──▶ connected
                          │ too large: 431, 414    │
                          │ too slow: closed       └ answered before its end: a little more is swallowed, then closed

`Upgrade` is taken out of each head: no other protocol is spoken here, and a server may pass over the wish. The parser
would pass over the body with it, and the clients of RDF Delta send one with each `Upgrade: h2c`. A head with both
framing headers, or with bare line feeds, the parser itself refuses.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any, Final

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from api.settings import Settings

__all__ = ["GuardedConfig", "GuardedHttp"]

_HEAD_END: Final = re.compile(rb"\r?\n\r?\n")
_UPGRADE: Final = re.compile(rb"(?mi)^(?:upgrade|http2-settings)[ \t]*:[^\n]*\n")
_SWALLOWED_BYTES: Final = 1 << 20
"""A client that is still sending reads its answer only when it may go on for a while."""


class GuardedConfig(uvicorn.Config):
    """Uvicorn's configuration, with what the guard needs."""

    def __init__(self, app: Any, settings: Settings) -> None:
        super().__init__(
            app,
            host=settings.host,
            port=settings.port,
            http=GuardedHttp,
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


class GuardedHttp(HttpToolsProtocol):
    """A connection."""

    config: GuardedConfig

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._settings = self.config.settings
        self._head = bytearray()
        self._is_in_body = False
        self._ignores_rest = False
        self._swallowed = 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._send_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """A client has connected."""
        super().connection_made(transport)
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
        if self._ignores_rest:
            return
        if not self._is_in_body:
            if (head := self._taken_head(data)) is None:
                return
            data = head
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            if not self._ignores_rest:
                self.send_400_response("Invalid HTTP request received.")

    def on_message_begin(self) -> None:
        """A request begins: the one whose head was looked at, or one that was sent before its answer."""
        if not self._is_in_body:
            # Nobody has looked at this head. The client asks again on another connection.
            self._ignores_rest = True
            self.cycle.keep_alive = False
            if self.cycle.response_complete:
                self.transport.close()
            raise httptools.HttpParserError("a request before the answer to the last")
        super().on_message_begin()

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
        if self._is_in_body and not self.transport.is_closing():
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

    def _taken_head(self, data: bytes) -> bytes | None:
        """The head, and what came with it, once it is complete."""
        if not self._head and self._head_timer is None:
            self._await_head()
        searched = max(0, len(self._head) - 3)
        self._head += data
        end = _HEAD_END.search(self._head, searched)
        if (end.end() if end else len(self._head)) > self._settings.max_head_bytes:
            line_end = self._head.find(b"\n")
            if line_end < 0 or line_end > self._settings.max_head_bytes:
                self._refuse(b"414 URI Too Long")
            else:
                self._refuse(b"431 Request Header Fields Too Large")
            return None
        if end is None:
            return None
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
        self._is_in_body = True
        self._swallowed = 0
        head, rest = bytes(self._head[: end.end()]), bytes(self._head[end.end() :])
        self._head.clear()
        return _UPGRADE.sub(b"", head) + rest

    def _await_head(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
        self._head_timer = self.loop.call_later(self._settings.head_seconds, self.transport.close)

    def _refuse(self, status: bytes) -> None:
        self._ignores_rest = True
        self.transport.write(b"HTTP/1.1 " + status + b"\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
        self.transport.close()
