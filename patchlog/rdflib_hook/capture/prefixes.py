"""The namespaces of a captured store.

They are kept here and not in the inner store, as no store of rdflib can forget a prefix, which a rollback and the
deletes of a log ask for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import count
from string import digits
from typing import Final

from rdflib.namespace import _NAMESPACE_PREFIXES_CORE, _NAMESPACE_PREFIXES_RDFLIB
from rdflib.term import _SKOLEM_DEFAULT_AUTHORITY, URIRef, rdflib_skolem_genid

__all__ = ["Prefixes", "is_declared"]

_OWN: Final = {name: str(iri) for name, iri in (_NAMESPACE_PREFIXES_CORE | _NAMESPACE_PREFIXES_RDFLIB).items()} | {
    "genid": _SKOLEM_DEFAULT_AUTHORITY + rdflib_skolem_genid
}
"""What rdflib binds by itself: whenever somebody asks a graph for its namespaces, and for graphs without a name."""

_MADE_UP: Final = re.compile(r"ns[0-9]+")
"""What rdflib's serializers bind when they lack a prefix."""


class Prefixes:
    """Prefixes and what they stand for.

    Whoever binds an IRI to a prefix takes it from another one, as in rdflib's own stores. In a log several writers may
    have let several stand for one IRI, and then they do here.
    """

    def __init__(self) -> None:
        self._iris: dict[str, URIRef] = {}
        self._instead: set[str] = set()
        """Those that rdflib has bound by itself instead of its own, which somebody had given another meaning."""

    def bind(self, name: str, iri: URIRef, *, override: bool = True) -> None:
        """Let a prefix stand for an IRI; without `override` only where neither has another."""
        others = [other for other, bound in self._iris.items() if bound == iri and other != name]
        if not override and (others or name in self._iris):
            return
        is_instead = self._is_instead(name, str(iri))
        if (is_instead or _OWN.get(name) == str(iri)) and any(self._is_declared(other) for other in others):
            # rdflib binds its own again with each graph. That takes nobody's prefix away.
            return
        for other in others:
            self.let(other, None)
        self.let(name, iri)
        if is_instead:
            self._instead.add(name)

    def let(self, name: str, iri: str | None) -> None:
        """Let a prefix stand for an IRI, or for nothing; others may stand for the same."""
        self._instead.discard(name)
        if iri is None:
            self._iris.pop(name, None)
        else:
            self._iris[name] = URIRef(iri)

    def iri(self, name: str) -> URIRef | None:
        """What a prefix stands for."""
        return self._iris.get(name)

    def name(self, iri: URIRef) -> str | None:
        """The prefix of an IRI."""
        return next((name for name, bound in self._iris.items() if bound == iri), None)

    def __iter__(self) -> Iterator[tuple[str, URIRef]]:
        return iter(list(self._iris.items()))

    def declared(self) -> dict[str, str]:
        """Those that a person has declared."""
        return {name: str(iri) for name, iri in self._iris.items() if self._is_declared(name)}

    def declare(self, declared: Mapping[str, str]) -> None:
        """Let these be all that a person has declared."""
        for name in self.declared().keys() - declared.keys():
            self.let(name, None)
        for name, iri in declared.items():
            self.let(name, iri)

    def _is_declared(self, name: str) -> bool:
        return name not in self._instead and is_declared(name, str(self._iris[name]))

    def _is_instead(self, name: str, iri: str) -> bool:
        """Whether rdflib, which finds its own prefix taken, would choose this one: the next number that is free."""
        own = name.rstrip(digits)
        number = name[len(own) :]
        return (
            _OWN.get(own) == iri
            and str(self._iris.get(own, iri)) != iri
            and number == next(str(free) for free in count(1) if str(self._iris.get(f"{own}{free}", iri)) == iri)
        )


def is_declared(name: str, iri: str) -> bool:
    """Whether a person has said so, and not rdflib by itself."""
    return _OWN.get(name) != iri and _MADE_UP.fullmatch(name) is None
