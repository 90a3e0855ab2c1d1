"""The unit starts what an install has, and systemd understands it."""

import configparser
import shutil
import subprocess
from pathlib import Path

import pytest

from api.settings import CONFIG_VARIABLE, Settings

UNIT = Path(__file__).parents[2] / "deploy" / "systemd" / "patchlog.service"


def test_systemd_understands_the_unit(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not on this machine")
    command = tmp_path / "patchlog"
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/patchlog/bin/patchlog", str(command)))

    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


def test_variables_are_settings():
    unit = UNIT.read_text().splitlines()

    named = {line.split("=")[1] for line in unit if line.startswith("Environment=")}

    assert named <= {CONFIG_VARIABLE, *(f"PATCHLOG_{name.upper()}" for name in Settings.model_fields)}


def test_service_has_the_time_to_stop():
    unit = configparser.RawConfigParser(strict=False)
    unit.read(UNIT)

    assert int(unit["Service"]["TimeoutStopSec"]) > Settings.model_fields["shutdown_seconds"].default
