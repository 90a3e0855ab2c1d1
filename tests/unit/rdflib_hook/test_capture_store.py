"""What a captured dataset records, and what it does not."""

import threading
import time

import pytest
import rdflib.plugin
from rdflib import BNode, Dataset, Graph, Literal, URIRef, Variable
from rdflib.graph import DATASET_DEFAULT_GRAPH_ID, QuotedGraph
from rdflib.namespace import FOAF, XSD
from rdflib.plugins.stores.memory import Memory, SimpleMemory
from rdflib.store import VALID_STORE, Store

from patchlog import capture, transaction
from patchlog.engine import PatchDecoder
from patchlog.errors import InvalidTerm, UsageError
from patchlog.log.memory import MemoryLogStore
from patchlog.log.stores import open_store
from patchlog.model import Add, Delete, Header, NamespaceAdd, NamespaceDelete, Punctuation, TransactionAbort

EX = "http://example.org/"
A, B, P, Q, R, G, H = (URIRef(EX + name) for name in "abpqrgh")
a, b, p, q, g, h = (f"<{EX}{name}>" for name in "abpqgh")
ONE, X, Y = Literal(1), Literal("x"), Literal("y")


@pytest.fixture
def log():
    logs = MemoryLogStore()
    logs.create("log")
    return logs.log("log")


@pytest.fixture
def dataset(log):
    return Dataset(store=capture(log=log))


def patches_of(log):
    """The patches of a log as operations, without the headers that each has."""
    return [
        [
            operation
            for operation in operations_of(logged)
            if not isinstance(operation, Punctuation)
            and not (isinstance(operation, Header) and operation.key in ("id", "prev", "when"))
        ][1:-1]
        for logged in log.read()
    ]


def operations_of(logged):
    decoder = PatchDecoder()
    return [operation for chunk in logged.chunks for operation in decoder.feed(chunk)]


def test_commit_is_one_patch_of_what_has_changed(dataset, log):
    dataset.add((A, P, X))
    dataset.add((A, P, Y, G))
    dataset.commit()

    assert patches_of(log) == [[Add(a, p, '"x"', ""), Add(a, p, '"y"', g)]]


def test_what_changes_nothing_leaves_no_row(dataset, log):
    dataset.add((A, P, X))
    dataset.commit()

    dataset.add((A, P, X))
    dataset.remove((A, P, Y))
    dataset.remove((B, None, None))
    dataset.update(f"INSERT DATA {{ {a} {p} 'x' }}")
    dataset.commit()

    assert len(patches_of(log)) == 1
    assert not dataset.store.has_changes


def test_what_was_added_and_removed_again_leaves_no_row(dataset, log):
    dataset.add((A, P, X))
    dataset.add((B, P, X))
    dataset.remove((A, P, X))
    dataset.commit()

    assert patches_of(log) == [[Add(b, p, '"x"', "")]]


def test_removal_by_pattern_is_exact_deletes_in_each_graph(dataset, log):
    dataset.addN([(A, P, X, dataset.default_graph), (A, P, X, dataset.graph(G)), (A, Q, X, dataset.graph(G))])
    dataset.commit()

    dataset.remove((A, P, None))
    dataset.commit()

    assert sorted(map(str, patches_of(log)[1])) == sorted(map(str, [Delete(a, p, '"x"', ""), Delete(a, p, '"x"', g)]))
    assert len(dataset) == 1


def test_quad_without_a_graph_is_in_the_default_graph(dataset, log):
    dataset.add((A, P, X, None))
    dataset.commit()

    assert set(dataset.default_graph) == set(Dataset(store=capture(log=log)).default_graph) == {(A, P, X)}


def test_generators_are_consumed_once(dataset, log):
    asked = []

    def quads():
        for object_ in (X, Y):
            asked.append(object_)
            yield A, P, object_, dataset.default_graph

    dataset.addN(quads())
    dataset.commit()

    assert asked == [X, Y]
    assert len(patches_of(log)[0]) == 2


def test_removed_graph_is_deletes_and_is_gone(dataset, log):
    dataset.graph(G).add((A, P, X))
    dataset.commit()

    dataset.remove_graph(G)
    dataset.commit()

    assert patches_of(log)[1] == [Delete(a, p, '"x"', g)]
    assert G not in {graph.identifier for graph in dataset.graphs()}


