"""Long work is visible, can be cancelled, and ends when nobody wants it any more: a real service that reads slowly."""

import re
import socket
import threading
from functools import partial

import grpc
import pytest

from api.keys import create_key
from patchlog.log.database import Database
from tests.service.conftest import JELLY, ServiceProcess
from tests.service.grpc_calls import grpc_address, refusal, subscribe
from tests.waiting import wait_until

# Each patch, and each byte of a snapshot, takes a tenth of a second: what is asked for here would take minutes.
_SLOW = """
import time
from patchlog.log import sql
from patchlog.log.snapshots.store import LocalSnapshots

logged, chunks = sql.logged_patches, LocalSnapshots._chunks

def slow_logged(database, log, versions):
    for one in logged(database, log, versions):
        if len(versions) > 1:
            time.sleep(0.1)
        yield one

def slow_chunks(self, filed, start=0):
    for chunk in chunks(self, filed, start):
        for at in range(len(chunk)):
            time.sleep(0.1)
            yield chunk[at : at + 1]

sql.logged_patches = slow_logged
LocalSnapshots._chunks = slow_chunks
from api.__main__ import main
main()
"""
PATCHES = 1500


@pytest.fixture(scope="module")
def filled(tmp_path_factory, patches):
    """A service with a log of many patches."""
    folder = tmp_path_factory.mktemp("jobs")
    database = f"sqlite:///{folder}/log.db"
    fast = ServiceProcess(folder, database)
    many = [patches.operations(f"s{number}") for number in range(PATCHES)]
    for name in ("people", "others"):
        assert fast.client.put(f"/logs/{name}").status_code == 201
        data = b"".join(patches.stream(*many))
        assert fast.client.post(f"/logs/{name}/patches", content=data, headers=JELLY).status_code == 201
    made = fast.client.post("/logs/people/snapshots", params={"wait": 60}, json={"version": 1000})
    assert made.status_code == 201, made.text
    fast.end()
    keys = Database(database)
    texts = {scope: create_key(keys, [f"log:{scope}"])[1] for scope in ("people:read", "people:admin", "*:admin")}
    keys.close()
    return folder, database, texts


@pytest.fixture(scope="module")
def slow(filled):
    folder, database, _ = filled
    one = ServiceProcess(folder, database, ("-c", _SLOW), grpc_port=0)
    yield one
    one.end()


def jobs(service, **headers):
    return service.client.get("/jobs", headers=headers).json()["jobs"]


def running(service, pool):
    metrics = service.client.get("/metrics").text
    return float(re.search(rf'^patchlog_pool_running{{pool="{pool}"}} (\S+)$', metrics, re.MULTILINE)[1])


def ask(service, method, target, body=b""):
    """Send a request, and return its connection."""
    connection = socket.create_connection(("127.0.0.1", service.port), timeout=60)
    head = f"{method} {target} HTTP/1.1\r\nHost: 127.0.0.1:{service.port}\r\nContent-Length: {len(body)}\r\n"
    connection.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode() + body)
    return connection


LISTED = [
    ("verify", "GET", "/logs/people/verify", b""),
    ("verify-snapshot", "GET", "/logs/people/snapshots/1000/verify", b""),
    ("build", "POST", "/logs/others/snapshots?wait=60", b'{"version": 1500}'),
    (
        "copy",
        "POST",
        "/rdf-delta/$/rpc",
        b'{"opid": "1", "operation": "copy_datasource", "arg": {"datasource": "ID", "src": "people", "dst": "copied"}}',
    ),
]


@pytest.mark.parametrize(("kind", "method", "target", "body"), LISTED, ids=[row[0] for row in LISTED])
def test_job_ends_when_its_client_goes_away(slow, kind, method, target, body):
    body = body.replace(b"ID", slow.client.get("/logs/people").json()["id"].encode())
    connection = ask(slow, method, target, body)
    job = wait_until(
        lambda: next((one for one in jobs(slow) if (one["kind"], one["state"]) == (kind, "running")), None)
    )

    connection.close()

    shown = partial(slow.client.get, f"/jobs/{job['id']}")
    wait_until(lambda: shown().json()["state"] == "cancelled", seconds=20)
    assert "nobody waits" in shown().json()["error"]
    assert running(slow, "job") == running(slow, "build") == 0
    assert slow.client.get("/logs/copied").status_code == 404


