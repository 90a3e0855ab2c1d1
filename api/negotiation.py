"""What a request sends and what it wants to have: media types and codings, chosen here and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar

from fastapi import Request

from api.errors import UNSUPPORTED, Problem, Refusal
from patchlog.formats import JELLY, JELLY_PATCH, NQUADS, RDF_PATCH, TRIG, Format, format_for_media_type
from patchlog.log.contract import PatchFormat

__all__ = [
    "BODIES_OF_PATCHES",
    "EVENTS",
    "JELLY_PATCHES",
    "JELLY_QUADS",
    "JSON",
    "PATCH_TEXT",
    "QUADS_TEXT",
    "TRIG_TEXT",
    "Coding",
    "Representation",
    "chosen",
    "coding_of_answer",
    "coding_of_body",
    "format_of_body",
]

Coding = Literal["gzip", "zstd"]
_CODINGS: Final[tuple[Coding, ...]] = ("zstd", "gzip")
"""The better one first."""

_QUALITY: Final = re.compile(r"0(\.\d*)?|1(\.0*)?")
_CHARSET: Final = re.compile(r';\s*charset\s*=\s*"?([^";\s]+)', re.IGNORECASE)

_NOT_ACCEPTABLE: Final = Problem(406, "not-acceptable", "There is no such representation")

_Choice = TypeVar("_Choice", bound="Representation")


@dataclass(frozen=True, slots=True)
class Representation:
    """A form that an answer can have. `names` are for `?format=`."""

    media_types: tuple[str, ...]
    names: tuple[str, ...]

    @property
    def media_type(self) -> str:
        """What the answer says it is."""
        return self.media_types[0]


def _of(format: Format, *more_names: str) -> Representation:
    return Representation(format.media_types, (*format.names, *(name[1:] for name in format.extensions), *more_names))


JELLY_PATCHES: Final = _of(JELLY_PATCH)
PATCH_TEXT: Final = _of(RDF_PATCH, "text")
JELLY_QUADS: Final = _of(JELLY)
QUADS_TEXT: Final = _of(NQUADS)
TRIG_TEXT: Final = _of(TRIG)
JSON: Final = Representation(("application/json",), ("json",))
BODIES_OF_PATCHES: Final[dict[str, Any]] = {
    media_type: {"schema": {"type": "string", "format": "binary"}}
    for form in (JELLY_PATCHES, PATCH_TEXT)
    for media_type in form.media_types
}
"""For OpenAPI."""
EVENTS: Final = Representation(("text/event-stream",), ("sse", "events"))


def chosen(request: Request, offered: Sequence[_Choice]) -> _Choice:
    """The form that the request asks for by `?format=` or `Accept`; the first where it has no wish. Raises Refusal."""
    name = request.query_params.get("format")
    if name is not None:
        for candidate in offered:
            if name.lower() in candidate.names:
                return candidate
        known = ", ".join(candidate.names[0] for candidate in offered)
        raise Refusal(_NOT_ACCEPTABLE, f"there is no format {name!r} here; there are {known}")
    accept = ",".join(request.headers.getlist("accept"))
    if not accept or accept == "*/*":
        return offered[0]
    ranges = _weighted(accept)
    weights = [max(_weight(media_type, ranges) for media_type in one.media_types) for one in offered]
    best = max(weights)
    if best <= 0:
        known = ", ".join(candidate.media_type for candidate in offered)
        raise Refusal(_NOT_ACCEPTABLE, f"none of {accept!r} is here; there are {known}")
    return offered[weights.index(best)]


def format_of_body(request: Request) -> PatchFormat:
    """The format of patches that the body is in. Raises Refusal."""
    media_type = request.headers.get("content-type", "")
    found = format_for_media_type(media_type, (JELLY_PATCH, RDF_PATCH))
    if found is JELLY_PATCH:
        return "jelly-patch"
    if found is RDF_PATCH:
        charset = _CHARSET.search(media_type)
        if charset is not None and charset[1].lower() not in ("utf-8", "us-ascii"):
            raise Refusal(UNSUPPORTED, f"text is read in UTF-8, not in {charset[1]!r}")
        return "rdf-patch"
    known = ", ".join((*JELLY_PATCH.media_types, *RDF_PATCH.media_types))
    raise Refusal(UNSUPPORTED, f"the Content-Type is {media_type!r}; patches are read from {known}")


def coding_of_body(request: Request) -> Coding | None:
    """How the body is compressed. Raises Refusal."""
    coding = request.headers.get("content-encoding", "identity").strip().lower()
    if coding == "identity":
        return None
    for known in _CODINGS:
        if coding in (known, f"x-{known}"):
            return known
    raise Refusal(
        UNSUPPORTED, f"the Content-Encoding {coding!r} is not read here; there are {', '.join(_CODINGS)}, identity"
    )


def coding_of_answer(request: Request) -> Coding | None:
    """How the answer is to be compressed: not at all where the request does not name what we can."""
    accept = request.headers.get("accept-encoding", "")
    if accept in ("", "identity"):
        return None
    wanted = dict(_weighted(accept))
    named: list[Coding] = [coding for coding in _CODINGS if wanted.get(coding, 0) > 0]
    return max(named, key=lambda coding: wanted[coding], default=None)


def _weighted(header: str) -> list[tuple[str, float]]:
    """The values of a header and their weights; a weight that is not a number counts as 0."""
    values = []
    for entry in header.split(","):
        value, *parameters = (part.strip().lower() for part in entry.split(";"))
        if value:
            values.append((value, _quality(parameters)))
    return values


def _quality(parameters: Iterable[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            return float(value) if _QUALITY.fullmatch(value.strip()) else 0
    return 1


def _weight(media_type: str, ranges: Iterable[tuple[str, float]]) -> float:
    """The weight of the most specific range that the type is in."""
    main = media_type.partition("/")[0]
    specific = {media_type: 3, f"{main}/*": 2, "*/*": 1}
    found = max(((specific.get(value, 0), weight) for value, weight in ranges), default=(0, 0.0))
    return found[1] if found[0] else 0