def test_rollback_brings_back_graphs_and_namespaces_too(dataset, log):
    dataset.bind("kept", URIRef(EX + "kept/"))
    dataset.graph(G).add((A, P, X))
    dataset.commit()

    dataset.bind("new", URIRef(EX + "new/"))
    dataset.bind("changed", URIRef(EX + "kept/"))
    dataset.graph(H).add((A, P, X))
    dataset.remove_graph(G)
    dataset.rollback()

    assert {graph.identifier for graph in dataset.graphs()} == {G, DATASET_DEFAULT_GRAPH_ID}
    assert set(dataset.graph(G)) == {(A, P, X)}
    assert dataset.store.namespace("kept") == URIRef(EX + "kept/")
    assert dataset.store.namespace("new") is dataset.store.namespace("changed") is None
    assert not dataset.store.has_changes
    assert len(patches_of(log)) == 1


def test_rollback_is_an_aborted_transaction_where_that_is_asked_for(log):
    dataset = Dataset(store=capture(log=log, record_rollbacks=True))
    dataset.add((A, P, X))
    dataset.rollback()
    dataset.rollback()

    (logged,) = log.read()

    assert Add(a, p, '"x"', "") in (operations := operations_of(logged))
    assert isinstance(operations[-2], TransactionAbort)
    assert len(dataset) == len(Dataset(store=capture(log=log))) == 0


def test_headers_say_who_when_and_why(log):
    dataset = Dataset(store=capture(log=log, headers={"application": "test"}))
    with transaction(dataset, who=URIRef(EX + "ada"), why="a reason", headers={"ticket": "7"}):
        dataset.add((A, P, X))

    (logged,) = log.read()
    headers = {operation.key: operation.value for operation in operations_of(logged) if isinstance(operation, Header)}

    assert headers["who"] == f"<{EX}ada>"
    assert headers["why"] == '"a reason"'
    assert headers["ticket"] == '"7"'
    assert headers["application"] == '"test"'
    assert headers["when"].endswith('Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>')


@pytest.mark.parametrize("header", ["id", "prev"])
def test_headers_that_are_of_the_log_are_refused_before_anything_changes(log, header):
    with pytest.raises(UsageError, match=f"the header {header}"):
        capture(log=log, headers={header: "x"})
    dataset = Dataset(store=capture(log=log))

    with pytest.raises(UsageError, match=f"the header {header}"), transaction(dataset, headers={header: "x"}):
        raise AssertionError("the block must not be entered")


@pytest.mark.parametrize("ends", ["commit", "rollback"])
def test_block_that_raises_after_a_commit_or_rollback_within_takes_back_what_came_then(dataset, log, ends):
    dataset.add((A, P, X))
    dataset.bind("before", EX + "before/")

    def fail():
        with transaction(dataset):
            dataset.add((A, P, Y))
            getattr(dataset, ends)()
            dataset.add((B, P, X))
            dataset.bind("behind", EX + "behind/")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()

    assert not dataset.store.has_changes
    assert set(dataset.quads()) == set(Dataset(store=capture(log=log)).quads())
    assert len(dataset) == (2 if ends == "commit" else 0)


def test_block_that_raises_after_a_pull_within_takes_back_its_own_changes_alone(log):
    dataset = Dataset(store=capture(log=log, conflicts="last-writer-wins"))
    dataset.add((A, P, X))
    dataset.bind("mine", EX + "mine/")
    other = Dataset(store=capture(log=log))
    other.add((A, P, X))
    other.bind("theirs", EX + "theirs/")
    other.commit()

    def fail():
        with transaction(dataset):
            dataset.add((A, P, Y))
            dataset.store.pull()
            dataset.add((B, P, X))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    dataset.commit()

    # The add before the block is no change any more, and the prefix is.
    assert set(dataset.default_graph) == {(A, P, X)}
    assert patches_of(log)[1] == [NamespaceAdd("mine", f"<{EX}mine/>", "")]


