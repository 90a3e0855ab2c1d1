"""Random histories: whoever has the log has the same, after each commit.

A captured dataset is changed in all the ways that rdflib has, and its log is one of a real service. After each commit
these are held against a plain model, byte for byte: the dataset itself, a dataset and a set that follow over HTTP, and
a dataset that is captured anew. In the end so is the log, version by version, in its text form and in its binary form.

Several histories go one after the other into one log. Each has a seed of its own, which a failure names;
PATCHLOG_HISTORIES says how many there are.
"""

import itertools
import os
import random

import httpx
import pytest
from oxrdflib import OxigraphStore
from rdflib import BNode, Dataset, Graph, Literal, URIRef
from rdflib.collection import Collection
from rdflib.graph import DATASET_DEFAULT_GRAPH_ID as DEFAULT
from rdflib.namespace import RDF, XSD
from rdflib.plugins.stores.memory import Memory

from patchlog import capture, follow, patch, transaction
from patchlog.effect import apply_effect, effect
from patchlog.log.memory import MemoryLogStore
from patchlog.model import Add, Delete, Punctuation
from patchlog.rdflib_hook.terms import TermFormatter
from tests.stores import Store, serving_oxigraph

HISTORIES = int(os.environ.get("PATCHLOG_HISTORIES", "2000"))
IN_A_LOG = 100
STEPS = 6

EX = "http://example.org/"
SUBJECTS = [URIRef(f"{EX}s{i}") for i in range(3)] + [BNode("b")]
PREDICATES = [URIRef(f"{EX}p{i}") for i in range(2)]
PLAIN = [
    URIRef(f"{EX}s0"),
    URIRef(f"{EX}ä/%7E?q=1#f"),
    BNode("b"),
    BNode("b.1-x"),
    Literal(""),
    Literal("a"),
    Literal("a", lang="en"),
    Literal("a", datatype=XSD.string),
    Literal("1", datatype=XSD.integer),
    Literal("0", datatype=XSD.integer),
    Literal('line\n"quoted"\\\t\r\u2028\U0001f600'),
    Literal("<b>x</b>", datatype=RDF.XMLLiteral, normalize=False),
    Literal("x y", datatype=URIRef(f"{EX}datatype")),
]
# Stores on disk, and rdflib's parsers, make others of these.
AS_THEY_ARE = [
    Literal("A", lang="de-AT"),
    Literal("a", lang="EN"),
    *(
        Literal(lexical, datatype=datatype, normalize=False)
        for lexical, datatype in [
            ("01", XSD.integer),
            ("+1", XSD.integer),
            ("none", XSD.integer),
            ("1.50", XSD.decimal),
            ("1e0", XSD.double),
            ("TRUE", XSD.boolean),
            ("2020-01-01T00:00:00.000Z", XSD.dateTime),
            (" spaces ", XSD.token),
        ]
    ),
]
NAMED = [URIRef(f"{EX}g{i}") for i in range(2)]
GRAPHS = [DEFAULT, *NAMED]
POSITIONS = URIRef("urn:patchlog:positions")
TRIG = "GRAPH {} {{ {} }}"

_numbers = itertools.count()


class Model:
    """What the dataset has to be, in canonical text: a set of quads and the names, and those of the last commit."""

    def __init__(self):
        self.quads = set()
        self.names = {}
        self.versions = [self.now]
        self._formatter = TermFormatter()

    @property
    def now(self):
        return frozenset(self.quads), dict(self.names)

    @property
    def is_changed(self):
        return self.now != self.versions[-1]

    def commit(self):
        self.versions.append(self.now)

    def rollback(self):
        quads, names = self.versions[-1]
        self.quads, self.names = set(quads), dict(names)

    def add(self, *quads):
        for quad in map(self._formatter.statement, quads):
            self.put(quad)

    def put(self, quad):
        """Add it as it is spelled: where only the case of a language tag differs, rdflib goes on to say the first."""
        folded = _folded(quad)
        same = [there for there in self.quads if _folded(there[:3]) == folded[:3]]
        if not any(there[3] == quad[3] for there in same):
            self.quads.add((*same[0][:3], quad[3]) if same else quad)

    def remove(self, *pattern):
        wanted = [None if term is None else _folded(self.text(term)) for term in pattern]
        gone = {
            quad
            for quad in self.quads
            if all(want in (None, have) for want, have in zip(wanted, _folded(quad), strict=True))
        }
        self.quads -= gone
        return gone

    def text(self, term):
        return self._formatter.graph(term)

    def triples(self, graph):
        return [quad[:3] for quad in self.quads if quad[3] == self.text(graph)]

    def fill(self, graph, triples):
        for triple in triples:
            self.put((*triple, self.text(graph)))

    def bind(self, name, iri):
        self.names = {have: ns for have, ns in self.names.items() if ns != f"<{iri}>"} | {name: f"<{iri}>"}


