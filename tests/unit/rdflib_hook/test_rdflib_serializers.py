"""Graphs and datasets are written as Jelly-RDF."""

import io
import warnings
from itertools import pairwise

import pytest
from rdflib import BNode, ConjunctiveGraph, Dataset, Graph, Literal, URIRef, Variable
from rdflib.graph import QuotedGraph, ReadOnlyGraphAggregate
from rdflib.namespace import FOAF, XSD

from patchlog.codec.options import SMALL, LogicalType, PhysicalType, RdfOptions
from patchlog.engine import RdfDecoder
from patchlog.errors import InvalidTerm, UsageError
from patchlog.rdflib_hook.serializers import JellySerializer

EX = "http://example.org/"
S, P, G = URIRef(EX + "s"), URIRef(EX + "p"), URIRef(EX + "g")


@pytest.fixture
def graph() -> Graph:
    graph = Graph()
    graph.add((S, P, Literal("01", datatype=XSD.integer, normalize=False)))
    graph.add((BNode("label"), P, Literal("Grüezi", lang="de-CH")))
    return graph


@pytest.fixture
def dataset() -> Dataset:
    dataset = Dataset()
    dataset.add((S, P, Literal("default")))
    dataset.add((S, P, Literal("named"), G))
    dataset.add((S, P, Literal("in a blank graph"), BNode("g")))
    return dataset


def frames(data: bytes):
    decoder = RdfDecoder()
    return decoder, [*decoder.feed(data), *decoder.finish()]


def statements(data: bytes) -> set[tuple[str, ...]]:
    return {statement for frame in frames(data)[1] for statement in frame.statements}


def test_a_graph_is_flat_triples(graph):
    data = graph.serialize(format="patchlog-jelly", encoding="jelly")

    decoder, _ = frames(data)
    assert decoder.options == RdfOptions(physical_type=PhysicalType.TRIPLES, logical_type=LogicalType.FLAT_TRIPLES)
    assert statements(data) == {
        (f"<{S}>", f"<{P}>", f'"01"^^<{XSD.integer}>'),
        ("_:label", f"<{P}>", '"Grüezi"@de-CH'),
    }


def test_a_dataset_is_flat_quads(dataset):
    data = dataset.serialize(format="patchlog-jelly", encoding="jelly")

    decoder, _ = frames(data)
    assert decoder.options == RdfOptions(physical_type=PhysicalType.QUADS, logical_type=LogicalType.FLAT_QUADS)
    assert statements(data) == {
        (f"<{S}>", f"<{P}>", '"default"', ""),
        (f"<{S}>", f"<{P}>", '"named"', f"<{G}>"),
        (f"<{S}>", f"<{P}>", '"in a blank graph"', "_:g"),
    }


def test_serializing_leaves_the_store_as_it_was():
    dataset = Dataset()
    dataset.add((S, P, Literal("named"), G))
    before = list(dataset.store.contexts()), list(dataset.store.namespaces())

    dataset.serialize(io.BytesIO(), format="patchlog-jelly", namespace_declarations=True)

    assert (list(dataset.store.contexts()), list(dataset.store.namespaces())) == before


@pytest.mark.parametrize("physical_type", [PhysicalType.QUADS, PhysicalType.GRAPHS])
def test_a_dataset_comes_back(dataset, physical_type):
    options = RdfOptions(physical_type=physical_type, logical_type=LogicalType.FLAT_QUADS)
    data = dataset.serialize(format="patchlog-jelly", encoding="jelly", options=options)

    again = Dataset().parse(data=data, format="patchlog-jelly")

    assert set(again.quads()) == set(dataset.quads())


def test_the_union_of_a_dataset_is_not_written_as_its_default_graph():
    dataset = Dataset(default_union=True)
    dataset.add((S, P, Literal("named"), G))

    data = dataset.serialize(format="patchlog-jelly", encoding="jelly")

    assert statements(data) == {(f"<{S}>", f"<{P}>", '"named"', f"<{G}>")}


def test_the_default_context_of_a_conjunctive_graph_is_the_default_graph():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        graph = ConjunctiveGraph()
    graph.add((S, P, Literal("default")))
    graph.get_context(G).add((S, P, Literal("named")))

    data = graph.serialize(format="patchlog-jelly", encoding="jelly")

    assert {statement[3] for statement in statements(data)} == {"", f"<{G}>"}


def test_an_aggregate_of_graphs_is_triples(graph):
    other = Graph()
    other.add((S, P, Literal("other")))
    aggregate = ReadOnlyGraphAggregate([graph, other])

    data = io.BytesIO()
    JellySerializer(aggregate).serialize(data)

    assert len(statements(data.getvalue())) == 3