def test_namespaces_that_a_person_declares_are_recorded_and_not_those_of_rdflib(dataset, log):
    list(dataset.namespaces())
    dataset.bind("ex", EX)
    dataset.bind("foaf", FOAF)
    dataset.commit()
    dataset.bind("other", EX)
    dataset.serialize(format="nquads")
    dataset.commit()

    assert patches_of(log) == [
        [NamespaceAdd("ex", f"<{EX}>", "")],
        [NamespaceDelete("ex", None, ""), NamespaceAdd("other", f"<{EX}>", "")],
    ]
    assert Dataset(store=capture(log=log)).store.namespace("other") == URIRef(EX)


def test_what_rdflib_binds_where_a_person_took_one_of_its_prefixes_is_not_recorded(dataset, log):
    dataset.bind("friend", FOAF)
    dataset.bind("foaf", EX, replace=True)
    dataset.commit()

    # Each graph that is asked for its namespaces binds `foaf1` to what was rdflib's `foaf`.
    again = Dataset(store=capture(log=log))
    list(again.namespaces())
    list(Graph(dataset.store, G).namespaces())

    assert not again.store.has_changes
    assert not dataset.store.has_changes
    assert again.store.prefix(URIRef(str(FOAF))) == "friend"


def test_a_prefix_with_a_number_that_rdflib_would_not_choose_is_recorded(dataset, log):
    dataset.bind("foaf", EX, replace=True)
    list(Graph(dataset.store, G).namespaces())  # binds `foaf1`
    dataset.commit()

    dataset.bind("foaf3", FOAF)
    dataset.commit()

    assert patches_of(log) == [[NamespaceAdd("foaf", f"<{EX}>", "")], [NamespaceAdd("foaf3", f"<{FOAF}>", "")]]


def test_rdflib_does_not_take_a_prefix_of_ours_for_one_of_its_own(dataset, log):
    dataset.bind("people", FOAF)
    dataset.commit()

    list(Graph(dataset.store, G).namespaces())
    dataset.commit()

    assert dataset.store.prefix(URIRef(str(FOAF))) == "people"
    assert len(patches_of(log)) == 1


def test_lexical_forms_are_recorded_as_they_are(dataset, log):
    dataset.add((A, P, Literal("01", datatype=XSD.integer, normalize=False)))
    dataset.commit()

    assert patches_of(log)[0][0].object == '"01"^^<http://www.w3.org/2001/XMLSchema#integer>'


def test_language_tags_are_recorded_as_the_store_spells_them(dataset, log):
    dataset.add((A, P, Literal("x", lang="en-GB")))
    dataset.add((A, P, Literal("x", lang="EN-gb"), G))
    dataset.commit()
    dataset.remove((A, P, Literal("x", lang="en-gb"), G))
    dataset.commit()

    assert patches_of(log) == [
        [Add(a, p, '"x"@en-GB', ""), Add(a, p, '"x"@en-GB', g)],
        [Delete(a, p, '"x"@en-GB', g)],
    ]


def test_changed_spelling_of_a_language_tag_is_a_change(dataset, log):
    dataset.add((A, P, Literal("x", lang="en")))
    dataset.commit()
    dataset.remove((A, P, Literal("x", lang="EN")))
    dataset.add((A, P, Literal("x", lang="EN")))
    dataset.commit()

    assert patches_of(log)[1] == [Delete(a, p, '"x"@en', ""), Add(a, p, '"x"@EN', "")]


def test_string_is_one_term_with_and_without_its_datatype(dataset, log):
    dataset.add((A, P, X))
    dataset.add((A, P, Literal("x", datatype=XSD.string)))
    dataset.commit()

    assert len(dataset) == 1
    assert (A, P, Literal("x", datatype=XSD.string)) in dataset
    assert patches_of(log) == [[Add(a, p, '"x"', "")]]


def test_formula_is_a_graph_with_the_name_of_a_blank_node(log):
    captured = capture(log=log)
    graph = Graph(captured, G)
    outer, inner = QuotedGraph(captured, BNode("outer")), QuotedGraph(captured, BNode("inner"))
    inner.add((A, P, X))
    outer.add((inner, Q, B))
    graph.add((outer, Q, A))
    captured.commit()

    captured.remove((None, None, None), outer)
    captured.rollback()

    assert patches_of(log) == [[Add(a, p, '"x"', "_:inner"), Add("_:inner", q, b, "_:outer"), Add("_:outer", q, a, g)]]
    assert len(outer) == 1
    assert [triple for triple, _ in captured.triples((None, None, None))] == [(outer, Q, A)]


