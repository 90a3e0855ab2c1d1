"""A follower, and the targets that need no server: datasets of rdflib, logs, functions, bytes."""

import threading

import httpx
import pyoxigraph
import pytest
from rdflib import Dataset, Graph, URIRef
from rdflib.term import BNode, Literal

from patchlog.effect import apply_effect
from patchlog.errors import HistoryMismatch, LogNotFound, UsageError
from patchlog.followers.changes import Applying
from patchlog.followers.endpoint import Endpoint
from patchlog.followers.follow import follow
from patchlog.followers.follower import Follower
from patchlog.followers.output_target import OutputTarget
from patchlog.followers.positions import DamagedRecord, Positions
from patchlog.followers.selection import Selection
from patchlog.followers.skolem import deskolemised, skolemised_term
from patchlog.log.history import headers_of
from patchlog.log.position import Position
from patchlog.log.stores import open_store
from patchlog.rdflib_hook.contents import statements_of
from patchlog.rdflib_hook.terms import TermFormatter
from patchlog.text.sparql import in_sparql, sparql_escapes
from patchlog.text.terms import iri_term, literal_term, parse_term, quoted_triple_term

S, P = "<http://e/s>", "<http://e/p>"
PATCHES = (
    (
        'TX .\nPA "e" <http://e/> .\nA <http://e/s> <http://e/p> "1" .\n'
        'A _:b <http://e/p> "01"^^<http://e/n> <http://e/g> .\nTC .\n'
    ),
    'TX .\nD <http://e/s> <http://e/p> "1" .\nA <http://e/s> <http://e/p> "2"@EN .\nTC .\n',
    'TX .\nA <http://e/s> <http://e/q> "never" .\nTA .\n',
    "H who <http://e/ada> .\nTX .\nA <http://e/t> <http://e/p> _:b <http://e/g> .\nTC .\n",
)
AFTER_ALL = {
    (S, P, '"2"@EN', ""),
    ("_:b", P, '"01"^^<http://e/n>', "<http://e/g>"),
    ("<http://e/t>", P, "_:b", "<http://e/g>"),
}


@pytest.fixture
def store():
    store = open_store("memory:")
    yield store
    store.close()


@pytest.fixture
def log(store):
    store.create("people")
    log = store.log("people")
    for patch in PATCHES:
        push(log, patch)
    return log


def push(log, text):
    return log.append([text.encode()], format="rdf-patch")


def quads_of(dataset):
    quads = map(TermFormatter().statement, statements_of(dataset))
    return {quad if len(quad) == 4 else (*quad, "") for quad in quads}


def test_source_that_is_not_there_leaves_no_target_behind(tmp_path):
    with pytest.raises(LogNotFound):
        follow(tmp_path / "people.jellyp", into=tmp_path / "copy.jellyp")

    assert list(tmp_path.iterdir()) == []


def test_log_does_not_take_a_part_of_itself(store):
    store.create("empty")

    with pytest.raises(UsageError, match="part of itself"):
        follow(store.log("empty"), into=store.log("empty"), subjects=["http://e/s"])


def test_paths_are_places_of_a_log_and_of_its_copy(tmp_path):
    (tmp_path / "people.rdfp").write_text("Z .\n".join(PATCHES))

    follower = follow(tmp_path / "people.rdfp", into=tmp_path / "copy.jellyp")

    assert follower.position == follow(tmp_path / "copy.jellyp", into=Dataset()).position == 4


def test_dataset_has_what_the_log_says(log):
    dataset = Dataset()

    follower = follow(log, into=dataset)

    assert follower.position == 4
    assert quads_of(dataset) == AFTER_ALL
    assert dataset.store.namespace("e") == URIRef("http://e/")


def test_terms_keep_their_lexical_forms_and_labels_in_rdflib(log):
    dataset = Dataset()

    follow(log, into=dataset)

    graph = dataset.graph(URIRef("http://e/g"))
    assert (BNode("b"), URIRef("http://e/p"), None) in graph
    assert [str(o) for o in graph.objects(BNode("b"))] == ["01"]


