"""Live followers whose target, or whose log, is not where it was left."""

import subprocess
import sys
import threading
import time
import uuid
from contextlib import ExitStack, closing, suppress

import pyoxigraph
import pytest
from rdflib import Dataset

from patchlog.client import HttpLogStore
from patchlog.errors import HistoryMismatch, LogNotFound
from patchlog.followers import follower as follower_module
from patchlog.followers.follow import follow
from patchlog.log.stores import open_store
from patchlog.places import open_log
from tests.integration.test_follower_positions import contents_of
from tests.stores import Store, serving_oxigraph
from tests.waiting import wait_until

P = "<http://e/p>"


def push(log, number):
    text = f'TX .\nA <http://e/s{number}> {P} "{number}" .\nD <http://e/s{number - 2}> {P} "{number - 2}" .\nTC .\n'
    log.append([text.encode()], format="rdf-patch")


def expected(log):
    dataset = Dataset()
    follow(log, into=dataset).close()
    return contents_of(dataset)


@pytest.fixture
def log():
    store = open_store("memory:")
    store.create("people")
    log = store.log("people")
    for number in range(1, 4):
        push(log, number)
    yield log
    store.close()


@pytest.fixture
def store():
    with serving_oxigraph() as server:
        store = Store(f"http://127.0.0.1:{server.server_port}")
        store.server = server
        yield store
        store.client.close()


def is_current(store, log):
    """Whether a store has what the log says, and the position."""
    position = f'"{log.head().version}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    return store.quads() == expected(log) and position in {quad[2] for quad in store.all_quads()}


class Running:
    """A live follower in a thread."""

    def __init__(self, log, into, **options):
        self.error = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(log, into, options))
        self._thread.start()

    def _run(self, log, into, options):
        try:
            follow(log, into, live=True, stop=self._stop, **options).close()
        except Exception as error:  # noqa: BLE001  the test looks at it
            self.error = error

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join(60)
        assert not self._thread.is_alive()

    def ended(self):
        return not self._thread.is_alive()


def restarted_empty(server):
    server.store = pyoxigraph.Store()


def restarted_older(server, then):
    server.store = pyoxigraph.Store()
    server.store.extend(then)


@pytest.mark.parametrize("has_snapshot", [False, True], ids=["from-0", "snapshot"])
@pytest.mark.parametrize("door", ["update", "data", "patch"])
def test_store_that_restarts_empty_under_a_live_follower_ends_whole(log, store, door, has_snapshot):
    if has_snapshot:
        log.snapshots.build()
        log.truncate_before(3, force=True)
    with Running(log, f"{store.base}/{door}") as running:
        wait_until(lambda: is_current(store, log))
        restarted_empty(store.server)
        for number in range(4, 7):
            push(log, number)
            time.sleep(0.05)
        wait_until(lambda: is_current(store, log))
        push(log, 7)
        wait_until(lambda: is_current(store, log))

    assert running.error is None


@pytest.mark.parametrize("door", ["update", "data", "patch"])
def test_store_that_restarts_older_under_a_live_follower_ends_whole(log, store, door):
    with Running(log, f"{store.base}/{door}") as running:
        wait_until(lambda: is_current(store, log))
        then = list(store.server.store)
        for number in range(4, 8):
            push(log, number)
        wait_until(lambda: is_current(store, log))
        restarted_older(store.server, then)
        push(log, 8)
        wait_until(lambda: is_current(store, log))

    assert running.error is None


@pytest.mark.parametrize("door", ["update", "data", "patch"])
def test_store_that_restarts_under_an_idle_follower_is_filled_again(log, store, door, monkeypatch):
    monkeypatch.setattr(follower_module, "_CHECK_SECONDS", 0.2)
    with Running(log, f"{store.base}/{door}") as running:
        wait_until(lambda: is_current(store, log))
        restarted_empty(store.server)
        wait_until(lambda: is_current(store, log))

    assert running.error is None


class RestartingStore:
    """A store that loses everything after some updates, while a follower is at work."""

    def __init__(self, server, after):
        self._server, self._left, self._store = server, after, server.store

    def update(self, text):
        self._lose()
        self._store.update(text)

    def query(self, text):
        return self._store.query(text)

    def load(self, *arguments, **options):
        self._lose()
        self._store.load(*arguments, **options)

    def clear_graph(self, graph):
        self._store.clear_graph(graph)

    def dump(self, **options):
        return self._store.dump(**options)

    def remove(self, quad):
        self._store.remove(quad)

    def extend(self, quads):
        self._lose()
        self._store.extend(quads)

    def _lose(self):
        self._left -= 1
        if self._left == 0:
            self._store = pyoxigraph.Store()


