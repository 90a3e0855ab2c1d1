"""RDF Delta's paths. docs/rdf-delta.md says where this service does otherwise, and why."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote

from fastapi import Request, Response
from starlette.routing import Route

from api.access import check_right, principal_of
from api.answers import Outgoing, answer_patches
from api.audit import note, note_read
from api.bodies import batches_of
from api.conditions import tag
from api.errors import NO_PATCH, PROBLEMS, Refusal
from api.keys import Right
from api.negotiation import JELLY_PATCHES, PATCH_TEXT, coding_of_body
from api.principal import Principal
from api.rdf_delta.clients import client_of
from api.rdf_delta.documents import BAD_REQUEST, log_document
from api.rdf_delta.door import Door, door_of
from api.rdf_delta.port import PREFIX, asked_path, is_on_own_port
from api.rdf_delta.rpc import answer_call, ping
from api.rdf_delta.text import DeltaText
from api.routes.append import take_upload
from api.routes.snapshots import read_snapshot
from api.routes.system import metrics
from api.section import Section
from api.service import Service
from api.small_appends import MOST_BYTES
from patchlog.codec.ingest import IngestedPatch
from patchlog.codec.patch_ids import PatchId
from patchlog.errors import HeadMismatch, LogNotFound, PatchAlreadyExists, PositionGone, UsageError
from patchlog.log.contract import PatchFormat, PatchLog, StagingPatchLog, Upload
from patchlog.log.records import ANY_HEAD, Appended, ExpectedHead, LogDescription, LoggedPatch
from patchlog.log.reservation import Steps

__all__ = ["ROUTES"]

_logger: Final = logging.getLogger("patchlog.service")

_READ: Final = ["GET", "POST"]
_ALL: Final = ["GET", "POST", "PATCH"]
_VERSION: Final = "ver:"
_NO_ID: Final = "the patch has no id: begin it with H id <uuid:…> ."
_UNCACHED: Final = {"Cache-Control": "no-cache"}


async def _ping(request: Request) -> Response:
    note_read()
    return _json(await ping(door_of(request), request, {}), headers=_UNCACHED)


async def _rpc(request: Request) -> Response:
    return _json(await answer_call(door_of(request), request))


async def _too_long(request: Request) -> Response:
    door = door_of(request)
    principal = await principal_of(request)
    await door.run(lambda: door.log(principal, "read", request.path_params["source"]))
    raise Refusal(BAD_REQUEST, f"{request.url.path} has too many parts: write LOG, LOG/VERSION or LOG/ID")


async def _source(request: Request) -> Response:
    door = door_of(request)
    principal = await principal_of(request)
    source, patch = request.path_params["source"], request.path_params.get("patch", "")
    asked = (patch, request.query_params.get("patch", ""), request.query_params.get("version", ""))
    wanted = next((found for text in asked if (found := _patch_of(text.removeprefix(_VERSION))) is not None), None)
    if wanted is not None:
        note_read()
        return await _fetch(door, request, principal, source, wanted)
    right: Right = "read" if request.method == "GET" else "append"
    note(action="append_patches", log=source)
    log = await door.run(lambda: door.log(principal, right, source))
    if request.method == "GET":
        raise Refusal(BAD_REQUEST, f"{asked_path(request)} says neither which patch to fetch, nor to append one")
    return await _append(door, request, log)


def _patch_of(text: str) -> str | int | None:
    """The id or version that a text is. Ids are written as RDF Delta's answers and patches write them, too."""
    if text.isascii() and text.isdigit():
        return int(text[:30])
    text = text.removeprefix("urn:").removeprefix("uuid:").removeprefix("id:")
    if len(text) != 36:
        return None
    try:
        return str(uuid.UUID(text))
    except ValueError:
        return None


async def _fetch(door: Door, request: Request, principal: Principal, source: str, wanted: str | int) -> Response:
    def found() -> tuple[LogDescription, LoggedPatch | None, Outgoing | None]:
        described = door.log(principal, "read", source)
        request.path_params["log"] = described.name  # for what says where the snapshots are
        log = door.service.log(described.name)
        version = _version_of(log, described, wanted)
        if version is None:
            return described, None, None
        [logged] = log.read(version - 1, limit=1)
        return described, logged, Outgoing.of(log, [logged], 1, None, is_alone=True)

    # All in one thread, as it takes longer to go to another than to read a small patch.
    try:
        described, logged, outgoing = await door.run(found)
    except PositionGone as error:
        await _lose_lock(door, request, request.path_params["log"])
        if is_on_own_port(request):
            raise _gone(error, source) from None
        raise
    name = described.name
    if logged is None or outgoing is None:
        raise Refusal(NO_PATCH, f"the log {name!r} has no patch {wanted}; its head is {described.head.version}")
    await door.positions.fetched(described, await client_of(request), logged.record.version)
    headers = {"ETag": tag(f"{logged.record.id}-text"), "Patchlog-Version": str(logged.record.version)}
    return answer_patches(door.service, request, outgoing, PATCH_TEXT, headers, outflow=DeltaText())


async def _lose_lock(door: Door, request: Request, name: str) -> None:
    """Take the lock from a client that lacks a patch that is gone: it can never write, and would keep it for ever."""
    log = await door.run(door.service.log(name).describe)
    if door.locks.break_lock(log.id, holder := await client_of(request)) is not None:
        _logger.warning("%s needs a patch of the log %r that is gone, and loses its lock", holder.name, log.name)


def _gone(error: PositionGone, source: str) -> Refusal:
    """The problem with a link to what there is at the same port."""
    snapshot = f"/init-data?datasource={quote(source)}"
    problem = replace(PROBLEMS[PositionGone], headers={"Link": f'<{snapshot}>; rel="alternate"'})
    return Refusal(problem, str(error), position=error.position, oldest_kept=error.oldest_kept, snapshot=snapshot)