def test_an_empty_graph_is_a_stream_that_says_what_it_is():
    decoder, _ = frames(Graph().serialize(format="patchlog-jelly", encoding="jelly"))

    assert decoder.options is not None


def test_a_graph_can_be_written_as_quads(graph):
    data = graph.serialize(format="patchlog-jelly", encoding="jelly", options=RdfOptions())

    assert {statement[3] for statement in statements(data)} == {""}


def test_options_name_and_rows_are_written():
    graph = Graph()
    for number in range(100):
        graph.add((S, P, Literal(number)))
    options = RdfOptions(physical_type=PhysicalType.TRIPLES).with_tables(SMALL)

    data = graph.serialize(
        format="patchlog-jelly", encoding="jelly", options=options, stream_name="numbers", rows_per_frame=10
    )

    decoder, read = frames(data)
    assert decoder.options == RdfOptions(physical_type=PhysicalType.TRIPLES, stream_name="numbers").with_tables(SMALL)
    assert len(read) > 9


def test_a_grouped_stream_is_one_frame():
    graph = Graph()
    for number in range(1000):
        graph.add((S, P, Literal(number)))
    options = RdfOptions(physical_type=PhysicalType.TRIPLES, logical_type=LogicalType.GRAPHS)

    _, read = frames(graph.serialize(format="patchlog-jelly", encoding="jelly", options=options))

    assert [len(frame.statements) for frame in read] == [1000]


def test_a_bare_frame_is_written_when_asked(graph):
    data = graph.serialize(format="patchlog-jelly", encoding="jelly", delimited=False)

    decoder, read = frames(data)
    assert decoder.delimited is False
    assert len(read) == 1


def test_namespaces_of_a_person_are_written_when_asked(graph):
    graph.bind("ex", EX)
    assert list(graph.namespaces())  # rdflib has bound its own

    without = graph.serialize(format="patchlog-jelly", encoding="jelly")
    declared = graph.serialize(format="patchlog-jelly", encoding="jelly", namespace_declarations=True)
    chosen = graph.serialize(format="patchlog-jelly", encoding="jelly", namespace_declarations={"foaf": str(FOAF)})

    assert frames(without)[1][0].namespaces == []
    assert frames(declared)[1][0].namespaces == [("ex", f"<{EX}>")]
    assert frames(chosen)[1][0].namespaces == [("foaf", f"<{FOAF}>")]
    assert frames(declared)[0].options.version == 2


def test_namespaces_come_back():
    graph = Graph()
    graph.bind("ex", EX)
    data = graph.serialize(format="patchlog-jelly", encoding="jelly", namespace_declarations=True)

    again = Graph().parse(data=data, format="patchlog-jelly")

    assert again.store.namespace("ex") == URIRef(EX)


def test_a_file_is_written(graph, tmp_path):
    path = tmp_path / "x.jelly"

    graph.serialize(path, format="patchlog-jelly")

    assert set(Graph().parse(path, format="patchlog-jelly")) == set(graph)


def test_a_string_cannot_be_asked_for(graph):
    with pytest.raises(UsageError, match="encoding='jelly'"):
        graph.serialize(format="patchlog-jelly")


def test_a_dataset_does_not_fit_into_triples(dataset):
    with pytest.raises(UsageError, match="cannot hold a dataset"):
        dataset.serialize(
            format="patchlog-jelly", encoding="jelly", options=RdfOptions(physical_type=PhysicalType.TRIPLES)
        )


def test_options_of_another_library_are_refused(graph):
    with pytest.raises(UsageError, match=r"patchlog's RdfOptions, not builtins\.dict"):
        graph.serialize(format="patchlog-jelly", encoding="jelly", options={})


def test_what_is_no_rdf_term_is_refused():
    graph = Graph()
    formula = QuotedGraph(graph.store, BNode())
    for node in (Variable("x"), formula):
        graph = Graph()
        graph.add((S, P, node))

        with pytest.raises(InvalidTerm, match="is not an IRI"):
            graph.serialize(format="patchlog-jelly", encoding="jelly")


def test_the_triples_of_a_subject_stand_together():
    graph = Graph()
    for number in range(300):
        graph.add((URIRef(f"{EX}{number % 10}"), P, Literal(number)))

    _, read = frames(graph.serialize(format="patchlog-jelly", encoding="jelly"))

    subjects = [statement[0] for frame in read for statement in frame.statements]
    changes = sum(before != after for before, after in pairwise(subjects))
    assert changes == 9
