"""Random histories: the captured dataset, the replay of its log and a plain model are equal after each commit."""

import os
import random

import pytest
from oxrdflib import OxigraphStore
from rdflib import BNode, Dataset, Graph, Literal, URIRef
from rdflib.graph import DATASET_DEFAULT_GRAPH_ID as DEFAULT
from rdflib.namespace import XSD
from rdflib.plugins.stores.memory import Memory

from patchlog import capture, transaction
from patchlog.effect import apply_effect, effect
from patchlog.engine import PatchDecoder
from patchlog.log.memory import MemoryLogStore
from patchlog.model import Add, Delete
from patchlog.rdflib_hook.terms import TermFormatter

HISTORIES = int(os.environ.get("PATCHLOG_HISTORIES", "160"))
STEPS = 40

EX = "http://example.org/"
SUBJECTS = [URIRef(f"{EX}s{i}") for i in range(3)] + [BNode("b")]
PREDICATES = [URIRef(f"{EX}p{i}") for i in range(2)]
OBJECTS = [
    URIRef(f"{EX}s0"),
    BNode("b"),
    Literal("a"),
    Literal("a", lang="en"),
    Literal("1", datatype=XSD.integer),
    Literal("01", datatype=XSD.integer, normalize=False),
    Literal('line\n"quoted"\\'),
]
NAMED = [URIRef(f"{EX}g{i}") for i in range(2)]
GRAPHS = [DEFAULT, *NAMED]


class Model:
    """What the dataset has to be: a set of quads, and the one of the last commit."""

    def __init__(self):
        self.quads = set()
        self.names = {}
        self.commit()

    def commit(self):
        self.committed = set(self.quads), dict(self.names)

    def rollback(self):
        self.quads, self.names = set(self.committed[0]), dict(self.committed[1])

    def remove(self, s, p, o, g):
        pattern = (s, p, o, g)
        self.quads = {
            quad
            for quad in self.quads
            if not all(want in (None, have) for want, have in zip(pattern, quad, strict=True))
        }

    def triples(self, graph):
        return {quad[:3] for quad in self.quads if quad[3] == graph}

    def fill(self, graph, triples):
        self.quads |= {(*triple, graph) for triple in triples}


