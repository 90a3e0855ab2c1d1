import importlib.util

import pytest

import patchlog.syntaxes
from patchlog.errors import InvalidSyntax, InvalidTerm, MissingExtra
from patchlog.formats import JSON_LD, NQUADS, NTRIPLES, RDF_XML, TRIG, TURTLE
from patchlog.model import RdfFrame
from patchlog.syntaxes import as_frames, read_syntax, write_syntax

# rdflib's own parsers make one.
pytestmark = pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated:DeprecationWarning:rdflib")

EX = "http://ex.org/"
STATEMENT = (f"<{EX}a>", f"<{EX}b>", '"01"^^<http://www.w3.org/2001/XMLSchema#integer>')
DOCUMENTS = {
    TURTLE: f'@prefix ex: <{EX}> . ex:a ex:b "01"^^<http://www.w3.org/2001/XMLSchema#integer> .',
    TRIG: f'@prefix ex: <{EX}> . {{ ex:a ex:b "01"^^<http://www.w3.org/2001/XMLSchema#integer> }}',
    RDF_XML: f"""<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:ex="{EX}">
        <rdf:Description rdf:about="{EX}a"><ex:b rdf:datatype="http://www.w3.org/2001/XMLSchema#integer">01</ex:b>
        </rdf:Description></rdf:RDF>""",
    JSON_LD: f"""{{"@context": {{"ex": "{EX}"}}, "@id": "ex:a",
        "ex:b": {{"@value": "01", "@type": "http://www.w3.org/2001/XMLSchema#integer"}}}}""",
}
BROKEN = {TURTLE: "<a> <b", TRIG: "{ <a>", RDF_XML: "<rdf:RDF", JSON_LD: '{"@id"'}


@pytest.fixture(params=["pyoxigraph", "rdflib"])
def library(request, monkeypatch):
    """Both libraries in turn: rdflib is taken where pyoxigraph is not installed."""
    pytest.importorskip(request.param)
    monkeypatch.setattr(
        patchlog.syntaxes, "find_spec", lambda name: None if name != request.param else importlib.util.find_spec(name)
    )
    return request.param


def statements_of(text, syntax, **options):
    return [one for frame in read_syntax([text.encode()], syntax, **options) for one in frame.statements]


def written(statements, syntax, namespaces=()):
    out = []
    write_syntax(out.append, [RdfFrame(0, statements, list(namespaces))], syntax)
    return b"".join(out).decode()


def expected(syntax):
    return [(*STATEMENT, "") if syntax.holds_graphs else STATEMENT]


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("syntax", DOCUMENTS, ids=lambda syntax: syntax.title)
def test_document_is_read_without_changing_lexical_forms(syntax):
    assert statements_of(DOCUMENTS[syntax], syntax) == expected(syntax)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("syntax", [TURTLE, TRIG, RDF_XML], ids=lambda syntax: syntax.title)
def test_prefixes_come_with_the_statements(syntax):
    frames = list(read_syntax([DOCUMENTS[syntax].encode()], syntax))

    assert ("ex", f"<{EX}>") in frames[0].namespaces
    assert not any(name == "brick" for name, _ in frames[0].namespaces)


@pytest.mark.parametrize("syntax", DOCUMENTS, ids=lambda syntax: syntax.title)
@pytest.mark.parametrize("size", [1, 7])
def test_chunks_may_be_of_any_size(syntax, size):
    data = DOCUMENTS[syntax].encode()

    frames = read_syntax([data[start : start + size] for start in range(0, len(data), size)], syntax)

    assert [one for frame in frames for one in frame.statements] == expected(syntax)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("syntax", BROKEN, ids=lambda syntax: syntax.title)
def test_broken_document_is_one_named_error(syntax):
    with pytest.raises(InvalidSyntax, match=syntax.title):
        statements_of(BROKEN[syntax], syntax)


def test_error_has_the_line_where_it_is_known():
    pytest.importorskip("pyoxigraph")

    with pytest.raises(InvalidSyntax) as raised:
        statements_of("<http://a> <http://b> 1 .\n\n<http://a> <", TURTLE)

    assert raised.value.line == 3


