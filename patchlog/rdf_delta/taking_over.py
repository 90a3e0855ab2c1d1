"""Taking the logs of an RDF Delta server over: each patch with its id, its version and its headers.

What was taken over is not taken again: the head of our log says where to go on, once its id is seen to be the same
there. RDF Delta took patches whose transaction has no end; such a transaction has no effect, and is closed by an abort.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from typing import Final

from patchlog.codec.patch_ids import PatchId, patch_id_of
from patchlog.engine import RdfPatchReader
from patchlog.errors import LogAlreadyExists, PatchLogError, UsageError
from patchlog.log.contract import LogStore, PatchLog
from patchlog.model import Header
from patchlog.rdf_delta.origins import DeltaLog, Origin

__all__ = ["check_first", "take_over"]

_END: Final = b"\nZ .\n"
"""Ends the patch; what is open is aborted."""


def check_first(origin: Origin, log: DeltaLog) -> None:
    """Raise PatchLogError where a log cannot be taken over from there, or its first patch cannot be read."""
    origin.check(log)
    if log.last_version:
        with _about(log, log.first_version):
            for _ in _headers(origin.patch(log, log.first_version)):
                pass


def take_over(origin: Origin, log: DeltaLog, store: LogStore, name: str) -> tuple[int, int]:
    """Bring our log to the last version of theirs, and return how many patches were taken, and the version.

    Raises UsageError where our log has other patches than theirs, and where theirs does not begin with version 1.
    """
    is_new = False
    with suppress(LogAlreadyExists):
        store.create(name)
        is_new = True
    ours = store.log(name)
    try:
        return _bring(origin, log, ours)
    except PatchLogError as error:
        version = ours.head().version
        if version and hasattr(error, "__notes__"):
            error.add_note(f"(the versions up to {version} are there)")
        elif is_new and not version:
            store.delete(name)
        raise


def _bring(origin: Origin, log: DeltaLog, ours: PatchLog) -> tuple[int, int]:
    name = ours.name
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
    with _about(log, version):
        appended = ours.append(chain(origin.patch(log, version), [_END]), format="rdf-patch")
    if appended.version != version:
        raise UsageError(
            f"version {version} of {log.name!r} became version {appended.version}: the id {appended.id} was there "
            "before, or somebody else writes to our log"
        )


@contextmanager
def _about(log: DeltaLog, version: int) -> Iterator[None]:
    """Let errors name the patch that they are about."""
    try:
        yield
    except PatchLogError as error:
        error.add_note(f"version {version} of {log.name}")
        raise


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
