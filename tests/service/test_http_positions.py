"""Positions over HTTP: a reader that names its history is never given another one."""

import pytest

OTHER = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def three(log, patches):
    for i in range(3):
        log.append(patches.one(f"s{i}"))
    return log


def position(log, version):
    return log.get(f"/position?version={version}").json()


def query(place, *, version="version"):
    return f"{version}={place['version']}&hash={place['hash']}&log_id={place['log_id']}"


def test_position_of_the_head_and_of_a_version(three):
    described = three.get("").json()

    head = three.get("/position").json()
    first = three.get("/position?version=1").json()

    assert head == {"log_id": described["id"], "version": 3, "hash": described["head"]["hash"]}
    assert first["hash"] == three.get("/patches/1?format=json").json()["chain_hash"]
    assert three.get("/position?version=0").json()["hash"] == "00" * 32
    assert three.get("/position?version=4").status_code == 400


@pytest.mark.parametrize("version", [0, 1, 3])
def test_reader_that_names_the_history_of_the_log_goes_on(three, version):
    place = position(three, version)

    for path in ("/patches", "/patches?format=json", "/stream?wait=0"):
        join = "&" if "?" in path else "?"
        assert three.get(f"{path}{join}{query(place, version='after')}").status_code in (200, 204)
    assert three.get(f"/position?{query(place)}").json() == place


@pytest.mark.parametrize("wrong", [{"hash": "11" * 32}, {"log_id": OTHER}, {"version": 9}])
@pytest.mark.parametrize("path", ["/patches?", "/patches?format=json&", "/stream?", "/stream?wait=1&", "/position?"])
def test_reader_of_another_history_is_refused(three, path, wrong):
    place = position(three, 2) | wrong

    answer = three.get(path + query(place, version="version" if "position" in path else "after"))

    assert answer.status_code == 409
    problem = answer.json()
    assert problem["type"].endswith(":history-mismatch")
    assert (problem["version"], problem["head_version"]) == (place["version"], 3)
    assert problem["last_common"] == (2 if "log_id" in wrong else None)


def test_consumer_of_another_history_is_refused_and_shows_its_own(three):
    place = position(three, 2)

    path = f"{three.path}/consumers/reader"
    refused = three.client.put(path, json=place | {"hash": "11" * 32})
    taken = three.client.put(path, json=place)

    assert refused.status_code == 409
    assert {name: taken.json()[name] for name in place} == place


@pytest.mark.parametrize("wrong", ["hash=00", "hash=zz", "log_id=people", "hash="])
def test_what_is_no_hash_or_id_is_refused(three, wrong):
    assert three.get(f"/patches?{wrong}").status_code == 400


def test_page_after_this_one_is_of_the_same_log(three):
    place = position(three, 0)

    answer = three.get(f"/patches?limit=1&format=json&{query(place, version='after')}")

    assert f"log_id={place['log_id']}" in answer.json()["next"]
    assert three.client.get(answer.json()["next"]).json()["patches"][0]["version"] == 2
