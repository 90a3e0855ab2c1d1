"""Between the rows of the tables and the records of the contract."""

from __future__ import annotations

import time
from typing import Any, Final, TypeAlias
from uuid import UUID

from sqlalchemy import Row

from patchlog.codec.patch_ids import PatchId
from patchlog.log.records import Head, LogDescription, LogOptions, PatchRecord, time_of

__all__ = [
    "AnyRow",
    "description_of",
    "head_of",
    "id_bytes",
    "id_text",
    "log_id_of",
    "now_ms",
    "options_of",
    "patch_row",
    "record_of",
]


_ID_BYTES: Final = 16

AnyRow: TypeAlias = Row[*tuple[Any, ...]]


def id_bytes(text: str) -> bytes:
    """An id as it stands in the database."""
    return bytes.fromhex(text.replace("-", ""))


def id_text(data: bytes | None) -> str | None:
    """An id as it stands everywhere else."""
    return None if data is None else _known_id(data)


def now_ms() -> int:
    """The time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def options_of(row: AnyRow) -> LogOptions:
    """The options of a log, from its row."""
    # The driver of SQLite has numbers.
    return LogOptions(rdf_star=bool(row.rdf_star), generalized_statements=bool(row.generalized_statements))


def head_of(row: AnyRow) -> Head:
    """The head of a log, from its row."""
    head_time = None if row.head_ms is None else time_of(row.head_ms)
    return Head(row.head_version, id_text(row.head_id), row.head_hash, head_time)


def log_id_of(row: AnyRow) -> str:
    """The id of a log, from its row."""
    return str(UUID(bytes=row.id))


def description_of(row: AnyRow) -> LogDescription:
    """The description of a log, from its row."""
    return LogDescription(
        name=row.name,
        id=log_id_of(row),
        options=options_of(row),
        created=time_of(row.created_ms),
        head=head_of(row),
        first_version=row.first_version,
        operations=row.operations,
        bytes=row.bytes,
    )


def record_of(row: AnyRow) -> PatchRecord:
    """The record of a patch, from its row."""
    return PatchRecord(
        version=row.version,
        id=_known_id(row.id),
        prev=id_text(row.prev),
        content_hash=row.content_hash,
        chain_hash=row.chain_hash,
        body_hash=row.body_hash,
        bytes=row.bytes,
        operations=row.operations,
        adds=row.adds,
        deletes=row.deletes,
        namespaces=row.namespaces,
        transactions=row.transactions,
        time=time_of(row.time_ms),
    )


def patch_row(log: int, record: PatchRecord, time_ms: int, body: int) -> tuple[object, ...]:
    """The row of a patch, in the order of the columns of its table."""
    return (
        log,
        record.version,
        id_bytes(record.id),
        None if record.prev is None else id_bytes(record.prev),
        record.content_hash,
        record.chain_hash,
        record.body_hash,
        record.bytes,
        record.operations,
        record.adds,
        record.deletes,
        record.namespaces,
        record.transactions,
        time_ms,
        body,
    )


def _known_id(data: object) -> PatchId:
    if not isinstance(data, bytes) or len(data) != _ID_BYTES:
        # Somebody has changed it in the database. No patch has this id: to verify the log names the version.
        return f"damaged-{data!r}"
    digits = data.hex()  # a UUID of Python would be several times as slow
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
