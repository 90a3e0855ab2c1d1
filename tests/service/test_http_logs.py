"""Logs by name, over HTTP."""

import re

import httpx
import pytest

from tests.service.conftest import JELLY
from tests.waiting import wait_until

PROBLEM = "application/problem+json"


def test_log_is_created_once(service):
    first = service.client.put("/logs/made")
    again = service.client.put("/logs/made")

    assert (first.status_code, again.status_code) == (201, 200)
    assert first.headers["location"] == "/logs/made"
    assert first.json() == again.json()
    service.client.request("DELETE", "/logs/made", json={"delete": "made"})


def test_new_log_describes_itself(log):
    description = log.get().json()

    assert list(description) == [
        "name", "id", "head", "first_version", "patches", "operations", "bytes", "created", "options",
    ]  # fmt: skip
    assert description["head"] == {"version": 0, "id": None, "hash": "0" * 64, "time": None}
    assert (description["name"], description["first_version"], description["patches"]) == (log.name, 1, 0)
    assert "etag" not in log.get().headers


def test_head_is_the_entity_tag_of_the_log(log, patches):
    answer = log.append(patches.one()).json()

    described = log.get()

    assert described.headers["etag"] == f'"{answer["id"]}"'
    assert described.json()["head"]["id"] == answer["id"]


def test_options_are_fixed(service):
    plain = {"rdf_star": False, "generalized_statements": False}

    created = service.client.put("/logs/plain", json=plain)
    same = service.client.put("/logs/plain", json=plain)
    other = service.client.put("/logs/plain", json={"rdf_star": True})
    silent = [service.client.put("/logs/plain"), service.client.put("/logs/plain", json={})]
    in_part = service.client.put("/logs/plain", json={"rdf_star": False})

    assert created.json()["options"] == plain
    assert (created.status_code, same.status_code, other.status_code) == (201, 200, 409)
    assert [answer.status_code for answer in (*silent, in_part)] == [200, 200, 200]
    assert other.headers["content-type"] == PROBLEM
    service.client.request("DELETE", "/logs/plain", json={"delete": "plain"})


def test_options_may_be_given_as_a_description_has_them(service):
    described = service.client.put("/logs/first", json={"options": {"rdf_star": False}}).json()

    copied = service.client.put("/logs/second", json={"options": described["options"]})
    other = service.client.put("/logs/second", json={"options": {"rdf_star": True}})

    assert copied.json()["options"] == described["options"] == {"rdf_star": False, "generalized_statements": True}
    assert (copied.status_code, other.status_code) == (201, 409)
    for name in ("first", "second"):
        service.client.request("DELETE", f"/logs/{name}", json={"delete": name})


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded", "application/rdf-patch"])
def test_document_of_another_type_is_told_which_one_is_read(log, kind):
    """What `curl --data` sends, where nobody thinks of the header."""
    headers = {} if kind is None else {"Content-Type": kind}

    for method, path in (("PUT", ""), ("POST", "/revert"), ("POST", "/truncate"), ("PUT", "/consumers/one")):
        refused = log.client.request(method, log.path + path, content=b'{"rdf_star": false}', headers=headers)

        assert (refused.status_code, refused.headers["content-type"]) == (415, PROBLEM)
        assert "application/json" in refused.json()["detail"]


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b'{"rdf_star": 1}',
        b'{"colour": "red"}',
        b'{"options": {"colour": "red"}}',
        b'{"options": 1}',
        b'{"rdf_star": "yes"}',
    ],
)
def test_options_that_are_none_are_refused(service, body):
    refused = service.client.put("/logs/none", content=body, headers={"Content-Type": "application/json"})

    assert (refused.status_code, refused.headers["content-type"]) == (400, PROBLEM)
    assert service.client.get("/logs/none").status_code == 404


def test_large_document_is_refused(sqlite_service):
    refused = sqlite_service.client.put(
        "/logs/large", content=b" " * (2 << 20), headers={"Content-Type": "application/json"}
    )

    assert refused.status_code == 413


def test_deleted_log_is_gone(log, patches):
    log.append(patches.one())

    deleted = log.delete()

    assert deleted.status_code == 204
    assert log.get().status_code == 404
    assert log.delete().status_code == 404
    assert log.append(patches.one()).status_code == 404
    assert log.get("/patches").status_code == 404


def test_logs_are_listed_a_page_at_a_time(service):
    names = [f"page-{i}" for i in range(5)]
    for name in names:
        service.client.put(f"/logs/{name}")

    listed = []
    path = "/logs?limit=2&after=page"
    while path:
        page = service.client.get(path)
        assert page.status_code == 200
        listed += [log["name"] for log in page.json()["logs"]]
        path = page.json()["next"]
        assert page.headers.get("link", "") == (f'<{path}>; rel="next"' if path else "")

    assert [name for name in listed if name.startswith("page-")] == names
    assert listed == sorted(listed)


