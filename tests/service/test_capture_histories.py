"""Captured datasets whose log, or whose store, is of another history than it was: nothing is mixed."""

import shutil
import sqlite3
from contextlib import closing

import pytest
from oxrdflib import OxigraphStore
from rdflib import Dataset, Graph, Literal, URIRef
from rdflib.plugins.stores.memory import Memory
from rdflib.plugins.stores.sparqlstore import SPARQLUpdateStore

from patchlog import capture, follow
from patchlog.client.logs import HttpLogStore
from patchlog.errors import HistoryMismatch, UsageError
from patchlog.outbox import Outbox
from patchlog.rdflib_hook.capture.staging import POSITIONS
from tests.sparql_endpoint import serving_sparql

EX = "http://example.org/"
A, B, P, G = (URIRef(EX + name) for name in "abpg")
NQUADS = {"Content-Type": "application/n-quads"}


class House:
    """A service on SQLite that is stopped, restored from a backup and started again, and a store that stays."""

    def __init__(self, start, folder):
        self._start, self._folder = start, folder
        self.database = f"sqlite:///{folder}/log.db"
        self.service = start(self.database)
        self.service.client.put("/logs/people")
        self._opened = []
        self._stores = {}

    @property
    def url(self):
        return f"{self.service.url}/logs/people"

    def dataset(self, kind="memory", **options):
        """The dataset of a program whose store outlives it where that is of a kind which does."""
        return self.opened(self.store(kind), **options)

    def opened(self, inner, **options):
        dataset = Dataset(store=capture(inner, log=self.url, **{"outbox": False} | options))
        self._opened.append(dataset)
        return dataset

    def store(self, kind):
        if kind == "memory":
            return Memory()
        store = OxigraphStore()
        store.open(str(self._folder / "store"))
        return store

    def log_content(self):
        return content(self.dataset())

    def patches(self):
        answer = self.service.client.get("/logs/people/patches", headers={"Accept": "application/json"})
        return [patch["id"] for patch in answer.json()["patches"]]

    def create_again(self):
        with closing(HttpLogStore(self.service.url)) as logs:
            logs.delete("people")
            logs.create("people")

    def back_up(self):
        with closing(sqlite3.connect(self._folder / "log.db")) as there, closing(self._copy()) as copy:
            there.backup(copy)

    def restore(self):
        port = self.service.port
        self.service.end()
        for old in self._folder.glob("log.db*"):
            old.unlink()
        shutil.copy(self._folder / "backup.db", self._folder / "log.db")
        self.service = self._start(self.database, port=port)

    def _copy(self):
        return sqlite3.connect(self._folder / "backup.db")

    def close(self):
        for dataset in self._opened:
            dataset.close()


@pytest.fixture
def house(start, tmp_path):
    one = House(start, tmp_path)
    yield one
    one.close()


def content(dataset):
    names = {name: str(iri) for name, iri in dataset.store.namespaces() if name in ("ex", "old")}
    return {(s, p, o, getattr(g, "identifier", g)) for s, p, o, g in dataset.quads()}, names


def values(dataset):
    return sorted(int(value) for value in dataset.objects(A, P))


def commit(dataset, *numbers):
    for number in numbers:
        dataset.add((A, P, Literal(number)))
        dataset.commit()


def another_history(house, kind):
    """Let the log have another history than the program, whose dataset is at version 3, with 1, 2 and 3."""
    if kind.startswith("created again"):
        house.create_again()
    elif kind == "replaced by an import":
        jelly = {"Accept": "application/x-jelly-rdf-patch"}
        patches = house.service.client.get("/logs/people/patches", headers=jelly).content
        house.create_again()
        house.service.client.post(
            "/logs/people/patches", content=patches, headers={"Content-Type": jelly["Accept"]}
        ).raise_for_status()
    else:
        house.restore()
    if kind.endswith("written to"):
        commit(house.dataset(), 20, 30, 40)
    elif kind.endswith("with as many patches"):
        commit(house.dataset(), *([20, 30] if kind.startswith("restored") else [10, 20, 30]))