@pytest.mark.parametrize("triple", [(Variable("s"), P, X), (A, P, Variable("o")), (A, P, Graph())])
def test_what_is_no_term_of_a_log_is_refused_before_anything_changes(dataset, triple):
    with pytest.raises(UsageError, match="a log cannot hold it"):
        dataset.add(triple)

    assert len(dataset) == 0


def test_update_that_fails_leaves_nothing(dataset):
    dataset.add((A, P, X))

    with pytest.raises(Exception, match="already"):
        dataset.update(f"INSERT DATA {{ {a} {p} 'y' }} ; CREATE GRAPH {g} ; CREATE GRAPH {g}")

    assert {quad[:3] for quad in dataset.quads()} == {(A, P, X)}
    assert G not in {graph.identifier for graph in dataset.graphs()}


def test_update_deletes_before_it_inserts(dataset, log):
    dataset.addN((A, P, Literal(number), dataset.default_graph) for number in (1, 2))
    dataset.addN((A, Q, Literal(number), dataset.default_graph) for number in (1, 2))
    dataset.commit()

    dataset.update(f"DELETE {{ <{A}> <{P}> ?o }} INSERT {{ <{A}> <{P}> ?q }} WHERE {{ <{A}> <{P}> ?o ; <{Q}> ?q }}")
    dataset.commit()

    assert set(dataset.objects(A, P)) == {Literal(1), Literal(2)}
    assert log.head().version == 1


def test_pattern_is_matched_whole_before_anything_is_deleted(dataset):
    for graph in (dataset.default_graph, dataset.graph(G)):
        graph += [(A, predicate, Literal(number)) for predicate in (P, Q) for number in (1, 2)]

    dataset.update(
        f"DELETE WHERE {{ ?s <{P}> ?o ; <{Q}> ?q }} ; DELETE WHERE {{ GRAPH ?g {{ ?s <{P}> ?o ; <{Q}> ?q }} }}"
    )

    assert len(dataset) == 0
    assert set(dataset.quads()) == set()


def test_using_describes_the_dataset_of_the_pattern(dataset):
    others = [URIRef(f"{EX}g{number}") for number in range(3)]
    for number, name in enumerate(others):
        dataset.add((A, P, Literal(number), name))
    dataset.add((B, P, Literal("default")))

    dataset.update(f"INSERT {{ ?s <{Q}> ?o }} USING <{others[0]}> USING <{others[1]}> WHERE {{ ?s <{P}> ?o }}")
    dataset.update(f"INSERT {{ ?s <{R}> ?o }} USING NAMED <{others[2]}> WHERE {{ GRAPH ?g {{ ?s <{P}> ?o }} }}")
    dataset.update(f"WITH <{G}> INSERT {{ ?s <{P}> ?o }} USING <{others[1]}> WHERE {{ ?s <{P}> ?o }}")

    assert set(dataset.default_graph.triples((None, Q, None))) == {(A, Q, Literal(0)), (A, Q, Literal(1))}
    assert set(dataset.default_graph.triples((None, R, None))) == {(A, R, Literal(2))}
    assert set(dataset.graph(G)) == {(A, P, Literal(1))}


def test_update_of_one_graph_stays_in_it(dataset, log):
    dataset.graph(G).update(f"INSERT DATA {{ {a} {p} 'x' }} ; DELETE {{ ?s ?p ?o }} WHERE {{ ?s ?p 'z' }}")
    dataset.commit()

    assert patches_of(log) == [[Add(a, p, '"x"', g)]]


def test_update_with_a_union_default_graph_matches_all_graphs_and_writes_the_default_one(log):
    dataset = Dataset(store=capture(log=log), default_union=True)
    dataset.graph(G).add((A, P, X))
    dataset.update(f"INSERT DATA {{ {b} {p} 'x' }} ; INSERT {{ ?s {q} 'found' }} WHERE {{ ?s {p} 'x' }}")
    dataset.commit()

    assert set(patches_of(log)[0]) == {
        Add(a, p, '"x"', g),
        Add(b, p, '"x"', ""),
        Add(a, q, '"found"', ""),
        Add(b, q, '"found"', ""),
    }


