"""What `make release` checks, and what it says a release is made of."""

import importlib.util
import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def release():
    place = importlib.util.spec_from_file_location("release", HOUSE / "deploy" / "release.py")
    module = sys.modules["release"] = importlib.util.module_from_spec(place)  # a dataclass looks for its module
    place.loader.exec_module(module)
    yield module
    del sys.modules["release"]


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("MIT OR GPL-3.0-only", True),
        ("MIT AND GPL-3.0-only", False),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", True),
        ("(MIT OR Apache-2.0) AND GPL-3.0-only", False),
        ("GPL-3.0-only AND MIT OR Zlib", True),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("GPL-3.0-only", False),
        ("AGPL-3.0-or-later", False),
        ("MIT or so", False),
        ("(MIT", False),
        ("", False),
    ],
)
def test_licences_are_read_as_expressions(release, expression, allowed):
    assert release.is_allowed(expression) is allowed


def test_licences_of_all_locked_packages_are_allowed():
    if shutil.which("cargo") is None:
        pytest.skip("cargo, which says the licences of crates, is not on this machine")

    done = subprocess.run(
        [sys.executable, HOUSE / "deploy" / "release.py", "licences"], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_exceptions_are_still_needed(release):
    assert set(release.EXCEPTIONS) <= set(release.locked("requirements-dev.lock"))


def test_bill_has_what_an_install_brings_in_the_versions_of_the_lock_file(release):
    locked = release.locked("requirements-dev.lock") | release.locked("requirements.lock")

    components = list(release.packages())

    found = {one.name: one.version for one in components}
    assert {"alembic", "fastapi", "pyspark", "pandas", "psycopg-binary"} <= set(found)
    assert not {"pytest", "ruff", "patchlog"} & set(found)
    assert {name: of for name, of in found.items() if name in locked and locked[name] != of} == {}
    assert all(one.licence for one in components)
    document = json.loads(json.dumps(release.bill_of(components)))
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    assert document["metadata"]["component"]["version"] == release.version()
    assert len({one["bom-ref"] for one in document["components"]}) == len(components)
    assert document["dependencies"][0]["dependsOn"] == sorted(one["bom-ref"] for one in document["components"])


def test_bill_has_the_crates_with_their_hashes(release):
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not on this machine")
    lock = tomllib.loads((HOUSE / "patchlog" / "native" / "Cargo.lock").read_text())

    crates = {one.name: one for one in release.crates()}

    assert set(crates) == {one["name"] for one in lock["package"] if "source" in one}
    assert all(len(one.sha256) == 64 for one in crates.values())
