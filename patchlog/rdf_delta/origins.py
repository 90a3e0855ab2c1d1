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

from patchlog.errors import StorageError, UsageError

__all__ = ["DeltaFolder", "DeltaLog", "DeltaServer", "Origin", "origin_at"]

_PATCH_FILE: Final = re.compile(r"patch-(\d{4,})")
_CONFIGURATION: Final = "source.cfg"
_TRIES: Final = 4


@dataclass(frozen=True, slots=True)
class DeltaLog:
    """A log of RDF Delta: its name and id, and the versions that it has."""

    name: str
    id: str
    first_version: int
    last_version: int


class Origin(Protocol):
    """What has logs to take over."""

    def logs(self) -> list[DeltaLog]:
        """All logs, by name."""

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
        self._url = url.rstrip("/")
        self._client = httpx.Client(timeout=60, transport=httpx.HTTPTransport(retries=_TRIES))

    def logs(self) -> list[DeltaLog]:
        """Ask for all logs."""
        call = {"opid": "", "operation": "list_log_info", "arg": {}}
        try:
            answer = self._client.post(f"{self._url}/$/rpc", json=call)
            found = answer.raise_for_status().json()["array"]
            return sorted((_log_of(document) for document in found), key=lambda log: log.name)
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise UsageError(f"{self._url!r} is not the URL of a server: {error}") from error
        except httpx.TransportError as error:
            raise StorageError(f"{self._url} cannot be reached: {error}", is_transient=True) from error
        except (httpx.HTTPStatusError, ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{self._url} does not answer as an RDF Delta server does: {error}") from error

    def patch(self, log: DeltaLog, version: int) -> Iterator[bytes]:
        """Fetch a patch. RDF Delta keeps a patch on its heap, so this does not ask for two at a time."""
        url = f"{self._url}/{log.id}/{version}"
        try:
            with self._client.stream("GET", url) as answer:
                if answer.status_code != HTTPStatus.OK:
                    raise UsageError(f"{url} answered {answer.status_code}: version {version} is not there")
                yield from answer.iter_bytes()
        except httpx.TransportError as error:
            raise StorageError(f"{url}: {error}", is_transient=True) from error

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


class DeltaFolder:
    """The folder of a file store (`--base=DIR --file`), of a server that does not run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        if not folder.is_dir():
            raise UsageError(f"{folder} is no folder, and no URL of a server")

    def logs(self) -> list[DeltaLog]:
        """Read the configurations of all logs, and the names of their files."""
        found = [self._log(configuration) for configuration in sorted(self._folder.glob(f"*/{_CONFIGURATION}"))]
        if not found:
            raise UsageError(f"{self._folder} holds no logs: there is no folder in it with a file {_CONFIGURATION}")
        return found

    def patch(self, log: DeltaLog, version: int) -> Iterator[bytes]:
        """Read a patch."""
        with self._path(log, version).open("rb") as file:
            while chunk := file.read(1 << 18):
                yield chunk

    def close(self) -> None:
        """Nothing is held."""

    def _log(self, configuration: Path) -> DeltaLog:
        try:
            document = json.loads(configuration.read_text())
            name, id, kind = document["name"], document["id"].removeprefix("id:"), document.get("log_type", "file")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"{configuration} is not the configuration of a log: {error}") from error
        if kind != "file":
            raise UsageError(
                f"{configuration.parent} is a store of type {kind!r}, which only RDF Delta itself can read: start its "
                "server on it, and import from the server's URL"
            )
        versions = sorted(
            int(found[1]) for path in configuration.parent.iterdir() if (found := _PATCH_FILE.fullmatch(path.name))
        )
        if versions and versions != list(range(versions[0], versions[-1] + 1)):
            missing = next(version for version in range(versions[0], versions[-1]) if version not in set(versions))
            raise UsageError(f"{configuration.parent}: version {missing} is missing between the files that are there")
        return DeltaLog(name, id, versions[0] if versions else 0, versions[-1] if versions else 0)

    def _path(self, log: DeltaLog, version: int) -> Path:
        return self._folder / log.name / f"patch-{version:04d}"


def _log_of(document: dict[str, Any]) -> DeltaLog:
    return DeltaLog(
        name=document["name"],
        id=document["id"].removeprefix("id:"),
        first_version=document["min_version"],
        last_version=document["max_version"],
    )
