"""Several datasets on one log: conflicts, and how the datasets come together."""

import itertools
import random
import threading
import time

import pytest
from rdflib import Dataset, Literal, URIRef

from patchlog import capture, follow, patch, transaction
from patchlog.errors import ConflictError, HeadMismatch, StorageError
from patchlog.log.memory import MemoryLogStore
from patchlog.model import Add, NamespaceAdd
from patchlog.outbox import Outbox, deliver, delivery
from patchlog.rdflib_hook.capture import connection
from patchlog.rdflib_hook.terms import TermFormatter

EX = "http://example.org/"
A, B, P, Q, G = (URIRef(EX + name) for name in "abpqg")
X, Y, Z = (Literal(text) for text in "xyz")


@pytest.fixture
def log():
    logs = MemoryLogStore()
    logs.create("log")
    return logs.log("log")


@pytest.fixture
def replica(log):
    """Another dataset on the log."""

    def captured(policy="rebase", log=log, **options):
        return Dataset(store=capture(log=log, conflicts=policy, **options))

    return captured


def contents(dataset):
    return set(dataset.quads()), {name: str(iri) for name, iri in dataset.store.namespaces() if name in "ab"}


def test_change_of_other_quads_goes_on_top_of_what_another_writer_has_done(replica, log):
    first, second = replica(), replica()
    first.add((A, P, X))
    first.commit()

    second.add((B, P, X))
    second.commit()
    first.store.pull()

    assert set(first.default_graph) == set(second.default_graph) == {(A, P, X), (B, P, X)}
    assert log.head().version == 2


def test_change_of_the_same_quads_is_a_conflict_that_names_them(replica, log):
    first, second = replica(), replica()
    first.add((A, P, X))
    first.bind("ex", EX)
    first.commit()
    second.store.pull()
    first.remove((A, P, X))
    first.add((A, P, Y))
    first.bind("ex", EX + "first/", replace=True)
    first.commit()

    second.remove((A, P, X))
    second.add((A, P, Z))
    second.bind("ex", EX + "second/", replace=True)
    with pytest.raises(ConflictError, match="has changed the same") as caught:
        second.commit()

    assert caught.value.quads == [(f"<{EX}a>", f"<{EX}p>", '"x"', "")]
    assert caught.value.namespaces == ["ex"]
    assert caught.value.actual_head == log.head().id
    assert log.head().version == 2


def test_conflict_leaves_the_change_uncommitted_until_it_is_rolled_back(replica):
    first, second = replica(), replica()
    first.add((A, P, X))
    first.commit()
    second.add((A, P, X))
    second.add((A, P, Z))
    with pytest.raises(ConflictError):
        second.commit()

    assert set(second.objects(A, P)) == {X, Z}
    second.rollback()
    second.store.pull()
    second.add((A, P, Y))
    second.commit()
    first.store.pull()

    assert set(first.objects(A, P)) == set(second.objects(A, P)) == {X, Y}


def test_conflict_in_a_block_takes_the_block_back(replica):
    first, second = replica(), replica()
    first.add((A, P, X))
    first.commit()

    def block():
        with transaction(second):
            second.add((A, P, X))

    with pytest.raises(ConflictError):
        block()

    assert not second.store.has_changes
    assert len(second) == 0


def test_policy_fail_is_a_conflict_wherever_another_writer_was_first(replica):
    first, second = replica(), replica("fail")
    first.add((A, P, X))
    first.commit()
    second.add((B, P, X))

    with pytest.raises(ConflictError) as caught:
        second.commit()

    assert caught.value.quads == []
    assert isinstance(caught.value, HeadMismatch)
    second.store.pull()
    second.commit()
    assert len(second) == 2


def test_last_writer_wins_where_that_is_the_policy(replica, log):
    first, second = replica(), replica("last-writer-wins")
    first.add((A, P, X))
    first.commit()
    second.store.pull()
    first.remove((A, P, X))
    first.add((A, P, Y))
    first.commit()

    second.remove((A, P, X))
    second.remove((A, P, Y))
    second.add((A, P, Z))
    second.commit()
    first.store.pull()

    assert set(first.objects(A, P)) == set(second.objects(A, P)) == {Y, Z}
    assert [record.adds + record.deletes for record in map(log.find, (1, 2, 3))] == [1, 2, 1]


