"""Stores that outlive the process: oxrdflib on disk, and a SPARQL endpoint."""

import pytest
from oxrdflib import OxigraphStore
from rdflib import BNode, Dataset, Literal, URIRef
from rdflib.namespace import XSD
from rdflib.plugins.stores.sparqlstore import SPARQLUpdateStore

from patchlog import capture
from patchlog.effect import apply_effect, effect
from patchlog.engine import PatchDecoder
from patchlog.errors import UsageError
from patchlog.log.memory import MemoryLogStore
from patchlog.rdflib_hook.capture.staging import POSITIONS
from tests.sparql_endpoint import serving_sparql

EX = "http://example.org/"
A, B, P, G = (URIRef(EX + name) for name in "abpg")
X, Y = Literal("x"), Literal("y")


@pytest.fixture
def log():
    logs = MemoryLogStore()
    logs.create("log")
    return logs.log("log")


@pytest.fixture
def on_disk(tmp_path, log):
    """A dataset on the log whose store is a folder."""

    def opened():
        inner = OxigraphStore()
        inner.open(str(tmp_path / "store"))
        return Dataset(store=capture(inner, log=log))

    return opened


@pytest.fixture
def endpoint():
    with serving_sparql() as server:
        yield server


@pytest.fixture
def remote(endpoint, log):
    """A dataset on the log whose store is an endpoint."""
    url = f"http://127.0.0.1:{endpoint.server_port}"

    def opened():
        inner = SPARQLUpdateStore(f"{url}/query", f"{url}/update", autocommit=False)
        return Dataset(store=capture(inner, log=log))

    return opened


def data_of(endpoint):
    return [quad for quad in endpoint.store if str(quad.graph_name) != f"<{POSITIONS}>"]


def replayed(log):
    quads = set()
    for logged in log.read():
        decoder = PatchDecoder()
        apply_effect(quads, {}, effect([operation for chunk in logged.chunks for operation in decoder.feed(chunk)]))
    return quads


def test_reopened_store_has_its_contents_position_and_namespaces_without_a_replay(on_disk):
    dataset = on_disk()
    dataset.bind("ex", EX)
    dataset.add((A, P, X))
    dataset.add((A, P, Y, G))
    dataset.commit()
    dataset.close()

    again = on_disk()

    assert again.store.position == 1
    assert set(again.default_graph) == {(A, P, X)}
    assert again.store.namespace("ex") == URIRef(EX)
    assert not again.store.has_changes
    again.close()


def test_reopened_store_catches_up_with_what_others_wrote(on_disk, log):
    dataset = on_disk()
    dataset.add((A, P, X))
    dataset.commit()
    dataset.close()
    other = Dataset(store=capture(log=log))
    other.bind("ex", EX)
    other.remove((A, P, X))
    other.add((B, P, X))
    other.commit()

    again = on_disk()

    assert set(again.default_graph) == {(B, P, X)}
    assert again.store.namespace("ex") == URIRef(EX)
    again.close()


def test_graph_with_the_position_is_not_seen(on_disk):
    dataset = on_disk()
    dataset.add((A, P, X))
    dataset.commit()

    assert POSITIONS not in {graph.identifier for graph in dataset.graphs()}
    assert len(dataset) == 1
    assert len(list(dataset.quads())) == 1
    assert [str(row[0]) for row in dataset.query("SELECT ?s { GRAPH ?g { ?s ?p ?o } }")] == []
    assert [str(row[0]) for row in dataset.query("SELECT ?s { ?s ?p ?o }")] == [str(A)]
    dataset.close()


def test_uncommitted_changes_are_read_and_are_not_in_the_store(on_disk):
    dataset = on_disk()
    dataset.add((A, P, X))
    dataset.commit()
    dataset.remove((A, P, X))
    dataset.add((B, P, Y, G))

    found = {tuple(map(str, row)) for row in dataset.query("SELECT ?s ?o { GRAPH ?g { ?s ?p ?o } }")}

    assert found == {(str(B), "y")}
    assert set(dataset.default_graph) == set()
    assert G in {graph.identifier for graph in dataset.graphs()}
    dataset.close()
    again = on_disk()
    assert set(again.default_graph) == {(A, P, X)}
    assert G not in {graph.identifier for graph in again.graphs()}
    again.close()


def test_lexical_forms_are_recorded_as_the_store_keeps_them(on_disk, log):
    dataset = on_disk()
    dataset.add((A, P, Literal("01", datatype=XSD.integer, normalize=False)))
    dataset.add((A, P, Literal("x", lang="EN")))
    dataset.commit()
    dataset.remove((A, P, Literal("1", datatype=XSD.integer)))
    dataset.remove((A, None, Literal("x", lang="en")))
    dataset.commit()
    dataset.close()

    assert replayed(log) == set()
    assert [record.deletes for record in map(log.find, (1, 2))] == [0, 2]


def test_endpoint_gets_data_and_position_in_one_request(remote, endpoint, log):
    dataset = remote()
    endpoint.requests.clear()
    dataset.add((A, P, X))
    dataset.add((A, P, X))
    dataset.add((A, P, Literal(0), G))
    dataset.update(f"INSERT DATA {{ <{EX}b> <{EX}p> 'y' }}")
    before = data_of(endpoint)
    dataset.commit()

    assert before == []
    assert len(endpoint.requests) == 1
    assert {str(quad.graph_name) for quad in endpoint.store} == {"DEFAULT", f"<{EX}g>", f"<{POSITIONS}>"}
    assert len(replayed(log)) == 3


def test_removals_from_an_endpoint_are_exact_deletes(remote, endpoint, log):
    dataset = remote()
    dataset.addN((s, P, o, dataset.graph(g)) for s in (A, B) for o in (X, Y) for g in (G, EX + "h"))
    dataset.commit()
    dataset.remove((A, None, None))
    dataset.remove_graph(G)
    dataset.commit()

    left = {(f"<{EX}b>", f"<{EX}p>", text, f"<{EX}h>") for text in ('"x"', '"y"')}
    assert replayed(log) == left
    assert len(data_of(endpoint)) == 2
    assert remote().store.position == 2


def test_empty_and_zero_are_terms_and_no_wildcards_for_an_endpoint(remote, endpoint, log):
    dataset = remote()
    for literal in (Literal(0), Literal(""), X):
        dataset.add((A, P, literal))
    dataset.commit()
    dataset.remove((A, P, Literal(0)))
    dataset.remove((A, P, Literal("")))
    dataset.commit()

    assert replayed(log) == {(f"<{EX}a>", f"<{EX}p>", '"x"', "")}
    assert [str(quad.object) for quad in data_of(endpoint)] == ['"x"']


def test_endpoint_refuses_blank_nodes_before_anything_is_recorded(remote, log):
    dataset = remote()

    with pytest.raises(UsageError, match="blank node"):
        dataset.add((BNode(), P, X))

    assert not dataset.store.has_changes
    assert log.head().version == 0
