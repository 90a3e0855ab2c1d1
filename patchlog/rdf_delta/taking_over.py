"""Taking the logs of an RDF Delta server over: each patch with its id, its version and its headers.

What was taken over is not taken again: the head of our log says where to go on, once its id is seen to be the same
there. RDF Delta took patches whose transaction has no end; such a transaction has no effect, and is closed by an abort.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from typing import Final

from patchlog.codec.patch_ids import PatchId, patch_id_of
from patchlog.engine import RdfPatchReader
from patchlog.errors import CodecError, LogAlreadyExists, TransactionError, UsageError
from patchlog.log.contract import LogStore, PatchLog
from patchlog.model import Header
from patchlog.rdf_delta.origins import DeltaLog, Origin

__all__ = ["take_over"]

_END: Final = b"\nZ .\n"
"""Ends the patch; what is open is aborted."""


def take_over(origin: Origin, log: DeltaLog, store: LogStore, name: str) -> tuple[int, int]:
    """Bring our log to the last version of theirs, and return how many patches were taken, and the version.

    Raises UsageError where our log has other patches than theirs, and where theirs does not begin with version 1.
    """
    with suppress(LogAlreadyExists):
        store.create(name)
    ours = store.log(name)
    head = ours.head()
    if log.first_version > 1 and head.version < log.first_version - 1:
        raise UsageError(
            f"the log {log.name!r} begins with version {log.first_version}: what came before is gone there"
        )
    if head.version > log.last_version:
        raise UsageError(f"our log {name!r} has version {head.version}, theirs ends with {log.last_version}")
    if head.version:
        theirs = _id_in(origin.patch(log, head.version))
        if theirs != head.id:
            raise UsageError(
                f"our log {name!r} is no copy of {log.name!r}: version {head.version} is {head.id}, theirs is {theirs}"
            )
    for version in range(head.version + 1, log.last_version + 1):
        _take(origin, log, ours, version)
    return log.last_version - head.version, log.last_version


def _take(origin: Origin, log: DeltaLog, ours: PatchLog, version: int) -> None:
    try:
        appended = ours.append(chain(origin.patch(log, version), [_END]), format="rdf-patch")
    except (CodecError, TransactionError) as error:
        error.add_note(f"version {version} of {log.name}")
        raise
    if appended.version != version:
        raise UsageError(
            f"version {version} of {log.name!r} became version {appended.version}: the id {appended.id} was there "
            "before, or somebody else writes to our log"
        )


def _id_in(text: Iterable[bytes]) -> PatchId | None:
    """The id that a patch says it has."""
    for header in _headers(text):
        if header.key == "id":
            return patch_id_of(header.value)
    return None


def _headers(text: Iterable[bytes]) -> Iterator[Header]:
    reader = RdfPatchReader()
    for chunk in text:
        yield from (operation for operation in reader.feed(chunk) if isinstance(operation, Header))
    yield from (operation for operation in reader.finish() if isinstance(operation, Header))
