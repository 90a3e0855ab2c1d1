"""RDF Patch text to operations, row by row. docs/protocol.md, "RDF Patch text"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from patchlog.errors import CodecError, InvalidSyntax, TransactionError
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
    TransactionCommit,
    TransactionStart,
)
from patchlog.spending import Spendable, spending_iteration
from patchlog.text.lines import MAX_LINE_BYTES, LineReader
from patchlog.text.rdf_patch_tokens import Kind, PatchTokens
from patchlog.text.syntax import (
    BLANKS,
    CANONICAL_IRI,
    CANONICAL_LABEL,
    CANONICAL_LITERAL,
    TermCollector,
    located,
)
from patchlog.text.terms import Iri, Literal, iri_term, literal_term, parse_term, unescape
from patchlog.transactions import TransactionOrder

__all__ = ["RdfPatchReader"]

# Jena's names of the default graph; it writes them in namespace rows.
_NAMES_OF_DEFAULT_GRAPH: Final = {"<urn:x-arq:DefaultGraph>", "<urn:x-arq:DefaultGraphNode>"}

_MOST_TERMS: Final = {"A": 4, "D": 4, "H": 2, "PA": 3, "PD": 3, "TX": 0, "TB": 0, "TC": 0, "TA": 0, "Z": 0}
"""How many terms a row of each kind has at most."""
_KEYWORDS: Final = ", ".join(_MOST_TERMS)

_NODE: Final = rf"<(?!_:){CANONICAL_IRI[1:]}|<{CANONICAL_LABEL}>|{CANONICAL_LABEL}"
_ORDINARY_ROW: Final = re.compile(
    rf"([AD]){BLANKS}++({_NODE}){BLANKS}*+({_NODE}){BLANKS}*+({_NODE}|{CANONICAL_LITERAL}){BLANKS}*+"
    rf"(?:({_NODE}){BLANKS}*+)?+\.{BLANKS}*+"
)

_BARE_ID: Final = re.compile(
    rf"{BLANKS}*+H{BLANKS}++(?:id|prev){BLANKS}++([0-9A-Fa-f]{{8}}(?:-[0-9A-Fa-f]{{4}}){{3}}-[0-9A-Fa-f]{{12}})"
    rf"(?={BLANKS}|[.#]|\Z)"
)
"""A row that has the id of a patch as it stands in JSON and on command lines. It is read as if it were in quotes."""


class RdfPatchReader(Spendable):
    """Reads RDF Patch. Its face: `patchlog.codec.faces.OperationDecoderFace`.

    `strict` refuses transactions that are out of order; the syntax is the same without.
    """

    def __init__(self, *, strict: bool = True, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._order = TransactionOrder() if strict else None
        self._lines = LineReader(max_line_bytes)
        self._tokens = PatchTokens(max_line_bytes)
        self._keyword: str | None = None
        self._row_line = 0
        self._row = TermCollector()
        self._dot_may_follow = False

    @spending_iteration
    def feed(self, data: bytes, /) -> Iterator[Operation]:
        """Take some bytes and yield the operations that are complete. Exhaust it before the next call."""
        return self._read(self._lines.feed(data))

    @spending_iteration
    def finish(self) -> Iterator[Operation]:
        """Say that the input has ended, and yield the operations of a last line without a line end. Exhaust it."""
        yield from self._read(self._lines.finish())
        if self._keyword is not None:
            raise InvalidSyntax("the input ends inside a row", line=self._row_line)

    def _read(self, lines: Iterator[str]) -> Iterator[Operation]:
        for line in lines:
            if self._keyword is None and (ordinary := _ORDINARY_ROW.fullmatch(line)):
                self._dot_may_follow = False
                yield _ordinary_operation(ordinary)
                continue
            try:
                yield from self._operations_of(line)
            except CodecError as error:
                raise located(error, self._lines.number) from None

    def _operations_of(self, line: str) -> Iterator[Operation]:
        if self._keyword is None and (bare := _BARE_ID.match(line)):
            line = f'{line[: bare.start(1)]}"{bare[1]}"{line[bare.end() :]}'
        for kind, text in self._tokens.of_line(line):
            if self._keyword is None:
                self._begin_row(kind, text)
            elif kind is Kind.DOT:
                yield self._end_row(self._keyword)
            else:
                self._add_to_row(self._keyword, kind, text)
        if self._tokens.is_inside_string:
            if self._keyword is None:
                raise InvalidSyntax(f"a row begins with {_KEYWORDS}, not with a string")
        elif self._keyword == "H" and len(self._row.terms) == 2:
            # rdflib ends the row `H prev` with the line, without a dot.
            yield self._end_row(self._keyword)
            self._dot_may_follow = True

    def _begin_row(self, kind: Kind, text: str) -> None:
        if kind is Kind.DOT and self._dot_may_follow:
            self._dot_may_follow = False
            return
        if kind is not Kind.WORD or text not in _MOST_TERMS:
            raise InvalidSyntax(f"a row begins with {_KEYWORDS}, not with {text!r}")
        self._keyword = text
        self._row_line = self._lines.number
        self._dot_may_follow = False

    def _add_to_row(self, keyword: str, kind: Kind, text: str) -> None:
        row = self._row
        if len(row.terms) == _MOST_TERMS[keyword]:
            raise InvalidSyntax(f"{text!r} is too much for a row {keyword}: its dot should stand there")
        match kind:
            case Kind.TERM:
                row.add(text)
            case Kind.OPENING:
                row.open(text)
            case Kind.CLOSING:
                row.close(text)
            case _ if keyword in {"H", "PA", "PD"} and not row.terms and not row.is_nested:
                row.add(text)
            case _ if text in {"true", "false"}:
                row.add(literal_term(text, datatype="http://www.w3.org/2001/XMLSchema#boolean"))
            case _:
                raise InvalidSyntax(f"{text!r} is not a term")

    def _end_row(self, keyword: str) -> Operation:
        if self._row.is_nested:
            raise InvalidSyntax("a quoted triple is not closed")
        operation = _operation(keyword, self._row.terms)
        if self._order:
            try:
                self._order.accept(operation)
            except TransactionError as error:
                raise TransactionError(error.reason, line=self._row_line) from None
        match operation:
            case NamespaceAdd(name, iri):
                self._tokens.prefixes[name] = unescape(iri[1:-1])
            case NamespaceDelete(name):
                self._tokens.prefixes.pop(name, None)
        self._keyword = None
        self._row = TermCollector()
        return operation


def _ordinary_operation(row: re.Match[str]) -> Operation:
    keyword, subject, predicate, object_, graph = row.groups()
    if "<_:" in row[0]:
        subject, predicate, object_ = (
            _without_brackets(subject),
            _without_brackets(predicate),
            _without_brackets(object_),
        )
        graph = graph and _without_brackets(graph)
    kind = Add if keyword == "A" else Delete
    return kind(subject, predicate, object_, graph and _graph(graph))


def _without_brackets(term: Term) -> Term:
    return term[1:-1] if term.startswith("<_:") else term


def _operation(keyword: str, terms: list[Term]) -> Operation:
    match keyword, terms:
        case "A", [subject, predicate, object_]:
            return Add(subject, predicate, object_)
        case "A", [subject, predicate, object_, graph]:
            return Add(subject, predicate, object_, _graph(graph))
        case "D", [subject, predicate, object_]:
            return Delete(subject, predicate, object_)
        case "D", [subject, predicate, object_, graph]:
            return Delete(subject, predicate, object_, _graph(graph))
        case "H", [key, value]:
            return Header(_name(key), value)
        case "TX" | "TB", []:
            return TransactionStart()
        case "TC", []:
            return TransactionCommit()
        case "TA", []:
            return TransactionAbort()
        case "PA", [name, iri]:
            return NamespaceAdd(_name(name), _iri(iri))
        case "PA", [name, iri, graph]:
            return NamespaceAdd(_name(name), _iri(iri), _graph(graph))
        case "PD", [name]:
            return NamespaceDelete(_name(name))
        case "PD", [name, graph] if name.startswith('"'):
            return NamespaceDelete(_name(name), None, _graph(graph))
        case "PD", [name, iri]:
            return NamespaceDelete(_name(name), _iri(iri))
        case "PD", [name, iri, graph]:
            return NamespaceDelete(_name(name), _iri(iri), _graph(graph))
        case "Z", []:
            return Punctuation()
        case _:
            raise InvalidSyntax(f"{len(terms)} terms are too few for a row {keyword}")


def _name(text: str) -> str:
    """The name of a namespace or the key of a header: a word as it stands, or what a string holds."""
    if text[0] not in '"<_':
        return text
    match parse_term(text):
        case Literal(lexical, None, None):
            return lexical
        case _:
            raise InvalidSyntax(f"{text} is not a name: it should be a word or a string")


def _iri(term: Term) -> Term:
    match parse_term(term):
        case Iri():
            return term
        case Literal(lexical, None, None):
            return iri_term(lexical)
        case _:
            raise InvalidSyntax(f"{term} is not the IRI of a namespace")


def _graph(term: Term) -> Term:
    return DEFAULT_GRAPH if term in _NAMES_OF_DEFAULT_GRAPH else term
