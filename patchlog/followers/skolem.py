"""Blank nodes for stores that would rename them: each label of a log becomes an IRI of its own, and back.

    _:b1 of the log 6f1c…   <urn:patchlog:blank:6f1c…:b1>

Labels are known within one log only, so the log's id is part of the IRI. SPARQL has no way to delete a blank node by
its label; the IRI stays identifiable.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, unquote

from patchlog.model import Quad, Term
from patchlog.text.terms import QuotedTriple, blank_node_term, iri_term, parse_term, quoted_triple_term, unescape

__all__ = ["deskolemised", "skolemised", "skolemised_term"]

_PREFIX: Final = "<urn:patchlog:blank:"


def skolemised(quad: Quad, log_id: str) -> Quad:
    """The quad with IRIs in the places of blank nodes."""
    subject, predicate, object, graph = quad
    return (
        skolemised_term(subject, log_id),
        skolemised_term(predicate, log_id),
        skolemised_term(object, log_id),
        skolemised_term(graph, log_id),
    )


def skolemised_term(term: Term, log_id: str) -> Term:
    """The IRI that stands for a blank node; any other term as it is, but for blank nodes that it quotes."""
    if term.startswith("_:"):
        return iri_term(f"urn:patchlog:blank:{log_id}:{quote(unescape(term[2:]), safe='')}")
    if term.startswith("<<"):
        quoted = parse_term(term)
        assert isinstance(quoted, QuotedTriple)
        return quoted_triple_term(
            skolemised_term(quoted.subject, log_id),
            skolemised_term(quoted.predicate, log_id),
            skolemised_term(quoted.object, log_id),
        )
    return term


def deskolemised(term: Term) -> Term:
    """The blank node that an IRI stands for; any other term as it is, but for such IRIs that it quotes."""
    if term.startswith(_PREFIX):
        _, _, label = term[len(_PREFIX) : -1].partition(":")
        return blank_node_term(unquote(label))
    if term.startswith("<<"):
        quoted = parse_term(term)
        assert isinstance(quoted, QuotedTriple)
        return quoted_triple_term(
            deskolemised(quoted.subject), deskolemised(quoted.predicate), deskolemised(quoted.object)
        )
    return term
