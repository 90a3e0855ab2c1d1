"""What patches do to a dataset: a set of quads, and a map of namespaces.

The rules, kept in this one place:

- The last operation on a quad, or on a namespace, wins. Adding what is there and deleting what is not changes nothing.
- A transaction that is aborted, or still open where its patch ends, has no effect. Operations outside of transactions
  take effect in their place.
- A punctuation ends a patch, and so does the end of the operations.
- A triple stands in the default graph: a graph of None is the default graph here. A namespace is known by graph and
  name.

An `Effect` fits in memory by contract; who has larger ones brings changes of another kind to `Effective`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping, MutableSet
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Generic, Protocol, Self, TypeAlias, TypeVar

from patchlog.model import (
    DEFAULT_GRAPH,
    Add,
    Delete,
    Header,
    NamespaceAdd,
    NamespaceDelete,
    Operation,
    Punctuation,
    Quad,
    Term,
    TransactionAbort,
    TransactionCommit,
    TransactionStart,
    not_an_operation,
)
from patchlog.transactions import TransactionOrder

__all__ = ["Changes", "Effect", "Effective", "NamespaceKey", "apply_effect", "diff", "effect", "invert", "squash"]

NamespaceKey: TypeAlias = tuple[Term, str]
"""Graph and name."""


@dataclass(frozen=True, slots=True)
class Effect:
    """The quads that are there afterwards and those that are not, and what namespaces stand for (None: nothing)."""

    adds: AbstractSet[Quad] = frozenset()
    deletes: AbstractSet[Quad] = frozenset()
    namespaces: Mapping[NamespaceKey, Term | None] = field(default_factory=dict)

    def operations(self) -> list[Operation]:
        """One patch of one transaction with this effect, and without headers. The same effect gives the same list."""
        patch: list[Operation] = [TransactionStart()]
        for (graph, name), iri in sorted(self.namespaces.items(), key=lambda item: item[0]):
            patch.append(NamespaceDelete(name, None, graph) if iri is None else NamespaceAdd(name, iri, graph))
        patch += (Delete(*quad) for quad in sorted(self.deletes))
        patch += (Add(*quad) for quad in sorted(self.adds))
        patch.append(TransactionCommit())
        return patch


class Changes(Protocol):
    """The last word on each quad and namespace, in one transaction or in all of them."""

    def update(self, later: Self, /) -> None:
        """Let the later ones have the last word."""


_Kind = TypeVar("_Kind", bound=Changes)


class Effective(Generic[_Kind]):
    """Tells changes that take effect from those that do not, by the transactions and patches that they stand in.

    A change goes to `changes`; what has taken effect is in `net`. Raises TransactionError where transactions are out of
    order.
    """

    def __init__(self, new: Callable[[], _Kind]) -> None:
        self._new = new
        self._order = TransactionOrder()
        self.net = self.changes = new()

    def start(self) -> None:
        """A transaction starts."""
        self._order.start()
        self.changes = self._new()

    def commit(self) -> None:
        """The transaction takes effect."""
        self._order.end()
        self.net.update(self.changes)
        self.changes = self.net

    def abort(self) -> None:
        """The transaction has no effect."""
        self._order.end(is_abort=True)
        self.changes = self.net

    def end_patch(self) -> None:
        """What is still open has no effect."""
        self._order = TransactionOrder()
        self.changes = self.net


class _ChangesInMemory:
    __slots__ = ("namespaces", "quads")

    def __init__(self) -> None:
        self.quads: dict[Quad, bool] = {}
        self.namespaces: dict[NamespaceKey, Term | None] = {}

    def update(self, later: Self, /) -> None:
        self.quads.update(later.quads)
        self.namespaces.update(later.namespaces)


def effect(operations: Iterable[Operation]) -> Effect:
    """The net effect of a patch, or of patches one after the other.

    Raises TransactionError where transactions are out of order, UsageError for what is no operation.
    """
    effective = Effective(_ChangesInMemory)
    changes = effective.changes
    for operation in operations:
        match operation:
            case Add(subject, predicate, object_, graph):
                changes.quads[subject, predicate, object_, graph or DEFAULT_GRAPH] = True
            case Delete(subject, predicate, object_, graph):
                changes.quads[subject, predicate, object_, graph or DEFAULT_GRAPH] = False
            case NamespaceAdd(name, iri, graph):
                changes.namespaces[graph or DEFAULT_GRAPH, name] = iri
            case NamespaceDelete(name, _, graph):
                changes.namespaces[graph or DEFAULT_GRAPH, name] = None
            case TransactionStart():
                effective.start()
                changes = effective.changes
            case TransactionCommit():
                effective.commit()
                changes = effective.changes
            case TransactionAbort():
                effective.abort()
                changes = effective.changes
            case Punctuation():
                effective.end_patch()
                changes = effective.changes
            case Header():
                pass  # says something about the patch, and changes nothing
            case _:
                raise not_an_operation(operation)
    net = effective.net
    return Effect(
        frozenset(quad for quad, is_there in net.quads.items() if is_there),
        frozenset(quad for quad, is_there in net.quads.items() if not is_there),
        net.namespaces,
    )


def apply_effect(dataset: MutableSet[Quad], namespaces: MutableMapping[NamespaceKey, Term], change: Effect) -> None:
    """Change a dataset and its namespaces in place. Applying it again changes nothing more."""
    dataset -= change.deletes
    dataset |= change.adds
    for key, iri in change.namespaces.items():
        if iri is None:
            namespaces.pop(key, None)
        else:
            namespaces[key] = iri


def invert(change: Effect, dataset: AbstractSet[Quad], namespaces: Mapping[NamespaceKey, Term]) -> list[Operation]:
    """The patch that takes a change back, and nothing but what it changed.

    `dataset` and `namespaces` are as they were before the change.
    """
    return Effect(
        change.deletes & dataset,
        change.adds - dataset,
        {key: namespaces.get(key) for key, iri in change.namespaces.items() if namespaces.get(key) != iri},
    ).operations()


def diff(
    before: AbstractSet[Quad],
    after: AbstractSet[Quad],
    namespaces_before: Mapping[NamespaceKey, Term] | None = None,
    namespaces_after: Mapping[NamespaceKey, Term] | None = None,
) -> list[Operation]:
    """The patch that makes one dataset out of another."""
    old, new = namespaces_before or {}, namespaces_after or {}
    return Effect(
        after - before,
        before - after,
        {key: new.get(key) for key in old.keys() | new.keys() if new.get(key) != old.get(key)},
    ).operations()


def squash(operations: Iterable[Operation]) -> list[Operation]:
    """One patch with the net effect of many. Headers are left out: the result is another patch than any of them."""
    return effect(operations).operations()
