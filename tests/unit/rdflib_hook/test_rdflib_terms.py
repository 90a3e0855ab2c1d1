"""Terms that are built past rdflib's constructors are what the constructors build, character for character."""

import logging
import pickle
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdflib import BNode, Graph, Literal, URIRef, Variable
from rdflib.graph import DATASET_DEFAULT_GRAPH_ID, QuotedGraph
from rdflib.namespace import RDF, XSD
from rdflib.term import _toPythonMapping, bind

from patchlog.errors import InvalidTerm, UsageError
from patchlog.rdflib_hook import RdflibDecoder
from patchlog.rdflib_hook import terms as terms_module
from patchlog.rdflib_hook.terms import TermBuilder, TermFormatter
from patchlog.text.terms import literal_term

DATATYPES = [*(datatype for datatype in _toPythonMapping if datatype), RDF.HTML, URIRef("http://example.org/own")]

LEXICAL_FORMS = [
    *(
        "",
        " ",
        "a",
        "a b",
        " a  b ",
        "a\tb\nc\r",
        "é",
        "\U0001f600",
        '"\\',
        "true",
        "false",
        "TRUE",
        "maybe",
        "0",
        "1",
        "-1",
    ),
    *(
        "+1",
        "01",
        " 1 ",
        "1_000",
        "128",
        "-129",
        "32768",
        "70000",
        "4294967296",
        "99999999999999999999",
        "1.0",
        ".5",
        "1.",
    ),
    *("1e0", "1E400", "NaN", "INF", "-INF", "inf", "--1", "2020-01-01", "2020-01-01Z", "2020-13-01", "-0044-03-15"),
    *(
        "2020-01-01T00:00:00",
        "2020-01-01T00:00:00.000Z",
        "2020-01-01T24:00:00",
        "12:00:00",
        "12:00:00+02:00",
        "25:00:00",
    ),
    *(
        "2020",
        "2020-01",
        "--01",
        "---01",
        "--01-01",
        "P1D",
        "P1Y2M",
        "-PT1.5S",
        "P",
        "CAFE",
        "cafe",
        "xyz",
        "Y2FmZQ==",
        "Y2Fm*",
    ),
    *("<a/>", "<a>&amp;</a>", "<a>", "<b>bold</b>", "http://example.org/", "en", "en-GB", "de_AT"),
]


def built_by_stream(term: str) -> Literal:
    """By the decoder that the engine chose: the native one builds terms of its own."""
    decoder = RdflibDecoder("nquads")
    ((_, _, built),) = decoder.feed(f"<s> <p> {term} .\n".encode()) + decoder.finish()
    return built


def built_alone(term: str) -> Literal:
    return TermBuilder().term(term)


@pytest.fixture(params=[built_alone, built_by_stream], ids=["alone", "stream"])
def build(request):
    return request.param


def by_constructor(lexical: str, datatype: URIRef | None) -> Literal:
    return Literal(lexical, datatype=datatype, normalize=False)


