"""The compose file is whole: what it names is there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from api.settings import Settings

DEPLOY = Path(__file__).parents[2] / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES = COMPOSE["services"]


@pytest.mark.parametrize("name", SERVICES)
def test_what_a_service_waits_for_is_there(name):
    for other, how in SERVICES[name].get("depends_on", {}).items():
        assert how["condition"] in ("service_healthy", "service_completed_successfully")
        image_is_checked = "HEALTHCHECK" in (DEPLOY / "Dockerfile").read_text()
        if how["condition"] == "service_healthy":
            assert "healthcheck" in SERVICES[other] or (SERVICES[other]["image"] == "patchlog" and image_is_checked)


@pytest.mark.parametrize("name", SERVICES)
def test_volumes_are_declared(name):
    assert {volume.partition(":")[0] for volume in SERVICES[name].get("volumes", [])} <= set(COMPOSE["volumes"])


@pytest.mark.parametrize("name", ["migrate", "service"])
def test_variables_are_settings(name):
    assert set(SERVICES[name]["environment"]) <= {f"PATCHLOG_{field.upper()}" for field in Settings.model_fields}


def test_images_are_built_from_stages_that_there_are():
    stages = set(re.findall(r" AS (\w+)$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE))

    for service in SERVICES.values():
        if "build" in service:
            assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
            assert service["build"].get("target", "service") in stages


def test_without_keys_only_this_machine_reaches_the_service():
    assert SERVICES["service"]["environment"]["PATCHLOG_KEYS"] == "off"
    assert all(port.startswith("127.0.0.1:") for port in SERVICES["service"]["ports"])


def test_spark_takes_the_options_that_it_is_given():
    pytest.importorskip("pyspark")
    options = [word for word in SERVICES["spark"]["command"] if word.startswith("--")]

    told = subprocess.run(
        [sys.executable, "-m", "spark", "apply", "--help"],
        env=os.environ | {"PYTHONPATH": str(DEPLOY.parent), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert [option for option in options if f"{option} " not in told] == []


@pytest.mark.parametrize("name", SERVICES)
def test_what_has_finished_is_not_started_again(name):
    """`unless-stopped` starts a container again whatever its exit code was: a job that is done would run for ever."""
    service = SERVICES[name]
    command = service.get("command", [])
    is_job = command[:1] == ["migrate"] or (service.get("image") == "patchlog-spark" and "--continuous" not in command)

    if is_job:
        assert service.get("restart", "no") in ("no", "on-failure")
