"""Patches to their canonical bytes, which can be laid end to end in any order.

Each patch is written as if it could follow any other: it begins with the options, has lookup tables of its own, and
repeats nothing from before.
"""

from __future__ import annotations

from dataclasses import replace

from patchlog.codec.frame_writer import FrameWriter
from patchlog.codec.operation_writer import OperationWriter
from patchlog.codec.options import CANONICAL_PATCH
from patchlog.model import Operation, Punctuation, TransactionAbort
from patchlog.spending import Spendable, spending
from patchlog.transactions import TransactionOrder

__all__ = ["CanonicalPatchEncoder"]


class CanonicalPatchEncoder(Spendable):
    """Encodes patches canonically. After an error it is spent."""

    def __init__(self, *, rdf_star: bool = True, generalized_statements: bool = True) -> None:
        self._options = replace(CANONICAL_PATCH, rdf_star=rdf_star, generalized_statements=generalized_statements)
        self._frames = FrameWriter(rows_per_frame=0, is_bounded=True)
        self._patch: OperationWriter | None = None
        self._has_patches = False
        self._transactions = TransactionOrder()

    @spending
    def accept(self, operation: Operation, /) -> None:
        """Write one operation."""
        if self._patch is None:
            self._has_patches = True
            self._patch = OperationWriter(self._options, self._frames, begins_explicitly=True)
        self._transactions.accept(operation)
        if isinstance(operation, Punctuation):
            self._punctuate(self._patch)
        else:
            self._patch.write(operation)

    @spending
    def take(self) -> bytes:
        """Take the bytes of the frames that were ended."""
        return self._frames.take()

    @spending
    def finish(self) -> bytes:
        """End the last patch if it is still open, and take what is left. No operations at all are an empty patch."""
        if not self._has_patches:
            self.accept(Punctuation())
        elif self._patch is not None:
            self._punctuate(self._patch)
        return self._frames.take()

    def _punctuate(self, patch: OperationWriter) -> None:
        if self._transactions.is_open:
            self._transactions.end()
            patch.write(TransactionAbort())
        patch.write(Punctuation())
        self._frames.end_frame()
        self._patch = None
