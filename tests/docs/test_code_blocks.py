"""Every code block of the README and of docs/ runs as it is written.

The blocks of a page run from top to bottom in one empty folder:

    python          in one namespace per page; what it prints is free
    console         `$ command` lines, each followed by what it prints; a line `…` stands for any lines,
                    and `…` within a line for anything in it
    sh              a script that has to succeed
    sh checkout     commands that only make sense in a checkout, such as `make test`: what they name has to exist
    sh service      a command that starts the service: it runs until the page ends. The blocks below it reach it at
                    http://localhost:8080, for which the tests take a free port
    sh spark        a script that has to succeed where there is Java, and is left out where there is none
    sh postgresql   a script for which PGHOST and PGUSER name a server of PostgreSQL; without one, the rest of the
                    page is skipped
    anything else   (json, text, yaml) is not run
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from tests.waiting import wait_until

HOUSE = Path(__file__).parents[2]
PAGES = sorted([HOUSE / "README.md", HOUSE / "CONTRIBUTING.md", *HOUSE.glob("docs/**/*.md")])
SERVICE = "http://localhost:8080"
FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>[a-z-]*) *(?P<info>[^\n`]*)\n(?P<code>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A fenced block, and the line of its page on which its code begins."""

    page: str
    line: int
    kind: str
    code: str


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text()
    return [
        Block(
            page=str(page.relative_to(HOUSE)),
            line=text.count("\n", 0, match.start("code")) + 1,
            kind=f"{match['language']} {match['info']}".strip(),
            code=textwrap.dedent(match["code"]),
        )
        for match in FENCE.finditer(text)
    ]


def runs(block: Block) -> bool:
    return block.kind.partition(" ")[0] in ("python", "console", "sh")


@pytest.fixture
def shell_environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a user who has installed this checkout: `patchlog` and `python` are on the PATH."""
    commands = tmp_path_factory.mktemp("bin")
    for name, arguments in {"patchlog": "-m patchlog", "python": ""}.items():
        command = commands / name
        command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {arguments} "$@"\n')
        command.chmod(0o755)
    return os.environ | {
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(HOUSE),
        "NO_COLOR": "1",
        "COLUMNS": "100",
    }


@pytest.fixture(scope="module")
def installed() -> None:
    """The pages speak to people who have installed patchlog: rdflib finds our plugins by what is installed."""
    try:
        version("patchlog")
    except PackageNotFoundError:
        if os.environ.get("CI"):
            raise
        pytest.skip("patchlog is not installed in this environment")


def run_shell(command: str, environment: dict[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"$ {command}\n{done.stdout}"
    return done.stdout


def commands_with_output(session: str) -> list[tuple[str, str]]:
    """Split a console session at its `$ ` lines; a command goes on after a line that ends in a backslash."""
    assert session.startswith("$ "), "a console block begins with a command"
    pairs = []
    for part in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]:
        command = re.match(r"(?:[^\n]*\\\n)*[^\n]*\n", part)
        assert command
        pairs.append((command[0].rstrip("\n"), part[command.end() :]))
    return pairs


def check_console(session: str, environment: dict[str, str], service: str) -> None:
    for command, expected in commands_with_output(session):
        printed = run_shell(command, environment).replace(service, SERVICE)
        if printed and not printed.endswith("\n"):
            printed += "\n"  # a page cannot show that there is none
        lines = (".*" if line == "…\n" else _pattern_of(line) for line in expected.splitlines(keepends=True))
        assert re.fullmatch("".join(lines), printed, re.DOTALL), (
            f"$ {command}\n--- the page says\n{expected}--- it prints\n{printed}"
        )


def _pattern_of(line: str) -> str:
    return r"[^\n]*".join(map(re.escape, line.split("…")))


def check_checkout(code: str) -> None:
    verbs = set(re.findall(r"^([a-z]+):.*## ", (HOUSE / "Makefile").read_text(), re.MULTILINE))
    extras = set(tomllib.loads((HOUSE / "pyproject.toml").read_text())["project"]["optional-dependencies"])
    for line in code.splitlines():
        match shlex.split(line, comments=True):
            case ["make", *named]:
                assert set(named) <= verbs, line
            case ["pip", "install", *arguments]:
                named = ",".join(re.findall(r"\[(.*)\]", arguments[-1])).split(",")
                assert {name for name in named if name} <= extras, line
            case [] | ["git", "clone" | "commit", *_]:
                pass
            case [script, *_] if (HOUSE / script).exists():
                pass
            case _:
                pytest.fail(f"not a command of the checkout: {line}")


@contextmanager
def started(command: str, environment: dict[str, str]) -> Iterator[str]:
    """The service that a page starts: its URL."""
    with Path("service.log").open("wb") as output:
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            env=environment | {"PATCHLOG_PORT": "0"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )

    def url() -> re.Match[str] | None:
        said = Path("service.log").read_text()
        assert process.poll() is None, said
        return re.search(r"running on (http://127\.0\.0\.1:\d+)", said)

    try:
        found = wait_until(url)
        assert found
        yield found[1]
    finally:
        process.terminate()
        process.wait(60)


def run_block(block: Block, namespace: dict[str, object], environment: dict[str, str], service: str) -> None:
    match block.kind:
        case "python":
            # The line breaks put the lines of the page into tracebacks.
            exec(compile("\n" * (block.line - 1) + block.code, block.page, "exec"), namespace)
        case "console":
            check_console(block.code, environment, service)
        case "sh spark" if shutil.which("java") is None and not os.environ.get("CI"):
            pass
        case "sh" | "sh spark":
            run_shell(block.code, environment)
        case "sh checkout":
            check_checkout(block.code)
        case _:
            pytest.fail(f"{block.page}:{block.line}: a block of an unknown kind: {block.kind}")


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    "page", [pytest.param(page, id=str(page.relative_to(HOUSE))) for page in PAGES if any(map(runs, blocks_of(page)))]
)
def test_code_blocks_run_as_written(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    shell_environment: dict[str, str],
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    service = SERVICE

    with ExitStack() as services:
        for block in filter(runs, blocks_of(page)):
            try:
                if block.kind == "sh service":
                    service = services.enter_context(started(block.code.strip(), shell_environment))
                elif block.kind == "sh postgresql":
                    server = request.getfixturevalue("own_postgresql_server")
                    run_shell(block.code, shell_environment | server.environment)
                else:
                    here = replace(block, code=block.code.replace(SERVICE, service))
                    run_block(here, namespace, shell_environment, service)
            except Exception as error:
                error.add_note(f"in the block at {block.page}:{block.line}")
                raise