def test_pull_puts_what_is_uncommitted_on_top(replica):
    first, second = replica(), replica()
    first.add((A, P, X))
    first.bind("ex", EX)
    first.commit()
    second.add((B, P, X))
    second.bind("mine", EX + "mine/")
    second.store.pull()

    assert len(second) == 2
    assert second.store.namespace("ex") == URIRef(EX)
    second.rollback()
    assert len(second) == 1
    assert second.store.namespace("mine") is None
    assert second.store.namespace("ex") == URIRef(EX)


@pytest.mark.parametrize("policy", ["rebase", "fail", "last-writer-wins"])
def test_rollback_that_is_recorded_goes_on_top_of_what_another_writer_has_done(replica, log, policy):
    first, second = replica(), replica(policy, record_rollbacks=True)
    first.add((A, P, X))
    first.commit()
    second.add((B, P, X))
    second.rollback()

    assert log.head().version == 2
    assert set(second.subjects()) == {A}


def test_store_is_filled_from_the_newest_snapshot(replica, log):
    first = replica()
    first.add((A, P, X, G))
    first.bind("ex", EX)
    first.commit()
    log.snapshots.build()
    first.add((A, P, Y))
    first.commit()
    log.truncate_before(2)

    second = replica()

    assert contents(second)[0] == contents(first)[0]
    assert second.store.namespace("ex") == URIRef(EX)
    assert second.store.position == 2


class UnreliableLog:
    """A log whose next appends fail, before or after they have happened."""

    def __init__(self, log):
        self._log = log
        self.fails = []

    def __getattr__(self, name):
        return getattr(self._log, name)

    def append(self, chunks, **options):
        when = self.fails.pop(0) if self.fails else None
        if when == "before":
            raise StorageError("no connection", is_transient=True)
        appended = self._log.append(chunks, **options)
        if when == "after":
            raise StorageError("the answer was lost", is_transient=True)
        return appended


@pytest.mark.parametrize("when", ["before", "after"])
def test_commit_whose_fate_is_not_known_is_in_the_log_once_in_the_end(replica, log, when):
    unreliable = UnreliableLog(log)
    dataset = replica(log=unreliable)
    dataset.add((A, P, X))
    unreliable.fails = [when]
    with pytest.raises(StorageError):
        dataset.commit()

    dataset.add((A, P, Y))
    dataset.commit()

    assert [record.adds for record in map(log.find, (1, 2))] == [1, 1]
    assert set(replica().quads()) == set(dataset.quads())


@pytest.mark.parametrize(("when", "left"), [("before", set()), ("after", {X})])
def test_commit_whose_fate_is_not_known_is_rolled_back_unless_it_has_happened(replica, log, when, left):
    unreliable = UnreliableLog(log)
    dataset = replica(log=unreliable)
    dataset.add((A, P, X))
    unreliable.fails = [when]
    with pytest.raises(StorageError):
        dataset.commit()

    dataset.add((A, P, Y))
    dataset.rollback()

    assert set(dataset.objects(A, P)) == set(replica().objects(A, P)) == left
    dataset.add((A, P, Z))
    dataset.commit()
    assert set(replica().quads()) == set(dataset.quads())


@pytest.mark.parametrize("when", ["before", "after"])
def test_commit_whose_fate_is_not_known_stays_when_the_block_around_it_raises(replica, log, when):
    unreliable = UnreliableLog(log)
    dataset = replica(log=unreliable)
    unreliable.fails = [when]

    def fail():
        with transaction(dataset):
            dataset.add((A, P, X))
            with pytest.raises(StorageError):
                dataset.commit()
            dataset.add((A, P, Y))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    dataset.commit()

    assert set(dataset.objects(A, P)) == set(replica().objects(A, P)) == {X}


def test_block_is_taken_back_where_what_raises_is_an_error_of_another_log(replica):
    dataset = replica()

    def fail():
        with transaction(dataset):
            dataset.add((A, P, X))
            raise StorageError("no connection", is_transient=True)

    with pytest.raises(StorageError):
        fail()

    assert not dataset.store.has_changes


def test_what_another_writer_appends_by_hand_is_pulled(replica, log):
    dataset = replica()
    operations = [NamespaceAdd("ex", f"<{EX}>", "<http://example.org/g>"), Add(f"<{EX}a>", f"<{EX}p>", '"x"@en', "")]
    log.append([patch.canonical(operations)])

    dataset.store.pull()

    assert set(dataset.objects(A, P)) == {Literal("x", lang="en")}
    assert dataset.store.namespace("ex") == URIRef(EX)


