"""Terms: from what they are made of to their canonical text, and back.

The two directions are inverse to each other for every string without surrogates, so equal terms are equal texts and
nothing is lost. The table of escapes is in docs/protocol.md, "Terms".

Most strings need no escape. So each kind has a compiled pattern that finds the rare string that does, and only that one
is rewritten.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, TypeAlias

from patchlog.errors import InvalidTerm
from patchlog.model import XSD_STRING, Term

__all__ = [
    "MAX_NESTING_DEPTH",
    "NOT_IN_IRI",
    "NOT_IN_LABEL",
    "NOT_IN_LANGUAGE",
    "NOT_IN_LEXICAL",
    "BlankNode",
    "Iri",
    "Literal",
    "ParsedTerm",
    "QuotedTriple",
    "blank_node_term",
    "escape_iri",
    "escape_label",
    "escape_language",
    "escape_lexical",
    "iri_term",
    "literal_term",
    "parse_term",
    "quoted_triple_term",
    "unescape",
]


@dataclass(frozen=True, slots=True)
class Iri:
    """An IRI, without brackets and escapes."""

    value: str


@dataclass(frozen=True, slots=True)
class BlankNode:
    """A blank node, by its label without `_:`."""

    label: str


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal. With neither language nor datatype it is an xsd:string."""

    lexical: str
    language: str | None = None
    datatype: str | None = None


@dataclass(frozen=True, slots=True)
class QuotedTriple:
    """A quoted triple of three terms, each still text."""

    subject: Term
    predicate: Term
    object: Term


MAX_NESTING_DEPTH: Final = 512
"""How deep quoted triples may nest in the text of a term. Readers of Jelly have lower limits of their own."""

ParsedTerm: TypeAlias = Iri | BlankNode | Literal | QuotedTriple

# What has to be escaped in each kind, as the inside of a character class. Surrogates have no UTF-8.
SURROGATES: Final = r"\ud800-\udfff"
NOT_IN_IRI: Final = r'\x00-\x20<>"{}|^`\\' + SURROGATES
NOT_IN_LEXICAL: Final = r'\x00-\x1f"\\\x7f' + SURROGATES
NOT_IN_LABEL: Final = r"\x00-\x2c/;-@\[-\^`{-\x7f" + SURROGATES
NOT_IN_LANGUAGE: Final = r"\x00-\x2c./:-@\[-`{-\x7f" + SURROGATES


def _forbidden(inside: str) -> re.Pattern[str]:
    return re.compile(f"[{inside}]")


_SHORT_ESCAPES: Final = {
    "\b": r"\b",
    "\t": r"\t",
    "\n": r"\n",
    "\f": r"\f",
    "\r": r"\r",
    '"': r"\"",
    "\\": r"\\",
}

_ESCAPES: Final = {chr(code): f"\\u{code:04X}" for code in range(0x80)}
_LEXICAL_ESCAPES: Final = _ESCAPES | _SHORT_ESCAPES

_FORBIDDEN_IN_IRI: Final = _forbidden(NOT_IN_IRI)
_FORBIDDEN_IN_LEXICAL: Final = _forbidden(NOT_IN_LEXICAL)
_FORBIDDEN_IN_LABEL: Final = re.compile(rf"[{NOT_IN_LABEL}]|\A[-.]|\.\Z")
_FORBIDDEN_IN_LANGUAGE: Final = _forbidden(NOT_IN_LANGUAGE)


def _escape(text: str, forbidden: re.Pattern[str], escapes: dict[str, str] = _ESCAPES) -> str:
    if not forbidden.search(text):
        return text
    try:
        return forbidden.sub(lambda match: escapes[match[0]], text)
    except KeyError as error:
        raise InvalidTerm(f"{text!r} contains the surrogate {error}, which is not a character") from None


def escape_iri(iri: str) -> str:
    """Escape what may not stand between angle brackets. A part of an IRI can be escaped on its own."""
    return _escape(iri, _FORBIDDEN_IN_IRI)


def escape_lexical(lexical: str) -> str:
    """Escape what may not stand between quotes."""
    return _escape(lexical, _FORBIDDEN_IN_LEXICAL, _LEXICAL_ESCAPES)


def escape_label(label: str) -> str:
    """Escape what a blank node label cannot carry, a first `-` or `.` and a last `.` included."""
    return _escape(label, _FORBIDDEN_IN_LABEL)


def escape_language(language: str) -> str:
    """Escape what a language tag cannot carry."""
    return _escape(language, _FORBIDDEN_IN_LANGUAGE)


def iri_term(iri: str) -> Term:
    """The term of an IRI."""
    return f"<{escape_iri(iri)}>"


def blank_node_term(label: str) -> Term:
    """The term of a blank node."""
    return f"_:{escape_label(label)}"


