"""How a position is written into a dataset: one quad a log, in a graph of its own."""

from __future__ import annotations

from typing import Final

from patchlog.model import Quad
from patchlog.text.terms import iri_term, literal_term

__all__ = ["GRAPH", "LOADS", "PREDICATE", "position_quad"]

GRAPH: Final = "urn:patchlog:positions"
PREDICATE: Final = "urn:patchlog:position"
LOADS: Final = "urn:patchlog:loads"
"""In the place of a position while a snapshot is on its way in."""
_INTEGER: Final = "http://www.w3.org/2001/XMLSchema#integer"


def position_quad(log_id: str, version: int) -> Quad:
    """The quad that says how far a log was followed."""
    return (
        iri_term(f"urn:uuid:{log_id}"),
        iri_term(PREDICATE),
        literal_term(str(version), datatype=_INTEGER),
        iri_term(GRAPH),
    )
