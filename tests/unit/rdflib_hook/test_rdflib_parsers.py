"""Graphs and datasets are filled from Jelly-RDF."""

import io
import warnings

import pytest
from rdflib import BNode, ConjunctiveGraph, Dataset, Graph, Literal, URIRef
from rdflib.graph import DATASET_DEFAULT_GRAPH_ID, QuotedGraph
from rdflib.namespace import XSD
from rdflib.parser import InputSource

from patchlog.codec.options import Limits, LogicalType, PhysicalType, RdfOptions
from patchlog.engine import RdfEncoder
from patchlog.errors import LimitExceeded, MalformedFrame, UsageError
from patchlog.rdflib_hook.parsers import JellyParser

TRIPLES = RdfOptions(physical_type=PhysicalType.TRIPLES, logical_type=LogicalType.FLAT_TRIPLES)
QUADS = RdfOptions()
INTEGER = f"<{XSD.integer}>"
S, P, G = URIRef("http://example.org/s"), URIRef("http://example.org/p"), URIRef("http://example.org/g")
STATEMENTS = [
    (f"<{S}>", f"<{P}>", f'"01"^^{INTEGER}', ""),
    ("_:label", f"<{P}>", '"Grüezi"@de-CH', f"<{G}>"),
    ("_:label", f"<{P}>", '"in a blank graph"', "_:g"),
]


def jelly(statements, options=QUADS, namespaces=(), **settings) -> bytes:
    encoder = RdfEncoder(options, namespace_declarations=bool(namespaces), **settings)
    for name, iri in namespaces:
        encoder.namespace(name, iri)
    encoder.statements(statements)
    return encoder.take() + encoder.finish()


def triples(count: int) -> list[tuple[str, str, str]]:
    return [(f"<http://example.org/{number}>", f"<{P}>", f'"{number}"') for number in range(count)]


def test_quads_go_to_their_graphs():
    dataset = Dataset()

    dataset.parse(data=jelly(STATEMENTS), format="patchlog-jelly")

    assert set(dataset.default_graph) == {(S, P, Literal("01", datatype=XSD.integer, normalize=False))}
    assert set(dataset.graph(G)) == {(BNode("label"), P, Literal("Grüezi", lang="de-CH"))}
    assert set(dataset.graph(BNode("g"))) == {(BNode("label"), P, Literal("in a blank graph"))}


def test_lexical_forms_and_labels_are_kept():
    dataset = Dataset()

    dataset.parse(data=jelly(STATEMENTS), format="patchlog-jelly")

    assert [str(o) for o in dataset.default_graph.objects()] == ["01"]
    assert {str(s) for s in dataset.graph(G).subjects()} == {"label"}


def test_triples_fill_a_graph():
    graph = Graph()

    graph.parse(data=jelly([quad[:3] for quad in STATEMENTS], TRIPLES), format="patchlog-jelly")

    assert len(graph) == 3


def test_a_graph_shows_the_default_graph_and_its_store_holds_the_rest():
    graph = Graph()

    graph.parse(data=jelly(STATEMENTS), format="patchlog-jelly")

    assert list(graph.subjects()) == [S]
    assert set(Dataset(store=graph.store).graph(G).subjects()) == {BNode("label")}


def test_the_default_graph_of_a_conjunctive_graph_is_its_default_context():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        graph = ConjunctiveGraph()

    graph.parse(data=jelly(STATEMENTS), format="patchlog-jelly")

    assert list(graph.default_context.subjects()) == [S]
    assert len(graph) == 3


def test_one_named_graph_of_a_dataset_can_be_parsed_into():
    dataset = Dataset()

    dataset.graph(G).parse(data=jelly([quad[:3] for quad in STATEMENTS], TRIPLES), format="patchlog-jelly")

    assert len(dataset.graph(G)) == 3
    assert len(dataset.default_graph) == 0


def test_named_graphs_need_a_store_that_has_them():
    graph = Graph(store="SimpleMemory")

    with pytest.raises(UsageError, match="SimpleMemory has no named graphs"):
        graph.parse(data=jelly(STATEMENTS), format="patchlog-jelly")


def test_triples_fill_a_store_without_named_graphs():
    graph = Graph(store="SimpleMemory")

    graph.parse(data=jelly(triples(3), TRIPLES), format="patchlog-jelly")

    assert len(graph) == 3


def test_a_formula_is_refused():
    formula = QuotedGraph(Graph().store, BNode())

    with pytest.raises(UsageError, match="formula"):
        formula.parse(data=jelly(STATEMENTS), format="patchlog-jelly")


def test_declared_namespaces_are_bound():
    graph = Graph()
    graph.bind("ex", "http://example.org/old/")
    namespaces = [("ex", "<http://example.org/>"), ("", "<http://example.org/empty/>")]

    graph.parse(data=jelly(triples(1), TRIPLES, namespaces), format="patchlog-jelly")

    assert graph.store.namespace("ex") == URIRef("http://example.org/")
    assert graph.store.namespace("") == URIRef("http://example.org/empty/")
    assert graph.qname("http://example.org/0abc/x") is not None


def test_a_prefix_that_rdflib_cannot_bind_is_refused():
    with pytest.raises(UsageError, match="contains a space"):
        Graph().parse(data=jelly([], TRIPLES, [("a b", "<http://example.org/>")]), format="patchlog-jelly")


def test_files_paths_and_streams_are_read(tmp_path):
    path = tmp_path / "x.bin"
    path.write_bytes(jelly(triples(5), TRIPLES))

    from_path = Graph().parse(path, format="patchlog-jelly")
    from_name = Graph().parse(str(path), format="patchlog-jelly")
    from_stream = Graph().parse(io.BytesIO(path.read_bytes()), format="patchlog-jelly")
    with path.open("rb") as file:
        from_file = Graph().parse(file=file, format="patchlog-jelly")

    assert {len(graph) for graph in (from_path, from_name, from_stream, from_file)} == {5}


def test_what_has_no_bytes_is_refused():
    with pytest.raises(UsageError, match="no bytes"):
        JellyParser().parse(InputSource(), Graph())


def test_many_frames_are_read():
    graph = Graph()

    graph.parse(data=jelly(triples(5000), TRIPLES, rows_per_frame=7), format="patchlog-jelly")

    assert len(graph) == 5000


def test_reading_options_are_passed_on():
    data = jelly(triples(3), TRIPLES)

    with pytest.raises(LimitExceeded):
        Graph().parse(data=data, format="patchlog-jelly", limits=Limits(max_frame_bytes=10))
    graph = Graph().parse(data=data + jelly(triples(6), TRIPLES), format="patchlog-jelly", concatenated=True)

    assert len(graph) == 6


def test_damaged_input_raises_the_errors_of_the_codec():
    with pytest.raises(MalformedFrame):
        Graph().parse(data=jelly(triples(3), TRIPLES)[:-1], format="patchlog-jelly")


def test_statements_of_graphs_streams_go_to_their_graphs():
    options = RdfOptions(physical_type=PhysicalType.GRAPHS, logical_type=LogicalType.DATASETS)
    dataset = Dataset()

    dataset.parse(data=jelly(STATEMENTS, options), format="patchlog-jelly")

    names = {graph.identifier for graph in dataset.graphs()}
    assert names == {DATASET_DEFAULT_GRAPH_ID, G, BNode("g")}
