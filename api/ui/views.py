"""What pages show, as plain documents: the same for people (templates) and for programs (JSON). Blocks; for threads."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from api.errors import NO_PATCH, Refusal
from api.keys import ApiKey, list_keys
from api.ui.shown import Shortener, rows_of, shown_rows
from patchlog.errors import PositionGone
from patchlog.log.blame import blame, term_of
from patchlog.log.contract import LogStore, PatchLog
from patchlog.log.database import Database
from patchlog.log.diff import diff
from patchlog.log.documents import (
    consumer_document,
    description_document,
    record_document,
    snapshot_document,
)
from patchlog.log.history import check_version, operations_of
from patchlog.log.records import time_of

__all__ = [
    "chart_of",
    "comparison_of",
    "history_of",
    "keys_of",
    "log_view",
    "logs_view",
    "patch_view",
]

_MOST_LOGS: Final = 500
_PAGE: Final = 50
_CHARTED: Final = 500


def logs_view(store: LogStore, key: ApiKey | None) -> dict[str, Any]:
    """The logs that the key may read, and how far behind their slowest consumers are."""
    found = []
    for log in store.list(limit=_MOST_LOGS):
        if key is None or key.allows("read", log.name):
            consumers = store.log(log.name).consumers.list()
            slowest = max(consumers, key=lambda one: one.lag_versions, default=None)
            found.append(
                description_document(log)
                | {
                    "consumers": len(consumers),
                    "slowest": None if slowest is None else consumer_document(slowest),
                }
            )
    return {"logs": found}


def log_view(log: PatchLog, before: int | None) -> dict[str, Any]:
    """A log: its versions from the newest on, a page at a time, its consumers and its snapshots."""
    description = log.describe()
    last = description.head.version if before is None else min(before - 1, description.head.version)
    first = max(description.first_version, last - _PAGE + 1)
    records = [record_document(logged.record) for logged in log.read(first - 1, until=last)] if last >= first else []
    return {
        "log": description_document(description),
        "versions": records[::-1],
        "older": first if first > description.first_version else None,
        "consumers": [consumer_document(consumer) for consumer in log.consumers.list()],
        "snapshots": [snapshot_document(snapshot) for snapshot in log.snapshots.list()][::-1],
    }


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
        shown = shown_rows(seen) | {"is_kept": True}
    except PositionGone:
        shown = {"graphs": [], "namespaces": [], "headers": [], "has_more": False, "is_kept": False}
    return {
        "log": log.name,
        "patch": record_document(record),
        "before": None if before is None else record_document(before),
        "head": head.version,
        **shown,
    }


def comparison_of(log: PatchLog, from_version: int | None, to_version: int | None) -> dict[str, Any]:
    """The net change between two versions."""
    head = log.head().version
    to = head if to_version is None else to_version
    start = max(0, to - 1) if from_version is None else from_version
    for version in (start, to):
        check_version(log, version)
    return {"log": log.name, "head": head, "start": start, "to": to, **shown_rows(rows_of(diff(log, start, to)))}


def history_of(log: PatchLog, subject: str | None) -> dict[str, Any]:
    """Which patch each quad of a subject came from."""
    shortener = Shortener()
    found = [] if not subject else [change.document() for change in blame(log, term_of(subject))]
    for change in found:
        change["short"] = {
            place: shortener.short(change[place]) for place in ("subject", "predicate", "object", "graph")
        }
    return {"log": log.name, "subject": subject or "", "quads": found}


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
