"""Captured datasets whose service goes away and comes back: nothing is lost, doubled, or out of order."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest
from rdflib import Dataset, Literal, URIRef

from patchlog import capture, transaction
from patchlog.cli import main
from patchlog.errors import ConflictError, StorageError, StorageFull
from patchlog.outbox import Outbox
from tests.waiting import wait_until

HOUSE = Path(__file__).parents[2]
EX = "http://example.org/"
A, B, P = (URIRef(EX + name) for name in "abp")


@pytest.fixture
def outbox(tmp_path):
    return tmp_path / "outbox.db"


@pytest.fixture
def captured(outbox):
    """Datasets on a log of a service, closed in the end."""
    opened = []

    def dataset(service, **options):
        store = capture(log=f"{service.url}/logs/people", **({"outbox": outbox} | options))
        opened.append(Dataset(store=store))
        return opened[-1]

    yield dataset
    for one in opened:
        one.close()


@pytest.fixture
def numbers():
    """The numbers that each patch of the log adds, patch by patch."""

    def read(service):
        dataset = Dataset(store=capture(log=f"{service.url}/logs/people", outbox=False))
        patches = service.client.get("/logs/people/patches", headers={"Accept": "application/json"}).json()["patches"]
        found = sorted(int(object_) for object_ in dataset.objects(A, P))
        dataset.close()
        return [patch["adds"] for patch in patches], found

    return read


def commit(dataset, *values):
    for value in values:
        dataset.add((A, P, Literal(value)))
    dataset.commit()


def wait_until_delivered(outbox):
    """After a while without a service it is asked for once in half a minute."""
    with closing(Outbox(outbox)) as opened:
        wait_until(lambda: not opened.waiting(), seconds=120)


def test_application_goes_on_while_the_service_is_away_and_all_is_delivered_when_it_is_back(
    start, captured, outbox, numbers
):
    service = start()
    dataset = captured(service)
    commit(dataset, 1)
    port, database = service.port, service.database
    service.end()

    for value in range(2, 7):
        commit(dataset, value)
    waiting = Outbox(outbox).waiting()
    back = start(database, port=port)

    assert len(waiting) == 5
    assert len(dataset) == 6
    wait_until_delivered(outbox)
    assert numbers(back) == ([1] * 6, [1, 2, 3, 4, 5, 6])
    commit(dataset, 7)
    assert numbers(back) == ([1] * 7, [1, 2, 3, 4, 5, 6, 7])


def test_what_waits_when_the_process_ends_is_delivered_by_the_next_one(start, captured, outbox, numbers):
    service = start()
    first = captured(service)
    commit(first, 1)
    port, database = service.port, service.database
    service.end()
    commit(first, 2)
    commit(first, 3)
    first.close()

    back = start(database, port=port)
    second = captured(back)

    assert sorted(int(value) for value in second.objects(A, P)) == [1, 2, 3]
    commit(second, 4)
    wait_until_delivered(outbox)
    assert numbers(back) == ([1] * 4, [1, 2, 3, 4])


PROGRAM = """
import os, sys
from rdflib import Dataset, Literal, URIRef
from patchlog import capture, transaction
dataset = Dataset(store=capture(log=sys.argv[1], outbox=sys.argv[2]))
print("open", flush=True)
for line in sys.stdin:
    dataset.add((URIRef("http://example.org/a"), URIRef("http://example.org/p"), Literal(int(line))))
    dataset.commit()
    print("committed", flush=True)
