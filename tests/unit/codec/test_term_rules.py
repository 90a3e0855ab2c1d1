"""docs/protocol.md, "Terms in rows": which terms may stand where, and what they are made of."""

import pytest

from patchlog.codec.options import Limits
from patchlog.errors import InvalidTerm, LimitExceeded, MalformedFrame, UnknownLookupEntry


@pytest.fixture
def quad_of(rdf, statements):
    """The quad of terms in a stream that declares all and has the name `n`, the prefix `p:` and the datatype `d`."""

    def read_quad(decoder, **terms):
        rows = [rdf.prefix("p:"), rdf.name("n"), rdf.datatype("d")]
        options = rdf.options(rdf.QUADS, rdf_star=1, generalized=1)
        [quad] = statements(decoder, rdf.stream([options, *rows, rdf.quad(**terms)]))
        return quad

    return read_quad


@pytest.mark.parametrize(
    ("literal", "term"),
    [
        ({1: "a"}, '"a"'),
        ({}, '""'),
        ({1: "a", 2: "en-GB"}, '"a"@en-GB'),
        ({1: "a", 3: 1}, '"a"^^<d>'),
        ({1: 'tab\t"quoted" \\ \n\r\b\f\x00\x7f é中😀'}, '"tab\\t\\"quoted\\" \\\\ \\n\\r\\b\\f\\u0000\\u007F é中😀"'),
        ({1: "", 2: "e n"}, '""@e\\u0020n'),
    ],
)
def test_a_literal_is_its_canonical_text(codec, quad_of, literal, term):
    quad = quad_of(codec.RdfDecoder(), s_bnode="s", p_iri={2: 1}, o_literal=literal, g_default={})

    assert quad == ("_:s", "<n>", term, "")


@pytest.mark.parametrize(
    ("label", "term"), [("b0", "_:b0"), ("", "_:"), ("-a b.", "_:\\u002Da\\u0020b\\u002E"), ("é.é", "_:é.é")]
)
def test_a_blank_node_keeps_its_label(codec, quad_of, label, term):
    quad = quad_of(codec.RdfDecoder(), s_bnode=label, p_iri={2: 1}, o_bnode=label, g_bnode=label)

    assert quad == (term, "<n>", term, term)


def test_an_iri_is_escaped_whole(codec, rdf, statements):
    stream = rdf.stream(
        [
            rdf.options(generalized=1),
            rdf.prefix("http://a b/<é>/"),
            rdf.name('"c"\\\x00'),
            rdf.triple(s_iri={1: 1, 2: 1}, p_bnode="p", o_iri={2: 1}),
        ]
    )

    [(subject, _, _)] = statements(codec.RdfDecoder(), stream)

    assert subject == "<http://a\\u0020b/\\u003Cé\\u003E/\\u0022c\\u0022\\u005C\\u0000>"


def test_a_quoted_triple_is_its_terms_in_brackets(codec, rdf, quad_of):
    inner = rdf.terms(s_bnode="a", p_iri={1: 1}, o_literal={1: ")>> "})
    outer = rdf.terms(s_triple=inner, p_iri={2: 1}, o_triple=inner | {5: {2: 1}})

    quad = quad_of(codec.RdfDecoder(), s_triple=outer, p_bnode="p", o_bnode="o", g_literal={1: "g"})

    quoted = '<<( _:a <p:n> ")>> " )>>'
    assert quad == (f"<<( {quoted} <p:n> {quoted} )>>", "_:p", "_:o", '"g"')


def test_an_unset_place_repeats_the_last_term_there(codec, rdf, statements):
    first = rdf.quad(s_bnode="s", p_iri=rdf.iri(), o_literal={1: "o"}, g_bnode="g")
    stream = rdf.stream(
        [rdf.options(rdf.QUADS), rdf.name("p"), first, rdf.quad(o_bnode="o"), rdf.quad()],
        [rdf.quad(g_default={}), rdf.quad(s_bnode="t")],
    )

    assert statements(codec.RdfDecoder(), stream) == [
        ("_:s", "<p>", '"o"', "_:g"),
        ("_:s", "<p>", "_:o", "_:g"),
        ("_:s", "<p>", "_:o", "_:g"),
        ("_:s", "<p>", "_:o", ""),
        ("_:t", "<p>", "_:o", ""),
    ]


