"""URLs and keys of services and stores: what is secret in them is used and never shown; where an answer points is."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urljoin

import httpx

from patchlog.errors import UsageError

__all__ = ["bearer", "moved_to", "parse_url", "without_password"]

_KEY: Final = re.compile(r"[\x21-\x7e]+")
_USER: Final = re.compile(r"(?<=://)[^/?#\s]*@")


def parse_url(url: str, what: str, example: str) -> tuple[httpx.URL, tuple[str, str] | None]:
    """Return a URL without its user, and the user with the password, which go into a header.

    httpx logs URLs as they are, so one with a password must not get there. Raises UsageError, which shows no part of
    a URL in which there may be a password.
    """
    shown = repr(url) if "@" not in url else "this, which is not shown as it may hold a password,"
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        reason = f": {error}" if "@" not in url else ""
        raise UsageError(f"{shown} is not {what}{reason}: write {example}") from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise UsageError(f"{shown} is not {what}: write {example}")
    if not parsed.userinfo:
        return parsed, None
    return parsed.copy_with(userinfo=b""), (parsed.username, parsed.password)


def bearer(token: str) -> str:
    """Return what a key is sent as. Raises UsageError, which does not show it, for what cannot stand in a header.

    httpx would refuse it too, with an error that holds the whole header.
    """
    if _KEY.fullmatch(token) is None:
        raise UsageError(
            "the key of the service holds a line break, a space or another character that no key has (it is not shown "
            "here): look at PATCHLOG_TOKEN, or the argument `token`; a file of a key may end in a line break"
        )
    return f"Bearer {token}"


def without_password(text: str) -> str:
    """Return a URL, or a text with URLs in it, without the users and passwords."""
    return _USER.sub("", text)


def moved_to(response: httpx.Response) -> str | None:
    """Return what to say of an answer that points elsewhere, or None where it does not.

    No redirect is ever followed: many change a POST into a GET, which is answered with 200 and has no effect, and the
    headers would go to whatever host the answer names.
    """
    if not response.has_redirect_location:
        return None
    place = without_password(urljoin(str(response.url), response.headers["Location"]))
    return f"it has moved to {place}; redirects are not followed: write the new URL"
