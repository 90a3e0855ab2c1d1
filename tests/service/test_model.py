"""A service that is driven at random, killed, backed up and put back, beside a plain model of what it has to say.

A slice of it runs with all tests; PATCHLOG_SOAK_SECONDS makes it longer (`make soak`).
"""

import copy
import shutil
import sqlite3
import tempfile
import time
import uuid
from itertools import count

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from rdflib import Dataset

import patchlog
from api.keys import create_key, revoke_key
from patchlog import rdf
from patchlog.client import HttpLogStore
from patchlog.engine import PatchDecoder
from patchlog.errors import (
    ConsumerRefused,
    HeadMismatch,
    HistoryMismatch,
    LogError,
    LogNotFound,
    PatchAlreadyExists,
    PatchLogError,
    PositionGone,
    SnapshotRefused,
    TruncationRefused,
    UsageError,
)
from patchlog.log.database import Database
from patchlog.log.migration import migrate
from patchlog.log.position import Position
from patchlog.model import Add, Delete, TransactionAbort, TransactionCommit, TransactionStart
from tests.service.model import ModelLog, ModelPatch, ModelService

DEFAULT_GRAPH = "urn:x-rdflib:default"
SOAK_SECONDS = 10.0
MOST_RESTARTS = 2
"""In one example."""
HALF_WAY = 14
KEY_SECONDS = 2.5
"""After which a service has heard that a key was revoked."""

LOGS = st.sampled_from(["a", "a", "b"])
QUADS = st.sampled_from(
    [
        f"<http://e/s{n % 3}> <http://e/p> {o}{g}"
        for n, o in enumerate(['"1"', '"01"@en', "<http://e/o>", "<_:b>"])
        for g in ("", " <http://e/g>")
    ]
)
CHANGES = st.tuples(st.sampled_from("AD"), QUADS)
TRANSACTIONS = st.lists(
    st.tuples(st.sampled_from([True, True, True, False]), st.lists(CHANGES, max_size=5).map(tuple)),
    min_size=1,
    max_size=2,
)
SMALL = st.integers(0, 12)