@pytest.mark.parametrize("missing", ["s", "p", "o", "g"])
def test_with_nothing_to_repeat_a_statement_is_refused(codec, rdf, refusal, missing):
    terms = {"s_bnode": "s", "p_bnode": "p", "o_bnode": "o", "g_bnode": "g"}
    stream = rdf.stream(
        [
            rdf.options(rdf.QUADS, generalized=1),
            rdf.quad(**{name: term for name, term in terms.items() if not name.startswith(missing)}),
        ]
    )

    assert refusal(codec.RdfDecoder(), stream) == (InvalidTerm, 0, 1)
    assert refusal(codec.RdfDecoder(strict=False), stream) == (InvalidTerm, 0, 1)


def test_terms_are_read_in_the_order_of_their_places(codec, rdf, refusal):
    missing_subject_then_unknown_object = rdf.triple(p_bnode="p", o_iri={2: 7})
    unknown_subject_then_missing_object = rdf.triple(s_iri={2: 7}, p_bnode="p")
    unknown_object_standing_first = {2: [(9, {2: 7}), (11, {1: "o"}), (3, {1: "s"}), (6, "p")]}

    options = rdf.options()

    assert refusal(codec.RdfDecoder(), rdf.stream([options, missing_subject_then_unknown_object])) == (
        InvalidTerm,
        0,
        1,
    )
    assert refusal(codec.RdfDecoder(), rdf.stream([options, unknown_subject_then_missing_object])) == (
        UnknownLookupEntry,
        0,
        1,
    )
    assert refusal(codec.RdfDecoder(), rdf.stream([options, unknown_object_standing_first])) == (InvalidTerm, 0, 1)


def test_an_empty_language_tag_is_refused_or_a_plain_literal(codec, rdf, refusal, statements):
    stream = rdf.stream([rdf.options(generalized=1), rdf.triple(s_bnode="s", p_bnode="p", o_literal={1: "o", 2: ""})])

    assert refusal(codec.RdfDecoder(), stream) == (InvalidTerm, 0, 1)
    assert statements(codec.RdfDecoder(strict=False), stream) == [("_:s", "_:p", '"o"')]


UNDECLARED = {
    "literal as subject": ({"s_literal": {1: "a"}}, '"a"', 0),
    "blank node as predicate": ({"p_bnode": "a"}, "_:a", 1),
    "literal as predicate": ({"p_literal": {1: "a"}}, '"a"', 1),
    "quoted triple as subject": ({"s_triple": {2: "a", 5: {2: 1}, 10: "b"}}, "<<( _:a <n> _:b )>>", 0),
    "quoted triple as predicate": ({"p_triple": {2: "a", 5: {2: 1}, 10: "b"}}, "<<( _:a <n> _:b )>>", 1),
    "quoted triple as object": ({"o_triple": {2: "a", 5: {2: 1}, 10: "b"}}, "<<( _:a <n> _:b )>>", 2),
    "literal as graph": ({"g_literal": {1: "a"}}, '"a"', 3),
    "literal as subject in a quoted triple": (
        {"o_triple": {3: {1: "a"}, 5: {2: 1}, 10: "b"}},
        '<<( "a" <n> _:b )>>',
        2,
    ),
    "blank node as predicate in a quoted triple": ({"o_triple": {2: "a", 6: "p", 10: "b"}}, "<<( _:a _:p _:b )>>", 2),
}


def _with(rdf, terms, **options):
    base = {"s_bnode": "s", "p_iri": {2: 1}, "o_bnode": "o", "g_default": {}}
    [changed] = terms
    kept = {name: term for name, term in base.items() if name[0] != changed[0]}
    return rdf.stream([rdf.options(rdf.QUADS, **options), rdf.name("n"), rdf.quad(**kept, **terms)])


@pytest.mark.parametrize(("terms", "term", "place"), UNDECLARED.values(), ids=UNDECLARED.keys())
def test_kinds_of_terms_that_are_not_declared_are_for_lenient_reading(
    codec, rdf, refusal, statements, terms, term, place
):
    stream = _with(rdf, terms)

    assert refusal(codec.RdfDecoder(), stream) == (InvalidTerm, 0, 2)
    [quad] = statements(codec.RdfDecoder(strict=False), stream)
    assert quad[place] == term


@pytest.mark.parametrize(("terms", "term", "place"), UNDECLARED.values(), ids=UNDECLARED.keys())
def test_kinds_of_terms_that_are_declared_are_read(codec, rdf, statements, terms, term, place):
    [quad] = statements(codec.RdfDecoder(), _with(rdf, terms, rdf_star=1, generalized=1))

    assert quad[place] == term


@pytest.mark.parametrize(
    "declared",
    [{"rdf_star": 1}, {"generalized": 1}],
    ids=["only RDF-star", "only generalized statements"],
)
def test_a_quoted_triple_as_predicate_needs_both_declarations(codec, rdf, refusal, declared):
    stream = _with(rdf, UNDECLARED["quoted triple as predicate"][0], **declared)

    assert refusal(codec.RdfDecoder(), stream) == (InvalidTerm, 0, 2)


