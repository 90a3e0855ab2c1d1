"""Terms: canonical text to rdflib's objects and back, exactly.

rdflib's own constructors are slow, and `Literal` rewrites lexical forms ("01" becomes "1"), which is wrong where
changes are captured: a delete of "1" does not match "01". So objects are made here by `str.__new__` with their slots
filled, the value cast as `Literal(…, normalize=False)` casts it. That leans on the inside of rdflib.term: the range of
rdflib is pinned, and a parity test over all datatypes compares with the constructors.

What differs from the constructors, on purpose: no warnings are logged for IRIs or lexical forms that are not valid
(`Literal.ill_typed` says it), and xsd:token and xsd:normalizedString keep their white space.
"""

# ruff: noqa: SLF001 - see above: filling the slots of a Literal is what this module is for

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

from rdflib.graph import DATASET_DEFAULT_GRAPH_ID
from rdflib.term import (
    BNode,
    IdentifiedNode,
    Identifier,
    Literal,
    URIRef,
    _check_well_formed_types,
    _toPythonMapping,
    _well_formed_by_value,
)

from patchlog.errors import InvalidTerm, UsageError
from patchlog.model import DEFAULT_GRAPH, XSD_STRING, Statement, Term, is_statement, not_a_statement
from patchlog.text.terms import blank_node_term, escape_language, escape_lexical, iri_term, unescape

__all__ = ["LiteralKind", "RdflibStatement", "TermBuilder", "TermFormatter"]

RdflibStatement: TypeAlias = (
    tuple[Identifier, Identifier, Identifier] | tuple[Identifier, Identifier, Identifier, Identifier]
)
"""A triple, or a quad whose default graph is `rdflib.graph.DATASET_DEFAULT_GRAPH_ID`."""

MAX_CACHED_TERMS: Final = 1 << 16

NO_QUOTED_TRIPLES: Final = (
    "rdflib has no terms for quoted triples (RDF-star): read this stream as patchlog's own terms instead, "
    "or convert it to another format"
)


class LiteralKind:
    """What all literals with one language tag or datatype have in common. The native codec asks it too."""

    __slots__ = ("cast", "datatype", "is_known", "is_well_formed", "language")

    def __init__(self, suffix: str) -> None:
        """`suffix` is what follows the closing quote of the literal's text."""
        self.language = unescape(suffix[1:]) if suffix.startswith("@") else None
        self.datatype = _uri(unescape(suffix[3:-1])) if suffix.startswith("^^") else None
        self.is_known = self.datatype in _toPythonMapping
        self.cast: Callable[[str], Any] | None = _toPythonMapping.get(self.datatype)
        self.is_well_formed: Callable[[str, Any], bool] | None = (
            None
            if self.datatype is None or not self.is_known
            else _check_well_formed_types.get(self.datatype, _well_formed_by_value)
        )

    def value(self, lexical: str) -> Any:
        """Cast the lexical form; None where rdflib has no value for it."""
        if self.cast is None:
            return lexical if self.is_known else None
        try:
            return self.cast(lexical)
        except Exception:  # noqa: BLE001 - rdflib and users bind any function to a datatype; its failure means "no value"
            return None


def _uri(iri: str) -> URIRef:
    return str.__new__(URIRef, iri)


