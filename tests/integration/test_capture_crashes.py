"""A process is killed at each step of a commit; after reopening, log and store are the same."""

import json
import subprocess
import sys
import textwrap

import pytest

# Steps are counted in a process that is forked for each of them: it kills itself when the count is up.
DRIVER = """
import json, os, shutil, signal, sys

from oxrdflib import OxigraphStore
from rdflib import Dataset, Literal, URIRef
from rdflib.plugins.stores.memory import Memory

from patchlog import capture
from patchlog.log.stores import open_store
from patchlog.effect import apply_effect, effect
from patchlog.patch import read

folder, kind = sys.argv[1:]
EX = "http://example.org/"
S, P, G, H = (URIRef(EX + name) for name in "spgh")


class Countdown:
    def __init__(self, steps):
        self.left, self.names = steps, []

    def step(self, name):
        self.names.append(name)
        if len(self.names) == self.left:
            os.kill(os.getpid(), signal.SIGKILL)


def stepping(kind, names, countdown):
    def watched(name):
        def call(self, *arguments, **options):
            if countdown.left is None:
                return getattr(kind, name)(self, *arguments, **options)
            countdown.step(f"before {name}")
            result = getattr(kind, name)(self, *arguments, **options)
            countdown.step(f"after {name}")
            return result
        return call
    return type("Stepping", (kind,), {name: watched(name) for name in names})


def opened(place, countdown):
    logs = open_store(f"sqlite:///{place}/log.db")
    if not logs.list():
        logs.create("log")
    log = logs.log("log")
    stepping_log = object.__new__(stepping(type(log), ["append"], countdown))
    stepping_log.__dict__.update(log.__dict__)
    if kind == "memory":
        inner = Memory()
    else:
        inner = stepping(OxigraphStore, ["add", "addN", "remove", "add_graph", "remove_graph", "commit"], countdown)()
        inner.open(f"{place}/store")
    return Dataset(store=capture(inner, log=stepping_log)), log


def first(dataset):
    dataset.bind("kept", EX)
    for number in range(3):
        dataset.add((S, P, Literal(number)))
        dataset.add((S, P, Literal(number), G))
    dataset.commit()


def second(dataset):
    dataset.remove((S, P, Literal(0)))
    dataset.remove_graph(G)
    dataset.bind("new", EX + "new/")
    dataset.add((S, P, Literal("x", lang="en"), H))
    dataset.add((S, P, Literal(9)))
    dataset.commit()


def in_a_child(work):
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        work()
        os._exit(0)
    except BaseException as error:
        print(repr(error), file=sys.stderr, flush=True)
        os._exit(1)


def run(place, steps):
    countdown = Countdown(None)
    dataset, _ = opened(place, countdown)
    countdown.left = steps
    second(dataset)
    print(json.dumps({"steps": countdown.names}), flush=True)


def check(place, steps):
    countdown = Countdown(None)
    dataset, log = opened(place, countdown)
    quads, names = set(), {}
    for logged in log.read():
        apply_effect(quads, names, effect(read(b"".join(logged.chunks))))
    wanted = {tuple(map(str, quad)) for quad in quads}
    found = {
        (s.n3(), p.n3(), '"%s"^^<http://www.w3.org/2001/XMLSchema#integer>' % o if o.datatype else o.n3(),
         "" if g in (None, URIRef("urn:x-rdflib:default")) else g.n3())
        for s, p, o, g in dataset.quads()
    }
    assert found == wanted, (found ^ wanted)
    declared = {name: f"<{iri}>" for name, iri in dataset.store.namespaces() if name in ("kept", "new")}
    assert declared == {name: iri for (_, name), iri in names.items()}, (declared, names)
    assert dataset.store.position == log.head().version
    assert not dataset.store.has_changes
    print(json.dumps({"killed at": steps, "version": log.head().version}), flush=True)
    dataset.add((S, P, Literal("after")))
    dataset.commit()
    assert log.verify().is_sound


os.mkdir(f"{folder}/0")
assert in_a_child(lambda: first(opened(f"{folder}/0", Countdown(None))[0])) == 0
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
@pytest.mark.parametrize("kind", ["memory", "oxigraph"])
def test_store_and_log_are_the_same_after_a_kill_at_any_step_of_a_commit(tmp_path, environment, kind):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(DRIVER), str(tmp_path), kind],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )

    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    steps = next(document["steps"] for document in told if "steps" in document)
    versions = [document["version"] for document in told if "version" in document]
    assert steps[:2] == ["before append", "after append"]
    assert kind == "memory" or {"before remove", "after addN", "before commit", "after commit"} <= set(steps)
    # Killed before the append, the change is nowhere; at any later step it is in both.
    assert versions == [1, *[2] * len(steps)]
