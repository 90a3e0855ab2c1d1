"""Followers whose next patch the log has forgotten: they begin again with a snapshot, and end the same."""

import pytest
from rdflib import Dataset, Graph, URIRef
from rdflib.plugins.stores.memory import Memory

from patchlog import capture
from patchlog.errors import PositionGone, UsageError
from patchlog.followers.changes import Applying
from patchlog.followers.follow import follow
from patchlog.followers.follower import Follower
from patchlog.followers.output_target import OutputTarget
from patchlog.followers.snapshots import snapshots_of
from patchlog.log.stores import open_store
from patchlog.rdflib_hook.contents import statements_of
from patchlog.rdflib_hook.terms import TermFormatter

BEFORE = (
    'TX .\nPA "old" <http://e/old/> .\nPA "e" <http://e/> .\nA <http://e/s> <http://e/p> "1"@en .\n'
    'A _:b <http://e/p> "01"^^<http://e/n> <http://e/g> .\nTC .\n'
)
FORGOTTEN = (
    (
        'TX .\nPD "old" .\nPA "e" <http://e/new/> .\nD <http://e/s> <http://e/p> "1"@en .\n'
        'D _:b <http://e/p> "01"^^<http://e/n> <http://e/g> .\nTC .\n'
    ),
    'TX .\nA <http://e/s> <http://e/p> "1"@EN .\nA _:b <http://e/p> "1"^^<http://e/n> <http://e/h> .\nTC .\n',
)
AFTER = "TX .\nA <http://e/t> <http://e/p> _:b <http://e/g> .\nTC .\n"
AFTER_ALL = {
    ("<http://e/s>", "<http://e/p>", '"1"@EN', ""),
    ("_:b", "<http://e/p>", '"1"^^<http://e/n>', "<http://e/h>"),
    ("<http://e/t>", "<http://e/p>", "_:b", "<http://e/g>"),
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
    push(log, BEFORE)
    return log


def push(log, text):
    log.append([text.encode()], format="rdf-patch")


def forget(log):
    """Go on, and forget what the followers still lack."""
    for text in FORGOTTEN:
        push(log, text)
    log.snapshots.build()
    log.truncate_before(4, force=True)
    push(log, AFTER)


def quads_of(dataset):
    quads = map(TermFormatter().statement, statements_of(dataset))
    return {quad if len(quad) == 4 else (*quad, "") for quad in quads if quad[3:] != ("<urn:patchlog:positions>",)}


def captured(store):
    store.create("own")
    return capture(log=store.log("own"))


@pytest.mark.parametrize("kind", ["memory", "captured"])
def test_dataset_is_changed_to_what_the_snapshot_has(log, store, kind):
    dataset = Dataset(store=Memory() if kind == "memory" else captured(store))
    follow(log, into=dataset)
    dataset.add((URIRef("http://e/own"), URIRef("http://e/p"), URIRef("http://e/o")))

    forget(log)
    follower = follow(log, into=dataset)

    assert follower.position == 4
    assert quads_of(dataset) == AFTER_ALL
    assert dataset.store.namespace("e") == URIRef("http://e/new/")
    assert dataset.store.namespace("old") is None


def test_patches_take_prefixes_from_a_captured_dataset(log, store):
    dataset = Dataset(store=captured(store))
    follow(log, into=dataset)

    push(log, FORGOTTEN[0])
    follow(log, into=dataset)

    assert dataset.store.namespace("old") is None
    again = Dataset()
    follow(store.log("own"), into=again)
    assert quads_of(again) == set()
    assert (again.store.namespace("old"), again.store.namespace("e")) == (None, URIRef("http://e/new/"))


def test_graph_is_changed_to_its_part_of_the_snapshot(log):
    graph = Graph()
    follow(log, into=graph, graphs=[""])

    forget(log)
    follow(log, into=graph, graphs=[""])

    assert quads_of(graph) == {quad for quad in AFTER_ALL if not quad[3]}


def test_log_of_a_selection_goes_on_with_what_has_changed_meanwhile(log, store):
    store.create("graphs")
    smaller, graphs = store.log("graphs"), ["http://e/g", "http://e/h"]
    follow(log, into=smaller, graphs=graphs)

    forget(log)
    follow(log, into=smaller, graphs=graphs)
    follow(log, into=smaller, graphs=graphs)

    dataset = Dataset()
    follow(smaller, into=dataset)
    assert smaller.head().version == 3
    assert quads_of(dataset) == {quad for quad in AFTER_ALL if quad[3]}


def test_copy_cannot_go_on_where_patches_are_gone(log, store):
    store.create("copy")
    follow(log, into=store.log("copy"))

    forget(log)

    with pytest.raises(PositionGone):
        follow(log, into=store.log("copy"))


def test_function_gets_the_snapshot_where_it_takes_one(log):
    changes, datasets = [], []
    forget(log)

    follow(log, into=changes.append, after=1, on_dataset=lambda dataset: datasets.append(set(dataset.quads)))

    assert [change.record.version for change in changes] == [4]
    assert datasets == [AFTER_ALL - {("<http://e/t>", "<http://e/p>", "_:b", "<http://e/g>")}]
    with pytest.raises(UsageError, match="pass on_dataset="):
        follow(log, into=changes.append, after=1)


@pytest.mark.parametrize("format", ["nq", "rdf-patch", "jelly-patch"])
def test_output_that_has_begun_is_not_begun_again(log, format):
    target = Applying(OutputTarget(bytearray().extend, format))
    follower = Follower(log, target, find_snapshot=snapshots_of(log))
    follower.catch_up()

    forget(log)

    with pytest.raises(UsageError, match="cannot be taken back"):
        follower.catch_up()
