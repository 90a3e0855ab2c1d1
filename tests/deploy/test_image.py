"""The Dockerfile, without an engine for containers: its rules are read, and its steps are run as scripts.

The steps that compile and install want a compiler, the network and some minutes, so `make release` runs them.
"""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import pytest

from api.settings import Settings

HOUSE = Path(__file__).parents[2]
DOCKERFILE = HOUSE / "deploy" / "Dockerfile"
OF_THE_SYSTEM = ("apt-get ", "useradd ")


@dataclass(frozen=True)
class Step:
    stage: str
    word: str
    text: str


def steps():
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text(), flags=re.MULTILINE)
    stage = ""
    for line in re.sub(r"\s*\\\n\s*", " ", text).splitlines():
        if not line:
            continue
        word, rest = line.split(" ", 1)
        if word == "FROM":
            stage = rest.partition(" AS ")[2]
        yield Step(stage, word, rest)


STEPS = list(steps())


def of(stage, word):
    return [step.text for step in STEPS if (step.stage, step.word) == (stage, word)]


def test_words_are_known():
    known = {
        "ARG",
        "FROM",
        "RUN",
        "COPY",
        "ENV",
        "USER",
        "WORKDIR",
        "VOLUME",
        "EXPOSE",
        "HEALTHCHECK",
        "ENTRYPOINT",
        "CMD",
    }

    assert {step.word for step in STEPS} <= known


def test_stages_are_made_of_images_and_of_stages_before():
    made = set()
    for step in STEPS:
        if step.word == "FROM":
            base, _, name = step.text.partition(" AS ")
            assert base in made or re.search(r":[^:]+$", base), f"{base} has no tag"
            made.add(name)
        if step.word == "COPY" and (source := re.match(r"--from=(\w+)", step.text)):
            assert source[1] in made


def test_image_without_a_name_is_the_service():
    assert [step.text for step in STEPS if step.word == "FROM"][-1] == "service"


@pytest.mark.parametrize("stage", ["service", "spark"])
def test_nothing_runs_as_root(stage):
    assert int(of(stage, "USER")[-1]) > 0


@pytest.mark.parametrize("stage", ["service", "spark"])
def test_commands_are_lists_so_that_signals_arrive(stage):
    assert all(isinstance(json.loads(text), list) for word in ("ENTRYPOINT", "CMD") for text in of(stage, word))


def test_health_is_asked_of_a_route_that_there_is(running_service):
    [check] = of("service", "HEALTHCHECK")
    program = json.loads(check.partition("CMD ")[2])
    port = running_service.rpartition(":")[2]

    done = subprocess.run(
        [sys.executable, *program[1:]], env=os.environ | {"PATCHLOG_PORT": port}, capture_output=True, check=False
    )

    assert program[0] == "python"
    assert (done.returncode, done.stderr) == (0, b"")


def test_health_of_what_is_not_there_is_bad():
    program = json.loads(of("service", "HEALTHCHECK")[0].partition("CMD ")[2])

    done = subprocess.run(
        [sys.executable, *program[1:]], env=os.environ | {"PATCHLOG_PORT": "1"}, capture_output=True, check=False
    )

    assert done.returncode == 1


def test_variables_are_settings():
    known = {f"PATCHLOG_{name.upper()}" for name in Settings.model_fields} | {
        "PATCHLOG_SPARK_JARS",
        "PATCHLOG_REQUIRE_NATIVE",
    }

    named = {name for step in STEPS if step.word == "ENV" for name in re.findall(r"\b(PATCHLOG_\w+)=", step.text)}

    assert named <= known


def test_lists_of_packages_do_not_stay_in_layers():
    installs = [step.text for step in STEPS if step.word == "RUN" and "apt-get install" in step.text]

    assert installs
    for text in installs:
        assert text.startswith("apt-get update &&")
        assert "--no-install-recommends" in text
        assert text.endswith("rm -rf /var/lib/apt/lists/*")


def test_linter_has_no_remarks():
    hadolint = shutil.which("hadolint") or shutil.which("hadolint", path=str(Path(sys.executable).parent))
    if hadolint is None:
        has_wheel = sys.platform == "linux" and platform.machine() == "x86_64"
        (pytest.fail if has_wheel and os.environ.get("CI") else pytest.skip)(
            "hadolint is not on this machine: make setup brings it where its wheels run (Linux on x86-64)"
        )

    done = subprocess.run([hadolint, DOCKERFILE], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("step", [step.text for step in STEPS if step.word == "RUN"])
def test_steps_are_scripts(step):
    subprocess.run(["sh", "-n", "-c", step], check=True)


def context():
    """The files that the build is given: those of the checkout that .dockerignore lets through."""
    rules = [
        line
        for line in (HOUSE / "deploy" / "Dockerfile.dockerignore").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=HOUSE, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("not a git checkout")
    for name in filter(None, listed.stdout.split("\0")):
        is_let_through = True
        for rule in rules:
            pattern = rule.removeprefix("!")
            parents = ["/".join(name.split("/")[: depth + 1]) for depth in range(name.count("/") + 1)]
            if any(fnmatch(parent, pattern) for parent in parents):
                is_let_through = rule.startswith("!")
        if is_let_through and (HOUSE / name).is_file():
            yield name


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """The folder /source of the build."""
    folder = tmp_path_factory.mktemp("image") / "source"
    for name in context():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(HOUSE / name, folder / name)
    return folder


def test_build_is_given_the_sources_and_no_tests(source):
    assert {path.name for path in source.iterdir()} == {
        *("api", "migrations", "patchlog", "spark"),
        *("LICENSE", "README.md", "pyproject.toml", "requirements-dev.lock", "requirements.lock", "setup.py"),
    }


def run_in(source, stage, pattern=""):
    """Run the steps of a stage whose text has a pattern, with the folders of the image beside its sources."""
    prefix = source.parent
    for text in of(stage, "RUN"):
        if text.startswith(OF_THE_SYSTEM) or not re.search(pattern, text):
            continue
        script = re.sub(r"(?<![\w./])/(build|wheels|opt/patchlog)\b", rf"{prefix}/\1", text)
        done = subprocess.run(
            ["sh", "-euc", script],
            cwd=source,
            env=os.environ
            | {
                "PATCHLOG_REQUIRE_NATIVE": "1",
                "PATCHLOG_SPARK_JARS": str(prefix / "jars"),
                "CARGO_TARGET_DIR": str(HOUSE / "build" / "cargo"),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}"
    return prefix


def test_versions_are_those_of_the_lock_file(source):
    (source.parent / "wheels").mkdir()
    prefix = run_in(source, "build", "constraints")
    pinned = re.findall(r"^[a-z0-9-]+==[^ ]+", (HOUSE / "requirements-dev.lock").read_text(), re.MULTILINE)

    constraints = (prefix / "wheels" / "constraints.txt").read_text().splitlines()

    assert [line.partition(" ")[0] for line in constraints] == pinned


@pytest.mark.slow
def test_steps_install_a_service_that_runs(source):
    if not os.environ.get("PATCHLOG_DIST"):
        pytest.skip("it takes minutes and the network: make release")
    run_in(source, "build")
    prefix = run_in(source, "service")

    told = subprocess.run(
        [prefix / "opt" / "patchlog" / "bin" / "patchlog", "version"], capture_output=True, text=True, check=True
    ).stdout

    assert "codec: native\n" in told
