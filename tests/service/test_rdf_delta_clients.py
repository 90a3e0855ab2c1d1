"""RDF Delta's clients are consumers by what they fetch, so truncation does not strand them unasked."""

import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import create_engine, text

from api.rdf_delta.clients import Client
from api.rdf_delta.tracks import Track, Tracks
from tests.service.delta_clients import new_id
from tests.waiting import wait_until

HERE = Client(None, "127.0.0.2")
FAST, SLOW = "127.0.0.2", "127.0.0.3"


def new_log(service):
    name = f"delta-{new_id()}"
    service.client.put(f"/logs/{name}").raise_for_status()
    return name


@pytest.fixture
def name(service):
    return new_log(service)


def positions(service, name):
    found = service.client.get(f"/logs/{name}/consumers").json()["consumers"]
    return {one["name"]: one["version"] for one in found}


def snapshot(service, name):
    service.client.post(f"/logs/{name}/snapshots?wait=60").raise_for_status()


def truncate(service, name, before=None, *, force=False):
    return service.client.post(f"/logs/{name}/truncate", json={"before": before, "force": force})


def settled(client):
    """A client that looks for news and finds none."""
    for _ in range(2):
        client.sync()


def test_truncation_waits_for_the_slow_client_unless_it_is_forced(service, name, delta_client):
    fast, slow = (delta_client(service, address).connect(name) for address in (FAST, SLOW))
    for _ in range(3):
        fast.update()
    slow.sync()
    settled(slow)
    for _ in range(3):
        fast.update()
    settled(fast)
    snapshot(service, name)

    refused = truncate(service, name, 7)
    kept = truncate(service, name)

    assert (refused.status_code, refused.json()["consumer"]) == (409, f"rdf-delta.{SLOW}")
    assert positions(service, name) == {f"rdf-delta.{FAST}": 6, f"rdf-delta.{SLOW}": 3}
    assert kept.json()["first_version"] == 1  # the only snapshot is ahead of it
    assert truncate(service, name, 4).json()["first_version"] == 4
    slow.sync()
    assert slow.version == 6
    settled(slow)
    assert truncate(service, name).json()["first_version"] == 7

    fast.update()
    settled(fast)
    snapshot(service, name)
    assert truncate(service, name, 8).status_code == 409
    assert truncate(service, name, 8, force=True).json()["first_version"] == 8
    assert slow.fetch(7).status_code == 410


def test_clients_of_one_address_do_not_hide_each_other(service, name, delta_client):
    """Two Fusekis on one host: the slower one counts, also when a third begins, and after each of them wrote."""
    one, other = (delta_client(service, FAST).connect(name) for _ in range(2))
    one.update()
    other.update()
    one.sync()
    settled(one)
    settled(other)
    for _ in range(4):
        one.update()
    settled(one)
    snapshot(service, name)

    assert one.version == 6
    assert truncate(service, name, 7).json()["consumer"].startswith(f"rdf-delta.{FAST}")
    assert min(positions(service, name).values()) == other.version == 2
    delta_client(service, FAST).connect(name).sync()
    one.update()
    assert truncate(service, name, 4).status_code == 409
    other.sync()
    assert other.version == 7


def test_client_that_dies_while_it_fetches_is_where_it_began(service, name, delta_client):
    writer, reader = (delta_client(service, address).connect(name) for address in (FAST, SLOW))
    for _ in range(6):
        writer.update()
    reader.sync(dies_at=5)
    truncate(service, name)

    assert positions(service, name)[f"rdf-delta.{SLOW}"] == 0
    reader.sync()
    settled(reader)
    truncate(service, name)
    assert {one: at for one, at in positions(service, name).items() if SLOW in one} == {f"rdf-delta.{SLOW}": 6}


@pytest.mark.parametrize("is_killed", [False, True])
def test_positions_outlive_the_service(start, delta_client, is_killed):
    service = start()
    name = new_log(service)
    one, other = (delta_client(service, FAST).connect(name) for _ in range(2))
    one.update()
    one.update()
    other.sync()
    settled(other)
    one.update()
    wait_until(lambda: positions(service, name) == {f"rdf-delta.{FAST}": 2, f"rdf-delta.{FAST}.2": 2})
    time.sleep(2.5)  # what one has reached is written too
    if is_killed:
        service.process.kill()
        service.process.wait()
    else:
        service.end()

    again = start()
    one, other = (delta_client(again, FAST, at=client.version).connect(name) for client in (one, other))
    one.update()
    settled(one)
    snapshot(again, name)
    assert truncate(again, name, 5).status_code == 409
    assert sorted(positions(again, name).values()) == [2, 4]
    other.sync()
    settled(other)
    assert truncate(again, name, 5).json()["first_version"] == 5
    assert sorted(positions(again, name).values()) == [4, 4]


