"""The namespaces of a captured store.

They are kept here and not in the inner store, as no store of rdflib can forget a prefix, which a rollback and the
deletes of a log ask for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from rdflib.namespace import _NAMESPACE_PREFIXES_CORE, _NAMESPACE_PREFIXES_RDFLIB
from rdflib.term import _SKOLEM_DEFAULT_AUTHORITY, URIRef, rdflib_skolem_genid

__all__ = ["Prefixes"]

_OWN: Final = {name: str(iri) for name, iri in (_NAMESPACE_PREFIXES_CORE | _NAMESPACE_PREFIXES_RDFLIB).items()} | {
    "genid": _SKOLEM_DEFAULT_AUTHORITY + rdflib_skolem_genid
}
"""What rdflib binds by itself: whenever somebody asks a graph for its namespaces, and for graphs without a name."""

_MADE_UP: Final = re.compile(r"ns[0-9]+")
"""What rdflib's serializers bind when they lack a prefix."""


class Prefixes:
    """Prefixes and what they stand for. One IRI has one prefix, as in rdflib's own stores."""

    def __init__(self) -> None:
        self._iris: dict[str, URIRef] = {}
        self._names: dict[URIRef, str] = {}

    def bind(self, name: str, iri: URIRef, *, override: bool = True) -> None:
        """Let a prefix stand for an IRI; without `override` only where neither has another."""
        had, was = self._iris.get(name), self._names.get(iri)
        if not override and (had is not None or was is not None):
            return
        if was not in (None, name) and _OWN.get(name) == str(iri) and _is_declared(str(was), str(iri)):
            # rdflib binds its own again with each graph. That takes nobody's prefix away.
            return
        self.unbind(name)
        if was is not None:
            self.unbind(was)
        self._iris[name] = iri
        self._names[iri] = name

    def unbind(self, name: str) -> None:
        """Let a prefix stand for nothing."""
        iri = self._iris.pop(name, None)
        if iri is not None:
            del self._names[iri]

    def iri(self, name: str) -> URIRef | None:
        """What a prefix stands for."""
        return self._iris.get(name)

    def name(self, iri: URIRef) -> str | None:
        """The prefix of an IRI."""
        return self._names.get(iri)

    def __iter__(self) -> Iterator[tuple[str, URIRef]]:
        return iter(list(self._iris.items()))

    def declared(self) -> dict[str, str]:
        """Those that a person has declared."""
        return {name: str(iri) for name, iri in self._iris.items() if _is_declared(name, str(iri))}

    def declare(self, declared: Mapping[str, str]) -> None:
        """Let these be all that a person has declared."""
        for name in self.declared().keys() - declared.keys():
            self.unbind(name)
        for name, iri in declared.items():
            self.bind(name, URIRef(iri))


def _is_declared(name: str, iri: str) -> bool:
    return _OWN.get(name) != iri and _MADE_UP.fullmatch(name) is None
