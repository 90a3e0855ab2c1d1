"""The order of transactions in a sequence of operations, whatever the format that carries them.

A class of its own, so that a tool can read a malformed log without it.

                    TransactionStart    TransactionCommit, TransactionAbort    other operations
    outside         inside              refused                                outside
    inside          refused             outside                                inside
"""

from __future__ import annotations

from patchlog.errors import TransactionError
from patchlog.model import Operation, TransactionAbort, TransactionCommit, TransactionStart

__all__ = ["TransactionOrder"]


class TransactionOrder:
    """Follows the operations of a stream and refuses the one that is out of order.

    Raises TransactionError without a place: the reader that knows it raises the error anew.
    """

    __slots__ = ("is_open",)

    def __init__(self) -> None:
        self.is_open = False

    def accept(self, operation: Operation, /) -> None:
        """Take the next operation."""
        if isinstance(operation, TransactionStart):
            if self.is_open:
                raise TransactionError("a transaction starts inside a transaction")
            self.is_open = True
        elif isinstance(operation, (TransactionCommit, TransactionAbort)):
            if not self.is_open:
                what = "commit" if isinstance(operation, TransactionCommit) else "abort"
                raise TransactionError(f"a transaction {what} stands outside a transaction")
            self.is_open = False
