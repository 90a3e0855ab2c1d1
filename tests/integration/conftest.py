"""The real command, in a process of its own."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[2]


@pytest.fixture
def environment() -> dict[str, str]:
    """The environment of a user: patchlog can be imported from any folder."""
    return os.environ | {"PYTHONPATH": str(HOUSE), "NO_COLOR": "1"}


@pytest.fixture
def command(environment: dict[str, str], tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """Run `patchlog` in an empty folder."""

    def command(*arguments: object, **options: object) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-m", "patchlog", *map(str, arguments)],
            env=environment,
            cwd=tmp_path,
            check=False,
            **{"stdin": subprocess.DEVNULL, "capture_output": True, **options},
        )

    return command


@pytest.fixture
def shell(environment: dict[str, str], tmp_path: Path) -> Callable[[str], subprocess.CompletedProcess[bytes]]:
    """Run a line of bash in which `patchlog` is the command; it fails where any part of a pipe fails."""

    def shell(line: str) -> subprocess.CompletedProcess[bytes]:
        script = f"set -o pipefail; patchlog() {{ '{sys.executable}' -m patchlog \"$@\"; }}; {line}"
        return subprocess.run(
            ["bash", "-c", script], env=environment, cwd=tmp_path, check=False, capture_output=True, timeout=300
        )

    return shell