"""


def test_what_was_committed_survives_a_kill_of_the_application_while_the_service_is_away(
    start, captured, outbox, numbers
):
    service = start()
    port, database = service.port, service.database
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, f"{service.url}/logs/people", str(outbox)],
        env=os.environ | {"PYTHONPATH": str(HOUSE)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout.readline() == "open\n"
        service.end()
        for value in (1, 2, 3):
            print(value, file=program.stdin, flush=True)
            assert program.stdout.readline() == "committed\n"
        program.send_signal(signal.SIGKILL)

    back = start(database, port=port)
    commit(captured(back), 4)

    wait_until_delivered(outbox)
    assert numbers(back) == ([1] * 4, [1, 2, 3, 4])


def test_service_that_is_killed_again_and_again_gets_each_patch_once(start, captured, outbox, numbers):
    service = start()
    dataset = captured(service)
    port, database = service.port, service.database
    for value in range(30):
        if value % 10 == 5:
            service.process.kill()
            service.process.wait()
        if value % 10 == 8:
            service = start(database, port=port)
        commit(dataset, value)

    wait_until_delivered(outbox)
    assert numbers(service) == ([1] * 30, list(range(30)))


def test_what_others_wrote_meanwhile_comes_together_where_it_is_about_other_quads(start, captured, outbox, numbers):
    service = start()
    dataset, other = captured(service), captured(service, outbox=False)
    port, database = service.port, service.database
    service.end()
    commit(dataset, 1)
    commit(dataset, 2)
    back = start(database, port=port)
    # Before the outbox gets there, or after: either way both are in the log in the end.
    other.store.pull()
    other.add((B, P, Literal("other")))
    other.commit()

    numbers_of_commits = count(3)

    def is_delivered():
        commit(dataset, next(numbers_of_commits))
        return not Outbox(outbox).waiting()

    wait_until(is_delivered, seconds=120, pause=0.2)
    dataset.store.pull()
    other.store.pull()

    assert set(dataset.quads()) == set(other.quads())
    assert {1, 2} <= set(numbers(back)[1])


def test_conflict_with_what_waits_is_named_and_nothing_is_dropped(start, captured, outbox):
    service = start()
    dataset, other = captured(service), captured(service, outbox=False)
    port, database = service.port, service.database
    commit(dataset, 1)
    other.store.pull()
    other.remove((A, P, Literal(1)))
    other.commit()
    service.end()
    dataset.remove((A, P, Literal(1)))
    dataset.commit()
    commit(dataset, 2)
    start(database, port=port)

    def until_it_is_told():
        for value in range(3, 1000):
            commit(dataset, value)
            time.sleep(0.2)

    with pytest.raises(ConflictError) as caught:
        until_it_is_told()

    waiting = Outbox(outbox).waiting()
    assert caught.value.quads == [(f"<{EX}a>", f"<{EX}p>", '"1"^^<http://www.w3.org/2001/XMLSchema#integer>', "")]
    assert len(waiting) >= 2
    assert (waiting[0].state, caught.value.patch) == ("conflict", waiting[0].id)
    assert "has changed the same" in waiting[0].error


def test_full_outbox_refuses_the_commit_and_keeps_the_change(start, captured):
    service = start()
    dataset = captured(service, outbox_max_patches=2)
    service.end()
    commit(dataset, 1)
    commit(dataset, 2)

    with pytest.raises(StorageFull, match="stays uncommitted"):
        commit(dataset, 3)

    assert dataset.store.has_changes
    assert len(dataset) == 3
    dataset.rollback()
    assert len(dataset) == 2


def test_without_an_outbox_the_commit_fails_and_keeps_the_change(start, captured):
    service = start()
    dataset = captured(service, outbox=False)
    service.end()

    with pytest.raises(StorageError):
        commit(dataset, 1)

    assert dataset.store.has_changes


def test_dataset_is_not_opened_without_the_service(outbox):
    with pytest.raises(StorageError, match=r"http://127.0.0.1:1 cannot be reached"):
        capture(log="http://127.0.0.1:1/logs/people", outbox=outbox)

    assert not outbox.exists()


@pytest.fixture
def command(outbox, capsys):
    """Run `patchlog outbox VERB` on the outbox: the exit code, and what it has written."""

    def run(verb, *arguments):
        code = main(["outbox", verb, "--outbox", str(outbox), *arguments])
        return code, *capsys.readouterr()

    return run


def test_command_lists_shows_delivers_and_drops_what_waits(start, captured, command, numbers):
    service = start()
    dataset = captured(service)
    port, database = service.port, service.database
    service.end()
    with transaction(dataset, who="ada@example.org", why="a correction"):
        dataset.add((A, P, Literal(1)))
    commit(dataset, 2)
    commit(dataset, 3)
    dataset.close()

    code, out, _ = command("list", "--json")
    first, second, last = json.loads(out)
    assert code == 0
    assert (first["state"], first["conflicts"], first["position"]["version"]) == ("waiting", "rebase", 0)
    assert (first["headers"]["who"], first["headers"]["why"]) == ('"ada@example.org"', '"a correction"')
    code, out, _ = command("list")
    assert f"{service.url}/logs/people  {first['id']}" in out
    assert 'who "ada@example.org"  why "a correction"' in out
    code, out, _ = command("show", first["id"])
    assert f"H id <urn:uuid:{first['id']}> ." in out
    code, _, error = command("deliver")
    assert (code, error.startswith("error: ")) == (1, True)
    code, _, error = command("drop", last["id"])
    assert (code, "--yes" in error) == (1, True)
    assert command("drop", last["id"], "--yes")[:2] == (0, "1 patch dropped\n")
    assert command("drop", last["id"], "--yes")[0] == 1
    back = start(database, port=port)
    code, out, _ = command("deliver", "--json")
    assert (code, json.loads(out)) == (
        0,
        [{"log": f"{service.url}/logs/people", "delivered": 2, "waiting": 0, "error": None}],
    )
    assert "nothing waits" in command("list")[1]
    assert numbers(back) == ([1, 1], [1, 2])
    assert second["expected_head"] == first["id"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["drop"], 2),
        (["drop", "x", "--all"], 2),
        (["drop", "x", "--log", "http://localhost/logs/people"], 2),
        (["list", "--outbox", "nowhere.db"], 1),
        (["show", "x"], 1),
    ],
)
def test_misused_command_says_so_in_a_line(arguments, code, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("PATCHLOG_OUTBOX", str(tmp_path / "outbox.db"))

    assert main(["outbox", *arguments]) == code
    assert capsys.readouterr().err.startswith("error: ")


def test_command_delivers_what_does_not_touch_what_others_did_and_the_rest_on_top_only(
    start, captured, command, numbers
):
    service = start()
    dataset, other = captured(service), captured(service, outbox=False)
    port, database = service.port, service.database
    commit(dataset, 7)
    other.store.pull()
    commit(other, 8)
    other.remove((A, P, Literal(7)))
    other.commit()
    service.end()
    commit(dataset, 1)
    dataset.remove((A, P, Literal(7)))
    dataset.add((A, P, Literal(9)))
    dataset.commit()
    dataset.close()
    back = start(database, port=port)

    refused = command("deliver")
    assert refused[:2] == (1, f"{service.url}/logs/people: 1 patch delivered\n")
    assert "has changed the same" in refused[2]
    assert [patch["state"] for patch in json.loads(command("list", "--json")[1])] == ["conflict"]
    assert command("deliver")[0] == 1
    assert numbers(back)[1] == [1, 8]
    assert command("deliver", "--on-top")[0] == 0

    assert numbers(back)[1] == [1, 8, 9]


def test_outbox_is_for_the_eyes_of_its_user_alone(tmp_path):
    outbox = Outbox(tmp_path / "outbox.db")

    others_may = [file.name for file in tmp_path.iterdir() if file.stat().st_mode & 0o077]

    outbox.close()
    assert others_may == []
