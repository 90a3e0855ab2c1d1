"""The conditions of requests: `If-Match` and `If-None-Match` (RFC 9110), and the tags that answers carry."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

from fastapi import Request

from api.errors import PROBLEMS, Problem, Refusal
from patchlog.codec.patch_ids import PatchId, parse_patch_id
from patchlog.errors import CodecError, HeadMismatch
from patchlog.log.contract import PatchLog
from patchlog.log.documents import head_document
from patchlog.log.records import ANY_HEAD, ExpectedHead, Head

__all__ = [
    "Precondition",
    "check_named",
    "has_current",
    "head_is_another",
    "immutable",
    "precondition_in",
    "precondition_of",
    "tag",
]

_TAGS: Final = re.compile(r'"([^"]*)"')
"""Found in one pass, whatever stands between them: looking for the spaces too took minutes where they were many."""
_STRONG_TAGS: Final = re.compile(r'\s*"([^"]*)"\s*(?:,|$)')
_INVALID: Final = Problem(400, "invalid-precondition", "The precondition cannot be read")
_NAMES_ANOTHER: Final = Problem(400, "names-another", "The document and the path name different things")


@dataclass(frozen=True, slots=True)
class Precondition:
    """What a writer wants the head of the log to be."""

    ids: tuple[PatchId, ...] = ()
    """One of these; none says nothing."""
    any_patch: bool = False
    no_patch: bool = False

    def expected_head(self, log: PatchLog) -> ExpectedHead:
        """The head that an append is to expect. Raises Refusal where the log is not as it is wanted."""
        if self.no_patch:
            return None
        if self.any_patch and log.head().version == 0:
            raise Refusal(PROBLEMS[HeadMismatch], "If-Match: * wants a log that has patches, and this one is empty")
        if not self.ids:
            return ANY_HEAD
        if len(self.ids) > 1 and (head := log.head().id) in self.ids:
            return head
        return self.ids[0]


def precondition_of(request: Request) -> Precondition:
    """The precondition of an append. Raises Refusal."""
    return precondition_in(request.headers.get("if-match"), request.headers.get("if-none-match"))


def precondition_in(if_match: str | None, if_none_match: str | None) -> Precondition:
    """The precondition that the headers of an append say. Raises Refusal."""
    if if_none_match is not None and (if_none_match.strip() != "*" or if_match is not None):
        raise Refusal(_INVALID, "an append knows If-None-Match: * alone: the log has to be empty")
    if if_none_match is not None:
        return Precondition(no_patch=True)
    if if_match is None:
        return Precondition()
    if if_match.strip() == "*":
        return Precondition(any_patch=True)
    try:
        return Precondition(ids=tuple(parse_patch_id(text) for text in _tags_in(if_match, _STRONG_TAGS)))
    except CodecError as error:
        raise Refusal(_INVALID, f'If-Match takes the id of the head in quotes, such as "c2b6…": {error}') from None


def head_is_another(error: HeadMismatch, head: Head) -> Refusal:
    """What a writer is told who was not the first: the head that there is now."""
    tags = {} if head.id is None else {"ETag": tag(head.id)}
    heads = {"expected_head": error.expected_head, "actual_head": error.actual_head}
    return Refusal(replace(PROBLEMS[HeadMismatch], headers=tags), str(error), head=head_document(head), **heads)


def check_named(said: object, wanted: object) -> None:
    """Raise Refusal where the document of a request that destroys does not name what its path does."""
    if said != wanted:
        raise Refusal(_NAMES_ANOTHER, f"the document says to delete {said!r}, and the path {wanted!r}: name the same")


def has_current(request: Request, current: str) -> bool:
    """Whether the client has what it would get, so that 304 is the answer."""
    header = request.headers.get("if-none-match")
    if header is None:
        return False
    return header.strip() == "*" or current.strip('"') in _TAGS.findall(header)


def tag(text: str) -> str:
    """A strong entity tag."""
    return f'"{text}"'


def immutable(*, is_open: bool) -> str:
    """The `Cache-Control` of what never changes; for all to keep where all may ask for it."""
    return f"{'public' if is_open else 'private'}, max-age=31536000, immutable"


def _tags_in(header: str, pattern: re.Pattern[str]) -> list[str]:
    tags = []
    place = 0
    while place < len(header):
        found = pattern.match(header, place)
        if found is None:
            raise Refusal(_INVALID, f"If-Match takes strong entity tags in quotes, not {header!r}")
        tags.append(found[1])
        place = found.end()
    if not tags:
        raise Refusal(_INVALID, "If-Match is empty")
    return tags
