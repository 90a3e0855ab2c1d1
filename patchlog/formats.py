"""The formats that are read and written: names, media types, file names. Knows no files and no syntax.

`source` and `sink` are what the codec calls a format (`patchlog.codec.faces`); a format without them is the business of
`patchlog.syntaxes` (Turtle and its kin) or of `patchlog.frames` (the text form of frames).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Final

from patchlog.codec.faces import SinkFormat, SourceFormat
from patchlog.errors import UsageError
from patchlog.streams import name_of

__all__ = [
    "FORMATS",
    "JELLY",
    "JELLY_PATCH",
    "JELLY_PATCH_TEXT",
    "JELLY_TEXT",
    "JSON_LD",
    "NQUADS",
    "NTRIPLES",
    "PATCH_FORMATS",
    "RDF_FORMATS",
    "RDF_PATCH",
    "RDF_XML",
    "TRIG",
    "TURTLE",
    "Format",
    "choose_format",
    "choose_format_of_stream",
    "find_format",
    "format_for_media_type",
    "format_for_name",
]


@dataclass(frozen=True, slots=True)
class Format:
    """One format. The first of its names, media types and extensions is the one that is written."""

    title: str
    names: tuple[str, ...]
    media_types: tuple[str, ...]
    extensions: tuple[str, ...]
    is_patch: bool = False
    holds_graphs: bool = True
    source: SourceFormat | None = None
    sink: SinkFormat | None = None

    @property
    def name(self) -> str:
        """The short name, as on the command line."""
        return self.names[0]


NQUADS: Final = Format(
    "N-Quads",
    ("nq", "nquads", "n-quads"),
    ("application/n-quads",),
    (".nq", ".nquads"),
    source="nquads",
    sink="nquads",
)
NTRIPLES: Final = Format(
    "N-Triples",
    ("nt", "ntriples", "n-triples"),
    ("application/n-triples", "text/plain"),
    (".nt", ".ntriples"),
    holds_graphs=False,
    source="nquads",
    sink="ntriples",
)
TURTLE: Final = Format("Turtle", ("ttl", "turtle"), ("text/turtle",), (".ttl", ".turtle"), holds_graphs=False)
TRIG: Final = Format("TriG", ("trig",), ("application/trig",), (".trig",))
RDF_XML: Final = Format(
    "RDF/XML",
    ("rdfxml", "rdf-xml", "xml"),
    ("application/rdf+xml",),
    (".rdf", ".owl", ".rdfxml"),
    holds_graphs=False,
)
JSON_LD: Final = Format("JSON-LD", ("jsonld", "json-ld"), ("application/ld+json",), (".jsonld",))
JELLY: Final = Format("Jelly-RDF", ("jelly",), ("application/x-jelly-rdf",), (".jelly",), source="jelly", sink="jelly")
JELLY_TEXT: Final = Format("the text form of Jelly-RDF frames", ("jelly-text",), (), (".jelly.txt",))
JELLY_PATCH: Final = Format(
    "Jelly-Patch",
    ("jelly-patch",),
    ("application/x-jelly-rdf-patch",),
    (".jellyp",),
    is_patch=True,
    source="jelly-patch",
    sink="jelly-patch",
)
RDF_PATCH: Final = Format(
    "RDF Patch",
    ("rdf-patch", "rdfp"),
    ("application/rdf-patch", "text/rdf-patch"),
    (".rdfp", ".rdfpatch"),
    is_patch=True,
    source="rdf-patch",
    sink="rdf-patch",
)
JELLY_PATCH_TEXT: Final = Format(
    "the text form of Jelly-Patch frames", ("jelly-text",), (), (".jellyp.txt",), is_patch=True
)

RDF_FORMATS: Final = (NQUADS, NTRIPLES, TURTLE, TRIG, RDF_XML, JSON_LD, JELLY, JELLY_TEXT)
PATCH_FORMATS: Final = (RDF_PATCH, JELLY_PATCH, JELLY_PATCH_TEXT)
FORMATS: Final = RDF_FORMATS + PATCH_FORMATS

_COMPRESSIONS: Final = (".gz", ".zst")


def find_format(name: str, formats: Iterable[Format] = FORMATS) -> Format:
    """The format of that name. Raises UsageError, which lists the names that there are."""
    formats = tuple(formats)
    wanted = name.lower()
    for candidate in formats:
        if wanted in candidate.names:
            return candidate
    known = ", ".join(candidate.name for candidate in formats)
    raise UsageError(f"unknown format {name!r}; the formats here are {known}")


def format_for_name(path: str | PathLike[str], formats: Iterable[Format] = FORMATS) -> Format | None:
    """The format that the end of a file's name stands for; `.gz` or `.zst` behind it is looked through."""
    name = fspath(path).lower()
    for compression in _COMPRESSIONS:
        name = name.removesuffix(compression)
    candidates = (
        (extension, candidate)
        for candidate in formats
        for extension in candidate.extensions
        if name.endswith(extension)
    )
    # The longest extension: `.jelly.txt` is more than `.txt`.
    return max(candidates, key=lambda pair: len(pair[0]), default=(None, None))[1]


def format_for_media_type(media_type: str, formats: Iterable[Format] = FORMATS) -> Format | None:
    """The format of a media type; its parameters (`; charset=utf-8`) are looked through."""
    wanted = media_type.partition(";")[0].strip().lower()
    return next((candidate for candidate in formats if wanted in candidate.media_types), None)


def choose_format_of_stream(given: str | None, stream: object, formats: Iterable[Format], unnamed: Format) -> Format:
    """As `choose_format`, for a source or sink of `patchlog.streams`.

    What has no name is `unnamed`; a path has one, and that has to say it.
    """
    default = None if isinstance(stream, str | PathLike) else unnamed
    return choose_format(given, name_of(stream), formats, default=default)


def choose_format(
    given: str | None, name: str | None, formats: Iterable[Format], *, default: Format | None = None
) -> Format:
    """The format that was given, else the one that the file's name stands for, else the default. Raises UsageError."""
    formats = tuple(formats)
    if given is not None:
        return find_format(given, formats)
    if name is not None:
        if found := format_for_name(name, formats):
            return found
        if other := format_for_name(name):
            known = ", ".join(one.name for one in formats)
            raise UsageError(f"{name} is {other.title} by its name; what can stand here is {known}")
    if default is None:
        raise UsageError(f"the name {name} does not say which format the file has: name the format")
    return default
