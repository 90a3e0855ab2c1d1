"""Patches take effect in an rdflib store: each whole or not at all.

A patch is read to its end, and its terms are built, before the first change is made. So input that breaks off or is not
well formed leaves the store as the last whole patch left it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rdflib.graph import Graph

from patchlog.effect import Effect, effect
from patchlog.model import Operation, Punctuation
from patchlog.rdflib_hook.target import Target, check_prefix
from patchlog.rdflib_hook.terms import TermBuilder

__all__ = ["apply_patches", "take_effect"]

BATCH: Final = 1 << 15


def apply_patches(operations: Iterable[Operation], graph: Graph) -> None:
    """Apply one patch after the other to the store of a graph or dataset; a punctuation ends a patch."""
    target, builder = Target(graph), TermBuilder()
    patch: list[Operation] = []
    for operation in operations:
        if isinstance(operation, Punctuation):
            take_effect(effect(patch), target, builder)
            patch.clear()
        else:
            patch.append(operation)
    take_effect(effect(patch), target, builder)


def take_effect(changes: Effect, target: Target, builder: TermBuilder) -> None:
    """Change a store. Terms that rdflib does not have raise UsageError before anything is changed."""
    deletes, adds = builder.statements(changes.deletes), builder.statements(changes.adds)
    # rdflib has one set of prefixes for all graphs of a store.
    namespaces = [(name, None if iri is None else builder.term(iri)) for (_, name), iri in changes.namespaces.items()]
    for name, _ in namespaces:
        check_prefix(name)
    # Deletes first: rdflib takes "a"@en and "a"@EN for one term, and then it is the add that has to last.
    target.delete(deletes)
    for start in range(0, len(adds), BATCH):
        target.add(adds[start : start + BATCH])
    for name, iri in namespaces:
        target.declare(name, iri)