@pytest.mark.usefixtures("library")
def test_base_resolves_relative_iris():
    assert statements_of("<a> <#b> <../c> .", TURTLE, base="http://ex.org/x/y") == [
        ("<http://ex.org/x/a>", "<http://ex.org/x/y#b>", "<http://ex.org/c>")
    ]


def test_relative_iris_without_a_base_stay_or_are_refused(library):
    """No path of this machine gets into the data."""
    if library == "pyoxigraph":
        assert statements_of("<a> <b> <c> .", TURTLE) == [("<a>", "<b>", "<c>")]
    else:
        with pytest.raises(InvalidSyntax, match="relative IRIs"):
            statements_of("<a> <b> <c> .", TURTLE)


def test_rdflib_normalises_again_afterwards(library):
    if library == "rdflib":
        rdflib = pytest.importorskip("rdflib")
        statements_of(DOCUMENTS[TURTLE], TURTLE)

        assert rdflib.NORMALIZE_LITERALS


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("syntax", [JSON_LD, RDF_XML], ids=lambda syntax: syntax.title)
def test_document_that_is_written_reads_back(syntax):
    statements = [
        STATEMENT,
        (f"<{EX}a>", f"<{EX}b>", '"x"@en'),
        (f"<{EX}a>", f"<{EX}b>", '"plain"'),
        (f"<{EX}a>", f"<{EX}b>", f"<{EX}c>"),
    ]
    if syntax.holds_graphs:
        statements = [(*statement, graph) for statement in statements for graph in ("", f"<{EX}g>")]

    text = written(statements, syntax, [("ex", f"<{EX}>")])

    assert set(statements_of(text, syntax)) == set(statements)
    assert text.endswith("\n")


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("syntax", [JSON_LD, RDF_XML], ids=lambda syntax: syntax.title)
@pytest.mark.parametrize("statement", [('"literal"', f"<{EX}b>", f"<{EX}c>"), (f"<{EX}b>", "_:b", f"<{EX}c>")])
def test_generalized_statement_is_refused(syntax, statement):
    with pytest.raises(InvalidTerm, match="cannot hold"):
        written([statement], syntax)


@pytest.mark.usefixtures("library")
def test_rdf_xml_refuses_a_named_graph():
    with pytest.raises(InvalidTerm, match="holds no named graphs"):
        written([(*STATEMENT, f"<{EX}g>")], RDF_XML)


def test_without_any_library_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(patchlog.syntaxes, "find_spec", lambda _: None)

    with pytest.raises(MissingExtra, match=r"pip install 'patchlog\[rdf\]'"):
        read_syntax([], TURTLE)
    with pytest.raises(MissingExtra):
        write_syntax(print, [], JSON_LD)


def test_turtle_is_written_without_any_library(monkeypatch):
    monkeypatch.setattr(patchlog.syntaxes, "find_spec", lambda _: None)

    assert written([STATEMENT], TURTLE) == f"{' '.join(STATEMENT)} .\n"


@pytest.mark.parametrize("syntax", [NQUADS, NTRIPLES], ids=lambda syntax: syntax.title)
def test_lines_are_read_and_written_by_the_codec(syntax):
    lines = f"{' '.join(STATEMENT)} .\n"

    # What is not named in N-Quads stands in the default graph.
    read = (*STATEMENT, "") if syntax is NQUADS else STATEMENT
    assert statements_of(lines, syntax) == [read]
    assert written([read], syntax) == written([STATEMENT], syntax) == lines


def test_base_direction_is_refused():
    pytest.importorskip("pyoxigraph")

    with pytest.raises(InvalidTerm, match="base direction"):
        statements_of(f'<{EX}a> <{EX}b> "x"@en--ltr .', TURTLE)


def test_statements_are_cut_into_frames():
    frames = list(as_frames([STATEMENT] * 3000))

    assert [frame.index for frame in frames] == list(range(len(frames)))
    assert sum(len(frame.statements) for frame in frames) == 3000