def _folded(terms):
    if isinstance(terms, tuple):
        return tuple(map(_folded, terms))
    lexical, quote, tag = terms.rpartition('"')
    return f"{lexical}{quote}{tag.lower()}" if tag.startswith("@") else terms


class Follower:
    """A dataset that follows, and a set that a function keeps."""

    def __init__(self, url, inner):
        self.dataset, self.quads, self.names, self.versions = Dataset(store=inner()), set(), {}, [(frozenset(), {})]
        self._followers = [follow(url, into=self.dataset), follow(url, into=self._take)]

    def _take(self, change):
        assert change.record.version == len(self.versions)
        apply_effect(self.quads, self.names, change.effect)
        self.versions.append(_state(self.quads, self.names))

    def catch_up(self):
        for follower in self._followers:
            follower.catch_up()

    def close(self):
        for follower in self._followers:
            follower.close()


class Histories:
    """One log and all that is made of it. Methods `do_…` and `update_…` are what a history is made of."""

    def __init__(self, service, inner, records_rollbacks, outbox):
        self.model = Model()
        self.terms = PLAIN if inner is OxigraphStore else PLAIN + AS_THEY_ARE
        # Those by SPARQL are fewer, as most of their time goes into rdflib's parser.
        self.steps = 2 * self.named("do_") + self.named("update_")
        self.url = f"{service}/logs/history-{os.getpid()}-{next(_numbers)}"
        self.records_rollbacks = records_rollbacks
        store = capture(inner(), log=self.url, record_rollbacks=records_rollbacks, outbox=outbox)
        self.dataset = Dataset(store=store)
        self.follower = Follower(self.url, inner)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.follower.close()
        self.dataset.close()

    def run(self, seed):
        self.random = random.Random(seed)
        end = self.random.choice([self.do_commit, self.do_commit, self.do_roll_back])
        done = []
        try:
            for step in (*self.random.choices(self.steps, k=STEPS), end, self.check):
                done.append(step.__name__)
                step()
        except BaseException as error:
            error.add_note(f"in the history with seed {seed}, at the end of {', '.join(done)}")
            raise

    def named(self, beginning):
        return [getattr(self, name) for name in sorted(dir(self)) if name.startswith(beginning)]

    # What is chosen

    def quad(self):
        choose = self.random.choice
        return choose(SUBJECTS), choose(PREDICATES), choose(self.terms), choose(GRAPHS)

    def sparql_quad(self):
        choose = self.random.choice
        objects = [term for term in PLAIN if not isinstance(term, BNode)]
        return choose(SUBJECTS[:-1]), choose(PREDICATES), choose(objects), choose(GRAPHS)

    def graph(self, name):
        return self.dataset.default_graph if name == DEFAULT else self.dataset.get_context(name)

    # Changes by rdflib's calls

    def do_add(self):
        s, p, o, g = self.quad()
        self.dataset.add((s, p, o, None if g == DEFAULT else g))
        self.model.add((s, p, o, g))

    def do_add_what_is_there(self):
        for s, p, o, g in list(itertools.islice(self.dataset.quads(), 3)):
            self.graph(g or DEFAULT).add((s, p, o))

    def do_add_many_from_a_generator(self):
        quads = [self.quad() for _ in range(self.random.randrange(6))]
        self.dataset.addN((s, p, o, self.graph(g)) for s, p, o, g in quads)
        self.model.add(*quads)

    def do_add_and_subtract_in_place(self):
        g = self.random.choice(GRAPHS)
        adds, gone = ([self.quad()[:3] for _ in range(2)] for _ in range(2))
        graph = self.graph(g)
        graph += adds
        graph -= gone
        self.model.add(*((*triple, g) for triple in adds))
        for triple in gone:
            self.model.remove(*triple, g)

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
        self.model.add((s, p, o, g))

    def do_collection(self):
        _, _, o, g = self.quad()
        head = BNode()
        Collection(self.graph(g), head, [o])
        self.model.add((head, RDF.first, o, g), (head, RDF.rest, RDF.nil, g))

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
        self.model.add(*((*triple, graph) for triple in other))

    def do_parse(self):
        s, p, o, g = self.sparql_quad()
        self.graph(g).parse(data=f"{s.n3()} {p.n3()} {o.n3()} .", format="turtle")
        self.model.add((s, p, o, g))

    def do_bind(self):
        name, iri = self.random.choice("abc"), f"{EX}{self.random.choice('xyz')}/"
        self.dataset.bind(name, iri, override=True, replace=True)
        self.model.bind(name, iri)

    def do_empty(self):
        if self.random.random() < 0.2:
            self.dataset.remove((None, None, None, None))
            self.model.quads = set()

    # Changes by SPARQL

    def block(self, s, p, o, g):
        # rdflib's parser of SPARQL makes spaces of a tab, unless it is escaped.
        triple = f"{s.n3()} {p.n3()} {o.n3()}".replace("\t", "\\t")
        return triple if g == DEFAULT else TRIG.format(g.n3(), triple)

    def update_insert_data(self):
        quads = [self.sparql_quad() for _ in range(2)]
        self.dataset.update(" ;\n".join(f"INSERT DATA {{ {self.block(*quad)} }}" for quad in quads))
        self.model.add(*quads)

    def update_delete_data(self):
        quad = self.sparql_quad()
        self.dataset.update(f"DELETE DATA {{ {self.block(*quad)} }}")
        self.model.remove(*quad)

    def update_insert_blank_node(self):
        _, p, o, g = self.sparql_quad()
        before = set(self.dataset.quads())
        self.dataset.update(f"INSERT {{ {self.block(BNode('new'), p, o, g)} }} WHERE {{}}")
        (new,) = set(self.dataset.quads()) - before
        assert isinstance(new[0], BNode)
        self.model.add((new[0], p, o, g))

    def update_delete_where(self):
        _, p, _, g = self.sparql_quad()
        pattern = f"?s {p.n3()} ?o"
        self.dataset.update(f"DELETE WHERE {{ {pattern if g == DEFAULT else TRIG.format(g.n3(), pattern)} }}")
        self.model.remove(None, p, None, g)

    def update_modify(self):
        _, p, o, g = self.sparql_quad()
        pattern = f"?s {p.n3()} ?o"
        place = "{}" if g == DEFAULT else f"GRAPH {g.n3()} {{{{ {{}} }}}}"
        new = f"?s {p.n3()} {o.n3()}".replace("\t", "\\t")
        self.dataset.update(
            f"DELETE {{ {place.format(pattern)} }} INSERT {{ {place.format(new)} }} WHERE {{ {place.format(pattern)} }}"
        )
        for quad in self.model.remove(None, p, None, g):
            self.model.put((*quad[:2], self.model.text(o), quad[3]))

    def update_modify_with(self):
        _, p, _, _ = self.sparql_quad()
        graph = self.random.choice(NAMED)
        self.dataset.update(f"WITH {graph.n3()} DELETE {{ ?s {p.n3()} ?o }} WHERE {{ ?s {p.n3()} ?o }}")
        self.model.remove(None, p, None, graph)

    def update_modify_using(self):
        source, target = self.random.sample(NAMED, 2)
        p = self.random.choice(PREDICATES)
        self.dataset.update(
            f"INSERT {{ GRAPH {target.n3()} {{ ?s {p.n3()} 'used' }} }} USING {source.n3()} WHERE {{ ?s {p.n3()} ?o }}"
        )
        subjects = {quad[0] for quad in self.model.triples(source) if quad[1] == self.model.text(p)}
        self.model.fill(target, [(subject, self.model.text(p), '"used"') for subject in subjects])

    def update_clear_or_drop(self):
        verb, graph = self.random.choice(["CLEAR", "DROP"]), self.random.choice(GRAPHS)
        self.dataset.update(f"{verb} SILENT {'DEFAULT' if graph == DEFAULT else f'GRAPH {graph.n3()}'}")
        self.model.remove(None, None, None, graph)

    def update_clear_or_drop_named(self):
        if self.random.random() < 0.3:
            self.dataset.update(f"{self.random.choice(['CLEAR', 'DROP'])} NAMED")
            self.model.quads = {quad for quad in self.model.quads if not quad[3]}

    def update_clear_or_drop_all(self):
        if self.random.random() < 0.2:
            self.dataset.update(f"{self.random.choice(['CLEAR', 'DROP'])} ALL")
            self.model.quads = set()

    def update_copy_move_or_add(self):
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

    def update_create_graph(self):
        self.dataset.update(f"CREATE SILENT GRAPH {self.random.choice(NAMED).n3()}")

    def update_load(self):
        self.dataset.update("LOAD SILENT <file:///nowhere/at/all>")

    def update_fail_in_an_update(self):
        quad = self.sparql_quad()
        with pytest.raises(Exception, match="Could not load"):
            self.dataset.update(f"INSERT DATA {{ {self.block(*quad)} }} ; LOAD <file:///nowhere/at/all>")

    # Transactions

    def do_commit(self):
        self.dataset.commit()
        self.committed()

    def committed(self):
        if self.model.is_changed:  # else there is nothing for the log
            self.model.commit()
        assert self.dataset.store.position == len(self.model.versions) - 1
        assert not self.dataset.store.has_changes

    def do_roll_back(self):
        if self.records_rollbacks and self.model.is_changed:
            self.model.versions.append(self.model.versions[-1])
        self.model.rollback()
        self.dataset.rollback()
        self.committed()

    def do_transaction(self):
        s, p, o, g = self.quad()
        with transaction(self.dataset, why="a test"):
            self.graph(g).add((s, p, o))
        self.model.add((s, p, o, g))
        self.committed()

    def do_transaction_that_fails(self):
        s, p, o, g = self.quad()

        def block():
            with transaction(self.dataset):
                self.graph(g).add((s, p, o))
                self.dataset.bind("a", f"{EX}never/", replace=True)
                self.dataset.remove((None, p, None))
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            block()
        self.check_dataset(self.dataset)

    # What has to hold

    def check(self):
        self.check_dataset(self.dataset)
        if self.random.random() < 0.3:  # so that they get several patches at a time, too
            self.check_followers()

    def check_followers(self):
        wanted = self.model.versions[-1]
        self.follower.catch_up()
        self.check_dataset(self.follower.dataset, has_names=isinstance(self.follower.dataset.store, Memory))
        assert self.follower.versions == self.model.versions
        assert _state(self.follower.quads, self.follower.names) == wanted

    def check_dataset(self, dataset, *, has_names=True):
        formatter = TermFormatter()
        quads = {formatter.statement((s, p, o, g or DEFAULT)) for s, p, o, g in dataset.quads() if g != POSITIONS}
        names = {name: f"<{iri}>" for name, iri in dataset.store.namespaces() if name in "abc"}
        assert quads == self.model.quads
        assert not has_names or names == self.model.names  # no other store of rdflib can forget a prefix

    def finish(self):
        self.dataset.commit()
        self.committed()
        self.check_followers()
        self.check_form("application/rdf-patch", "rdf-patch")
        self.check_form("application/x-jelly-rdf-patch", "jelly-patch")
        again = Dataset(store=capture(log=self.url, outbox=False))
        self.check_dataset(again)
        again.close()
        self.check_copy()
        self.check_part(0, subjects=[SUBJECTS[0]])
        self.check_part(1, predicates=[PREDICATES[0]])
        self.check_part(3, graphs=[NAMED[0]])

    def check_copy(self):
        copy = new_log()
        follow(self.url, into=copy).close()
        record = httpx.get(self.url).raise_for_status().json()["head"]
        assert (copy.head().id, copy.head().hash) == (record["id"], bytes.fromhex(record["hash"]))

    def check_part(self, place, **selection):
        """A log of a selection has valid smaller patches."""
        ((term,),) = selection.values()
        part, quads = new_log(), set()
        follow(self.url, into=part, **selection).close()

        def take(change):
            assert not change.effect.adds & quads
            assert change.effect.deletes <= quads
            apply_effect(quads, {}, change.effect)

        follow(part, into=take).close()
        assert quads == {quad for quad in self.model.quads if quad[place] == self.model.text(term)}

    def check_endpoint(self, endpoint):
        """So has a store with SPARQL, where blank nodes are IRIs."""
        follow(self.url, into=f"{endpoint.base}/update").close()
        assert endpoint.quads() == self.model.quads

    def check_form(self, media_type, form):
        """The whole log in one of its forms says the same, version by version, and each row changes something."""
        text = httpx.get(f"{self.url}/patches", headers={"Accept": media_type}).raise_for_status().content
        quads, names, rows, versions = set(), {}, [], [(frozenset(), {})]
        for row in patch.read(text, form):
            if isinstance(row, Punctuation):
                change = effect(rows)
                assert not change.adds & quads
                assert change.deletes <= quads
                assert not change.adds & change.deletes
                assert sum(isinstance(row, Add | Delete) for row in rows) >= len(change.adds) + len(change.deletes)
                apply_effect(quads, names, change)
                versions.append(_state(quads, names))
                rows = []
            else:
                rows.append(row)
        assert rows == []
        assert versions == self.model.versions


def new_log():
    logs = MemoryLogStore()
    logs.create("log")
    return logs.log("log")


def _state(quads, names):
    return frozenset(quads), {name: iri for (_, name), iri in names.items()}


@pytest.fixture(scope="module")
def endpoint():
    with serving_oxigraph() as server:
        store = Store(f"http://127.0.0.1:{server.server_port}")
        yield store
        store.client.close()


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, HISTORIES, IN_A_LOG))
def test_all_that_follow_have_the_same_after_any_history(running_service, endpoint, first, tmp_path):
    number = first // IN_A_LOG
    inner = OxigraphStore if number % 4 == 3 else Memory
    outbox = tmp_path / "outbox.db" if number % 2 else False
    with Histories(running_service, inner, number % 3 == 2, outbox) as histories:
        for seed in range(first, first + IN_A_LOG):
            histories.run(seed)
        histories.finish()
        if inner is OxigraphStore:  # which has no other lexical forms than the endpoint
            endpoint.clear()
            histories.check_endpoint(endpoint)
