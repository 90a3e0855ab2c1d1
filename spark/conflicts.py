"""Several jobs at work on the same tables: a step that Delta refuses, as another was quicker, is taken again."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final, TypeVar

from delta.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    ProtocolChangedException,
)

from patchlog.errors import StorageError

__all__ = ["CONFLICTS", "again_after_conflicts"]

Result = TypeVar("Result")

CONFLICTS: Final = (
    DeltaConcurrentModificationException,  # which, in Python, is above none of the others
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    MetadataChangedException,
    ProtocolChangedException,
)
"""What Delta raises where another has changed a table meanwhile."""

_TRIES: Final = 10


def again_after_conflicts(step: Callable[[], Result], tell: Callable[[int], object] = id) -> Result:
    """Take a step; where another job was quicker, or compaction, take it again, as it looks then.

    `tell` is told each time how often it was tried. Raises StorageError after ten times.
    """
    for tried in range(1, _TRIES + 1):
        try:
            return step()
        except CONFLICTS:
            tell(tried)
            time.sleep(random.uniform(0.1, 0.5) * tried)  # noqa: S311  so that two jobs do not go in step
    raise StorageError("other jobs are at work on these tables all the time", is_transient=True)
