"""RDF Delta's remote calls: `POST $/rpc` with `{"opid": …, "operation": …, "arg": {…}}`."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Final, TypeAlias

from fastapi import Request

from api.access import principal_of
from api.audit import note, note_read
from api.errors import Problem, Refusal
from api.keys import Right
from api.rdf_delta.clients import client_of
from api.rdf_delta.documents import BAD_REQUEST, Source, log_document, parse_id, source_document
from api.rdf_delta.door import NOT_FOUND, Door
from patchlog.errors import HeadMismatch, LogNotFound
from patchlog.log.records import ANY_HEAD, ExpectedHead

__all__ = ["OPERATIONS", "answer_call"]

Arguments: TypeAlias = Mapping[str, Any]
_NO_TEXT: Final = re.compile("[\0\ud800-\udfff]")
_Operation: TypeAlias = Callable[[Door, Request, Arguments], Awaitable[dict[str, Any]]]


async def answer_call(door: Door, request: Request) -> dict[str, Any]:
    """Do what a request asks for. Raises Refusal."""
    try:
        call = json.loads(await request.body())
    except (ValueError, RecursionError) as error:
        raise Refusal(BAD_REQUEST, f"the body is not JSON: {error}") from None
    if not isinstance(call, dict):
        raise Refusal(BAD_REQUEST, "a call is a JSON object")
    operation, arguments = call.get("operation"), call.get("arg")
    if not isinstance(operation, str) or not isinstance(call.get("opid"), str) or not isinstance(arguments, dict):
        raise Refusal(BAD_REQUEST, "a call has 'operation' and 'opid', which are strings, and 'arg', an object")
    do = OPERATIONS.get(operation)
    if do is None:
        raise Refusal(BAD_REQUEST, f"there is no operation {operation!r}; there are {', '.join(OPERATIONS)}")
    note(action=operation)
    if operation not in _CHANGES:
        note_read()
    return await do(door, request, arguments)


async def ping(door: Door, request: Request, arguments: Arguments) -> dict[str, Any]:
    """Say what time it is."""
    del door, request, arguments
    return {"value": datetime.now().astimezone().isoformat(timespec="milliseconds")}


async def _list_datasource(door: Door, request: Request, arguments: Arguments) -> dict[str, Any]:
    del arguments
    return {"array": [source.log.id for source in await _readable(door, request)]}


async def _list_descriptions(door: Door, request: Request, arguments: Arguments) -> dict[str, Any]:
    del arguments
    return {"array": [source_document(source) for source in await _readable(door, request)]}


async def _list_log_info(door: Door, request: Request, arguments: Arguments) -> dict[str, Any]:
    del arguments
    return {"array": [log_document(source) for source in await _readable(door, request)]}


async def _describe_datasource(door: Door, request: Request, arguments: Arguments) -> dict[str, Any]:
    if "datasource" in arguments:
        source = await door.source(request, "read", parse_id(arguments["datasource"]))
    elif "name" in arguments:
        source = await door.source_named(request, "read", _text(arguments, "name"))
    elif "uri" in arguments:
        source = await door.source_with_uri(request, "read", _text(arguments, "uri"))
    else:
        raise Refusal(BAD_REQUEST, "describe_datasource wants 'datasource' (an id), 'name' or 'uri'")
    return {} if source is None else source_document(source)


async def _describe_log(door: Door, request: Request, arguments: Arguments) -> dict[str, Any]:
    source = await _wanted(door, request, arguments, "read")
    await door.positions.looked(source.log, await client_of(request))
    return log_document(source)


async def _create_datasource(door: Door, request: Request, arguments: Arguments) -> dict[str, Any]:
    name = _text(arguments, "name")
    uri = None if arguments.get("uri") is None else _text(arguments, "uri")
    note(log=name)
    await door.check_all(request, "admin")
    return {"id": (await door.service.commit(lambda: door.sources.create(name, uri))).log.id}


async def _copy_datasource(door: Door, request: Request, arguments: Arguments) -> dict[str, Any]:
    source, destination = await _copied(door, request, arguments)
    return {"id": (await _copy(door, request, source, destination)).log.id}


async def _rename_datasource(door: Door, request: Request, arguments: Arguments) -> dict[str, Any]:
    source, destination = await _copied(door, request, arguments)
    copied = await _copy(door, request, source, destination)
    try:
        await _remove(door, source, copied.log.head.id)
    except HeadMismatch:
        await _remove(door, copied)
        raise Refusal(
            BAD_REQUEST,
            f"the log {source.log.name!r} was written to meanwhile, and keeps its name: try again",
        ) from None
    return {"id": copied.log.id}


async def _remove_datasource(door: Door, request: Request, arguments: Arguments) -> dict[str, Any]:
    source = await door.source(request, "admin", parse_id(_argument(arguments, "datasource")))
    if source is not None:
        await _remove(door, source)
    return {}


async def _lock(door: Door, request: Request, arguments: Arguments) -> dict[str, Any]:
    source = await _wanted(door, request, arguments, "append")
    return {"lock-ref": door.locks.lock(source.log.id, await client_of(request))}


async def _lock_read(door: Door, request: Request, arguments: Arguments) -> dict[str, Any]:
    held = door.locks.read(await _locked(door, request, arguments, "read"))
    return {} if held is None else {"lock-ref": held.ref, "lock-ticks": held.ticks}


async def _lock_refresh(door: Door, request: Request, arguments: Arguments) -> dict[str, Any]:
    asked = arguments.get("array")
    if not isinstance(asked, list) or not all(isinstance(one, dict) for one in asked):
        raise Refusal(BAD_REQUEST, "lock-refresh wants 'array', of objects with 'datasource' and 'lock-ref'")
    lost = []
    for one in asked:
        id = parse_id(_argument(one, "datasource"))
        await door.source(request, "append", id)
        if not door.locks.refresh(id, str(one.get("lock-ref"))):
            lost.append(one)
    return {"array": lost}


async def _lock_grab(door: Door, request: Request, arguments: Arguments) -> dict[str, Any]:
    id = await _locked(door, request, arguments, "append")
    return {"lock-ref": door.locks.grab(id, str(arguments.get("lock-ref")), await client_of(request))}


async def _unlock(door: Door, request: Request, arguments: Arguments) -> dict[str, Any]:
    id = await _locked(door, request, arguments, "append")
    door.locks.unlock(id, str(arguments.get("lock-ref")))
    return {}


async def _copy(door: Door, request: Request, source: Source, name: str) -> Source:
    jobs, pool = door.service.jobs, door.service.builds
    return await jobs.do(
        pool, "copy", source.log.name, lambda job: door.sources.copy(source, name, job.progress), request
    )


async def _remove(door: Door, source: Source, expected_head: ExpectedHead = ANY_HEAD) -> None:
    with suppress(LogNotFound):
        await door.service.delete(source.log.name, expected_head)
    door.sources.forget(source)
    door.locks.break_lock(source.log.id)


async def _readable(door: Door, request: Request) -> list[Source]:
    principal = await principal_of(request)
    found = await door.service.stream(lambda: list(door.sources.all()))
    return [source for source in found if principal.allows("read", source.log.name)]


async def _wanted(
    door: Door, request: Request, arguments: Arguments, right: Right, unknown: Problem = NOT_FOUND
) -> Source:
    id = parse_id(_argument(arguments, "datasource"))
    source = await door.source(request, right, id)
    if source is None:
        raise Refusal(unknown, f"there is no log with the id {id}")
    return source


async def _locked(door: Door, request: Request, arguments: Arguments, right: Right) -> str:
    """The id of a log that may be locked. One that is gone is not, and who lets go of its lock need not know."""
    id = parse_id(_argument(arguments, "datasource"))
    await door.source(request, right, id)
    return id


async def _copied(door: Door, request: Request, arguments: Arguments) -> tuple[Source, str]:
    await door.check_all(request, "admin")
    source, name, destination = (
        await _wanted(door, request, arguments, "admin", unknown=BAD_REQUEST),
        _text(arguments, "src"),
        _text(arguments, "dst"),
    )
    if source.log.name != name:
        raise Refusal(BAD_REQUEST, f"the log {source.log.id} is named {source.log.name!r}, and not {name!r}")
    return source, destination


def _argument(arguments: Arguments, name: str) -> object:
    if name not in arguments:
        raise Refusal(BAD_REQUEST, f"the argument {name!r} is missing")
    return arguments[name]


def _text(arguments: Arguments, name: str) -> str:
    value = _argument(arguments, name)
    if not isinstance(value, str):
        raise Refusal(BAD_REQUEST, f"the argument {name!r} is a string, and not {value!r}")
    # JSON can write halves of characters, which have no bytes, and PostgreSQL keeps no NUL.
    if _NO_TEXT.search(value):
        raise Refusal(BAD_REQUEST, f"the argument {name!r} holds what is no character of a text: {value[:100]!r}")
    return value


_CHANGES: Final = frozenset({"create_datasource", "copy_datasource", "rename_datasource", "remove_datasource"})
"""Those that the audit log has: locks are advisory, and change nothing."""

OPERATIONS: Final[Mapping[str, _Operation]] = {
    "ping": ping,
    "list_datasource": _list_datasource,
    "list_descriptions": _list_descriptions,
    "list_log_info": _list_log_info,
    "describe_datasource": _describe_datasource,
    "describe_log": _describe_log,
    "create_datasource": _create_datasource,
    "copy_datasource": _copy_datasource,
    "rename_datasource": _rename_datasource,
    "remove_datasource": _remove_datasource,
    "lock": _lock,
    "lock-read": _lock_read,
    "lock-refresh": _lock_refresh,
    "lock-grab": _lock_grab,
    "unlock": _unlock,
}