class TermBuilder:
    """Canonical text to rdflib terms. IRIs and blank nodes are built once and kept in a bounded cache."""

    def __init__(self) -> None:
        self._terms: dict[Term, Identifier] = {}
        self._kinds: dict[str, LiteralKind] = {}

    def term(self, term: Term) -> Identifier:
        """Build one term. Raises UsageError for a quoted triple."""
        built = self._terms.get(term)
        if built is not None:
            return built
        first = term[:1]
        if first == '"':
            return self._literal(term)
        if first == "<":
            if term.startswith("<<("):
                raise UsageError(NO_QUOTED_TRIPLES)
            built = _uri(unescape(term[1:-1]))
        elif first == "_":
            built = str.__new__(BNode, unescape(term[2:]))
        else:
            raise InvalidTerm(f"{term!r} is not a term")
        if len(self._terms) >= MAX_CACHED_TERMS:
            self._terms.clear()
        self._terms[term] = built
        return built

    def graph(self, graph: Term) -> Identifier:
        """Build the name of a graph."""
        return DATASET_DEFAULT_GRAPH_ID if graph == DEFAULT_GRAPH else self.term(graph)

    def statements(self, statements: Iterable[Statement]) -> list[RdflibStatement]:
        """Build the terms of many statements."""
        term, graph = self.term, self.graph
        return [
            (term(s[0]), term(s[1]), term(s[2])) if len(s) == 3 else (term(s[0]), term(s[1]), term(s[2]), graph(s[3]))
            for s in statements
        ]

    def _literal(self, term: Term) -> Literal:
        end = term.rindex('"')
        lexical = unescape(term[1:end])
        kind = self._kind(term[end + 1 :])
        literal = str.__new__(Literal, lexical)
        literal._language = kind.language
        literal._datatype = kind.datatype
        literal._value = value = kind.value(lexical)
        literal._ill_typed = None if kind.is_well_formed is None else not kind.is_well_formed(lexical, value)
        return literal

    def _kind(self, suffix: str) -> LiteralKind:
        kind = self._kinds.get(suffix)
        if kind is None:
            if len(self._kinds) >= MAX_CACHED_TERMS:
                self._kinds.clear()
            kind = self._kinds[suffix] = LiteralKind(suffix)
        return kind


class TermFormatter:
    """rdflib terms to canonical text. IRIs are formatted once and kept in a bounded cache."""

    def __init__(self) -> None:
        self._iris: dict[URIRef, Term] = {}
        self._suffixes: dict[URIRef | None, str] = {}

    def term(self, node: object) -> Term:
        """Format one term. Raises InvalidTerm for what is not an RDF term, such as a variable or a formula."""
        if isinstance(node, URIRef):
            return self._iris.get(node) or self._iri(node)
        if isinstance(node, Literal):
            return self._literal(node)
        if isinstance(node, BNode):
            return blank_node_term(str(node))
        raise InvalidTerm(f"{node!r} ({type(node).__name__}) is not an IRI, a blank node or a literal")

    def graph(self, name: IdentifiedNode | None) -> Term:
        """Format the name of a graph; None and rdflib's own name for it are the default graph."""
        return DEFAULT_GRAPH if name is None or name == DATASET_DEFAULT_GRAPH_ID else self.term(name)

    def statement(self, statement: tuple[Any, ...]) -> Statement:
        """Format the terms of a triple or quad."""
        if not is_statement(statement):
            raise not_a_statement(statement)
        term = self.term
        if len(statement) == 3:
            return (term(statement[0]), term(statement[1]), term(statement[2]))
        return (term(statement[0]), term(statement[1]), term(statement[2]), self.graph(statement[3]))

    def _iri(self, node: URIRef) -> Term:
        if len(self._iris) >= MAX_CACHED_TERMS:
            self._iris.clear()
        text = self._iris[node] = iri_term(str(node))
        return text

    def _literal(self, literal: Literal) -> Term:
        quoted = f'"{escape_lexical(str(literal))}"'
        if literal.language:
            return f"{quoted}@{escape_language(literal.language)}"
        datatype = literal.datatype
        suffix = self._suffixes.get(datatype)
        if suffix is None:
            suffix = self._suffix(datatype)
        return quoted + suffix

    def _suffix(self, datatype: URIRef | None) -> str:
        if len(self._suffixes) >= MAX_CACHED_TERMS:
            self._suffixes.clear()
        is_string = datatype is None or str(datatype) == XSD_STRING
        suffix = self._suffixes[datatype] = "" if is_string else f"^^{iri_term(str(datatype))}"
        return suffix
