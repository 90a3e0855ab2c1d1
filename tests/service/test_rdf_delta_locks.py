"""RDF Delta's locks: who holds one can be seen, and it can be broken; who can never write loses it."""

import pytest

from api.rdf_delta.clients import Client
from api.rdf_delta.locks import LOCK_SECONDS, Locks
from tests.service.delta_clients import new_id

HERE, THERE = Client(None, "127.0.0.1"), Client("key:0", "127.0.0.2")


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def name(service):
    name = f"locked-{new_id()}"
    service.client.put(f"/logs/{name}").raise_for_status()
    return name


def shown(service, name):
    return service.client.get(f"/logs/{name}/lock").json()["lock"]


def test_lock_that_is_not_refreshed_ends():
    clock = Clock()
    locks = Locks(clock)
    ref = locks.lock("log", HERE)

    clock.now += LOCK_SECONDS - 1
    assert locks.lock("log", THERE) is None
    assert locks.refresh("log", ref)
    clock.now += LOCK_SECONDS - 1
    assert locks.read("log").ref == ref
    clock.now += 1

    assert locks.read("log") is None
    assert not locks.refresh("log", ref)
    assert locks.grab("log", ref, THERE) is None
    assert locks.lock("log", THERE) not in (None, ref)


def test_waiters_of_rdf_delta_grab_a_lock_no_sooner_than_it_ends():
    """They look 60 times, a second apart, and no tick may be missing only because of us."""
    assert LOCK_SECONDS >= 60


def test_lock_of_another_holder_is_not_broken_by_mistake():
    locks = Locks()
    locks.lock("log", HERE)

    assert locks.break_lock("log", THERE) is None
    assert locks.break_lock("log", HERE).holder == HERE
    assert locks.break_lock("log") is None


def test_holder_of_a_lock_is_seen(service, name, delta_client):
    assert shown(service, name) is None
    holder = delta_client(service, "127.0.0.2").connect(name)
    holder.lock()

    before = shown(service, name)
    assert holder.refresh()
    after = shown(service, name)

    assert before["address"] == "127.0.0.2"
    assert (before["owner"], before["since"]) == (None, after["since"])
    assert before["since"] <= before["refreshed"] <= after["refreshed"]
    assert holder.lock_ref not in str(after)
    assert service.client.get(f"/ui/logs/{name}?format=json").json()["lock"] == after
    assert "127.0.0.2" in service.client.get(f"/ui/logs/{name}").text
    holder.unlock()
    assert shown(service, name) is None
    assert "127.0.0.2" not in service.client.get(f"/ui/logs/{name}").text


def test_lock_of_a_log_that_is_not_there_is_not_found(service):
    for method in ("GET", "DELETE"):
        assert service.client.request(method, "/logs/no-such-log/lock").status_code == 404


def test_broken_lock_goes_to_the_next(service, name, delta_client):
    holder, waiter = (delta_client(service, address).connect(name) for address in ("127.0.0.2", "127.0.0.3"))
    holder.lock()
    assert waiter.lock() is None

    for _ in range(2):
        assert service.client.delete(f"/logs/{name}/lock").status_code == 204

    assert waiter.lock() is not None
    assert not holder.refresh()
    assert shown(service, name)["address"] == "127.0.0.3"


def test_holder_whose_next_version_is_gone_loses_the_lock(service, name, delta_client):
    """It can never write, but refreshes its lock; updates by others hung for ten minutes."""
    healthy, late = (delta_client(service, address).connect(name) for address in ("127.0.0.2", "127.0.0.3"))
    for _ in range(3):
        healthy.update()
    service.client.post(f"/logs/{name}/snapshots?wait=30").raise_for_status()
    truncation = {"before": 3, "force": True}
    service.client.post(f"/logs/{name}/truncate", json=truncation).raise_for_status()

    assert late.lock() is not None
    assert late.fetch(1).status_code == 410

    assert not late.refresh()
    assert healthy.update() == 4
    assert "loses its lock" in service.log_text


def test_lock_is_kept_from_others_that_meet_what_is_gone(service, name, delta_client):
    healthy, late = (delta_client(service, address).connect(name) for address in ("127.0.0.2", "127.0.0.3"))
    healthy.update()
    service.client.post(f"/logs/{name}/snapshots?wait=30").raise_for_status()
    truncation = {"before": 2, "force": True}
    service.client.post(f"/logs/{name}/truncate", json=truncation).raise_for_status()
    healthy.lock()

    assert late.fetch(1).status_code == 410

    assert healthy.refresh()