HISTORIES = [
    "created again",
    "created again with as many patches",
    "created again and written to",
    "restored",
    "restored with as many patches",
    "restored and written to",
    "replaced by an import",
]


def prepared(house, kind):
    dataset = house.dataset(kind)
    dataset.bind("old", EX + "old/")
    commit(dataset, 1)
    house.back_up()
    commit(dataset, 2)
    dataset.add((B, P, Literal("in a graph"), G))
    commit(dataset, 3)
    return dataset


@pytest.mark.parametrize("history", HISTORIES)
def test_program_that_goes_on_does_not_mix_two_histories(house, history):
    dataset = prepared(house, "memory")
    another_history(house, history)
    patches, before = house.patches(), content(dataset)

    if history != "replaced by an import":  # there the next patch goes on the same history
        dataset.add((A, P, Literal(4)))
        with pytest.raises(HistoryMismatch, match="log"):
            dataset.commit()
        dataset.rollback()
    with pytest.raises(HistoryMismatch):
        dataset.store.pull()

    assert (house.patches(), content(dataset)) == (patches, before)
    dataset.add((A, P, Literal(5)))
    dataset.store.reload()
    dataset.commit()
    assert content(dataset) == house.log_content()
    assert 5 in values(dataset)
    assert (4 in values(dataset)) is False


@pytest.mark.parametrize("history", HISTORIES)
def test_program_makes_the_log_equal_to_its_store_where_somebody_says_so(house, history):
    dataset = prepared(house, "memory")
    another_history(house, history)
    patches = house.patches()
    dataset.add((A, P, Literal(5)))
    with pytest.raises(HistoryMismatch):
        dataset.store.pull()

    dataset.store.republish(headers={"why": "restored"})

    assert len(house.patches()) == len(patches) + 1
    assert values(dataset) == [1, 2, 3, 5]
    assert content(dataset) == house.log_content()
    commit(dataset, 6)
    assert content(dataset) == house.log_content()


@pytest.mark.parametrize(
    ("history", "way"),
    [*((history, "reload") for history in HISTORIES), *((history, "republish") for history in HISTORIES[::3])],
)
def test_store_that_outlives_its_program_is_not_opened_on_another_history(house, history, way):
    prepared(house, "oxigraph").close()
    another_history(house, history)
    patches, there = house.patches(), house.log_content()

    inner = house.store("oxigraph")
    with pytest.raises(HistoryMismatch, match="log"):
        capture(inner, log=house.url)
    assert house.patches() == patches
    dataset = house.opened(inner, mismatch=way)

    if way == "reload":
        assert content(dataset) == there
    else:
        assert values(dataset) == [1, 2, 3]
    assert content(dataset) == house.log_content()
    commit(dataset, 6)
    dataset.close()
    assert content(house.dataset("oxigraph")) == house.log_content()


def test_empty_log_that_was_created_again_is_not_the_one_that_began_with_a_dataset(house):
    quad = f'<{EX}a> <{EX}p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
    house.service.client.put("/logs/people/snapshots/0", content=quad, headers=NQUADS).raise_for_status()
    dataset = house.dataset()
    assert (dataset.store.position, values(dataset)) == (0, [1])
    house.create_again()

    dataset.add((A, P, Literal(2)))
    with pytest.raises(HistoryMismatch, match="created again"):
        dataset.commit()

    assert house.patches() == []


def test_log_that_was_restored_to_where_the_program_is_is_gone_on_with(house):
    dataset = house.dataset()
    commit(dataset, 1)
    house.back_up()
    commit(house.dataset(), 2)
    house.restore()

    commit(dataset, 3)
    dataset.store.pull()

    assert values(dataset) == [1, 3]
    assert content(dataset) == house.log_content()


