"""The audit log: each request that changes something, or was to: who, what, on which log, from where, with what result.

A line is a JSON object. It holds no key, no header and no query, and of a body nothing but what is written here:

    time  principal  name  door  address  action  log  first_version  version  outcome  status  problem  request

`outcome` is done, begun, refused or failed. Over HTTP the action is the name of the request in /openapi.json.

Of requests without a key that is known, the first of each minute are written, and how many more there were: else
strangers could have all that matters rotated away.
"""

from __future__ import annotations

import json
import logging
import math
import os
import time
from contextvars import ContextVar
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, Final

from api.principal import Principal
from api.settings import Settings
from patchlog.errors import UsageError
from patchlog.log.records import Appended

__all__ = ["Audit", "note", "note_read", "noted", "versions"]

_LOG: Final = logging.getLogger("patchlog.audit")
_MOST_CHARACTERS: Final = 200
_MOST_OF_STRANGERS: Final = 10
"""Lines a minute."""
_MINUTE_SECONDS: Final = 60.0
_READ: Final = "is_read"

_current: ContextVar[dict[str, Any] | None] = ContextVar("audit", default=None)
"""What is known of the request that this task handles, if it may change something."""


def note(**fields: Any) -> None:
    """Say more of the change that is being made."""
    entry = _current.get()
    if entry is not None:
        entry.update(fields)


def noted() -> dict[str, Any]:
    """What is known of the change that is being made."""
    return dict(_current.get() or {})


def note_read() -> None:
    """Say that the request changes nothing, though its method may."""
    note(**{_READ: True})


class _PrivateFile(RotatingFileHandler):
    """A file that nobody else may read: it says who works on what."""

    def _open(self) -> TextIOWrapper:
        opened = open(self.baseFilename, self.mode, encoding=self.encoding, opener=_private)  # noqa: SIM115
        assert isinstance(opened, TextIOWrapper)
        return opened


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class Audit:
    """Where changes are written, if anywhere."""

    def __init__(self, settings: Settings) -> None:
        """Raises UsageError where the file cannot be opened."""
        where = settings.audit_log
        if where == "auto":
            where = "log" if settings.needs_keys else "off"
        self.is_on: Final = where != "off"
        self._handler: logging.Handler | None = None
        self._minute_begun = -math.inf
        self._strangers = 0
        """Requests without a key in this minute."""
        if where not in ("off", "log"):
            self._handler = _file(Path(where), settings)

    def begin(self, door: str, address: str | None) -> dict[str, Any]:
        """Begin the entry of a request, of which this task may say more."""
        entry: dict[str, Any] = {"door": door, "address": address}
        _current.set(entry)
        return entry

    def end(self, entry: dict[str, Any], principal: Principal | None, status: int) -> None:
        """Write an entry. The status is that of HTTP; 0 where there was no answer."""
        _current.set(None)
        if not entry.pop(_READ, False) or status in (401, 403):
            if principal is None and self._are_too_many_strangers():
                return
            self.write(principal, **entry, outcome=_outcome(status), status=status)

    def _are_too_many_strangers(self) -> bool:
        """Count a request without a key, and say whether there were too many in this minute to be written."""
        now = time.monotonic()
        if now - self._minute_begun >= _MINUTE_SECONDS:
            self._write_left_out()
            self._minute_begun, self._strangers = now, 0
        self._strangers += 1
        return self._strangers > _MOST_OF_STRANGERS

    def _write_left_out(self) -> None:
        if self._strangers > _MOST_OF_STRANGERS:
            self.write(None, action="left_out", requests=self._strangers - _MOST_OF_STRANGERS, outcome="refused")

    def append(
        self, principal: Principal, address: str | None, log: str, appended: Appended | None, status: int, request: str
    ) -> None:
        """Write of an append that took the fast path."""
        self.write(
            principal,
            door="http",
            address=address,
            action="append_patches",
            log=log,
            **({} if appended is None else versions(appended)),
            outcome=_outcome(status),
            status=status,
            request=request,
        )

    def write(self, principal: Principal | None, **fields: Any) -> None:
        """Write a line."""
        if not self.is_on:
            return
        who = {"principal": None if principal is None else principal.id}
        if principal is not None and principal.name:
            who["name"] = principal.name
        known = {name: _short(value) for name, value in fields.items() if value is not None}
        if self._handler is None:
            record = logging.LogRecord(_LOG.name, logging.INFO, __file__, 0, "change", (), None)
            record.each = [who | known]
            _LOG.handle(record)
            return
        seconds = time.time()
        stamp = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{int(seconds % 1 * 1000):03}Z"
        line = json.dumps({"time": stamp} | who | known)
        self._handler.handle(logging.LogRecord(_LOG.name, logging.INFO, __file__, 0, line, (), None))

    def close(self) -> None:
        """Close the file."""
        self._write_left_out()
        if self._handler is not None:
            self._handler.close()


def versions(appended: Appended) -> dict[str, int]:
    """What an entry says of an append."""
    return {"first_version": appended.first_version, "version": appended.version}


def _file(path: Path, settings: Settings) -> logging.Handler:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handler = _PrivateFile(
            path, maxBytes=settings.audit_log_bytes, backupCount=settings.audit_log_files, encoding="utf-8"
        )
    except OSError as error:
        raise UsageError(f"the audit log {path} cannot be opened: {error.strerror}") from error
    handler.setFormatter(logging.Formatter("%(message)s"))
    return handler


def _outcome(status: int) -> str:
    if status == 202:
        return "begun"
    if status == 0 or status >= 500:
        return "failed"
    return "done" if status < 400 else "refused"


def _short(value: Any) -> Any:
    return value[:_MOST_CHARACTERS] if isinstance(value, str) else value
