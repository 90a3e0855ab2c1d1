"""What becomes of errors: each of the library has its status, and tells what, where, and what to do."""

import pytest

from api.errors import PROBLEMS, problem_of
from patchlog import errors

TREE = [getattr(errors, name) for name in errors.__all__]
LEAVES = [error for error in TREE if not any(other is not error and issubclass(other, error) for other in TREE)]
OURS = {errors.StorageError: 500, errors.StorageFull: 507, errors.MissingExtra: 501}


@pytest.mark.parametrize("error", LEAVES, ids=lambda error: error.__name__)
def test_error_has_a_row(error):
    """Its own, or that of the error that it is a kind of; the roots of the tree have none."""
    assert any(kind in PROBLEMS for kind in error.__mro__)


def test_rows_are_told_apart_by_their_names():
    names = [problem.name for problem in PROBLEMS.values()]

    assert len(set(names)) == len(names)


@pytest.mark.parametrize("error", PROBLEMS, ids=lambda error: error.__name__)
def test_only_failures_of_the_service_are_told_as_such(error):
    status = PROBLEMS[error].status

    assert status == OURS[error] if error in OURS else 400 <= status < 500


@pytest.mark.parametrize(("is_transient", "status"), [(True, 503), (False, 500)])
def test_database_that_is_away_for_now_is_said_to_be(is_transient, status):
    problem = problem_of(errors.StorageError("gone", is_transient=is_transient))

    assert problem.status == status
    assert ("Retry-After" in problem.headers) is is_transient


def test_full_disk_says_when_to_come_again():
    assert "Retry-After" in problem_of(errors.StorageFull("full")).headers


@pytest.mark.parametrize(
    ("method", "rest", "sent", "status", "members"),
    [
        ("GET", "/patches/9", {}, 404, set()),
        ("GET", "/patches?after=x", {}, 400, set()),
        ("GET", "/patches/1?format=turtle", {}, 406, set()),
        ("POST", "/patches", {"content": b"A <x .\n", "headers": {"Content-Type": "text/rdf-patch"}}, 400, {"line"}),
        (
            "POST",
            "/patches",
            {"content": b"\x02\x0a\x00", "headers": {"Content-Type": "application/x-jelly-rdf-patch"}},
            400,
            {"frame"},
        ),
        ("POST", "/patches", {"content": b"", "headers": {"Content-Type": "text/plain"}}, 415, set()),
        ("POST", "/revert", {"json": {"version": 9}}, 404, set()),
        ("POST", "/revert", {"content": b"{", "headers": {"Content-Type": "application/json"}}, 400, set()),
    ],
)
def test_refusals_are_problem_documents(log, patches, method, rest, sent, status, members):
    log.append(patches.one())

    answer = log.client.request(method, f"{log.path}{rest}", **sent)

    document = answer.json()
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert {"type", "title", "status", "detail"} | members <= document.keys()
    assert document["status"] == status
    assert document["detail"]
    assert answer.headers["x-request-id"]


@pytest.mark.parametrize(
    ("method", "rest", "sent"),
    [
        ("POST", "/revert", {"content": rb'{"version": 1, "headers": {"who": "\ud800"}}'}),
        ("POST", "/revert", {"content": rb'{"version": 1, "headers": {"\ud800": "x"}}'}),
        ("POST", "/revert", {"content": rb'{"version": 1, "id": "\ud800"}'}),
        ("POST", "/revert", {"content": b"[" * 100_000}),
        ("POST", "/revert", {"content": b'{"version": 1e999}'}),
        ("POST", "/revert", {"content": b"\xff"}),
        ("GET", "/history?subject=%ED%A0%80&graph=%00", {}),
        ("GET", "/history?subject=%3C%3C(%20", {}),
        ("GET", "/patches/%ED%A0%80", {}),
        ("GET", "/patches?format=%ff", {}),
        ("GET", "/patches?after=%EF%BC%91", {}),
        ("GET", "/patches", {"headers": {"Accept": ";;;q=,"}}),
        ("GET", "/patches", {"headers": {"Accept-Encoding": "gzip;q=x, zstd;q=nan, ;"}}),
        ("GET", "/patches/1", {"headers": {"If-None-Match": '"'}}),
        ("GET", "/stream?wait=nan", {}),
        ("GET", "/stream?wait=-1", {}),
        ("GET", "/stream?wait=0", {"headers": {"Last-Event-ID": "9" * 30}}),
        ("PUT", "", {"content": b"nul"}),
        ("PUT", "/consumers/%00", {"content": b'{"version": 1}'}),
    ],
    ids=str,
)
def test_nonsense_is_never_the_service_s_fault(log, patches, method, rest, sent):
    log.append(patches.one())
    sent = {**sent, "headers": {"Content-Type": "application/json"} | sent.get("headers", {})}

    answer = log.client.request(method, f"{log.path}{rest}", **sent)

    assert answer.status_code < 500, answer.text
