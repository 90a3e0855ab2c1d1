"""A process is killed at each step of what an outbox goes through; afterwards nothing is lost, doubled or mixed."""

import json
import subprocess
import sys
import textwrap

import pytest

# Steps are counted in a process that is forked for each of them: it kills itself when the count is up. A commit is
# known by the number that it adds, and is acknowledged when the number stands in the file `acknowledged`.
DRIVER = """
import json, os, shutil, signal, sys

from oxrdflib import OxigraphStore
from rdflib import Dataset, Literal, URIRef
from rdflib.plugins.stores.memory import Memory

from patchlog import capture
from patchlog.effect import apply_effect, effect
from patchlog.errors import ConflictError, StorageError
from patchlog.log.stores import open_store
from patchlog.outbox import Outbox, delivery
from patchlog.patch import read
from patchlog.rdflib_hook.capture import connection

folder, kind, way = sys.argv[1:]
EX = "http://example.org/"
S, P, Q, G = (URIRef(EX + name) for name in "spqg")
delivery._FIRST_PAUSE_SECONDS = 1000  # the thread does not interfere with the count of steps


class Countdown:
    left = None

    def __init__(self):
        self.names = []

    def step(self, name):
        if self.left is not None:
            self.names.append(name)
            if len(self.names) == self.left:
                os.kill(os.getpid(), signal.SIGKILL)


def stepping(kind, names, countdown):
    def watched(name):
        def call(self, *arguments, **options):
            countdown.step(name)  # what is between two of them leaves no trace
            return getattr(kind, name)(self, *arguments, **options)
        return call
    return type("Stepping", (kind,), {name: watched(name) for name in names})


class Wire:
    # The log behind a wire that can be cut, and that may lose an answer.
    def __init__(self, log, countdown):
        self.log, self.countdown, self.is_cut, self.loses_answer = log, countdown, False, False

    def __getattr__(self, name):
        if self.is_cut:
            raise StorageError("no connection", is_transient=True)
        return getattr(self.log, name)

    def append(self, chunks, **options):
        if self.is_cut:
            raise StorageError("no connection", is_transient=True)
        self.countdown.step("append")
        appended = self.log.append(chunks, **options)
        if self.loses_answer:
            self.loses_answer, self.is_cut = False, True
            raise StorageError("the answer was lost", is_transient=True)
        return appended


def raw_log(place):
    logs = open_store(f"sqlite:///{place}/log.db")
    if not logs.list():
        logs.create("log")
    return logs.log("log")


def inner_store(place, countdown):
    if kind == "memory":
        return Memory()
    inner = stepping(OxigraphStore, ["addN", "remove", "commit"], countdown)()
    inner.open(f"{place}/store")
    return inner


def opened(place, countdown, inner=None):
    box = stepping(Outbox, ["put", "settle", "drop", "note_attempt"], countdown)
    connection._outbox = lambda *_: box(f"{place}/outbox.db")
    inner = inner_store(place, countdown) if inner is None else inner
    wire = Wire(raw_log(place), countdown)
    return Dataset(store=capture(inner, log=wire)), wire


def other(place, change):
    connection._outbox = lambda *_: None
    dataset = Dataset(store=capture(log=raw_log(place)))
    change(dataset)
    dataset.commit()
    dataset.close()


def acknowledge(place, number):
    with open(f"{place}/acknowledged", "a") as file:
        file.write(f"{number} ")


def commit(place, dataset, number, *, value=None):
    if value is not None:
        dataset.set((S, P, Literal(value)))
    dataset.add((S, Q, Literal(number)))
    dataset.add((S, Q, Literal(number), G))
    dataset.commit()
    acknowledge(place, number)


def first(place):
    dataset, _ = opened(place, Countdown())
    dataset.bind("kept", EX)
    commit(place, dataset, 0, value=1000)


def work(place, dataset, wire):
    wire.is_cut = True
    commit(place, dataset, 1)
    commit(place, dataset, 2)
    other(place, lambda dataset: dataset.add((S, Q, Literal(100))))
    wire.is_cut = False
    dataset.store.pull()  # goes on top of what the other did
    commit(place, dataset, 3)
    wire.loses_answer = True
    commit(place, dataset, 4)
    wire.is_cut = True
    commit(place, dataset, 5, value=2000)
    commit(place, dataset, 6)
    other(place, lambda dataset: dataset.set((S, P, Literal(3000))))
    wire.is_cut = False
    try:
        dataset.store.pull()
        raise AssertionError("nobody has met the conflict")
    except ConflictError:
        pass
    if way == "discard":
        dataset.store.discard()
    else:
        dataset.store.deliver(on_top=True)
    commit(place, dataset, 7)


def run(place, steps):
    countdown = Countdown()
    dataset, wire = opened(place, countdown)
    countdown.left = steps
    work(place, dataset, wire)
    countdown.step("end")
    print(json.dumps({"steps": countdown.names}), flush=True)


def check(place, steps):
    had_conflict, inner = False, inner_store(place, Countdown())
    try:
        dataset, wire = opened(place, Countdown(), inner)
    except ConflictError:
        had_conflict = True
        with Outbox(f"{place}/outbox.db") as outbox:
            outbox.drop(*outbox.ids(""))
        dataset, wire = opened(place, Countdown(), inner)
    log = wire.log
    assert dataset.store.pending() == []
    quads, names, added = set(), {}, []
    for logged in log.read():
        done = effect(read(b"".join(logged.chunks)))
        apply_effect(quads, names, done)
        added += [int(o.split('"')[1]) for _, p, o, g in done.adds if p == f"<{Q}>" and g]
    found = {
        (s.n3(), p.n3(), '"%s"^^<http://www.w3.org/2001/XMLSchema#integer>' % o,
         "" if g in (None, URIRef("urn:x-rdflib:default")) else g.n3())
        for s, p, o, g in dataset.quads()
    }
    assert found == quads, found ^ quads
    assert "kept" in dict(dataset.store.namespaces())
    assert len(added) == len(set(added)), added
    acknowledged = {int(number) for number in open(f"{place}/acknowledged").read().split()}
    # Those of the conflict are in the log if they were sent on top.
    assert acknowledged - {5, 6} <= set(added), (acknowledged, added)
    if way == "on top" and not had_conflict:
        assert acknowledged <= set(added), (acknowledged, added)
    assert dataset.store.position == log.head().version
    assert not dataset.store.has_changes
    print(json.dumps({"killed at": steps, "conflict": had_conflict}), flush=True)
    commit(place, dataset, 8)
    assert log.verify().is_sound


def in_a_child(work):
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        work()
        os._exit(0)
    except BaseException as error:
        import traceback
        traceback.print_exc()
        os._exit(1)


os.mkdir(f"{folder}/0")
assert in_a_child(lambda: first(f"{folder}/0")) == 0
for steps in range(1, 1000):
    place = f"{folder}/{steps}"
    shutil.copytree(f"{folder}/0", place)
    ended = in_a_child(lambda: run(place, steps))
    assert ended in (0, -signal.SIGKILL), ended
    assert in_a_child(lambda: check(place, steps)) == 0, f"step {steps}"
    if ended == 0:
        break
"""


@pytest.mark.slow
@pytest.mark.parametrize("way", ["discard", "on top"])
@pytest.mark.parametrize("kind", ["memory", "oxigraph"])
def test_nothing_is_lost_doubled_or_mixed_by_a_kill_at_any_step_of_what_waits(tmp_path, environment, kind, way):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(DRIVER), str(tmp_path), kind, way],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )

    assert done.returncode == 0, done.stderr
    said = [json.loads(line) for line in done.stdout.splitlines()]
    steps = next(document["steps"] for document in said if "steps" in document)
    assert {"put", "append", "settle", "note_attempt"} <= set(steps)
    assert way == "on top" or "drop" in steps
    assert any(document.get("conflict") for document in said)
