"""N-Triples and N-Quads: lines to statements and back. docs/protocol.md, "N-Triples and N-Quads"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, cast

from patchlog.errors import CodecError, InvalidSyntax, InvalidTerm
from patchlog.model import Statement, Term
from patchlog.spending import Spendable, spending
from patchlog.text.lines import MAX_LINE_BYTES, LineReader
from patchlog.text.syntax import (
    BLANKS,
    CANONICAL_IRI,
    CANONICAL_LABEL,
    CANONICAL_LITERAL,
    CLOSING_BRACKET,
    IRI,
    LABEL,
    LANGUAGE,
    OPENING_BRACKET,
    STRING,
    TermCollector,
    located,
)
from patchlog.text.terms import blank_node_term, iri_term, literal_term, unescape

__all__ = ["NQuadsReader", "nquads_line", "ntriples_line"]

_RESOURCE: Final = f"{CANONICAL_IRI}|{CANONICAL_LABEL}"
_ORDINARY_LINE: Final = re.compile(
    rf"({_RESOURCE}){BLANKS}*+({CANONICAL_IRI}){BLANKS}*+({_RESOURCE}|{CANONICAL_LITERAL}){BLANKS}*+"
    rf"(?:({_RESOURCE}){BLANKS}*+)?+\.{BLANKS}*+"
)

_TOKEN: Final = re.compile(
    rf"{BLANKS}*+(?:"
    rf"<(?P<iri>{IRI})>"
    rf"|_:(?P<label>{LABEL})"
    rf'|"(?P<string>{STRING})"(?:@(?P<language>{LANGUAGE})|\^\^<(?P<datatype>{IRI})>)?+'
    rf"|(?P<opening>{OPENING_BRACKET})"
    rf"|(?P<closing>{CLOSING_BRACKET})"
    rf"|(?P<dot>\.)"
    rf"|(?P<end>\#.*|\Z))",
    re.DOTALL,
)


class NQuadsReader(Spendable):
    """Reads N-Quads, and N-Triples as N-Quads without graphs. Its face: `patchlog.codec.faces.StatementDecoderFace`."""

    def __init__(self, *, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._lines = LineReader(max_line_bytes)

    @spending
    def feed(self, data: bytes, /) -> list[Statement]:
        """Take some bytes and return the statements of the lines that are complete."""
        return self._statements(self._lines.feed(data))

    @spending
    def finish(self) -> list[Statement]:
        """Say that the input has ended; returns the statement of a last line without a line end."""
        return self._statements(self._lines.finish())

    def _statements(self, lines: Iterator[str]) -> list[Statement]:
        statements: list[Statement] = []
        for line in lines:
            if ordinary := _ORDINARY_LINE.fullmatch(line):
                subject, predicate, object_, graph = ordinary.groups()
                statements.append(
                    (subject, predicate, object_) if graph is None else (subject, predicate, object_, graph)
                )
                continue
            try:
                statement = _parse_line(line)
            except CodecError as error:
                raise located(error, self._lines.number) from None
            if statement is not None:
                statements.append(statement)
        return statements


def _parse_line(line: str) -> Statement | None:
    collector = TermCollector()
    position = 0
    has_ended = False
    while position < len(line):
        token = _TOKEN.match(line, position)
        if token is None:
            raise InvalidSyntax(f"no term begins with {line[position : position + 20].strip()!r}")
        position = token.end()
        kind = token.lastgroup
        if kind == "end":
            break
        if has_ended:
            raise InvalidSyntax("the line goes on after the end of its statement")
        match kind:
            case "iri":
                collector.add(iri_term(unescape(token["iri"])))
            case "label":
                collector.add(blank_node_term(unescape(token["label"])))
            case "opening":
                collector.open(token["opening"])
            case "closing":
                collector.close(token["closing"])
            case "dot":
                has_ended = True
            case _:
                collector.add(_literal(token))
    return _statement(collector, has_ended=has_ended)


def _literal(token: re.Match[str]) -> Term:
    lexical = unescape(token["string"])
    if token["language"] is not None:
        return literal_term(lexical, language=unescape(token["language"]))
    if token["datatype"] is not None:
        return literal_term(lexical, datatype=unescape(token["datatype"]))
    return literal_term(lexical)


def _statement(collector: TermCollector, *, has_ended: bool) -> Statement | None:
    terms = collector.terms
    if collector.is_nested:
        raise InvalidSyntax("a quoted triple is not closed")
    if not has_ended:
        if terms:
            raise InvalidSyntax("the line ends without the dot of its statement")
        return None
    if len(terms) not in {3, 4}:
        raise InvalidSyntax(f"a statement has three or four terms, not {len(terms)}")
    return cast("Statement", tuple(terms))


_BRACKET: Final = re.compile(rf'"{STRING}"|<<\( | \)>>')


def _plain_bracket(match: re.Match[str]) -> str:
    return {"<<( ": "<< ", " )>>": " >>"}.get(match[0], match[0])


def nquads_line(statement: Statement) -> str:
    """The line of a statement, LF included. Trusts the terms to be canonical."""
    terms = statement if len(statement) == 3 or statement[3] else statement[:3]
    line = " ".join(terms)
    if "<<( " in line:
        line = _BRACKET.sub(_plain_bracket, line)
    return f"{line} .\n"


def ntriples_line(statement: Statement) -> str:
    """The line of a triple, or of a quad in the default graph. Raises InvalidTerm for one in a named graph."""
    if len(statement) == 4 and statement[3]:
        raise InvalidTerm(f"N-Triples has no graphs, but a statement stands in {statement[3]}")
    return nquads_line(statement)
