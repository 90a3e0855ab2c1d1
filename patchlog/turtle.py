"""Turtle and TriG output, written as statements come: nothing is sorted, held back or normalised. Knows no files.

What the codec holds comes out as it is: language tags keep their case and relative IRIs stay relative, both of which
the libraries behind `patchlog.syntaxes` would change or refuse. docs/protocol.md says how quoted triples stand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from patchlog.errors import InvalidTerm
from patchlog.model import DEFAULT_GRAPH, Statement, Term
from patchlog.text.terms import BlankNode, Iri, Literal, QuotedTriple, escape_iri, parse_term

__all__ = ["TurtleWriter"]

_RDF_TYPE: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
# A part of what the grammars allow: what is plain in every version of them.
_PREFIX: Final = re.compile(r"(?:[A-Za-z](?:[\w-]*\w)?)?", re.ASCII)
_LOCAL_NAME: Final = re.compile(r"(?:\w[\w-]*)?", re.ASCII)


class TurtleWriter:
    """Statements to Turtle text, or to TriG text with `graphs=True`.

    Statements of one subject that follow each other are written as one group. A namespace may be declared at any
    time; it abbreviates the IRIs that come after it.
    """

    def __init__(self, *, graphs: bool) -> None:
        self._graphs = graphs
        self._out: list[str] = []
        self._prefixes: dict[str, str] = {}
        self._abbreviations: dict[str, str] = {}
        self._open_graph: Term = DEFAULT_GRAPH
        self._last: tuple[Term, Term] | None = None

    def namespace(self, name: str, iri: Term) -> None:
        """Declare a namespace. A name that Turtle cannot write is passed over: it only abbreviates."""
        value = parse_term(iri)
        if not isinstance(value, Iri) or not _PREFIX.fullmatch(name) or self._prefixes.get(name) == value.value:
            return
        self._close_graph()
        self._prefixes[name] = value.value
        self._abbreviations = {iri: name for name, iri in self._prefixes.items() if iri}
        self._out.append(f"@prefix {name}: {iri} .\n")

    def statements(self, statements: Iterable[Statement]) -> None:
        """Write statements."""
        for statement in statements:
            subject, predicate, object_, *graph = statement
            self._enter_graph(graph[0] if graph else DEFAULT_GRAPH)
            indent = "  " if self._open_graph else ""
            match self._last:
                case (last_subject, last_predicate) if last_subject == subject:
                    if last_predicate == predicate:
                        self._out.append(", ")
                    else:
                        self._out.append(f" ;\n{indent}  {self._predicate(predicate)} ")
                case _:
                    self._end_subject()
                    self._out.append(f"{indent}{self._subject(subject)} {self._predicate(predicate)} ")
            self._out.append(self._term(object_))
            self._last = (subject, predicate)

    def take(self) -> bytes:
        """Take the bytes that are written so far."""
        text = "".join(self._out)
        self._out.clear()
        return text.encode()

    def finish(self) -> bytes:
        """End the document and take what is left."""
        self._close_graph()
        return self.take()

    def _enter_graph(self, graph: Term) -> None:
        if graph == self._open_graph:
            return
        if not self._graphs:
            raise InvalidTerm(f"Turtle holds no named graphs; {graph} needs TriG or N-Quads, or merge the graphs")
        self._close_graph()
        if graph:
            self._out.append(f"{self._resource(graph, 'graph')} {{\n")
        self._open_graph = graph

    def _close_graph(self) -> None:
        self._end_subject()
        if self._open_graph:
            self._out.append("}\n")
        self._open_graph = DEFAULT_GRAPH

    def _end_subject(self) -> None:
        if self._last is not None:
            self._out.append(" .\n")
        self._last = None

    def _subject(self, term: Term) -> str:
        match parse_term(term) if term.startswith("<<") else None:
            case QuotedTriple(inner, predicate, object_):
                # RDF 1.2 has no triple term here. What it takes for a reifier is the subject itself in RDF-star.
                return f"<< {self._subject(inner)} {self._predicate(predicate)} {self._term(object_)} >>"
            case _:
                return self._resource(term, "subject")

    def _predicate(self, term: Term) -> str:
        if term == f"<{_RDF_TYPE}>":
            return "a"
        if not term.startswith("<") or term.startswith("<<"):
            raise InvalidTerm(f"Turtle and TriG hold no generalized statements: {term} stands as predicate")
        return self._term(term)

    def _resource(self, term: Term, place: str) -> str:
        if term.startswith(('"', "<<")):
            raise InvalidTerm(f"Turtle and TriG hold no generalized statements: {term} stands as {place}")
        return self._term(term)

    def _term(self, term: Term) -> str:
        if not self._abbreviations and not term.startswith("<<"):
            return term
        match parse_term(term):
            case Iri(value):
                return self._iri(value)
            case Literal(datatype=str(datatype)):
                return f"{term[: term.rindex('^^')]}^^{self._iri(datatype)}"
            case QuotedTriple(subject, predicate, object_):
                return f"<<( {self._subject(subject)} {self._predicate(predicate)} {self._term(object_)} )>>"
            case BlankNode() | Literal():
                return term

    def _iri(self, value: str) -> str:
        split = max(value.rfind("#"), value.rfind("/"), value.rfind(":")) + 1
        name = self._abbreviations.get(value[:split])
        if name is not None and _LOCAL_NAME.fullmatch(value, split):
            return f"{name}:{value[split:]}"
        return f"<{escape_iri(value)}>"