def test_load_reads_a_document_into_a_graph(dataset, log, tmp_path):
    document = tmp_path / "document.ttl"
    document.write_text(f"{a} {p} 'x' .")

    dataset.update(f"LOAD <{document.as_uri()}> INTO GRAPH {g}")
    dataset.commit()

    assert patches_of(log) == [[Add(a, p, '"x"', g)]]


def test_bindings_and_namespaces_go_into_an_update(dataset, log):
    dataset.update("INSERT DATA { ex:a ex:p 'x' }", initNs={"ex": EX})
    dataset.update(f"DELETE {{ ?s {p} ?o }} WHERE {{ ?s {p} ?o }}", initBindings={"o": Y})
    dataset.commit()

    assert patches_of(log) == [[Add(a, p, '"x"', "")]]


def test_transaction_that_raises_takes_back_its_own_changes_only(dataset, log):
    dataset.add((A, P, X))

    def block():
        with transaction(dataset):
            dataset.add((B, P, X))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        block()
    dataset.commit()

    assert patches_of(log) == [[Add(a, p, '"x"', "")]]


def test_block_within_a_block_is_committed_with_it(dataset, log):
    with transaction(dataset):
        dataset.add((A, P, X))
        with transaction(dataset):
            dataset.add((A, P, Y))
        assert patches_of(log) == []

    assert len(patches_of(log)) == 1


def test_store_that_is_not_captured_has_no_transaction():
    with pytest.raises(UsageError, match="not captured"), transaction(Dataset()):
        pass


def test_autocommit_is_a_patch_for_each_call(log):
    dataset = Dataset(store=capture(log=log, autocommit=True))
    dataset.add((A, P, X))
    dataset.addN([(A, P, Y, dataset.default_graph), (A, P, ONE, dataset.default_graph)])
    dataset.update(f"DELETE DATA {{ {a} {p} 'x' }} ; DELETE DATA {{ {a} {p} 'y' }}")
    dataset.bind("ex", EX)

    assert [len(patch) for patch in patches_of(log)] == [1, 2, 2, 1]


def test_batch_of_changes_is_a_patch(log):
    dataset = Dataset(store=capture(log=log, commit_every=3))
    for number in range(7):
        dataset.add((A, P, Literal(number)))
    dataset.close()

    assert [len(patch) for patch in patches_of(log)] == [3, 3, 1]


def test_batch_is_committed_when_its_time_has_come(log):
    dataset = Dataset(store=capture(log=log, commit_after_seconds=0.05))
    dataset.addN((A, P, value, dataset.default_graph) for value in (X, Y))
    log.wait_for(1, 60)
    dataset.remove((A, P, X))
    log.wait_for(2, 60)

    assert [len(patch) for patch in patches_of(log)] == [2, 1]
    dataset.close()


def test_close_rolls_back_what_was_not_committed_and_says_so(dataset, log, caplog):
    dataset.add((A, P, X))
    dataset.close()
    dataset.close()

    assert patches_of(log) == []
    assert [record.message for record in caplog.records] == [
        "the store is closed with uncommitted changes: they are rolled back"
    ]
    with pytest.raises(UsageError, match="not open"):
        dataset.add((A, P, X))


def test_close_commits_where_it_is_told_to(dataset, log):
    dataset.add((A, P, X))
    dataset.close(commit_pending_transaction=True)

    assert len(patches_of(log)) == 1


def test_contents_of_a_store_are_the_first_patch_of_an_empty_log(log):
    before = Dataset()
    before.add((A, P, X))
    before.graph(G).add((A, P, Y))

    dataset = Dataset(store=capture(before.store, log=log))

    assert set(patches_of(log)[0]) == {Add(a, p, '"x"', ""), Add(a, p, '"y"', g)}
    assert len(dataset) == 2


def test_store_with_contents_is_not_brought_together_with_a_log_that_has_patches(dataset, log):
    dataset.add((A, P, X))
    dataset.commit()
    other = Dataset()
    other.add((A, P, Y))

    with pytest.raises(UsageError, match="capture an empty store"):
        capture(other.store, log=log)