def _version_of(log: PatchLog, described: LogDescription, wanted: str | int) -> int | None:
    if isinstance(wanted, int):
        return wanted if 1 <= wanted <= described.head.version else None
    record = log.find(wanted)
    return None if record is None else record.version


async def _append(door: Door, request: Request, log: LogDescription) -> Response:
    name = log.name
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    format: PatchFormat = "jelly-patch" if media_type in JELLY_PATCHES.media_types else "rdf-patch"
    service = door.service
    upload = _Upload()
    try:
        appended = await _taken_at_once(service, request, name, format, upload)
        if appended is None:
            appended = await take_upload(service, request, name, format, coding_of_body(request), upload.place)
    except HeadMismatch:
        return await _conflict(door, name)
    except PatchAlreadyExists as error:
        head = await door.run(service.log(name).head)
        if error.version == head.version or upload.prev == head.id:
            raise  # the id is used again for something new
        return await _conflict(door, name)
    # Only the head may be sent again: what came before it is a conflict for RDF Delta's clients.
    if appended.is_retry and (await door.run(service.log(name).head)).version != appended.version:
        return await _conflict(door, name)
    service.count_append(name, appended)
    await door.positions.appended(log, await client_of(request), appended.version)
    location = f"{asked_path(request)}?version={appended.version}"
    return _json({"version": appended.version, "location": location}, headers={"Location": location})


async def _conflict(door: Door, name: str) -> Response:
    """Say which head a patch has to follow."""
    now = await door.run(lambda: door.sources.named(name))
    if now is None:
        raise LogNotFound(f"the log {name!r} was deleted")
    return _json({"error": "patch-conflict", "log_info": log_document(now)}, 400)


class _Upload:
    """A patch on its way into a log. It says its id, and which patch it follows; without `prev` it is the first."""

    def __init__(self) -> None:
        self.prev: PatchId | None = None

    def place(self, log: StagingPatchLog, upload: Upload) -> Steps[Appended]:
        """Append what has come whole. Raises Refusal."""
        del log
        return upload.appending(self.expected_head(upload.finish()))

    def place_whole(self, log: StagingPatchLog, format: PatchFormat, body: bytes) -> Steps[Appended]:
        """Append a body. Raises Refusal."""
        with log.stage(format) as upload:
            upload.write(body)
            return (yield from self.place(log, upload))

    def expected_head(self, patches: Sequence[IngestedPatch]) -> ExpectedHead:
        """What the head has to be. Raises Refusal."""
        if not patches or any(patch.id is None for patch in patches):
            raise Refusal(BAD_REQUEST, _NO_ID)
        self.prev = patches[0].prev
        return None if self.prev is None else ANY_HEAD


async def _taken_at_once(
    service: Service, request: Request, name: str, format: PatchFormat, upload: _Upload
) -> Appended | None:
    """Take a small body as the native API does, without a thread of its own; None where it may be a large one."""
    length = request.headers.get("content-length", "")
    if not length.isdigit() or int(length) > MOST_BYTES or coding_of_body(request) is not None:
        return None
    chunks, _ = await anext(batches_of(request, service.settings))
    body = b"".join(chunks)
    service.metrics.received_bytes.inc(len(body))
    try:
        prepared = service.log(name).prepare(body, format)
    except UsageError:
        raise Refusal(BAD_REQUEST, _NO_ID) from None
    if prepared is None:
        return await service.append(upload.place_whole(service.log(name), format, body))
    prepared.expected_head = upload.expected_head(prepared.patches)
    return await service.rounds.append(prepared)


async def _initial_data(request: Request) -> Response:
    note_read()
    door = door_of(request)
    wanted = request.query_params.get("datasource", "").removeprefix("id:")
    if not wanted:
        raise Refusal(BAD_REQUEST, "of which log? Name it: init-data?datasource=ID")
    principal = await principal_of(request)
    log = await door.run(lambda: door.log(principal, "read", wanted))
    if request.headers.get("accept", "*/*") == "*/*":
        # Who has no wish gets what every RDF library reads.
        request = Request({**request.scope, "query_string": b"format=nq"}, request.receive)
    answer = await read_snapshot(request, log.name, "latest")
    if is_on_own_port(request):
        following = int(answer.headers["Patchlog-Version"]) + 1
        answer.headers["Link"] = f'</{log.name}/{following}>; rel="next"'
    return answer


def _json(document: dict[str, Any], status: int = 200, headers: dict[str, str] | None = None) -> Response:
    # RDF Delta's client compares this media type as a whole: no charset may follow.
    return Response(json.dumps(document, indent=2) + "\n", status, headers, "application/json")


async def _metrics(request: Request) -> Response:
    note_read()
    await check_right(request, "read", "*")
    return await metrics(request)


ROUTES: Final = Section(
    PREFIX,
    [
        Route(PREFIX + path, endpoint, methods=methods)
        for path, endpoint, methods in (
            ("", _ping, _READ),
            ("/", _ping, _READ),
            ("/$/ping", _ping, _READ),
            ("/$/rpc", _rpc, ["POST"]),
            ("/$/metrics", _metrics, _READ),
            ("/init-data", _initial_data, _READ),
            ("/{source}", _source, _ALL),
            ("/{source}/", _source, _ALL),
            ("/{source}/{patch}", _source, _ALL),
            ("/{source}/{patch}/", _source, _ALL),
            ("/{source}/{patch}/{rest:path}", _too_long, _ALL),
        )
    ],
)