def test_several_prefixes_of_one_iri_are_kept_apart(log):
    push(log, 'TX .\nPA "f" <http://e/> .\nPA "other" <http://o/> .\nTC .\n')
    dataset, graph = Dataset(), Graph()
    follow(log, into=dataset)
    follow(log, into=graph)

    push(log, 'TX .\nPD "f" .\nPD "other" .\nTC .\n')
    follow(log, into=dataset)

    assert [graph.store.namespace(name) for name in ("e", "f")] == [URIRef("http://e/")] * 2
    assert [dataset.store.namespace(name) for name in ("e", "f", "other")] == [URIRef("http://e/"), None, None]
    assert dataset.store.prefix(URIRef("http://e/")) == "e"


def test_graph_and_store_can_be_followed_into(log):
    graph, dataset = Graph(), Dataset()

    follow(log, into=graph)
    follow(log, into=dataset.store)

    assert (URIRef("http://e/s"), URIRef("http://e/p"), Literal("2", lang="EN")) in graph
    assert quads_of(dataset) == AFTER_ALL


def test_dataset_is_followed_on_from_where_it_is(log):
    dataset = Dataset()
    follow(log, into=dataset, until=1)
    dataset.add((URIRef("http://e/own"), URIRef("http://e/p"), Literal("mine")))

    push(log, "TX .\nD <http://e/t> <http://e/p> _:b <http://e/g> .\nTC .\n")
    follower = follow(log, into=dataset)

    assert follower.position == 5
    assert ("<http://e/own>", P, '"mine"', "") in quads_of(dataset)
    assert ("<http://e/t>", P, "_:b", "<http://e/g>") not in quads_of(dataset)


def test_same_quad_flipped_a_hundred_times_ends_as_the_last_patch_says(store):
    store.create("flip")
    log = store.log("flip")
    for number in range(101):
        push(log, f'TX .\n{"AD"[number % 2]} <http://e/s> <http://e/p> "x" .\nTC .\n')
    dataset = Dataset()

    follow(log, into=dataset)

    assert quads_of(dataset) == {(S, P, '"x"', "")}


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ({"graphs": ["http://e/g"]}, {quad for quad in AFTER_ALL if quad[3]}),
        ({"graphs": [""]}, {quad for quad in AFTER_ALL if not quad[3]}),
        ({"subjects": ["_:b"]}, {quad for quad in AFTER_ALL if quad[0] == "_:b"}),
        (
            {"predicates": [URIRef("http://e/p")], "subjects": ["<http://e/t>", S]},
            {q for q in AFTER_ALL if q[0][0] == "<"},
        ),
        ({"predicates": "http://e/none"}, set()),
    ],
)
def test_selection_is_all_that_is_taken(log, selection, expected):
    dataset = Dataset()

    follow(log, into=dataset, **selection)

    assert quads_of(dataset) == expected


def test_function_gets_each_change_with_its_record_and_headers(log):
    changes = []

    follow(log, into=changes.append)

    quads, namespaces = set(), {}
    for change in changes:
        apply_effect(quads, namespaces, change.effect)
    assert [change.record.version for change in changes] == [1, 2, 3, 4]
    assert [(header.key, header.value) for header in changes[3].headers] == [("who", "<http://e/ada>")]
    assert quads == AFTER_ALL
    assert namespaces == {("", "e"): "<http://e/>"}


def test_function_that_fails_gets_the_change_again(log):
    seen = []

    def fails_once(change):
        seen.append(change.record.version)
        if seen == [1, 2]:
            raise OSError("the disk is full")

    follower = Follower(log, Applying_to(fails_once))
    with pytest.raises(OSError, match="full"):
        follower.catch_up()
    follower.catch_up()

    assert seen == [1, 2, 2, 3, 4]


def Applying_to(function):  # noqa: N802
    from patchlog.followers.callback_target import CallbackTarget

    return Applying(CallbackTarget(function, None))


def test_function_begins_where_it_says(log):
    changes = []

    follow(log, into=changes.append, after=2)

    assert [change.record.version for change in changes] == [3, 4]


def test_function_goes_on_from_its_position_in_the_same_history_only(log, store):
    changes = []
    with follow(log, into=changes.append, until=2) as follower:
        position = follower.full_position
    follow(log, into=changes.append, after=position).close()
    store.delete("people")
    store.create("people")
    for patch in PATCHES:
        push(store.log("people"), patch)

    assert [change.record.version for change in changes] == [1, 2, 3, 4]
    assert position == Position(position.log_id, 2, changes[1].record.chain_hash)
    with pytest.raises(HistoryMismatch, match="deleted and created again"):
        follow(store.log("people"), into=changes.append, after=position)
    assert len(changes) == 4


