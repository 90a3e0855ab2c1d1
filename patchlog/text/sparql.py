r"""Terms as SPARQL reads them, which may replace `\uXXXX` in a whole text before it looks for brackets and quotes.

So an escape in an IRI could end it there, and text that only looks like an escape would become one.
"""

from __future__ import annotations

import re
from typing import Final

from patchlog.errors import UsageError
from patchlog.model import Term

__all__ = ["in_sparql", "sparql_escapes"]

_ESCAPE: Final = re.compile(r"\\\\([uU])|\\u|\\.", re.DOTALL)
_LITERAL: Final = re.compile(r'"(?:[^"\\]|\\.)*"')


def in_sparql(term: Term) -> str:
    """Return a term as it is written in SPARQL. Raises UsageError for one that needs escapes outside of quotes."""
    if "\\" not in term:
        return term
    if "\\" in _LITERAL.sub("", term):
        raise UsageError(f"{term} has characters that no IRI and no language tag has, and cannot be written in SPARQL")
    return sparql_escapes(term)


def sparql_escapes(text: str) -> str:
    """Return a literal, or a text of several, with escapes that come out the same whenever they are replaced."""
    return _ESCAPE.sub(_same_whenever_replaced, text) if "\\" in text else text


def _same_whenever_replaced(found: re.Match[str]) -> str:
    if found[1] is not None:
        return rf"\\\U{ord(found[1]):08X}"
    return r"\U0000" if found[0] == r"\u" else found[0]
