"""What an install gets: every module, the data files, and nothing that belongs to the checkout."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import time
import venv
from pathlib import Path
from zipfile import ZipFile

import httpx
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
def source(tracked, tmp_path_factory):
    """A copy of the checkout."""
    folder = tmp_path_factory.mktemp("source with spaces")
    for name in tracked:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(HOUSE / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def built_without_cargo(source):
    """A wheel of the checkout, built where there is no cargo, and the log of its build."""
    pip = [sys.executable, "-m", "pip", "wheel", "-v", "--no-deps", "--no-build-isolation", "--wheel-dir", "out", "."]
    environment = os.environ | {"PATH": os.defpath, "PATCHLOG_REQUIRE_NATIVE": ""}
    if shutil.which("cargo", path=os.defpath):
        pytest.skip("cargo is where every program is")

    done = subprocess.run(
        pip,
        cwd=source,
        env=environment,
        start_new_session=True,  # no terminal: what the build says there is not for who runs the tests
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout
    return next((source / "out").glob("*.whl")), done.stdout


def test_wheel_holds_the_packages_and_nothing_else(built_without_cargo, tracked) -> None:
    wheel, _ = built_without_cargo
    wanted = {name for name in tracked if name.startswith(("api/", "patchlog/", "spark/")) and "/native/" not in name}
    wanted |= {f"patchlog/{name}" for name in tracked if name.startswith("migrations/")}

    held = {name for name in ZipFile(wheel).namelist() if ".dist-info/" not in name}

    assert held == wanted


def test_missing_cargo_is_one_line_of_the_build(built_without_cargo) -> None:
    _, log = built_without_cargo

    [notice] = [line.strip() for line in log.splitlines() if line.strip().startswith("patchlog: ")]

    assert "cargo was not found (https://rustup.rs has it), so the native codec is left out" in notice


def test_source_archive_holds_what_tests_and_builds_want(source, tracked, tmp_path):
    make = f"from setuptools import build_meta; build_meta.build_sdist({str(tmp_path)!r})"

    subprocess.run([sys.executable, "-c", make], cwd=source, check=True, capture_output=True)

    [archive] = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as files:
        held = {name.partition("/")[2] for name in files.getnames() if not files.getmember(name).isdir()}
    of_git = (".ci/", ".git", ".")
    wanted = {name for name in tracked if not name.startswith(of_git)}
    assert wanted <= held
    assert {name for name in held - wanted if not name.startswith("patchlog.egg-info/")} <= {"PKG-INFO", "setup.cfg"}


@pytest.fixture(scope="module")
def installed(request, tmp_path_factory):
    """A new environment with the wheel and extras of it. What they want is taken from the environment of the tests."""
    if dist := os.environ.get("PATCHLOG_DIST"):
        [wheel] = (HOUSE / dist).glob("*.whl")
    else:
        wheel, _ = request.getfixturevalue("built_without_cargo")
    folder = tmp_path_factory.mktemp("clean") / "venv"
    venv.create(folder, with_pip=False)
    places = sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})
    (Path(places["purelib"]) / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    python = folder / "bin" / "python"

    done = subprocess.run(
        [
            *(python, "-m", "pip", "--disable-pip-version-check", "install", "--no-index", "--ignore-installed"),
            *("--no-deps", wheel),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    done = subprocess.run(
        [
            python,
            "-m",
            "pip",
            "--disable-pip-version-check",
            "install",
            "--no-index",
            f"{wheel}[api,spark,grpc,postgres]",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "bin"


def test_extras_of_the_wheel_are_satisfied_by_the_lock_file(installed, tmp_path):
    told = subprocess.run(
        [installed / "patchlog", "version"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    where = "import api, patchlog, spark; print(*(one.__path__[0] for one in (api, patchlog, spark)))"
    found = subprocess.run(
        [installed / "python", "-c", where], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout

    assert all(Path(folder).is_relative_to(installed.parent) for folder in found.split())
    assert f"codec: {'native' if os.environ.get('PATCHLOG_DIST') else 'pure'}\n" in told
    assert all(re.search(rf"^{name}: \d", told, re.MULTILINE) for name in ("fastapi", "pyspark", "delta-spark"))


@pytest.mark.parametrize("command", ["patchlog", "patchlog-api", "patchlog-apply"])
def test_commands_of_the_wheel_start(installed, tmp_path, command):
    done = subprocess.run([installed / command, "--help"], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


def test_service_of_the_wheel_serves(installed, tmp_path):
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [installed / "patchlog", "serve", "--port", "0", "--grpc-port", "0"], cwd=tmp_path, stdout=log, stderr=log
        )
    try:
        deadline = time.monotonic() + 60
        while (at := re.search(r"running on (http://[0-9.:]+)", (tmp_path / "log").read_text())) is None:
            assert process.poll() is None, (tmp_path / "log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.1)
        with httpx.Client(base_url=at[1], timeout=20) as client:
            client.put("/logs/people").raise_for_status()
            patch = {"content": "TX .\nA <http://e/s> <http://e/p> <http://e/o> .\nTC .\n"}
            client.post("/logs/people/patches", headers={"Content-Type": "application/rdf-patch"}, **patch)
            assert client.get("/logs/people").json()["head"]["version"] == 1
            assert "people" in client.get("/ui", follow_redirects=True).text
            assert client.get("/logs/people/verify").is_success
    finally:
        process.terminate()
        process.wait(20)
    assert process.returncode == 0
