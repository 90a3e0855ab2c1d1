"""docs/protocol.md, "Jelly-RDF": which rows may stand where."""

import pytest

from patchlog.errors import InvalidTerm, UnexpectedRow
from patchlog.model import RdfFrame

GRAPH = {"g_bnode": "g"}


@pytest.fixture
def triple(rdf):
    return rdf.triple(s_bnode="s", p_bnode="p", o_bnode="o")


@pytest.fixture
def graphs(rdf):
    """A stream of graphs with the given frames."""

    def make(*frames):
        return rdf.stream([rdf.options(rdf.GRAPHS, generalized=1)], *frames)

    return make


@pytest.mark.parametrize(
    ("physical", "row"),
    [
        ("TRIPLES", "quad"),
        ("TRIPLES", "graph_start"),
        ("TRIPLES", "graph_end"),
        ("GRAPHS", "quad"),
        ("QUADS", "triple"),
        ("QUADS", "graph_start"),
        ("QUADS", "graph_end"),
    ],
)
@pytest.mark.parametrize("is_strict", [True, False])
def test_rows_of_another_physical_type_are_refused(codec, rdf, refusal, physical, row, is_strict):
    terms = {"s_bnode": "s", "p_bnode": "p", "o_bnode": "o"}
    rows = {
        "triple": rdf.triple(**terms),
        "quad": rdf.quad(**terms, **GRAPH),
        "graph_start": rdf.graph_start(**GRAPH),
        "graph_end": rdf.graph_end(),
    }
    stream = rdf.stream([rdf.options(getattr(rdf, physical), generalized=1), rows[row]])

    assert refusal(codec.RdfDecoder(strict=is_strict), stream) == (UnexpectedRow, 0, 1)


@pytest.mark.parametrize("physical", ["TRIPLES", "QUADS", "GRAPHS"])
def test_namespaces_and_lookups_stand_in_streams_of_any_type(codec, rdf, read, physical):
    rows = [
        rdf.prefix("p:"),
        rdf.name("n"),
        rdf.datatype("d"),
        rdf.namespace("", rdf.iri(1, 1)),
        rdf.namespace("ns", {2: 1}),
    ]
    stream = rdf.stream([rdf.options(getattr(rdf, physical), version=2), *rows])

    assert read(codec.RdfDecoder(), stream) == [RdfFrame(0, namespaces=[("", "<p:n>"), ("ns", "<p:n>")])]


@pytest.mark.parametrize("is_strict", [True, False])
def test_a_namespace_without_iri_is_refused(codec, rdf, refusal, is_strict):
    stream = rdf.stream([rdf.options(version=2), rdf.namespace("ns")])

    assert refusal(codec.RdfDecoder(strict=is_strict), stream) == (InvalidTerm, 0, 1)


def test_triples_of_a_graph_are_quads(codec, rdf, graphs, read, triple):
    stream = graphs(
        [rdf.graph_start(**GRAPH), triple, rdf.triple(), rdf.graph_end()],
        [
            rdf.graph_start(g_default={}),
            rdf.triple(o_bnode="x"),
            rdf.graph_end(),
            rdf.graph_start(**GRAPH),
            rdf.graph_end(),
        ],
    )

    frames = read(codec.RdfDecoder(), stream)

    assert [frame.statements for frame in frames] == [
        [],
        [("_:s", "_:p", "_:o", "_:g")] * 2,
        [("_:s", "_:p", "_:x", "")],
    ]


def test_a_graph_may_span_frames(codec, rdf, graphs, read, triple):
    frames = read(codec.RdfDecoder(), graphs([rdf.graph_start(**GRAPH), triple], [], [rdf.triple()]))

    assert [len(frame.statements) for frame in frames] == [0, 1, 0, 1]


@pytest.mark.parametrize("is_strict", [True, False])
def test_a_triple_outside_a_graph_is_refused(codec, rdf, graphs, refusal, triple, is_strict):
    stream = graphs([rdf.graph_start(**GRAPH), triple, rdf.graph_end(), rdf.triple()])

    assert refusal(codec.RdfDecoder(strict=is_strict), stream) == (UnexpectedRow, 1, 3)


def test_a_graph_start_inside_a_graph_is_for_lenient_reading(codec, rdf, graphs, refusal, statements, triple):
    stream = graphs([rdf.graph_start(**GRAPH), rdf.graph_start(g_default={}), triple])

    assert refusal(codec.RdfDecoder(), stream) == (UnexpectedRow, 1, 1)
    assert statements(codec.RdfDecoder(strict=False), stream) == [("_:s", "_:p", "_:o", "")]


def test_a_graph_end_outside_a_graph_is_for_lenient_reading(codec, rdf, graphs, refusal, statements):
    stream = graphs([rdf.graph_end()])

    assert refusal(codec.RdfDecoder(), stream) == (UnexpectedRow, 1, 0)
    assert statements(codec.RdfDecoder(strict=False), stream) == []


@pytest.mark.parametrize("is_strict", [True, False])
def test_a_graph_start_repeats_no_graph(codec, rdf, graphs, refusal, is_strict):
    stream = graphs([rdf.graph_start(**GRAPH), rdf.graph_end(), rdf.graph_start()])

    assert refusal(codec.RdfDecoder(strict=is_strict), stream) == (InvalidTerm, 1, 2)


def test_a_literal_as_graph_needs_generalized_statements(codec, rdf, refusal, statements):
    stream = rdf.stream([rdf.options(rdf.GRAPHS), rdf.graph_start(g_literal={1: "g"})])

    assert refusal(codec.RdfDecoder(), stream) == (InvalidTerm, 0, 1)
    assert statements(codec.RdfDecoder(strict=False), stream) == []


def test_a_graph_at_the_end_of_the_stream_may_be_open(codec, rdf, graphs, statements, triple):
    assert len(statements(codec.RdfDecoder(), graphs([rdf.graph_start(**GRAPH), triple]))) == 1
