"""Operations as people look at them: by graph, with signs, and IRIs shortened by prefixes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from patchlog.engine import RdfPatchWriter
from patchlog.model import (
    DEFAULT_GRAPH,
    Add,
    Delete,
    Header,
    NamespaceAdd,
    NamespaceDelete,
    Operation,
    Punctuation,
    Term,
    TransactionAbort,
    TransactionStart,
)
from patchlog.text.terms import Iri, Literal, parse_term

__all__ = ["MOST_ROWS", "Shortener", "plain", "prefixes_of", "rows_of", "shown_rows"]

MOST_ROWS: Final = 1000
"""What a page shows of a patch, in operations; the rest is in its download."""
_MOST_CHARACTERS: Final = 1 << 20
"""Terms may be long."""

_USUAL: Final = {
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#": "rdf",
    "http://www.w3.org/2000/01/rdf-schema#": "rdfs",
    "http://www.w3.org/2001/XMLSchema#": "xsd",
    "http://www.w3.org/2002/07/owl#": "owl",
    "http://www.w3.org/2004/02/skos/core#": "skos",
    "http://purl.org/dc/terms/": "dct",
    "http://xmlns.com/foaf/0.1/": "foaf",
    "http://schema.org/": "schema",
    "https://schema.org/": "schema",
    "http://www.w3.org/ns/prov#": "prov",
}
_LOCAL: Final = re.compile(r"[\w.-]*")
_DATATYPE: Final = re.compile(r'(?s)(".*")\^\^(<[^<>]*>)')


class Shortener:
    """Shortens IRIs for the eye. What it gives is not meant to be read back."""

    def __init__(self, declared: Mapping[str, str] | None = None) -> None:
        """`declared` is IRIs to prefixes; those that everybody knows come after them."""
        self._prefixes = _USUAL | dict(declared or {})

    def declare(self, name: str, iri: Term) -> None:
        """Know a prefix from now on."""
        parsed = parse_term(iri)
        if isinstance(parsed, Iri):
            self._prefixes[parsed.value] = name

    def short(self, term: Term) -> str:
        """The term, shortened where there is a prefix for it."""
        if term == DEFAULT_GRAPH:
            return "default graph"
        if typed := _DATATYPE.fullmatch(term):
            return f"{typed[1]}^^{self.short(typed[2])}"
        if not term.startswith("<") or term.startswith("<<"):
            return term
        iri = term[1:-1]
        cut = max(iri.rfind("#"), iri.rfind("/")) + 1
        name = self._prefixes.get(iri[:cut])
        return f"{name}:{iri[cut:]}" if name is not None and _LOCAL.fullmatch(iri[cut:]) else term


@dataclass(slots=True)
class _Rows:
    """What was seen of some operations."""

    rows: list[tuple[str, tuple[Term, Term, Term, Term], bool]] = field(default_factory=list)
    namespaces: list[tuple[str, str, Term | None]] = field(default_factory=list)
    headers: list[tuple[str, Term]] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    has_more: bool = False


def rows_of(operations: Iterable[Operation]) -> _Rows:
    """The first rows of a patch. A transaction that ends in an abort is marked."""
    seen = _Rows()
    begun = characters = 0
    for operation in operations:
        if isinstance(operation, Punctuation):
            break
        if len(seen.operations) == MOST_ROWS or characters > _MOST_CHARACTERS:
            seen.has_more = True
            break
        seen.operations.append(operation)
        match operation:
            case Add(subject, predicate, object, graph) | Delete(subject, predicate, object, graph):
                characters += len(subject) + len(predicate) + len(object) + len(graph or "")
            case Header(_, value):
                characters += len(value)
        match operation:
            case Add(subject, predicate, object, graph):
                seen.rows.append(("+", (subject, predicate, object, graph or DEFAULT_GRAPH), True))
            case Delete(subject, predicate, object, graph):
                seen.rows.append(("-", (subject, predicate, object, graph or DEFAULT_GRAPH), True))
            case NamespaceAdd(name, iri, _):
                seen.namespaces.append(("+", name, iri))
            case NamespaceDelete(name, iri, _):
                seen.namespaces.append(("-", name, iri))
            case Header(key, value):
                seen.headers.append((key, value))
            case TransactionStart():
                begun = len(seen.rows)
            case TransactionAbort():
                seen.rows[begun:] = [(sign, quad, False) for sign, quad, _ in seen.rows[begun:]]
    return seen


def prefixes_of(operations: Iterable[Operation]) -> dict[str, str]:
    """IRIs to prefixes: what is declared before the first statement, which is where programs declare them."""
    found = {}
    for operation in islice(operations, MOST_ROWS):
        match operation:
            case NamespaceAdd(name, iri, _) if isinstance(parsed := parse_term(iri), Iri):
                found[parsed.value] = name
            case Add() | Delete():
                break
    return found


def plain(term: Term) -> str:
    """What a header says, without the marks of its syntax."""
    parsed = parse_term(term)
    match parsed:
        case Literal():
            return parsed.lexical
        case Iri():
            return parsed.value
    return term


def shown_rows(seen: _Rows, declared: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Rows as a page shows them: graph by graph, in the order in which they came. `declared` is IRIs to prefixes."""
    shortener = Shortener(declared)
    for sign, name, iri in seen.namespaces:
        if sign == "+" and iri is not None:
            shortener.declare(name, iri)
    graphs: dict[Term, list[dict[str, Any]]] = {}
    for sign, (subject, predicate, object, graph), has_effect in seen.rows:
        terms = {"subject": subject, "predicate": predicate, "object": object}
        row = {place: {"term": term, "short": shortener.short(term)} for place, term in terms.items()}
        graphs.setdefault(graph, []).append({"sign": sign, "has_effect": has_effect, **row})
    return {
        "graphs": [
            {"graph": {"term": graph, "short": shortener.short(graph)}, "rows": rows} for graph, rows in graphs.items()
        ],
        "namespaces": [{"sign": sign, "name": name, "iri": iri} for sign, name, iri in seen.namespaces],
        "headers": [{"key": key, "value": value} for key, value in seen.headers],
        "has_more": seen.has_more,
        "text": _text_of(seen.operations),
    }


def _text_of(operations: Iterable[Operation]) -> str:
    writer = RdfPatchWriter()
    for operation in operations:
        writer.accept(operation)
    return writer.finish().decode()
