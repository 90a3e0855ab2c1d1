"""Requests to an RDF store over HTTP: what goes wrong comes out as our errors, and says what the store has said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

import httpx

from patchlog.client.connection import NEVER_BY_PROXY
from patchlog.client.urls import moved_to, parse_url
from patchlog.errors import StorageError, UsageError
from patchlog.followers.positions import GRAPH, LOADS, PREDICATE

__all__ = ["Endpoint", "sibling"]

_CONNECT_SECONDS: Final = 10.0
_ANSWER_SECONDS: Final = 600.0
"""A store may take its time for a large update."""
_SHOWN: Final = 300
_TRANSIENT: Final = frozenset(
    {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT}
)


class Endpoint:
    """One URL of a store. A user and a password in the URL are sent as basic authentication."""

    def __init__(self, url: str) -> None:
        parsed, user = parse_url(url, "the URL of a store", "http://HOST/PATH")
        self.url: Final = str(parsed)
        timeout = httpx.Timeout(_ANSWER_SECONDS, connect=_CONNECT_SECONDS)
        self._client = httpx.Client(timeout=timeout, auth=user, follow_redirects=False, mounts=NEVER_BY_PROXY)

    def ask(
        self,
        method: str,
        *,
        content: bytes | Iterable[bytes] | None = None,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        missing_ok: bool = False,
    ) -> httpx.Response:
        """Make a request once and read the answer; what is not there is an answer where that is said.

        Raises UsageError for a redirect, which is never followed.
        """
        try:
            response = self._client.request(method, self.url, content=content, params=params, headers=headers)
        except httpx.HTTPError as error:
            raise StorageError(f"{self.url}: {str(error) or type(error).__name__}", is_transient=True) from error
        if response.is_success or (missing_ok and response.status_code == HTTPStatus.NOT_FOUND):
            return response
        said = moved_to(response) or " ".join(response.text.split())[:_SHOWN]
        message = f"{self.url} answered {response.status_code} to {method}: {said or response.reason_phrase}"
        if response.status_code in _TRANSIENT:
            raise StorageError(message, is_transient=True)
        raise UsageError(message)

    def update(self, text: str) -> None:
        """Send a SPARQL Update."""
        self.ask("POST", content=text.encode(), headers={"Content-Type": "application/sparql-update"})

    def positions(self) -> list[tuple[str, str, str]]:
        """Ask the store, whose queries are answered at this URL, for the graph of positions."""
        return [(s, p, o) for s, p, o in self._select(("s", "p", "o"), f"GRAPH <{GRAPH}> {{ ?s ?p ?o }}")]

    def check_may_be_emptied(self, log_id: str) -> None:
        """Raise UsageError where the store has what is not of this log, or not of this log alone."""
        if self._found("{ ?found ?p ?o } UNION { GRAPH ?g { ?found ?p ?o } }") is None:
            return
        log = f"<urn:uuid:{log_id}>"
        own = self._found(f"GRAPH <{GRAPH}> {{ {log} <{PREDICATE}>|<{LOADS}> ?found }}")
        other = self._found(f"GRAPH <{GRAPH}> {{ ?found <{PREDICATE}> ?o FILTER (?found != {log}) }}")
        if own is None or other is not None:
            raise UsageError(
                f"the store of {self.url} has quads that are not of this log, and to begin with a snapshot empties it: "
                "follow into an empty store, or say that what is there may go (--replace, replace=True)"
            )

    def _found(self, where: str) -> str | None:
        """Ask the store for one thing."""
        return next((found for (found,) in self._select(("found",), where, "LIMIT 1")), None)

    def _select(self, names: Sequence[str], where: str, limit: str = "") -> list[list[str]]:
        variables = " ".join(f"?{name}" for name in names)
        answer = self.ask(
            "POST",
            content=f"SELECT {variables} WHERE {{ {where} }} {limit}".encode(),
            headers={"Content-Type": "application/sparql-query", "Accept": "application/sparql-results+json"},
        )
        try:
            rows: list[Any] = answer.json()["results"]["bindings"]
            return [[str(row[name]["value"]) for name in names] for row in rows]
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise UsageError(
                f"{self.url} did not answer a SPARQL query with JSON: is it the URL for queries?"
            ) from error

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def sibling(url: str, own: str, other: str) -> str:
    """The URL that differs in its last word: `…/update` and `…/query`."""
    base, slash, last = url.partition("?")[0].rpartition("/")
    return f"{base}{slash}{other}" if last == own else url
