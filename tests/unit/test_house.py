"""The layout keeps its promises: names, packages, imports, the lock files."""

import importlib
import os
import pkgutil
import re
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint, PackageNotFoundError, packages_distributions, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import api
import patchlog
import patchlog.errors
import spark

HOUSE = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((HOUSE / "pyproject.toml").read_text())
CRATE = HOUSE / "patchlog" / "native"
PACKAGES = {"api", "patchlog", "spark"}
MODULES = sorted(
    module.name
    for package in (api, patchlog, spark)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not module.name.endswith(".__main__")
)


@pytest.fixture(scope="module")
def installed_version() -> str:
    """The version that is installed; CI tests an install, a developer may test the bare tree."""
    try:
        return version("patchlog")
    except PackageNotFoundError:
        if os.environ.get("CI"):
            raise
        pytest.skip("patchlog is not installed in this environment")


def test_version_is_said_in_one_place(installed_version: str) -> None:
    assert patchlog.__version__ == installed_version == PYPROJECT["project"]["version"]


def test_crate_has_the_version_of_the_package() -> None:
    """Cargo wants a version of its own, in the manifest and in the lock file; nobody reads it from there."""
    manifest = tomllib.loads((CRATE / "Cargo.toml").read_text())["package"]
    locked = tomllib.loads((CRATE / "Cargo.lock").read_text())["package"]
    [in_lock] = [one["version"] for one in locked if one["name"] == manifest["name"]]

    assert manifest["version"] == in_lock == PYPROJECT["project"]["version"]


def test_top_level_folders_with_code_are_the_three_packages() -> None:
    """A folder `proto` with an `__init__.py` would hide proto-plus, and `tests` would be everyone's."""
    assert {path.parent.name for path in HOUSE.glob("*/__init__.py")} == PACKAGES


def test_tests_are_not_packages() -> None:
    """With an `__init__.py` a folder tests/spark would be the package `spark`, under pytest's importlib mode too."""
    assert list(HOUSE.glob("tests/**/__init__.py")) == []


@pytest.mark.parametrize("package", ["api", "spark"])
def test_file_names_hide_no_installed_module(package: str) -> None:
    """`python spark/apply.py` puts spark/ first on the path: a `delta.py` there would be imported for the real one."""
    ours = {path.stem for path in (HOUSE / package).iterdir() if path.suffix == ".py" or path.is_dir()}

    taken = (set(packages_distributions()) | sys.stdlib_module_names) - PACKAGES

    assert ours & taken == set()


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_each_package_belongs_to_one_distribution(package: str, installed_version: str) -> None:
    """`api` and `spark` exist on the package index; pip lays two owners of a folder over each other without a word."""
    assert installed_version
    assert set(packages_distributions()[package]) == {"patchlog"}


@pytest.mark.parametrize("name", MODULES)
def test_module_says_truly_what_is_public(name: str) -> None:
    module = importlib.import_module(name)

    public = getattr(module, "__all__", [])

    assert [entry for entry in public if not hasattr(module, entry)] == []


@pytest.mark.parametrize("name", patchlog.errors.__all__)
def test_error_stands_in_the_tree_of_its_module(name: str) -> None:
    assert re.search(rf"\b{name}\b", patchlog.errors.__doc__)


def test_every_error_is_in_the_tree() -> None:
    public = {name for name, value in vars(patchlog.errors).items() if isinstance(value, type) and name[0] != "_"}

    assert public == set(patchlog.errors.__all__)
    assert all(issubclass(getattr(patchlog.errors, name), patchlog.errors.PatchLogError) for name in public)


def entry_points() -> list[EntryPoint]:
    project = PYPROJECT["project"]
    groups = {"console_scripts": project["scripts"], **project["entry-points"]}
    return [EntryPoint(name, value, group) for group, names in groups.items() for name, value in names.items()]


@pytest.mark.parametrize(
    "entry_point", entry_points(), ids=lambda entry_point: f"{entry_point.group}-{entry_point.name}"
)
def test_entry_point_leads_somewhere(entry_point: EntryPoint) -> None:
    assert callable(entry_point.load())


def test_native_codec_is_there_where_it_is_required() -> None:
    if not os.environ.get("PATCHLOG_REQUIRE_NATIVE"):
        pytest.skip("PATCHLOG_REQUIRE_NATIVE is not set")

    assert importlib.import_module("patchlog._native")


@pytest.mark.parametrize("pure", ["", "0", "1"])
def test_environment_forces_the_pure_codec(pure: str) -> None:
    code = "from patchlog.engine import IMPLEMENTATION; print(IMPLEMENTATION)"
    native = importlib.util.find_spec("patchlog._native") is not None

    printed = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PATCHLOG_PURE": pure},
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert printed.strip() == ("native" if native and pure != "1" else "pure")


def locked(name: str) -> dict[str, list[Version]]:
    pins = re.findall(r"^([a-z0-9-]+)==([^ ]+)", (HOUSE / name).read_text(), re.MULTILINE)
    return {package: [Version(pin) for other, pin in pins if other == package] for package, _ in pins}


def requirements(*groups: str) -> list[Requirement]:
    entries = [entry for group in groups for entry in PYPROJECT["dependency-groups"][group]]
    return [Requirement(entry) for entry in entries if isinstance(entry, str)]


@pytest.mark.parametrize(
    ("lock", "wanted"),
    [
        ("requirements.lock", [Requirement(entry) for entry in PYPROJECT["project"]["dependencies"]]),
        ("requirements.lock", requirements("build")),
        ("requirements-dev.lock", requirements("build", "check", "docs", "test", "dev")),
    ],
    ids=["dependencies", "build", "dev"],
)
def test_lock_file_has_all_that_the_project_asks_for(lock: str, wanted: list[Requirement]) -> None:
    """Where this fails: run `make lock`."""
    pins = locked(lock)

    missing = [
        str(requirement)
        for requirement in wanted
        if not any(requirement.specifier.contains(pin) for pin in pins.get(requirement.name, []))
    ]

    assert missing == []


def test_lock_files_agree() -> None:
    run, dev = locked("requirements.lock"), locked("requirements-dev.lock")

    assert {package: pins for package, pins in dev.items() if package in run} == run


def test_every_verb_of_make_has_a_line_of_help() -> None:
    makefile = (HOUSE / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)

    helped = re.findall(r"^([a-z]+):.*## .", makefile, re.MULTILINE)

    assert phony
    assert sorted(helped) == sorted(phony[1].split())
