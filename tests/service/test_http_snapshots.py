"""Snapshots over HTTP: made in the background, got whole and in parts, in several forms; datasets to start with."""

import asyncio
import gzip
import threading
from hashlib import sha256

import httpx
import pytest

from api.app import create_app
from api.settings import Settings
from patchlog.engine import Converter, NQuadsReader, RdfDecoder
from patchlog.log.memory import MemoryLogStore
from patchlog.log.snapshots.store import LocalSnapshots
from tests.waiting import wait_until

URL = "http://localhost"
PROBLEM = "application/problem+json"
JELLY = "application/x-jelly-rdf"
NQUADS = {"Content-Type": "application/n-quads"}
QUADS = b"".join(
    b'<http://example.org/s%d> <http://example.org/p> "v"@en-GB <http://example.org/g> .\n' % number
    for number in range(300)
)
TRIG = b"""PREFIX ex: <http://example.org/>
ex:s ex:p "v" . ex:g { ex:s ex:p 042, "x"@en . }
"""


@pytest.fixture
def three(log, patches):
    for subject in "abc":
        log.append(patches.one(subject))
    return log


def built(log, **body):
    answer = log.client.post(f"{log.path}/snapshots", params={"wait": "30"}, json=body)
    assert answer.status_code in (200, 201), answer.text
    return answer


def awaited(log, location):
    wait_until(lambda: log.client.get(location).json()["state"] != "building")
    return log.client.get(location)


def started_with(log, data=QUADS, headers=NQUADS, version=0):
    return log.client.put(f"{log.path}/snapshots/{version}", content=data, headers=headers)


# Positions


def test_answer_names_the_position_to_go_on_from(three):
    document = built(three, version=2).json()
    position = three.get("/position", params={"version": 2}).json()
    assert {name: document[name] for name in position} == position

    for accept in ("application/n-quads", JELLY):
        answer = three.get("/snapshots/2", headers={"Accept": accept})
        assert answer.headers["patchlog-position"] == "{log_id}:{version}:{hash}".format(**position)
    rest = three.client.get(f"{answer.links['next']['url']}&wait=1", headers={"Accept": "application/rdf-patch"})
    assert rest.status_code == 200
    assert rest.text.count("TC .") == 1


def test_link_of_a_snapshot_is_refused_by_a_log_that_took_the_name(three, patches):
    built(three, version=2)
    link = three.get("/snapshots/2", headers={"Accept": JELLY}).links["next"]["url"]
    assert three.client.request("DELETE", three.path, json={"delete": three.name}).status_code == 204
    assert three.client.put(three.path).status_code == 201
    for subject in "xyz":
        three.append(patches.one(subject))

    answer = three.client.get(f"{link}&wait=1")

    assert (answer.status_code, answer.json()["type"].rpartition(":")[2]) == (409, "history-mismatch")


# Making one


def test_snapshot_is_made_in_the_background(three):
    accepted = three.client.post(f"{three.path}/snapshots")

    assert accepted.status_code == 202
    assert accepted.json() == {"version": 3, "state": "building"}
    assert accepted.headers["location"] == f"{three.path}/snapshots/3?format=json"
    described = awaited(three, accepted.headers["location"]).json()
    assert (described["version"], described["state"], described["quads"]) == (3, "complete", 3)
    assert described["id"] == three.get().json()["head"]["id"]
    assert three.get("/snapshots").json() == {"snapshots": [described]}


def test_snapshot_that_is_completed_during_the_answer_is_known_all_the_time(monkeypatch, patches):
    store = MemoryLogStore()
    store.create("people")
    log = store.log("people")
    log.append(patches.one())
    listed = LocalSnapshots.list

    def list_and_complete(snapshots):
        there = listed(snapshots)
        monkeypatch.undo()
        log.snapshots.build_begun(begun)
        return there

    async def asked_twice(path):
        app = create_app(Settings(), store)
        transport = httpx.ASGITransport(app)
        async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport, base_url=URL) as client:
            return await client.get(path), await client.get(path)

    for path in ("/logs/people/snapshots/1?format=json", "/logs/people/snapshots"):
        begun = log.snapshots.begin(1)
        monkeypatch.setattr(LocalSnapshots, "list", list_and_complete)
        meanwhile, then = asyncio.run(asked_twice(path))
        log.snapshots.delete(1)

        assert (meanwhile.status_code, then.status_code) == (200, 200)
        assert '"state":"building"' in meanwhile.text
        assert then.text.count('"state":"complete"') == 1


