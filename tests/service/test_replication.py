"""Replicas and followers of one service, written and killed at the same time: nothing is lost, and nothing doubled.

Each commit of a replica adds a quad of its own. So what was acknowledged can be held against what came of it: in the
log, and in all that follow it.
"""

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from itertools import chain
from pathlib import Path

import pytest
from rdflib import Dataset, Literal, URIRef

from patchlog import capture, follow
from patchlog.errors import ConflictError
from patchlog.outbox import Outbox
from patchlog.rdflib_hook.contents import statements_of
from patchlog.rdflib_hook.terms import TermFormatter
from tests.waiting import wait_until

HOUSE = Path(__file__).parents[2]
EX = "http://example.org/"
DONE, P, G = (URIRef(EX + name) for name in ("done", "p", "g"))
COMMITS = 20


def work(dataset, name, commits=COMMITS, is_over=None):
    """Change what others change too. Returns what was acknowledged."""
    chance = random.Random(name)
    acknowledged = []
    for number in range(commits):
        for _ in range(chance.randrange(1, 4)):
            subject, value = URIRef(f"{EX}s{chance.randrange(6)}"), Literal(chance.randrange(4))
            match chance.randrange(4):
                case 0 | 1:
                    dataset.add((subject, P, value, chance.choice((None, G))))
                case 2:
                    dataset.remove((subject, None, None, None))
                case 3:
                    dataset.bind(chance.choice("ab"), EX + chance.choice("xyz"), replace=True)
        dataset.add((DONE, P, Literal(f"{name} {number}")))
        try:
            dataset.commit()
            acknowledged.append(f"{name} {number}")
        except ConflictError:
            dataset.rollback()
            dataset.store.pull()
        if is_over is not None and is_over.wait(0.1):
            break
    return acknowledged


def contents(dataset):
    quads = map(TermFormatter().statement, statements_of(dataset))
    names = {name: str(iri) for name, iri in dataset.store.namespaces() if name in "ab"}
    return {quad for quad in quads if quad[3] != "<urn:patchlog:positions>"}, names


def done(changes):
    """What each patch says was done."""
    return [quad[2].strip('"') for change in changes for quad in change.effect.adds if quad[0] == f"<{DONE}>"]


def waiting(outbox):
    with closing(Outbox(outbox)) as opened:
        return opened.waiting()


def check(url, replicas, acknowledged):
    """All replicas are as the log says, which has what was acknowledged, once."""
    changes, followed = [], Dataset()
    follow(url, into=changes.append).close()
    follow(url, into=followed).close()
    assert Counter(done(changes)) == Counter(acknowledged)
    for replica in replicas:
        replica.store.pull()
        quads, names = contents(replica)
        wanted_quads, wanted_names = contents(followed)
        assert names == wanted_names
        assert quads - wanted_quads == wanted_quads - quads == set()
    return changes


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("conflicts", ["rebase", "last-writer-wins"])
def test_replicas_that_are_written_by_threads_converge(sqlite_log, conflicts, count):
    url = f"{sqlite_log.service.url}{sqlite_log.path}"
    with ExitStack() as opened:
        replicas = [Dataset(store=capture(log=url, conflicts=conflicts, outbox=False)) for _ in range(count)]
        for replica in replicas:
            opened.callback(replica.close)
        with ThreadPoolExecutor(count) as threads:
            acknowledged = list(threads.map(work, replicas, map(str, range(count))))

        check(url, replicas, chain.from_iterable(acknowledged))

    assert all(len(one) == COMMITS for one in acknowledged) or conflicts == "rebase"


@pytest.mark.slow
def test_replicas_in_processes_of_their_own_converge(sqlite_log):
    url = f"{sqlite_log.service.url}{sqlite_log.path}"
    writers = [in_a_process(url, name) for name in "ab"]

    said = [json.loads(writer.communicate(timeout=300)[0]) for writer in writers]

    with closing(Dataset(store=capture(log=url, outbox=False))) as replica:
        check(url, [replica], chain.from_iterable(said))
    assert all(said)


@pytest.mark.slow
def test_service_that_is_killed_at_work_loses_and_doubles_nothing(start, tmp_path):
    service = start()
    url, stop, is_over = f"{service.url}/logs/people", threading.Event(), threading.Event()
    outboxes, chance = [tmp_path / "outbox-0.db", tmp_path / "outbox-1.db"], random.Random(5)
    changes, followed = [], Dataset()
    with ExitStack() as opened:
        replicas = [Dataset(store=capture(log=url, conflicts="last-writer-wins", outbox=outbox)) for outbox in outboxes]
        for replica in replicas:
            opened.callback(replica.close)
        threads = opened.enter_context(ThreadPoolExecutor(4))
        opened.callback(stop.set)
        followers = [threads.submit(follow, url, into, live=True, stop=stop) for into in (followed, changes.append)]
        writers = [
            threads.submit(work, replica, f"writer{number}", 100_000, is_over)
            for number, replica in enumerate(replicas)
        ]
        for _ in range(2):
            time.sleep(0.5 + chance.random() / 2)
            service.process.kill()
            service.process.wait()
            time.sleep(chance.random() / 2)
            service = start(service.database, port=service.port)
        is_over.set()
        acknowledged = [tag for writer in writers for tag in writer.result(120)]

        def are_delivered():
            for replica in replicas:
                replica.store.pull()
            return not any(map(waiting, outboxes))

        wait_until(are_delivered, seconds=120)
        logged = check(url, replicas, acknowledged)
        wait_until(lambda: len(changes) >= len(logged))
        stop.set()
        for follower in followers:
            follower.result(60).close()

    assert [change.record.version for change in changes] == list(range(1, len(logged) + 1))
    assert contents(followed) == contents(replicas[0])


def in_a_process(url, name):
    return subprocess.Popen(
        [sys.executable, __file__, url, name],
        env=os.environ | {"PYTHONPATH": str(HOUSE)},
        stdout=subprocess.PIPE,
    )


if __name__ == "__main__":  # in a process of its own
    with closing(Dataset(store=capture(log=sys.argv[1], outbox=False))) as dataset:
        json.dump(work(dataset, sys.argv[2]), sys.stdout)
