"""Which web pages may act: the names that the service is called by, and the origins whose pages may change something.

A browser sends requests to any address for any page, with what it knows of that address. It says where they come from:

    Host             the name in the URL. One that leads here by DNS rebinding is not one of ours.
    Sec-Fetch-Site   whether the page is of the same origin; only where the service is reached by TLS or on loopback
    Sec-Fetch-Mode   whether the person goes to another page, or that page loads something; Sec-Fetch-Dest says as what
    Origin           the origin of the page, unless the request only reads from its own

A page of another site may lead here by a link. It must not change anything, nor load anything: it cannot read the
answer, but images and scripts would have the service work, say whether something is there, and be taken for clients.

Programs that are no browsers send a Host of ours and neither of the others, and are not concerned.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from api.errors import Problem, Refusal
from api.rdf_delta.port import PREFIX
from api.settings import Settings

__all__ = ["SAFE_METHODS", "Origins", "preflight_headers"]

SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
"""They change nothing, and pages of other origins cannot read the answers."""

_PROBES: Final = frozenset({"/healthz", "/readyz"})
"""Who looks whether a container lives calls it by its address. The answer says nothing else."""

_MALFORMED: Final = Problem(400, "malformed-request", "The request is not HTTP/1.1 as it is read here")
_FOREIGN_HOST: Final = Problem(403, "foreign-host", "The service is not called by that name")
_FOREIGN_ORIGIN: Final = Problem(403, "foreign-origin", "The request is of a web page of another site")
_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}
_SHOWN: Final = 100


class Origins:
    """The hosts and origins that a service lets in."""

    def __init__(self, settings: Settings) -> None:
        hosts = settings.allowed_hosts or ()
        is_private = settings.is_loopback and not settings.needs_keys
        self._hosts: Final = None if "*" in hosts or not (hosts or is_private) else hosts
        self._lets_probes_in: Final = not settings.is_loopback
        self._origins: Final = frozenset(settings.allowed_origins or ())
        self.allows_host = lru_cache(maxsize=256)(self._allows_host)

    @property
    def has_allowed(self) -> bool:
        """Whether pages of other origins may do anything at all."""
        return bool(self._origins)

    def allows_origin(self, origin: str) -> bool:
        """Whether pages of this origin may act as those of the service itself."""
        return origin in self._origins or "*" in self._origins

    def check(self, method: str, path: str, headers: Iterable[tuple[bytes, bytes]]) -> str | None:
        """Return the origin of the page that makes a request, if it says so. Raises Refusal where it must not."""
        host = origin = site = mode = destination = None
        for name, value in headers:
            if name == b"host":
                if host is not None:
                    raise Refusal(_MALFORMED, "the request has several headers Host: send one")
                host = value
            elif name == b"origin":
                origin = value.decode("latin-1") if origin is None else "null"
            elif name == b"sec-fetch-site":
                site = value if site is None else b""
            elif name == b"sec-fetch-mode":
                mode = value
            elif name == b"sec-fetch-dest":
                destination = value
        if host is not None and not (self.allows_host(host) or (self._lets_probes_in and path in _PROBES)):
            raise Refusal(
                _FOREIGN_HOST,
                f"the service is not called {_shown(host)}: use a name that it knows, such as localhost on its own "
                "machine, or add this one to the setting allowed_hosts (PATCHLOG_ALLOWED_HOSTS)",
            )
        # Where a browser does not say what the answer is for, it may be a link.
        is_link = mode is None or (mode, destination) == (b"navigate", b"document")
        is_harmless = method in SAFE_METHODS and is_link and not _says_where_clients_are(path)
        if not (method == "OPTIONS" or is_harmless or self._is_own(host or b"", origin, site)):
            raise Refusal(
                _FOREIGN_ORIGIN,
                "a browser sends this for a page that is not of this service: if that page may use what is here, "
                "add its origin to the setting allowed_origins (PATCHLOG_ALLOWED_ORIGINS)",
            )
        return origin

    def _is_own(self, host: bytes, origin: str | None, site: bytes | None) -> bool:
        """Whether a request is of a page of the service, of an allowed one, or of no page."""
        if site in (b"same-origin", b"none") or (site is None and origin is None):
            return True
        if origin is not None and self.allows_origin(origin):
            return True
        return site is None and bool(host) and _host_of(origin or "") == host.decode("latin-1").lower()

    def _allows_host(self, host: bytes) -> bool:
        if self._hosts is None:
            return True
        whole = host.decode("latin-1").lower()
        name = _without_port(whole)
        return _is_loopback(name) or any(_fits(allowed, name, whole) for allowed in self._hosts)


def _says_where_clients_are(path: str) -> bool:
    """Whether a request changes something by any method: the clients of RDF Delta's API are where they fetch."""
    return path == PREFIX or path.startswith(f"{PREFIX}/")


def _host_of(origin: str) -> str:
    """What a page of an origin sends as Host to where it came from."""
    scheme, _, host = origin.lower().partition("://")
    return host.removesuffix(_DEFAULT_PORTS.get(scheme, ":"))


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() and (":" not in name or name.endswith("]")) else host


def _is_loopback(name: str) -> bool:
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False


def _fits(allowed: str, name: str, whole: str) -> bool:
    if allowed.startswith("*."):
        return name.endswith(allowed[1:])
    return allowed in (name, whole)


def _shown(host: bytes) -> str:
    return repr(host[:_SHOWN].decode("latin-1"))


def preflight_headers(requested: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    """What an allowed page may send, as it asks before it does."""
    asked = {name: value.decode("latin-1") for name, value in requested}
    headers = {
        "Access-Control-Allow-Methods": "GET, HEAD, PUT, POST, PATCH, DELETE",
        "Access-Control-Max-Age": "600",
    }
    if wanted := asked.get(b"access-control-request-headers"):
        headers["Access-Control-Allow-Headers"] = wanted
    if b"access-control-request-private-network" in asked:
        headers["Access-Control-Allow-Private-Network"] = "true"
    return headers
