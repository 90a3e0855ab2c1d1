import pytest

from patchlog.errors import InvalidTerm
from patchlog.formats import TRIG, TURTLE
from patchlog.syntaxes import read_syntax
from patchlog.text.terms import MAX_NESTING_DEPTH
from patchlog.turtle import TurtleWriter

A, B, C = "<http://ex.org/a>", "<http://ex.org/b>", "<http://ex.org/c>"
G = "<http://ex.org/g>"


def written(statements, *, graphs=False, namespaces=()):
    writer = TurtleWriter(graphs=graphs)
    for name, iri in namespaces:
        writer.namespace(name, iri)
    writer.statements(statements)
    return writer.finish().decode()


def test_statements_of_a_subject_are_one_group():
    text = written([(A, B, "_:x"), (A, B, "_:y"), (A, C, '"z"'), (B, C, "_:x")])

    assert text == f'{A} {B} _:x, _:y ;\n  {C} "z" .\n{B} {C} _:x .\n'


def test_type_is_written_as_a():
    assert written([(A, "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", B)]) == f"{A} a {B} .\n"


def test_namespaces_abbreviate_iris_and_datatypes():
    text = written([(A, B, f'"1"^^{C}')], namespaces=[("ex", "<http://ex.org/>")])

    assert text == '@prefix ex: <http://ex.org/> .\nex:a ex:b "1"^^ex:c .\n'


@pytest.mark.parametrize(
    "iri", ["<http://ex.org/a/b>", "<http://ex.org/a.b>", "<http://ex.org/a%20b>", "<http://ex.orga>"]
)
def test_iri_that_is_not_plainly_abbreviated_is_written_out(iri):
    assert iri in written([(iri, B, B)], namespaces=[("ex", "<http://ex.org/>")])


def test_namespace_declared_on_the_way_abbreviates_what_follows():
    writer = TurtleWriter(graphs=True)

    writer.statements([(A, B, C, G)])
    writer.namespace("", "<http://ex.org/>")
    writer.statements([(A, B, C, G)])

    assert (
        writer.finish().decode()
        == f"{G} {{\n  {A} {B} {C} .\n}}\n@prefix : <http://ex.org/> .\n:g {{\n  :a :b :c .\n}}\n"
    )


def test_namespace_that_turtle_cannot_name_is_passed_over():
    assert written([(A, B, C)], namespaces=[("a b", "<http://ex.org/>")]) == f"{A} {B} {C} .\n"


def test_last_declaration_of_a_prefix_counts():
    text = written([(A, B, C)], namespaces=[("ex", "<http://ex.org/>"), ("ex", "<http://other.org/>")])

    assert text.endswith(f"{A} {B} {C} .\n")


def test_graphs_are_written_as_trig():
    text = written([(A, B, C), (A, B, C, ""), (A, B, C, G), (A, B, C, "_:g")], graphs=True)

    assert text == f"{A} {B} {C}, {C} .\n{G} {{\n  {A} {B} {C} .\n}}\n_:g {{\n  {A} {B} {C} .\n}}\n"


def test_nothing_is_normalised():
    literal, relative = '"01"@en-US', "<relative>"

    assert written([(relative, B, literal)]) == f"{relative} {B} {literal} .\n"


def test_quoted_triple_is_a_triple_term_as_object_and_as_in_rdf_star_as_subject():
    text = written(
        [(f"<<( {A} {B} _:x )>>", B, f"<<( {A} {B} <<( {A} {B} {C} )>> )>>")], namespaces=[("", "<http://ex.org/>")]
    )

    assert text.endswith("<< :a :b _:x >> :b <<( :a :b <<( :a :b :c )>> )>> .\n")


@pytest.mark.parametrize("graphs", [False, True])
def test_quoted_triple_as_object_is_read_back_as_it_was(graphs):
    statement = (A, B, f"<<( {A} {B} <<( {A} {B} {C} )>> )>>", C)
    text = written([statement if graphs else statement[:3]], graphs=graphs)

    read_back = [one for frame in read_syntax([text.encode()], TRIG if graphs else TURTLE) for one in frame.statements]

    assert read_back == [statement if graphs else statement[:3]]


@pytest.mark.parametrize("place", [0, 2])
def test_quoted_triples_may_be_nested_as_deep_as_terms_may(place):
    term = A
    for _ in range(MAX_NESTING_DEPTH):
        triple = [A, B, C]
        triple[place] = term
        term = f"<<( {' '.join(triple)} )>>"

    assert written([(A, B, term)], namespaces=[("", "<http://ex.org/>")]).count(" :b ") == MAX_NESTING_DEPTH + 1


@pytest.mark.parametrize(
    "statement",
    [('"literal"', B, C), (A, "_:blank", C), (A, '"literal"', C), (A, f"<<( {A} {B} {C} )>>", C), (A, B, C, '"graph"')],
)
@pytest.mark.parametrize("namespaces", [[], [("ex", "<http://ex.org/>")]])
def test_generalized_statement_is_refused(statement, namespaces):
    with pytest.raises(InvalidTerm, match="no generalized statements"):
        written([statement], graphs=True, namespaces=namespaces)


def test_turtle_refuses_a_named_graph():
    with pytest.raises(InvalidTerm, match="holds no named graphs"):
        written([(A, B, C, G)])


@pytest.mark.parametrize("syntax", [TURTLE, TRIG], ids=lambda syntax: syntax.title)
def test_another_reader_reads_the_same_statements(syntax):
    pytest.importorskip("pyoxigraph")
    objects = [
        '"a \\"b\\"\\n\\\\ \\u0001"',
        '"x"@en',
        '"1.0"^^<http://ex.org/t#y>',
        "_:a.b-c",
        "<http://ex.org/ns#x>",
        "<http://ex.org/é>",
    ]
    statements = [
        (A, B, one, *([G] if syntax is TRIG and index % 2 else [""] if syntax is TRIG else []))
        for index, one in enumerate(objects)
    ]
    writer = TurtleWriter(graphs=syntax is TRIG)
    writer.namespace("ex", "<http://ex.org/>")
    writer.namespace("n-s", "<http://ex.org/ns#>")
    writer.statements(statements)

    frames = list(read_syntax([writer.finish()], syntax))

    assert [statement for frame in frames for statement in frame.statements] == statements
    assert frames[0].namespaces == [("ex", "<http://ex.org/>"), ("n-s", "<http://ex.org/ns#>")]
