"""Followers into real stores over HTTP: Apache Jena Fuseki, and Oxigraph by the SPARQL protocol."""

import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from rdflib import Dataset

from patchlog.errors import StorageError, UsageError
from patchlog.followers.follow import follow
from patchlog.log.stores import open_store
from patchlog.places import open_log
from patchlog.rdflib_hook.contents import statements_of
from patchlog.rdflib_hook.terms import TermFormatter
from tests.stores import Store, serving_oxigraph
from tests.waiting import wait_until

FUSEKI = "org.apache.jena:jena-fuseki-server:5.6.0"
CACHE = Path(__file__).parents[2] / ".cache" / "fuseki"
CONFIGURATION = """
PREFIX fuseki: <http://jena.apache.org/fuseki#>
PREFIX ja: <http://jena.hpl.hp.com/2005/11/Assembler#>
[] a fuseki:Server .
<#service> a fuseki:Service ; fuseki:name "ds" ; fuseki:dataset [ a ja:MemoryDataset ] ;
  fuseki:endpoint [ fuseki:operation fuseki:query ; fuseki:name "query" ] ,
                  [ fuseki:operation fuseki:update ; fuseki:name "update" ] ,
                  [ fuseki:operation fuseki:gsp-rw ; fuseki:name "data" ] ,
                  [ fuseki:operation fuseki:patch ; fuseki:name "patch" ] .
"""
PATCHES = (
    (
        'TX .\nPA "e" <http://e/> .\nA <http://e/s> <http://e/p> "1" .\n'
        'A _:b <http://e/p> "01"^^<http://e/n> <http://e/g> .\nTC .\n'
    ),
    'TX .\nD <http://e/s> <http://e/p> "1" .\nA <http://e/s> <http://e/p> "q\\"\\n\\\\ü"@en .\nTC .\n',
    'TX .\nA <http://e/s> <http://e/q> "never" .\nTA .\n',
    (
        "TX .\nA <http://e/t> <http://e/p> _:b <http://e/g> .\n"
        'D _:b <http://e/p> "01"^^<http://e/n> <http://e/g> .\nTC .\n'
    ),
)


