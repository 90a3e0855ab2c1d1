"""Services that are restored from a backup under those who follow their logs."""

import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from functools import partial

import pytest
from rdflib import Dataset

from patchlog.client import HttpLogStore
from patchlog.errors import HistoryMismatch
from patchlog.followers.follow import follow
from patchlog.log.tailing import tail
from tests.stores import Store, serving_oxigraph
from tests.waiting import wait_until


class Restorable:
    """A service on SQLite with a log, which can be put back to an older state."""

    def __init__(self, start, folder):
        self._start, self._folder = start, folder
        self.service = start()
        self.url = f"{self.service.url}/logs/people"
        self.service.client.put("/logs/people")
        self.grow(3)

    def grow(self, count, word="first"):
        for _ in range(count):
            number = self.head() + 1
            text = (
                f'TX .\nD <http://e/last> <http://e/p> "{number - 1}" .\nA <http://e/last> <http://e/p> "{number}" .\n'
                f'A <http://e/s{number}> <http://e/p> "{word}" .\nTC .\n'
            )
            answer = self.service.client.post(
                "/logs/people/patches", content=text, headers={"Content-Type": "application/rdf-patch"}
            )
            assert answer.status_code == 201, answer.text

    def head(self):
        return self.service.client.get("/logs/people").json()["head"]["version"]

    def back_up(self):
        """As docs/backup.md has it, while the service runs."""
        file = self._folder / "log.db"
        with closing(sqlite3.connect(file)) as there, closing(sqlite3.connect(file.with_suffix(".backup"))) as backup:
            there.backup(backup)

    def restore(self, grow=0):
        self.service.process.kill()
        self.service.process.wait()
        file = self._folder / "log.db"
        for name in ("log.db-wal", "log.db-shm"):
            (self._folder / name).unlink(missing_ok=True)
        shutil.copy(file.with_suffix(".backup"), file)
        # Nobody sees it before it has grown again, on a port of its own.
        grown = self._start(self.service.database)
        grown.client.base_url, port = grown.url, self.service.port
        self.service = grown
        self.grow(grow, "other")
        grown.process.terminate()
        grown.process.wait()
        self.service = self._start(grown.database, port=port)


@pytest.fixture
def restorable(start, tmp_path):
    return Restorable(start, tmp_path)


@pytest.fixture
def store():
    with serving_oxigraph() as server:
        store = Store(f"http://127.0.0.1:{server.server_port}")
        yield store
        store.client.close()


@pytest.mark.parametrize("grown", [0, 2, 4], ids=["behind", "level", "ahead"])
def test_live_followers_notice_that_their_service_was_restored(restorable, store, tmp_path, grown):
    restorable.back_up()
    restorable.grow(2)
    dataset, changes, stop = Dataset(), [], threading.Event()
    copy = f"sqlite:///{tmp_path}/copy.db#copy"
    tailed = []

    def tails():
        with closing(HttpLogStore(restorable.service.url)) as logs:
            for logged in tail(logs.log("people")):
                tailed.append(logged.record.version)  # noqa: PERF401  it is watched meanwhile

    into = {"dataset": dataset, "function": changes.append, "copy": copy}
    into |= {"update": f"{store.base}/update"}
    work = {name: partial(follow, restorable.url, target, live=True, stop=stop) for name, target in into.items()}
    errors = {}

    def run(name, function):
        try:
            function()
        except Exception as error:  # noqa: BLE001  the test looks at it
            errors[name] = error

    for name, function in {**work, "tail": tails}.items():
        threading.Thread(target=run, args=(name, function), daemon=True).start()
    try:
        wait_until(lambda: len(changes) == len(tailed) == 5 and len(store.quads()) == 6 and len(dataset) == 6)
        restorable.restore(grow=grown)
        wait_until(lambda: len(errors) == 5, seconds=90)
    finally:
        stop.set()

    assert {type(error) for error in errors.values()} == {HistoryMismatch}, errors
    assert (len(changes), len(tailed), len(store.quads())) == (5, 5, 6)
    with pytest.raises(HistoryMismatch) as caught:
        follow(restorable.url, into=copy)
    assert caught.value.last_common == 3


def test_follower_by_command_is_started_again_after_a_restore(restorable, store, tmp_path):
    restorable.back_up()
    restorable.grow(2)
    command = [sys.executable, "-m", "patchlog", "follow", restorable.url, "--into", f"{store.base}/update", "--once"]
    assert subprocess.run(command, cwd=tmp_path, check=False, capture_output=True).returncode == 0
    restorable.restore(grow=3)

    refused = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True)
    done = subprocess.run([*command, "--replace"], cwd=tmp_path, check=False, capture_output=True, text=True)

    assert refused.returncode == 1
    assert "it was restored and then changed" in refused.stderr
    assert "--replace" in refused.stderr
    assert done.returncode == 0, done.stderr
    followed = Dataset()
    follow(restorable.url, into=followed).close()
    assert len(store.quads()) == len(followed) == 7
    assert sum(quad[2] == '"other"' for quad in store.quads()) == 3