def test_snapshot_that_cannot_be_is_refused_at_once(log, patches):
    def make(wanted=None):
        return log.client.post(f"{log.path}/snapshots", json=wanted)

    of_empty = [make(), make({"version": 0}), make({"version": 1})]
    log.append(patches.one())
    of_one = [make({"version": 0}), make({"version": 2}), started_with(log)]

    for refused in of_empty + of_one:
        assert (refused.status_code, refused.headers["content-type"]) == (409, PROBLEM)
    assert log.get("/snapshots").json() == {"snapshots": []}


def test_request_may_wait_for_the_snapshot(three):
    waited = three.client.post(f"{three.path}/snapshots", json={"version": 1}, headers={"Prefer": "wait=30"})
    again = three.client.post(f"{three.path}/snapshots", json={"version": 1})

    assert (waited.status_code, again.status_code) == (201, 200)
    assert waited.json() == again.json()
    assert waited.headers["location"] == f"{three.path}/snapshots/1"
    assert waited.headers["etag"] == f'"{waited.json()["sha256"]}"'


@pytest.mark.parametrize(
    ("body", "status", "name"),
    [
        ({"version": 4}, 409, "snapshot-refused"),
        ({"version": -1}, 400, "invalid-parameter"),
        ({"version": "1"}, 400, "invalid-parameter"),
        ({"versions": 1}, 400, "invalid-parameter"),
    ],
)
def test_snapshot_that_cannot_be_is_refused(three, body, status, name):
    refused = three.client.post(f"{three.path}/snapshots", json=body)

    assert (refused.status_code, refused.headers["content-type"]) == (status, PROBLEM)
    assert refused.json()["type"].endswith(name)
    assert three.get("/snapshots").json() == {"snapshots": []}


def test_processes_on_one_database_make_one_at_a_time(service, log, tmp_path):
    """The other process holds the place, and nobody else can take it as long as it says that it lives."""
    other = type(service)(tmp_path, service.database)

    answer = other.client.put(f"{log.path}/snapshots/0", content=_while_it_is_sent(log), headers=NQUADS)

    other.end()
    assert answer.status_code == 201, answer.text


def _while_it_is_sent(log):
    yield QUADS
    wait_until(lambda: log.get("/snapshots").json()["snapshots"])
    assert log.get("/snapshots").json()["snapshots"] == [{"version": 0, "state": "building"}]
    again = started_with(log)
    assert (again.status_code, again.json()["version"]) == (409, 0)
    assert again.headers["retry-after"]
    yield QUADS


# Getting one


def test_snapshot_is_a_copy_that_may_be_cached(three):
    built(three)

    answer = three.get("/snapshots/3")

    assert (answer.status_code, answer.headers["content-type"]) == (200, JELLY)
    assert answer.headers["etag"] == f'"{sha256(answer.content).hexdigest()}"'
    assert "immutable" in answer.headers["cache-control"]
    assert (answer.headers["accept-ranges"], int(answer.headers["content-length"])) == ("bytes", len(answer.content))
    same = three.get("/snapshots/3", headers={"If-None-Match": answer.headers["etag"]})
    assert (same.status_code, same.content) == (304, b"")


def test_latest_snapshot_is_told_by_its_version(three, operations):
    built(three, version=1)
    built(three, version=2)

    latest = three.get("/snapshots/latest")

    assert latest.headers["cache-control"] == "no-cache"
    assert latest.headers["patchlog-version"] == "2"
    assert latest.headers["patchlog-id"] == three.get("/patches/2", headers={"Accept": "application/json"}).json()["id"]
    link = latest.links["next"]["url"]
    assert link.startswith(f"{three.path}/stream?after=2&hash=")
    following = three.client.get(f"{link}&wait=5")
    assert any(
        getattr(operation, "subject", "") == "<http://example.org/c>" for operation in operations(following.content)
    )