class Fuseki(Store):
    """A Fuseki whose dataset is in memory, in a process of its own."""

    def __init__(self, folder):
        (folder / "config.ttl").write_text(CONFIGURATION)
        self._folder, self._jar = folder, _fuseki_jar()
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self._port = probe.getsockname()[1]
        super().__init__(f"http://127.0.0.1:{self._port}/ds")
        self.start()

    def start(self):
        output = self._folder / "log"
        with output.open("ab") as log:
            self._process = subprocess.Popen(
                ["java", "-jar", str(self._jar), "--localhost", "--port", str(self._port), "--config", "config.ttl"],
                cwd=self._folder,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + 60
        while True:
            try:
                self.quads()
                break
            except httpx.HTTPError:
                assert self._process.poll() is None, output.read_text()
                assert time.monotonic() < deadline, output.read_text()
                time.sleep(0.2)

    def kill(self):
        self._process.kill()
        self._process.wait()


@pytest.fixture(scope="module")
def fuseki(tmp_path_factory):
    store = Fuseki(tmp_path_factory.mktemp("fuseki"))
    try:
        yield store
    finally:
        store.client.close()
        store.kill()


def _fuseki_jar():
    """Fetched whole, and then put in its place: another worker may be looking for it."""
    name = "-".join(FUSEKI.split(":")[1:]) + ".jar"
    jar = CACHE / name
    if not jar.exists():
        missing = [program for program in ("java", "mvn") if shutil.which(program) is None]
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            fetched = missing or subprocess.run(
                ["mvn", "-B", "-q", "dependency:copy", f"-Dartifact={FUSEKI}", f"-DoutputDirectory={folder}"],
                capture_output=True,
                text=True,
                check=False,
            )
            if (fetched_jar := Path(folder) / name).exists():
                fetched_jar.replace(jar)
        if not jar.exists():
            reason = f"no Fuseki here: {missing or fetched.stdout}"
            (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    return jar


@pytest.fixture
def oxigraph():
    with serving_oxigraph() as server:
        store = Store(f"http://127.0.0.1:{server.server_port}")
        store.server = server
        yield store
        store.client.close()


@pytest.fixture
def log():
    store = open_store("memory:")
    store.create("people")
    log = store.log("people")
    for patch in PATCHES:
        push(log, patch)
    yield log
    store.close()


def push(log, text):
    log.append([text.encode()], format="rdf-patch")


def expected(log):
    dataset = Dataset()
    follow(log, into=dataset)
    quads = map(TermFormatter().statement, statements_of(dataset))
    return {quad if len(quad) == 4 else (*quad, "") for quad in quads}


def without_labels(quads):
    return {tuple("_:" if term.startswith("_:") else term for term in quad) for quad in quads}


@pytest.mark.parametrize("prefix", ["", "sparql:"])
def test_oxigraph_has_what_the_log_says(log, oxigraph, prefix):
    follower = follow(log, into=f"{prefix}{oxigraph.base}/update")

    assert follower.position == 4
    assert oxigraph.quads() == expected(log)
    follower.close()


def test_position_is_in_the_store(log, oxigraph):
    follow(log, into=f"{oxigraph.base}/update", until=2).close()
    oxigraph.server.updates = 0

    follow(log, into=f"{oxigraph.base}/update").close()

    assert oxigraph.server.updates == 2
    assert oxigraph.quads() == expected(log)


def test_large_patch_takes_several_requests_and_ends_whole(log, oxigraph):
    adds = "".join(f"A <http://e/s{number}> <http://e/p> _:b{number % 7} .\n" for number in range(12_000))
    push(log, f"TX .\n{adds}TC .\n")

    follow(log, into=f"{oxigraph.base}/update").close()

    assert oxigraph.server.updates > 6
    assert oxigraph.quads() == expected(log)


def test_generalized_statement_names_its_version(log, oxigraph):
    push(log, 'TX .\nA "literal" <http://e/p> "x" .\nTC .\n')

    with pytest.raises(UsageError, match=r"version 5: .*generalized"):
        follow(log, into=f"{oxigraph.base}/update")

    assert oxigraph.quads() == expected(log) - {('"literal"', "<http://e/p>", '"x"', "")}


def test_store_that_is_away_is_a_transient_error(log):
    with pytest.raises(StorageError) as caught:
        follow(log, into="sparql:http://127.0.0.1:1/update")

    assert caught.value.is_transient


@pytest.mark.peer
@pytest.mark.parametrize("door", ["update", "data", "patch"])
def test_fuseki_has_what_the_log_says(log, fuseki, door):
    fuseki.clear()

    follow(log, into=f"{fuseki.base}/{door}", until=2).close()
    follower = follow(log, into=f"{fuseki.base}/{door}")

    found = fuseki.quads()
    follower.close()
    assert follower.position == 4
    # Fuseki shows other labels in its answers than it was given by a patch; they stay the same nodes inside.
    assert (without_labels(found) if door == "patch" else found) == (
        without_labels(expected(log)) if door == "patch" else expected(log)
    )


def forget(log):
    """Go on, and forget what a follower of the first two patches still lacks: a graph, too."""
    push(log, "TX .\nD <http://e/t> <http://e/p> _:b <http://e/g> .\nA <http://e/t> <http://e/p> _:b .\nTC .\n")
    log.snapshots.build()
    log.truncate_before(log.head().version + 1, force=True)
    push(log, "TX .\nA <http://e/u> <http://e/p> _:b <http://e/h> .\nTC .\n")


def test_store_begins_again_with_a_snapshot_where_patches_are_gone(log, oxigraph):
    follow(log, into=f"{oxigraph.base}/update", until=2).close()

    forget(log)
    with follow(log, into=f"{oxigraph.base}/update") as follower:
        assert follower.position == 6

    assert oxigraph.quads() == expected(log)


MINE = "<http://e/mine> <http://e/p> <http://e/o>"


def check_that_others_are_not_replaced(log, store, door):
    with pytest.raises(UsageError, match="has quads that are not of this log"):
        follow(log, into=f"{store.base}/{door}")
    assert ("<http://e/mine>", "<http://e/p>", "<http://e/o>", "") in store.quads()

    follow(log, into=f"{store.base}/{door}", replace=True).close()
    assert without_labels(store.quads()) == without_labels(expected(log))


def test_snapshot_takes_the_place_of_what_others_have_only_where_that_is_said(log, oxigraph):
    log.snapshots.build()
    oxigraph.server.store.update(f"INSERT DATA {{ {MINE} }}")

    check_that_others_are_not_replaced(log, oxigraph, "update")


def test_snapshot_of_one_log_does_not_take_the_place_of_another_log(log, oxigraph):
    follow(log, into=f"{oxigraph.base}/update", until=2).close()
    position = "GRAPH <urn:patchlog:positions> { <urn:uuid:another> <urn:patchlog:position> 7 }"
    oxigraph.server.store.update(f"INSERT DATA {{ {MINE} . {position} }}")
    forget(log)

    check_that_others_are_not_replaced(log, oxigraph, "update")


@pytest.mark.peer
@pytest.mark.parametrize("door", ["update", "patch"])
def test_snapshot_takes_the_place_of_what_a_fuseki_has_only_where_that_is_said(log, fuseki, door):
    fuseki.clear()
    log.snapshots.build()
    update = {"content": f"INSERT DATA {{ {MINE} }}", "headers": {"Content-Type": "application/sparql-update"}}
    fuseki.client.post(f"{fuseki.base}/update", **update).raise_for_status()

    check_that_others_are_not_replaced(log, fuseki, door)


class Failing:
    """A store that refuses one of its updates."""

    def __init__(self, store, number):
        self.query = store.query
        self._update, self._left = store.update, number

    def update(self, text):
        self._left -= 1
        if self._left == 0:
            raise ValueError("the disk is full")
        self._update(text)


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_snapshot_that_breaks_off_is_begun_again(log, oxigraph, number):
    follow(log, into=f"{oxigraph.base}/update", until=2).close()
    adds = "".join(f"A <http://e/s{number}> <http://e/p> _:b{number % 7} .\n" for number in range(12_000))
    push(log, f"TX .\n{adds}TC .\n")
    forget(log)
    store, oxigraph.server.store = oxigraph.server.store, Failing(oxigraph.server.store, number)

    with pytest.raises(UsageError, match="the disk is full"):
        follow(log, into=f"{oxigraph.base}/update")
    oxigraph.server.store = store
    with follow(log, into=f"{oxigraph.base}/update") as follower:
        assert follower.position == 7

    assert oxigraph.quads() == expected(log)


@pytest.mark.peer
@pytest.mark.parametrize("door", ["update", "data", "patch"])
def test_fuseki_begins_again_with_a_snapshot_where_patches_are_gone(log, fuseki, door):
    fuseki.clear()
    follow(log, into=f"{fuseki.base}/{door}", until=2).close()

    forget(log)
    with follow(log, into=f"{fuseki.base}/{door}") as follower:
        assert follower.position == 6

    found = fuseki.quads()
    assert (without_labels(found) if door == "patch" else found) == (
        without_labels(expected(log)) if door == "patch" else expected(log)
    )


@pytest.mark.peer
@pytest.mark.parametrize("door", ["update", "data", "patch"])
def test_fuseki_goes_on_from_its_position(log, fuseki, door):
    fuseki.clear()
    follow(log, into=f"{fuseki.base}/{door}").close()
    push(log, "TX .\nD <http://e/t> <http://e/p> _:b <http://e/g> .\nTC .\n")

    follower = follow(log, into=f"{fuseki.base}/{door}")

    follower.close()
    assert follower.position == 5
    assert fuseki.quads() == expected(log)


@pytest.mark.peer
def test_commands_of_the_page_keep_a_fuseki_in_step(log, fuseki, running_service, command):
    page = (Path(__file__).parents[2] / "docs" / "replication.md").read_text()
    lines = re.findall(r"^patchlog (follow .* --into http://localhost:3030/.*)$", page, re.MULTILINE)
    url = f"{running_service}/logs/fuseki-{time.monotonic_ns()}"
    with open_log(url, creates=True) as theirs:
        follow(log, into=theirs).close()

    for line in lines:
        fuseki.clear()
        words = line.replace("http://localhost:8080/logs/people", url).replace("http://localhost:3030/ds", fuseki.base)
        done = command(*words.split(), "--once")
        assert done.returncode == 0, done.stderr
        assert without_labels(fuseki.quads()) == without_labels(expected(log))

    assert len(lines) == 2


@pytest.mark.peer
@pytest.mark.parametrize("door", ["update", "data", "patch"])
def test_fuseki_that_restarts_empty_under_a_live_follower_ends_whole(log, fuseki, door):
    fuseki.clear()
    stop = threading.Event()
    with ThreadPoolExecutor(1) as threads:
        following = threads.submit(follow, log, f"{fuseki.base}/{door}", live=True, stop=stop)
        try:
            wait_until(lambda: without_labels(fuseki.quads()) == without_labels(expected(log)))
            fuseki.kill()
            fuseki.start()
            for number in range(2):
                push(log, f'TX .\nA <http://e/new> <http://e/p> "{number}" .\nTC .\n')
            wait_until(lambda: without_labels(fuseki.quads()) == without_labels(expected(log)))
        finally:
            stop.set()
        following.result(60).close()
