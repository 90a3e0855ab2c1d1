"""Parameters that several routes take."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from fastapi import Query

__all__ = ["LAST_NAME", "MOST_VERSION", "StreamType", "Version"]

MOST_VERSION: Final = (1 << 63) - 1

LAST_NAME: Final = r"^[A-Za-z0-9._-]{0,100}$"
"""What a page of logs may begin behind: a name, or nothing."""

Version: TypeAlias = Annotated[int, Query(ge=0, le=MOST_VERSION)]

StreamType: TypeAlias = Annotated[
    Literal["frame", "flat", "punctuated"] | None,
    Query(alias="stream-type", description="Of Jelly-Patch. What is stored is punctuated, and goes out as it is."),
]