@pytest.mark.parametrize(
    ("asked", "begin", "end"),
    [
        ("bytes=0-9", 0, 10),
        ("bytes=10-", 10, None),
        ("bytes=-7", -7, None),
        ("bytes=5-99999999", 5, None),
        ("bytes=-99999999", 0, None),
        ("bytes=0-0", 0, 1),
    ],
)
def test_parts_of_a_snapshot_are_got(three, asked, begin, end):
    built(three)
    data = three.get("/snapshots/3").content

    part = three.get("/snapshots/3", headers={"Range": asked})

    assert (part.status_code, part.content) == (206, data[begin:end])
    first = data.index(part.content) if begin == 0 else len(data) + begin if begin < 0 else begin
    assert part.headers["content-range"] == f"bytes {first}-{first + len(part.content) - 1}/{len(data)}"


@pytest.mark.parametrize("asked", ["bytes=99999999-", "bytes=-0"])
def test_part_behind_the_end_is_refused(three, asked):
    built(three)
    size = len(three.get("/snapshots/3").content)

    refused = three.get("/snapshots/3", headers={"Range": asked})

    assert (refused.status_code, refused.headers["content-type"]) == (416, PROBLEM)
    assert refused.headers["content-range"] == f"bytes */{size}"


@pytest.mark.parametrize(
    "asked", ["bytes=5-2", "bytes=0-1,4-5", "lines=1-2", "bytes=a-b", "bytes=-", f"bytes={'9' * 30}-"]
)
def test_what_is_no_range_of_one_part_is_answered_whole(three, asked):
    built(three)

    assert three.get("/snapshots/3", headers={"Range": asked}).status_code == 200


def test_part_of_another_snapshot_is_not_mixed_in(three):
    built(three)
    current = three.get("/snapshots/3").headers["etag"]

    same = three.get("/snapshots/3", headers={"Range": "bytes=0-3", "If-Range": current})
    other = three.get("/snapshots/3", headers={"Range": "bytes=0-3", "If-Range": '"other"'})

    assert (same.status_code, other.status_code) == (206, 200)


def test_head_of_a_snapshot_has_its_headers(three):
    built(three)

    head = three.client.head(f"{three.path}/snapshots/3")
    whole = three.get("/snapshots/3")

    assert (head.status_code, head.content) == (200, b"")
    for name in ("content-length", "etag", "patchlog-version", "accept-ranges"):
        assert head.headers[name] == whole.headers[name]


def test_snapshot_is_converted_as_it_is_asked_for(log):
    assert started_with(log).status_code == 201

    text = log.get("/snapshots/0", headers={"Accept": "application/n-quads"})
    trig = log.get("/snapshots/0?format=trig")
    packed = log.get("/snapshots/0", headers={"Accept": "application/n-quads", "Accept-Encoding": "gzip"})

    assert sorted(text.content.splitlines()) == sorted(QUADS.splitlines())
    assert trig.headers["content-type"].startswith("application/trig")
    assert trig.content.count(b'"v"@en-GB') == 300
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.content == text.content
    assert len({answer.headers["etag"] for answer in (text, trig, packed)}) == 3
    assert "accept-ranges" not in text.headers
    assert log.get("/snapshots/0?format=n-quads", headers={"Range": "bytes=0-1"}).status_code == 200
    assert log.get("/snapshots/0", headers={"Accept": "image/png"}).status_code == 406


@pytest.mark.parametrize(("rest", "status"), [("7", 404), ("latest", 404), ("-1", 400), ("x", 400), ("9" * 40, 400)])
def test_snapshot_that_is_not_there_is_not_found(log, rest, status):
    for method, more in (("GET", ""), ("GET", "?format=json"), ("GET", "/verify")):
        answer = log.client.request(method, f"{log.path}/snapshots/{rest}{more}")

        assert (answer.status_code, answer.headers["content-type"]) == (status, PROBLEM)


