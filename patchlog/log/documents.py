"""What logs say of themselves as JSON documents, and read back: the words of the service and of the command line.

Hashes are written in hexadecimal. What a reader does not know, it leaves aside.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, TypeAlias

from patchlog.log.position import Position
from patchlog.log.records import (
    Appended,
    Consumer,
    Head,
    LogDescription,
    LogOptions,
    PatchRecord,
    Snapshot,
    SnapshotBuild,
    Verification,
)

__all__ = [
    "Document",
    "appended_document",
    "build_document",
    "consumer_document",
    "description_document",
    "head_document",
    "position_document",
    "read_appended",
    "read_build",
    "read_consumer",
    "read_description",
    "read_head",
    "read_position",
    "read_record",
    "read_snapshot",
    "read_verification",
    "record_document",
    "snapshot_document",
    "verification_document",
]

Document: TypeAlias = dict[str, Any]


def head_document(head: Head) -> Document:
    """Describe the head of a log."""
    return {"version": head.version, "id": head.id, "hash": head.hash.hex(), "time": head.time}


def read_head(document: Mapping[str, Any]) -> Head:
    """Read the head of a log."""
    return Head(document["version"], document["id"], bytes.fromhex(document["hash"]), document["time"])


def description_document(description: LogDescription) -> Document:
    """Describe a log."""
    return {
        "name": description.name,
        "id": description.id,
        "head": head_document(description.head),
        "first_version": description.first_version,
        "patches": description.patches,
        "operations": description.operations,
        "bytes": description.bytes,
        "created": description.created,
        "options": asdict(description.options),
    }


def read_description(document: Mapping[str, Any]) -> LogDescription:
    """Read the description of a log."""
    options = document["options"]
    return LogDescription(
        name=document["name"],
        id=document["id"],
        options=LogOptions(options["rdf_star"], options["generalized_statements"]),
        created=document["created"],
        head=read_head(document["head"]),
        first_version=document["first_version"],
        operations=document["operations"],
        bytes=document["bytes"],
    )


_RECORD_HASHES = ("content_hash", "chain_hash", "body_hash")


def record_document(record: PatchRecord) -> Document:
    """Describe a patch."""
    document = record._asdict()
    return document | {name: document[name].hex() for name in _RECORD_HASHES}


def read_record(document: Mapping[str, Any]) -> PatchRecord:
    """Read the description of a patch."""
    values = {name: document[name] for name in PatchRecord._fields}
    return PatchRecord(**values | {name: bytes.fromhex(values[name]) for name in _RECORD_HASHES})


def appended_document(appended: Appended) -> Document:
    """Say where the patches of an upload are. Whether it is a retry is the status of the answer."""
    return {
        "first_version": appended.first_version,
        "version": appended.version,
        "id": appended.id,
        "operations": appended.operations,
        "bytes": appended.bytes,
    }


def read_appended(document: Mapping[str, Any], *, is_retry: bool) -> Appended:
    """Read where the patches of an upload are."""
    return Appended(
        first_version=document["first_version"],
        version=document["version"],
        id=document["id"],
        operations=document["operations"],
        bytes=document["bytes"],
        is_retry=is_retry,
    )


def consumer_document(consumer: Consumer) -> Document:
    """Say how far a consumer has read."""
    return asdict(consumer) | {"hash": consumer.hash.hex()}


def read_consumer(document: Mapping[str, Any]) -> Consumer:
    """Read how far a consumer has read."""
    values = {field.name: document[field.name] for field in fields(Consumer) if field.name != "owner"}
    values["owner"] = document.get("owner")  # services of older releases have none
    return Consumer(**values | {"hash": bytes.fromhex(values["hash"])})


def position_document(position: Position) -> Document:
    """Describe a position."""
    return {
        "log_id": position.log_id,
        "version": position.version,
        "hash": None if position.hash is None else position.hash.hex(),
    }


def read_position(document: Mapping[str, Any]) -> Position:
    """Read a position."""
    return Position.kept(document["log_id"], str(document["version"]), document["hash"])


def snapshot_document(snapshot: Snapshot) -> Document:
    """Describe a snapshot that is there."""
    hashes = {"sha256": snapshot.sha256.hex(), "hash": snapshot.hash.hex()}
    return asdict(snapshot) | hashes | {"state": "complete"}


def read_snapshot(document: Mapping[str, Any]) -> Snapshot:
    """Read the description of a snapshot."""
    values = {field.name: document[field.name] for field in fields(Snapshot)}
    return Snapshot(**values | {name: bytes.fromhex(values[name]) for name in ("sha256", "hash")})


def build_document(build: SnapshotBuild) -> Document:
    """Describe a snapshot that is being made, or could not be made."""
    if build.error is None:
        return {"version": build.version, "state": "building"}
    return {"version": build.version, "state": "failed", "error": build.error}


def read_build(document: Mapping[str, Any]) -> SnapshotBuild:
    """Read the description of a snapshot that is not there."""
    return SnapshotBuild(document["version"], document.get("error"))


def verification_document(verification: Verification) -> Document:
    """Say what a walk along the chain has found."""
    return {
        "sound": verification.is_sound,
        "head": head_document(verification.head),
        "checked": verification.checked,
        "first_bad_version": verification.first_bad_version,
        "reason": verification.reason,
    }


def read_verification(document: Mapping[str, Any]) -> Verification:
    """Read what a walk along the chain has found."""
    return Verification(
        head=read_head(document["head"]),
        checked=document["checked"],
        first_bad_version=document["first_bad_version"],
        reason=document["reason"],
    )
