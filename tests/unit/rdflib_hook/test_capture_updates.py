"""Random requests of SPARQL UPDATE on a captured dataset: it becomes what pyoxigraph makes of them, and so does a copy.

Language tags and numbers are written as pyoxigraph spells them, which rewrites both.
"""

import random

import pytest
from pyoxigraph import DefaultGraph, RdfFormat, Store
from rdflib import Dataset, URIRef
from rdflib.graph import DATASET_DEFAULT_GRAPH_ID
from rdflib.term import Literal

from patchlog import capture, follow
from patchlog.log.memory import MemoryLogStore
from patchlog.rdflib_hook.contents import statements_of
from patchlog.rdflib_hook.terms import TermFormatter

EX = "http://example.org/"
GRAPHS = [DATASET_DEFAULT_GRAPH_ID, URIRef(f"{EX}g")]
OPERATIONS = 25


class Requests:
    """Makes requests, about few enough terms that they meet."""

    def __init__(self, seed):
        self.chance = random.Random(seed)

    def one(self):
        return self.chance.choice(
            [self._insert_data] * 3 + [self._modify] * 3 + [self._delete_data, self._delete_where, self._of_graphs] * 2
        )()

    def _insert_data(self):
        return f"INSERT DATA {{ {self._quads()} }}"

    def _delete_data(self):
        return f"DELETE DATA {{ {self._quads()} }}"

    def _delete_where(self):
        return f"DELETE WHERE {{ {self._pattern()} }}"

    def _modify(self):
        within = self._maybe(f"WITH {self._graph()} ")
        using = self._maybe(f"USING {self._graph()} ") + self._maybe(f"USING NAMED {self._graph()} ")
        delete, insert = (f"{what} {{ {self._pattern()} }} " for what in ("DELETE", "INSERT"))
        change = self.chance.choice([delete, insert, delete + insert])
        return f"{within}{change}{using}WHERE {{ {self._pattern()} }}"

    def _of_graphs(self):
        one, other = (self.chance.choice(["DEFAULT", self._graph()]) for _ in "12")
        whole = self.chance.choice(["DEFAULT", "NAMED", "ALL", f"GRAPH {self._graph()}"])
        return self.chance.choice(
            [f"{what} SILENT {one} TO {other}" for what in ("ADD", "COPY", "MOVE")]
            + [f"{what} SILENT {whole}" for what in ("CLEAR", "DROP")]
            + [f"CREATE SILENT GRAPH {self._graph()}"]
        )

    def _quads(self):
        return " . ".join(self._somewhere(self._triple(), self._graph()) for _ in range(self.chance.randint(1, 3)))

    def _pattern(self):
        terms = (self.chance.choice([name, term]) for name, term in zip(("?s", "?p", "?o"), self._terms(), strict=True))
        return self._somewhere(" ".join(terms), self.chance.choice(["?g", self._graph()]))

    def _somewhere(self, triple, graph):
        return self.chance.choice([triple, f"GRAPH {graph} {{ {triple} }}"])

    def _triple(self):
        return " ".join(self._terms())

    def _terms(self):
        nodes = [f"<{EX}{name}>" for name in "abc"]
        literals = ['"x"', '"y"@en', '"1"^^<http://www.w3.org/2001/XMLSchema#integer>']
        return self.chance.choice(nodes), f"<{EX}{self.chance.choice('pq')}>", self.chance.choice(nodes + literals)

    def _graph(self):
        return f"<{EX}{self.chance.choice('ghk')}>"

    def _maybe(self, words):
        return words if self.chance.random() < 0.3 else ""


@pytest.mark.parametrize("seed", range(30))
def test_updates_do_what_another_engine_does(seed):
    requests = Requests(seed)
    logs = MemoryLogStore()
    log = logs.log(logs.create("log").name)
    dataset, other, committed = Dataset(store=capture(log=log)), Store(), set()
    for _ in range(OPERATIONS):
        request = requests.one()
        dataset.update(request)
        other.update(request)
        assert contents(dataset) == contents_of(other), request

        match requests.chance.randrange(10):
            case 0 | 1 | 2:
                dataset.commit()
                committed = contents(dataset)
                assert replayed(log) == committed
            case 3:
                dataset.rollback()
                assert contents(dataset) == committed
                other = Store()
                other.load("".join(map(line, committed)), format=RdfFormat.N_QUADS)


@pytest.mark.parametrize("binding", ["", 'BIND ("text" AS ?g)'])
def test_quad_without_a_name_of_a_graph_is_left_out(binding):
    logs = MemoryLogStore()
    dataset = Dataset(store=capture(log=logs.log(logs.create("log").name)))
    dataset.update(f"INSERT DATA {{ <{EX}a> <{EX}p> <{EX}b> }}")

    dataset.update(f"INSERT {{ ?s ?p 1 . GRAPH ?g {{ ?s ?p 2 }} }} WHERE {{ ?s ?p <{EX}b> {binding} }}")

    assert {quad[2].toPython() for quad in dataset.quads() if isinstance(quad[2], Literal)} == {1}


def test_blank_node_of_a_template_is_one_node_in_all_graphs_and_another_for_each_solution():
    logs = MemoryLogStore()
    dataset = Dataset(store=capture(log=logs.log(logs.create("log").name)))

    dataset.update(
        f"INSERT {{ _:n <{EX}p> ?x . GRAPH <{EX}g> {{ _:n <{EX}p> ?x }} }} WHERE {{ VALUES ?x {{ 'one' 'two' }} }}"
    )

    nodes = {graph: {str(quad[2]): quad[0] for quad in dataset.quads((None, None, None, graph))} for graph in GRAPHS}
    assert nodes[GRAPHS[0]] == nodes[GRAPHS[1]]
    assert len(set(nodes[GRAPHS[0]].values())) == 2


def test_triple_of_a_template_that_begins_with_a_literal_is_left_out():
    logs = MemoryLogStore()
    dataset = Dataset(store=capture(log=logs.log(logs.create("log").name)))

    dataset.update(f"INSERT {{ ?x <{EX}p> 1 . <{EX}a> ?x 2 . <{EX}a> <{EX}p> ?x }} WHERE {{ BIND ('text' AS ?x) }}")

    assert contents(dataset) == {(f"<{EX}a>", f"<{EX}p>", '"text"', "")}


@pytest.mark.parametrize("request_text", ["", "# nothing yet", f"PREFIX ex: <{EX}>"])
def test_request_without_an_operation_does_nothing(request_text):
    logs = MemoryLogStore()
    dataset = Dataset(store=capture(log=logs.log(logs.create("log").name)))

    dataset.update(request_text)

    assert not dataset.store.has_changes


def contents(dataset):
    return set(map(TermFormatter().statement, statements_of(dataset)))


def contents_of(store):
    return {
        (*map(str, quad.triple), "" if isinstance(quad.graph_name, DefaultGraph) else str(quad.graph_name))
        for quad in store
    }


def replayed(log):
    dataset = Dataset()
    follow(log, into=dataset).close()
    return contents(dataset)


def line(quad):
    return f"{' '.join(quad).strip()} .\n"
