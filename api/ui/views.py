"""What pages show, as plain documents: the same for people (templates) and for programs (JSON). Blocks; for threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from itertools import islice
from typing import Any, Final

from api.access import readable_logs
from api.errors import NO_PATCH, Refusal
from api.keys import list_keys
from api.principal import Principal
from api.rdf_delta.documents import lock_document
from api.rdf_delta.locks import Locks
from api.ui.shown import MOST_ROWS, Shortener, plain, prefixes_of, rows_of, shown_rows
from patchlog.errors import LogNotFound, PositionGone
from patchlog.log.blame import LastChange, SubjectChange, known_after, subject_changes, term_of
from patchlog.log.contract import LogStore, PatchLog
from patchlog.log.database import Database
from patchlog.log.diff import diff
from patchlog.log.documents import (
    consumer_document,
    description_document,
    record_document,
    snapshot_document,
)
from patchlog.log.history import check_version, headers_of, operations_of, snapshot_operations
from patchlog.log.records import LogDescription, time_of
from patchlog.model import Quad, Term

__all__ = [
    "chart_of",
    "comparison_of",
    "history_of",
    "keys_of",
    "log_view",
    "logs_view",
    "patch_view",
]

_LOGS: Final = 100
_PAGE: Final = 50
_CHARTED: Final = 500
_WRITTEN_LATELY: Final = 5
"""Patches of each log whose headers say who writes to it; each is read for that."""


def logs_view(store: LogStore, principal: Principal, after: str = "") -> dict[str, Any]:
    """The logs that the principal may read, by pages: who writes to them, and how far behind their consumers are."""
    readable = readable_logs(store, principal, after, _LOGS + 1)
    rows = []
    for description in readable[:_LOGS]:
        # Between the list and the look at each of them a log may be deleted, or forget what is old.
        with suppress(LogNotFound, PositionGone):
            rows.append(_log_row(store.log(description.name), description))
    return {"logs": rows, "next": readable[_LOGS - 1].name if len(readable) > _LOGS else None}


def _log_row(log: PatchLog, description: LogDescription) -> dict[str, Any]:
    consumers = log.consumers.list()
    slowest = max(consumers, key=lambda one: one.lag_versions, default=None)
    lately = log.read(max(description.first_version, description.head.version - _WRITTEN_LATELY + 1) - 1)
    return description_document(description) | {
        "writers": _writers(headers_of(logged) for logged in lately),
        "consumers": len(consumers),
        "slowest": None if slowest is None else consumer_document(slowest),
    }


def _writers(headers: Iterable[dict[str, Term]]) -> list[str]:
    """Who patches say that they are from, each once, by name."""
    return sorted({plain(one["who"]) for one in headers if "who" in one})


def log_view(log: PatchLog, before: int | None, locks: Locks) -> dict[str, Any]:
    """A log: its versions from the newest on, a page at a time, its consumers, its lock and its snapshots."""
    description = log.describe()
    last = description.head.version if before is None else min(before - 1, description.head.version)
    first = max(description.first_version, last - _PAGE + 1)
    patches = log.read(first - 1, until=last) if last >= first else ()
    versions = [record_document(logged.record) | {"headers": headers_of(logged)} for logged in patches]
    lock = locks.read(description.id)
    return {
        "log": description_document(description),
        "lock": None if lock is None else lock_document(lock),
        "writers": _writers(version["headers"] for version in versions),
        "versions": versions[::-1],
        "older": first if first > description.first_version else None,
        "consumers": [consumer_document(consumer) for consumer in log.consumers.list()],
        "snapshots": [snapshot_document(snapshot) for snapshot in log.snapshots.list()][::-1],
    }


def _prefixes(log: PatchLog) -> dict[str, str]:
    """IRIs to prefixes, as far as the newest snapshot or else the first patch declares them."""
    snapshots = log.snapshots.list()
    try:
        if snapshots:
            return prefixes_of(snapshot_operations(log, snapshots[-1]))
        return prefixes_of(operations_of(log.read(0, limit=1)))
    except PositionGone:
        # Another process forgets what is old at this moment. Prefixes are for the eye alone.
        return {}


def chart_of(log: PatchLog) -> dict[str, Any]:
    """Adds and deletes of the newest patches, over time."""
    description = log.describe()
    after = max(description.first_version - 1, description.head.version - _CHARTED)
    records = [logged.record for logged in log.read(after)]
    return {
        "versions": [record.version for record in records],
        "seconds": [datetime.fromisoformat(record.time).timestamp() for record in records],
        "adds": [record.adds for record in records],
        "deletes": [record.deletes for record in records],
    }


def patch_view(log: PatchLog, version_or_id: int | str) -> dict[str, Any]:
    """A patch: what it does by graph, its headers, and its place in the chain of hashes."""
    record = log.find(version_or_id)
    head = log.head()
    if record is None:
        raise Refusal(NO_PATCH, f"the log {log.name!r} has no patch {version_or_id}; its head is {head.version}")
    before = log.find(record.version - 1) if record.version > 1 else None
    try:
        seen = rows_of(operations_of(log.read(record.version - 1, limit=1)))
        shown = shown_rows(seen, _prefixes(log)) | {"is_kept": True}
    except PositionGone:
        shown = {"graphs": [], "namespaces": [], "headers": [], "has_more": False, "text": "", "is_kept": False}
    return {
        "log": log.name,
        "patch": record_document(record),
        "before": None if before is None else record_document(before),
        "head": head.version,
        **shown,
    }


def comparison_of(log: PatchLog, from_version: int | None, to_version: int | None) -> dict[str, Any]:
    """What changed between two versions."""
    head = log.head().version
    to = head if to_version is None else to_version
    start = max(0, to - 1) if from_version is None else from_version
    for version in (start, to):
        check_version(log, version)
    shown = shown_rows(rows_of(diff(log, start, to)), _prefixes(log))
    return {"log": log.name, "head": head, "start": start, "to": to, **shown}


def history_of(log: PatchLog, subject: str | None) -> dict[str, Any]:
    """Which patch each quad of a subject came from, and what has come and gone, from the newest on."""
    last: dict[Quad, LastChange] = {}
    newest: deque[SubjectChange] = deque(maxlen=MOST_ROWS)
    count = 0
    for one in subject_changes(log, term_of(subject)) if subject else ():
        newest.appendleft(one)
        count += 1
        last.pop(one.change.quad, None)
        if one.is_added:
            last[one.change.quad] = one.change
    shortener = Shortener(_prefixes(log))
    return {
        "log": log.name,
        "subject": subject or "",
        "quads": [_shown_change(change, shortener) for change in islice(last.values(), MOST_ROWS)],
        "changes": [{"sign": "+" if one.is_added else "-"} | _shown_change(one.change, shortener) for one in newest],
        "has_more": max(count, len(last)) > MOST_ROWS,
        "known_after": known_after(log) if subject else 0,
    }


def _shown_change(change: LastChange, shortener: Shortener) -> dict[str, Any]:
    document = change.document()
    short = {place: shortener.short(document[place]) for place in ("subject", "predicate", "object", "graph")}
    return document | {"short": short, "version_text": change.version_text}


def keys_of(database: Database | None) -> dict[str, Any]:
    """The keys, without what would open anything."""
    keys = [] if database is None else list_keys(database)
    return {
        "keys": [
            {
                "id": key.id,
                "name": key.name,
                "scopes": [str(scope) for scope in key.scopes],
                "created": key.created,
                "expires": None if key.expires_ms is None else time_of(key.expires_ms),
            }
            for key in keys
        ]
    }
