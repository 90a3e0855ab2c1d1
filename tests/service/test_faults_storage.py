"""Storage that fails under a running service: full, away, or with other bytes than were written."""

import os
import subprocess

import grpc
import pytest
from sqlalchemy import create_engine, text

from api.keys import create_key
from patchlog.log.database import Database
from patchlog.log.migration import migrate
from tests.service.grpc_calls import grpc_address, patches_of, refusal
from tests.waiting import wait_until

TEXT = {"Content-Type": "application/rdf-patch"}


@pytest.fixture
def small_disk(tmp_path):
    """A file system of a few megabytes."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(place)], capture_output=True, check=False, text=True
    )
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_full_disk_is_507_and_there_is_room_again(small_disk, start, new_log, patches):
    service = start(f"sqlite:///{small_disk}/log.db")
    log = new_log(service)
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"\0" * (2 << 20))
    answers = []

    while not answers or answers[-1].status_code == 201:
        answers.append(log.append(patches.one(f"s{len(answers)}", values=[f'"{"x" * 10_000}"'])))
    refused = answers.pop()
    head = log.get().json()["head"]["version"]
    ballast.unlink()
    again = log.append(patches.one("again"))

    assert (refused.status_code, refused.json()["type"]) == (507, "urn:patchlog:problem:storage-full")
    assert int(refused.headers["Retry-After"]) > 0
    assert head == len(answers), "nothing of what was refused is there"
    assert (again.status_code, again.json()["version"]) == (201, head + 1)
    assert log.get("/verify").json()["sound"]


def test_large_upload_to_a_full_disk_leaves_nothing(small_disk, start, new_log):
    service = start(f"sqlite:///{small_disk}/log.db")
    log = new_log(service)
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"\0" * (3 << 20))
    rows = (b'A <http://e/%d> <http://e/p> "%b" .\n' % (i, os.urandom(500).hex().encode()) for i in range(5000))
    body = b"".join([b"TX .\n", *rows, b"TC .\n"])

    refused = log.append_text(body)
    ballast.unlink()
    small = log.append_text(b"TX .\nTC .\n")

    assert refused.status_code == 507
    assert (small.status_code, small.json()["version"]) == (201, 1)
    assert log.get().json()["bytes"] == small.json()["bytes"]


def test_database_that_is_away_is_503_until_it_is_back(own_postgresql_server, start, new_log, patches):
    url = own_postgresql_server.new_database()
    database = Database(url)
    migrate(database)
    database.close()
    service = start(url)
    log = new_log(service)
    log.append(patches.one("a"))

    own_postgresql_server.stop()
    away = [log.append(patches.one("b")), log.get("/patches"), log.get(), service.client.get("/readyz")]
    lives = service.client.get("/healthz")
    own_postgresql_server.go_on()
    wait_until(lambda: service.client.get("/readyz").status_code == 200)

    assert [answer.status_code for answer in away] == [503] * 4
    assert all(int(answer.headers["Retry-After"]) > 0 for answer in away)
    for answer in away:
        assert "the log of the service says why" in answer.json()["detail"]
        assert ".s.PGSQL" not in answer.text, "where the database is, is not for everyone"
    assert ".s.PGSQL" in service.log_text
    assert lives.status_code == 200
    assert log.append(patches.one("b")).json()["version"] == 2
    assert log.get("/verify").json()["sound"]


def test_keys_that_cannot_be_looked_up_are_503_on_every_door(own_postgresql_server, start):
    """They were 500 without a word, which writers take for final; and strangers were told where the database is."""
    url = own_postgresql_server.new_database()
    database = Database(url)
    migrate(database)
    _, key = create_key(database, ["log:*:admin"])
    database.close()
    service = start(url, keys="required", grpc_port=0)
    client, headers = service.client, {"Authorization": f"Bearer {key}"}

    own_postgresql_server.stop()
    away = [
        client.get("/logs", headers=headers),
        client.post("/logs/people/patches", content=b"TX .\nTC .\n", headers=headers | TEXT),
        client.get("/rdf-delta/people", headers=headers),
        client.get("/ui", headers=headers | {"Accept": "application/json"}),
        client.get("/readyz"),
    ]
    pages = [client.get("/ui", headers=headers), client.post("/ui/login", data={"key": key})]
    with grpc.insecure_channel(grpc_address(service)) as channel:
        status, detail = refusal(
            lambda: list(patches_of(channel, "people", metadata=[("authorization", f"Bearer {key}")]))
        )

    assert [answer.status_code for answer in [*away, *pages]] == [503] * 7
    for answer in away:
        assert answer.headers["content-type"] == "application/problem+json"
        assert int(answer.headers["Retry-After"]) > 0
        assert "the log of the service says why" in answer.json()["detail"]
    assert status is grpc.StatusCode.UNAVAILABLE
    for said in [detail, *(answer.text for answer in [*away, *pages])]:
        assert ".s.PGSQL" not in said
        assert "/tmp" not in said
    own_postgresql_server.go_on()
    wait_until(lambda: client.get("/logs", headers=headers).status_code == 200)


def test_tail_with_a_key_outlives_the_absence_of_its_database(own_postgresql_server, start):
    url = own_postgresql_server.new_database()
    database = Database(url)
    migrate(database)
    _, key = create_key(database, ["log:*:admin"])
    database.close()
    service = start(url, keys="required", heartbeat_seconds=1)
    client, headers = service.client, {"Authorization": f"Bearer {key}"}
    client.put("/logs/people", headers=headers).raise_for_status()

    with client.stream("GET", "/logs/people/stream?format=rdf-patch", headers=headers) as tail:
        chunks = tail.iter_raw()
        next(chunks)
        own_postgresql_server.stop()
        heartbeats = [next(chunks) for _ in range(4)]  # the key is known for two seconds
        own_postgresql_server.go_on()
        wait_until(lambda: client.get("/readyz").status_code == 200)
        client.post("/logs/people/patches", content=b"TX .\nTC .\n", headers=headers | TEXT).raise_for_status()
        after = next(chunk for chunk in chunks if chunk != b"#\n")

    assert heartbeats == [b"#\n"] * 4
    assert b"TX ." in after


def test_tail_outlives_the_absence_of_its_database(own_postgresql_server, start, new_log, patches):
    url = own_postgresql_server.new_database()
    database = Database(url)
    migrate(database)
    database.close()
    service = start(url, heartbeat_seconds=0.2, poll_seconds=0.2)
    log = new_log(service)
    log.append(patches.one("a"))

    with log.client.stream("GET", f"{log.path}/stream?after=1") as tail:
        pieces = tail.iter_raw()
        assert next(pieces) == b"\0"
        own_postgresql_server.stop()
        assert next(pieces) == b"\0", "heartbeats go on"
        own_postgresql_server.go_on()
        wait_until(lambda: log.append(patches.one("b")).status_code == 201)
        come = next(piece for piece in pieces if piece.strip(b"\0"))

    assert come == log.get("/patches/2").content


CHANGES = {
    "a flipped bit": lambda data: data[:-3] + bytes([data[-3] ^ 1]) + data[-2:],
    "a torn end": lambda data: data[: len(data) // 2],
    "an end of zeros": lambda data: data[: len(data) // 2].ljust(len(data), b"\0"),
    "bytes of another": lambda data: data.replace(b"b", b"x"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_changed_bytes_are_found_by_verify(log, patches, change):
    log.append(patches.one("a"))
    log.append(patches.one("b"))
    log.append(patches.one("c"))
    engine = create_engine(log.service.database)
    with engine.begin() as database:
        of_second = "FROM patch_chunk WHERE body = 2 AND log = (SELECT key FROM log WHERE name = :name)"
        data = bytes(database.execute(text(f"SELECT bytes {of_second}"), {"name": log.name}).scalar_one())
        database.execute(
            text(f"UPDATE patch_chunk SET bytes = :bytes {of_second.removeprefix('FROM patch_chunk')}"),
            {"bytes": change(data), "name": log.name},
        )
    engine.dispose()

    verified = log.get("/verify").json()

    assert not verified["sound"]
    assert verified["first_bad_version"] == 2
