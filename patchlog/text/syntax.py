"""What N-Quads and RDF Patch share below the level of rows: patterns of tokens, and quoted triples made from them."""

from __future__ import annotations

from typing import Final

from patchlog.errors import CodecError, InvalidSyntax, InvalidTerm, LimitExceeded
from patchlog.model import Term
from patchlog.text.terms import (
    MAX_NESTING_DEPTH,
    NOT_IN_IRI,
    NOT_IN_LABEL,
    NOT_IN_LANGUAGE,
    NOT_IN_LEXICAL,
    quoted_triple_term,
)

__all__ = [
    "BLANKS",
    "CANONICAL_IRI",
    "CANONICAL_LABEL",
    "CANONICAL_LITERAL",
    "CLOSING_BRACKET",
    "IRI",
    "LABEL",
    "LANGUAGE",
    "OPENING_BRACKET",
    "STRING",
    "TermCollector",
    "located",
]

# The patterns are possessive wherever a run of characters can end in one way only: no input makes them backtrack.

BLANKS: Final = r"[ \t\r]"
OPENING_BRACKET: Final = r"<<\(?"
CLOSING_BRACKET: Final = r"\)?>>"

_CODE: Final = r"\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}"
IRI: Final = rf'(?:[^\x00-\x20<>"\\]++|{_CODE})*+'
"""What stands between the brackets."""
LABEL: Final = rf"(?!-|\.++(?:[^{NOT_IN_LABEL}.]|\\))(?:\.*+(?:[^{NOT_IN_LABEL}.]++|{_CODE})++)*+"
"""What stands after `_:`. The dots at its end are not part of it: the last one ends the row."""
LANGUAGE: Final = rf"(?:[^{NOT_IN_LANGUAGE}]++|{_CODE})++"
"""What stands after `@`."""


STRING: Final = r'[^"\\\r]*+(?:\\.[^"\\\r]*+)*+'
"""What stands between double quotes. Its escapes are for `unescape` to judge."""

# Whole terms that are canonical as they stand: nearly all that machines write.
CANONICAL_IRI: Final = f"<[^{NOT_IN_IRI}]*+>"
CANONICAL_LABEL: Final = rf"_:(?![-.])(?:\.*+[^{NOT_IN_LABEL}.]++)++"
CANONICAL_LITERAL: Final = (
    rf'"[^{NOT_IN_LEXICAL}]*+(?:\\[btnfr"\\][^{NOT_IN_LEXICAL}]*+)*+"'
    rf"(?:@[^{NOT_IN_LANGUAGE}]++|\^\^(?!<http://www\.w3\.org/2001/XMLSchema\#string>){CANONICAL_IRI})?+"
)


class TermCollector:
    """The terms of one row, in order. A quoted triple becomes a term when its bracket closes."""

    __slots__ = ("_open", "terms")

    def __init__(self) -> None:
        self.terms: list[Term] = []
        self._open: list[tuple[str, list[Term]]] = []

    @property
    def is_nested(self) -> bool:
        """Whether a quoted triple is open."""
        return bool(self._open)

    def add(self, term: Term) -> None:
        """Take the next term."""
        if not self._open:
            self.terms.append(term)
            return
        parts = self._open[-1][1]
        if len(parts) == 3:
            raise InvalidSyntax("a quoted triple has three terms, not more")
        parts.append(term)

    def open(self, bracket: str) -> None:
        """Begin a quoted triple, with `<<` or `<<(`."""
        if len(self._open) == MAX_NESTING_DEPTH:
            raise LimitExceeded(f"quoted triples nest more than {MAX_NESTING_DEPTH} deep")
        self._open.append((bracket, []))

    def close(self, bracket: str) -> None:
        """End a quoted triple, with `>>` or `)>>`."""
        opening, parts = self._open.pop() if self._open else ("", [])
        if len(opening) != len(bracket):
            raise InvalidSyntax(f"{bracket} closes nothing")
        if len(parts) != 3:
            raise InvalidSyntax("a quoted triple has three terms, not fewer")
        self.add(quoted_triple_term(*parts))


def located(error: CodecError, line: int) -> CodecError:
    """The error that a reader raises for one that was found in a line: a wrong escape is wrong syntax there."""
    kind = InvalidSyntax if isinstance(error, InvalidTerm) else type(error)
    return kind(error.reason, line=line)
