"""The text syntaxes of RDF, read and written as frames of no meaning: some statements, and the namespaces before them.

N-Quads and N-Triples are the codec's own. Turtle, TriG, RDF/XML and JSON-LD are read by the library that is
installed: pyoxigraph works as a stream, and puts language tags in lower case; rdflib keeps their case, but needs
memory for the whole document and rewrites bare numbers (`042` becomes "42"). RDF/XML and JSON-LD are written by them
too, Turtle and TriG by `patchlog.turtle`.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import chain, islice
from typing import IO, Any, Final, cast

from patchlog.engine import NQuadsReader
from patchlog.errors import InvalidSyntax, InvalidTerm, MissingExtra, PatchLogError
from patchlog.formats import JSON_LD, NQUADS, NTRIPLES, RDF_XML, TRIG, TURTLE, Format
from patchlog.model import DEFAULT_GRAPH, RdfFrame, Statement, Term
from patchlog.pipes import batches, drain
from patchlog.streams import Write
from patchlog.text.nquads import nquads_line, ntriples_line
from patchlog.text.terms import (
    BlankNode,
    Iri,
    Literal,
    QuotedTriple,
    blank_node_term,
    iri_term,
    literal_term,
    parse_term,
    quoted_triple_term,
)
from patchlog.turtle import TurtleWriter

__all__ = ["as_frames", "read_syntax", "write_syntax"]

_OXIGRAPH_NAMES: Final = {TURTLE: "TURTLE", TRIG: "TRIG", RDF_XML: "RDF_XML", JSON_LD: "JSON_LD"}
_RDFLIB_NAMES: Final = {TURTLE: "turtle", TRIG: "trig", RDF_XML: "xml", JSON_LD: "json-ld"}
_BATCH: Final = 1024
_TERMS_OF_QUAD: Final = 4
_NO_BASE: Final = "no-base://relative/"
_PLACE_IN_MESSAGE: Final = re.compile(r"^Parser error (?:at|between) .*?: ")


def read_syntax(chunks: Iterable[bytes], syntax: Format, *, base: str | None = None) -> Iterator[RdfFrame]:
    """Yield the statements of a document, some at a time, with the namespaces that were declared before or among them.

    `base` is the IRI that relative IRIs are resolved against, where the syntax has any. Raises InvalidSyntax where the
    document is not well formed.
    """
    if syntax is NQUADS:
        return as_frames(map(_as_quad, drain(NQuadsReader(), chunks)))
    if syntax is NTRIPLES:
        return as_frames(drain(NQuadsReader(), chunks))
    if find_spec("pyoxigraph"):
        return _read_by_oxigraph(chunks, syntax, base)
    if find_spec("rdflib"):
        return _read_by_rdflib(chunks, syntax, base)
    raise MissingExtra("pyoxigraph", "rdf")


def _as_quad(statement: Statement) -> Statement:
    """In N-Quads a line of three terms is a quad of the default graph."""
    return statement if len(statement) == _TERMS_OF_QUAD else (*statement, DEFAULT_GRAPH)


def write_syntax(write: Write, frames: Iterable[RdfFrame], syntax: Format) -> None:
    """Write the statements of all frames as one document. Raises InvalidTerm for one that the format cannot hold."""
    if syntax in (NQUADS, NTRIPLES):
        line = ntriples_line if syntax is NTRIPLES else nquads_line
        for frame in frames:
            write("".join(map(line, frame.statements)).encode())
    elif syntax in (TURTLE, TRIG):
        _write_turtle(write, frames, syntax)
    elif find_spec("pyoxigraph"):
        _write_by_oxigraph(write, frames, syntax)
        write(b"\n")
    elif find_spec("rdflib"):
        _write_by_rdflib(write, frames, syntax)
    else:
        raise MissingExtra("pyoxigraph", "rdf")


def as_frames(statements: Iterable[Statement]) -> Iterator[RdfFrame]:
    """Cut statements into frames of no meaning."""
    for index, batch in enumerate(batches(statements)):
        yield RdfFrame(index, batch)


def _write_turtle(write: Write, frames: Iterable[RdfFrame], syntax: Format) -> None:
    writer = TurtleWriter(graphs=syntax.holds_graphs)
    for frame in frames:
        for name, iri in frame.namespaces:
            writer.namespace(name, iri)
        writer.statements(frame.statements)
        write(writer.take())
    write(writer.finish())


class _ChunkFile(io.RawIOBase):
    """Chunks as a file to read from: what parsers want."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


