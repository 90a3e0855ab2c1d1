"""What waits, and meets what others have done or a refusal: it is seen, decided on, and then all are equal."""

import json
import logging
import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from oxrdflib import OxigraphStore
from rdflib import Dataset, Literal, URIRef
from rdflib.plugins.stores.memory import Memory

from patchlog import capture, transaction
from patchlog.cli import main
from patchlog.client.logs import HttpLogStore
from patchlog.errors import ConflictError, HistoryMismatch, LogNotFound, StorageError, UsageError
from patchlog.outbox import Basis, Outbox
from tests.service.relays import Relay
from tests.waiting import wait_until

HOUSE = Path(__file__).parents[2]
EX = "http://example.org/"
A, B, P, G = (URIRef(EX + name) for name in "abpg")


@pytest.fixture
def outbox(tmp_path):
    return tmp_path / "outbox.db"


class Town:
    """A log of a real service behind a wire that can be cut, and datasets on it."""

    def __init__(self, service, name, folder, outbox):
        self.service, self.name, self.outbox = service, name, outbox
        self.relay = Relay(service.port)
        self.direct = f"{service.url}/logs/{name}"
        self.url = f"{self.relay.url}/logs/{name}"
        self._folder = folder
        self._opened = []

    def dataset(self, kind="memory", **options):
        """The dataset of the program that has an outbox."""
        return self._open(self.store(kind), self.url, outbox=self.outbox, **options)

    def store(self, kind):
        """The inner store of the program."""
        if kind == "memory":
            return Memory()
        inner = OxigraphStore()
        inner.open(str(self._folder / "store"))
        return inner

    def other(self, **options):
        """The dataset of another program, which reaches the service."""
        return self._open(Memory(), self.direct, outbox=False, **options)

    def _open(self, inner, url, **options):
        dataset = Dataset(store=capture(inner, log=url, **options))
        self._opened.append(dataset)
        return dataset

    def waiting(self):
        with Outbox(self.outbox) as opened:
            return opened.waiting()

    def content(self):
        """What the log says, as a new reader gets it."""
        return content(self.other())

    def delete(self):
        with closing(HttpLogStore(self.service.url)) as logs:
            logs.delete(self.name)

    def close(self):
        for dataset in self._opened:
            dataset.close()
        self.relay.cut()


@pytest.fixture
def town(sqlite_service, new_log, tmp_path, outbox):
    one = Town(sqlite_service, new_log(sqlite_service).name, tmp_path, outbox)
    yield one
    one.close()


@pytest.fixture
def command(outbox, capsys):
    def run(verb, *arguments):
        code = main(["outbox", verb, "--outbox", str(outbox), *arguments])
        return code, *capsys.readouterr()

    return run


def content(dataset):
    names = {name: str(iri) for name, iri in dataset.store.namespaces() if name == "ex"}
    return {(s, p, o, getattr(g, "identifier", g)) for s, p, o, g in dataset.quads()}, names


def change(dataset, subject, value):
    dataset.set((subject, P, Literal(value)))
    dataset.commit()


def at_odds(town, kind="memory", **options):
    """Both have seen 1000; the program has 2000, which waits, and another one has 3000."""
    dataset, other = town.dataset(kind, **options), town.other()
    change(dataset, A, 1000)
    other.store.pull()
    town.relay.cut()
    change(dataset, A, 2000)
    change(other, A, 3000)
    return dataset, other


@pytest.mark.parametrize("policy", ["rebase", "fail"])
def test_program_that_opens_again_meets_the_conflict_of_what_waits(town, policy):
    dataset, _ = at_odds(town, conflicts=policy)
    dataset.close()
    town.relay.open()

    with pytest.raises(ConflictError, match="another writer has changed the same") as caught:
        town.dataset(conflicts=policy)

    (waiting,) = town.waiting()
    assert (waiting.state, caught.value.patch) == ("conflict", waiting.id)
    assert {int(value) for _, _, value, _ in town.content()[0]} == {3000}


