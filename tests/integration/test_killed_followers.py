"""Followers that are killed at work, again and again: each goes on where it was, without a gap or a repeat."""

import os
import random
import re
import subprocess
import sys
import time
import uuid
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import pytest
from oxrdflib import OxigraphStore
from rdflib import Dataset

from patchlog import follow
from patchlog.client import HttpLogStore
from patchlog.errors import PatchLogError
from patchlog.followers.changes import Applying
from patchlog.followers.follower import Follower
from patchlog.followers.rdflib_target import RdflibTarget
from patchlog.places import open_log
from patchlog.rdflib_hook.contents import statements_of
from patchlog.rdflib_hook.terms import TermFormatter
from tests.stores import Store, serving_oxigraph

HOUSE = Path(__file__).parents[2]
EX = "http://example.org/"
P, G = f"<{EX}p>", f"<{EX}g>"
POSITION = re.compile(r'INSERT .*<urn:patchlog:position> "(\d+)".* WHERE', re.DOTALL)

PIECES, PIECE = 5, 30
PATCHES = PIECES * PIECE


class GrowingLog:
    """A log in which a patch that is missing, or comes twice, shows. It gets longer a piece at a time."""

    def __init__(self, log, url):
        self._log = log
        self.url = url

    def grow(self):
        version = self._log.head().version
        text = "".join(
            f'TX .\nD <{EX}last> {P} "{number - 1}" .\nA <{EX}last> {P} "{number}" .\n'
            f'A _:b{number % 7} {P} "{number}" {G} .\nTC .\nZ .\n'
            for number in range(version, version + PIECE)
        )
        self._log.append([text.encode()], format="rdf-patch")


@pytest.fixture
def log(running_service):
    name = f"growing-{uuid.uuid4()}"
    with closing(HttpLogStore(running_service)) as store:
        store.create(name)
        yield GrowingLog(store.log(name), f"{running_service}/logs/{name}")


def contents(dataset):
    quads = map(TermFormatter().statement, statements_of(dataset))
    return {quad for quad in quads if quad[3] != "<urn:patchlog:positions>"}


def expected(url):
    dataset = Dataset()
    follow(url, into=dataset).close()
    return contents(dataset)


def killed_again_and_again(log, begin, position):
    """Kill a follower whenever it has come a little further, and let the last one come to the end."""
    chance = random.Random(7)
    for _ in range(PIECES - 1):
        before = position()
        log.grow()
        process = begin()
        try:
            aim, deadline = before + chance.randrange(1, PIECE // 2), time.monotonic() + 60
            while position() < aim and time.monotonic() < deadline:
                time.sleep(0.002)
            assert process.poll() is None
        finally:
            process.kill()
            process.wait()
        assert aim <= position() < PATCHES
    log.grow()
    assert begin("--once").wait(60) == 0


def following(url, target, folder, *options):
    return subprocess.Popen(
        [sys.executable, "-m", "patchlog", "follow", url, "--into", target, "--quiet", *options],
        env=os.environ | {"PYTHONPATH": str(HOUSE)},
        cwd=folder,
    )


@pytest.mark.slow
@pytest.mark.parametrize("copy", ["sqlite:///copy.db#copy", "copy.jellyp", "copy.rdfp"])
def test_copy_of_a_log_goes_on_where_it_was_killed(log, tmp_path, monkeypatch, copy):
    monkeypatch.chdir(tmp_path)
    file = Path(copy.removeprefix("sqlite:///").partition("#")[0])

    def position():
        if not file.exists():
            return 0
        with suppress(PatchLogError), open_log(copy) as mine:
            return mine.head().version
        return 0  # it is just being made

    killed_again_and_again(log, partial(following, log.url, copy, tmp_path), position)

    with open_log(copy) as mine, open_log(log.url) as theirs:
        head, there = mine.head(), theirs.head()
        assert (head.version, head.id, head.hash) == (there.version, there.id, there.hash)
        assert mine.verify().is_sound


class Recorded:
    """A store, and the positions that its updates have set."""

    def __init__(self, store):
        self.versions = []
        self.query = store.query
        self._update = store.update

    def update(self, text):
        self._update(text)
        self.versions += map(int, POSITION.findall(text))


@pytest.mark.slow
def test_endpoint_gets_each_patch_once_from_a_follower_that_is_killed(log, tmp_path):
    with serving_oxigraph() as server:
        server.store = Recorded(server.store)
        url = f"http://127.0.0.1:{server.server_port}"

        killed_again_and_again(
            log, partial(following, log.url, f"{url}/update", tmp_path), lambda: len(server.store.versions)
        )

        store = Store(url)
        assert store.quads() == expected(log.url)
        store.client.close()
    assert server.store.versions == list(range(1, PATCHES + 1))


@pytest.mark.slow
def test_store_on_disk_goes_on_where_its_follower_was_killed(log, tmp_path):
    told = tmp_path / "told"
    told.touch()

    killed_again_and_again(
        log, partial(following_on_disk, log.url, str(tmp_path / "store"), str(told)), lambda: told.stat().st_size
    )

    store = OxigraphStore()
    store.open(str(tmp_path / "store"))
    with closing(Dataset(store=store)) as dataset:
        assert contents(dataset) == expected(log.url)


def following_on_disk(*arguments):
    return subprocess.Popen([sys.executable, __file__, *arguments], env=os.environ | {"PYTHONPATH": str(HOUSE)})


def follow_on_disk(url, folder, told, *once):
    """Follow, and let a file be as many bytes long as there are versions."""
    store = OxigraphStore()
    store.open(folder)
    dataset = Dataset(store=store)
    with open_log(url) as log:
        follower = Follower(log, Applying(RdflibTarget(dataset)))
        while not once or follower.position < PATCHES:
            follower.catch_up(min(follower.position + 1, log.head().version))
            Path(told).write_bytes(b"." * follower.position)
        follower.close()
    dataset.close()


if __name__ == "__main__":  # in a process of its own
    follow_on_disk(*sys.argv[1:])
