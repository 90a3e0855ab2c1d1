"""Undo: the patches of a range are taken back by a new patch; they stay in the log."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from itertools import chain
from tempfile import SpooledTemporaryFile
from typing import IO, Final

from patchlog.codec.patch_ids import PatchId, parse_patch_id, patch_id_term
from patchlog.effect import Effect
from patchlog.errors import HeadMismatch, RevertConflict, UsageError
from patchlog.log.contract import PatchLog
from patchlog.log.diff import encoded, taken_back
from patchlog.log.diff_parts import OPERATIONS_IN_MEMORY, temporary_files
from patchlog.log.history import check_version, operations_between
from patchlog.log.records import ANY_HEAD, Appended, ExpectedHead
from patchlog.model import Header, Operation, Term, TransactionCommit, TransactionStart
from patchlog.streams import CHUNK_BYTES
from patchlog.text.terms import literal_term

__all__ = ["revert"]

_ATTEMPTS: Final = 8
"""How often the head may move meanwhile."""
_SHOWN: Final = 3


def revert(
    log: PatchLog,
    from_version: int,
    to_version: int,
    *,
    headers: Mapping[str, str] | None = None,
    id: PatchId | None = None,
    expected_head: ExpectedHead = ANY_HEAD,
    in_memory: int = OPERATIONS_IN_MEMORY,
) -> Appended:
    """Append the patch that takes back what the patches behind a version, up to another, have changed.

    What they added though it was there stays, and what they deleted though it was not there does not come. Where a
    later patch has said the opposite of what taking back would do, that is refused: its writer knew the change.

    `headers` are plain strings, such as `who` and `why`. With an `id` it may be retried.

    Raises UsageError for versions that are not there or no range, RevertConflict, PositionGone where patches were
    truncated away, and HeadMismatch where the head is not the expected one.
    """
    check_version(log, to_version)
    if not 0 <= from_version < to_version:
        raise UsageError(f"there are no patches behind version {from_version} up to {to_version} to take back")
    said = {"why": f"takes back {_told(from_version + 1, to_version)}", **(headers or {})}
    for key in said.keys() & {"id", "prev"}:
        raise UsageError(f"the header {key} is not for the writer to give")
    patch_id = str(uuid.uuid4()) if id is None else parse_patch_id(id)
    options = log.describe().options
    attempts = _ATTEMPTS if expected_head is ANY_HEAD else 1
    while True:
        attempts -= 1
        head = log.head()
        # What was appended under this id before is answered again, whatever was said since.
        is_known = id is not None and log.find(patch_id) is not None
        if expected_head is not ANY_HEAD and head.id != expected_head and not is_known:
            raise HeadMismatch(expected_head, head.id)
        later = iter(()) if is_known else operations_between(log, to_version, head.version)
        with temporary_files(), SpooledTemporaryFile(CHUNK_BYTES) as file:
            with closing(taken_back(log, from_version, to_version, later, in_memory=in_memory)) as parts:
                operations = chain(_headers(patch_id, said), _checked(parts))
                for data in encoded(operations, options):
                    file.write(data)
            try:
                return log.append(_Chunks(file), expected_head=head.id if expected_head is ANY_HEAD else expected_head)
            except HeadMismatch:
                if not attempts:
                    raise


class _Chunks:
    """The bytes of a file; a client that has to send them once more begins again."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def __iter__(self) -> Iterator[bytes]:
        self._file.seek(0)
        while chunk := self._file.read(CHUNK_BYTES):
            yield chunk


def _headers(patch_id: PatchId, said: Mapping[str, str]) -> Iterator[Operation]:
    yield Header("id", patch_id_term(patch_id))
    yield from (Header(key, literal_term(text)) for key, text in said.items())


def _checked(parts: Iterable[tuple[Effect, ...]]) -> Iterator[Operation]:
    yield TransactionStart()
    for back, later in parts:
        opposed: list[tuple[Term, ...]] = sorted((back.adds & later.deletes) | (back.deletes & later.adds))
        opposed += sorted(
            key
            for key in back.namespaces.keys() & later.namespaces.keys()
            if back.namespaces[key] != later.namespaces[key]
        )
        if opposed:
            raise RevertConflict([" ".join(filter(None, key)) for key in opposed[:_SHOWN]])
        _, *operations, _ = back.operations()
        yield from operations
    yield TransactionCommit()


def _told(first: int, last: int) -> str:
    return f"version {last}" if first == last else f"versions {first} to {last}"
