"""Following a log as it grows, whatever keeps it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from patchlog.errors import StorageError
from patchlog.log.contract import PatchLog
from patchlog.log.position import After, as_position
from patchlog.log.records import LoggedPatch

__all__ = ["tail"]

_WAIT_SECONDS: Final = 25.0
_FIRST_PAUSE_SECONDS: Final = 0.2
_LONGEST_PAUSE_SECONDS: Final = 15.0


def tail(log: PatchLog, after: After = 0) -> Iterator[LoggedPatch]:
    """Yield the patches after a version, and then each new one as it comes, without an end.

    Take the chunks of a patch before the next patch. While the log cannot be reached it is tried again and again, and
    goes on where it was; chunks that break off raise StorageError, as half of the patch is taken already.

    Raises HistoryMismatch where the log is not, or is no longer, the one that was read so far.
    """
    position = as_position(after)
    pause = _FIRST_PAUSE_SECONDS
    while True:
        try:
            head = log.wait_for(position.version + 1, _WAIT_SECONDS)
            if head.version > position.version:
                for logged in log.read(position):
                    yield logged
                    position = position.follow(logged.record)
            elif head.version < position.version or position.hash not in (None, head.hash):
                log.check(position)
            pause = _FIRST_PAUSE_SECONDS
        except StorageError as error:
            if not error.is_transient:
                raise
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
