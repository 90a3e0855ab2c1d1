"""Around each request: an id, a line in the log, metrics; and the end of answers that fail half way."""

from __future__ import annotations

import json
import logging
import re
import secrets
import sys
import time
from asyncio import CancelledError, get_running_loop
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import count
from json.encoder import encode_basestring_ascii
from typing import Any, Final

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import answer_to
from api.metrics import Metrics
from patchlog.errors import PatchLogError, StorageError

__all__ = [
    "BEGUN",
    "EXCHANGE",
    "QUIET",
    "Exchange",
    "JsonLines",
    "PlainLines",
    "Telemetry",
    "log_to_stderr",
    "tell_all",
]

_LOG: Final = logging.getLogger("patchlog.request")
_GIVEN_ID: Final = re.compile(rb"[A-Za-z0-9._-]{1,64}")
QUIET: Final = frozenset({"/healthz", "/readyz", "/metrics"})
"""Paths that are asked for all the time, and of which nothing is told."""
_NO_ROUTE: Final = "none"
BEGUN: Final = "patchlog.begun"
"""In the state of a scope: when the request came, where that was noticed before."""
EXCHANGE: Final = "patchlog.exchange"
"""In a scope: what is known of the request."""
# Not all that JSON takes as it is ends up whole in a line: some readers end lines at U+2028 and U+0085, and terminals
# obey others. So what clients have sent is written in ASCII.
_to_json: Final = json.JSONEncoder().encode

# To ask the system for random numbers at each request takes longer than all else here.
_PROCESS: Final = secrets.token_hex(8).encode()
_NUMBERS: Final = count(1)


class Telemetry:
    """Middleware of ASGI. Takes `X-Request-Id` from a proxy, or makes one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given_ids = [value.strip() for name, value in scope["headers"] if name == b"x-request-id"]
        exchange = Exchange(scope["method"], scope["path"], scope.get("client"), given_ids)
        exchange.begun = scope.get("state", {}).get(BEGUN, exchange.begun)
        scope[EXCHANGE] = exchange

        service = getattr(scope["app"].state, "service", None)

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                exchange.begin_answer(message["status"])
                message["headers"] = [*message["headers"], exchange.id_header]
            else:
                exchange.sent_bytes += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, send_on)
        except (PatchLogError, ClientDisconnect) as error:
            # The status has been sent. The server closes the connection without the end of the body.
            exchange.failure = f"{type(error).__name__}: {error}"
        except RuntimeError as error:
            if not isinstance(error.__cause__, PatchLogError):
                raise
            exchange.failure = f"{type(error.__cause__).__name__}: {error.__cause__}"
        except CancelledError:
            if service is None or not service.is_stopping:
                raise
            exchange.failure = "the service stopped before it was done"
            if not exchange.status:
                answer = answer_to(StorageError("the service is stopping", is_transient=True))
                answer.headers["connection"] = "close"
                await answer(scope, receive, send_on)
        finally:
            exchange.tell(service and service.metrics, getattr(scope.get("route"), "path", _NO_ROUTE))


class Exchange:
    """A request with its answer, of which is told what it was and how long it took."""

    def __init__(self, method: str, path: str, client: tuple[str, int] | None, given_ids: Sequence[bytes] = ()) -> None:
        self.begun = time.perf_counter()
        self.sent_bytes = 0
        self.failure: str | None = None
        self.principal: str | None = None
        """The id of who makes it, where keys are asked for."""
        self._method = method
        self._path = path
        self._client = client
        self._answered: float | None = None
        self._ended: float | None = None
        self._status = 0
        given = next(filter(_GIVEN_ID.fullmatch, given_ids), None) if given_ids else None
        self._id = given or b"%b%016x" % (_PROCESS, next(_NUMBERS))

    @property
    def id(self) -> str:
        """By which the client and the logs speak of it."""
        return self._id.decode()

    @property
    def id_header(self) -> tuple[bytes, bytes]:
        """By which the client and the log speak of it."""
        return b"x-request-id", self._id

    def begin_answer(self, status: int) -> None:
        """Take notice that the answer begins."""
        self._answered = time.perf_counter()
        self._status = status

    def answer(self, status: int, size: int) -> None:
        """Take notice of a whole answer, with a body of so many bytes."""
        self.begin_answer(status)
        self.sent_bytes = size
        self._ended = self._answered

    def tell(self, metrics: Metrics | None, route: str) -> None:
        """Log and count it, now that it is over."""
        tell_all([self], metrics, route)

    @property
    def status(self) -> int:
        """Of the answer; 0 before it begins."""
        return self._status

    @property
    def kind(self) -> tuple[str, int]:
        """Method and status."""
        return self._method, self._status

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is logged of it."""
        return self._path in QUIET

    def seconds(self, now: float) -> float:
        """The time until the answer began."""
        return (self._answered or now) - self.begun

    def fields(self, now: float) -> dict[str, Any]:
        """What is logged of it."""
        fields = {
            "request": self.id,
            "client": self._client[0] if self._client else None,
            "method": self._method,
            "path": self._path,
            "status": self._status,
            "milliseconds": round(((self._ended or now) - self.begun) * 1000, 2),
            "bytes": self.sent_bytes,
        }
        if self.principal is not None:
            fields["principal"] = self.principal
        if self.failure is not None:
            fields["failure"] = self.failure
        return fields