def test_policy_fail_holds_for_what_waits_whatever_others_did(town):
    dataset, other = town.dataset(conflicts="fail"), town.other()
    town.relay.cut()
    change(dataset, A, 1)
    dataset.close()
    change(other, B, 1)
    town.relay.open()

    with pytest.raises(ConflictError, match="another writer was first"):
        town.dataset(conflicts="fail")

    assert len(town.waiting()) == 1


@pytest.mark.parametrize("policy", ["rebase", "fail"])
def test_killed_program_leaves_a_conflict_that_the_next_one_meets(town, outbox, policy):
    program = f"""
import sys
from rdflib import Dataset, Literal, URIRef
from patchlog import capture
dataset = Dataset(store=capture(log=sys.argv[1], outbox=sys.argv[2], conflicts={policy!r}))
print("open", flush=True)
for line in sys.stdin:
    dataset.set((URIRef("{EX}a"), URIRef("{EX}p"), Literal(int(line))))
    dataset.commit()
    print("committed", flush=True)
"""
    other = town.other()
    change(other, A, 1000)
    with subprocess.Popen(
        [sys.executable, "-c", program, town.url, str(outbox)],
        env=os.environ | {"PYTHONPATH": str(HOUSE)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "open\n"
        town.relay.cut()
        print(2000, file=process.stdin, flush=True)
        assert process.stdout.readline() == "committed\n"
        process.send_signal(signal.SIGKILL)
    change(other, A, 3000)
    town.relay.open()

    with pytest.raises(ConflictError):
        town.dataset(conflicts=policy)
    with Outbox(outbox) as opened:
        opened.drop(*opened.ids(town.url))
    dataset = town.dataset(conflicts=policy)

    assert content(dataset) == town.content()
    assert [int(value) for value in dataset.objects(A, P)] == [3000]


def test_last_writer_wins_when_a_program_opens_again_where_that_is_its_policy(town):
    dataset, _ = at_odds(town, conflicts="last-writer-wins")
    dataset.close()
    town.relay.open()

    dataset = town.dataset(conflicts="last-writer-wins")

    assert town.waiting() == []
    assert content(dataset) == town.content()
    assert 2000 in {int(value) for value in dataset.objects(A, P)}


def test_what_waits_goes_on_top_of_what_others_did_with_other_quads_when_a_program_opens_again(town):
    dataset, other = town.dataset(), town.other()
    town.relay.cut()
    change(dataset, A, 1)
    change(dataset, A, 2)
    dataset.close()
    change(other, B, 1)
    town.relay.open()

    dataset = town.dataset()

    assert town.waiting() == []
    assert content(dataset) == town.content()
    assert len(dataset) == 2


@pytest.mark.parametrize("kind", ["memory", "oxigraph"])
@pytest.mark.parametrize("way", ["discard", "on top", "drop", "command on top"])
def test_conflict_in_a_program_that_goes_on_can_be_seen_and_decided(town, command, kind, way):
    dataset, other = at_odds(town, kind)
    dataset.bind("ex", EX)
    dataset.add((B, P, Literal(1), G))
    dataset.commit()
    town.relay.open()
    for call in (dataset.store.pull, dataset.commit, dataset.store.deliver):
        dataset.add((A, P, Literal("uncommitted")))
        with pytest.raises(ConflictError, match="another writer has changed the same"):
            call()
    dataset.rollback()

    first, second = dataset.store.pending()
    assert (first.state, second.state) == ("conflict", "waiting")
    assert "has changed the same" in first.error
    ours = {"on top": True, "command on top": True}.get(way, False)
    if way == "discard":
        dataset.store.discard()
    elif way == "on top":
        dataset.store.deliver(on_top=True)
    else:
        verb, *options = ["deliver", "--on-top"] if ours else ["drop", "--all", "--yes"]
        assert command(verb, *options)[0] == 0
        dataset.store.pull()

    assert dataset.store.pending() == []
    assert content(dataset) == town.content()
    assert {int(value) for value in dataset.objects(A, P)} == ({2000, 3000} if ours else {3000})
    assert ((B, P, Literal(1), G) in content(dataset)[0]) == ours
    change(dataset, A, 4000)
    other.store.pull()
    assert content(dataset) == content(other) == town.content()
    dataset.close()
    assert content(town.dataset(kind)) == content(other)


@pytest.mark.parametrize("kind", ["memory", "oxigraph"])
def test_one_of_the_patches_that_wait_is_taken_back_and_the_others_stay(town, kind):
    dataset = town.dataset(kind)
    change(dataset, A, 1)
    change(dataset, B, 1)
    town.relay.cut()
    change(dataset, A, 2)
    change(dataset, B, 2)
    change(dataset, B, 3)
    first, second, third = dataset.store.pending()
    with pytest.raises(StorageError):  # what the log says has to be known
        dataset.store.discard(first.id)
    assert [patch.id for patch in dataset.store.pending()] == [first.id, second.id, third.id]
    with pytest.raises(UsageError, match="waits in the outbox"):
        dataset.store.discard("0b1cbd3c-6a5d-4bb0-9a3f-1ff8dd38a34f")
    town.relay.open()
    wait_until(lambda: _discarded(dataset, second.id))

    assert content(dataset) == town.content()
    assert [int(value) for value in dataset.objects(A, P)] == [2]


def _discarded(dataset, patch_id):
    """The relay may take a moment to be there again."""
    try:
        dataset.store.discard(patch_id)
    except StorageError:
        return False
    except UsageError:  # the outbox was faster: then it is in the log
        dataset.store.pull()
    return True


def test_what_was_dropped_while_the_program_was_ended_is_not_in_its_store_either(town, command):
    dataset, _ = at_odds(town, "oxigraph")
    dataset.bind("ex", EX)
    dataset.commit()
    dataset.close()
    assert command("drop", "--all", "--yes")[0] == 0
    town.relay.open()

    dataset = town.dataset("oxigraph")

    assert content(dataset) == town.content()
    assert [int(value) for value in dataset.objects(A, P)] == [3000]


def test_store_with_a_patch_that_no_outbox_and_no_log_has_is_refused_until_somebody_decides(town, outbox):
    dataset, _ = at_odds(town, "oxigraph")
    dataset.close()
    outbox.unlink()
    town.relay.open()

    inner = town.store("oxigraph")
    with pytest.raises(HistoryMismatch, match="neither the log"):
        capture(inner, log=town.url, outbox=outbox)
    dataset = Dataset(store=capture(inner, log=town.url, outbox=outbox, mismatch="reload"))

    assert content(dataset) == town.content()
    assert [int(value) for value in dataset.objects(A, P)] == [3000]
    dataset.close()


def test_patches_that_two_programs_put_into_one_outbox_are_judged_against_each_other(town):
    first, second = town.dataset(), town.dataset()
    change(first, A, 1)
    second.store.pull()
    town.relay.cut()
    change(first, A, 2)
    change(second, A, 3)
    change(first, B, 1)
    town.relay.open()

    wait_until(lambda: [patch.state for patch in town.waiting()] == ["conflict", "waiting"])
    with pytest.raises(ConflictError):
        second.store.pull()
    second.store.discard(second.store.pending()[0].id)
    wait_until(lambda: not second.store.pending())
    second.store.pull()
    first.store.pull()

    assert content(first) == content(second) == town.content()
    assert [int(value) for value in first.objects(A, P)] == [2]


def test_commit_after_an_outage_is_judged_against_what_others_did_beneath_what_waited(town):
    dataset, other = town.dataset(), town.other()
    change(dataset, A, 1)
    other.store.pull()
    town.relay.cut()
    change(dataset, B, 1)
    change(other, A, 2)
    town.relay.open()
    wait_until(lambda: not town.waiting())

    dataset.set((A, P, Literal(3)))
    with pytest.raises(ConflictError):
        dataset.commit()

    dataset.rollback()
    dataset.store.pull()
    assert content(dataset) == town.content()


def test_commit_in_a_second_outage_is_judged_too_when_it_is_delivered(town):
    dataset, other = town.dataset(), town.other()
    change(dataset, A, 1)
    other.store.pull()
    town.relay.cut()
    change(dataset, B, 1)
    change(other, A, 2)
    town.relay.open()
    wait_until(lambda: not town.waiting())
    town.relay.cut()
    change(dataset, A, 3)
    town.relay.open()

    wait_until(lambda: [patch.state for patch in town.waiting()] == ["conflict"])
    dataset.store.discard()

    assert content(dataset) == town.content()
    assert [int(value) for value in dataset.objects(A, P)] == [2]


def test_outage_is_logged_once_and_each_patch_that_waits(town, caplog):
    dataset = town.dataset()
    caplog.set_level(logging.INFO, "patchlog.outbox")
    for value in (1, 4):
        town.relay.cut()
        change(dataset, A, value)
        change(dataset, A, value + 1)
        with transaction(dataset, who="ada@example.org", why="a correction"):
            dataset.set((A, P, Literal(value + 2)))
        *_, last = dataset.store.pending()
        assert last.headers["who"] == '"ada@example.org"'
        assert last.headers["why"] == '"a correction"'
        town.relay.open()
        wait_until(lambda: not dataset.store.pending())

    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    waits = [record.getMessage() for record in caplog.records if "waits in" in record.getMessage()]
    assert len(warnings) == 2
    assert all("cannot be reached" in text for text in warnings)
    assert len(waits) == 6


def test_password_in_the_url_of_a_log_is_neither_logged_nor_printed(town, outbox, command, caplog):
    caplog.set_level(logging.INFO)
    url = town.url.replace("http://", "http://ada:secret@")
    dataset = Dataset(store=capture(log=url, outbox=outbox))
    town.relay.cut()
    change(dataset, A, 1)
    dataset.close()

    said = [*command("list"), *command("list", "--json"), *command("deliver"), caplog.text]
    assert len(json.loads(command("list", "--json", "--log", town.url)[1])) == 1
    town.relay.open()
    said += command("deliver", "--log", town.url)

    assert "1 patch delivered" in said[-2]
    assert not any("secret" in str(text) for text in said)


# Refusals


def test_log_that_was_deleted_refuses_what_waits_and_no_commit_succeeds(town, command):
    dataset = town.dataset()
    change(dataset, A, 1)
    town.relay.cut()
    change(dataset, A, 2)
    town.delete()
    town.relay.open()
    wait_until(lambda: [patch.state for patch in town.waiting()] == ["refused"])

    for call in (dataset.store.pull, dataset.store.deliver, lambda: change(dataset, A, 3)):
        with pytest.raises(LogNotFound):
            call()
    town.relay.cut()
    with pytest.raises(LogNotFound):  # an outage does not hide it
        change(dataset, A, 4)

    (refused,) = json.loads(command("list", "--json")[1])
    assert refused["state"] == "refused"
    assert "no log" in refused["error"]
    assert len(town.waiting()) == 1


def test_log_that_was_deleted_and_created_again_refuses_what_waits_for_the_other_one(town, command):
    dataset = town.dataset()
    town.relay.cut()
    change(dataset, A, 1)
    town.delete()
    assert town.service.client.put(f"/logs/{town.name}").status_code == 201
    town.relay.open()

    wait_until(lambda: [patch.state for patch in town.waiting()] == ["refused"])
    with pytest.raises(HistoryMismatch, match="created again"):
        change(dataset, A, 2)
    dataset.rollback()
    assert town.content()[0] == set()
    assert command("deliver")[0] == 1
    assert command("deliver", "--on-top")[0] == 0
    dataset.store.reload()

    assert content(dataset) == town.content()
    assert [int(value) for value in dataset.objects(A, P)] == [1]
    change(dataset, A, 3)
    assert content(dataset) == town.content()


def key_command(service, *arguments):
    words = [sys.executable, "-m", "api", "key", *arguments, "--database", service.database]
    return subprocess.run(words, cwd=HOUSE, check=True, capture_output=True, text=True).stdout


def test_key_that_was_revoked_refuses_what_waits_and_every_commit_after_it(start, outbox):
    service = start(keys="required")
    key = key_command(service, "create", "--scope", "log:people:admin").strip()
    relay = Relay(service.port)
    url = f"{relay.url}/logs/people"
    dataset = Dataset(store=capture(log=url, outbox=outbox, token=key))
    change(dataset, A, 1)
    relay.cut()
    change(dataset, A, 2)
    key_command(service, "revoke", key_command(service, "list").split()[0])

    def is_refused():
        with Outbox(outbox) as opened:
            return [patch.state for patch in opened.waiting()] == ["refused"]

    # The service goes by the keys that it knows for a few seconds.
    wait_until(lambda: service.client.get("/logs", headers={"Authorization": f"Bearer {key}"}).is_client_error)
    relay.open()
    wait_until(is_refused)
    for value in (3, 4):
        with pytest.raises(UsageError, match="key"):
            change(dataset, A, value)
        dataset.rollback()
    relay.cut()

    assert [int(value) for value in dataset.objects(A, P)] == [2]
    dataset.close()


# Files of the version before


def test_outbox_of_the_version_before_is_delivered_and_judged(town, outbox):
    """Its patches have no position: the patch that they were built on says where their writer stood."""
    dataset, other = town.dataset(), town.other()
    change(dataset, A, 1)
    other.store.pull()
    town.relay.cut()
    change(dataset, A, 2)
    change(dataset, B, 1)
    dataset.close()
    change(other, A, 3)
    with Outbox(outbox) as opened:
        connection = opened._connection
        rows = connection.execute("SELECT log, id, expected_head, content, queued FROM queued").fetchall()
        connection.execute("DROP TABLE queued")
        connection.execute("DROP TABLE settled")
        connection.execute(
            "CREATE TABLE queued (number INTEGER PRIMARY KEY AUTOINCREMENT, log TEXT NOT NULL, "
            "id TEXT NOT NULL UNIQUE, expected_head TEXT, content BLOB NOT NULL, queued TEXT NOT NULL, "
            "attempts INTEGER NOT NULL DEFAULT 0, error TEXT) STRICT"
        )
        connection.executemany(
            "INSERT INTO queued (log, id, expected_head, content, queued) VALUES (?, ?, ?, ?, ?)", rows
        )
    town.relay.open()

    with pytest.raises(ConflictError):
        town.dataset()
    first, second = town.waiting()
    assert (first.state, second.state) == ("conflict", "waiting")
    with Outbox(outbox) as opened:
        opened.drop(first.id)
    dataset = town.dataset()

    assert town.waiting() == []
    assert content(dataset) == town.content()


def test_patch_on_a_patch_that_no_log_has_is_refused(town, outbox):
    town.dataset().close()
    with Outbox(outbox) as opened:
        opened.put(
            town.url,
            "0b1cbd3c-6a5d-4bb0-9a3f-1ff8dd38a34f",
            Basis("1b1cbd3c-6a5d-4bb0-9a3f-1ff8dd38a34f"),
            b"H id <urn:uuid:0b1cbd3c-6a5d-4bb0-9a3f-1ff8dd38a34f> .\nTX .\nTC .\n",
        )

    with pytest.raises(HistoryMismatch, match="does not have"):
        town.dataset()
