"""Turtle, TriG, RDF/XML and JSON-LD, read and written by the library that is installed: pyoxigraph, else rdflib.

pyoxigraph works as a stream; it puts language tags in lower case. rdflib keeps their case, but needs memory for the
whole document and rewrites bare numbers (`042` becomes "42"). Turtle and TriG are written by `patchlog.turtle`, which
changes nothing.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import IO, Any, Final, TypeAlias, cast

from patchlog.errors import InvalidSyntax, InvalidTerm, MissingExtra, PatchLogError
from patchlog.formats import JSON_LD, RDF_XML, TRIG, TURTLE, Format
from patchlog.model import DEFAULT_GRAPH, Statement, Term
from patchlog.streams import Write
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

__all__ = ["read_syntax", "write_syntax"]

OnNamespace: TypeAlias = Callable[[str, Term], object]
_OXIGRAPH_NAMES: Final = {TURTLE: "TURTLE", TRIG: "TRIG", RDF_XML: "RDF_XML", JSON_LD: "JSON_LD"}
_RDFLIB_NAMES: Final = {TURTLE: "turtle", TRIG: "trig", RDF_XML: "xml", JSON_LD: "json-ld"}
_NO_BASE: Final = "no-base://relative/"
_PLACE_IN_MESSAGE: Final = re.compile(r"^Parser error (?:at|between) .*?: ")


def read_syntax(
    chunks: Iterable[bytes],
    syntax: Format,
    *,
    base: str | None = None,
    on_namespace: OnNamespace | None = None,
) -> Iterator[Statement]:
    """Yield the statements of a document: triples, or quads where the format has graphs.

    `base` is the IRI that relative IRIs are resolved against. `on_namespace` is told of each prefix before a
    statement that comes after its declaration. Raises InvalidSyntax where the document is not well formed.
    """
    if find_spec("pyoxigraph"):
        return _read_by_oxigraph(chunks, syntax, base, on_namespace)
    if find_spec("rdflib"):
        return _read_by_rdflib(chunks, syntax, base, on_namespace)
    raise MissingExtra("pyoxigraph", "rdf")


def write_syntax(
    write: Write, statements: Iterable[Statement], syntax: Format, *, namespaces: Mapping[str, Term] | None = None
) -> None:
    """Write one document of RDF/XML or JSON-LD. Raises InvalidTerm for a statement that the format cannot hold."""
    if find_spec("pyoxigraph"):
        _write_by_oxigraph(write, statements, syntax, namespaces or {})
    elif find_spec("rdflib"):
        _write_by_rdflib(write, statements, syntax, namespaces or {})
    else:
        raise MissingExtra("pyoxigraph", "rdf")


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


def _read_by_oxigraph(
    chunks: Iterable[bytes], syntax: Format, base: str | None, on_namespace: OnNamespace | None
) -> Iterator[Statement]:
    import pyoxigraph

    known: dict[str, str] = {}
    parser = pyoxigraph.parse(
        cast(IO[bytes], io.BufferedReader(_ChunkFile(chunks), 1 << 16)),
        format=getattr(pyoxigraph.RdfFormat, _OXIGRAPH_NAMES[syntax]),
        base_iri=base,
        lenient=True,  # IRIs that are not quite valid are common; without a base, relative ones stay relative
    )
    try:
        for quad in parser:
            if on_namespace is not None and len(prefixes := parser.prefixes) != len(known):
                for name, iri in prefixes.items() - known.items():
                    on_namespace(name, iri_term(iri))
                known = prefixes
            triple = (_term(quad.subject), _term(quad.predicate), _term(quad.object))
            yield (*triple, _term(quad.graph_name)) if syntax.holds_graphs else triple
    except SyntaxError as error:
        raise InvalidSyntax(f"{syntax.title}: {_PLACE_IN_MESSAGE.sub('', error.msg)}", line=error.lineno) from error


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


def _write_by_oxigraph(
    write: Write, statements: Iterable[Statement], syntax: Format, namespaces: Mapping[str, Term]
) -> None:
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

    def elements() -> Iterator[Any]:
        for statement in statements:
            subject, predicate, object_, *graph = statement
            try:
                if not syntax.holds_graphs:
                    _refuse_graph(syntax, graph)
                    yield pyoxigraph.Triple(node(subject), node(predicate), node(object_))
                elif graph and graph[0]:
                    yield pyoxigraph.Quad(node(subject), node(predicate), node(object_), node(graph[0]))
                else:
                    yield pyoxigraph.Quad(node(subject), node(predicate), node(object_))
            except (TypeError, ValueError) as error:
                raise InvalidTerm(_cannot_hold(syntax, statement)) from error

    prefixes = {name: iri.value for name, term in namespaces.items() if isinstance(iri := parse_term(term), Iri)}
    rdf_format = getattr(pyoxigraph.RdfFormat, _OXIGRAPH_NAMES[syntax])
    pyoxigraph.serialize(elements(), cast(IO[bytes], _WriteFile(write)), rdf_format, prefixes=prefixes)


def _cannot_hold(syntax: Format, statement: Statement) -> str:
    return f"{syntax.title} cannot hold {' '.join(statement).rstrip()}"


def _refuse_graph(syntax: Format, graph: list[Term]) -> None:
    if graph and graph[0]:
        raise InvalidTerm(f"{syntax.title} holds no named graphs; {graph[0]} needs TriG, JSON-LD or N-Quads")


def _read_by_rdflib(
    chunks: Iterable[bytes], syntax: Format, base: str | None, on_namespace: OnNamespace | None
) -> Iterator[Statement]:
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
    for name, iri in dataset.namespaces():
        if on_namespace is not None and (name, iri) not in bound_by_rdflib:
            on_namespace(name, formatter.term(iri))
    for quad in dataset.quads():
        statement = formatter.statement(quad)
        if any(term.startswith(f"<{_NO_BASE}") for term in statement):
            raise InvalidSyntax(f"{syntax.title}: the document has relative IRIs; say what base they have")
        yield statement if syntax.holds_graphs else cast(Statement, statement[:3])


def _write_by_rdflib(
    write: Write, statements: Iterable[Statement], syntax: Format, namespaces: Mapping[str, Term]
) -> None:
    import rdflib

    from patchlog.rdflib_hook.terms import TermBuilder

    build = TermBuilder()
    dataset = rdflib.Dataset()
    for name, iri in namespaces.items():
        dataset.bind(name, str(build.term(iri)), replace=True)
    for statement in statements:
        subject, predicate, object_, *graph = statement
        if not syntax.holds_graphs:
            _refuse_graph(syntax, graph)
        if subject.startswith('"') or not predicate.startswith("<"):
            raise InvalidTerm(_cannot_hold(syntax, statement))
        terms = (build.term(subject), build.term(predicate), build.term(object_))
        (dataset.graph(build.term(graph[0])) if graph and graph[0] else dataset.default_graph).add(terms)
    source = dataset if syntax.holds_graphs else dataset.default_graph
    write(source.serialize(format=_RDFLIB_NAMES[syntax], encoding="utf-8"))


@contextmanager
def _lexical_forms_kept(rdflib: Any) -> Iterator[None]:
    # A switch of the whole process: there is no other, and other threads that make literals meanwhile keep theirs too.
    normalizes = rdflib.NORMALIZE_LITERALS
    rdflib.NORMALIZE_LITERALS = False
    try:
        yield
    finally:
        rdflib.NORMALIZE_LITERALS = normalizes
