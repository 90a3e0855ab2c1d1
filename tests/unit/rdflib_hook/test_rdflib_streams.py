"""The streams of rdflib terms, pure and as the engine chose them."""

import pytest
from rdflib import BNode, Literal, URIRef
from rdflib.graph import DATASET_DEFAULT_GRAPH_ID
from rdflib.namespace import XSD
from rdflib.term import _toPythonMapping

from patchlog.codec.options import Limits, LogicalType, PhysicalType, RdfOptions
from patchlog.engine import RdfDecoder, RdfEncoder
from patchlog.errors import InvalidSyntax, InvalidTerm, LimitExceeded, MalformedFrame, UsageError
from patchlog.rdflib_hook import decoder as pure_decoder
from patchlog.rdflib_hook import encoder as pure_encoder
from patchlog.rdflib_hook import implementation

EX = "http://example.org/"
TRIPLES = RdfOptions(physical_type=PhysicalType.TRIPLES, logical_type=LogicalType.FLAT_TRIPLES)
QUADS = RdfOptions(physical_type=PhysicalType.QUADS, logical_type=LogicalType.FLAT_QUADS)

QUAD_TERMS = [
    (URIRef(EX + "a"), URIRef(EX + "p"), Literal("01", datatype=XSD.integer, normalize=False), URIRef(EX + "g")),
    (BNode("b"), URIRef(EX + "p"), Literal("x", lang="en-GB"), DATASET_DEFAULT_GRAPH_ID),
    (BNode("b"), URIRef(EX + "p"), Literal("x"), BNode("g")),
    (URIRef(EX + "a"), URIRef(EX + "p"), URIRef(EX + "a"), BNode("g")),
]


@pytest.fixture(params=[pure_decoder.RdflibDecoder, implementation.RdflibDecoder], ids=["pure", "chosen"])
def decoder_class(request):
    return request.param


@pytest.fixture(params=[pure_encoder.RdflibEncoder, implementation.RdflibEncoder], ids=["pure", "chosen"])
def encoder_class(request):
    return request.param


def encoded(encoder_class, options, statements, **settings) -> bytes:
    encoder = encoder_class(options, **settings)
    encoder.statements(statements)
    return encoder.take() + encoder.finish()


def test_quads_come_back_as_they_were(decoder_class, encoder_class):
    data = encoded(encoder_class, QUADS, QUAD_TERMS)
    decoder = decoder_class("jelly")

    statements = decoder.feed(data) + decoder.finish()

    assert statements == QUAD_TERMS
    assert [str(statement[2]) for statement in statements] == ["01", "x", "x", EX + "a"]
    assert statements[1][2].language == "en-GB"


def test_triples_have_three_terms(decoder_class, encoder_class):
    data = encoded(encoder_class, TRIPLES, [quad[:3] for quad in QUAD_TERMS])
    decoder = decoder_class("jelly")

    statements = decoder.feed(data) + decoder.finish()

    assert statements == [quad[:3] for quad in QUAD_TERMS]
    assert {type(statement) for statement in statements} == {tuple}


def test_any_chunking_gives_the_same_statements(decoder_class, encoder_class):
    data = encoded(encoder_class, QUADS, QUAD_TERMS * 10, rows_per_frame=4)
    decoder = decoder_class("jelly")

    statements = [s for byte in data for s in decoder.feed(bytes([byte]))] + decoder.finish()

    assert statements == QUAD_TERMS * 10


def test_interrupted_value_is_made_once(decoder_class, encoder_class, monkeypatch):
    calls = []

    def interrupted(lexical):
        calls.append(lexical)
        raise KeyboardInterrupt

    datatype = URIRef(f"urn:interrupted:{decoder_class.__module__}")
    quad = (URIRef(EX + "a"), URIRef(EX + "p"), Literal("x", datatype=datatype), URIRef(EX + "g"))
    data = encoded(encoder_class, QUADS, [quad])
    monkeypatch.setitem(_toPythonMapping, datatype, interrupted)
    decoder = decoder_class("jelly")

    with pytest.raises(KeyboardInterrupt):
        decoder.feed(data)

    assert calls == ["x"]


def test_bytes_are_those_of_the_codec(encoder_class):
    codec = RdfEncoder(QUADS)
    codec.statements(
        [
            (f"<{EX}a>", f"<{EX}p>", f'"01"^^<{XSD.integer}>', f"<{EX}g>"),
            ("_:b", f"<{EX}p>", '"x"@en-GB', ""),
            ("_:b", f"<{EX}p>", '"x"', "_:g"),
            (f"<{EX}a>", f"<{EX}p>", f"<{EX}a>", "_:g"),
        ]
    )

    data = encoded(encoder_class, QUADS, QUAD_TERMS)

    assert data == codec.take() + codec.finish()


def test_none_as_a_graph_is_the_default_graph(encoder_class):
    triple = QUAD_TERMS[0][:3]

    assert encoded(encoder_class, QUADS, [(*triple, None)]) == encoded(
        encoder_class, QUADS, [(*triple, DATASET_DEFAULT_GRAPH_ID)]
    )


def test_lines_of_text_are_read(decoder_class):
    decoder = decoder_class("nquads")

    statements = decoder.feed(
        b'<http://example.org/a> <http://example.org/p> "x" .\n_:b <http://example.org/p> "1" <g>'
    )
    statements += decoder.feed(b" .") + decoder.finish()

    assert statements == [
        (URIRef(EX + "a"), URIRef(EX + "p"), Literal("x")),
        (BNode("b"), URIRef(EX + "p"), Literal("1"), URIRef("g")),
    ]