def test_a_term_is_read_before_its_kind_is_checked(codec, rdf, refusal):
    unknown_in_a_quoted_triple = _with(rdf, {"o_triple": {2: "a", 5: {2: 7}, 10: "b"}})
    malformed_label_as_predicate = _with(rdf, {"p_bnode": b"\xff"})

    assert refusal(codec.RdfDecoder(), unknown_in_a_quoted_triple) == (UnknownLookupEntry, 0, 2)
    assert refusal(codec.RdfDecoder(), malformed_label_as_predicate) == (MalformedFrame, 0, 2)


@pytest.mark.parametrize("field", [2, 5, 10], ids=["subject", "predicate", "object"])
@pytest.mark.parametrize("is_strict", [True, False])
def test_nothing_is_repeated_inside_a_quoted_triple(codec, rdf, refusal, field, is_strict):
    quoted = {number: term for number, term in {2: "a", 5: {2: 1}, 10: "b"}.items() if number != field}
    whole = rdf.quad(s_bnode="s", p_iri={2: 1}, o_bnode="o", g_default={})
    stream = rdf.stream([rdf.options(rdf.QUADS, rdf_star=1), rdf.name("n"), whole, rdf.quad(o_triple=quoted)])

    assert refusal(codec.RdfDecoder(strict=is_strict), stream) == (InvalidTerm, 0, 3)


def nested(depth):
    term = {2: "a", 6: "p", 10: "b"}
    for _ in range(depth - 1):
        term = {2: "a", 6: "p", 12: term}
    return term


@pytest.mark.parametrize("max_depth", [0, 1, 5, 64])
def test_quoted_triples_nest_as_deep_as_the_limit(codec, rdf, statements, refusal, max_depth):
    def stream(depth):
        term = {"o_triple": nested(depth)} if depth else {"o_bnode": "o"}
        return rdf.stream([rdf.options(rdf_star=1, generalized=1), rdf.triple(s_bnode="s", p_bnode="p", **term)])

    limits = Limits(max_nesting_depth=max_depth)

    [triple] = statements(codec.RdfDecoder(limits=limits), stream(max_depth))
    assert triple[2].count("<<(") == max_depth
    assert refusal(codec.RdfDecoder(limits=limits), stream(max_depth + 1)) == (LimitExceeded, 0, 1)
    assert refusal(codec.RdfDecoder(limits=limits, strict=False), stream(max_depth + 1)) == (LimitExceeded, 0, 1)


def test_a_graph_in_a_quoted_triple_is_an_unknown_field(codec, rdf, quad_of):
    quoted = rdf.terms(s_bnode="a", p_iri={2: 1}, o_bnode="b", g_iri={2: 99})

    quad = quad_of(codec.RdfDecoder(), s_triple=quoted, p_iri={2: 1}, o_bnode="o", g_default={})

    assert quad[0] == "<<( _:a <n> _:b )>>"


