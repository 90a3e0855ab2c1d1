"""A subscription by gRPC costs what the same request costs over HTTP: who may only read has no snapshot made."""

import grpc
import pytest

from api.keys import create_key
from patchlog.log.database import Database
from patchlog.log.migration import migrate
from tests.service.grpc_calls import grpc_address, refusal, subscribe

TEXT = {"Content-Type": "application/rdf-patch"}
ADD = 'TX .\nA <http://e/s{number}> <http://e/p> "o" .\nTC .\n'
DELETE = 'TX .\nD <http://e/s1> <http://e/p> "o" .\nTC .\n'


@pytest.fixture
def guarded(start, tmp_path):
    url = f"sqlite:///{tmp_path}/log.db"
    database = Database(url)
    migrate(database)
    scopes = {"reader": "log:people:read", "writer": "log:people:append", "admin": "log:*:admin"}
    keys = {name: f"Bearer {create_key(database, [scope])[1]}" for name, scope in scopes.items()}
    database.close()
    service = start(url, keys="required", grpc_port=0)
    service.client.headers["Authorization"] = keys["admin"]
    service.client.put("/logs/people").raise_for_status()
    with grpc.insecure_channel(grpc_address(service)) as channel:
        service.subscribe = lambda name, topic: subscribe(channel, topic, metadata=[("authorization", keys[name])])
        yield service


def push(service, text):
    service.client.post("/logs/people/patches", content=text, headers=TEXT).raise_for_status()


def snapshots(service):
    return [one["version"] for one in service.client.get("/logs/people/snapshots").json()["snapshots"]]


def begins(call):
    """Whether frames come, or a stream that waits for the next patch."""
    frame = next(iter(call))
    call.cancel()
    return bool(frame)


@pytest.mark.parametrize("topic", ["people", "people@3"])
def test_reader_has_no_snapshot_made_by_subscribing(guarded, topic):
    for number in (1, 2):
        push(guarded, ADD.format(number=number))
    push(guarded, DELETE)

    code, said = refusal(lambda: list(guarded.subscribe("reader", topic)))

    assert code == grpc.StatusCode.PERMISSION_DENIED
    assert "log:people:append" in said
    assert snapshots(guarded) == []
    assert begins(guarded.subscribe("writer", topic))
    assert snapshots(guarded) == [3]
    assert begins(guarded.subscribe("reader", topic))


def test_reader_gets_what_needs_no_snapshot(guarded):
    push(guarded, ADD.format(number=1))
    push(guarded, ADD.format(number=2))

    assert begins(guarded.subscribe("reader", "people"))
    assert begins(guarded.subscribe("reader", "people@0"))
    assert snapshots(guarded) == []


def test_reader_goes_on_from_the_newest_snapshot(guarded):
    push(guarded, ADD.format(number=1))
    push(guarded, DELETE)
    guarded.client.post("/logs/people/snapshots", params={"wait": "60"}).raise_for_status()
    push(guarded, ADD.format(number=3))

    assert begins(guarded.subscribe("reader", "people"))
    assert begins(guarded.subscribe("reader", "people@2"))
    assert snapshots(guarded) == [2]