class History:
    def __init__(self, seed, inner=Memory):
        # Oxigraph makes 1 of "01", as rdflib's parser and its SPARQL do.
        self.objects = [term for term in OBJECTS if inner is Memory or str(term) != "01"]
        self.random = random.Random(seed)
        self.model = Model()
        logs = MemoryLogStore()
        logs.create("history")
        self.log = logs.log("history")
        self.dataset = Dataset(store=capture(inner(), log=self.log))

    def run(self):
        steps = [getattr(self, name) for name in dir(self) if name.startswith("do_")]
        for _ in range(STEPS):
            self.random.choice(steps)()
        self.do_commit()

    def quad(self):
        choose = self.random.choice
        return choose(SUBJECTS), choose(PREDICATES), choose(self.objects), choose(GRAPHS)

    def graph(self, name):
        return self.dataset.default_graph if name == DEFAULT else self.dataset.get_context(name)

    def do_add(self):
        *triple, graph = self.quad()
        self.graph(graph).add(tuple(triple))
        self.model.fill(graph, [tuple(triple)])

    def do_add_many_from_a_generator(self):
        quads = [self.quad() for _ in range(self.random.randrange(6))]
        self.dataset.addN((s, p, o, self.graph(g)) for s, p, o, g in quads)
        self.model.quads |= set(quads)

    def do_remove(self):
        s, p, o, g = self.quad()
        self.graph(g).remove((s, p, o))
        self.model.remove(s, p, o, g)

    def do_remove_by_pattern(self):
        s, p, o, g = (self.random.choice((None, term)) for term in self.quad())
        self.dataset.remove((s, p, o, None if g is None else self.graph(g)))
        self.model.remove(s, p, o, g)

    def do_set(self):
        s, p, o, g = self.quad()
        self.graph(g).set((s, p, o))
        self.model.remove(s, p, None, g)
        self.model.fill(g, [(s, p, o)])

    def do_remove_graph(self):
        graph = self.random.choice(GRAPHS)
        self.dataset.remove_graph(self.graph(graph))
        self.model.remove(None, None, None, graph)

    def do_add_graph(self):
        self.dataset.graph(self.random.choice(NAMED))

    def do_import_graph(self):
        graph = self.random.choice(NAMED)
        other = Graph(identifier=graph)
        triples = {self.quad()[:3] for _ in range(3)}
        for triple in triples:
            other.add(triple)
        self.dataset.graph(other)
        self.model.fill(graph, triples)

    def do_parse(self):
        s, p, o, g = self.quad()
        if isinstance(s, URIRef) and not isinstance(o, BNode) and str(o) != "01":
            self.graph(g).parse(data=f"{s.n3()} {p.n3()} {o.n3()} .", format="turtle")
            self.model.quads.add((s, p, o, g))

    def do_bind(self):
        name, iri = self.random.choice("ab"), f"{EX}{self.random.choice('xyz')}/"
        self.dataset.bind(name, iri, override=True, replace=True)
        self.model.names = {have: ns for have, ns in self.model.names.items() if ns != iri} | {name: iri}

    def sparql_quad(self):
        while True:
            s, p, o, g = self.quad()
            if not isinstance(s, BNode) and not isinstance(o, BNode) and str(o) != "01":
                return s, p, o, g

    def block(self, s, p, o, g):
        triple = f"{s.n3()} {p.n3()} {o.n3()}"
        return triple if g == DEFAULT else f"GRAPH {g.n3()} {{ {triple} }}"

    def do_insert_data(self):
        quad = self.sparql_quad()
        self.dataset.update(f"INSERT DATA {{ {self.block(*quad)} }}")
        self.model.quads.add(quad)

    def do_delete_data(self):
        quad = self.sparql_quad()
        self.dataset.update(f"DELETE DATA {{ {self.block(*quad)} }}")
        self.model.quads.discard(quad)

    def do_delete_where(self):
        _, p, _, g = self.sparql_quad()
        pattern = f"?s {p.n3()} ?o"
        self.dataset.update(f"DELETE WHERE {{ {pattern if g == DEFAULT else f'GRAPH {g.n3()} {{ {pattern} }}'} }}")
        self.model.remove(None, p, None, g)

    def do_modify(self):
        _, p, o, g = self.sparql_quad()
        pattern = f"?s {p.n3()} ?o"
        place = "{}" if g == DEFAULT else f"GRAPH {g.n3()} {{{{ {{}} }}}}"
        self.dataset.update(
            f"DELETE {{ {place.format(pattern)} }} INSERT {{ {place.format(f'?s {p.n3()} {o.n3()}')} }} "
            f"WHERE {{ {place.format(pattern)} }}"
        )
        found = {quad[0] for quad in self.model.quads if quad[1] == p and quad[3] == g}
        self.model.remove(None, p, None, g)
        self.model.fill(g, [(subject, p, o) for subject in found])

    def do_modify_with(self):
        _, p, _, _ = self.sparql_quad()
        graph = self.random.choice(NAMED)
        self.dataset.update(f"WITH {graph.n3()} DELETE {{ ?s {p.n3()} ?o }} WHERE {{ ?s {p.n3()} ?o }}")
        self.model.remove(None, p, None, graph)

    def do_clear_or_drop(self):
        verb, graph = self.random.choice(["CLEAR", "DROP"]), self.random.choice(GRAPHS)
        self.dataset.update(f"{verb} SILENT {'DEFAULT' if graph == DEFAULT else f'GRAPH {graph.n3()}'}")
        self.model.remove(None, None, None, graph)

    def do_clear_or_drop_named(self):
        if self.random.random() < 0.3:
            self.dataset.update(f"{self.random.choice(['CLEAR', 'DROP'])} NAMED")
            self.model.quads = {quad for quad in self.model.quads if quad[3] == DEFAULT}

    def do_clear_or_drop_all(self):
        if self.random.random() < 0.2:
            self.dataset.update(f"{self.random.choice(['CLEAR', 'DROP'])} ALL")
            self.model.quads = set()

    def do_copy_move_or_add(self):
        verb = self.random.choice(["COPY", "MOVE", "ADD"])
        source, target = self.random.choice(GRAPHS), self.random.choice(GRAPHS)
        words = ["DEFAULT" if graph == DEFAULT else graph.n3() for graph in (source, target)]
        self.dataset.update(f"{verb} {words[0]} TO {words[1]}")
        if source == target:
            return
        triples = self.model.triples(source)
        if verb != "ADD":
            self.model.remove(None, None, None, target)
        self.model.fill(target, triples)
        if verb == "MOVE":
            self.model.remove(None, None, None, source)

    def do_fail_in_an_update(self):
        quad = self.sparql_quad()
        with pytest.raises(Exception, match="Could not load"):
            self.dataset.update(f"INSERT DATA {{ {self.block(*quad)} }} ; LOAD <file:///nowhere/at/all>")

    def do_commit(self):
        self.dataset.commit()
        self.model.commit()
        self.check()

    def do_roll_back(self):
        self.dataset.rollback()
        self.model.rollback()
        self.check_dataset()

    def do_transaction(self):
        *triple, graph = self.quad()
        with transaction(self.dataset, why="a test"):
            self.graph(graph).add(tuple(triple))
        self.model.fill(graph, [tuple(triple)])
        self.model.commit()
        self.check()

    def do_transaction_that_fails(self):
        s, p, o, g = self.quad()

        def block():
            with transaction(self.dataset):
                self.graph(g).add((s, p, o))
                self.dataset.remove((None, p, None))
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            block()
        self.check_dataset()

    def check_dataset(self):
        wanted = self.formatted(self.model.quads)
        assert self.formatted((s, p, o, g or DEFAULT) for s, p, o, g in self.dataset.quads()) == wanted

    def check(self):
        self.check_dataset()
        quads, names = replayed(self.log)
        assert quads == self.formatted(self.model.quads)
        assert names == {("", name): f"<{iri}>" for name, iri in self.model.names.items()}
        again = Dataset(store=capture(log=self.log))
        assert self.formatted((s, p, o, g or DEFAULT) for s, p, o, g in again.quads()) == quads

    def formatted(self, quads):
        return set(map(TermFormatter().statement, quads))


def replayed(log):
    """The quads and namespaces that the log says, where each row has to change something."""
    quads, names = set(), {}
    for logged in log.read():
        decoder = PatchDecoder()
        operations = [operation for chunk in logged.chunks for operation in decoder.feed(chunk)]
        for operation in operations:
            match operation:
                case Add(s, p, o, g):
                    assert (s, p, o, g) not in quads
                case Delete(s, p, o, g):
                    assert (s, p, o, g) in quads
        apply_effect(quads, names, effect(operations))
    return quads, names


@pytest.mark.parametrize("first", range(0, HISTORIES, 20))
@pytest.mark.parametrize("inner", [Memory, OxigraphStore])
def test_log_and_dataset_say_the_same_after_any_history(inner, first):
    for seed in range(first, first + 20):
        History(seed, inner).run()