def test_ways_out_wait_for_a_decision_on_what_waits(house, tmp_path):
    outbox = tmp_path / "outbox.db"
    dataset = house.dataset(outbox=outbox)
    commit(dataset, 1)
    port = house.service.port
    house.service.end()
    commit(dataset, 2)
    house.service = house._start(f"sqlite:///{tmp_path}/other.db", port=port)
    house.service.client.put("/logs/people")

    with pytest.raises(HistoryMismatch):
        dataset.store.pull()
    for way in (dataset.store.reload, dataset.store.republish):
        with pytest.raises(UsageError, match="wait in the outbox"):
            way()
    dataset.store.discard()
    dataset.store.republish()

    assert values(dataset) == [1, 2]
    assert content(dataset) == house.log_content()
    with Outbox(outbox) as opened:
        assert opened.waiting() == []


@pytest.mark.parametrize("way", ["discard", "on top"])
def test_what_waits_for_a_log_that_was_restored_is_refused(house, tmp_path, way):
    dataset = house.dataset(outbox=tmp_path / "outbox.db")
    commit(dataset, 1)
    house.back_up()
    commit(dataset, 2)
    house.service.end()
    commit(dataset, 3)
    house.restore()
    commit(house.dataset(), 20)

    with pytest.raises(HistoryMismatch):
        dataset.store.pull()
    with pytest.raises(HistoryMismatch):
        commit(dataset, 4)
    assert [patch.state for patch in dataset.store.pending()] == ["refused"]
    assert values(house.dataset()) == [1, 20]
    dataset.rollback()
    if way == "discard":
        dataset.store.discard()
    else:
        with pytest.raises(HistoryMismatch):  # it is sent, and the store is still of the other history
            dataset.store.deliver(on_top=True)
    dataset.store.reload()

    assert values(dataset) == ([1, 20] if way == "discard" else [1, 3, 20])
    assert content(dataset) == house.log_content()


# Stores that went back


def test_store_that_was_restored_is_caught_up_when_it_is_opened_again(house, tmp_path):
    dataset = house.dataset("oxigraph")
    commit(dataset, 1)
    dataset.close()
    shutil.copytree(tmp_path / "store", tmp_path / "copy")
    dataset = house.dataset("oxigraph")
    commit(dataset, 2, 3)
    dataset.remove((A, P, Literal(1)))
    dataset.commit()
    dataset.close()
    shutil.rmtree(tmp_path / "store")
    (tmp_path / "copy").rename(tmp_path / "store")

    dataset = house.dataset("oxigraph")

    assert values(dataset) == [2, 3]
    assert content(dataset) == house.log_content()


@pytest.fixture
def endpoint():
    with serving_sparql() as server:
        yield server


def remote(house, endpoint, **options):
    url = f"http://127.0.0.1:{endpoint.server_port}"
    return house.opened(SPARQLUpdateStore(f"{url}/query", f"{url}/update", autocommit=False), **options)


@pytest.mark.parametrize("call", ["commit", "pull", "both"])
def test_endpoint_that_began_with_nothing_under_a_program_is_caught_up(house, endpoint, call):
    dataset = remote(house, endpoint)
    dataset.bind("ex", EX)
    commit(dataset, 1, 2)
    endpoint.store.clear()

    if call != "commit":
        dataset.add((A, P, Literal(3)))
        dataset.store.pull()
        assert values(dataset) == [1, 2, 3]
    if call != "pull":
        commit(dataset, 3)
    else:
        dataset.rollback()

    assert content(dataset) == house.log_content()
    assert values(remote(house, endpoint)) == values(dataset)


def test_endpoint_that_was_restored_under_a_program_is_caught_up(house, endpoint):
    dataset = remote(house, endpoint)
    commit(dataset, 1)
    before = list(endpoint.store)
    commit(dataset, 2)
    dataset.remove((A, P, Literal(1)))
    dataset.commit()
    endpoint.store.clear()
    endpoint.store.extend(before)

    commit(dataset, 3)

    assert values(dataset) == [2, 3]
    assert content(dataset) == house.log_content()


