"""Effects of more operations than memory holds: dealt out to parts by the hash of what they are about, on disk.

What becomes of a quad depends on the operations on this quad alone, on their order, and on the transactions that they
stand in. So a part that has all operations on its quads, in their order and with their transactions around them, has
the effect of the whole on these quads: `patchlog.effect` need not know that there are others. Namespaces likewise.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Collection, Generator, Hashable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain, islice
from tempfile import TemporaryFile
from typing import Final, Self, TypeAlias, TypeVar
from zlib import crc32

from patchlog.effect import Effect, NamespaceKey, effect
from patchlog.engine import RdfPatchReader, RdfPatchWriter
from patchlog.errors import StorageError, StorageFull
from patchlog.model import (
    DEFAULT_GRAPH,
    Add,
    Delete,
    NamespaceAdd,
    NamespaceDelete,
    Operation,
    Punctuation,
    Quad,
    TransactionAbort,
    TransactionCommit,
    TransactionStart,
)
from patchlog.pipes import drain

__all__ = ["OPERATIONS_IN_MEMORY", "Change", "Key", "dealt", "effects", "key_of", "operations_on", "temporary_files"]

Change: TypeAlias = Add | Delete | NamespaceAdd | NamespaceDelete
Key: TypeAlias = Quad | NamespaceKey
"""What an operation is about. A quad has four terms, the key of a namespace two."""

OPERATIONS_IN_MEMORY: Final = 100_000
_PARTS: Final = 64
_DEEPEST: Final = 3
"""Parts of parts of parts: only operations on the same few quads could still be more than fits."""
_FLUSHED_OPERATIONS: Final = 16_384

_Place = TypeVar("_Place", bound=Hashable)


def effects(
    operations: Iterable[Operation],
    others: Sequence[Iterable[Operation]] = (),
    *,
    in_memory: int = OPERATIONS_IN_MEMORY,
    depth: int = 0,
) -> Generator[tuple[Effect, ...], None, None]:
    """Yield the effect of operations in parts, and beside each part the effects of others on what it is about.

    The parts together are the whole. They come after all that is to be read was read. Close the iterator to let go of
    the files.
    """
    stream = iter(operations)
    held = list(islice(stream, in_memory))
    if len(held) < in_memory or depth == _DEEPEST:
        part = effect(chain(held, stream))
        keys = part.adds | part.deletes | part.namespaces.keys()
        yield part, *[effect(operations_on(keys, other)) for other in others]
        return
    with ExitStack() as files:
        spills = [files.enter_context(_Spill(source, depth)) for source in (chain(held, stream), *others)]
        held.clear()
        for number in spills[0].parts():
            part_of_each = [spill.part(number) for spill in spills]
            yield from effects(part_of_each[0], part_of_each[1:], in_memory=in_memory, depth=depth + 1)


def operations_on(keys: Collection[Key], operations: Iterable[Operation]) -> Iterator[Operation]:
    """Yield the operations on some quads and namespaces, with their transactions around them."""
    for _, operation in dealt(operations, lambda change: True if key_of(change) in keys else None):
        yield operation


def dealt(
    operations: Iterable[Operation], place_of: Callable[[Change], _Place | None]
) -> Iterator[tuple[_Place, Operation]]:
    """Yield operations with their places; without one they are left out. Each place gets whole transactions.

    A transaction that has nothing for a place does not show there, nor do headers and the ends of patches.
    """
    is_inside = False
    entered: set[_Place] = set()
    for operation in operations:
        match operation:
            case Add() | Delete() | NamespaceAdd() | NamespaceDelete():
                place = place_of(operation)
                if place is None:
                    continue
                if is_inside and place not in entered:
                    entered.add(place)
                    yield place, TransactionStart()
                yield place, operation
            case TransactionStart():
                is_inside = True
            case TransactionCommit() | TransactionAbort() | Punctuation():
                # A patch that ends inside a transaction has aborted it.
                end = TransactionAbort() if isinstance(operation, Punctuation) else operation
                yield from ((place, end) for place in entered)
                entered.clear()
                is_inside = False
    yield from ((place, TransactionAbort()) for place in entered)


def key_of(change: Change) -> Key:
    """What an operation is about."""
    graph = change.graph or DEFAULT_GRAPH
    if isinstance(change, Add | Delete):
        return change.subject, change.predicate, change.object, graph
    return graph, change.name


@contextmanager
def temporary_files() -> Iterator[None]:
    """Let the errors of temporary files come out as ours. They are in the folder that TMPDIR names."""
    try:
        yield
    except OSError as error:
        reason = (
            f"a temporary file could not be written or read ({error.strerror}); TMPDIR says where there is more room"
        )
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise StorageFull(reason) from error
        raise StorageError(reason) from error


class _Spill:
    """Operations in a file, part by part."""

    def __init__(self, operations: Iterable[Operation], depth: int) -> None:
        with temporary_files():
            self._file = TemporaryFile()  # noqa: SIM115  it is closed with the spill
        self._places: list[list[tuple[int, int]]] = [[] for _ in range(_PARTS)]
        try:
            self._write(operations, depth)
        except BaseException:
            self._close()
            raise

    def parts(self) -> list[int]:
        """The parts that have operations."""
        return [number for number, places in enumerate(self._places) if places]

    def part(self, number: int) -> Iterator[Operation]:
        """The operations of a part, in their order."""
        return drain(RdfPatchReader(), self._chunks(number))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        with suppress(OSError):  # of what was not written, which nobody wants any more
            self._file.close()

    def _write(self, operations: Iterable[Operation], depth: int) -> None:
        writers = [RdfPatchWriter() for _ in range(_PARTS)]
        pending = iter(dealt(operations, lambda change: _part_of(change, depth)))
        while batch := list(islice(pending, _FLUSHED_OPERATIONS)):
            for number, operation in batch:
                writers[number].accept(operation)
            for writer, places in zip(writers, self._places, strict=True):
                if data := writer.take():
                    with temporary_files():
                        places.append((self._file.tell(), len(data)))
                        self._file.write(data)

    def _chunks(self, number: int) -> Iterator[bytes]:
        for start, size in self._places[number]:
            with temporary_files():
                self._file.seek(start)
                data = self._file.read(size)
            yield data


def _part_of(change: Change, depth: int) -> int:
    return crc32("\n".join(key_of(change)).encode(), depth) % _PARTS