def test_snapshot_is_verified_by_its_hash(three):
    snapshot = built(three).json()

    assert three.get("/snapshots/latest/verify").json() == {"version": 3, "sound": True, "sha256": snapshot["sha256"]}


# Starting with a dataset


def jelly_of(text):
    converter = Converter("nquads", "jelly")
    return converter.feed(text) + converter.finish()


@pytest.mark.parametrize(
    ("data", "headers"),
    [
        (QUADS, NQUADS),
        (jelly_of(QUADS), {"Content-Type": JELLY}),
        (gzip.compress(QUADS), NQUADS | {"Content-Encoding": "gzip"}),
    ],
    ids=["N-Quads", "Jelly", "gzip"],
)
def test_log_starts_with_a_dataset(log, data, headers):
    taken = started_with(log, data, headers)
    again = started_with(log, data, headers)

    assert (taken.status_code, again.status_code) == (201, 200)
    assert (taken.json()["version"], taken.json()["quads"], taken.json()["id"]) == (0, 300, None)
    assert taken.headers["location"] == f"{log.path}/snapshots/0"
    assert again.json()["sha256"] == taken.json()["sha256"]
    statements = NQuadsReader().feed(log.get("/snapshots/0?format=nq").content)
    assert set(statements) == set(NQuadsReader().feed(QUADS))


def test_log_starts_with_trig(log):
    pytest.importorskip("pyoxigraph")

    taken = started_with(log, TRIG, {"Content-Type": "application/trig"})

    assert (taken.status_code, taken.json()["quads"], taken.json()["namespaces"]) == (201, 3, 1)
    assert b'"042"^^<http://www.w3.org/2001/XMLSchema#integer>' in log.get("/snapshots/0?format=nq").content
    decoder = RdfDecoder()
    assert next(iter(decoder.feed(log.get("/snapshots/0").content))).namespaces == [("ex", "<http://example.org/>")]


@pytest.mark.parametrize(
    ("data", "headers", "status", "member"),
    [
        (b"<http://s> .\n", NQUADS, 400, "line"),
        (b"nonsense", {"Content-Type": JELLY}, 400, "detail"),
        (jelly_of(QUADS)[:-5], {"Content-Type": JELLY}, 400, "detail"),
        (gzip.compress(QUADS)[:-9], NQUADS | {"Content-Encoding": "gzip"}, 400, "detail"),
        (b"@prefix .", {"Content-Type": "application/trig"}, 400, "detail"),
        (QUADS, {"Content-Type": "text/turtle"}, 415, "detail"),
        (QUADS, NQUADS | {"Content-Encoding": "br"}, 415, "detail"),
    ],
    ids=["N-Quads", "Jelly", "short Jelly", "short gzip", "TriG", "Turtle", "brotli"],
)
def test_dataset_that_cannot_be_read_leaves_nothing(log, data, headers, status, member):
    refused = started_with(log, data, headers)

    assert (refused.status_code, refused.headers["content-type"]) == (status, PROBLEM)
    assert member in refused.json()
    assert [one["state"] for one in log.get("/snapshots").json()["snapshots"]] in ([], ["failed"])
    assert started_with(log).status_code == 201


def test_upload_that_is_cut_off_leaves_nothing(service, log):
    with service.connect() as connection:
        head = f"PUT {log.path}/snapshots/0 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/n-quads\r\n"
        connection.sendall(f"{head}Content-Length: 1000000\r\n\r\n".encode() + QUADS)
        wait_until(lambda: log.get("/snapshots").json()["snapshots"] == [{"version": 0, "state": "building"}])

    wait_until(lambda: [one["state"] for one in log.get("/snapshots").json()["snapshots"]] == ["failed"])
    assert started_with(log).json()["quads"] == 300


