"""The forms of a snapshot: what is stored goes out as it is, or in parts; N-Quads and TriG are made of it then."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Final

from fastapi import Request

from api.errors import UNSUPPORTED, Problem, Refusal
from api.negotiation import JELLY_QUADS, QUADS_TEXT, TRIG_TEXT, Representation
from patchlog.engine import Converter, RdfDecoder
from patchlog.errors import MissingExtra
from patchlog.formats import JELLY, NQUADS, TRIG, format_for_media_type
from patchlog.log.contract import SnapshotFormat
from patchlog.log.snapshots.reading import STORED_LIMITS
from patchlog.log.snapshots.writing import jelly_of
from patchlog.syntaxes import read_syntax
from patchlog.turtle import TurtleWriter

__all__ = ["FORMS", "as_form", "part_of", "taken_as", "taken_from"]

FORMS: Final = (JELLY_QUADS, QUADS_TEXT, TRIG_TEXT)

_RANGE: Final = re.compile(r"bytes=(\d*)-(\d*)")
_LONGEST_NUMBER: Final = 18


def part_of(request: Request, size: int, current: str) -> tuple[int, int] | None:
    """The first byte that is asked for, and the one behind the last; None for all. Raises Refusal.

    What is no range of one part, or is meant for other bytes, is answered as a whole.
    """
    found = _RANGE.fullmatch(request.headers.get("range", "").replace(" ", "").lower())
    if found is None or request.headers.get("if-range", current) != current:
        return None
    first, last = found.groups()
    if max(len(first), len(last)) > _LONGEST_NUMBER or not (first or last):
        return None
    if not first:
        begin, end = max(0, size - int(last)), size
    else:
        begin, end = int(first), min(size, int(last) + 1) if last else size
        if last and int(last) < begin:
            return None
    if begin >= end:
        headers = {"Content-Range": f"bytes */{size}"}
        problem = Problem(416, "range-not-satisfiable", "There are no such bytes", headers)
        raise Refusal(problem, f"the snapshot has {size} bytes")
    return begin, end


def as_form(chunks: Iterator[bytes], form: Representation) -> Iterator[bytes]:
    """A snapshot in another form."""
    if form is QUADS_TEXT:
        converter = Converter("jelly", "nquads", limits=STORED_LIMITS)
        for chunk in chunks:
            yield converter.feed(chunk)
        yield converter.finish()
        return
    decoder, writer = RdfDecoder(limits=STORED_LIMITS), TurtleWriter(graphs=True)
    for chunk in chunks:
        for frame in decoder.feed(chunk):
            for name, iri in frame.namespaces:
                writer.namespace(name, iri)
            writer.statements(frame.statements)
        yield writer.take()
    yield writer.finish()


def taken_as(request: Request) -> tuple[str, SnapshotFormat]:
    """The format that the body is in, and the one that it is taken in as. Raises Refusal."""
    media_type = request.headers.get("content-type", "")
    match format_for_media_type(media_type, (JELLY, NQUADS, TRIG)):
        case found if found is JELLY:
            return "jelly", "jelly"
        case found if found is NQUADS:
            return "nquads", "nquads"
        case found if found is TRIG:
            # Others would need memory for the whole document.
            if find_spec("pyoxigraph") is None:
                raise MissingExtra("pyoxigraph", "rdf")
            return "trig", "jelly"
    known = ", ".join(one.media_types[0] for one in (JELLY, NQUADS, TRIG))
    raise Refusal(UNSUPPORTED, f"the Content-Type is {media_type!r}; datasets are read from {known}")


def taken_from(chunks: Iterator[bytes], sent_as: str) -> Iterator[bytes]:
    """The body as it is taken in: of TriG, Jelly-RDF is made."""
    return jelly_of(read_syntax(chunks, TRIG)) if sent_as == "trig" else chunks
