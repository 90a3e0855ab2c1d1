"""Followers that are killed at work, again and again: each goes on where it was, without a gap or a repeat."""

import os
import random
import re
import subprocess
import sys
import time
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import httpx
import pytest
from oxrdflib import OxigraphStore
from rdflib import Dataset

from patchlog import follow
from patchlog.client import HttpLogStore
from patchlog.errors import PatchLogError
from patchlog.places import open_log
from patchlog.rdflib_hook.contents import statements_of
from patchlog.rdflib_hook.terms import TermFormatter
from tests.integration.test_follow_stores import Store, serving_oxigraph

HOUSE = Path(__file__).parents[2]
EX = "http://example.org/"
P, G = f"<{EX}p>", f"<{EX}g>"
POSITION = re.compile(r'INSERT DATA .*<urn:patchlog:position> "(\d+)"')

PATCHES = 150


@pytest.fixture(scope="module")
def long_log(running_service):
    """A log in which a patch that is missing, or comes twice, shows."""
    text = ""
    for number in range(PATCHES):
        text += (
            f'TX .\nD <{EX}last> {P} "{number - 1}" .\nA <{EX}last> {P} "{number}" .\n'
            f'A _:b{number % 7} {P} "{number}" {G} .\nTC .\nZ .\n'
        )
    with closing(HttpLogStore(running_service)) as store:
        store.create(f"long-{os.getpid()}")
        store.log(f"long-{os.getpid()}").append([text.encode()], format="rdf-patch")
    return f"{running_service}/logs/long-{os.getpid()}"


def contents(dataset):
    quads = map(TermFormatter().statement, statements_of(dataset))
    return {quad for quad in quads if quad[3] != "<urn:patchlog:positions>"}


def expected(url):
    dataset = Dataset()
    follow(url, into=dataset).close()
    return contents(dataset)


def killed_again_and_again(begin, position):
    """Kill a follower when it has come a little further, until it comes to the end. Returns how often that was."""
    kills, chance = 0, random.Random(7)
    deadline = time.monotonic() + 120
    while True:
        aim = position() + chance.randrange(PATCHES // 6, PATCHES // 3)
        process = begin()
        try:
            while process.poll() is None and position() < aim and time.monotonic() < deadline:
                time.sleep(0.002)
            if aim >= PATCHES or process.poll() is not None:
                assert process.wait(60) == 0
                return kills
        finally:
            process.kill()
            process.wait()
        kills += 1


def following(url, target, folder):
    return subprocess.Popen(
        [sys.executable, "-m", "patchlog", "follow", url, "--into", target, "--once", "--quiet"],
        env=os.environ | {"PYTHONPATH": str(HOUSE)},
        cwd=folder,
    )


@pytest.mark.slow
@pytest.mark.parametrize("copy", ["sqlite:///copy.db#copy", "copy.jellyp", "copy.rdfp"])
def test_copy_of_a_log_goes_on_where_it_was_killed(long_log, tmp_path, monkeypatch, copy):
    monkeypatch.chdir(tmp_path)
    sizes = {
        suffix: len(httpx.get(f"{long_log}/patches", headers={"Accept": media_type}).content)
        for suffix, media_type in ((".jellyp", "application/x-jelly-rdf-patch"), (".rdfp", "application/rdf-patch"))
    }

    file = Path(copy.removeprefix("sqlite:///").partition("#")[0])

    def position():
        if not file.exists():
            return 0
        if file.suffix != ".db":  # to read all of it each time would take too long
            return file.stat().st_size * PATCHES // sizes[file.suffix]
        with suppress(PatchLogError), open_log(copy) as log:
            return log.head().version
        return 0  # it is just being made

    kills = killed_again_and_again(partial(following, long_log, copy, tmp_path), position)

    with open_log(copy) as mine, open_log(long_log) as theirs:
        head, there = mine.head(), theirs.head()
        assert (head.version, head.id, head.hash) == (there.version, there.id, there.hash)
        assert mine.verify().is_sound
    assert kills > 1


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
def test_endpoint_gets_each_patch_once_from_a_follower_that_is_killed(long_log, tmp_path):
    with serving_oxigraph() as server:
        server.store = Recorded(server.store)
        url = f"http://127.0.0.1:{server.server_port}"

        kills = killed_again_and_again(
            partial(following, long_log, f"{url}/update", tmp_path), lambda: len(server.store.versions)
        )

        store = Store(url)
        assert store.quads() == expected(long_log)
        store.client.close()
    assert server.store.versions == list(range(1, PATCHES + 1))
    assert kills > 1


@pytest.mark.slow
def test_store_on_disk_goes_on_where_its_follower_was_killed(long_log, tmp_path):
    told = tmp_path / "told"
    told.touch()

    kills = killed_again_and_again(
        partial(following_on_disk, long_log, str(tmp_path / "store"), str(told)),
        lambda: told.stat().st_size,
    )

    store = OxigraphStore()
    store.open(str(tmp_path / "store"))
    with closing(Dataset(store=store)) as dataset:
        assert contents(dataset) == expected(long_log)
    assert kills > 1


def following_on_disk(*arguments):
    return subprocess.Popen([sys.executable, __file__, *arguments], env=os.environ | {"PYTHONPATH": str(HOUSE)})


def follow_on_disk(url, folder, told):
    """Follow, and let a file grow by a byte for each version."""
    store = OxigraphStore()
    store.open(folder)
    dataset = Dataset(store=store)
    follower = follow(url, into=dataset, until=0)
    while follower.position < PATCHES:
        follower.catch_up(follower.position + 1)
        Path(told).write_bytes(b"." * follower.position)
    follower.close()
    dataset.close()


if __name__ == "__main__":  # in a process of its own
    follow_on_disk(*sys.argv[1:])
