"""N-Triples and N-Quads."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchlog.errors import CodecError, InvalidSyntax, InvalidTerm, LimitExceeded
from patchlog.text.nquads import nquads_line, ntriples_line
from patchlog.text.terms import blank_node_term, iri_term, literal_term, quoted_triple_term

SHARED = Path(os.environ.get("PATCHLOG_SHARED", Path(__file__).parents[4] / "shared"))

texts = st.text(max_size=8) | st.text(alphabet='ab_-.:@^<>"\\{}() \t\n\r\x7fé😀', max_size=8)
atoms = st.one_of(
    texts.map(iri_term),
    texts.map(blank_node_term),
    st.builds(
        lambda lexical, language: literal_term(lexical, language=language), texts, st.none() | texts.filter(bool)
    ),
    st.builds(lambda lexical, datatype: literal_term(lexical, datatype=datatype), texts, texts),
)
terms = st.recursive(atoms, lambda parts: st.builds(quoted_triple_term, parts, parts, parts), max_leaves=5)
statements = st.tuples(terms, terms, terms) | st.tuples(terms, terms, terms, terms)


def read(codec, data, chunk_bytes=1 << 20):
    if isinstance(data, str):
        data = data.encode()
    reader = codec.NQuadsReader()
    found = []
    for start in range(0, len(data), chunk_bytes):
        found.extend(reader.feed(data[start : start + chunk_bytes]))
    return found + reader.finish()


def read_object(codec, text):
    ((_, _, term),) = read(codec, f"<s> <p> {text} .")
    return term


def test_line_without_graph_is_a_triple_and_one_with_a_graph_a_quad(codec):
    found = read(codec, '<s> <p> "o" .\n<s> <p> _:o <g> .\n')

    assert found == [("<s>", "<p>", '"o"'), ("<s>", "<p>", "_:o", "<g>")]


def test_comments_blank_lines_and_line_ends_of_windows_are_read(codec):
    found = read(codec, "\ufeff# first\r\n\r\n<s> <p> <o> . # behind\r\n  \t# alone\n\t<s>\t<p>\t<q>\t.\t\r\n")

    assert found == [("<s>", "<p>", "<o>"), ("<s>", "<p>", "<q>")]


def test_blanks_may_be_left_out_where_terms_can_be_told_apart(codec):
    found = read(codec, '<s><p>_:a.\n_:s<p>"o"@en<g>.#comment\n<<(<s><p>"o")>><p><<<s><p><o>>>.')

    assert found == [
        ("<s>", "<p>", "_:a"),
        ("_:s", "<p>", '"o"@en', "<g>"),
        ('<<( <s> <p> "o" )>>', "<p>", "<<( <s> <p> <o> )>>"),
    ]


def test_last_line_needs_no_end(codec):
    assert read(codec, "<s> <p> <o> .") == [("<s>", "<p>", "<o>")]


def test_any_term_may_stand_anywhere(codec):
    found = read(codec, '"s" _:p "o"^^<d> "g"@en .\n<< <s> <p> <o> >> <<( <s> <p> <o> )>> <o> _:g .\n')

    assert found == [
        ('"s"', "_:p", '"o"^^<d>', '"g"@en'),
        ("<<( <s> <p> <o> )>>", "<<( <s> <p> <o> )>>", "<o>", "_:g"),
    ]


def test_quoted_triples_of_both_styles_may_nest(codec):
    term = read_object(codec, '<< <a> <b> <<( _:c <d> "e >> )>>" )>> >>')

    assert term == '<<( <a> <b> <<( _:c <d> "e >> )>>" )>> )>>'


def test_bracketed_label_is_an_iri(codec):
    assert read_object(codec, "<_:a>") == "<_:a>"


@pytest.mark.parametrize(
    ("text", "term"),
    [
        (r'"a\tb\"\\\n"', r'"a\tb\"\\\n"'),
        ('"a\tb"', r'"a\tb"'),
        (r'"\'\u00e9\U0001F600\u0041"', '"\'é😀A"'),
        (r'"\u0007\u000A"', r'"\u0007\n"'),
        (r'"\u000a"', r'"\n"'),
        ('"é\u2028\x7f"', '"é\u2028\\u007F"'),
        ('"x"^^<http://www.w3.org/2001/XMLSchema#string>', '"x"'),
        ('"x"^^<http://www.w3.org/2001/XMLSchema#strings>', '"x"^^<http://www.w3.org/2001/XMLSchema#strings>'),
        (r'"x"@en-\u0047B', '"x"@en-GB'),
        ('"x"@en--ltr', '"x"@en--ltr'),
        (r"<http://example.org/\u00e9\u0020>", r"<http://example.org/é\u0020>"),
        ("<a{b}|^`>", r"<a\u007Bb\u007D\u007C\u005E\u0060>"),
        ("<>", "<>"),
        (r"_:a\u002Eb", "_:a.b"),
        (r"_:b\u002e", r"_:b\u002E"),
        ("_:a..b:c-_é", "_:a..b:c-_é"),
        ("_:", "_:"),
        ("_:1", "_:1"),
    ],
)
def test_terms_come_out_canonical(codec, text, term):
    assert read_object(codec, text) == term


def test_dot_behind_a_label_ends_the_statement(codec):
    assert read(codec, "<s> <p> _:o.\n<s> <p> _:.") == [("<s>", "<p>", "_:o"), ("<s>", "<p>", "_:")]


@pytest.mark.parametrize(
    "line",
    [
        "<s> <p> <o>",
        "<s> <p> <o> <g>",
        "<s> <p> .",
        "<s> <p> <o> <g> <h> .",
        ".",
        "<s> <p> <o> . .",
        "<s> <p> <o> . <s> <p> <q> .",
        "<s> <p> <o .",
        "<s> <p> <a b> .",
        '<s> <p> <a"b> .',
        r"<s> <p> <a\nb> .",
        r"<s> <p> <a\u00g0> .",
        r"<s> <p> <\uD800> .",
        r"<s> <p> <\U00110000> .",
        "<s> <p> o .",
        "<s> <p> 42 .",
        "<s> <p> 'o' .",
        '<s> <p> "o .',
        '<s> <p> "o\r" .',
        '<s> <p> """o""" .',
        r'<s> <p> "\x" .',
        r'<s> <p> "\u00" .',
        '<s> <p> "o"@ .',
        '<s> <p> "o"@e_n .',
        '<s> <p> "o" @en .',
        '<s> <p> "o"^^d .',
        "<s> <p> _:-o .",
        "<s> <p> _:.o .",
        r"<s> <p> _:.\u0041 .",
        "_:s. <p> <o> .",
        "_ <p> <o> .",
        "<< <s> <p> >> <p> <o> .",
        "<< <s> <p> <o> <g> >> <p> <o> .",
        "<< <s> <p> <o> )>> <p> <o> .",
        "<<( <s> <p> <o> >> <p> <o> .",
        "<s> <p> <o> >> .",
        "<s> <p> << <s> <p> <o> .",
    ],
)
def test_wrong_line_is_refused_with_its_number(codec, line):
    with pytest.raises(InvalidSyntax) as caught:
        read(codec, f"<s> <p> <o> .\n\n{line}\n<s> <p> <o> .\n")

    assert caught.value.line == 3


def test_quoted_triples_may_nest_512_deep(codec):
    term = read_object(codec, "<< <s> <p> " * 512 + "<o>" + " >>" * 512)

    assert term.count("<<(") == 512


def test_quoted_triples_that_nest_deeper_are_refused(codec):
    with pytest.raises(LimitExceeded) as caught:
        read(codec, "\n<< <s> <p> " + "<< <s> <p> " * 512)

    assert caught.value.line == 2


def test_bytes_that_are_not_utf8_are_refused_with_their_line(codec):
    with pytest.raises(InvalidSyntax) as caught:
        read(codec, b'<s> <p> <o> .\n<s> <p> "\xe9" .\n')

    assert caught.value.line == 2


def test_the_first_error_counts_even_if_a_later_line_is_not_utf8(codec):
    with pytest.raises(InvalidSyntax) as caught:
        read(codec, b'<s> .\n"\xff"\n')

    assert caught.value.line == 1


@given(found=st.lists(statements, max_size=5))
def test_reading_what_was_written_is_the_identity(codec, found):
    text = "".join(map(nquads_line, found))

    assert read(codec, text) == found


@given(found=st.lists(statements, max_size=4), chunk_bytes=st.integers(1, 20))
def test_any_chunking_gives_the_same_statements(codec, found, chunk_bytes):
    text = "".join(map(nquads_line, found))

    assert read(codec, text, chunk_bytes) == found


@given(statement=statements)
def test_layout_does_not_change_the_statement(codec, statement):
    line = nquads_line(statement)

    assert read(codec, f" \t{line[:-1]} # comment") == [statement]


@given(text=st.text(alphabet='<>()_:ab.@^"\\u0041 \n#é'))
def test_any_text_is_read_or_refused_with_its_line(codec, text):
    try:
        read(codec, text)
    except CodecError as error:
        line = error.line
    else:
        line = 1

    assert 1 <= line <= text.count("\n") + 1


def test_default_graph_is_left_out():
    assert nquads_line(("<s>", "<p>", "<o>", "")) == "<s> <p> <o> .\n"


def test_quoted_triples_are_written_without_parentheses():
    line = nquads_line(('<<( <s> <p> <<( <a> <b> "<<( x )>>" )>> )>>', "<p>", "<o>", "<g>"))

    assert line == '<< <s> <p> << <a> <b> "<<( x )>>" >> >> <p> <o> <g> .\n'


def test_ntriples_refuses_a_named_graph_and_takes_the_default_graph():
    assert ntriples_line(("<s>", "<p>", "<o>", "")) == "<s> <p> <o> .\n"
    with pytest.raises(InvalidTerm, match="<g>"):
        ntriples_line(("<s>", "<p>", "<o>", "<g>"))


def test_conformance_files_are_read_and_written_back(codec):
    files = [path for suffix in ("nt", "nq") for path in sorted(SHARED.glob(f"conformance/jelly-rdf/**/*.{suffix}"))]
    if not files:
        assert "CI" not in os.environ, "the conformance data is missing"
        pytest.skip("the conformance data is not here: set PATCHLOG_SHARED")

    for path in files:
        found = read(codec, path.read_bytes())

        assert read(codec, "".join(map(nquads_line, found))) == found
        assert len(found) == sum(
            1 for line in path.read_text(encoding="utf-8").split("\n") if line.strip() and not line.startswith("#")
        )
