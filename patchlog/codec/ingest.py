"""Patches as a log stores them: a header frame, which says the id and what came before, and the body behind it.

What came before may be known only when the log is locked, so the body does not depend on it: it leaves the lookup
entries of the header frame alone. docs/protocol.md, "The stored patch".

    accept      TX .. TC TA    as in patchlog.transactions
    Punctuation                ends the patch; an open transaction is closed by an abort, which is what it means
    finish                     an open transaction is refused: who stops in the middle has not said what he meant
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, lru_cache
from typing import Final, NamedTuple

from patchlog.codec.frame_writer import FrameWriter
from patchlog.codec.operation_writer import PATCH_LOOKUPS, OperationWriter
from patchlog.codec.options import CANONICAL_PATCH, PatchOptions, Tables
from patchlog.codec.patch_ids import PatchId, patch_id_of, patch_id_term
from patchlog.errors import TransactionError, UnexpectedRow
from patchlog.model import (
    Add,
    Delete,
    Header,
    NamespaceAdd,
    NamespaceDelete,
    Operation,
    Punctuation,
    TransactionAbort,
    TransactionStart,
)
from patchlog.transactions import TransactionOrder

__all__ = ["HeaderFrames", "IngestedPatch", "PatchIngest", "header_frame", "header_frames", "stored_options"]

ID: Final = "id"
PREV: Final = "prev"

_HEADER_FRAME_ENTRIES: Final = Tables(names=2, prefixes=1, datatypes=0)
_ANY_ID: Final = "00000000-0000-0000-0000-000000000001"
_ANY_PREV: Final = "00000000-0000-0000-0000-000000000002"


class IngestedPatch(NamedTuple):
    """What is known of a patch at its end. The headers `id` and `prev` and the punctuation are not counted."""

    id: PatchId | None
    prev: PatchId | None
    operations: int
    adds: int
    deletes: int
    namespaces: int
    transactions: int


@cache
def stored_options(*, rdf_star: bool = True, generalized_statements: bool = True) -> PatchOptions:
    """The options of all patches of a log."""
    return replace(CANONICAL_PATCH, rdf_star=rdf_star, generalized_statements=generalized_statements)


class HeaderFrames:
    """The frames that stored patches with some options begin with."""

    def __init__(self, options: PatchOptions) -> None:
        # All ids are equally long, so all frames are alike around them.
        self._before_first, self._after_first = _header_frame_parts(options, has_prev=False)
        self._before, self._between, self._after = _header_frame_parts(options, has_prev=True)

    def frame(self, patch_id: PatchId, prev: PatchId | None) -> bytes:
        """The frame of the patch with this id, behind that one."""
        if prev is None:
            return b"".join((self._before_first, patch_id.encode(), self._after_first))
        return b"".join((self._before, patch_id.encode(), self._between, prev.encode(), self._after))


def header_frame(patch_id: PatchId, prev: PatchId | None, options: PatchOptions) -> bytes:
    """The frame that a stored patch begins with."""
    return header_frames(options).frame(patch_id, prev)


@lru_cache(maxsize=16)
def header_frames(options: PatchOptions) -> HeaderFrames:
    """The frames that stored patches with these options begin with."""
    return HeaderFrames(options)


def _header_frame_parts(options: PatchOptions, *, has_prev: bool) -> tuple[bytes, ...]:
    """What stands in a header frame before, between and after the ids."""
    frames = FrameWriter(rows_per_frame=0)
    rows = OperationWriter(options, frames, begins_explicitly=True)
    rows.write(Header(ID, patch_id_term(_ANY_ID)))
    if has_prev:
        rows.write(Header(PREV, patch_id_term(_ANY_PREV)))
    else:
        frames.add(PATCH_LOOKUPS.name.row(b""))
    frames.end_frame()
    before, _, after = frames.take().partition(_ANY_ID.encode())
    return (before, *after.split(_ANY_PREV.encode()))


class PatchIngest:
    """Encodes the bodies of patches, and reads the headers that do not belong there. After an error it is spent."""

    def __init__(self, options: PatchOptions = CANONICAL_PATCH) -> None:
        self._options = options
        self._frames = FrameWriter(rows_per_frame=0, is_bounded=True)
        self._transactions = TransactionOrder()
        self._begin_patch()

    @property
    def is_in_patch(self) -> bool:
        """Whether a patch has begun that has not ended."""
        return self._has_begun

    @property
    def has_operations(self) -> bool:
        """Whether the patch that has begun has operations but the headers `id` and `prev`."""
        return self._operations > 0

    def accept(self, operation: Operation, /) -> IngestedPatch | None:
        """Write one operation. A punctuation ends the patch and returns what is known of it."""
        self._has_begun = True
        self._transactions.accept(operation)
        match operation:
            case Punctuation():
                return self._end_patch()
            case Header(key, value) if key in (ID, PREV):
                self._read_header(key, patch_id_of(value))
                return None
            case Add():
                self._adds += 1
            case Delete():
                self._deletes += 1
            case NamespaceAdd() | NamespaceDelete():
                self._namespaces += 1
            case TransactionStart():
                self._transactions_started += 1
        self._operations += 1
        self._body.write(operation)
        return None

    def take(self) -> bytes:
        """Take the frames that are complete, all of them of the patch that began or ended last."""
        return self._frames.take()

    def finish(self) -> IngestedPatch | None:
        """Say that no more operations will come. A patch that is still open ends here."""
        if self._transactions.is_open:
            raise TransactionError("the input ends inside a transaction: commit or abort it")
        return self._end_patch() if self._has_begun else None

    def _begin_patch(self) -> None:
        self._has_begun = False
        self._ids: dict[str, PatchId] = {}
        self._operations = self._adds = self._deletes = self._namespaces = self._transactions_started = 0
        self._body = OperationWriter(
            self._options,
            self._frames,
            begins_explicitly=True,
            writes_options=False,
            reserved=_HEADER_FRAME_ENTRIES,
        )

    def _end_patch(self) -> IngestedPatch:
        if self._transactions.is_open:
            self._transactions.end()
            self._body.write(TransactionAbort())
            self._operations += 1
        self._body.write(Punctuation())
        self._frames.end_frame()
        ended = IngestedPatch(
            id=self._ids.get(ID),
            prev=self._ids.get(PREV),
            operations=self._operations,
            adds=self._adds,
            deletes=self._deletes,
            namespaces=self._namespaces,
            transactions=self._transactions_started,
        )
        self._begin_patch()
        return ended

    def _read_header(self, key: str, patch_id: PatchId) -> None:
        if self._ids.setdefault(key, patch_id) != patch_id:
            # Two patches without a punctuation between them look like this.
            raise UnexpectedRow(f"a patch with two headers {key}: {self._ids[key]} and {patch_id}")
