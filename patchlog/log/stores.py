"""Opens stores of logs by their URL."""

from __future__ import annotations

from patchlog.codec.options import Limits
from patchlog.log.contract import LogStore
from patchlog.log.memory import MemoryLogStore
from patchlog.log.upload import DEFAULT_LIMITS

__all__ = ["MEMORY", "open_store"]

MEMORY = "memory:"


def open_store(url: str, *, limits: Limits = DEFAULT_LIMITS) -> LogStore:
    """Open `memory:`, `sqlite:///FILE` or `postgresql://…`. Close it in the end."""
    if url == MEMORY:
        return MemoryLogStore(limits=limits)
    from patchlog.log.sql import SqlLogStore

    return SqlLogStore(url, limits=limits)
