"""The short way of small appends: most requests, and those that a writer waits for.

A small upload that comes in one piece is checked here, in the event loop, and handed to the writer of the log: no
thread takes it over, no route is looked for, no parameter converted. Whatever is out of the ordinary, an error above
all, goes the long way to the route, which says it as it does for all: nothing was written then.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Final

from fastapi import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.conditions import precondition_of, tag
from api.errors import Refusal, answer_library
from api.service import Service
from api.tracing import tell_route
from patchlog.errors import PatchLogError, StorageError
from patchlog.formats import JELLY_PATCH, RDF_PATCH
from patchlog.log.contract import PatchFormat
from patchlog.log.documents import appended_document
from patchlog.log.records import ANY_HEAD, Appended, ExpectedHead

__all__ = ["MOST_BYTES", "SmallAppends"]

MOST_BYTES: Final = 16 << 10
"""The event loop is held up by a body for about a millisecond at most."""

_PATH: Final = re.compile(r"/logs/([A-Za-z0-9_][A-Za-z0-9_.-]{0,99})/patches")
_to_json: Final = json.JSONEncoder(separators=(",", ":")).encode
_ROUTE: Final = SimpleNamespace(path="/logs/{log}/patches")
"""By which requests are counted."""

_FORMATS: Final[dict[bytes, PatchFormat]] = {
    JELLY_PATCH.media_types[0].encode(): "jelly-patch",
    RDF_PATCH.media_types[0].encode(): "rdf-patch",
}
_OUT_OF_THE_ORDINARY: Final = frozenset({b"content-encoding", b"transfer-encoding", b"expect", b"if-none-match"})


@dataclass(slots=True)
class _Plain:
    """An append that may go the short way."""

    log: str
    format: PatchFormat
    has_precondition: bool
    authorization: str


class SmallAppends:
    """Middleware of ASGI."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        plain = _plain(scope)
        if plain is None:
            await self._app(scope, receive, send)
            return
        received = await receive()
        if received["type"] == "http.request" and not received.get("more_body"):
            request = Request(scope)
            service: Service = scope["app"].state.service
            try:
                appended = await _appended(service, request, plain, received["body"])
            except StorageError as error:
                # It may be in the log in spite of this, and a patch without an id would be appended once more.
                scope["route"] = _ROUTE
                response = await answer_library(request, error)
                await response(scope, receive, send)
                return
            if appended is not None:
                scope["route"] = _ROUTE
                tell_route("POST", _ROUTE.path)
                service.count_append(plain.log, appended)
                service.metrics.received_bytes.inc(len(received["body"]))
                await _answer(send, plain.log, appended)
                return
        await self._app(scope, _after(received, receive), send)


async def _appended(service: Service, request: Request, plain: _Plain, body: bytes) -> Appended | None:
    """Append; None where the request has to go the long way. Raises StorageError."""
    try:
        await service.access.check(plain.authorization, "append", plain.log)
        expected_head: ExpectedHead = ANY_HEAD
        if plain.has_precondition:
            ids = precondition_of(request).ids
            if len(ids) != 1:
                return None
            expected_head = ids[0]
        upload = service.log(plain.log).stage_at_once(plain.format)
        if upload is None:
            return None
        upload.write(body)
        upload.finish()
        return await service.rounds.append(upload, expected_head)
    except StorageError:
        raise
    except (PatchLogError, Refusal):
        return None


def _plain(scope: Scope) -> _Plain | None:
    if scope["type"] != "http" or scope["method"] != "POST" or scope["query_string"]:
        return None
    found = _PATH.fullmatch(scope["path"])
    if found is None:
        return None
    format: PatchFormat | None = None
    length = b""
    has_precondition = False
    authorization = ""
    for name, value in scope["headers"]:
        if name == b"content-type":
            format = _FORMATS.get(value)
        elif name == b"content-length":
            length = value
        elif name == b"if-match":
            has_precondition = True
        elif name == b"authorization":
            authorization = value.decode("latin-1")
        elif name in _OUT_OF_THE_ORDINARY:
            return None
    if format is None or not length.isdigit() or int(length) > MOST_BYTES:
        return None
    return _Plain(found[1], format, has_precondition, authorization)


async def _answer(send: Send, log: str, appended: Appended) -> None:
    body = _to_json(appended_document(appended)).encode()
    headers = [
        (b"content-length", b"%d" % len(body)),
        (b"content-type", b"application/json"),
        (b"location", f"/logs/{log}/patches/{appended.version}".encode()),
        (b"etag", tag(appended.id).encode()),
    ]
    await send({"type": "http.response.start", "status": 200 if appended.is_retry else 201, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _after(first: Message, receive: Receive) -> Receive:
    """What gives a message that was received already, and then those that come."""
    waiting = [first]

    async def receive_next() -> Message:
        return waiting.pop() if waiting else await receive()

    return receive_next