@pytest.mark.parametrize("policy", ["rebase", "last-writer-wins"])
@pytest.mark.parametrize("seed", range(12))
def test_replicas_that_are_written_in_turns_converge(replica, policy, seed):
    chance = random.Random(seed)
    replicas = [replica(policy) for _ in range(3)]
    for _ in range(60):
        one = chance.choice(replicas)
        triple = URIRef(f"{EX}s{chance.randrange(4)}"), P, Literal(chance.randrange(4))
        match chance.randrange(6):
            case 0 | 1 | 2:
                one.add(triple)
            case 3:
                one.remove((triple[0], None, None))
            case 4:
                one.bind(chance.choice("ab"), EX + chance.choice("xyz"), replace=True)
            case 5:
                try:
                    one.commit()
                except ConflictError:
                    one.rollback()
    for one in replicas:
        one.rollback()
        one.store.pull()

    first, *others = map(contents, [*replicas, replica(policy)])
    assert all(other == first for other in others)


class RacingLog:
    """A log that may be away, and in which somebody else is faster once it has been read."""

    def __init__(self, log):
        self._log = log
        self.is_away = self.goes_away = False
        self.after_read = None

    def __getattr__(self, name):
        if self.is_away:
            raise StorageError("no connection", is_transient=True)
        return getattr(self._log, name)

    def append(self, chunks, **options):
        try:
            return self.__getattr__("append")(chunks, **options)
        except HeadMismatch:
            self.is_away = self.goes_away
            raise

    def read(self, **bounds):
        yield from self._log.read(**bounds)
        after_read, self.after_read = self.after_read, None
        if after_read is not None:
            after_read()


@pytest.fixture
def waiting(replica, log, tmp_path, monkeypatch):
    """A log, and a dataset on it with a change that waits; another one has done something else meanwhile."""
    monkeypatch.setattr(connection, "_outbox", lambda *_: Outbox(tmp_path / "outbox.db"))
    racing = RacingLog(log)
    dataset = replica(log=racing)
    monkeypatch.undo()
    dataset.add((A, P, X))
    dataset.commit()
    other = replica()
    racing.is_away = True
    dataset.remove((A, P, X))
    dataset.commit()
    racing.is_away = False
    other.add((B, P, X))
    other.commit()
    yield racing, dataset, other
    dataset.close()


def test_who_is_faster_than_what_waits_is_looked_at_too(waiting, log):
    racing, dataset, other = waiting

    def race():
        other.remove((A, P, X))
        other.commit()

    racing.after_read = race
    with pytest.raises(ConflictError) as caught:
        dataset.store.pull()

    assert caught.value.quads == [(f"<{EX}a>", f"<{EX}p>", '"x"', "")]
    assert log.head().version == 3


def test_who_is_faster_with_other_quads_does_not_stop_what_waits(waiting, log):
    racing, dataset, other = waiting

    def race():
        other.add((B, P, Y))
        other.commit()

    racing.after_read = race
    dataset.store.pull()
    other.store.pull()

    assert log.head().version == 4
    assert set(dataset.quads()) == set(other.quads())
    assert set(dataset.subjects()) == {B}


def test_change_waits_where_the_log_goes_away_before_it_says_what_others_did(waiting, log):
    racing, dataset, other = waiting
    dataset.store.pull()
    other.store.pull()
    other.add((B, P, Y))
    other.commit()

    dataset.add((A, P, Z))
    racing.goes_away = True
    dataset.commit()

    assert racing.is_away
    assert not dataset.store.has_changes
    racing.is_away = racing.goes_away = False
    dataset.store.pull()
    other.store.pull()
    assert set(dataset.quads()) == set(other.quads())
    assert log.head().version == 5


def test_patch_that_is_delivered_while_the_log_is_read_is_nobody_elses(replica, log, tmp_path, monkeypatch):
    outbox = Outbox(tmp_path / "outbox.db")
    monkeypatch.setattr(connection, "_outbox", lambda *_: outbox)
    racing = RacingLog(log)
    dataset = replica(log=racing)
    dataset.add((A, P, X))
    dataset.commit()
    racing.is_away = True
    dataset.remove((A, P, X))
    dataset.commit()
    racing.is_away = False
    racing.after_read = lambda: deliver(outbox, "", log)
    dataset.store.pull()
    assert log.head().version == 2

    dataset.add((A, P, X))
    dataset.store.pull()

    assert set(dataset.default_graph) == {(A, P, X)}
    dataset.close()