def test_endpoint_that_has_lost_its_position_and_not_its_contents_is_refused(house, endpoint):
    dataset = remote(house, endpoint)
    commit(dataset, 1, 2)
    endpoint.store.update(f"DROP GRAPH <{POSITIONS}>")

    with pytest.raises(HistoryMismatch, match="no longer says"):
        dataset.store.pull()
    dataset.store.reload()
    commit(dataset, 3)

    assert values(dataset) == [1, 2, 3]
    assert content(dataset) == house.log_content()


# Stores of the version before


def test_store_that_knows_a_number_alone_is_opened_and_its_position_completed(house, endpoint):
    dataset = remote(house, endpoint)
    commit(dataset, 1, 2)
    hashes = f"GRAPH <{POSITIONS}> {{ ?log <urn:patchlog:history> ?hash }}"
    endpoint.store.update(f"DELETE WHERE {{ {hashes} }}")

    again = remote(house, endpoint)

    head = house.service.client.get("/logs/people").json()["head"]
    (found,) = endpoint.store.query(f"SELECT ?hash {{ {hashes} }}")
    assert found["hash"].value == f"2:{head['hash']}"
    assert content(again) == house.log_content()


def test_endpoint_that_is_emptied_between_a_look_and_a_change_is_caught_up_the_next_time(house, endpoint):
    dataset = remote(house, endpoint)
    dataset.bind("ex", EX)
    commit(dataset, 1, 2)
    workspace = dataset.store._workspace
    keep = workspace._write

    def write(changes):
        changes = list(changes)
        endpoint.store.clear()
        workspace._write = keep
        keep(changes)

    workspace._write = write
    commit(dataset, 3)
    commit(dataset, 4)

    assert values(dataset) == [1, 2, 3, 4]
    assert content(dataset) == house.log_content()


@pytest.mark.parametrize("take_turns", [("capture", "follow", "capture"), ("follow", "capture", "follow")])
def test_follower_and_captured_dataset_go_on_where_the_other_was(house, take_turns):
    for number, turn in enumerate(take_turns, 1):
        inner = house.store("oxigraph")
        if turn == "capture":
            dataset = house.opened(inner)
            commit(dataset, 10 * number)
            assert content(dataset) == house.log_content()
            dataset.close()
        else:
            commit(house.dataset(), 10 * number)
            follow(house.url, into=Dataset(store=inner))
            inner.close()

    assert values(house.dataset("oxigraph")) == [10, 20, 30]


def test_store_that_followed_another_log_begins_a_new_one_with_its_contents(house):
    house.service.client.put("/logs/others")
    other = Dataset(store=capture(log=f"{house.service.url}/logs/others", outbox=False))
    commit(other, 1, 2)
    other.close()
    inner = house.store("oxigraph")
    follow(f"{house.service.url}/logs/others", into=Dataset(store=inner))

    dataset = house.opened(inner)

    assert (values(dataset), dataset.store.position) == ([1, 2], 1)
    assert content(dataset) == house.log_content()


def test_store_that_has_a_part_of_a_log_is_not_captured(house):
    commit(house.dataset(), 1)
    inner = house.store("oxigraph")
    follow(house.url, into=Dataset(store=inner), graphs=[EX + "g"])

    with pytest.raises(UsageError, match="a part of the log"):
        capture(inner, log=house.url)


@pytest.mark.parametrize("history", ["created again and written to", "restored"])
def test_store_that_knows_a_number_alone_is_not_opened_where_that_cannot_be(house, history):
    prepared(house, "oxigraph").close()
    inner = house.store("oxigraph")
    inner.remove((None, URIRef("urn:patchlog:history"), None), None)
    another_history(house, history)

    with pytest.raises(HistoryMismatch):
        capture(inner, log=house.url)


@pytest.mark.parametrize("value", ["x", "-1", "9223372036854775808"])
def test_store_whose_position_is_damaged_is_not_captured(house, value):
    prepared(house, "oxigraph").close()
    inner = house.store("oxigraph")
    graph = Graph(inner, URIRef("urn:patchlog:positions"))
    graph.set((next(graph.subjects()), URIRef("urn:patchlog:position"), Literal(value)))

    with pytest.raises(UsageError, match="is not a position of a log"):
        capture(inner, log=house.url)
