"""The Helm chart says what the service wants."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from api.settings import Settings

HOUSE = Path(__file__).parents[2]
CHART = HOUSE / "deploy" / "helm" / "patchlog"
VARIANTS = {
    "as it is": {},
    "PostgreSQL": {"replicas": 3, "database": {"secret": "postgres"}, "persistence": {"enabled": False}},
    "all": {
        "snapshots": "s3://bucket/folder",
        "settings": {"PATCHLOG_HEARTBEAT_SECONDS": 5, "PATCHLOG_KEYS": "off"},
        "grpc": {"enabled": True},
        "persistence": {"storageClass": "fast"},
        "serviceMonitor": {"enabled": True, "tokenSecret": "metrics"},
    },
}


@pytest.fixture(params=VARIANTS.values(), ids=VARIANTS.keys())
def documents(request, rendered_chart):
    return rendered_chart(**request.param)


@pytest.fixture
def helm():
    program = shutil.which("helm")
    if program is None:
        pytest.skip("helm is not on this machine; the chart is rendered by what tests/deploy/conftest.py knows of it")

    def run(*words):
        return subprocess.run([program, *words], capture_output=True, text=True, check=False)

    return run


def containers(documents):
    pod = documents["Deployment"]["spec"]["template"]["spec"]
    return [*pod["initContainers"], *pod["containers"]]


def test_version_of_the_application_is_that_of_the_package():
    version = tomllib.loads((HOUSE / "pyproject.toml").read_text())["project"]["version"]

    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"] == version


def test_every_variable_is_a_setting(documents):
    known = {f"PATCHLOG_{name.upper()}" for name in Settings.model_fields}

    assert {variable["name"] for one in containers(documents) for variable in one["env"]} <= known


def test_values_of_variables_are_text(documents):
    """Kubernetes refuses numbers there."""
    values = [variable.get("value", "") for one in containers(documents) for variable in one["env"]]

    assert all(isinstance(value, str) for value in values)


def test_containers_are_confined(documents):
    for container in containers(documents):
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_mounts_are_volumes_of_the_pod(documents):
    pod = documents["Deployment"]["spec"]["template"]["spec"]

    mounted = {mount["name"] for one in containers(documents) for mount in one["volumeMounts"]}

    assert mounted == {volume["name"] for volume in pod["volumes"]}


def test_service_leads_to_ports_of_the_container(documents):
    [container] = documents["Deployment"]["spec"]["template"]["spec"]["containers"]

    wanted = {port["targetPort"] for port in documents["Service"]["spec"]["ports"]}

    assert wanted == {port["name"] for port in container["ports"]}


def test_selectors_find_the_pods(documents):
    labels = documents["Deployment"]["spec"]["template"]["metadata"]["labels"].items()

    assert documents["Deployment"]["spec"]["selector"]["matchLabels"].items() <= labels
    assert documents["Service"]["spec"]["selector"].items() <= labels


def test_image_is_that_of_the_dockerfile(documents):
    """Its user, its folder, and its port."""
    dockerfile = (HOUSE / "deploy" / "Dockerfile").read_text()
    pod = documents["Deployment"]["spec"]["template"]["spec"]
    [container] = pod["containers"]

    assert f"USER {pod['securityContext']['runAsUser']}\n" in dockerfile
    assert re.search(r"^VOLUME (.*)$", dockerfile, re.MULTILINE)[1] == container["volumeMounts"][0]["mountPath"]
    assert f"EXPOSE {container['ports'][0]['containerPort']}\n" in dockerfile


def test_names_of_services_do_not_become_settings(documents):
    assert documents["Deployment"]["spec"]["template"]["spec"]["enableServiceLinks"] is False


def test_database_is_that_of_the_secret(rendered_chart):
    documents = rendered_chart(**VARIANTS["PostgreSQL"])

    databases = [variable for one in containers(documents) for variable in one["env"]]

    assert {str(variable["valueFrom"]["secretKeyRef"]) for variable in databases} == {
        "{'name': 'postgres', 'key': 'url'}"
    }
    assert "PersistentVolumeClaim" not in documents


def test_several_replicas_without_postgresql_are_refused(rendered_chart, refused):
    with pytest.raises(refused, match="PostgreSQL"):
        rendered_chart(replicas=2)


@pytest.mark.parametrize("values", VARIANTS.values(), ids=VARIANTS.keys())
def test_helm_renders_the_same(helm, rendered_chart, tmp_path, values):
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(values))

    rendered = helm("template", "demo", str(CHART), "--values", str(tmp_path / "values.yaml"))

    assert rendered.returncode == 0, rendered.stderr
    documents = {one["kind"]: one for one in yaml.safe_load_all(rendered.stdout) if one}
    assert documents == rendered_chart(**values)


def test_helm_has_no_remarks(helm):
    done = helm("lint", "--strict", str(CHART))

    assert done.returncode == 0, done.stdout
    assert "[ERROR]" not in done.stdout
    assert "[WARNING]" not in done.stdout


def test_helm_refuses_several_replicas_without_postgresql(helm):
    done = helm("template", "demo", str(CHART), "--set", "replicas=2")

    assert done.returncode != 0
    assert "PostgreSQL" in done.stderr
