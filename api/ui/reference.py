"""The page about the requests, from the service's own OpenAPI. Nothing of it comes from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse

from api.ui.pages import page, wants_json

__all__ = ["reference_of", "router"]

router = APIRouter(include_in_schema=False)

_SUCCESS: Final = "Successful Response"
"""What FastAPI says where nobody has said more."""


@router.get("/")
async def begin(request: Request) -> Response:
    """Who comes with a browser wants the pages."""
    if "text/html" not in request.headers.get("accept", ""):
        raise HTTPException(404)
    return RedirectResponse("/ui")


@router.get("/docs")
async def docs(request: Request) -> Response:
    """All requests. As JSON they are the OpenAPI document itself."""
    schema = request.app.openapi()
    return JSONResponse(schema) if wants_json(request) else page(request, "reference.html", reference_of(schema))


def reference_of(schema: Mapping[str, Any]) -> dict[str, Any]:
    """What the page shows of an OpenAPI document."""
    operations = groupby(_operations(schema["paths"]), key=itemgetter("tag"))
    return {
        "version": schema["info"]["version"],
        "description": schema["info"]["description"],
        "groups": [{"tag": tag, "operations": list(some)} for tag, some in operations],
    }


def _operations(paths: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for path, methods in paths.items():
        for method, operation in methods.items():
            body = operation.get("requestBody", {})
            yield {
                "id": operation["operationId"],
                "tag": operation.get("tags", [""])[0],
                "method": method.upper(),
                "path": path,
                "summary": operation["summary"],
                "description": [part for part in operation.get("description", "").split("\n\n") if part],
                "parameters": [_parameter(one) for one in operation.get("parameters", []) if one["in"] != "path"],
                "body": list(body.get("content", ())),
                "answers": [
                    {
                        "status": status,
                        "description": "" if answer["description"] == _SUCCESS else answer["description"],
                        "types": list(answer.get("content", ())),
                    }
                    for status, answer in sorted(operation["responses"].items())
                ],
            }


def _parameter(parameter: Mapping[str, Any]) -> dict[str, Any]:
    schema = parameter["schema"]
    kinds = [one for one in schema.get("anyOf", [schema]) if one.get("type") != "null"]
    return {
        "name": parameter["name"],
        "place": parameter["in"],
        "kind": " or ".join(", ".join(map(str, one["enum"])) if "enum" in one else one["type"] for one in kinds),
        "default": schema.get("default"),
        "is_required": parameter.get("required", False),
        "description": parameter.get("description", ""),
    }
