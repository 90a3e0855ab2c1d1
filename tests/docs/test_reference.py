"""The pages of docs/reference say what the code says. Where this fails: run `make reference`."""

import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def written() -> dict[str, str]:
    return runpy.run_path(str(DOCS / "reference.py"))["pages"]()


@pytest.mark.parametrize("name", ["command-line", "errors", "http", "metrics", "python", "settings"])
def test_page_of_the_reference_is_what_the_code_says(name: str, written: dict[str, str]) -> None:
    assert (DOCS / "reference" / f"{name}.md").read_text() == written[f"{name}.md"]


def test_reference_has_no_page_that_is_not_written(written: dict[str, str]) -> None:
    pages = {page.name for page in (DOCS / "reference").iterdir()}

    assert pages == set(written)


def test_every_error_has_something_to_do(written: dict[str, str]) -> None:
    rows = [line for line in written["errors.md"].splitlines() if line.startswith("| ")]

    assert [row for row in rows if row.endswith("|  |") and "`PatchLogError`" not in row] == []