class World:
    """A service on one SQLite file, which can be killed and put back."""

    def __init__(self, folder, start):
        self.folder = folder
        self.file = folder / "log.db"
        self._start = start
        database = Database(f"sqlite:///{self.file}")
        migrate(database)
        self.admin, self.token = create_key(database, ["log:*:admin"])
        database.close()
        self.service = None
        self.start()

    def start(self):
        self.service = self._start(f"sqlite:///{self.file}", keys="required")
        self.store = HttpLogStore(self.service.url, token=self.token)

    def kill(self):
        self.store.close()
        self.service.process.kill()
        self.service.process.wait()
        self.service.client.close()

    def backup(self, into):
        shutil.rmtree(into, ignore_errors=True)
        into.mkdir()
        source, target = sqlite3.connect(self.file), sqlite3.connect(into / "log.db")
        source.backup(target)
        source.close()
        target.close()
        self._copy_snapshots(self.folder, into)

    def put_back(self, backup):
        """Put a backup back, over what a killed service has left."""
        for path in self.folder.glob("log.db*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copy(backup / "log.db", self.file)
        self._copy_snapshots(backup, self.folder)

    def change_keys(self, change):
        database = Database(f"sqlite:///{self.file}")
        try:
            return change(database)
        finally:
            database.close()

    def _copy_snapshots(self, source, target):
        snapshots = source / "log.db.snapshots"
        if snapshots.is_dir():
            shutil.copytree(snapshots, target / "log.db.snapshots")


class Service(RuleBasedStateMachine):
    """Each rule does the same to the service and to the model, and compares what both say."""

    world: World
    examples = count()

    def __init__(self):
        super().__init__()
        self.number = next(self.examples)
        self.prefix = f"x{self.number}-"
        self.steps = 0
        self.model = ModelService()
        self.backup = None
        self.revoked = {}
        self.restarts = 0
        self.dataset, self.dataset_of = Dataset(), None
        self.note_deleted = set()

    # What both sides are asked.

    def log(self, name):
        return self.world.store.log(self.prefix + name)

    def outcome(self, call, *errors):
        """What a call returns, or the class of the error that was expected of it."""
        try:
            return call()
        except errors as error:
            return type(error)

    def known(self, name):
        return self.model.logs.get(name)

    def pick(self, name):
        """A log that is there: the one of this name, else another."""
        if not self.model.logs:
            self.create("a")
        name = name if name in self.model.logs else min(self.model.logs)
        return name, self.model.logs[name]

    # Logs.

    @initialize(bodies=st.lists(TRANSACTIONS.map(tuple), min_size=1, max_size=3), has_backup=st.booleans())
    def begin(self, bodies, has_backup):
        self.create("a")
        for body in bodies:
            self.append("a", [body], "any")
        self.back_up(has_backup)

    @rule(name=LOGS)
    def create(self, name):
        answer = self.world.store
        if self.known(name) is None:
            described = answer.create(self.prefix + name)
            assert described.id not in {log.id for log in self.model.logs.values()} | self.note_deleted
            self.model.logs[name] = ModelLog(described.id)
        else:
            with pytest.raises(PatchLogError):
                answer.create(self.prefix + name)

    @rule(name=LOGS, is_sure=st.sampled_from([True, False, False]))
    def delete(self, name, is_sure):
        if self.known(name) is None:
            assert self.outcome(lambda: self.log(name).describe(), LogNotFound) is LogNotFound
        elif is_sure:
            self.world.store.delete(self.prefix + name)
            self.note_deleted.add(self.model.logs.pop(name).id)

    # Appends.

    @rule(
        name=LOGS,
        bodies=st.lists(TRANSACTIONS.map(tuple), min_size=1, max_size=3),
        head=st.sampled_from(["any", "right", "stale", "prev", "wrong prev"]),
    )
    def append(self, name, bodies, head):
        name, log = self.pick(name)
        patches = [ModelPatch(str(uuid.uuid4()), body) for body in bodies]
        stale = str(uuid.uuid4()) if log.head < 2 else log.patches[0].id
        prev = {"prev": log.head_id, "wrong prev": stale}.get(head)
        texts = [patch.text(prev=prev if number == 0 else None) for number, patch in enumerate(patches)]
        expected = {"right": {"expected_head": log.head_id}, "stale": {"expected_head": stale}}.get(head, {})

        def append():
            return self.log(name).append(
                [b"Z .\n".join(text.encode() for text in texts)], format="rdf-patch", **expected
            )

        got = self.outcome(append, HeadMismatch)

        if head in ("stale", "wrong prev"):
            assert got is HeadMismatch
            return
        assert (got.first_version, got.version, got.is_retry) == (log.head + 1, log.head + len(patches), False)
        log.append(patches)

    @rule(name=LOGS, which=SMALL, is_same=st.booleans())
    def append_again(self, name, which, is_same):
        name, log = self.pick(name)
        if not log.uploads:
            return
        first, last = log.uploads[which % len(log.uploads)]
        texts = [patch.text() for patch in log.patches[first - 1 : last]]
        if not is_same:
            texts[-1] += 'TX .\nA <http://e/other> <http://e/p> "other" .\nTC .\n'

        def append():
            return self.log(name).append([b"Z .\n".join(text.encode() for text in texts)], format="rdf-patch")

        got = self.outcome(append, PatchAlreadyExists)

        if is_same:
            assert (got.first_version, got.version, got.is_retry) == (first, last, True)
        else:
            assert got is PatchAlreadyExists

    # Reads.

    @rule(name=LOGS, after=SMALL, until=SMALL, kind=st.sampled_from(["version", "position", "other log", "other hash"]))
    def read(self, name, after, until, kind):
        name, log = self.pick(name)
        if not log.patches:
            return
        after %= log.head
        until = after + 1 + until % (log.head - after)
        position = self.log(name).position(after)
        assert (position.log_id, position.version) == (log.id, after)
        wanted = {
            "version": after,
            "position": position,
            "other log": Position(str(uuid.uuid4()), after, position.hash),
            "other hash": Position(log.id, after, bytes(31) + b"\1"),
        }[kind]

        got = self.outcome(
            lambda: self.operations(self.log(name).read(wanted, until=until)), HistoryMismatch, PositionGone
        )

        if kind.startswith("other"):
            assert got is HistoryMismatch
        elif after + 1 < log.first_version:
            assert got is PositionGone
        else:
            assert [version for version, _, _ in got] == list(range(after + 1, until + 1))
            quads = log.states[after]
            for version, id, applied in got:
                quads = applied(quads)
                assert (id, quads) == (log.patches[version - 1].id, log.states[version])

    @staticmethod
    def operations(patches):
        """Version, id and effect of each patch."""
        return [(one.record.version, one.record.id, effect_of(one.chunks)) for one in patches]

    # Consumers.

    @rule(name=LOGS, consumer=st.sampled_from(["one", "two"]), version=SMALL, force=st.booleans())
    def advance(self, name, consumer, version, force):
        name, log = self.pick(name)
        version %= log.head + 2
        got = self.outcome(lambda: self.log(name).consumers.advance(consumer, version, force=force), ConsumerRefused)
        if version > log.head or (version < log.consumers.get(consumer, 0) and not force):
            assert got is ConsumerRefused
        else:
            assert (got.version, got.lag_versions) == (version, log.head - version)
            log.consumers[consumer] = version

    @rule(name=LOGS, consumer=st.sampled_from(["one", "two"]))
    def forget(self, name, consumer):
        name, log = self.pick(name)
        if log.consumers.pop(consumer, None) is not None:
            self.log(name).consumers.forget(consumer)

    # Snapshots and truncation.

    @rule(name=LOGS, quads=st.frozensets(QUADS, max_size=4))
    def begin_with_a_dataset(self, name, quads):
        name, log = self.pick(name)
        if log.patches or log.snapshots:
            return
        lines = "".join(f"{quad.replace('<_:b>', '_:b')} .\n" for quad in sorted(quads))
        assert self.log(name).snapshots.put(0, [lines.encode()], "nquads").quads == len(quads)
        log.states[0] = quads
        log.snapshots.add(0)

    @rule(name=LOGS, version=SMALL)
    def build(self, name, version):
        name, log = self.pick(name)
        if not log.patches:
            return
        version = 1 + version % (log.head + 1)
        got = self.outcome(lambda: self.log(name).snapshots.build(version), SnapshotRefused)
        if version in log.snapshots or log.can_build(version):
            assert (got.version, got.quads) == (version, len(log.states[version]))
            log.snapshots.add(version)
        else:
            assert got is SnapshotRefused

    @rule(name=LOGS, which=SMALL)
    def read_snapshot(self, name, which):
        name, log = self.pick(name)
        if not log.snapshots:
            return
        version = sorted(log.snapshots)[which % len(log.snapshots)]
        data = b"".join(self.log(name).snapshots.read(version))
        with tempfile.TemporaryFile() as file:
            file.write(data)
            file.seek(0)
            assert quads_of(file) == log.states[version]

    @rule(name=LOGS, before=st.none() | SMALL, force=st.booleans())
    def truncate(self, name, before, force):
        name, log = self.pick(name)
        expected = log.truncation(before, force=force)
        got = self.outcome(lambda: self.log(name).truncate_before(before, force=force), TruncationRefused)
        if expected is None:
            assert got is TruncationRefused
        else:
            assert got.first_version == expected
            log.first_version = expected

    # Keys.

    @rule(right=st.sampled_from(["read", "append"]), scope=st.sampled_from(["a", "*"]))
    def create_a_key(self, right, scope):
        scopes = [f"log:{self.prefix}{scope}:{right}"]
        key, text = self.world.change_keys(lambda database: create_key(database, scopes))
        self.model.keys[key.id] = text
        for name in self.model.logs:
            allowed = scope in ("*", name)
            assert self.status(text, "GET", f"/logs/{self.prefix}{name}") == (200 if allowed else 403)
            allowed = allowed and right == "append"
            body = "H id <urn:uuid:nothing> .\n"
            assert self.status(text, "POST", f"/logs/{self.prefix}{name}/patches", body) == (400 if allowed else 403)

    @precondition(lambda self: self.model.keys)
    @rule(which=SMALL)
    def revoke_a_key(self, which):
        key_id = sorted(self.model.keys)[which % len(self.model.keys)]
        self.world.change_keys(lambda database: revoke_key(database, key_id))
        self.revoked[key_id] = self.model.keys.pop(key_id), time.monotonic()

    @invariant()
    def revoked_keys_open_nothing(self):
        for text, since in self.revoked.values():
            if time.monotonic() - since > KEY_SECONDS:
                assert self.status(text, "GET", "/logs") == 401

    def status(self, key, method, path, body=None):
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/rdf-patch"}
        return self.world.service.client.request(method, path, content=body, headers=headers).status_code

    # Followers. Each is a new one, as after a restart: what it has is in its target.

    @rule(name=LOGS)
    def follow_into_a_log(self, name):
        """The copy is a log of the same service, so it is backed up and put back with it."""
        name, source = self.pick(name)
        into = f"copy-{name}"
        if self.known(into) is None:
            self.model.logs[into] = ModelLog(self.world.store.create(self.prefix + into).id)
        target = self.known(into)
        begins = 0 in source.snapshots
        is_copy = target.is_prefix_of(source) and (target.head > 0 or begins or 0 not in target.snapshots)
        is_gone = target.head + 1 < source.first_version

        got = self.outcome(lambda: self.follow(name, self.log(into)), LogError, UsageError)

        if target.head == 0 and 0 not in target.snapshots and begins:
            target.states[0] = source.states[0]
            target.snapshots.add(0)
        if isinstance(got, type):
            assert is_gone or not is_copy, got
            return
        assert is_copy
        assert not is_gone
        for patch in source.patches[target.head :]:
            target.append([patch])
        assert target.states[-1] == source.states[-1]

    @rule(name=LOGS, is_new=st.sampled_from([False, False, True]))
    def follow_into_a_dataset(self, name, is_new):
        """The dataset outlives the service, and what is put back."""
        name, source = self.pick(name)
        if is_new or self.dataset_of is None or self.dataset_of.id != source.id:
            self.dataset, self.dataset_of = Dataset(), None
        before, had = quads_in(self.dataset), self.dataset_of

        got = self.outcome(lambda: self.follow(name, self.dataset), LogError, UsageError)

        if isinstance(got, type):
            assert had is not None, got
            assert not had.is_prefix_of(source), got
            assert quads_in(self.dataset) == before
        else:
            assert had is None or had.is_prefix_of(source)
            assert quads_in(self.dataset) == source.states[-1]
            self.dataset_of = copy.deepcopy(source)

    def follow(self, name, into):
        with patchlog.follow(self.log(name), into=into) as follower:
            return follower.position

    # Restarts.

    @rule(is_time=st.sampled_from([True, False, False]))
    def back_up(self, is_time):
        if is_time:
            self.world.backup(self.world.folder / "backup")
            self.backup = self.model.copy()

    @invariant()
    def half_way_it_is_killed(self):
        """Half of the examples: hypothesis leaves rules out at random."""
        self.steps += 1
        if self.steps == HALF_WAY and self.number % 2:
            self.restart(is_put_back=self.number % 4 == 1)

    @precondition(lambda self: self.restarts < MOST_RESTARTS)
    @rule(is_put_back=st.booleans())
    def restart(self, is_put_back):
        """Kill the service, and start it on what it has left, or on the backup."""
        self.restarts += 1
        self.world.kill()
        if is_put_back and self.backup is not None:
            self.world.put_back(self.world.folder / "backup")
            self.note_deleted |= {log.id for log in self.model.logs.values()}
            self.model = self.backup.copy()
            self.note_deleted -= {log.id for log in self.model.logs.values()}
            for key_id in self.model.keys:
                self.revoked.pop(key_id, None)
        self.world.start()
        self.check_all()

    def teardown(self):
        self.check_all()

    def check_all(self):
        """Compare all that there is."""
        store = self.world.store
        there = {one.name: one for one in store.list(after=self.prefix) if one.name.startswith(self.prefix)}
        assert there.keys() == {self.prefix + name for name in self.model.logs}
        for name, model in self.model.logs.items():
            log, described = self.log(name), there[self.prefix + name]
            assert (described.id, described.head.version, described.head.id, described.first_version) == (
                model.id,
                model.head,
                model.head_id,
                model.first_version,
            )
            assert described.patches == model.head - model.first_version + 1
            assert log.verify().is_sound
            assert {one.name: one.version for one in log.consumers.list()} == model.consumers
            assert {one.version for one in log.snapshots.list()} == model.snapshots
            quads = model.states[model.first_version - 1]
            for version, id, applied in self.operations(log.read(model.first_version - 1)):
                quads = applied(quads)
                assert (id, quads) == (model.patches[version - 1].id, model.states[version])


def effect_of(chunks):
    """A function that does what a patch does, with the rules said once more."""
    decoder = PatchDecoder()
    operations = [*decoder.feed(b"".join(chunks)), *decoder.finish()]

    def applied(quads):
        result, pending = set(quads), None
        for operation in operations:
            match operation:
                case TransactionStart():
                    pending = set(result)
                case TransactionAbort():
                    result, pending = pending, None
                case TransactionCommit():
                    pending = None
                case Add(subject, predicate, object, graph):
                    result.add(line_of(subject, predicate, object, graph))
                case Delete(subject, predicate, object, graph):
                    result.discard(line_of(subject, predicate, object, graph))
        return frozenset(result)

    return applied


def line_of(subject, predicate, object, graph):
    terms = [subject, predicate, "<_:b>" if object == "_:b" else object]
    return " ".join([*terms, graph] if graph else terms)


def quads_of(file):
    return frozenset(line_of(*one) for one in rdf.read(file, "jelly") if isinstance(one, tuple) and len(one) == 4)


def quads_in(dataset):
    return frozenset(
        line_of(*(term.n3() for term in terms), None if str(graph) == DEFAULT_GRAPH else graph.n3())
        for *terms, graph in dataset.quads()
    )


def test_service_does_what_the_model_does(tmp_path, start, request):
    seconds = float(request.getfixturevalue("soak_seconds"))
    is_soak = seconds > SOAK_SECONDS
    Service.world = World(tmp_path, start)
    end = time.monotonic() + (seconds if is_soak else 40)
    chosen = settings(
        max_examples=12 if not is_soak else 10,
        stateful_step_count=25 if not is_soak else 60,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize=False,
        database=None,
        phases=(Phase.generate, Phase.shrink) if is_soak else (Phase.generate,),
        print_blob=True,
    )
    try:
        while True:
            run_state_machine_as_test(Service, settings=chosen)
            if not is_soak or time.monotonic() > end:
                break
    finally:
        Service.world.store.close()
