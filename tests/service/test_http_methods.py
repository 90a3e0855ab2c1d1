"""HEAD, OPTIONS, and methods that a path does not have."""

import pytest

from tests.waiting import wait_until

GOT = ["", "/patches", "/patches/1", "/patches/1?format=json", "/patches?format=rdf-patch", "/verify"]


@pytest.mark.parametrize("rest", GOT)
def test_head_is_get_without_the_body(log, patches, rest):
    log.append(patches.one())

    got = log.get(rest)
    head = log.client.head(f"{log.path}{rest}")

    assert (got.status_code, head.status_code) == (200, 200)
    assert head.content == b""
    for name in ("content-type", "etag", "cache-control", "vary"):
        assert head.headers.get(name) == got.headers.get(name)
    if "content-length" in got.headers:
        assert head.headers["content-length"] == got.headers["content-length"]


@pytest.mark.parametrize("path", ["/logs", "/healthz", "/readyz", "/metrics", "/openapi.json", "/docs"])
def test_head_of_what_operators_look_at(sqlite_service, path):
    assert sqlite_service.client.head(path).status_code == 200


def test_head_of_a_live_tail_ends(log, patches):
    log.append(patches.one())

    head = log.client.head(f"{log.path}/stream?after=0")

    assert (head.status_code, head.headers["content-type"]) == (200, "application/x-jelly-rdf-patch")
    wait_until(lambda: log.service.open_tails == 0)


def test_head_of_what_is_not_there_is_refused_alike(log):
    answers = [log.client.request(method, f"{log.path}/patches/9") for method in ("GET", "HEAD")]

    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[1].content == b""


def test_connection_goes_on_after_head(log):
    statuses = [log.client.request(method, log.path).status_code for method in ("HEAD", "GET", "HEAD", "GET")]

    assert statuses == [200] * 4


@pytest.mark.parametrize(
    ("rest", "allowed"),
    [
        ("", "GET, PUT, DELETE, HEAD, OPTIONS"),
        ("/patches", "GET, POST, HEAD, OPTIONS"),
        ("/patches/1", "GET, HEAD, OPTIONS"),
        ("/stream", "GET, HEAD, OPTIONS"),
        ("/truncate", "POST, OPTIONS"),
    ],
)
def test_methods_of_a_path_are_told(log, rest, allowed):
    options = log.client.options(f"{log.path}{rest}")
    refused = log.client.request("PROPFIND", f"{log.path}{rest}")

    assert (options.status_code, options.headers["allow"]) == (204, allowed)
    assert (refused.status_code, refused.headers["allow"]) == (405, allowed)
    assert refused.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("method", ["OPTIONS", "HEAD", "PROPFIND"])
def test_path_that_is_none_has_no_methods(sqlite_service, method):
    assert sqlite_service.client.request(method, "/nowhere").status_code == 404
