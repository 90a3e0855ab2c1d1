"""A consumer belongs to the key that made it: another may read where it is, and neither move it nor forget it."""

import pytest

from api.keys import create_key, revoke_key
from patchlog.client import HttpLogStore
from patchlog.errors import ConsumerOwned
from patchlog.log.consumers import Mover
from patchlog.log.database import Database
from patchlog.log.memory import MemoryLogStore
from patchlog.log.migration import migrate_down
from patchlog.log.stores import open_store

PATCH = b"TX .\nA <http://example.org/s> <http://example.org/p> <http://example.org/o> .\nTC .\n"
TEXT = {"Content-Type": "application/rdf-patch"}
SCOPES = {"mine": "log:*:read", "theirs": "log:*:read", "writer": "log:*:append", "admin": "log:*:admin"}


@pytest.fixture(scope="module")
def guarded(service, tmp_path_factory):
    one = type(service)(tmp_path_factory.mktemp("guarded"), service.database, keys="required")
    yield one
    one.end()


@pytest.fixture
def keys(service):
    database = Database(service.database)
    yield {name: create_key(database, [scope], name=name) for name, scope in SCOPES.items()}
    database.close()


@pytest.fixture
def call(guarded, keys, log):
    """Call a path of a log with three versions by the name of a key, and return the status and the document."""
    for _ in range(3):
        log.append_text(PATCH).raise_for_status()

    def call(name, method, path="", **more):
        headers = {"Authorization": f"Bearer {keys[name][1]}"}
        answer = guarded.client.request(method, f"{log.path}/consumers{path}", headers=headers, **more)
        return answer.status_code, answer.json() if answer.content else None

    call.log = log
    return call


def version_of(log, name):
    return log.get(f"/consumers/{name}").json()["version"]


def test_stranger_does_not_move_a_consumer_so_that_truncation_drops_what_it_needs(call, keys):
    """A key that may only read could move anybody's consumer to the head."""
    status, made = call("mine", "PUT", "/spark", json={"version": 1})

    stolen = [call(name, "PUT", "/spark", json={"version": 3}) for name in ("theirs", "writer")]
    forgotten = [call(name, "DELETE", "/spark") for name in ("theirs", "writer")]

    assert (status, made["owner"]) == (200, f"key:{keys['mine'][0].id}")
    for refused, problem in stolen + forgotten:
        assert (refused, problem["type"]) == (403, "urn:patchlog:problem:consumer-owned")
        assert keys["mine"][1] not in str(problem)
    assert version_of(call.log, "spark") == 1
    assert call("theirs", "GET", "/spark")[1]["owner"] == made["owner"]


def test_owner_moves_and_forgets_its_own(call):
    call("mine", "PUT", "/spark", json={"version": 1})

    assert call("mine", "PUT", "/spark", json={"version": 3})[0] == 200
    assert call("mine", "PUT", "/spark", json={"version": 0, "force": True})[0] == 200
    assert call("mine", "DELETE", "/spark")[0] == 204
    assert call("mine", "DELETE", "/spark")[0] == 404


def test_administrator_moves_and_forgets_those_of_others(call, keys):
    call("mine", "PUT", "/spark", json={"version": 1})

    moved = call("admin", "PUT", "/spark", json={"version": 2})

    assert (moved[0], moved[1]["owner"]) == (200, f"key:{keys['mine'][0].id}")
    assert call("mine", "PUT", "/spark", json={"version": 3})[0] == 200
    assert call("admin", "DELETE", "/spark")[0] == 204


def test_consumer_without_an_owner_belongs_to_the_first_that_moves_it(call, keys):
    """As those that were made before there were owners, or while no keys were asked for."""
    call.log.client.put(f"{call.log.path}/consumers/old", json={"version": 1}).raise_for_status()

    assert call("mine", "DELETE", "/old")[0] == 403
    assert call("admin", "PUT", "/old", json={"version": 1})[1]["owner"] is None
    assert call("theirs", "PUT", "/old", json={"version": 1, "force": True})[1]["owner"] is None
    assert call("mine", "PUT", "/old", json={"version": 2})[1]["owner"] == f"key:{keys['mine'][0].id}"
    assert call("theirs", "PUT", "/old", json={"version": 3})[0] == 403


def test_consumer_of_a_key_that_was_revoked_goes_on_with_its_new_key(call, keys, service):
    call("mine", "PUT", "/spark", json={"version": 1})
    assert call("theirs", "PUT", "/spark", json={"version": 2})[0] == 403

    database = Database(service.database)
    revoke_key(database, keys["mine"][0].id)
    database.close()

    assert call("theirs", "PUT", "/spark", json={"version": 2})[1]["owner"] == f"key:{keys['theirs'][0].id}"
    assert call("writer", "PUT", "/spark", json={"version": 3})[0] == 403


def test_client_raises_what_the_service_refuses(call, guarded, keys):
    call("mine", "PUT", "/spark", json={"version": 1})
    store = HttpLogStore(guarded.url, keys["theirs"][1])

    with pytest.raises(ConsumerOwned, match="belongs to another key") as refused:
        store.log(call.log.name).consumers.advance("spark", 3)
    assert refused.value.owner == f"key:{keys['mine'][0].id}"
    store.close()


def test_consumers_in_memory_have_owners_too():
    store = MemoryLogStore()
    store.create("people")
    consumers = store.log("people").consumers
    consumers.advance("spark", 0, mover=Mover("key:a"))

    for refused in (
        lambda: consumers.advance("spark", 0, mover=Mover("key:b")),
        lambda: consumers.forget("spark", mover=Mover("key:b")),
    ):
        with pytest.raises(ConsumerOwned):
            refused()
    assert consumers.advance("spark", 0).owner == "key:a"
    consumers.forget("spark", mover=Mover("key:a"))
    assert consumers.list() == []


def test_consumers_of_an_older_database_are_there_without_an_owner(tmp_path):
    url = f"sqlite:///{tmp_path}/old.db"
    store = open_store(url)
    store.create("people")
    store.log("people").consumers.advance("spark", 0, mover=Mover("key:a"))
    store.close()
    database = Database(url)
    migrate_down(database, "0005")
    database.close()

    store = open_store(url)

    assert store.log("people").consumers.find("spark").owner is None
    assert store.log("people").consumers.advance("spark", 0, mover=Mover("key:b")).owner == "key:b"
    store.close()
