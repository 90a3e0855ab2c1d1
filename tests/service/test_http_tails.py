"""Live tails: chunked streams, server-sent events and long polls."""

import http.client
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from patchlog.engine import PatchDecoder
from patchlog.log.sql import SqlLogStore
from patchlog.model import Add, Punctuation
from tests.waiting import wait_until


@contextmanager
def tail(log, after=0, accept="*/*", **headers):
    """The answer to a request for a live tail, which is read from as bytes come."""
    connection = http.client.HTTPConnection("127.0.0.1", log.service.port, timeout=60)
    connection.request("GET", f"{log.path}/stream?after={after}", headers={"Accept": accept, **headers})
    answer = connection.getresponse()
    assert answer.status == 200
    yield answer
    answer.close()
    connection.close()


def read_until(answer, wanted):
    """What has come when it ends as wanted."""
    data = b""
    while not data.endswith(wanted):
        piece = answer.read1()
        assert piece, f"the tail ended: {data!r}"
        data += piece
    return data


def read_patches(answer, count):
    decoder = PatchDecoder()
    found = []
    while sum(isinstance(operation, Punctuation) for operation in found) < count:
        piece = answer.read1()
        assert piece
        found += decoder.feed(piece)
    return found


def subjects(decoded):
    return [operation.subject[20:-1] for operation in decoded if isinstance(operation, Add)]


def test_tail_has_what_is_there_and_what_comes(log, patches):
    log.append(patches.one("a"))
    log.append(patches.one("b"))

    with tail(log, after=1) as answer:
        there = read_patches(answer, 1)
        log.append(patches.one("c"))
        come = read_patches(answer, 1)

    assert answer.getheader("content-type") == "application/x-jelly-rdf-patch"
    assert answer.getheader("cache-control") == "no-store"
    assert subjects(there + come) == ["b", "c"]


def test_tail_begins_before_the_log_has_patches(log, patches):
    with tail(log) as answer:
        log.append(patches.one("a"))

        assert subjects(read_patches(answer, 1)) == ["a"]


def test_tail_is_told_of_a_patch_and_does_not_look_for_it(service, start, new_log, patches):
    log = new_log(start(service.database, poll_seconds=3600))

    with tail(log) as answer:
        for i in range(20):
            log.append(patches.one(f"s{i}"))

            assert subjects(read_patches(answer, 1)) == [f"s{i}"]


def test_idle_tail_gets_heartbeats(start, new_log, patches):
    log = new_log(start(heartbeat_seconds=0.1))
    log.append(patches.one())

    for accept, heartbeat in (
        ("*/*", b"\0"),
        ("application/rdf-patch", b"#\n"),
        ("text/event-stream", b":\n\n"),
    ):
        with tail(log, after=1, accept=accept) as answer:
            assert answer.read(len(heartbeat) * 3) == heartbeat * 3


def test_heartbeats_may_be_decoded(start, new_log, patches):
    log = new_log(start(heartbeat_seconds=0.05))

    with tail(log) as answer:
        time.sleep(0.2)
        log.append(patches.one("a"))
        first = read_patches(answer, 1)
        time.sleep(0.2)
        log.append(patches.one("b"))
        second = read_patches(answer, 1)

    assert subjects(first + second) == ["a", "b"]


def test_events_have_the_version_as_their_id(log, patches):
    log.append(patches.one("a", id=patches.A))

    with tail(log, accept="text/event-stream") as answer:
        first = read_until(answer, b"\n\n")
        log.append(patches.one("b"))
        second = read_until(answer, b"\n\n")

    assert answer.getheader("content-type").startswith("text/event-stream")
    assert first.decode().splitlines() == [
        f"data: H id <urn:uuid:{patches.A}> .",
        "data: TX .",
        'data: A <http://example.org/a> <http://example.org/p> "v" .',
        "data: TC .",
        "event: patch",
        "id: 1",
        "",
    ]
    assert b"\nid: 2\n" in second


def test_events_go_on_where_the_client_was(log, patches):
    for subject in "abc":
        log.append(patches.one(subject))

    with tail(log, accept="text/event-stream", **{"Last-Event-ID": "2"}) as answer:
        event = read_until(answer, b"\n\n")

    assert b"\nid: 3\n" in event


def test_tail_as_text(log, patches):
    with tail(log, accept="application/rdf-patch") as answer:
        log.append(patches.one("a"))

        assert read_until(answer, b"Z .\n").count(b"\nA ") == 1


