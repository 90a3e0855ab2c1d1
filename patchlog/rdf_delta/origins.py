"""Where the logs of an RDF Delta server are read from: the running server, or the folder of its file store."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, Protocol

import httpx

from patchlog.client.urls import moved_to, parse_url
from patchlog.errors import StorageError, UsageError

__all__ = ["DeltaFolder", "DeltaLog", "DeltaServer", "Origin", "origin_at"]

_PATCH_FILE: Final = re.compile(r"patch-(\d{4,})")
_CONFIGURATION: Final = "source.cfg"
_TRIES: Final = 4
_TAG: Final = re.compile(r"<[^<>]*>")
_MOST_CHARACTERS: Final = 300


@dataclass(frozen=True, slots=True)
class DeltaLog:
    """A log of RDF Delta: its name, id and URI, and the versions that it has."""

    name: str
    id: str
    first_version: int
    last_version: int
    uri: str | None = None


class Origin(Protocol):
    """What has logs to take over."""

    def logs(self) -> list[DeltaLog]:
        """All logs, by name."""

    def check(self, log: DeltaLog) -> None:
        """Raise UsageError where a log cannot be taken over from here."""

    def patch(self, log: DeltaLog, version: int) -> Iterator[bytes]:
        """The RDF Patch text of a version."""

    def close(self) -> None:
        """Let go of what is held open."""


def origin_at(place: str) -> Origin:
    """The server at a URL, or the file store in a folder."""
    return DeltaServer(place) if place.startswith(("http://", "https://")) else DeltaFolder(Path(place))


class DeltaServer:
    """A running server, by the URL that its clients have."""

    def __init__(self, url: str) -> None:
        parsed, user = parse_url(url.rstrip("/"), "the URL of a server", "http://HOST:PORT")
        self._url = str(parsed).rstrip("/")
        transport = httpx.HTTPTransport(retries=_TRIES)
        self._client = httpx.Client(timeout=60, transport=transport, auth=user, follow_redirects=False)

    def logs(self) -> list[DeltaLog]:
        """Ask for all logs."""
        call = {"opid": "", "operation": "list_log_info", "arg": {}}
        try:
            answer = self._client.post(f"{self._url}/$/rpc", json=call)
            self._check_stays(answer)
            found = answer.raise_for_status().json()["array"]
            return sorted((_log_of(document) for document in found), key=lambda log: log.name)
        except httpx.TransportError as error:
            raise StorageError(f"{self._url} cannot be reached: {error}", is_transient=True) from error
        except (httpx.HTTPStatusError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise UsageError(f"{self._url} does not answer as an RDF Delta server does: {error}") from error

    def check(self, log: DeltaLog) -> None:
        """Whatever a server tells of it can serve."""

    def patch(self, log: DeltaLog, version: int) -> Iterator[bytes]:
        """Fetch a patch. RDF Delta keeps a patch on its heap, so this does not ask for two at a time."""
        url = f"{self._url}/{log.id}/{version}"
        try:
            with self._client.stream("GET", url) as answer:
                self._check_stays(answer)
                if answer.status_code != HTTPStatus.OK:
                    reason = _plain(next(answer.iter_text(), ""))
                    raise UsageError(f"{url} answered {answer.status_code}: {reason}")
                yield from answer.iter_bytes()
        except httpx.TransportError as error:
            raise StorageError(f"{url}: {error}", is_transient=True) from error

    def _check_stays(self, answer: httpx.Response) -> None:
        if moved := moved_to(answer):
            raise UsageError(f"{self._url} answered {answer.status_code}: {moved}")

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


class DeltaFolder:
    """The folder of a file store (`--base=DIR --file`), of a server that does not run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._of_logs: dict[str, _LogFolder] = {}
        if not folder.is_dir():
            raise UsageError(f"{folder} is no folder, and no URL of a server")

    def logs(self) -> list[DeltaLog]:
        """Read the configurations of all logs, and the names of their files."""
        found = [self._log(configuration) for configuration in self._folder.glob(f"*/{_CONFIGURATION}")]
        if not found:
            raise UsageError(f"{self._folder} holds no logs: there is no folder in it with a file {_CONFIGURATION}")
        return sorted(found, key=lambda log: log.name)

    def check(self, log: DeltaLog) -> None:
        """A log is in files, one a version, without gaps."""
        of_log = self._of_logs[log.name]
        if of_log.kind != "file":
            raise UsageError(
                f"{of_log.path} is a store of type {of_log.kind!r}, which only RDF Delta itself can read: start its "
                "server on it, and import from the server's URL"
            )
        if missing := sorted(set(range(log.first_version, log.last_version)) - set(of_log.versions())):
            raise UsageError(f"{of_log.path}: version {missing[0]} is missing between the files that are there")

    def patch(self, log: DeltaLog, version: int) -> Iterator[bytes]:
        """Read a patch."""
        path = self._of_logs[log.name].path / f"patch-{version:04d}"
        try:
            with path.open("rb") as file:
                while chunk := file.read(1 << 18):
                    yield chunk
        except OSError as error:
            raise StorageError(f"{path} cannot be read: {error.strerror}") from error

    def close(self) -> None:
        """Nothing is held."""

    def _log(self, configuration: Path) -> DeltaLog:
        try:
            document = json.loads(configuration.read_text())
            name, id, kind = document["name"], document["id"].removeprefix("id:"), document.get("log_type", "file")
            uri = document.get("uri")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"{configuration} is not the configuration of a log: {error}") from error
        if not all(isinstance(value, str) for value in (name, id, kind)) or not isinstance(uri, str | None):
            raise UsageError(f"{configuration} is not the configuration of a log: it has what is no text")
        if name in self._of_logs:
            raise UsageError(f"{configuration.parent} and {self._of_logs[name].path} are both the log {name!r}")
        self._of_logs[name] = of_log = _LogFolder(configuration.parent, kind)
        versions = of_log.versions()
        return DeltaLog(name, id, min(versions, default=0), max(versions, default=0), uri)


@dataclass(frozen=True, slots=True)
class _LogFolder:
    """The files of a log, and how RDF Delta keeps them."""

    path: Path
    kind: str

    def versions(self) -> list[int]:
        """Those that have a file."""
        return [int(found[1]) for path in self.path.iterdir() if (found := _PATCH_FILE.fullmatch(path.name))]


def _log_of(document: dict[str, Any]) -> DeltaLog:
    versions = document["min_version"], document["max_version"]
    if not all(isinstance(version, int) for version in versions) or not isinstance(document["name"], str):
        raise TypeError(f"{document!r:.{_MOST_CHARACTERS}} is not the description of a log")
    return DeltaLog(
        name=document["name"],
        id=document["id"].removeprefix("id:"),
        first_version=document["min_version"],
        last_version=document["max_version"],
        uri=document.get("uri"),
    )


def _plain(text: str) -> str:
    """A line that people can read of what a server answers, which may be a page."""
    return " ".join(_TAG.sub(" ", text).split())[:_MOST_CHARACTERS] or "nothing more"