@pytest.mark.parametrize("after", range(1, 9))
@pytest.mark.parametrize("door", ["update", "data", "patch"])
def test_store_that_restarts_between_two_writes_ends_whole(log, store, door, after):
    for number in range(4, 9):
        push(log, number)
    store.server.store = RestartingStore(store.server, after)

    with follow(log, into=f"{store.base}/{door}") as follower:
        assert follower.position == 8

    assert store.quads() == expected(log)


def test_two_followers_of_one_store_leave_it_whole(log, store):
    with Running(log, f"{store.base}/update") as one, Running(log, f"{store.base}/update") as other:
        for number in range(4, 30):
            push(log, number)
        wait_until(lambda: is_current(store, log))

    assert (one.error, other.error) == (None, None)


def test_store_that_keeps_no_position_is_an_error(log, store):
    with serving_oxigraph() as other, pytest.raises(Exception, match="does not keep the position"):
        follow(log, into=f"{store.base}/update", query_url=f"http://127.0.0.1:{other.server_port}/query")


def test_log_target_that_was_restored_under_a_live_follower_is_brought_up(log, tmp_path):
    copy = tmp_path / "copy.db"
    with Running(log, f"sqlite:///{copy}#copy") as running:

        def versions():
            with suppress(LogNotFound), open_log(f"sqlite:///{copy}#copy") as mine:
                return mine.head().version
            return 0  # it is still to be made

        wait_until(lambda: copy.exists() and versions() == 3)
        with closing(open_store(f"sqlite:///{copy}")) as mine:
            mine.delete("copy")
            mine.create("copy")
        push(log, 4)
        wait_until(lambda: versions() == 4)

    assert running.error is None


@pytest.mark.parametrize("count", [0, 2, 3, 5])
def test_log_that_is_made_again_is_noticed_when_a_follower_goes_on(store, count):
    logs = open_store("memory:")
    logs.create("people")
    for number in range(1, 4):
        push(logs.log("people"), number)
    with follow(logs.log("people"), into=f"{store.base}/update") as follower:
        logs.delete("people")
        logs.create("people")
        for number in range(11, 11 + count):
            push(logs.log("people"), number)

        with pytest.raises(HistoryMismatch, match="deleted and created again"):
            follower.run()
    logs.close()


@pytest.fixture
def http_log(running_service):
    name = f"live-{uuid.uuid4()}"
    with closing(HttpLogStore(running_service)) as logs:
        logs.create(name)
        log = logs.log(name)
        for number in range(1, 4):
            push(log, number)
        log.store, log.url = logs, f"{running_service}/logs/{name}"
        yield log


@pytest.mark.parametrize("count", [0, 2, 3, 5])
def test_log_that_is_made_again_under_a_live_follower_is_noticed(http_log, store, count):
    with Running(http_log.url, f"{store.base}/update") as running:
        wait_until(lambda: store.quads() == expected(http_log))
        before = store.quads()
        http_log.store.delete(http_log.name)
        http_log.store.create(http_log.name)
        for number in range(11, 11 + count):
            push(http_log, number)
        wait_until(running.ended)

    # Between the two the log is not there.
    assert isinstance(running.error, HistoryMismatch | LogNotFound), running.error
    with pytest.raises(HistoryMismatch, match="deleted and created again"):
        follow(http_log.url, into=f"{store.base}/update")
    assert store.quads() == before


def test_command_that_follows_ends_with_an_error_where_its_log_is_made_again(http_log, store, environment, tmp_path):
    command = [sys.executable, "-m", "patchlog", "follow", http_log.url, "--into", f"{store.base}/update"]
    with ExitStack() as opened:
        process = subprocess.Popen(command, env=environment, cwd=tmp_path, stderr=subprocess.PIPE)
        opened.callback(process.wait)
        opened.callback(process.kill)
        wait_until(lambda: store.quads() == expected(http_log))
        http_log.store.delete(http_log.name)
        http_log.store.create(http_log.name)
        _, said = process.communicate(timeout=60)

    assert process.returncode == 1
    assert "deleted and created again" in said.decode() or "there is no log" in said.decode()