def test_client_that_does_not_come_is_forgotten(start, tmp_path, delta_client):
    service = start(rdf_delta_client_days=3)
    name = new_log(service)
    fast, slow = (delta_client(service, address).connect(name) for address in (FAST, SLOW))
    fast.update()
    slow.sync()
    fast.update()
    settled(fast)
    snapshot(service, name)
    assert truncate(service, name, 3).status_code == 409

    set_age(tmp_path, f"rdf-delta.{SLOW}", timedelta(days=2.9))
    assert truncate(service, name, 3).status_code == 409
    set_age(tmp_path, f"rdf-delta.{SLOW}", timedelta(days=3.1))

    assert truncate(service, name, 3).json()["first_version"] == 3
    assert positions(service, name) == {f"rdf-delta.{FAST}": 2}


def set_age(folder, consumer, age):
    engine = create_engine(f"sqlite:///{folder}/log.db")
    then = int((datetime.now(UTC) - age).timestamp() * 1000)
    with engine.begin() as connection:
        connection.execute(
            text("UPDATE consumer SET updated_ms = :then WHERE name = :name"), {"then": then, "name": consumer}
        )
    engine.dispose()


def test_client_is_forgotten_by_hand_and_comes_again(service, name, delta_client):
    client = delta_client(service, FAST).connect(name)
    client.update()
    truncate(service, name)

    assert service.client.delete(f"/logs/{name}/consumers/rdf-delta.{FAST}").status_code == 204
    assert positions(service, name) == {}
    client.update()
    truncate(service, name)

    assert positions(service, name) == {f"rdf-delta.{FAST}": 1}


def test_client_of_a_log_that_was_made_again_is_at_its_beginning(service, name, delta_client):
    client = delta_client(service, FAST).connect(name)
    client.update()
    client.update()
    service.client.request("DELETE", f"/logs/{name}", json={"delete": name}).raise_for_status()
    service.client.put(f"/logs/{name}").raise_for_status()
    again = delta_client(service, FAST).connect(name)
    again.update()

    truncate(service, name)
    time.sleep(2.5)

    assert positions(service, name) == {f"rdf-delta.{FAST}": 0}


def test_who_only_looks_is_no_consumer(service, name, delta_client):
    client = delta_client(service, FAST).connect(name)
    client.update()
    looker = delta_client(service, SLOW).connect(name)

    looker.describe()
    looker.asked("list_log_info")
    looker.fetch(7)
    truncate(service, name)

    assert list(positions(service, name)) == [f"rdf-delta.{FAST}"]


def test_client_with_a_key_is_known_by_it(start, tmp_path, delta_client):
    from api.keys import create_key
    from patchlog.log.database import Database
    from patchlog.log.migration import migrate

    database = Database(f"sqlite:///{tmp_path}/log.db")
    migrate(database)
    key, secret = create_key(database, ["log:*:admin"])
    database.close()
    service = start(keys="required")
    headers = {"Authorization": f"Bearer {secret}"}
    service.client.headers.update(headers)
    name = new_log(service)
    for address in (FAST, SLOW):
        delta_client(service, address, headers=headers).connect(name).update()

    truncate(service, name)

    assert set(positions(service, name)) == {f"rdf-delta.key-{key.id}", f"rdf-delta.key-{key.id}.2"}


def test_few_writes_for_many_fetches(start, delta_client):
    service = start()
    name = new_log(service)
    body = "TX .\nA <http://e/s> <http://e/p> <http://e/o> .\nTC .\n"
    for _ in range(300):
        headers = {"Content-Type": "application/rdf-patch"}
        service.client.post(f"/logs/{name}/patches", content=body, headers=headers).raise_for_status()
    reader = delta_client(service, SLOW).connect(name)

    before = written_bytes(service)
    reader.sync()
    settled(reader)
    time.sleep(2.5)

    assert positions(service, name) == {f"rdf-delta.{SLOW}": 300}
    assert written_bytes(service) - before < 1_000_000  # a write a fetch is seven times as much


def written_bytes(service):
    return int(re.search(r"wchar: (\d+)", Path(f"/proc/{service.process.pid}/io").read_text())[1])