def test_store_that_is_as_the_log_says_need_not_be_loaded(dataset, log):
    dataset.add((A, P, X))
    dataset.commit()
    other = Dataset()
    other.add((A, P, X))

    again = Dataset(store=capture(other.store, log=log, load=False))
    again.remove((A, P, X))
    again.commit()

    assert patches_of(log)[1] == [Delete(a, p, '"x"', "")]


def test_simple_memory_is_captured_as_the_default_graph(log):
    graph = Graph(capture(SimpleMemory(), log=log))
    graph.add((A, P, X))
    graph.add((A, P, X))
    graph.add((A, P, Y))
    graph.commit()
    graph.remove((None, None, X))
    graph.update(f"INSERT DATA {{ {b} {p} 'x' }}")
    graph.rollback()

    assert set(graph) == {(A, P, X), (A, P, Y)}
    assert set(patches_of(log)[0]) == {Add(a, p, '"x"', ""), Add(a, p, '"y"', "")}
    assert set(Graph(capture(SimpleMemory(), log=log))) == set(graph)


def test_named_graphs_of_a_log_have_no_place_in_simple_memory(dataset, log):
    dataset.graph(G).add((A, P, X))
    dataset.commit()

    with pytest.raises(UsageError, match="named graph"):
        capture(SimpleMemory(), log=log)


def test_plugin_is_found_by_its_name_and_opened_with_a_place(tmp_path):
    assert rdflib.plugin.get("patchlog", Store)
    dataset = Dataset(store="patchlog")
    place = f"sqlite:///{tmp_path}/logs.db#people"

    opened = dataset.open(place)
    dataset.add((A, P, X))
    dataset.commit()
    dataset.close()

    store = open_store(f"sqlite:///{tmp_path}/logs.db")
    assert opened == VALID_STORE
    assert patches_of(store.log("people")) == [[Add(a, p, '"x"', "")]]
    store.close()


def test_captured_store_is_not_captured_again(dataset, log):
    with pytest.raises(UsageError, match="captured already"):
        capture(dataset.store, log=log)


def test_what_is_no_store_is_not_captured(log):
    with pytest.raises(UsageError, match=r"pass `dataset\.store`"):
        capture(Dataset(), log=log)


def test_eight_threads_on_one_dataset_leave_the_log_as_the_store(log):
    dataset = Dataset(store=capture(log=log))
    failures = []

    def work(number):
        try:
            for step in range(60):
                graph = dataset.get_context(URIRef(f"{EX}g{step % 3}"))
                graph.add((URIRef(f"{EX}s{number}"), P, Literal(step)))
                if step % 3 == 0:
                    graph.remove((URIRef(f"{EX}s{(number + 1) % 8}"), None, Literal(step - 1)))
                if step % 10 == number % 10:
                    dataset.rollback()
                if step % 7 == 0:
                    with transaction(dataset):
                        dataset.update(f"INSERT DATA {{ {a} {p} {number * 100 + step} }}")
        except Exception as failure:  # noqa: BLE001 - it is shown below
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    dataset.commit()

    assert failures == []
    assert set(Dataset(store=capture(log=log)).quads()) == set(dataset.quads())
    assert len({int(o) for _, _, o in dataset.default_graph}) == 8 * 9


def test_transaction_is_not_seen_by_the_commit_of_another_thread(dataset, log):
    begun, other = threading.Event(), []

    def commit():
        begun.wait(60)
        dataset.commit()
        other.append(len(patches_of(log)))

    thread = threading.Thread(target=commit)
    thread.start()
    with transaction(dataset):
        dataset.add((A, P, X))
        begun.set()
        time.sleep(0.05)
        dataset.add((A, P, Y))
    thread.join()

    assert [len(patch) for patch in patches_of(log)] == [2]
    assert other == [1]


def test_events_of_the_inner_store_are_heard(log):
    inner = Memory()
    dataset = Dataset(store=capture(inner, log=log))

    assert dataset.store.dispatcher is inner.dispatcher


def test_term_that_cannot_be_written_is_named_and_can_be_taken_back(log, dataset):
    dataset.add((A, P, Literal("bad\ud800x")))

    with pytest.raises(InvalidTerm, match=r"bad.*x.*subject .*/a'"):
        dataset.commit()
    dataset.rollback()
    dataset.add((A, P, X))
    dataset.commit()
    assert patches_of(log) == [[Add(a, p, '"x"', "")]]
