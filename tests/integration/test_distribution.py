"""What an install gets: every module, the data files, and nothing that belongs to the checkout."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

HOUSE = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tracked():
    """The files of the checkout."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=HOUSE, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("not a git checkout")
    return [name for name in listed.stdout.split("\0") if name and (HOUSE / name).is_file()]


@pytest.fixture(scope="module")
def built_without_cargo(tracked, tmp_path_factory):
    """A wheel of the checkout, built where there is no cargo, and the log of its build."""
    folder = tmp_path_factory.mktemp("source with spaces")
    for name in tracked:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(HOUSE / name, folder / name)
    pip = [sys.executable, "-m", "pip", "wheel", "-v", "--no-deps", "--no-build-isolation", "--wheel-dir", "out", "."]
    environment = os.environ | {"PATH": os.defpath, "PATCHLOG_REQUIRE_NATIVE": ""}
    if shutil.which("cargo", path=os.defpath):
        pytest.skip("cargo is where every program is")

    done = subprocess.run(
        pip,
        cwd=folder,
        env=environment,
        start_new_session=True,  # no terminal: what the build says there is not for who runs the tests
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout
    return next((folder / "out").glob("*.whl")), done.stdout


def test_wheel_holds_the_packages_and_nothing_else(built_without_cargo, tracked) -> None:
    wheel, _ = built_without_cargo
    wanted = {name for name in tracked if name.startswith(("api/", "patchlog/", "spark/")) and "/native/" not in name}
    wanted |= {f"patchlog/{name}" for name in tracked if name.startswith("migrations/")}

    held = {name for name in ZipFile(wheel).namelist() if ".dist-info/" not in name}

    assert held == wanted


def test_missing_cargo_is_one_line_of_the_build(built_without_cargo) -> None:
    _, log = built_without_cargo

    notices = [line.strip() for line in log.splitlines() if line.strip().startswith("patchlog: ")]

    assert notices == ["patchlog: cargo was not found, so the native codec is left out: everything works, only slower"]
