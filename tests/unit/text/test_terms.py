"""The canonical text of terms."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchlog.errors import InvalidTerm
from patchlog.model import XSD_STRING
from patchlog.text.terms import (
    BlankNode,
    Iri,
    Literal,
    QuotedTriple,
    blank_node_term,
    escape_iri,
    iri_term,
    literal_term,
    parse_term,
    quoted_triple_term,
    unescape,
)

# Characters that matter to the rules are rare in plain random text.
texts = st.one_of(st.text(), st.text(alphabet='ab_-.:@^<>"\\{}|` \t\n\r\x7f\x85é\u2028😀'))

atoms = st.one_of(
    texts.map(iri_term),
    texts.map(blank_node_term),
    texts.map(literal_term),
    st.builds(lambda lexical, language: literal_term(lexical, language=language), texts, texts.filter(bool)),
    st.builds(lambda lexical, datatype: literal_term(lexical, datatype=datatype), texts, texts),
)
terms = st.recursive(atoms, lambda parts: st.builds(quoted_triple_term, parts, parts, parts), max_leaves=9)


@given(texts)
def test_any_iri_survives_the_round_trip(iri: str) -> None:
    assert parse_term(iri_term(iri)) == Iri(iri)


@given(texts)
def test_any_label_survives_the_round_trip(label: str) -> None:
    assert parse_term(blank_node_term(label)) == BlankNode(label)


@given(texts, st.none() | texts.filter(bool))
def test_any_lexical_form_and_language_survive_the_round_trip(lexical: str, language: str | None) -> None:
    assert parse_term(literal_term(lexical, language=language)) == Literal(lexical, language)


@given(texts, texts)
def test_any_datatype_survives_the_round_trip(lexical: str, datatype: str) -> None:
    assert parse_term(literal_term(lexical, datatype=datatype)) == Literal(lexical, None, datatype)


@given(terms, terms, terms)
def test_any_quoted_triple_survives_the_round_trip(subject: str, predicate: str, object: str) -> None:
    assert parse_term(quoted_triple_term(subject, predicate, object)) == QuotedTriple(subject, predicate, object)


@given(st.text(alphabet='<>()_:a-.@^"\\uU041Ct #'))
def test_text_that_parses_is_the_only_text_of_its_term(text: str) -> None:
    try:
        parsed = parse_term(text)
    except InvalidTerm:
        return

    match parsed:
        case Iri(value):
            assert iri_term(value) == text
        case BlankNode(label):
            assert blank_node_term(label) == text
        case Literal(lexical, language, datatype):
            assert literal_term(lexical, language=language, datatype=datatype) == text
        case QuotedTriple(subject, predicate, object):
            assert quoted_triple_term(subject, predicate, object) == text


@given(texts, texts)
def test_iri_may_be_escaped_in_parts(prefix: str, name: str) -> None:
    assert escape_iri(prefix) + escape_iri(name) == escape_iri(prefix + name)


@pytest.mark.parametrize(
    ("term", "text"),
    [
        (iri_term("http://example.org/a b"), r"<http://example.org/a\u0020b>"),
        (iri_term('<>"{}|^`\\\x00'), r"<\u003C\u003E\u0022\u007B\u007D\u007C\u005E\u0060\u005C\u0000>"),
        (iri_term("é\x7f"), "<é\x7f>"),
        (iri_term(""), "<>"),
        (blank_node_term("b0_.:-x"), "_:b0_.:-x"),
        (blank_node_term("-a."), r"_:\u002Da\u002E"),
        (blank_node_term("."), r"_:\u002E"),
        (blank_node_term("a b/é"), r"_:a\u0020b\u002Fé"),
        (blank_node_term(""), "_:"),
        (literal_term('\b\t\n\f\r"\\'), r'"\b\t\n\f\r\"\\"'),
        (literal_term("\x00\x1f\x7f\x80"), '"\\u0000\\u001F\\u007F\x80"'),
        (literal_term("hej", language="sv-SE"), '"hej"@sv-SE'),
        (literal_term("hej", language="a.b_c"), r'"hej"@a\u002Eb\u005Fc'),
        (literal_term("1", datatype="http://example.org/a b"), r'"1"^^<http://example.org/a\u0020b>'),
        (literal_term("x", datatype=XSD_STRING), '"x"'),
        (quoted_triple_term("<a>", "<b>", '"c d"'), '<<( <a> <b> "c d" )>>'),
    ],
)
def test_canonical_text(term: str, text: str) -> None:
    assert term == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "a",
        "<a",
        "<a b>",
        "<a>b>",
        r"<\u0041>",
        r"<\u003c>",
        "_:a b",
        "_:a.",
        "_:-",
        r"_:\u0061",
        '"a',
        'a"',
        '"a"b"',
        '"a\nb"',
        r'"\u000A"',
        r'"\x"',
        r'"\uD800"',
        '"a"@',
        '"a"@en ',
        '"a"@e_n',
        '"a"^^<b',
        '"a"^^b',
        f'"a"^^<{XSD_STRING}>',
        "<< <a> <b> <c> >>",
        "<<(<a> <b> <c>)>>",
        "<<( <a> <b> )>>",
        "<<( <a> <b> <c> <d> )>>",
        "<<( <a> <b>  <c> )>>",
        "<<( <a> <b> <c> )>> ",
        "<<( <a> <b> <c> )>> )>>",
        "<<( <a> <b> <<( <a> )>> )>>",
        '<<( <a> <b> "c"d" )>>',
        "<<(x <b> <c> )>>",
        "<<( <<(x <b> <c> )>>",
        "<<( <a> <b> <c>",
        "<<( ",
    ],
)
def test_text_that_is_not_the_canonical_text_of_a_term_is_refused(text: str) -> None:
    with pytest.raises(InvalidTerm):
        parse_term(text)


@pytest.mark.parametrize("make", [iri_term, blank_node_term, literal_term])
def test_surrogates_are_refused(make: Callable[[str], str]) -> None:
    with pytest.raises(InvalidTerm, match="surrogate"):
        make("a\ud800")


def test_literal_with_empty_language_is_refused() -> None:
    with pytest.raises(InvalidTerm, match="language tag"):
        literal_term("a", language="")


def test_literal_with_language_and_datatype_is_refused() -> None:
    with pytest.raises(InvalidTerm, match="not both"):
        literal_term("a", language="en", datatype="http://example.org/d")


def nested(depth: int) -> str:
    term = "<a>"
    for _ in range(depth):
        term = quoted_triple_term("<s>", "<p>", term)
    return term


def test_quoted_triples_may_nest_512_deep() -> None:
    assert parse_term(nested(512)) == QuotedTriple("<s>", "<p>", nested(511))


def test_quoted_triples_that_nest_deeper_are_refused() -> None:
    with pytest.raises(InvalidTerm, match="512"):
        parse_term(nested(513))


@pytest.mark.parametrize(
    ("text", "characters"), [(r"\u00e9\U0001F600", "é😀"), (r"\t\'\\u", "\t'\\u"), ("plain", "plain")]
)
def test_unescape_reads_all_escapes_of_n_triples(text: str, characters: str) -> None:
    assert unescape(text) == characters


@pytest.mark.parametrize("text", [r"\x", "\\", r"\u12", r"\uD800", r"\U00110000"])
def test_unescape_refuses_what_stands_for_no_character(text: str) -> None:
    with pytest.raises(InvalidTerm):
        unescape(text)
