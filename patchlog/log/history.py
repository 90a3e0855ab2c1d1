"""The history of a log, as operations: of its patches, and of what was there at a version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Final

from patchlog.codec.beginning import up_to_headers
from patchlog.codec.options import Limits
from patchlog.engine import PatchDecoder, RdfDecoder
from patchlog.errors import UsageError
from patchlog.log.contract import PatchLog
from patchlog.log.records import LoggedPatch, Snapshot
from patchlog.log.snapshots.reading import namespaces_of
from patchlog.model import Add, Header, NamespaceAdd, Operation, Term, as_quad
from patchlog.pipes import drain

__all__ = [
    "check_version",
    "headers_of",
    "operations_between",
    "operations_of",
    "snapshot_operations",
    "snapshots_of",
    "state_at",
]

_STORED_LIMITS: Final = Limits(max_frame_bytes=1 << 30, max_decoded_frame_bytes=1 << 40)
"""What is stored was held to the limits of its upload."""

_LOOKED_THROUGH_BYTES: Final = 4 << 20
_OF_THE_LOG: Final = frozenset({"id", "prev"})


def operations_between(log: PatchLog, after: int, until: int) -> Iterator[Operation]:
    """The operations of the patches behind a version, up to another. Punctuations end the patches.

    Raises PositionGone at once where a patch was truncated away.
    """
    return operations_of(log.read(after, until=until)) if after < until else iter(())


def check_version(log: PatchLog, version: int) -> None:
    """Raise UsageError where the log has no such version. Version 0 is the empty log."""
    head = log.head().version
    if not 0 <= version <= head:
        raise UsageError(f"the log {log.name!r} has no version {version}; its head is {head}")


def state_at(log: PatchLog, version: int) -> Iterator[Operation]:
    """The operations that make what was there at a version: the newest snapshot until then, and the patches since.

    Raises PositionGone at once where it cannot be known any more.
    """
    base = max((one for one in snapshots_of(log) if one.version <= version), key=_version_of, default=None)
    if base is None:
        return operations_between(log, 0, version)
    since = operations_between(log, base.version, version)
    return chain(snapshot_operations(log, base), since)


def snapshots_of(log: PatchLog) -> list[Snapshot]:
    """The snapshots of a log, if it is one that can have any."""
    try:
        return log.snapshots.list()
    except UsageError:
        return []


def snapshot_operations(log: PatchLog, snapshot: Snapshot) -> Iterator[Operation]:
    """What a snapshot holds, as operations that add it."""
    namespaces, chunks = namespaces_of(log.snapshots.read(snapshot.version))
    for (graph, name), iri in namespaces.items():
        yield NamespaceAdd(name, iri, graph)
    for frame in drain(RdfDecoder(limits=_STORED_LIMITS), chunks):
        for statement in frame.statements:
            yield Add(*as_quad(statement))


def headers_of(logged: LoggedPatch) -> dict[str, Term]:
    """The headers that a patch begins with, without those of the log: id and prev. Of several of a key the last."""
    headers: dict[str, Term] = {}
    for operation in operations_of([replace(logged, chunks=_first_of(logged.chunks))], headers):
        if not isinstance(operation, Header):
            break
    return headers


def operations_of(patches: Iterable[LoggedPatch], headers: dict[str, Term] | None = None) -> Iterator[Operation]:
    """The operations of patches. Their headers, without those of the log, are noted on the way."""
    decoder = PatchDecoder(limits=_STORED_LIMITS)
    for logged in patches:
        for chunk in logged.chunks:
            for operation in decoder.feed(chunk):
                if headers is not None and isinstance(operation, Header) and operation.key not in _OF_THE_LOG:
                    headers[operation.key] = operation.value
                yield operation


def _first_of(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Chunks without what is surely behind the headers: most patches are many operations, and few headers."""
    following, start = iter(chunks), b""
    for chunk in following:
        start += chunk
        if (beginning := up_to_headers(start)) is not None:
            yield beginning
            return
        if len(start) > _LOOKED_THROUGH_BYTES:
            break
    yield start
    yield from following


def _version_of(snapshot: Snapshot) -> int:
    return snapshot.version