def test_dataset_beyond_the_limit_is_refused(start):
    service = start(max_body_bytes=10_000)
    service.client.put("/logs/people")

    refused = service.client.put("/logs/people/snapshots/0", content=iter([QUADS[:9000], QUADS]), headers=NQUADS)

    assert refused.status_code == 413
    assert (
        service.client.put(
            "/logs/people/snapshots/0", content=QUADS[: QUADS.index(b"\n") + 1], headers=NQUADS
        ).status_code
        == 201
    )


def test_dataset_that_is_not_the_log_s_is_refused(three):
    refused = started_with(three, version=3)

    assert (refused.status_code, refused.json()["type"]) == (409, "urn:patchlog:problem:snapshot-refused")
    assert started_with(three).status_code == 409
    assert started_with(three, version=4).status_code == 409


# Truncation


def test_consumer_that_needs_a_patch_is_named(three):
    built(three)
    three.client.put(f"{three.path}/consumers/slow", json={"version": 1})

    refused = three.client.post(f"{three.path}/truncate", json={"before": 4})
    forced = three.client.post(f"{three.path}/truncate", json={"before": 4, "force": True})

    assert (refused.status_code, refused.json()["consumer"]) == (409, "slow")
    assert (forced.status_code, forced.json()["first_version"]) == (200, 4)
    assert three.client.request("DELETE", f"{three.path}/snapshots/3", json={"delete": 3}).status_code == 409


def test_service_that_stops_ends_a_snapshot_that_is_made(start):
    service = start()
    service.client.put("/logs/people")
    text = b"".join(b'A <http://example.org/%d> <http://example.org/p> "v" .\n' % number for number in range(400_000))
    appended = service.client.post(
        "/logs/people/patches", content=text, headers={"Content-Type": "application/rdf-patch"}
    )
    assert appended.status_code == 201
    assert service.client.post("/logs/people/snapshots").status_code == 202

    service.end()

    again = start()
    listed = again.client.get("/logs/people/snapshots").json()["snapshots"]
    assert [one["state"] for one in listed] in (["failed"], ["complete"])
    assert again.client.post("/logs/people/snapshots?wait=60").status_code in (200, 201)


def test_snapshot_that_waits_when_the_service_stops_is_not_waited_for_after_it(start):
    """It was held to be on its way for two minutes, and nobody made it."""
    service = start(build_threads=1)
    text = b"".join(b'A <http://example.org/%d> <http://example.org/p> "v" .\n' % number for number in range(400_000))
    for name in ("people", "others"):
        service.client.put(f"/logs/{name}")
        body = text if name == "people" else text[: text.index(b"\n") + 1]
        appended = service.client.post(
            f"/logs/{name}/patches", content=body, headers={"Content-Type": "application/rdf-patch"}
        )
        assert appended.status_code == 201
    for name in ("people", "others"):
        assert service.client.post(f"/logs/{name}/snapshots").status_code == 202
    assert [job["state"] for job in service.client.get("/jobs").json()["jobs"]] == ["waiting", "running"]

    service.end()

    again = start()
    [listed] = again.client.get("/logs/others/snapshots").json()["snapshots"]
    assert (listed["state"], listed["error"]) == ("failed", "the service is stopping")
    assert again.client.post("/logs/others/snapshots?wait=60").status_code == 201


def test_database_is_not_waited_for_in_the_event_loop(monkeypatch, patches):
    store = MemoryLogStore()
    store.create("people")
    store.log("people").append(patches.one())
    store.log("people").snapshots.build()
    threads = set()
    filed = LocalSnapshots._filed

    def noted(self, version):
        threads.add(threading.current_thread())
        return filed(self, version)

    monkeypatch.setattr(LocalSnapshots, "_filed", noted)

    async def run():
        app = create_app(Settings(keys="off"), store)
        async with app.router.lifespan_context(app):
            transport = httpx.ASGITransport(app=app)
            async with httpx.AsyncClient(transport=transport, base_url=URL) as client:
                return [(await client.get("/logs/people/snapshots/1", headers={"Accept": form})).status_code
                        for form in ("*/*", "application/n-quads")]  # fmt: skip

    assert asyncio.run(run()) == [200, 200]
    assert threads
    assert threading.main_thread() not in threads
