"""Services and databases that are killed at work: nothing acknowledged is lost, doubled, or out of order.

Each test is a slice of `soak_seconds`; docs/reliability.md has what long ones found.
"""

import http.client
import random
import signal
import threading
import time
import uuid
from contextlib import closing, suppress

import pytest

from patchlog.engine import PatchDecoder
from patchlog.log.database import Database
from patchlog.log.migration import migrate
from patchlog.model import Header, Punctuation
from tests.waiting import wait_until

AWAY = (OSError, http.client.HTTPException)
"""What a client meets whose service was killed."""


class Traffic:
    """Writers who try again until they are answered, and a tail that goes on where it was."""

    def __init__(self, path, patches, *, writers=8):
        self.acknowledged = {}
        self.tailed = []
        self.refused = []
        self._path = path
        self._patches = patches
        self._port = None
        self._is_over = False
        self._threads = [threading.Thread(target=self._write, args=(who,)) for who in range(writers)]
        self._tail = threading.Thread(target=self._follow)

    def begin(self, port):
        self.go_to(port)
        for thread in (*self._threads, self._tail):
            thread.start()

    def go_to(self, port):
        self._port = port

    def end(self, service):
        """Stop writing, and follow until the tail has come to the head."""
        self._is_over = True
        for thread in self._threads:
            thread.join(60)
        head = service.client.get(self._path).json()["head"]["version"]
        wait_until(lambda: len(self.tailed) >= head, seconds=120)
        self.stop()

    def stop(self):
        self._is_over, self._port = True, None
        for thread in (*self._threads, self._tail):
            if thread.ident is not None:
                thread.join(60)

    def _write(self, who):
        for number in range(1_000_000):
            if self._is_over:
                return
            patch_id = str(uuid.uuid4())
            self._append_for_sure(patch_id, b"".join(self._patches.one(f"{who}-{number}", id=patch_id)))

    def _append_for_sure(self, patch_id, body):
        while (port := self._port) is not None:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            with suppress(*AWAY), closing(connection):
                connection.request(
                    "POST", f"{self._path}/patches", body, {"Content-Type": "application/x-jelly-rdf-patch"}
                )
                answer = connection.getresponse()
                data = answer.read()
                if answer.status in (200, 201):
                    self.acknowledged[patch_id] = int(answer.headers["Location"].rpartition("/")[2])
                    return
                if answer.status != 503:
                    self.refused.append(data)
                    return
            time.sleep(0.01)

    def _follow(self):
        while (port := self._port) is not None:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
            decoder = PatchDecoder()
            patch_id = None
            with suppress(*AWAY), closing(connection):
                connection.request("GET", f"{self._path}/stream?after={len(self.tailed)}")
                answer = connection.getresponse()
                while answer.status == 200 and (data := answer.read1(1 << 16)):
                    for operation in decoder.feed(data):
                        if isinstance(operation, Header) and operation.key == "id":
                            patch_id = operation.value[10:-1]
                        elif isinstance(operation, Punctuation):
                            self.tailed.append(patch_id)
            time.sleep(0.01)


@pytest.fixture
def traffic(patches):
    traffic = Traffic("/logs/people", patches)
    yield traffic
    traffic.stop()


def ids_of(service, path):
    """The ids of all patches, in the order of their versions, which have no gap."""
    ids, link = [], f"{path}/patches?limit=1000"
    while link:
        page = service.client.get(link, headers={"Accept": "application/json"}).json()
        assert [patch["version"] for patch in page["patches"]] == [
            *range(len(ids) + 1, len(ids) + len(page["patches"]) + 1)
        ]
        ids += [patch["id"] for patch in page["patches"]]
        link = page["next"]
    return ids


def check(traffic, service, path):
    verified = service.client.get(f"{path}/verify").json()
    ids = ids_of(service, path)

    assert verified["sound"], verified
    assert traffic.refused == []
    assert traffic.acknowledged
    assert len(set(ids)) == len(ids), "a patch has one version"
    assert all(ids[version - 1] == patch_id for patch_id, version in traffic.acknowledged.items())
    assert traffic.tailed == ids, "the tail has each patch once, in order"


def migrated(server):
    url = server.new_database()
    database = Database(url)
    migrate(database)
    database.close()
    return url


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_service_that_is_killed_loses_nothing(kind, request, start, traffic, soak_seconds, record_property):
    database = migrated(request.getfixturevalue("postgresql_server")) if kind == "postgresql" else None
    service = start(database)
    service.client.put("/logs/people")
    traffic.begin(service.port)
    kills = 0

    deadline = time.monotonic() + soak_seconds
    while time.monotonic() < deadline:
        time.sleep(random.uniform(0.1, 1))
        service.process.send_signal(signal.SIGKILL)
        service.process.wait()
        kills += 1
        service = start(database)
        traffic.go_to(service.port)
    traffic.end(service)

    record_property("kills", kills)
    record_property("patches", len(traffic.acknowledged))
    check(traffic, service, "/logs/people")


@pytest.mark.slow
def test_postgresql_that_is_killed_loses_nothing(own_postgresql_server, start, traffic, soak_seconds, record_property):
    """The service says 503 meanwhile, and goes on by itself."""
    service = start(migrated(own_postgresql_server))
    service.client.put("/logs/people")
    traffic.begin(service.port)
    kills, longest = 0, 0.0

    deadline = time.monotonic() + soak_seconds
    while time.monotonic() < deadline:
        time.sleep(random.uniform(0.2, 1))
        own_postgresql_server.kill()
        kills += 1
        own_postgresql_server.go_on()
        begun = time.monotonic()
        wait_until(lambda: service.client.get("/readyz").status_code == 200, pause=0.02)  # it recovers by itself
        longest = max(longest, time.monotonic() - begun)
    traffic.end(service)

    record_property("kills", kills)
    record_property("patches", len(traffic.acknowledged))
    record_property("seconds until it was back", round(longest, 2))
    check(traffic, service, "/logs/people")