def tell_all(exchanges: Sequence[Exchange], metrics: Metrics | None, route: str) -> None:
    """Log and count exchanges that are over: together in a fraction of the time."""
    now = time.perf_counter()
    if metrics is not None:
        for kind in {exchange.kind for exchange in exchanges}:
            alike = [exchange for exchange in exchanges if exchange.kind == kind]
            seconds = [exchange.seconds(now) for exchange in alike]
            metrics.count_requests(kind, route, seconds, sum([exchange.sent_bytes for exchange in alike]))
    if not _LOG.isEnabledFor(logging.INFO):
        return
    if told := [exchange.fields(now) for exchange in exchanges if not exchange.is_quiet]:
        record = logging.LogRecord(_LOG.name, logging.INFO, __file__, 0, "request", (), None)
        record.each = told
        _LOG.handle(record)  # who calls is known, and need not be looked for on the stack


class JsonLines(logging.Formatter):
    """A JSON object a line."""

    def __init__(self) -> None:
        super().__init__()
        self._second, self._in_words = 0, ""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record."""
        second = int(record.created)
        if second != self._second:
            self._second, self._in_words = second, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        line: dict[str, Any] = {
            "time": f"{self._in_words}.{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        begin = _members(line)
        each: Sequence[dict[str, Any]] = getattr(record, "each", ())
        return "\n".join([f"{{{begin}, {_members(fields)}}}" for fields in each]) or f"{{{begin}}}"


def _members(values: dict[str, Any]) -> str:
    """The members of an object of JSON, without its braces."""
    return ", ".join([f'"{name}": {_in_json(value)}' for name, value in values.items()])


def _in_json(value: object) -> str:
    """A value of a line. To set up an encoder for each line takes longer than all else here."""
    if isinstance(value, str):
        return encode_basestring_ascii(value)
    return repr(value) if type(value) in (int, float) else _to_json(value)


class PlainLines(logging.Formatter):
    """A line for people. What clients have sent is escaped, as a terminal obeys some characters."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record."""
        each: Sequence[dict[str, Any]] = getattr(record, "each", ())
        return "\n".join([self._line(record, _of_request(fields)) for fields in each]) or self._line(
            record, record.getMessage()
        )

    def _line(self, record: logging.LogRecord, said: str) -> str:
        level = "" if record.levelno == logging.INFO else f"{record.levelname.lower()}: "
        line = f"{self.formatTime(record, '%H:%M:%S')}  {level}{said.encode('unicode_escape').decode()}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _of_request(fields: dict[str, Any]) -> str:
    if "action" in fields:
        return f"{fields['principal']} {fields['action']} {fields.get('log', '')}: {fields['outcome']}"
    said = f"{fields['method']} {fields['path']} {fields['status']}, {fields['milliseconds']} ms"
    return f"{said}: {fields['failure']}" if "failure" in fields else said


class _Stderr(logging.Handler):
    """Writes what the event loop logs in one of its rounds at once: each write costs more than its line."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._lines.append(f"{self.format(record)}\n")
            if len(self._lines) == 1:
                get_running_loop().call_soon(self.flush)
        except RuntimeError:  # outside of a loop
            self.flush()
        except Exception:  # noqa: BLE001  logging's own way with what cannot be logged
            self.handleError(record)

    def flush(self) -> None:
        with self.lock or nullcontext():
            lines, self._lines = self._lines, []
            if lines:
                sys.stderr.write("".join(lines))
                sys.stderr.flush()


def log_to_stderr(level: str) -> None:
    """Write all that is logged to standard error: as JSON, and plainly where that is a terminal."""
    # Nothing here asks which thread or process it was, and to find out takes time.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    handler = _Stderr()
    handler.setFormatter(PlainLines() if sys.stderr.isatty() else JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