def test_patches_of_a_part_say_which_history_they_are_of(log, store):
    store.create("graph")
    follow(log, into=store.log("graph"), graphs=["http://e/g"])

    [*_, last] = [headers_of(logged) for logged in store.log("graph").read()]
    assert last["source-hash"] == f'"{log.position(4).hash.hex()}"'
    assert last["source-part"] == '"graphs <http://e/g>"'


def test_log_of_a_part_from_the_version_before_goes_on(log, store):
    """Its patches have neither the hash nor the part."""
    store.create("graph")
    graph = store.log("graph")
    old = f'H source-log <urn:uuid:{log.describe().id}> .\nH source-version "3" .\nTX .\nTC .\n'
    push(graph, old)

    follow(log, into=graph, graphs=["http://e/g"])

    assert [headers_of(logged)["source-version"] for logged in graph.read()] == ['"3"', '"4"']


@pytest.mark.parametrize(
    ("version", "hash"), [("x", None), ("-1", None), (str(1 << 63), None), ("\u0665", None), ("3", "zz"), ("3", "00")]
)
def test_damaged_position_of_a_part_is_an_error(log, store, version, hash):
    store.create("graph")
    graph = store.log("graph")
    said = "" if hash is None else f'H source-hash "{hash}" .\n'
    push(graph, f'H source-log <urn:uuid:{log.describe().id}> .\nH source-version "{version}" .\n{said}TX .\nTC .\n')

    with pytest.raises(UsageError, match="is not a position of a log"):
        follow(log, into=graph, graphs=["http://e/g"])


@pytest.mark.parametrize("answer", ["", "null", '{"results": {"bindings": [{"s": {"value": "x"}}]}}', "[" * 100_000])
def test_answer_of_a_store_that_is_none_is_an_error(monkeypatch, answer):
    request = httpx.Request("POST", "http://localhost:1/query")
    monkeypatch.setattr("httpx.Client.request", lambda *_, **__: httpx.Response(200, text=answer, request=request))

    with pytest.raises(UsageError, match="did not answer a SPARQL query with JSON"):
        Endpoint("http://localhost:1/query").positions()


ODD_TEXTS = ["\\u0022 \\u000A \\U0001F600", "\\\\u005C", "\x1bbeef\x7f", 'a"\\"\\\n', "\\", "\\u"]


@pytest.mark.parametrize("text", ODD_TEXTS)
@pytest.mark.parametrize("writes", [in_sparql, lambda term: sparql_escapes(Literal(parse_term(term).lexical).n3())])
def test_literals_reach_sparql_stores_as_they_are_whenever_these_replace_escapes(text, writes):
    """rdflib does so in the whole update before it parses it, and Oxigraph in each token."""
    update = f"INSERT DATA {{ {S} {P} {writes(literal_term(text))} }}"
    before, inside = Graph(), pyoxigraph.Store()

    before.update(update)
    inside.update(update)

    assert [str(value) for value in before.objects()] == [text]
    assert [quad.object.value for quad in inside] == [text]


@pytest.mark.parametrize("iri", ["http://e/> . } ; DELETE WHERE { ?s ?p ?o", "http://e/a b", 'http://e/"'])
def test_iri_that_is_none_ends_no_sparql_update(iri):
    quoted = quoted_triple_term(S, P, iri_term(iri))

    for term in (iri_term(iri), literal_term("a", datatype=iri), literal_term("a", language=iri), quoted):
        with pytest.raises(UsageError, match="no IRI and no language tag has"):
            in_sparql(term)
    assert in_sparql(quoted_triple_term(S, P, literal_term("<\\>"))) == quoted_triple_term(S, P, literal_term("<\\>"))


@pytest.mark.parametrize(
    ("version", "history"), [("x", None), ("-1", None), (str(1 << 63), None), ("5.0", None), ("3", "3"), ("3", "3:zz")]
)
def test_damaged_record_in_a_store_is_an_error(log, version, history):
    own = f"urn:uuid:{log.describe().id}"
    positions = Positions(log.describe(), "everything")
    rows = [(own, "urn:patchlog:position", version), (own, "urn:patchlog:name", "people")]
    rows += [] if history is None else [(own, "urn:patchlog:history", history)]

    with pytest.raises(DamagedRecord, match="is not a position of a log"):
        positions.read(rows)


