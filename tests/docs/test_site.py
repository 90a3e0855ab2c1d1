"""The site of docs/ builds without a warning, has every page in its navigation, and loads nothing from elsewhere.

Strict building means: each page is in the navigation of mkdocs.yml, and each link and anchor resolves.
"""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[2]
LOADED = re.compile(r"<(?:script|img|iframe)[^>]*\bsrc=\"?(https?:[^\" >]+)|<link[^>]*\bhref=\"?(https?:[^\" >]+)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if find_spec("material") is None:
        if os.environ.get("CI"):
            pytest.fail("mkdocs-material is not installed")
        pytest.skip("mkdocs-material is not installed: pip install --group docs")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=HOUSE,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_site_builds_without_a_warning(site: Path) -> None:
    assert (site / "index.html").is_file()


def test_every_fenced_block_is_one_in_the_site(site: Path) -> None:
    """A fence that the site does not understand swallows what comes behind it."""
    torn = [page.name for page in site.rglob("*.html") if re.search(r"^(?:<p>)? *```", page.read_text(), re.MULTILINE)]

    assert torn == []


def test_site_loads_nothing_from_elsewhere(site: Path) -> None:
    loaded = {found[0] for page in site.rglob("*.html") for found in LOADED.finditer(page.read_text())}

    assert loaded == set()