def test_namespaces_are_taken_once(decoder_class, encoder_class):
    encoder = encoder_class(TRIPLES, namespace_declarations=True)
    encoder.namespace("ex", EX)
    encoder.statements([QUAD_TERMS[0][:3]])
    decoder = decoder_class("jelly")
    decoder.feed(encoder.finish())
    decoder.finish()

    namespaces = decoder.take_namespaces()

    assert namespaces == [("ex", URIRef(EX))]
    assert decoder.take_namespaces() == []


def test_namespaces_are_not_written_where_they_are_not_enabled(decoder_class, encoder_class):
    encoder = encoder_class(TRIPLES)
    encoder.namespace("ex", EX)
    decoder = decoder_class("jelly")
    decoder.feed(encoder.finish())
    decoder.finish()

    assert decoder.take_namespaces() == []


def test_other_sources_are_refused(decoder_class):
    with pytest.raises(UsageError, match="'jelly' or 'nquads'"):
        decoder_class("rdf-patch")


def test_damaged_input_raises_the_errors_of_the_codec(decoder_class, encoder_class):
    data = encoded(encoder_class, QUADS, QUAD_TERMS)
    decoder = decoder_class("jelly")
    decoder.feed(data[:-1])

    with pytest.raises(MalformedFrame) as caught:
        decoder.finish()

    assert (caught.value.frame, caught.value.row) == (0, None)


def test_limits_reach_the_codec(decoder_class, encoder_class):
    decoder = decoder_class("jelly", limits=Limits(max_frame_bytes=10))

    with pytest.raises(LimitExceeded):
        decoder.feed(encoded(encoder_class, QUADS, QUAD_TERMS))


def test_bare_frames_are_read_and_written(decoder_class, encoder_class):
    decoder = decoder_class("jelly", delimited=False)

    statements = decoder.feed(encoded(encoder_class, QUADS, QUAD_TERMS, delimited=False)) + decoder.finish()

    assert statements == QUAD_TERMS


def test_concatenated_streams_are_read_when_told(decoder_class, encoder_class):
    data = encoded(encoder_class, QUADS, QUAD_TERMS) + encoded(encoder_class, TRIPLES, [QUAD_TERMS[0][:3]])
    decoder = decoder_class("jelly", concatenated=True)

    assert decoder.feed(data) + decoder.finish() == [*QUAD_TERMS, QUAD_TERMS[0][:3]]


def test_strictness_reaches_the_codec(decoder_class):
    encoder = RdfEncoder(RdfOptions(generalized_statements=True))
    encoder.statement('"s"', "<p>", "<o>", "")
    undeclared = encoder.finish().replace(b"\x18\x01", b"\x18\x00", 1)

    with pytest.raises(InvalidTerm):
        decoder_class("jelly").feed(undeclared)

    assert decoder_class("jelly", strict=False).feed(undeclared)[0][0] == Literal("s")


def test_quoted_triples_are_refused(decoder_class):
    encoder = RdfEncoder(RdfOptions(rdf_star=True))
    encoder.statement("<<( <a> <b> <c> )>>", "<p>", "<o>", "")
    decoder = decoder_class("jelly")

    with pytest.raises(UsageError, match="rdflib has no terms for quoted triples"):
        decoder.feed(encoder.finish())


def test_generalized_statements_keep_their_terms(decoder_class, encoder_class):
    options = RdfOptions(generalized_statements=True)
    statement = (Literal("s"), BNode("p"), Literal("o", lang="en"), Literal("g"))
    decoder = decoder_class("jelly")

    assert decoder.feed(encoded(encoder_class, options, [statement])) == [statement]


@pytest.mark.parametrize("node", ["text", None, 1, DATASET_DEFAULT_GRAPH_ID.__class__], ids=repr)
def test_what_is_no_rdf_term_cannot_be_written(encoder_class, node):
    with pytest.raises(InvalidTerm, match="is not an IRI, a blank node or a literal"):
        encoded(encoder_class, TRIPLES, [(node, URIRef(EX + "p"), Literal("x"))])


def test_frames_of_the_codec_and_statements_agree(decoder_class, encoder_class):
    data = encoded(encoder_class, QUADS, QUAD_TERMS * 100)
    codec = RdfDecoder()
    frames = [*codec.feed(data), *codec.finish()]

    decoder = decoder_class("jelly")

    assert len(decoder.feed(data) + decoder.finish()) == sum(len(frame.statements) for frame in frames)


@pytest.mark.parametrize(
    "statement", [(), (URIRef("a"),), (URIRef("a"),) * 2, (URIRef("a"),) * 5, [URIRef("a")] * 3, 5]
)
def test_what_is_no_statement_is_refused_and_the_encoder_spent(encoder_class, statement):
    encoder = encoder_class(RdfOptions())

    with pytest.raises(UsageError, match="three or four terms"):
        encoder.statements([statement])
    with pytest.raises(UsageError, match="met an error before"):
        encoder.finish()


def test_decoder_that_met_an_error_says_so(decoder_class):
    decoder = decoder_class("nquads")
    with pytest.raises(InvalidSyntax):
        decoder.feed(b"x\n")

    for call in (lambda: decoder.feed(memoryview(b"")), decoder.finish, decoder.take_namespaces):
        with pytest.raises(UsageError, match="met an error before"):
            call()