@pytest.mark.parametrize(
    "name",
    ["%00", "a%00b", "..", "%2e%2e", "a%2fb", "%2f", "a%5Cb", "-a", "a" * 101, "%C3%A9", "a%20b", "%E2%80%AE", "%0a"],
)
def test_hostile_names_are_refused(service, name):
    for method in ("GET", "PUT", "DELETE"):
        answer = service.client.request(method, f"{service.url}/logs/{name}")

        assert answer.status_code in (400, 404, 405), (method, answer.text)
        assert answer.headers["content-type"] == PROBLEM


def test_truncated_patches_are_gone(log, patches):
    for subject in ("a", "b", "c"):
        log.append(patches.one(subject))
    log.client.post(f"{log.path}/snapshots", params={"wait": "20"})

    truncated = log.client.post(f"{log.path}/truncate", json={"before": 3})
    gone = log.get("/patches/2")

    assert truncated.json()["first_version"] == 3
    assert gone.status_code == 410
    assert gone.json()["oldest_kept"] == 3
    assert gone.json()["snapshots"] == f"{log.path}/snapshots"
    assert gone.json()["snapshot"] == f"{log.path}/snapshots/latest"
    assert gone.headers["link"] == f'<{log.path}/snapshots/latest>; rel="alternate"'
    assert log.get("/patches?after=1").status_code == 410
    assert log.get("/stream?after=0").status_code == 410
    assert log.get("/patches?after=2").status_code == 200


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"force": True},
        {"before": 2, "force": 1},
        {"before": 0},
        {"before": "3"},
        {"before": 1 << 64},
        {"before": 1, "x": 1},
    ],
)
def test_truncation_that_makes_no_sense_is_refused(log, document):
    assert log.client.post(f"{log.path}/truncate", json=document).status_code == 400


def test_chain_is_verified(log, patches):
    log.append(patches.one())

    found = log.get("/verify").json()

    assert (found["sound"], found["checked"], found["first_bad_version"]) == (True, 1, None)
    assert found["head"] == log.get().json()["head"]


def test_operators_find_what_they_expect(service):
    for path in ("/healthz", "/readyz", "/openapi.json", "/docs"):
        assert service.client.get(path).status_code == 200


def test_metrics_count_appends(log, patches):
    log.append(patches.one(id=patches.A))
    log.append(patches.one(id=patches.A))

    metrics = log.client.get("/metrics").text

    assert re.search(rf'patchlog_head_version{{log="{log.name}"}} 1', metrics)
    assert re.search(r"patchlog_appended_patches_total [1-9]", metrics)
    assert re.search(r"patchlog_append_retries_total [1-9]", metrics)
    assert re.search(r'patchlog_requests_total{method="POST",route="/logs/{log}/patches",status="201"}', metrics)


def test_each_request_has_an_id(service):
    given = service.client.get("/logs", headers={"X-Request-Id": "from-a-proxy"})
    made = service.client.get("/logs", headers={"X-Request-Id": "no good: {}"})

    assert given.headers["x-request-id"] == "from-a-proxy"
    assert re.fullmatch(r"[0-9a-f]{32}", made.headers["x-request-id"])


def test_unknown_path_and_method_are_problems(service):
    assert service.client.get("/nowhere").json()["status"] == 404
    assert service.client.patch("/logs").headers["content-type"] == PROBLEM


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({}, 400),
        ({"content": b"{}", "headers": {"Content-Type": "application/json"}}, 400),
        ({"json": {"delete": "other"}}, 400),
        ({"json": {"delete": None}}, 400),
        ({"content": b'{"delete": "NAME"}', "headers": {"Content-Type": "text/plain"}}, 415),
        ({"content": b'{"delete": "NAME"}'}, 415),
    ],
)
def test_what_destroys_wants_a_document_that_says_what(log, patches, sent, status):
    log.append(patches.one())
    log.client.post(f"{log.path}/snapshots", params={"wait": "20"})
    if "content" in sent:
        sent = sent | {"content": sent["content"].replace(b"NAME", log.name.encode())}

    for method, rest in (("DELETE", ""), ("DELETE", "/snapshots/1"), ("POST", "/truncate"), ("POST", "/revert")):
        refused = log.client.request(method, log.path + rest, **sent)
        assert (refused.status_code, refused.headers["content-type"]) == (status, PROBLEM), (rest, refused.text)

    assert log.get("/snapshots/1?format=json").status_code == 200
    assert log.get("/patches/1").status_code == 200


def test_log_that_is_deleted_while_it_is_downloaded_is_no_failure_of_the_service(start, patches):
    """It was logged as one, with two tracebacks of all middleware."""
    service = start()
    service.client.put("/logs/people")
    for number in range(60):
        data = b"".join(patches.one(f"s{number}", values=[f'"{"x" * 400_000}"']))
        assert service.client.post("/logs/people/patches", content=data, headers=JELLY).status_code == 201

    with service.client.stream("GET", "/logs/people/patches") as answer:
        chunks = answer.iter_raw(1000)
        next(chunks)
        assert service.client.request("DELETE", "/logs/people", json={"delete": "people"}).status_code == 204
        wait_until(lambda: {"done"} == {job["state"] for job in service.client.get("/jobs").json()["jobs"]})
        with pytest.raises(httpx.RemoteProtocolError):
            for _ in chunks:
                pass
    wait_until(lambda: "LogNotFound: " in service.log_text)

    assert "Traceback" not in service.log_text