@pytest.fixture(autouse=True)
def _quiet():
    """rdflib logs each cast that fails, and warns of odd booleans; both sides do the same casts."""
    logging.disable(logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("datatype", [None, *DATATYPES], ids=lambda d: "plain" if d is None else d.rsplit("#")[-1])
def test_built_literal_is_what_the_constructor_builds(datatype, build):
    keeps_white_space = datatype in {XSD.token, XSD.normalizedString}

    for lexical in LEXICAL_FORMS:
        expected = by_constructor(lexical, datatype)
        built = build(literal_term(lexical, datatype=datatype and str(datatype)))

        assert type(built) is Literal
        assert str(built) == lexical
        assert built.language is None
        if datatype == XSD.string:  # the model writes it as a plain literal
            assert built.datatype is None
            continue
        assert built.datatype == expected.datatype
        assert type(built.datatype) is type(expected.datatype)
        assert built.ill_typed is expected.ill_typed
        assert type(built.value) is type(expected.value)
        assert_same_value(built.value, expected.value)
        if not keeps_white_space:
            assert built == expected
            assert hash(built) == hash(expected)
            assert built.n3() == expected.n3()


def assert_same_value(built: object, expected: object) -> None:
    if hasattr(expected, "toxml"):  # documents have no equality
        assert built.toxml() == expected.toxml()
    elif hasattr(expected, "childNodes"):
        assert len(built.childNodes) == len(expected.childNodes)
    elif expected != expected:  # noqa: PLR0124 - not a number
        assert built != built  # noqa: PLR0124
    else:
        assert built == expected


@pytest.mark.parametrize("lexical", ["a\tb\nc", "  a  b  "])
def test_token_and_normalized_string_keep_their_white_space(lexical, build):
    for datatype in (XSD.token, XSD.normalizedString):
        built = build(literal_term(lexical, datatype=str(datatype)))

        assert str(built) == lexical


@pytest.mark.parametrize("tag", ["en", "EN", "en-GB", "x", "de-Latn-DE-1996"])
def test_language_tag_is_kept_and_equal_to_what_the_constructor_builds(tag, build):
    expected = Literal("chat", lang=tag)

    built = build(f'"chat"@{tag}')

    assert built.language == tag
    assert built == expected
    assert hash(built) == hash(expected)
    assert (built.value, built.datatype, built.ill_typed) == (expected.value, None, None)


def test_language_tag_that_rdflib_refuses_is_kept():
    built = TermBuilder().term(literal_term("chat", language="fr_FR"))

    assert built.language == "fr_FR"


@pytest.mark.parametrize(
    "text", ["http://example.org/a", "http://example.org/é b", "urn:x", "", "relative/path", "http://example.org/{}"]
)
def test_built_iri_is_what_the_constructor_builds(text, build):
    term = TermFormatter().term(URIRef(text))

    built = build(term)

    assert type(built) is URIRef
    assert built == URIRef(text)
    assert hash(built) == hash(URIRef(text))


def test_blank_node_labels_are_kept(build):
    for label in ("b0", "-odd.", "a b", "n123"):
        built = build(TermFormatter().term(BNode(label)))

        assert type(built) is BNode
        assert built == BNode(label)


def test_binding_of_a_datatype_by_the_user_is_used(build):
    datatype = URIRef("http://example.org/complex")
    bind(datatype, complex)
    try:
        built = build('"1+2j"^^<http://example.org/complex>')
    finally:
        del _toPythonMapping[datatype]

    assert built.value == 1 + 2j


def test_built_literals_survive_pickling():
    built = TermBuilder().term('"1"^^<http://www.w3.org/2001/XMLSchema#integer>')

    assert pickle.loads(pickle.dumps(built)) == built


def test_default_graph_is_the_name_that_rdflib_gives_it():
    builder, formatter = TermBuilder(), TermFormatter()

    assert builder.graph("") is DATASET_DEFAULT_GRAPH_ID
    assert formatter.graph(DATASET_DEFAULT_GRAPH_ID) == ""
    assert formatter.graph(None) == ""


def test_quoted_triple_is_refused_with_the_reason(build):
    with pytest.raises(UsageError, match="rdflib has no terms for quoted triples"):
        build("<<( <a> <b> <c> )>>")


def test_what_is_no_rdf_term_is_refused():
    graph = Graph()
    for node in (Variable("x"), QuotedGraph(graph.store, BNode()), graph, "text", None, 1):
        with pytest.raises(InvalidTerm, match="is not an IRI, a blank node or a literal"):
            TermFormatter().term(node)
    with pytest.raises(InvalidTerm, match="is not a term"):
        TermBuilder().term("no term")


def test_xsd_string_is_written_as_a_plain_literal():
    assert TermFormatter().term(Literal("x", datatype=XSD.string)) == '"x"'


def test_equal_iris_are_one_object():
    builder = TermBuilder()

    assert builder.term("<http://example.org/a>") is builder.term("<http://example.org/" + "a>")


def test_caches_are_bounded(monkeypatch):
    monkeypatch.setattr(terms_module, "MAX_CACHED_TERMS", 4)
    builder, formatter = TermBuilder(), TermFormatter()

    for number in range(50):
        literal = builder.term(f'"x"^^<http://example.org/{number}>')
        assert formatter.term(literal) == f'"x"^^<http://example.org/{number}>'
        assert formatter.term(builder.term(f"<http://example.org/{number}>")) == f"<http://example.org/{number}>"
        assert formatter.term(builder.term('"plain"')) == '"plain"'

    for cache in (builder._terms, builder._kinds, formatter._iris, formatter._suffixes):
        assert len(cache) <= 4


CHARACTERS = st.text(st.characters(exclude_categories=["Cs"]))


@given(
    st.one_of(
        st.builds(URIRef, CHARACTERS),
        st.builds(BNode, CHARACTERS.filter(bool)),
        st.builds(lambda x: Literal(x, normalize=False), CHARACTERS),
        st.builds(
            lambda x, d: Literal(x, datatype=d, normalize=False),
            CHARACTERS,
            st.sampled_from([d for d in DATATYPES if d not in {XSD.token, XSD.normalizedString, XSD.string}]),
        ),
        st.builds(
            lambda x, tag: Literal(x, lang=tag), CHARACTERS, st.from_regex(r"[a-zA-Z]+(-[a-zA-Z0-9]+)*", fullmatch=True)
        ),
    )
)
def test_every_rdflib_term_comes_back(term):
    text = TermFormatter().term(term)

    assert built_alone(text) == term
    assert built_by_stream(text) == term
