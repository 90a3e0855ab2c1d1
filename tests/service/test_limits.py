"""What a principal may ask for: requests and uploaded bytes a second, and open streams. Others are not concerned."""

import grpc
import pytest

from api.errors import Refusal
from api.keys import create_key
from api.limits import Limits
from patchlog.log.database import Database
from patchlog.log.migration import migrate
from patchlog.wire import PatchSubscribe
from tests.service.grpc_calls import PATCHES, grpc_address, refusal
from tests.waiting import wait_until

PATCH = b"TX .\nA <http://example.org/s> <http://example.org/p> <http://example.org/o> .\nTC .\n"
TEXT = {"Content-Type": "application/rdf-patch"}


@pytest.fixture
def keys(tmp_path):
    database = Database(f"sqlite:///{tmp_path}/log.db")
    migrate(database)
    found = {
        name: {"Authorization": f"Bearer {create_key(database, ['log:*:admin'], name=name)[1]}"}
        for name in ("greedy", "other")
    }
    database.close()
    return found


def check_refused(answer):
    assert (answer.status_code, answer.json()["type"]) == (429, "urn:patchlog:problem:rate-limited")
    assert int(answer.headers["retry-after"]) >= 1


def test_requests_of_a_key_are_limited_and_not_those_of_another(start, keys):
    service = start(keys="required", requests_per_second=3)

    statuses = [service.client.get("/logs", headers=keys["greedy"]) for _ in range(20)]
    others = [service.client.get("/logs", headers=keys["other"]).status_code for _ in range(3)]

    assert [answer.status_code for answer in statuses[:6]] == [200] * 6
    check_refused(next(answer for answer in statuses if answer.status_code != 200))
    assert others == [200] * 3
    assert all(service.client.get("/readyz").status_code == 200 for _ in range(20))
    wait_until(lambda: service.client.get("/logs", headers=keys["greedy"]).status_code == 200)


def test_small_appends_are_limited_on_their_fast_path_too(start, keys):
    service = start(keys="required", requests_per_second=5)
    service.client.put("/logs/people", headers=keys["other"]).raise_for_status()

    answers = [
        service.client.post("/logs/people/patches", content=PATCH, headers=TEXT | keys["greedy"]) for _ in range(30)
    ]

    statuses = [answer.status_code for answer in answers]
    assert set(statuses) == {201, 429}
    assert statuses[:10] == [201] * 10
    check_refused(answers[statuses.index(429)])
    assert service.client.get("/logs/people", headers=keys["other"]).json()["head"]["version"] == statuses.count(201)


@pytest.mark.parametrize("is_chunked", [False, True])
def test_uploaded_bytes_are_limited_over_time(start, keys, is_chunked):
    """One upload may be larger than what comes in a second; the next waits for its turn."""
    service = start(keys="required", upload_bytes_per_second=10_000)
    service.client.put("/logs/people", headers=keys["greedy"]).raise_for_status()
    large = PATCH * 1000
    content = (large[start : start + 10_000] for start in range(0, len(large), 10_000)) if is_chunked else large

    first = service.client.post("/logs/people/patches", content=content, headers=TEXT | keys["greedy"])
    second = service.client.post("/logs/people/patches", content=PATCH, headers=TEXT | keys["greedy"])
    other = service.client.post("/logs/people/patches", content=PATCH, headers=TEXT | keys["other"])
    read = service.client.get("/logs/people", headers=keys["greedy"])

    assert (first.status_code, other.status_code, read.status_code) == (201, 201, 200)
    check_refused(second)
    assert int(second.headers["retry-after"]) > 3


def test_upload_that_does_not_come_takes_nothing(start, keys):
    """One that said that it has 9 exabytes kept its key out for millions of years."""
    service = start(keys="required", upload_bytes_per_second=10_000)
    service.client.put("/logs/people", headers=keys["greedy"]).raise_for_status()
    lines = "POST /logs/people/patches HTTP/1.1", "Host: localhost", f"Content-Length: {9 * 10**18}"
    fields = [f"{name}: {value}" for name, value in (TEXT | keys["greedy"]).items()]

    with service.connect() as connection:
        connection.sendall("\r\n".join([*lines, *fields, "", ""]).encode())
        assert connection.recv(1000).startswith(b"HTTP/1.1 413 ")

    after = service.client.post("/logs/people/patches", content=PATCH, headers=TEXT | keys["greedy"])
    assert after.status_code == 201


def test_open_streams_are_limited_over_http_and_grpc(start, keys):
    service = start(keys="required", open_streams=2, grpc_port=0)
    service.client.put("/logs/people", headers=keys["other"]).raise_for_status()

    def stream(key):
        return service.client.stream("GET", "/logs/people/stream", headers=keys[key])

    with grpc.insecure_channel(grpc_address(service)) as channel:

        def subscribe(key):
            metadata = [("authorization", keys[key]["Authorization"])]
            request = PatchSubscribe(log="people").SerializeToString()
            return channel.unary_stream(f"{PATCHES}/SubscribePatches")(request, metadata=metadata, timeout=60)

        with stream("greedy") as first:
            call = subscribe("greedy")
            call.initial_metadata()
            with stream("greedy") as third, stream("other") as other:
                third.read()
                statuses = [first.status_code, other.status_code]
            check_refused(third)
            code, _ = refusal(lambda: list(subscribe("greedy")))
            assert (statuses, code) == ([200, 200], grpc.StatusCode.RESOURCE_EXHAUSTED)
            call.cancel()

            def is_let_in():
                with stream("greedy") as again:
                    return again.status_code == 200

            wait_until(is_let_in)


def test_addresses_are_counted_where_no_keys_are_asked_for(start):
    service = start(requests_per_second=2)

    answers = [service.client.get("/logs") for _ in range(10)]

    check_refused(answers[-1])


def test_nothing_is_limited_unless_that_is_set(start):
    service = start()
    service.client.put("/logs/people")

    answers = [service.client.post("/logs/people/patches", content=PATCH, headers=TEXT) for _ in range(300)]

    assert {answer.status_code for answer in answers} == {201}


def test_buckets_fill_with_time_and_are_forgotten_when_they_are_full():
    now = 100.0
    limits = Limits(1, None, None, clock=lambda: now)
    for _ in range(2):
        limits.begin("a")
    with pytest.raises(Refusal):
        limits.begin("a")
    assert not limits.allows("a")
    assert limits.allows("b")

    now += 1
    limits.begin("a")
    for number in range(20_000):
        limits.begin(f"other-{number}")
        now += 0.001

    assert len(limits._requests._left) <= 10_000
