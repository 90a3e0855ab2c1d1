"""The tables of a database with logs. They are made by migrations only (`migrations/`); a test compares the two.

    log           one row a log: where its head is. Who gives out versions holds the lock of this row. One that was
                  deleted has a name that no log can have until its rows are gone: `patchlog.log.sql_steps`
    patch         one small row a patch. Kept when its bytes are forgotten.
    patch_chunk   the bytes, in rows of about a mebibyte at most
    stage         one row an upload that did not fit in memory and has no versions yet
    consumer      one row a name that follows a log: how far it has read
    snapshot      one row a snapshot that is complete; its bytes are in a file
    snapshot_build   one row a log whose snapshot is being made, or could not be made
    snapshot_trash   one row a file of a snapshot that is to be deleted
    api_key       one row a key of the service; a hash of its secret
    rdf_delta_source   the URI by which RDF Delta's clients know a log, where it is not `delta:NAME`
    rdf_delta_track   one row a consumer that is a client of RDF Delta's API: the version that it fetched last

The chunks of a patch are found by its `body`. What fits in memory goes straight to its place: its body is its version.
The chunks of a stage are written before they have a version, and are not written twice: their bodies are negative
numbers made of the stage and of the place of the patch in its upload.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from patchlog.log.staging import MAX_PATCHES

__all__ = [
    "API_KEY",
    "CONSUMER",
    "LOG",
    "METADATA",
    "PATCH",
    "PATCH_CHUNK",
    "RDF_DELTA_SOURCE",
    "RDF_DELTA_TRACK",
    "REVISION",
    "SNAPSHOT",
    "SNAPSHOT_BUILD",
    "SNAPSHOT_TRASH",
    "STAGE",
    "body_of_stage",
]

REVISION: Final = "0007"
"""The last of the migrations that these tables come from."""

METADATA: Final = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite gives out keys only in columns of this very type.
_KEY: Final = BigInteger().with_variant(Integer, "sqlite")
_ID: Final = LargeBinary(16)
_HASH: Final = LargeBinary(32)


def _log_key(*, is_primary: bool = False) -> Column[int]:
    return Column("log", _KEY, ForeignKey("log.key", ondelete="CASCADE"), primary_key=is_primary, nullable=False)


LOG: Final = Table(
    "log",
    METADATA,
    Column("key", _KEY, primary_key=True),
    Column("name", String(100), nullable=False, unique=True),
    Column("id", _ID, nullable=False),
    Column("rdf_star", Boolean, nullable=False),
    Column("generalized_statements", Boolean, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("head_version", BigInteger, nullable=False),
    Column("head_id", _ID),
    Column("head_hash", _HASH, nullable=False),
    Column("head_ms", BigInteger),
    Column("first_version", BigInteger, nullable=False),
    Column("operations", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("deleted_ms", BigInteger),
    Column("cleared_version", BigInteger),
    Column("reserved_by", BigInteger),
    Column("reserved_until_ms", BigInteger),
    sqlite_autoincrement=True,  # the key of a log that was deleted is not given out again
)

PATCH: Final = Table(
    "patch",
    METADATA,
    _log_key(is_primary=True),
    Column("version", BigInteger, primary_key=True, autoincrement=False),
    Column("id", _ID, nullable=False),
    Column("prev", _ID),
    Column("content_hash", _HASH, nullable=False),
    Column("chain_hash", _HASH, nullable=False),
    Column("body_hash", _HASH, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("operations", BigInteger, nullable=False),
    Column("adds", BigInteger, nullable=False),
    Column("deletes", BigInteger, nullable=False),
    Column("namespaces", BigInteger, nullable=False),
    Column("transactions", BigInteger, nullable=False),
    Column("time_ms", BigInteger, nullable=False),
    Column("body", BigInteger, nullable=False),
    UniqueConstraint("log", "id"),
    sqlite_with_rowid=False,  # the rows lie in the order of their versions
)

PATCH_CHUNK: Final = Table(
    "patch_chunk",
    METADATA,
    _log_key(is_primary=True),
    Column("body", BigInteger, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("bytes", LargeBinary, nullable=False),
)

STAGE: Final = Table(
    "stage",
    METADATA,
    Column("key", _KEY, primary_key=True),
    _log_key(),
    Column("begun_ms", BigInteger, nullable=False),
    sqlite_autoincrement=True,
)

CONSUMER: Final = Table(
    "consumer",
    METADATA,
    _log_key(is_primary=True),
    Column("name", String(100), primary_key=True),
    Column("version", BigInteger, nullable=False),
    Column("updated_ms", BigInteger, nullable=False),
    Column("owner", String(100)),
)

SNAPSHOT: Final = Table(
    "snapshot",
    METADATA,
    _log_key(is_primary=True),
    Column("version", BigInteger, primary_key=True, autoincrement=False),
    Column("location", Text, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("sha256", _HASH, nullable=False),
    Column("quads", BigInteger, nullable=False),
    Column("namespaces", BigInteger, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("format_version", Integer, nullable=False),
)

SNAPSHOT_BUILD: Final = Table(
    "snapshot_build",
    METADATA,
    _log_key(is_primary=True),
    Column("owner", _ID, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("location", Text, nullable=False),
    Column("seen_ms", BigInteger, nullable=False),
    Column("error", Text),
)

SNAPSHOT_TRASH: Final = Table(
    "snapshot_trash",
    METADATA,
    Column("location", Text, primary_key=True),
)

API_KEY: Final = Table(
    "api_key",
    METADATA,
    Column("id", String(16), primary_key=True),
    Column("name", Text, nullable=False),
    Column("secret_hash", _HASH, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("expires_ms", BigInteger),
)

RDF_DELTA_SOURCE: Final = Table(
    "rdf_delta_source",
    METADATA,
    _log_key(is_primary=True),
    Column("uri", Text, nullable=False),
)

RDF_DELTA_TRACK: Final = Table(
    "rdf_delta_track",
    METADATA,
    Column("log", _KEY, primary_key=True, autoincrement=False),
    Column("name", String(100), primary_key=True),
    Column("reached", BigInteger, nullable=False),
    ForeignKeyConstraint(["log", "name"], ["consumer.log", "consumer.name"], ondelete="CASCADE"),
)


def body_of_stage(stage: int, ordinal: int) -> int:
    """The body of a staged patch. Those of one stage are neighbours, the first of them the greatest."""
    return -(stage * MAX_PATCHES + ordinal)