def literal_term(lexical: str, *, language: str | None = None, datatype: str | None = None) -> Term:
    """The term of a literal; `datatype` is an IRI without brackets."""
    quoted = f'"{escape_lexical(lexical)}"'
    if language is not None:
        if datatype is not None:
            raise InvalidTerm("a literal has a language tag or a datatype, not both")
        if not language:
            raise InvalidTerm("the language tag of a literal is empty")
        return f"{quoted}@{escape_language(language)}"
    if datatype is None or datatype == XSD_STRING:
        return quoted
    return f"{quoted}^^<{escape_iri(datatype)}>"


def quoted_triple_term(subject: Term, predicate: Term, object: Term) -> Term:
    """The term of a quoted triple, of three terms."""
    return f"<<( {subject} {predicate} {object} )>>"


_ESCAPE: Final = re.compile(r"""\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([tbnrf"'\\])|)""")
_UNESCAPED: Final = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}


def _unescape_one(match: re.Match[str]) -> str:
    short = match[3]
    if short is not None:
        return _UNESCAPED[short]
    digits = match[1] or match[2]
    if digits is None:
        raise InvalidTerm(f"unknown escape {match.string[match.start() : match.start() + 2]!r}")
    code = int(digits, 16)
    if 0xD800 <= code < 0xE000 or code > 0x10FFFF:
        raise InvalidTerm(f"the escape {match[0]} stands for no character")
    return chr(code)


def unescape(text: str) -> str:
    r"""Replace all escapes of N-Triples (`\n`, `\u00E9`, `\U0001F600` …) by their characters, or raise InvalidTerm."""
    return _ESCAPE.sub(_unescape_one, text) if "\\" in text else text


_PLAIN_IRI: Final = re.compile(f"<([^{NOT_IN_IRI}]*)>")
_PLAIN_LABEL: Final = re.compile(rf"_:((?![-.])[^{NOT_IN_LABEL}]*(?<!\.))")
_PLAIN_LITERAL: Final = re.compile(f'"([^{NOT_IN_LEXICAL}]*)"(?:@([^{NOT_IN_LANGUAGE}]+)|\\^\\^<([^{NOT_IN_IRI}]*)>)?')
_QUOTED: Final = r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"'
_LITERAL: Final = re.compile(rf'{_QUOTED}(?:@([^"]+)|\^\^<([^"]*)>)?', re.DOTALL)
_TOKEN_OF_QUOTED_TRIPLE: Final = re.compile(rf'((?:{_QUOTED})?+[^ "]*+)(?: |\Z)', re.DOTALL)


def parse_term(term: Term) -> ParsedTerm:
    """Take a term apart. Raises InvalidTerm where the text is not a term, or not the canonical text of one."""
    if not isinstance(term, str):
        raise InvalidTerm(f"{term!r} is not a term, as it is not a string")
    if term.startswith("<"):
        if match := _PLAIN_IRI.fullmatch(term):
            return Iri(match[1])
        if term.startswith("<<("):
            return _parse_quoted_triple(term)
    elif term.startswith('"'):
        if (match := _PLAIN_LITERAL.fullmatch(term)) and match[3] != XSD_STRING:
            return Literal(match[1], match[2], match[3])
    elif match := _PLAIN_LABEL.fullmatch(term):
        return BlankNode(match[1])
    return _parse_escaped(term)


def _parse_escaped(term: Term) -> ParsedTerm:
    parsed: ParsedTerm
    if term.startswith("<") and term.endswith(">"):
        parsed = Iri(unescape(term[1:-1]))
        canonical = iri_term(parsed.value)
    elif term.startswith("_:"):
        parsed = BlankNode(unescape(term[2:]))
        canonical = blank_node_term(parsed.label)
    elif match := _LITERAL.fullmatch(term):
        language, datatype = match[2], match[3]
        parsed = Literal(
            unescape(match[1]),
            None if language is None else unescape(language),
            None if datatype is None else unescape(datatype),
        )
        canonical = literal_term(parsed.lexical, language=parsed.language, datatype=parsed.datatype)
    else:
        raise InvalidTerm(f"{term!r} is not a term")
    if canonical != term:
        raise InvalidTerm(f"{term!r} is not a canonical term; write {canonical!r}")
    return parsed


def _parse_quoted_triple(term: Term) -> QuotedTriple:
    """Check the whole of it, but cut out only the three terms of the outermost triple."""
    counts: list[int] = []
    parts: list[Term] = []
    position = part_start = 0
    while token := _TOKEN_OF_QUOTED_TRIPLE.match(term, position):
        text = token[1]
        if len(counts) == 1:
            part_start = position
        position = token.end()
        if text == "<<(":
            if len(counts) == MAX_NESTING_DEPTH:
                raise InvalidTerm(f"quoted triples nest more than {MAX_NESTING_DEPTH} deep")
            counts.append(0)
            continue
        if text == ")>>":
            if counts.pop() != 3:
                break
            if not counts:
                if token.end(1) != len(term):
                    break
                return QuotedTriple(*parts)
        elif text.startswith("<<"):
            break
        else:
            parse_term(text)
        counts[-1] += 1
        if len(counts) == 1:
            parts.append(term[part_start : token.end(1)])
    raise InvalidTerm(f"{term!r} is not a quoted triple")
