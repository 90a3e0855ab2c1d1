"""A document as a page, or as JSON for who asks for that; and what browsers may do with a page."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from fastapi import Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from api.ui.shown import plain

__all__ = ["STATIC", "answered", "page", "wants_json"]

HOME: Final = Path(__file__).parent
STATIC: Final = HOME / "static"

_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'self'; style-src 'self'; img-src 'self' data:; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'; object-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # with `no-referrer` browsers send the forms of these pages with Origin: null
    "Cache-Control": "no-store",
    "Vary": "Accept, HX-Request",
}
_MOST_CHARACTERS: Final = 1000
"""What is shown of a term. Of 1 GB a browser would make nothing."""

_UNITS: Final = ("B", "kB", "MB", "GB", "TB")


def answered(request: Request, template: str, document: dict[str, Any]) -> Response:
    """The document as a page; as JSON for a program that accepts nothing else, or with `?format=json`."""
    if wants_json(request):
        return JSONResponse(document, headers=_HEADERS)
    return page(request, template, document)


def wants_json(request: Request) -> bool:
    """Whether a program asks."""
    accept = request.headers.get("accept", "")
    return request.query_params.get("format") == "json" or ("application/json" in accept and "text/html" not in accept)


def page(request: Request, template: str, document: dict[str, Any], status: int = 200) -> Response:
    """The document as a page."""
    # A part of a page, for who has the rest already.
    is_part = request.headers.get("hx-request") == "true"
    text = _environment.get_template(template).render(**document, request=request, is_part=is_part)
    return HTMLResponse(text, status, headers=_HEADERS)


def _size(value: int) -> str:
    size = float(value)
    for unit in _UNITS[:-1]:
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} {_UNITS[-1]}"


def _age(time: str | None) -> str:
    if time is None:
        return "never"
    seconds = (datetime.now(UTC) - datetime.fromisoformat(time)).total_seconds()
    return f"{_duration(max(0.0, seconds))} ago"


def _duration(seconds: float) -> str:
    for length, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= length:
            count = int(seconds // length)
            return f"{count} {unit}{'s' if count > 1 else ''}"
    return f"{int(seconds)} s"


def _counted(value: int) -> str:
    return f"{value:,}"


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"


def _made_environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HOME / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"size": _size, "age": _age, "duration": _duration, "counted": _counted, "q": _quoted}
    environment.filters |= {"cut": _cut, "plain": plain}
    return environment


def _quoted(text: str) -> str:
    return quote(text, safe="")


_environment: Final = _made_environment()
