"""What can be asked about the logs of a service, and what the answers mean."""

from __future__ import annotations

from dataclasses import asdict
from http import HTTPStatus
from typing import Final

from patchlog.client.exchange import Exchange, Request, asked
from patchlog.client.problems import read_answer
from patchlog.errors import LogAlreadyExists
from patchlog.log.documents import read_description
from patchlog.log.records import LogDescription, LogOptions, check_log_name

__all__ = ["create", "delete", "list_logs"]

_PAGE: Final = 1000


def create(name: str, options: LogOptions) -> Exchange[LogDescription]:
    """Create an empty log."""
    path = f"/logs/{check_log_name(name)}"
    response = yield from asked(Request("PUT", path, json=asdict(options), is_repeatable=False))
    if response.status_code != HTTPStatus.CREATED:
        raise LogAlreadyExists(f"there is a log {name!r} already")
    return read_answer(response, read_description)


def list_logs(after: str, limit: int | None) -> Exchange[list[LogDescription]]:
    """Describe the logs, in the order of their names."""
    found: list[LogDescription] = []
    while limit is None or len(found) < limit:
        size = _PAGE if limit is None else min(_PAGE, limit - len(found))
        response = yield from asked(Request("GET", "/logs", params={"after": after, "limit": size}))
        logs, following = read_answer(
            response, lambda page: ([read_description(document) for document in page["logs"]], page["next"])
        )
        found += logs
        if following is None or not logs:
            break
        after = logs[-1].name
    return found


def delete(name: str) -> Exchange[None]:
    """Delete a log and all of its patches."""
    path = f"/logs/{check_log_name(name)}"
    yield from asked(Request("DELETE", path, json={"delete": name}, is_repeatable=False))
