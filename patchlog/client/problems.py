"""What the service refuses, back into the library's errors: problem documents (RFC 9457) by the end of their type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final, TypeVar

import httpx

from patchlog import errors
from patchlog.client.urls import moved_to

__all__ = ["Later", "PatchNotFound", "error_of", "read_answer"]

Result = TypeVar("Result")

_NO_SERVICE: Final = (ValueError, LookupError, TypeError, AttributeError, RecursionError, errors.UsageError)
"""What comes of reading a document that is none of ours."""


class PatchNotFound(errors.LogError):
    """The log has no such patch."""


class Later(errors.StorageError):
    """The service cannot do it now, and may say when to come again."""

    def __init__(self, reason: str, retry_after: str | None) -> None:
        super().__init__(reason, is_transient=True)
        # A date may stand there too, which is not for programs that come again in seconds.
        self.retry_after_seconds: Final = float(retry_after) if retry_after and retry_after.isdecimal() else 0.0

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), None), vars(self)


_LOCATED: Final[Mapping[str, type[errors.CodecError | errors.TransactionError]]] = {
    "malformed-frame": errors.MalformedFrame,
    "limit-exceeded": errors.LimitExceeded,
    "unsupported-option": errors.UnsupportedOption,
    "unknown-lookup-entry": errors.UnknownLookupEntry,
    "unexpected-row": errors.UnexpectedRow,
    "invalid-term": errors.InvalidTerm,
    "invalid-syntax": errors.InvalidSyntax,
    "transaction-order": errors.TransactionError,
    "too-large": errors.LimitExceeded,
}

_OTHERS: Final[Mapping[str, Callable[[Mapping[str, Any], str], errors.PatchLogError]]] = {
    "log-not-found": lambda _, detail: errors.LogNotFound(detail),
    "log-exists": lambda _, detail: errors.LogAlreadyExists(detail),
    "patch-not-found": lambda _, detail: PatchNotFound(detail),
    "head-mismatch": lambda members, _: errors.HeadMismatch(members.get("expected_head"), _actual_head(members)),
    "patch-exists": lambda members, _: errors.PatchAlreadyExists(members.get("id", ""), members.get("version", 0)),
    "position-gone": lambda members, _: errors.PositionGone(members.get("position", 0), members.get("oldest_kept", 0)),
    "history-mismatch": lambda members, _: errors.HistoryMismatch(
        members.get("reason", ""),
        version=members.get("version", 0),
        last_common=members.get("last_common"),
        head_version=members.get("head_version"),
        log_id=members.get("log_id"),
    ),
    "consumer-not-found": lambda _, detail: errors.ConsumerNotFound(detail),
    "consumer-refused": lambda _, detail: errors.ConsumerRefused(detail),
    "consumer-owned": lambda members, detail: errors.ConsumerOwned(detail, members.get("owner")),
    "truncation-refused": lambda members, detail: errors.TruncationRefused(detail, members.get("consumer")),
    "snapshot-not-found": lambda _, detail: errors.SnapshotNotFound(detail),
    "snapshot-refused": lambda _, detail: errors.SnapshotRefused(detail),
    "snapshot-busy": lambda members, _: errors.SnapshotBusy(members.get("version", 0)),
    "job-cancelled": lambda _, detail: errors.WorkCancelled(detail),
    "storage-full": lambda _, detail: errors.StorageFull(detail),
}

_LATER: Final = frozenset(
    {
        HTTPStatus.REQUEST_TIMEOUT,
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)


def read_answer(response: httpx.Response, read: Callable[[Any], Result]) -> Result:
    """Return what a document says that the service has sent.

    Raises UsageError for what is no such document, as from a page to log in that a network puts before the service.
    """
    try:
        return read(response.json())
    except _NO_SERVICE as error:
        raise errors.UsageError(
            f"{response.request.url} answered {response.status_code} with what no patchlog service sends. Is this the "
            "URL of a patchlog service?"
        ) from error


def error_of(response: httpx.Response, asked: Mapping[str, Any]) -> errors.PatchLogError:
    """The error that an answer stands for. What was `asked` fills in what its document does not say."""
    document = _members(response)
    members = {**asked, **document}
    kind, detail = document.get("type"), document.get("detail")
    if not (isinstance(kind, str) and isinstance(detail, str)):
        return _without_document(response)
    name = kind.replace("/", ":").rpartition(":")[2]
    if located := _LOCATED.get(name):
        return _located(located, members, detail)
    if other := _OTHERS.get(name):
        return other(members, detail)
    if response.is_server_error or response.status_code in _LATER:
        return _failed(response, detail)
    if name in ("unauthorized", "forbidden"):
        return errors.UsageError(f"{detail} (the key is taken from PATCHLOG_TOKEN, or the argument `token`)")
    if response.status_code == HTTPStatus.NOT_FOUND:
        return errors.UsageError(f"{response.request.url}: {detail}. Is this the URL of a patchlog service?")
    return errors.UsageError(detail)


def _members(response: httpx.Response) -> dict[str, Any]:
    if not response.headers.get("content-type", "").startswith("application/problem+json"):
        return {}
    try:
        document = response.json()
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _failed(response: httpx.Response, reason: str) -> errors.StorageError:
    if response.status_code in _LATER:
        return Later(reason, response.headers.get("retry-after"))
    return errors.StorageError(reason)


def _located(
    kind: type[errors.CodecError | errors.TransactionError], members: Mapping[str, Any], detail: str
) -> errors.PatchLogError:
    place = {name: members.get(name) for name in ("frame", "row", "line")}
    # The document says the place twice, in its text too.
    before = str(kind("", **place))
    return kind(detail.removeprefix(before), **place)


def _actual_head(members: Mapping[str, Any]) -> str | None:
    head = members.get("head")
    found = members["actual_head"] if "actual_head" in members else head.get("id") if isinstance(head, dict) else head
    return found if isinstance(found, str) else None


def _without_document(response: httpx.Response) -> errors.PatchLogError:
    """What stands between us and the service has answered, or something that is no such service."""
    said = f"{response.request.url} answered {response.status_code} {response.reason_phrase}"
    if moved := moved_to(response):
        return errors.UsageError(f"{said}: {moved}")
    if response.is_server_error or response.status_code in _LATER:
        return _failed(response, said)
    return errors.UsageError(f"{said}. Is this the URL of a patchlog service?")
