"""What changed between two versions of a log, as one patch: the last word on each quad."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import closing

from patchlog.effect import Effect, effect, invert
from patchlog.engine import CanonicalPatchEncoder
from patchlog.log.contract import PatchLog
from patchlog.log.diff_parts import OPERATIONS_IN_MEMORY, effects
from patchlog.log.history import check_version, operations_between, state_at
from patchlog.log.records import LogOptions
from patchlog.model import Operation, TransactionCommit, TransactionStart
from patchlog.pipes import batches

__all__ = ["diff", "encoded", "taken_back"]


def diff(
    log: PatchLog, from_version: int, to_version: int, *, in_memory: int = OPERATIONS_IN_MEMORY
) -> Generator[Operation, None, None]:
    """Yield the patch that leads from one version to another: one transaction, without headers; empty where it may be.

    Forwards it is what the patches between have to say at last about each quad, and they are all that is read.
    Backwards it takes back what they changed, and nothing else; for that the patches before them are read too.

    Changes that are larger than memory are worked out on disk. Close the iterator where you do not exhaust it.

    Raises UsageError for versions that are not there, PositionGone where patches were truncated away.
    """
    for version in (from_version, to_version):
        check_version(log, version)
    if from_version > to_version:
        return _one_patch(back for back, *_ in taken_back(log, to_version, from_version, in_memory=in_memory))
    between = operations_between(log, from_version, to_version)
    return _one_patch(change for change, *_ in effects(between, in_memory=in_memory))


def taken_back(
    log: PatchLog,
    from_version: int,
    to_version: int,
    *others: Iterable[Operation],
    in_memory: int = OPERATIONS_IN_MEMORY,
) -> Generator[tuple[Effect, ...], None, None]:
    """Yield in parts what leads back to an earlier version, each with the effects of others on what it is about."""
    between = operations_between(log, from_version, to_version)
    before = state_at(log, from_version)
    with closing(effects(between, [before, *others], in_memory=in_memory)) as parts:
        for change, state, *rest in parts:
            namespaces = {key: iri for key, iri in state.namespaces.items() if iri is not None}
            yield effect(invert(change, state.adds, namespaces)), *rest


def encoded(operations: Iterable[Operation], options: LogOptions) -> Iterator[bytes]:
    """Yield the bytes of a patch as a log of these options stores it, some operations at a time."""
    encoder = CanonicalPatchEncoder(rdf_star=options.rdf_star, generalized_statements=options.generalized_statements)
    for batch in batches(operations):
        for operation in batch:
            encoder.accept(operation)
        if data := encoder.take():
            yield data
    yield encoder.finish()


def _one_patch(parts: Iterator[Effect]) -> Generator[Operation, None, None]:
    yield TransactionStart()
    for part in parts:
        _, *operations, _ = part.operations()
        yield from operations
    yield TransactionCommit()
