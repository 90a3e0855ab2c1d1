"""What becomes of errors: one table from the library's errors to problem documents (RFC 9457).

Nothing else in the service knows which error has which status.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from patchlog import errors

__all__ = [
    "NO_PATCH",
    "PROBLEMS",
    "PROBLEM_JSON",
    "UNSUPPORTED",
    "Problem",
    "Refusal",
    "answer_problems",
    "answer_to",
    "detail_of",
    "problem_document",
    "problem_of",
    "refused",
]

PROBLEM_JSON: Final = "application/problem+json"
_TYPE: Final = "urn:patchlog:problem:"

_LOG: Final = logging.getLogger("patchlog.service")


@dataclass(frozen=True, slots=True)
class Problem:
    """A kind of problem. `name` is the end of its type, by which programs tell it from others."""

    status: int
    name: str
    title: str
    headers: Mapping[str, str] = field(default_factory=dict)


PROBLEMS: Final[Mapping[type[errors.PatchLogError], Problem]] = {
    errors.MalformedFrame: Problem(400, "malformed-frame", "The bytes are not what their format says"),
    errors.LimitExceeded: Problem(413, "limit-exceeded", "The input asks for more than is allowed"),
    errors.UnsupportedOption: Problem(400, "unsupported-option", "The stream options are not supported"),
    errors.UnknownLookupEntry: Problem(400, "unknown-lookup-entry", "A lookup entry is not defined"),
    errors.UnexpectedRow: Problem(400, "unexpected-row", "A row stands where it must not"),
    errors.InvalidTerm: Problem(400, "invalid-term", "A term is not valid where it stands"),
    errors.InvalidSyntax: Problem(400, "invalid-syntax", "The text is not well formed"),
    errors.TransactionError: Problem(400, "transaction-order", "Transactions are out of order"),
    errors.LogNotFound: Problem(404, "log-not-found", "There is no such log"),
    errors.LogAlreadyExists: Problem(409, "log-exists", "There is such a log already"),
    errors.HeadMismatch: Problem(412, "head-mismatch", "Another patch is the head of the log"),
    errors.PatchAlreadyExists: Problem(409, "patch-exists", "The id belongs to another patch"),
    errors.RevertConflict: Problem(409, "revert-conflict", "Later patches say the opposite"),
    errors.PositionGone: Problem(410, "position-gone", "The patch was truncated away"),
    errors.HistoryMismatch: Problem(409, "history-mismatch", "The position is of another history"),
    errors.ConsumerNotFound: Problem(404, "consumer-not-found", "There is no such consumer"),
    errors.ConsumerRefused: Problem(409, "consumer-refused", "The consumer cannot stand there"),
    errors.ConsumerOwned: Problem(403, "consumer-owned", "The consumer belongs to another key"),
    errors.TruncationRefused: Problem(409, "truncation-refused", "The patches are still needed"),
    errors.SnapshotNotFound: Problem(404, "snapshot-not-found", "There is no such snapshot"),
    errors.SnapshotRefused: Problem(409, "snapshot-refused", "The snapshot is not what the log allows"),
    errors.SnapshotBusy: Problem(409, "snapshot-busy", "Another snapshot is being made", {"Retry-After": "5"}),
    errors.StorageError: Problem(500, "storage-failed", "The database failed"),
    errors.StorageFull: Problem(507, "storage-full", "There is no room left", {"Retry-After": "60"}),
    errors.WorkCancelled: Problem(409, "job-cancelled", "The job was cancelled"),
    errors.UsageError: Problem(400, "bad-request", "The request cannot be carried out"),
    errors.MissingExtra: Problem(501, "not-installed", "The service lacks an optional part"),
}
UNSUPPORTED: Final = Problem(415, "unsupported-media-type", "The body is in a format that is not read here")
NO_PATCH: Final = Problem(404, "patch-not-found", "There is no such patch")
_UNAVAILABLE: Final = Problem(503, "storage-unavailable", "The database cannot be used now", {"Retry-After": "1"})
_CUT_SHORT: Final = Problem(400, "cut-short", "The body did not come whole", {"Connection": "close"})
_NO_DOCUMENT: Final = Problem(400, "no-document", "The request has no document")
_UNEXPECTED: Final = Problem(500, "internal", "The service failed")


class Refusal(Exception):
    """A request that the service itself refuses, before a log is asked."""

    def __init__(self, problem: Problem, detail: str, **members: Any) -> None:
        super().__init__(detail)
        self.problem = problem
        self.detail = detail
        self.members = members


def problem_of(error: errors.PatchLogError) -> Problem:
    """The kind of problem that an error is."""
    if isinstance(error, errors.StorageError) and not isinstance(error, errors.StorageFull) and error.is_transient:
        return _UNAVAILABLE
    return next(PROBLEMS[kind] for kind in type(error).__mro__ if kind in PROBLEMS)


def answer_problems(app: FastAPI) -> None:
    """Have the app answer all errors with problem documents."""
    app.add_exception_handler(errors.PatchLogError, _answer_error)
    app.add_exception_handler(Refusal, _answer_refusal)
    app.add_exception_handler(RequestValidationError, _answer_invalid)
    app.add_exception_handler(HTTPException, _answer_http)
    app.add_exception_handler(ClientDisconnect, _answer_disconnected)
    app.add_exception_handler(Exception, _answer_error)


def problem_document(problem: Problem, detail: str) -> dict[str, Any]:
    """What is said of every problem."""
    return {"type": f"{_TYPE}{problem.name}", "title": problem.title, "status": problem.status, "detail": detail}


def _answer(problem: Problem, detail: str, members: Mapping[str, Any] | None = None) -> Response:
    body = problem_document(problem, detail) | dict(members or {})
    return JSONResponse(body, problem.status, problem.headers, PROBLEM_JSON)


def detail_of(error: errors.PatchLogError) -> str:
    """What clients are told of an error: where the database is, and what it said, is for the log of the service."""
    if not isinstance(error, errors.StorageError) or error.__cause__ is None:
        return str(error)
    _LOG.warning("a request failed: %s", error)
    title = problem_of(error).title
    return f"{title[0].lower()}{title[1:]}: the log of the service says why"


def answer_to(error: BaseException, log: str | None = None) -> Response:
    """The problem document of an error that the log of that name has raised."""
    if not isinstance(error, errors.PatchLogError):
        _LOG.error("a request failed", exc_info=error)
        return _answer(_UNEXPECTED, "the request may be repeated; the service has logged what went wrong")
    problem = problem_of(error)
    members: dict[str, Any] = {}
    if problem.status == HTTPStatus.INTERNAL_SERVER_ERROR:
        _LOG.error("the database failed", exc_info=error)
    for name in ("frame", "row", "line", "position", "oldest_kept", "id", "version", "consumer", "owner"):
        if (place := getattr(error, name, None)) is not None:
            members[name] = place
    if isinstance(error, errors.HistoryMismatch):
        members |= {name: getattr(error, name) for name in ("reason", "last_common", "head_version", "log_id")}
    if isinstance(error, errors.PositionGone) and log is not None:
        members["snapshots"] = f"/logs/{log}/snapshots"
        members["snapshot"] = f"{members['snapshots']}/latest"
        problem = replace(problem, headers={"Link": f'<{members["snapshot"]}>; rel="alternate"'})
    return _answer(problem, detail_of(error), members)


async def _answer_error(request: Request, error: Exception) -> Response:
    cause = error.__cause__
    if isinstance(error, RuntimeError) and isinstance(cause, errors.PatchLogError):
        error = cause  # Starlette's way to say that the answer has begun already
    return answer_to(error, request.path_params.get("log"))


def refused(refusal: Refusal) -> Response:
    """The problem document of a refusal."""
    return _answer(refusal.problem, refusal.detail, refusal.members)


async def _answer_refusal(_: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return refused(error)


async def _answer_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    if any(flaw["loc"] == ("body",) and isinstance(flaw["input"], bytes) for flaw in error.errors()):
        kind = request.headers.get("content-type", "")
        return _answer(UNSUPPORTED, f"the Content-Type is {kind!r}; documents are read from application/json")
    if any(flaw["loc"] == ("body",) and flaw["type"] == "missing" for flaw in error.errors()):
        return _answer(
            _NO_DOCUMENT, "the request needs a JSON document that says what it is about: /docs shows it for each path"
        )
    flaws = [f"{'.'.join(map(str, flaw['loc']))}: {flaw['msg']}" for flaw in error.errors()]
    return _answer(Problem(400, "invalid-parameter", "A parameter is not valid"), "; ".join(flaws))


async def _answer_http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    title = HTTPStatus(error.status_code).phrase
    name = title.lower().replace(" ", "-")
    return _answer(Problem(error.status_code, name, title, error.headers or {}), str(error.detail))


async def _answer_disconnected(_request: Request, _error: Exception) -> Response:
    """Nobody reads this: it is what the log and the metrics say of a client that went away."""
    return _answer(_CUT_SHORT, "the connection was closed before the end of the body; nothing was taken")