@pytest.mark.parametrize("query", ["after=-1", "after=x", "wait=-1", "wait=soon"])
def test_tails_from_nowhere_are_refused(log, query):
    assert log.get(f"/stream?{query}").status_code == 400


def test_tail_of_no_log_is_not_found(service):
    assert service.client.get("/logs/nobody/stream").status_code == 404


def test_long_poll_answers_with_what_is_there(log, patches, operations):
    log.append(patches.one("a"))
    log.append(patches.one("b"))

    answer = log.get("/stream?after=0&wait=10")

    assert subjects(operations(answer.content)) == ["a", "b"]


def test_long_poll_waits_for_a_patch(log, patches, operations):
    before = log.service.open_tails

    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(log.get, "/stream?after=0&wait=60", timeout=60)
        wait_until(lambda: log.service.open_tails > before)
        assert not waiting.done()
        log.append(patches.one("a"))

        assert subjects(operations(waiting.result().content)) == ["a"]


def test_long_poll_ends_when_the_time_is_up(log):
    begun = time.monotonic()

    answer = log.get("/stream?after=0&wait=0.3")

    assert (answer.status_code, answer.content) == (204, b"")
    assert time.monotonic() - begun > 0.2


def test_tail_ends_with_its_log(log, patches):
    log.append(patches.one())

    with tail(log) as answer:
        read_patches(answer, 1)
        log.delete()
        log.client.put(log.path)
        log.append(patches.one("another"))

        assert answer.read() == b""


def test_tail_hears_of_appends_by_other_processes(log, patches):
    """PostgreSQL tells us; SQLite is looked at now and then."""
    store = SqlLogStore(log.service.database)

    with tail(log) as answer:
        store.log(log.name).append(patches.one("other"))

        assert subjects(read_patches(answer, 1)) == ["other"]
    store.close()


def test_large_patches_come_in_their_order(log, patches):
    """A patch that is too large to be held for all tails is read by each."""
    large = [f'"{i}-{"x" * 1000}"' for i in range(3000)]

    with tail(log) as answer, tail(log) as other:
        log.append(patches.one("a"))
        log.append(patches.one("b", values=large))
        log.append(patches.one("c"))
        come, as_well = read_patches(answer, 3), read_patches(other, 3)

    assert [subject for subject in subjects(come) if subject != "b"] == ["a", "c"]
    assert len(subjects(come)) == 3002
    assert subjects(as_well) == subjects(come)


def test_many_tails_under_writers_miss_and_repeat_nothing(service, new_log, patches):
    log = new_log(service)
    writers, each, tails = 4, 40, 30

    def follow():
        with tail(log) as answer:
            return subjects(read_patches(answer, writers * each))

    def write(who):
        connection = http.client.HTTPConnection("127.0.0.1", service.port)
        for i in range(each):
            body = b"".join(patches.one(f"{who}-{i}"))
            connection.request("POST", f"{log.path}/patches", body, {"Content-Type": "application/x-jelly-rdf-patch"})
            answer = connection.getresponse()
            assert (answer.status, answer.read()[:1]) == (201, b"{")
        connection.close()

    with ThreadPoolExecutor(tails + writers) as threads:
        following = [threads.submit(follow) for _ in range(tails)]
        for done in [threads.submit(write, who) for who in range(writers)]:
            done.result()
        got = [one.result() for one in following]

    logged = subjects(PatchDecoder().feed(log.get("/patches").content))
    assert len(logged) == writers * each
    assert all(mine == logged for mine in got)


def test_idle_tails_are_cheap(sqlite_service, new_log, patches):
    """A slice of thousands: no thread each, and little memory."""
    log = new_log(sqlite_service)
    wait_until(lambda: log.service.open_tails == 0)
    before = sqlite_service.resident_bytes
    connections = [sqlite_service.connect() for _ in range(300)]
    for connection in connections:
        connection.sendall(f"GET {log.path}/stream HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    for connection in connections:
        assert connection.recv(1000)
    threads = len(list(Path(f"/proc/{sqlite_service.process.pid}/task").iterdir()))

    log.append(patches.one())
    for connection in connections:
        assert connection.recv(1000)

    assert log.service.open_tails == len(connections)
    assert threads < 100
    assert (sqlite_service.resident_bytes - before) / len(connections) < 100_000
    for connection in connections:
        connection.close()
    wait_until(lambda: log.service.open_tails == 0)
