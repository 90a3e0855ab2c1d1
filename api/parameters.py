"""Parameters that several routes take."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from fastapi import Query

from patchlog.errors import UsageError
from patchlog.log.position import Position

__all__ = [
    "HASH",
    "LAST_NAME",
    "LOG_ID",
    "MOST_VERSION",
    "Hash",
    "LogId",
    "StreamType",
    "Version",
    "check_stream_type",
    "position_of",
]

MOST_VERSION: Final = (1 << 63) - 1

LAST_NAME: Final = r"^[A-Za-z0-9._-]{0,100}$"
"""What a page of logs may begin behind: a name, or nothing."""

Version: TypeAlias = Annotated[int, Query(ge=0, le=MOST_VERSION)]

HASH: Final = r"^[0-9a-fA-F]{64}$"
LOG_ID: Final = r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"

Hash: TypeAlias = Annotated[
    str | None,
    Query(pattern=HASH, description="The chain hash that the log must have at that version; else the answer is 409."),
]
LogId: TypeAlias = Annotated[
    str | None, Query(pattern=LOG_ID, description="The id that the log must have; else the answer is 409.")
]

StreamType: TypeAlias = Annotated[
    Literal["frame", "flat", "punctuated"] | None,
    Query(alias="stream-type", description="Of Jelly-Patch. What is stored is punctuated, and goes out as it is."),
]


def check_stream_type(stream_type: str | None, *, is_jelly: bool, is_live: bool = False) -> None:
    """Raise UsageError where an answer has no stream type, or cannot have this one."""
    if stream_type is None:
        return
    if not is_jelly:
        raise UsageError("stream-type is for answers in Jelly-Patch: leave it out, or ask for format=jelly-patch")
    if is_live and stream_type != "punctuated":
        raise UsageError("a live stream is punctuated: leave stream-type out, or ask for a range of patches")


def position_of(version: int, hash: str | None, log_id: str | None) -> Position:
    """The position that a request names; what it leaves out is not checked."""
    return Position(None if log_id is None else log_id.lower(), version, None if hash is None else bytes.fromhex(hash))
