"""The OpenAPI document is true: answers are as it says, and nothing that is sent makes the service fail."""

import re
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from api.app import create_app
from api.settings import Settings
from patchlog.log.memory import MemoryLogStore
from patchlog.log.records import check_log_name

SCHEMA = schemathesis.openapi.from_dict(create_app(Settings(), MemoryLogStore()).openapi())
PATCH = b"TX .\nA <http://example.org/s> <http://example.org/p> <http://example.org/o> .\nTC .\n"


@schemathesis.serializer(
    "application/x-jelly-rdf-patch",
    "application/rdf-patch",
    "text/rdf-patch",
    "application/x-jelly-rdf",
    "application/n-quads",
    "application/trig",
)
def as_bytes(_context, value):
    return value if isinstance(value, bytes) else str(value).encode()


@SCHEMA.parametrize()
@settings(
    max_examples=10,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_answers_are_as_the_document_says(case, sqlite_service):
    if case.meta.generation.mode is GenerationMode.POSITIVE and len(case.path_parameters.get("log", "")) % 2:
        # A log that is there, with a patch, for about half of the requests.
        case.path_parameters["log"] = "schema"
        sqlite_service.client.put("/logs/schema")
        sqlite_service.client.post(
            "/logs/schema/patches", content=PATCH, headers={"Content-Type": "application/rdf-patch"}
        )

    if case.operation.path.endswith("/stream"):
        case.query = {**case.query, "wait": "0"}  # so that it ends

    # What the document cannot say, above all of the bytes of patches, is refused with 400 all the same.
    case.call_and_validate(base_url=sqlite_service.url, timeout=20, excluded_checks=[positive_data_acceptance])


def test_document_says_how_logs_are_called():
    parameters = [
        parameter
        for operations in SCHEMA.raw_schema["paths"].values()
        for operation in operations.values()
        for parameter in operation.get("parameters", [])
        if parameter["in"] == "path" and parameter["name"] == "log"
    ]

    for parameter in parameters:
        assert re.fullmatch(parameter["schema"]["pattern"], check_log_name("People-1.0_x"))
        assert not re.search(parameter["schema"]["pattern"], "-x")
    assert len(parameters) > 10


def test_document_names_every_status_that_is_refused():
    """RFC 9457 documents are the default answer of each operation."""
    for operations in SCHEMA.raw_schema["paths"].values():
        for operation in operations.values():
            assert list(operation["responses"]["default"]["content"]) == ["application/problem+json"]
            assert "422" not in operation["responses"]


@pytest.mark.parametrize("path", ["/openapi.json", "/docs"])
def test_document_is_served(sqlite_service, path):
    assert sqlite_service.client.get(path).status_code == 200


def test_page_names_every_request():
    page = (Path(__file__).parents[2] / "docs" / "http.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("|") and "/" in line]

    missing = [
        f"{method.upper()} {path}"
        for path, operations in SCHEMA.raw_schema["paths"].items()
        for method in operations
        if not any(method.upper() in row and re.search(rf"{re.escape(path)}(?![/\w])", row) for row in rows)
    ]

    assert missing == []