class _WriteFile(io.RawIOBase):
    """A function that writes bytes as a file to write to: what serializers want."""

    def __init__(self, write: Write) -> None:
        self._write = write

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self._write(bytes(data))
        return len(data)


def _read_by_oxigraph(chunks: Iterable[bytes], syntax: Format, base: str | None) -> Iterator[RdfFrame]:
    import pyoxigraph

    parser = pyoxigraph.parse(
        cast(IO[bytes], io.BufferedReader(_ChunkFile(chunks), 1 << 16)),
        format=getattr(pyoxigraph.RdfFormat, _OXIGRAPH_NAMES[syntax]),
        base_iri=base,
        lenient=True,  # IRIs that are not quite valid are common; without a base, relative ones stay relative
    )
    known: dict[str, str] = {}
    try:
        for index, first in enumerate(parser):
            # Looked at twice: in RDF/XML prefixes are forgotten at the end of their element.
            prefixes = parser.prefixes
            quads = [first, *islice(parser, _BATCH - 1)]
            prefixes |= parser.prefixes
            namespaces = [(name, iri_term(iri)) for name, iri in sorted(prefixes.items() - known.items())]
            known |= prefixes
            yield RdfFrame(index, [_statement(quad, graphs=syntax.holds_graphs) for quad in quads], namespaces)
    except SyntaxError as error:
        raise InvalidSyntax(f"{syntax.title}: {_PLACE_IN_MESSAGE.sub('', error.msg)}", line=error.lineno) from error


def _statement(quad: Any, *, graphs: bool) -> Statement:
    triple = (_term(quad.subject), _term(quad.predicate), _term(quad.object))
    return (*triple, _term(quad.graph_name)) if graphs else triple


def _term(node: Any) -> Term:
    match type(node).__name__:
        case "NamedNode":
            return iri_term(node.value)
        case "BlankNode":
            return blank_node_term(node.value)
        case "DefaultGraph":
            return DEFAULT_GRAPH
        case "Triple":
            return quoted_triple_term(_term(node.subject), _term(node.predicate), _term(node.object))
    if node.direction is not None:
        raise InvalidTerm(f"{node} has a base direction, which Jelly and RDF Patch cannot hold")
    if node.language is not None:
        return literal_term(node.value, language=node.language)
    return literal_term(node.value, datatype=node.datatype.value)


def _write_by_oxigraph(write: Write, frames: Iterable[RdfFrame], syntax: Format) -> None:
    import pyoxigraph

    def node(term: Term) -> Any:
        match parse_term(term):
            case Iri(value):
                return pyoxigraph.NamedNode(value)
            case BlankNode(label):
                return pyoxigraph.BlankNode(label)
            case Literal(lexical, language, None):
                return pyoxigraph.Literal(lexical, language=language)
            case Literal(lexical, None, str(datatype)):
                return pyoxigraph.Literal(lexical, datatype=pyoxigraph.NamedNode(datatype))
            case QuotedTriple(subject, predicate, object_):
                return pyoxigraph.Triple(node(subject), node(predicate), node(object_))

    def element(statement: Statement) -> Any:
        terms = [node(term) for term in statement if term != DEFAULT_GRAPH]
        return pyoxigraph.Quad(*terms) if syntax.holds_graphs else pyoxigraph.Triple(*terms)

    def elements() -> Iterator[Any]:
        for statement in _statements(frames, syntax):
            try:
                yield element(statement)
            except (TypeError, ValueError) as error:
                raise InvalidTerm(_cannot_hold(syntax, statement)) from error

    namespaces, frames = _first_namespaces(frames)
    pyoxigraph.serialize(
        elements(),
        cast(IO[bytes], _WriteFile(write)),
        getattr(pyoxigraph.RdfFormat, _OXIGRAPH_NAMES[syntax]),
        prefixes={name: iri.value for name, term in namespaces if isinstance(iri := parse_term(term), Iri)},
    )