class TestTracks:
    """The rules alone."""

    def fetch(self, tracks, *versions):
        for version in versions:
            if not tracks.fetched(version):
                tracks.add(version)

    def bases(self, tracks):
        return sorted(track.base for track in tracks.all)

    def test_what_is_fetched_is_there_when_the_client_goes_on_from_it(self):
        tracks = Tracks(HERE)
        self.fetch(tracks, 1, 2, 3)
        assert self.bases(tracks) == [0]
        tracks.looked(5)
        assert self.bases(tracks) == [0]
        self.fetch(tracks, 4)
        assert self.bases(tracks) == [3]

    def test_what_is_fetched_is_there_when_the_client_looks_and_fetches_nothing(self):
        tracks = Tracks(HERE)
        self.fetch(tracks, 1, 2, 3)
        tracks.looked(4)
        tracks.looked(4)
        assert self.bases(tracks) == [0]
        tracks.looked(3)
        assert self.bases(tracks) == [3]

    def test_client_that_begins_again_is_the_same(self):
        tracks = Tracks(HERE)
        tracks.looked(5)
        self.fetch(tracks, 1, 2, 3)
        tracks.looked(5)
        self.fetch(tracks, 1, 2, 3, 4, 5)
        tracks.looked(5)
        tracks.looked(5)
        assert self.bases(tracks) == [5]

    def test_client_that_fetches_what_all_others_have_is_another(self):
        tracks = Tracks(HERE)
        self.fetch(tracks, 1, 2, 3)
        tracks.looked(3)
        tracks.looked(3)
        self.fetch(tracks, 1, 2)
        assert self.bases(tracks) == [0, 3]

    def test_patch_that_one_has_appended_is_fetched_by_another(self):
        tracks = Tracks(HERE)
        tracks.add(1)  # appended
        self.fetch(tracks, 1)
        assert self.bases(tracks) == [0, 0]

    def test_append_means_that_all_before_it_is_there(self):
        tracks = Tracks(HERE)
        self.fetch(tracks, 1, 2, 3)
        assert tracks.appended(4)
        assert self.bases(tracks) == [3]
        assert tracks.appended(4)  # the answer was lost
        assert self.bases(tracks) == [3]

    def test_slow_one_of_two_is_never_lost(self):
        """Whatever the fast one does, and however their fetches mix."""
        tracks = Tracks(HERE)
        for _ in range(2):
            self.fetch(tracks, 1)
            tracks.looked(1)
            tracks.looked(1)
        for version in range(2, 50):
            self.fetch(tracks, version)
            tracks.looked(version)
            tracks.looked(version)
            if version % 3 == 0:
                tracks.appended(version)
        assert self.bases(tracks)[0] == 1
        self.fetch(tracks, *range(2, 50))
        assert self.bases(tracks)[0] == 1
        for _ in range(2):
            tracks.looked(49)
        assert self.bases(tracks) == [49, 49]

    def test_what_another_process_has_written_is_added(self):
        tracks = Tracks(HERE)
        self.fetch(tracks, 1, 2)
        tracks.merge([Track(tracks.name, 5, 7), Track(f"{tracks.name}.2", 4, 4)])
        assert self.bases(tracks) == [4, 5]
        self.fetch(tracks, 8)
        tracks.merge([Track(tracks.name, 5, 7)])
        self.fetch(tracks, 9)
        assert self.bases(tracks) == [4, 5]
        assert len(tracks.all) == 2

    @given(
        steps=st.lists(
            st.tuples(st.sampled_from(["sync", "look", "update", "cut off", "other append"]), st.integers(0, 3)),
            max_size=60,
        )
    )
    def test_no_track_is_ahead_of_the_slowest_of_several_clients(self, steps):
        """However clients with one address take turns. When all have all, so have the tracks, and none is left over."""
        tracks, at, head = Tracks(HERE), {}, 0

        def sync(client, *, until=None):
            tracks.looked(head)
            for version in range(at.get(client, 0) + 1, (head if until is None else until) + 1):
                self.fetch(tracks, version)
                at.setdefault(client, 0)
            if until is None and client in at:
                at[client] = head

        for step, client in steps:
            if step == "sync":
                sync(client)
            elif step == "look":
                tracks.looked(head)
            elif step == "cut off" and at.get(client) and at[client] < head - 1:
                sync(client, until=head - 1)  # and has none of that
            elif step == "update":
                sync(client)
                head += 1
                if not tracks.appended(head):
                    tracks.add(head)
                at[client] = head
            elif step == "other append":
                head += 1
            assert not at or self.bases(tracks)[0] <= min(at.values())
        for _ in range(3):
            for client in at:
                sync(client)
        assert set(self.bases(tracks)) <= {head}
        assert len(tracks.all) <= len(at)

    def test_number_of_tracks_is_bounded(self):
        tracks = Tracks(HERE)
        for version in range(100, 0, -2):
            self.fetch(tracks, version)
        assert len(tracks.all) == 16
        assert len({track.name for track in tracks.all}) == 16
        assert self.bases(tracks)[0] == 1  # the slowest is among them

    @pytest.mark.parametrize(
        "client", [Client(None, "fe80::1%eth0"), Client("key:0", "1.2.3.4"), Client("x" * 300, "")]
    )
    def test_names_are_those_of_consumers(self, client):
        from patchlog.log.records import check_consumer_name

        tracks = Tracks(client)
        self.fetch(tracks, 9, 5)
        for track in tracks.all:
            assert tracks.is_named(check_consumer_name(track.name))
        assert not tracks.is_named(f"{tracks.name}.x")
        assert not tracks.is_named(f"{tracks.name}1")
