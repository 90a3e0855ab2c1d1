"""Opens stores of logs by their URL."""

from __future__ import annotations

from patchlog.codec.options import Limits
from patchlog.log.contract import LogStore
from patchlog.log.memory import MemoryLogStore
from patchlog.log.snapshots.changes import MEMORY_BYTES
from patchlog.log.upload import DEFAULT_LIMITS

__all__ = ["MEMORY", "open_store"]

MEMORY = "memory:"


def open_store(
    url: str,
    *,
    limits: Limits = DEFAULT_LIMITS,
    snapshots: str | None = None,
    snapshot_memory_bytes: int = MEMORY_BYTES,
) -> LogStore:
    """Open `memory:`, `sqlite:///FILE` or `postgresql://…`. Close it in the end.

    `snapshots` is the folder or the URL where new snapshots go; docs/snapshots.md says where they go without it.
    """
    if url == MEMORY:
        return MemoryLogStore(limits=limits)
    from patchlog.log.sql import SqlLogStore

    return SqlLogStore(url, limits=limits, snapshots=snapshots, snapshot_memory_bytes=snapshot_memory_bytes)
