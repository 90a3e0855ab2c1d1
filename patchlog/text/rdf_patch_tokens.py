"""The tokens of RDF Patch text: lines to words, terms, brackets and dots. Knows no rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import Final, TypeAlias

from patchlog.errors import InvalidSyntax, LimitExceeded
from patchlog.model import Term
from patchlog.text.syntax import (
    BLANKS,
    CLOSING_BRACKET,
    IRI,
    LABEL,
    LANGUAGE,
    OPENING_BRACKET,
    STRING,
)
from patchlog.text.terms import blank_node_term, iri_term, literal_term, unescape

__all__ = ["Kind", "PatchTokens", "Token"]

_XSD: Final = "http://www.w3.org/2001/XMLSchema#"

_NAME: Final = r"A-Za-z0-9_\-\x80-\U0010ffff"
_PREFIX: Final = rf"(?:[A-Za-z\x80-\U0010ffff](?:\.*+[{_NAME}]++)*+)?+"
_LOCAL: Final = rf"(?:(?!\.)(?:\.*+(?:[{_NAME}:]++|%[0-9A-Fa-f]{{2}}|\\[_~.\-!$&'()*+,;=/?#@%])++)++)?+"
_PREFIXED_NAME: Final = f"{_PREFIX}:{_LOCAL}"
_SINGLE_QUOTED_STRING: Final = STRING.replace('"', "'")

_TOKEN: Final = re.compile(
    rf"{BLANKS}*+(?:"
    rf"<_:(?P<bracketed_label>{IRI})>"
    rf"|<(?P<iri>{IRI})>"
    rf"|_:(?P<label>{LABEL})"
    rf"|(?P<long_quote>\"\"\"|''')"
    rf'|"(?P<string>{STRING})"'
    rf"|'(?P<single_quoted_string>{_SINGLE_QUOTED_STRING})'"
    rf"|(?P<opening>{OPENING_BRACKET})"
    rf"|(?P<closing>{CLOSING_BRACKET})"
    rf"|(?P<double>[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)[eE][+-]?[0-9]++)"
    rf"|(?P<decimal>[+-]?[0-9]*+\.[0-9]++)"
    rf"|(?P<integer>[+-]?[0-9]++)"
    rf"|(?P<prefixed_name>{_PREFIXED_NAME})"
    rf"|(?P<word>[A-Za-z][A-Za-z0-9_\-]*+)"
    rf"|(?P<dot>\.)"
    rf"|(?P<end>\#.*|\Z))",
    re.DOTALL,
)
_LITERAL_SUFFIX: Final = re.compile(
    rf"@(?P<language>{LANGUAGE})|\^\^(?:<(?P<datatype>{IRI})>|(?P<prefixed_name>{_PREFIXED_NAME}))"
)
_LONG_STRING_PART: Final = {
    '"""': re.compile(r'(?:[^"\\]++|\\.|"{1,2}(?!"))*+', re.DOTALL),
    "'''": re.compile(r"(?:[^'\\]++|\\.|'{1,2}(?!'))*+", re.DOTALL),
}
_BACKSLASH: Final = re.compile(r"\\(.)")


class Kind(Enum):
    """What a token is to a row."""

    WORD = auto()
    TERM = auto()
    OPENING = auto()
    CLOSING = auto()
    DOT = auto()


Token: TypeAlias = tuple[Kind, str]


class PatchTokens:
    """Cuts lines into tokens. A term comes canonical, with prefixes resolved; only a long string outlives its line."""

    def __init__(self, max_string_bytes: int) -> None:
        self._max_string_bytes = max_string_bytes
        self.prefixes: dict[str, str] = {}
        self._long_quote = ""
        self._long_parts: list[str] = []
        self._long_bytes = 0

    @property
    def is_inside_string(self) -> bool:
        """Whether a long string goes on in the next line."""
        return bool(self._long_quote)

    def of_line(self, line: str) -> Iterator[Token]:
        """The tokens of the next line. A prefix may be defined between two of them."""
        position = 0
        if self._long_quote:
            lexical, position = self._long_string(line, position)
            if lexical is None:
                return
            term, position = self._literal(lexical, line, position)
            yield Kind.TERM, term
        while token := _TOKEN.match(line, position):
            position = token.end()
            text = token[token.lastgroup or 0]
            match token.lastgroup:
                case "end":
                    return
                case "dot":
                    yield Kind.DOT, text
                case "word":
                    yield Kind.WORD, text
                case "opening":
                    yield Kind.OPENING, text
                case "closing":
                    yield Kind.CLOSING, text
                case "iri":
                    yield Kind.TERM, iri_term(unescape(text))
                case "label" | "bracketed_label":
                    yield Kind.TERM, blank_node_term(unescape(text))
                case "prefixed_name":
                    yield Kind.TERM, iri_term(self._resolve(text))
                case "string" | "single_quoted_string":
                    term, position = self._literal(unescape(text), line, position)
                    yield Kind.TERM, term
                case "long_quote":
                    self._long_quote = text
                    lexical, position = self._long_string(line, position)
                    if lexical is None:
                        return
                    term, position = self._literal(lexical, line, position)
                    yield Kind.TERM, term
                case number:
                    yield Kind.TERM, literal_term(text, datatype=f"{_XSD}{number}")
        raise InvalidSyntax(f"no token begins with {line[position : position + 20].strip()!r}")

    def _long_string(self, line: str, position: int) -> tuple[str | None, int]:
        """Go on with the long string: its lexical form and the place behind it, or None when the line ends first."""
        part = _LONG_STRING_PART[self._long_quote].match(line, position)
        assert part is not None  # it matches nothing at all, too
        self._long_parts.append(part[0])
        position = part.end()
        if line.startswith(self._long_quote, position):
            lexical = unescape("".join(self._long_parts))
            position += len(self._long_quote)
            self._long_quote, self._long_parts, self._long_bytes = "", [], 0
            return lexical, position
        if position < len(line):
            raise InvalidSyntax("a backslash stands at the end of a line")
        self._long_parts.append("\n")
        self._long_bytes += len(part[0].encode()) + 1
        if self._long_bytes > self._max_string_bytes:
            raise LimitExceeded(f"a string is longer than {self._max_string_bytes} bytes")
        return None, position

    def _literal(self, lexical: str, line: str, position: int) -> tuple[Term, int]:
        suffix = _LITERAL_SUFFIX.match(line, position)
        if suffix is None:
            return literal_term(lexical), position
        if suffix.lastgroup == "language":
            return literal_term(lexical, language=unescape(suffix["language"])), suffix.end()
        if suffix.lastgroup == "datatype":
            return literal_term(lexical, datatype=unescape(suffix["datatype"])), suffix.end()
        return literal_term(lexical, datatype=self._resolve(suffix["prefixed_name"])), suffix.end()

    def _resolve(self, prefixed_name: str) -> str:
        prefix, _, local = prefixed_name.partition(":")
        if prefix not in self.prefixes:
            hint = "" if local else f'; a row that defines it has it as a string: PA "{prefix}" <…>'
            raise InvalidSyntax(f"no PA row before defines the prefix of {prefixed_name!r}{hint}")
        return self.prefixes[prefix] + _BACKSLASH.sub(r"\1", local)
