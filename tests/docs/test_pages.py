"""The pages lead where they say, and leave nothing out."""

import os
import re
import subprocess
import tomllib
from pathlib import Path
from urllib.parse import unquote

import pytest

import patchlog.errors

HOUSE = Path(__file__).parents[2]
PAGES = sorted([*HOUSE.glob("*.md"), *HOUSE.glob("docs/**/*.md"), *HOUSE.glob("proto/*.md"), *HOUSE.glob("bench/*.md")])
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)
CODE = re.compile(r"^ *```.*?^ *```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)

# A place on somebody's disk. System folders that are the same everywhere (/dev, /usr) are not.
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|root|home|Users|tmp)/\w")
REGISTRY_HOST = re.compile(r"\b(?:pypi|pythonhosted|npmjs|rubygems)\.(?:org|com)\b|\b(?:static|index)\.crates\.io\b")


def anchors_of(page: Path) -> set[str]:
    """The anchors that GitHub gives to a page's headings."""
    headings = HEADING.findall(re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(HOUSE)))
def test_links_between_pages_resolve(page: Path) -> None:
    broken = []
    for link in LINK.findall(CODE.sub("", page.read_text())):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = unquote(link).partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors_of(target)):
            broken.append(link)

    assert broken == []


@pytest.mark.parametrize("name", patchlog.errors.__all__)
def test_error_has_its_row_in_the_page_of_errors(name: str) -> None:
    page = (HOUSE / "docs" / "errors.md").read_text()

    if name == "PatchLogError":
        assert f"`{name}`" in page
    else:
        assert re.search(rf"^\| `{name}` \| .+ \| .* \|$", page, re.MULTILINE)


def test_architecture_speaks_of_every_room() -> None:
    page = (HOUSE / "docs" / "architecture.md").read_text()
    contracts = tomllib.loads((HOUSE / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract.get("containers") == ["patchlog"])
    inside = {room for layer in layers for room in re.split(r" [:|] ", layer)} - {"__main__"}
    parts = {folder.parent.name for folder in HOUSE.glob("api/*/__init__.py")}

    rooms = {f"patchlog/{room}" for room in inside} | {f"api/{part}" for part in parts - {"routes"}}

    assert {room for room in rooms if f"`{room}/`" not in page and f"`{room}.py`" not in page} == set()


def tracked_texts() -> list[tuple[Path, str]]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=HOUSE, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        if os.environ.get("CI"):
            pytest.fail(listed.stderr)
        pytest.skip("not a git checkout")
    paths = [HOUSE / name for name in listed.stdout.split("\0") if name]
    return [(path, path.read_bytes().decode(errors="replace")) for path in paths if path.is_file()]


@pytest.mark.parametrize("pattern", [MACHINE_PATH, REGISTRY_HOST], ids=["machine path", "registry host"])
def test_no_file_names_a_place_that_others_do_not_have(pattern: re.Pattern[str]) -> None:
    found = [
        f"{path.relative_to(HOUSE)}:{text.count(chr(10), 0, match.start()) + 1}: {match[0]}"
        for path, text in tracked_texts()
        for match in pattern.finditer(text)
    ]

    assert found == []