def test_own_patch_that_a_rollback_finds_in_the_log_is_nobody_elses(replica, log):
    unreliable = UnreliableLog(log)
    dataset = replica(log=unreliable)
    dataset.add((A, P, X))
    unreliable.fails = ["after"]
    with pytest.raises(StorageError):
        dataset.commit()
    dataset.rollback()

    dataset.remove((A, P, X))
    dataset.commit()

    assert log.head().version == 2
    assert set(dataset.default_graph) == set(replica().default_graph) == set()


class LateLog(UnreliableLog):
    """A log in which another one is first when the outbox tries again, and the outbox hears of it late."""

    def __init__(self, log, be_first):
        super().__init__(log)
        self._be_first = be_first
        self.has_refused, self.tells = threading.Event(), threading.Event()

    def append(self, chunks, **options):
        if threading.current_thread() is threading.main_thread():
            return super().append(chunks, **options)
        self._be_first()
        try:
            return super().append(chunks, **options)
        finally:
            self.has_refused.set()
            assert self.tells.wait(60)


@pytest.mark.usefixtures("impatient_outboxes")
def test_what_was_refused_and_is_delivered_by_now_stands_in_nobodys_way(replica, log, patches):
    late = LateLog(log, lambda: log.append(patches.one()))
    dataset = replica(log=late)
    late.fails = ["before"]
    dataset.add((A, P, X))
    dataset.commit()
    assert late.has_refused.wait(60)

    dataset.store.pull()
    late.tells.set()
    for thread in threading.enumerate():
        if thread.name == "patchlog-outbox":
            thread.join(60)
    dataset.add((A, P, Y))
    dataset.commit()

    assert log.head().version == 3
    dataset.close()


def test_patch_that_has_arrived_without_an_answer_is_not_done_again(replica, log, tmp_path, monkeypatch):
    unreliable = UnreliableLog(log)
    monkeypatch.setattr(connection, "_outbox", lambda *_: Outbox(tmp_path / "outbox.db"))
    dataset = replica("last-writer-wins", log=unreliable)
    monkeypatch.undo()
    other = replica()
    unreliable.fails = ["after", "before"]
    dataset.add((A, P, X))
    dataset.commit()
    dataset.store.pull()  # the patch is read, and still no answer comes

    other.store.pull()
    other.remove((A, P, X))
    other.commit()
    dataset.store.pull()

    assert log.head().version == 2
    assert set(dataset.quads()) == set()
    dataset.close()


class BreakingLog:
    """A log that every few calls cannot be reached, or whose answer gets lost."""

    def __init__(self, log, chance):
        self._log = log
        self.breaks = True
        self._chance = chance

    def __getattr__(self, name):
        called = getattr(self._log, name)
        return self._breaking(called) if name in ("head", "read", "find") else called

    def append(self, chunks, **options):
        log = UnreliableLog(self._log)
        log.fails = [self._chance.choice([None, None, "before", "after"])] if self.breaks else []
        return log.append(chunks, **options)

    def _breaking(self, called):
        def call(*arguments, **options):
            if self.breaks and self._chance.random() < 0.1:
                raise StorageError("no connection", is_transient=True)
            return called(*arguments, **options)

        return call


@pytest.fixture
def impatient_outboxes(tmp_path, monkeypatch):
    """An outbox for each dataset, tried again all the time. Those that are opened as `which` have one file."""
    numbers = itertools.count()

    def place(which=None):
        return tmp_path / f"{next(numbers) if which is None else f'of-{which}'}.db"

    monkeypatch.setattr(connection, "_outbox", lambda settings, _: Outbox(place(settings.outbox)))
    monkeypatch.setattr(delivery, "_FIRST_PAUSE_SECONDS", 0.003)
    monkeypatch.setattr(delivery, "_LONGEST_PAUSE_SECONDS", 0.02)
    return place


