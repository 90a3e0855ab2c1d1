"""The ids of patches: UUIDs, in all the forms in which headers and requests carry them. Ours is plain, lower-case."""

from __future__ import annotations

import re
from typing import Final, TypeAlias

from patchlog.errors import InvalidTerm
from patchlog.model import Term
from patchlog.text.terms import Iri, Literal, iri_term, parse_term

__all__ = ["URN", "PatchId", "parse_patch_id", "patch_id_of", "patch_id_term"]

PatchId: TypeAlias = str
"""A UUID as plain lower-case text."""

URN: Final = "urn:uuid:"

_FORM: Final = re.compile(
    r"(?:(?:urn:)?uuid:|id:)?([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})", re.IGNORECASE
)


def parse_patch_id(text: str) -> PatchId:
    """The id in a text: plain, or behind `urn:uuid:`, `uuid:` or `id:`. Raises InvalidTerm."""
    found = _FORM.fullmatch(text)
    if found is None:
        raise InvalidTerm(f"{text!r} is not a patch id: write a UUID, such as <{URN}c2b6…>")
    return found[1].lower()


def patch_id_of(term: Term) -> PatchId:
    """The id that the value of a header stands for: an IRI or a literal. Raises InvalidTerm."""
    match parse_term(term):
        case Iri(text) | Literal(text):
            return parse_patch_id(text)
    raise InvalidTerm(f"{term} is not a patch id: write <{URN}…>")


def patch_id_term(patch_id: PatchId) -> Term:
    """The id as it stands in stored patches."""
    return iri_term(URN + patch_id)