@pytest.mark.parametrize(
    "target",
    [
        "/logs/people/diff?from=1&to=1400",
        "/logs/people/history?subject=http://example.org/s1",
        "/ui/logs/people/compare?from=1&to=1400",
        "/ui/logs/people/history?subject=http://example.org/s1",
    ],
)
def test_work_that_is_not_listed_ends_too(slow, target):
    connection = ask(slow, "GET", target)
    wait_until(lambda: running(slow, "job") == 1)
    assert not [one for one in jobs(slow) if one["state"] == "running"]

    connection.close()

    wait_until(lambda: running(slow, "job") == 0, seconds=20)


def test_subscription_that_is_cancelled_ends_its_work(slow):
    with grpc.insecure_channel(grpc_address(slow)) as channel:
        call = subscribe(channel, "others@1400")
        reading = threading.Thread(target=refusal, args=[partial(list, call)])
        reading.start()
        wait_until(lambda: any((one["kind"], one["state"]) == ("dataset", "running") for one in jobs(slow)))

        call.cancel()

        wait_until(lambda: running(slow, "build") == 0, seconds=20)
        reading.join()
    assert [one["state"] for one in jobs(slow) if one["kind"] == "dataset"] == ["cancelled"]


def test_build_that_another_client_asked_for_too_goes_on(slow):
    body = b'{"version": 1499}'
    first = ask(slow, "POST", "/logs/others/snapshots?wait=60", body)
    building = partial(lambda: [one for one in jobs(slow) if (one["kind"], one["state"]) == ("build", "running")])
    [job] = wait_until(building)
    answer = slow.client.post("/logs/others/snapshots", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 202

    first.close()
    lost = ask(slow, "GET", "/logs/people/verify")
    wait_until(lambda: any(one["kind"] == "verify" and one["state"] == "running" for one in jobs(slow)))
    lost.close()
    wait_until(lambda: running(slow, "job") == 0, seconds=20)  # by then the other one would have ended as well

    assert [one["id"] for one in building()] == [job["id"]]
    cancelled = slow.client.delete(f"/jobs/{job['id']}").json()
    assert cancelled["id"] == job["id"]
    wait_until(lambda: slow.client.get(f"/jobs/{job['id']}").json()["state"] == "cancelled", seconds=20)
    pending = slow.client.get("/logs/others/snapshots/1499?format=json").json()
    assert "cancelled" in pending["error"]


def test_jobs_say_how_far_they_are(slow):
    connection = ask(slow, "GET", "/logs/people/verify")
    shown = wait_until(
        lambda: next(
            (one for one in jobs(slow) if one["state"] == "running" and one["progress"] and one["progress"]["done"]),
            None,
        )
    )
    page = slow.client.get("/ui/jobs").text
    connection.close()

    assert shown["progress"]["total"] == PATCHES
    assert 0 < shown["progress"]["done"] < PATCHES
    assert (shown["kind"], shown["log"], shown["principal"]) == ("verify", "people", None)
    assert shown["id"] in page
    assert "of 1,500" in page
    wait_until(lambda: running(slow, "job") == 0, seconds=20)


def test_cancelling_a_job_is_the_answer_to_who_waits_for_it(slow):
    answers = []
    waiting = threading.Thread(target=lambda: answers.append(slow.client.get("/logs/people/verify")))
    waiting.start()
    job = wait_until(lambda: next((one for one in jobs(slow) if one["state"] == "running"), None))

    slow.client.delete(f"/jobs/{job['id']}")

    waiting.join(20)
    assert (answers[0].status_code, answers[0].json()["type"]) == (409, "urn:patchlog:problem:job-cancelled")
    again = slow.client.delete(f"/jobs/{job['id']}")
    assert (again.status_code, again.json()["state"]) == (200, "cancelled")
    assert slow.client.get("/jobs/0123").status_code == 404


def test_keys_see_the_jobs_of_their_logs_and_share_the_threads(filled):
    folder, database, texts = filled
    guarded = ServiceProcess(folder, database, ("-c", _SLOW), keys="required", max_jobs_per_key=3)
    heads = {name: {"Authorization": f"Bearer {text}"} for name, text in texts.items()}
    connections = []
    try:

        def begin(name, log):
            connection = guarded.connect()
            lines = (f"GET /logs/{log}/verify HTTP/1.1", f"Host: 127.0.0.1:{guarded.port}")
            lines += (f"Authorization: {heads[name]['Authorization']}", "", "")
            connection.sendall("\r\n".join(lines).encode())
            connections.append(connection)

        for _ in range(3):
            begin("*:admin", "others")
        wait_until(lambda: len(jobs(guarded, **heads["*:admin"])) == 3)
        begin("people:read", "people")
        states = lambda: sorted(one["state"] for one in jobs(guarded, **heads["*:admin"]))  # noqa: E731
        wait_until(lambda: states() == ["running", "running", "running", "waiting"])

        [mine] = jobs(guarded, **heads["people:read"])
        assert (mine["log"], mine["state"]) == ("people", "running")
        assert mine["principal"].startswith("key:")
        refused = guarded.client.get("/logs/others/verify", headers=heads["*:admin"])
        assert (refused.status_code, refused.json()["type"]) == (429, "urn:patchlog:problem:too-many-jobs")
        theirs = next(one["id"] for one in jobs(guarded, **heads["*:admin"]) if one["log"] == "others")
        for method in ("GET", "DELETE"):
            assert guarded.client.request(method, f"/jobs/{theirs}", headers=heads["people:admin"]).status_code == 404
        assert guarded.client.delete(f"/jobs/{mine['id']}", headers=heads["people:read"]).status_code == 403
        assert guarded.client.delete(f"/jobs/{mine['id']}", headers=heads["people:admin"]).status_code == 200
        wait_until(
            lambda: (
                guarded.client.get(f"/jobs/{mine['id']}", headers=heads["people:read"]).json()["state"] == "cancelled"
            ),
            seconds=20,
        )
    finally:
        for connection in connections:
            connection.close()
        guarded.end()


def test_dataset_that_comes_slowly_can_be_cancelled_and_leaves_room_for_other_keys(filled):
    """The threads for datasets waited for their clients: a key that sent four, byte by byte, kept out all others."""
    folder, database, _ = filled
    service = ServiceProcess(folder, database, keys="required")
    keys = Database(database)
    slow, other = (create_key(keys, ["log:*:admin"])[1] for _ in range(2))
    keys.close()
    connections = []
    try:
        for name in ("d1", "d2", "d3", "d4", "d5"):
            assert service.client.put(f"/logs/{name}", headers={"Authorization": f"Bearer {other}"}).status_code < 300
        for name in ("d1", "d2", "d3", "d4"):
            connections.append(service.connect())
            connections[-1].sendall(
                f"PUT /logs/{name}/snapshots/0 HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {slow}\r\n"
                "Content-Type: application/n-quads\r\nContent-Length: 1000\r\n\r\n<a:".encode()
            )
        client = {"Authorization": f"Bearer {other}"}
        wait_until(lambda: [one["state"] for one in jobs(service, **client)].count("running") == 2)
        quad = b'<http://example.org/s> <http://example.org/p> "v" .\n'
        taken = service.client.put(
            "/logs/d5/snapshots/0", content=quad, headers=client | {"Content-Type": "application/n-quads"}, timeout=20
        )
        assert taken.status_code == 201
        for one in jobs(service, **client):
            if one["state"] in ("running", "waiting"):
                assert service.client.delete(f"/jobs/{one['id']}", headers=client).status_code == 200
        wait_until(lambda: {one["state"] for one in jobs(service, **client)} == {"done", "cancelled"})
        assert connections[0].recv(12) == b"HTTP/1.1 409"
    finally:
        for one in connections:
            one.close()
        service.end()