def _first_namespaces(frames: Iterable[RdfFrame]) -> tuple[list[tuple[str, Term]], Iterable[RdfFrame]]:
    """The namespaces of the first frame, and all frames: what has prefixes at its head can have no others."""
    frames = iter(frames)
    first = next(frames, None)
    return ([], frames) if first is None else (first.namespaces, chain([first], frames))


def _statements(frames: Iterable[RdfFrame], syntax: Format) -> Iterator[Statement]:
    for frame in frames:
        for statement in frame.statements:
            if not syntax.holds_graphs and len(statement) == 4 and statement[3] != DEFAULT_GRAPH:
                raise InvalidTerm(f"{syntax.title} holds no named graphs, but a statement stands in {statement[3]}")
            yield statement


def _cannot_hold(syntax: Format, statement: Statement) -> str:
    return f"{syntax.title} cannot hold {' '.join(statement).rstrip()}"


def _read_by_rdflib(chunks: Iterable[bytes], syntax: Format, base: str | None) -> Iterator[RdfFrame]:
    import rdflib

    from patchlog.rdflib_hook.terms import TermFormatter

    dataset = rdflib.Dataset()
    bound_by_rdflib = set(dataset.namespaces())
    document = io.BufferedReader(_ChunkFile(chunks))
    try:
        with _lexical_forms_kept(rdflib):
            dataset.parse(document, format=_RDFLIB_NAMES[syntax], publicID=base or _NO_BASE)
    except (PatchLogError, OSError):
        raise  # from the chunks
    except Exception as error:  # rdflib's parsers raise what they stumble over: IndexError, SAXParseException, …
        raise InvalidSyntax(f"{syntax.title}: {error}") from error
    formatter = TermFormatter()
    namespaces = [
        (name, formatter.term(iri)) for name, iri in dataset.namespaces() if (name, iri) not in bound_by_rdflib
    ]
    for index, quads in enumerate(batches(dataset.quads())):
        statements = [formatter.statement(quad if syntax.holds_graphs else quad[:3]) for quad in quads]
        if any(term.startswith(f"<{_NO_BASE}") for statement in statements for term in statement):
            raise InvalidSyntax(f"{syntax.title}: the document has relative IRIs; say what base they have")
        yield RdfFrame(index, statements, [] if index else namespaces)


def _write_by_rdflib(write: Write, frames: Iterable[RdfFrame], syntax: Format) -> None:
    import rdflib

    from patchlog.rdflib_hook.terms import TermBuilder

    build = TermBuilder()
    dataset = rdflib.Dataset()
    namespaces, frames = _first_namespaces(frames)
    for name, iri in namespaces:
        dataset.bind(name, build.term(iri), replace=True)
    for statement in _statements(frames, syntax):
        subject, predicate, object_, *graph = statement
        if subject.startswith('"') or not predicate.startswith("<"):
            raise InvalidTerm(_cannot_hold(syntax, statement))
        terms = (build.term(subject), build.term(predicate), build.term(object_))
        (dataset.graph(build.term(graph[0])) if graph and graph[0] else dataset.default_graph).add(terms)
    if syntax is JSON_LD:
        from rdflib.plugins.serializers.jsonld import from_rdf

        # Not by `serialize`: it writes numbers as JSON does, whatever it is asked for.
        document = from_rdf(dataset, use_native_types=False)  # type: ignore[no-untyped-call]
        write(f"{json.dumps(document, ensure_ascii=False)}\n".encode())
    else:
        write(dataset.default_graph.serialize(format=_RDFLIB_NAMES[syntax], encoding="utf-8"))


@contextmanager
def _lexical_forms_kept(rdflib: Any) -> Iterator[None]:
    # A switch of the whole process: there is no other, and other threads that make literals meanwhile keep theirs too.
    normalizes = rdflib.NORMALIZE_LITERALS
    rdflib.NORMALIZE_LITERALS = False
    try:
        yield
    finally:
        rdflib.NORMALIZE_LITERALS = normalizes