class Writers:
    """Three datasets on a log that breaks, and what was acknowledged to them."""

    def __init__(self, seed, policy, place=None):
        self.chance = random.Random(seed)
        logs = MemoryLogStore()
        self.log = BreakingLog(logs.log(logs.create("log").name), self.chance)
        self._policy, self._place = policy, place
        self.acknowledged = set()
        self.conflicts = 0
        self.log.breaks = False
        self.replicas = [self._opened(which) for which in range(3)]
        self.log.breaks = True

    def _opened(self, which):
        return Dataset(
            store=capture(log=self.log, conflicts=self._policy, outbox=None if self._place is None else which)
        )

    def write(self, number):
        which = self.chance.randrange(len(self.replicas))
        one, done = self.replicas[which], Literal(number)
        one.add((URIRef(f"{EX}s{self.chance.randrange(4)}"), P, Literal(self.chance.randrange(4))))
        one.remove((URIRef(f"{EX}s{self.chance.randrange(4)}"), P, None))
        one.add((A, Q, done))
        uncommitted = set(one.objects(A, Q))
        actions = [one.commit, one.commit, one.store.pull, one.rollback]
        if self._place is not None:
            actions.append(lambda: self._open_again(which))
        try:
            self.chance.choice(actions)()
        except ConflictError:
            self.log.breaks = False
            self._decide(one)
            self.log.breaks = True
        except StorageError:
            pass
        one = self.replicas[which]
        if not one.store.has_changes:
            self.acknowledged |= uncommitted & set(one.objects(A, Q))

    def _open_again(self, which):
        """End the program, which leaves what waits to the next one."""
        self.replicas[which].close()
        self.log.breaks = False
        try:
            self.replicas[which] = self._opened(which)
        except ConflictError:
            self.conflicts += 1
            with Outbox(self._place(which)) as outbox:
                if self.chance.random() < 0.5:
                    texts = [outbox.content(patch_id) or b"" for patch_id in outbox.ids("")]
                    outbox.drop(*outbox.ids(""))
                    gone = {row.object for text in texts for row in patch.read(text, "rdf-patch") if is_done(row)}
                    self.acknowledged -= {done for done in self.acknowledged if TermFormatter().term(done) in gone}
                else:
                    deliver(outbox, "", self.log, on_top=True)
            self.replicas[which] = self._opened(which)
        finally:
            self.log.breaks = True

    def _decide(self, one):
        one.rollback()
        while True:
            try:
                one.store.pull()
            except ConflictError:  # of what waits: nothing is uncommitted
                self.conflicts += 1
                before = set(one.objects(A, Q))
                try:
                    self.chance.choice([one.store.discard, lambda: one.store.deliver(on_top=True)])()
                except ConflictError:
                    continue
                self.acknowledged -= before - set(one.objects(A, Q))
            else:
                return

    def check(self):
        self.log.breaks = False
        for _ in range(2):  # the second time they get what the others have had in their outboxes
            for one in self.replicas:
                self._decide(one)
        rows = (row for logged in self.log.read() for row in patch.read(b"".join(logged.chunks)))
        added = [row.object for row in rows if is_done(row)]
        dataset = Dataset()
        follow(self.log, into=dataset)
        assert all(contents(one) == contents(dataset) for one in self.replicas)
        assert len(added) == len(set(added))
        assert {TermFormatter().term(done) for done in self.acknowledged} <= set(added)
        for one in self.replicas:
            one.close()


@pytest.mark.parametrize("policy", ["rebase", "last-writer-wins"])
@pytest.mark.parametrize("first", range(0, 40, 10))
def test_replicas_converge_over_a_network_that_breaks(policy, first):
    for seed in range(first, first + 10):
        writers = Writers(seed, policy)
        for number in range(60):
            writers.write(number)
        writers.check()


@pytest.mark.parametrize("policy", ["rebase", "fail", "last-writer-wins"])
@pytest.mark.parametrize("first", range(0, 8, 4))
def test_replicas_with_outboxes_converge_over_a_network_that_breaks(policy, first, tmp_path, impatient_outboxes):
    conflicts = 0
    for seed in range(first, first + 4):
        for old in tmp_path.glob("of-*"):
            old.unlink()
        writers = Writers(seed, policy, impatient_outboxes)
        for number in range(40):
            writers.write(number)
            time.sleep(writers.chance.choice((0, 0, 0.005)))
        writers.check()
        conflicts += writers.conflicts

    # That both change the same is up to chance, that others were first is not.
    assert (conflicts > 0) == (policy == "fail") or policy == "rebase"


def is_done(row):
    return isinstance(row, Add) and row.predicate == f"<{Q}>"