class TestDecodedSize:
    """What a frame decodes to is counted as if nothing were shared."""

    LIMIT = 100

    def decoder(self, codec):
        return codec.RdfDecoder(limits=Limits(max_decoded_frame_bytes=self.LIMIT))

    def place_of_refusal(self, codec, rdf, refusal, *rows, **options):
        first = rdf.options(rdf.QUADS, rdf_star=1, generalized=1, version=2, **options)
        error, frame, row = refusal(self.decoder(codec), rdf.stream([first, *rows]))
        assert error is LimitExceeded
        assert frame == 0
        return row - 1

    def test_blank_nodes_count_their_labels_and_repeated_terms_count_again(self, codec, rdf, read, refusal):
        ten = rdf.quad(s_bnode="1", p_bnode="22", o_bnode="333", g_bnode="4444")
        stream = [rdf.options(rdf.QUADS, generalized=1), ten, *[rdf.quad()] * 9]

        assert len(read(self.decoder(codec), rdf.stream(stream))) == 1
        assert self.place_of_refusal(codec, rdf, refusal, ten, *[rdf.quad()] * 9, rdf.quad(g_default={})) == 10

    def test_an_iri_counts_its_prefix_and_its_name_in_utf8(self, codec, rdf, refusal):
        lookups = [rdf.prefix("p" * 20), rdf.name("é" * 15)]
        whole = rdf.quad(s_iri={1: 1, 2: 1}, p_bnode="", o_iri={2: 1}, g_default={})

        assert self.place_of_refusal(codec, rdf, refusal, *lookups, whole, rdf.quad(g_bnode="")) == 3

    def test_a_literal_counts_its_language_or_its_datatype(self, codec, rdf, refusal):
        with_language = rdf.quad(s_bnode="", p_bnode="", o_literal={1: "a" * 30, 2: "b" * 20}, g_default={})
        with_datatype = rdf.quad(s_bnode="", p_bnode="", o_literal={1: "a" * 30, 3: 1}, g_default={})

        assert self.place_of_refusal(codec, rdf, refusal, *[with_language] * 2, rdf.quad(s_bnode="x")) == 2
        rows = [rdf.datatype("d" * 20), *[with_datatype] * 2, rdf.quad(s_bnode="x")]
        assert self.place_of_refusal(codec, rdf, refusal, *rows) == 3

    def test_texts_count_before_they_are_escaped(self, codec, rdf, read):
        stream = rdf.stream(
            [rdf.options(generalized=1), rdf.triple(s_bnode="", p_bnode="", o_literal={1: "\x00" * self.LIMIT})]
        )

        assert len(read(self.decoder(codec), stream)) == 1

    def test_a_quoted_triple_counts_its_terms(self, codec, rdf, refusal):
        quoted = {2: "a" * 20, 6: "p" * 20, 12: {2: "a" * 20, 6: "p" * 20, 10: "b" * 20}}
        whole = rdf.quad(s_triple=quoted, p_bnode="", o_bnode="", g_default={})

        assert self.place_of_refusal(codec, rdf, refusal, whole, rdf.quad(o_bnode="x")) == 1

    def test_a_quoted_triple_is_counted_while_it_is_read(self, codec, rdf, refusal):
        too_long_then_unknown = {2: "a" * (self.LIMIT + 1), 6: "p", 9: {2: 7}}
        unknown_then_too_long = {1: {2: 7}, 6: "p", 10: "a" * (self.LIMIT + 1)}

        row = rdf.quad(s_triple=too_long_then_unknown, p_bnode="", o_bnode="", g_default={})
        assert self.place_of_refusal(codec, rdf, refusal, row) == 0
        stream = rdf.stream(
            [rdf.options(rdf.QUADS, rdf_star=1, generalized=1), rdf.quad(s_triple=unknown_then_too_long)]
        )
        assert refusal(self.decoder(codec), stream) == (UnknownLookupEntry, 0, 1)

    def test_a_row_is_counted_after_all_its_terms_were_read(self, codec, rdf, refusal):
        too_long_then_unknown = rdf.triple(s_bnode="a" * (self.LIMIT + 1), p_bnode="p", o_iri={2: 7})

        stream = rdf.stream([rdf.options(generalized=1), too_long_then_unknown])

        assert refusal(self.decoder(codec), stream) == (UnknownLookupEntry, 0, 1)

    def test_a_graph_counts_where_it_starts_and_with_each_triple(self, codec, rdf, refusal):
        triple = rdf.triple(s_bnode="", p_bnode="", o_bnode="")
        start, options = rdf.graph_start(g_bnode="g" * 50), rdf.options(rdf.GRAPHS, generalized=1)

        stream = rdf.stream([options, start, triple, triple, triple])
        assert refusal(self.decoder(codec), stream) == (LimitExceeded, 0, 3)
        stream = rdf.stream([options, *[start, rdf.graph_end()] * 3])
        assert refusal(self.decoder(codec), stream) == (LimitExceeded, 0, 5)

    def test_a_namespace_counts_its_iri(self, codec, rdf, refusal):
        namespace = rdf.namespace("not counted" * 50, {2: 1})

        assert self.place_of_refusal(codec, rdf, refusal, rdf.name("n" * 50), *[namespace] * 3) == 3

    def test_headers_and_namespaces_of_patches_count_their_terms(self, codec, patch, refusal):
        decoder = codec.PatchDecoder(limits=Limits(max_decoded_frame_bytes=self.LIMIT))
        header = patch.header("not counted" * 50, s_bnode="h" * 50)
        namespace = patch.namespace_add("not counted" * 50, {2: 1}, g_bnode="g" * 20)
        repeated = patch.namespace_delete("ns")
        options = patch.options(patch.QUADS)

        stream = patch.stream(
            [options, patch.name("n" * 10), header, namespace, repeated, patch.namespace_delete("", g_bnode="x")]
        )

        assert refusal(decoder, stream) == (LimitExceeded, 0, 5)

    def test_each_frame_begins_anew(self, codec, rdf, read):
        whole = rdf.triple(s_bnode="s" * self.LIMIT, p_bnode="", o_bnode="")

        frames = read(self.decoder(codec), rdf.stream([rdf.options(generalized=1)], *[[whole]] * 5))

        assert len(frames) == 6