def test_copy_of_a_log_has_the_same_ids_and_hashes(log, tmp_path):
    store = open_store(f"sqlite:///{tmp_path}/copy.db")
    store.create("copy")
    copy = store.log("copy")

    follow(log, into=copy, until=2)
    follow(log, into=copy)

    assert copy.head().hash == log.head().hash
    assert [patch.record.id for patch in copy.read()] == [patch.record.id for patch in log.read()]
    assert copy.verify().is_sound
    store.close()


def test_log_of_another_origin_is_no_copy(log, store):
    store.create("other")
    push(store.log("other"), 'TX .\nA <http://e/s> <http://e/p> "own" .\nTC .\n')

    with pytest.raises(HistoryMismatch, match="is no copy of 'people'"):
        follow(log, into=store.log("other"))


def test_target_that_is_ahead_is_refused(log, store):
    store.create("behind")
    behind = store.log("behind")
    follow(log, into=behind, until=2)

    with pytest.raises(HistoryMismatch, match=r"has version 4 .* whose head is 2.*the same up to version 2") as caught:
        follow(behind, into=log)
    assert caught.value.last_common == 2


def test_log_of_a_selection_has_smaller_patches(log, store):
    store.create("graph")
    smaller = store.log("graph")

    follow(log, into=smaller, graphs=["http://e/g"], until=3)
    follow(log, into=smaller, graphs=["http://e/g"])

    dataset = Dataset()
    follow(smaller, into=dataset)
    assert smaller.head().version == 2
    assert quads_of(dataset) == {quad for quad in AFTER_ALL if quad[3]}
    changes = []
    follow(smaller, into=changes.append)
    assert ("who", "<http://e/ada>") in [(header.key, header.value) for header in changes[1].headers]


def test_added_quads_are_written_as_nquads(store):
    store.create("people")
    log = store.log("people")
    push(log, PATCHES[0])
    written = bytearray()

    Follower(log, Applying(OutputTarget(written.extend))).catch_up()

    assert written.decode() == '<http://e/s> <http://e/p> "1" .\n_:b <http://e/p> "01"^^<http://e/n> <http://e/g> .\n'


def test_deletes_cannot_be_written_as_nquads(log):
    with pytest.raises(UsageError, match="version 2 deletes"):
        Follower(log, Applying(OutputTarget(bytearray().extend))).catch_up()


@pytest.mark.parametrize("format", ["rdf-patch", "jelly-patch"])
def test_changes_are_written_as_patches(log, format):
    from patchlog import patch

    written = bytearray()

    Follower(log, Applying(OutputTarget(written.extend, format), Selection(graphs={""}))).catch_up()

    assert set(patch.apply(patch.read(bytes(written), format), [])) == {(S, P, '"2"@EN', "")}


def test_live_follower_goes_on_until_it_is_stopped(log):
    stop, reached, versions = threading.Event(), threading.Event(), []

    def see(change):
        versions.append(change.record.version)
        if change.record.version == 6:
            reached.set()

    thread = threading.Thread(target=follow, args=(log, see), kwargs={"live": True, "stop": stop})
    thread.start()
    for number in range(2):
        push(log, f'TX .\nA <http://e/s> <http://e/p> "{number}" .\nTC .\n')
    assert reached.wait(60)
    stop.set()
    thread.join(60)

    assert not thread.is_alive()
    assert versions == [1, 2, 3, 4, 5, 6]


def test_what_is_no_target_is_refused(log):
    with pytest.raises(UsageError, match="a list cannot be followed into"):
        follow(log, into=[])
    with pytest.raises(UsageError, match="may be anything"):
        follow(log, into="http://127.0.0.1:1/store")


@pytest.mark.parametrize(
    "term", ["_:b", "_:a.b", '"_:b"', "<http://e/s>", "", "<<( _:a <http://e/p> <<( _:b <http://e/p> _:c )>> )>>"]
)
def test_blank_nodes_come_back_from_iris(term):
    iri = skolemised_term(term, "6f1c0000-0000-4000-8000-000000000000")

    assert "_:" not in iri.replace('"_:b"', "")
    assert deskolemised(iri) == term


def test_name_of_a_consumer_is_looked_at_before_anything_is_taken(log):
    taken = []

    with pytest.raises(UsageError, match="consumer"):
        follow(log, taken.append, consumer="a b")
    assert taken == []
