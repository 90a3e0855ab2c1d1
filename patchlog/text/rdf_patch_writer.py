"""Operations to RDF Patch text, in the style of Jena. docs/protocol.md, "RDF Patch text"."""

from __future__ import annotations

import re
from typing import Final

from patchlog.errors import InvalidTerm
from patchlog.model import (
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
    not_an_operation,
)
from patchlog.spending import Spendable, spending
from patchlog.text.syntax import CANONICAL_IRI, STRING
from patchlog.text.terms import Iri, literal_term, parse_term

__all__ = ["RdfPatchWriter"]

_WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_NODE: Final = re.compile(rf'"{STRING}"(?:\^\^{CANONICAL_IRI})?|(?P<iri><_:[^>]*>)|<[^<> ]*>|(?P<label>_:[^ ]*)')


class RdfPatchWriter(Spendable):
    """Writes RDF Patch. Its face: `patchlog.codec.faces.OperationEncoderFace`."""

    def __init__(self) -> None:
        self._rows: list[str] = []

    @spending
    def accept(self, operation: Operation, /) -> None:
        """Write one operation."""
        self._rows.append(f"{_row(operation)} .\n")

    @spending
    def take(self) -> bytes:
        """Take the bytes that are complete."""
        data = "".join(self._rows).encode()
        self._rows.clear()
        return data

    @spending
    def finish(self) -> bytes:
        """End the stream and take what is left."""
        return self.take()


def _row(operation: Operation) -> str:
    match operation:
        case Add(subject, predicate, object_, graph):
            return f"A {_written(subject)} {_written(predicate)} {_written(object_)}{_written_graph(graph)}"
        case Delete(subject, predicate, object_, graph):
            return f"D {_written(subject)} {_written(predicate)} {_written(object_)}{_written_graph(graph)}"
        case Header(key, value):
            return f"H {_name(key) if _WORD.fullmatch(str(key)) else literal_term(_name(key))} {_written(value)}"
        case TransactionStart():
            return "TX"
        case TransactionCommit():
            return "TC"
        case TransactionAbort():
            return "TA"
        case NamespaceAdd(name, iri, graph):
            return f"PA {literal_term(_name(name))} {_written_iri(iri)}{_written_graph(graph)}"
        case NamespaceDelete(name, iri, graph):
            # Jena takes an IRI there for the graph: it is checked, and left out.
            if iri is not None:
                parse_term(iri)
            return f"PD {literal_term(_name(name))}{_written_graph(graph)}"
        case Punctuation():
            return "Z"
        case _:
            raise not_an_operation(operation)


def _name(text: object) -> str:
    if not isinstance(text, str):
        raise InvalidTerm("a name or a key is not a string")
    return text


def _written(term: Term) -> str:
    parse_term(term)
    if term.startswith("_"):
        return f"<{term}>"
    return _NODE.sub(_written_node, term) if "_:" in term else term


def _written_node(match: re.Match[str]) -> str:
    if match["label"]:
        return f"<{match['label']}>"
    if match["iri"]:
        return rf"<\u005F{match['iri'][2:]}"
    return match[0]


def _written_graph(graph: Term | None) -> str:
    return f" {_written(graph)}" if graph else ""


def _written_iri(term: Term) -> str:
    match parse_term(term):
        case Iri(value):
            return literal_term(value)
        case _:
            raise InvalidTerm(f"{term} is not the IRI of a namespace")
