"""Whether transactions are in order, whatever the format that carries them.

    state          TX            TC, TA
    outside        -> inside     refused
    inside         refused       -> outside

Other operations may stand inside and outside. A class of its own: who wants to look at a malformed log leaves it out.
"""

from __future__ import annotations

from patchlog.errors import TransactionError
from patchlog.model import Operation, TransactionAbort, TransactionCommit, TransactionStart

__all__ = ["TransactionOrder"]


class TransactionOrder:
    """Follows the operations of a stream, and refuses one that is out of order.

    Raises TransactionError without a place: the reader, who knows it, adds it.
    """

    def __init__(self) -> None:
        self.is_open = False

    def accept(self, operation: Operation) -> None:
        """Take note of an operation, or raise TransactionError."""
        match operation:
            case TransactionStart():
                self.start()
            case TransactionCommit():
                self.end()
            case TransactionAbort():
                self.end(is_abort=True)

    def start(self) -> None:
        """Take note of a `TX`."""
        if self.is_open:
            raise TransactionError("a transaction starts inside a transaction; end the first one before")
        self.is_open = True

    def end(self, *, is_abort: bool = False) -> None:
        """Take note of a `TC` or `TA`."""
        if not self.is_open:
            raise TransactionError(f"a transaction is {'aborted' if is_abort else 'committed'} that was never started")
        self.is_open = False
