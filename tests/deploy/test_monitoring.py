"""The dashboard and the alerts speak of metrics, labels and routes that the service has."""

import json
import re
from pathlib import Path

import httpx
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

DEPLOY = Path(__file__).parents[2] / "deploy"
DASHBOARD = json.loads((DEPLOY / "grafana" / "patchlog.json").read_text())
ALERTS = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yaml").read_text())
RULES = [rule for group in ALERTS["groups"] for rule in group["rules"]]
METRIC = re.compile(r"\b((?:patchlog|process)_\w+)(?:\{([^}]*(?:\{\w+\}[^}]*)*)\})?")
ADDED_BY_PROMETHEUS = {"job", "instance"}


EXPRESSIONS = [
    *(pytest.param(one["expr"], id=panel["title"]) for panel in DASHBOARD["panels"] for one in panel["targets"]),
    *(pytest.param(rule["expr"], id=rule["alert"]) for rule in RULES),
]


@pytest.fixture(scope="module")
def labels_by_metric(running_service):
    """What a service answers that has a log, a consumer, and an append behind it."""
    with httpx.Client(base_url=running_service) as client:
        client.put("/logs/watched").raise_for_status()
        text = {"Content-Type": "application/rdf-patch"}
        client.post("/logs/watched/patches", content=b"TX .\nTC .\n", headers=text).raise_for_status()
        client.put("/logs/watched/consumers/spark", json={"version": 1}).raise_for_status()
        scraped = client.get("/metrics").text
        client.request("DELETE", "/logs/watched", json={"delete": "watched"})
    labels = {}
    for family in text_string_to_metric_families(scraped):
        for sample in family.samples:
            labels.setdefault(sample.name, set()).update(sample.labels)
    return labels


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_metrics_and_their_labels_are_those_of_the_service(expression, labels_by_metric):
    used = {name: set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers)) for name, matchers in METRIC.findall(expression)}

    assert used
    for name, labels in used.items():
        assert name in labels_by_metric
        assert labels <= labels_by_metric[name] | ADDED_BY_PROMETHEUS


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_groups_are_labels_of_the_metrics(expression, labels_by_metric):
    known = ADDED_BY_PROMETHEUS.union(*(labels_by_metric[name] for name, _ in METRIC.findall(expression)))

    grouped = re.findall(r"(?:by|on) \(([^)]*)\)", expression)

    assert {label.strip() for labels in grouped for label in labels.split(",")} <= known


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_routes_are_those_of_the_service(expression, running_service):
    paths = httpx.get(f"{running_service}/openapi.json").json()["paths"]

    assert set(re.findall(r'route!?="([^"]*)"', expression)) <= set(paths)


def test_legends_and_titles_are_there():
    assert all(panel["title"] and panel["targets"] for panel in DASHBOARD["panels"])
    assert all(target["legendFormat"] for panel in DASHBOARD["panels"] for target in panel["targets"])


def test_variables_of_the_dashboard_are_those_that_it_uses():
    made = {variable["name"] for variable in DASHBOARD["templating"]["list"]}

    used = set(re.findall(r"\$\{?([a-z]+)\b", json.dumps(DASHBOARD)))

    assert used == made


def test_panels_do_not_lie_over_each_other():
    places = [
        (panel["gridPos"]["x"] + x, panel["gridPos"]["y"] + y)
        for panel in DASHBOARD["panels"]
        for x in range(panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["h"])
    ]

    assert len(places) == len(set(places))
    assert all(x < 24 for x, _ in places)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_alert_says_what_and_what_to_do(rule):
    assert rule["labels"]["severity"] in ("critical", "warning")
    assert set(rule["annotations"]) == {"summary", "description"}
