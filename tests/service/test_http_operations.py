"""What operators rely on: settings, lines of the log, metrics; and that the page about them is complete."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from api.settings import Settings
from patchlog.errors import UsageError
from tests.waiting import wait_until

HOUSE = Path(__file__).parents[2]
PAGE = (HOUSE / "docs" / "operations.md").read_text()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("PATCHLOG_")]:
        monkeypatch.delenv(name)
    return tmp_path


def test_option_goes_before_environment_and_that_before_the_file(folder, monkeypatch):
    (folder / "patchlog.toml").write_text("port = 1\nread_threads = 11\nappend_threads = 12\n")
    monkeypatch.setenv("PATCHLOG_PORT", "2")
    monkeypatch.setenv("PATCHLOG_READ_THREADS", "22")

    settings = Settings(port=3)

    assert (settings.port, settings.read_threads, settings.append_threads) == (3, 22, 12)


def test_file_may_be_named(folder, monkeypatch):
    (folder / "patchlog.toml").write_text("port = 1\n")
    (folder / "other.toml").write_text("port = 2\n")
    monkeypatch.setenv("PATCHLOG_CONFIG", "other.toml")

    assert Settings().port == 2


@pytest.mark.parametrize("content", [None, "port = ", "port = \xff"])
def test_file_that_cannot_be_read_is_refused(folder, monkeypatch, content):
    if content is not None:
        (folder / "bad.toml").write_text(content, encoding="latin-1")
    monkeypatch.setenv("PATCHLOG_CONFIG", "bad.toml")

    with pytest.raises(UsageError, match=r"bad\.toml"):
        Settings()


def serve(folder, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "api", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(HOUSE)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [("prot = 1\n", "prot"), ("port = 99999\n", "port"), ('keys = "maybe"\n', "keys"), ("port =", "cannot be read")],
)
def test_wrong_settings_are_one_line(folder, content, reason):
    (folder / "service.toml").write_text(content)

    refused = serve(folder, "--config", "service.toml")

    assert refused.returncode == 1
    assert re.fullmatch(rf"error: .*{reason}.*\n", refused.stderr)


def test_service_takes_its_settings_from_a_file(start, tmp_path):
    (tmp_path / "service.toml").write_text("max_body_bytes = 10\n")

    service = start(config=tmp_path / "service.toml")

    service.client.put("/logs/a")
    refused = service.client.post(
        "/logs/a/patches", content=b"# more than ten bytes", headers={"Content-Type": "application/rdf-patch"}
    )
    assert refused.status_code == 413


def test_page_names_every_setting_with_its_default():
    rows = re.findall(r"^\| `([a-z_]+)` \| (.*?) \| (.+) \|$", PAGE.partition("## Databases")[0], re.MULTILINE)

    described = {name: default.strip("`") for name, default, _ in rows}
    defaults = {
        name: "" if field.default is None else str(field.default) for name, field in Settings.model_fields.items()
    }
    assert described == defaults


def test_page_lists_exactly_the_metrics_that_there_are(log):
    log.client.put(f"{log.path}/consumers/me", json={"version": 0})
    exposed = log.client.get("/metrics").text

    there = {name for name in re.findall(r"^# HELP (\S+)", exposed, re.MULTILINE) if name.startswith("patchlog_")}
    there = {name for name in there if not name.endswith("_created")}
    described = dict(re.findall(r"^\| `(patchlog_[a-z_]+)` \| (.*?) ?\|", PAGE, re.MULTILINE))
    assert described.keys() == there
    for name, labels in described.items():
        sample = re.search(rf"^{name}(?:_bucket)?(?:{{(.*?)}})? ", exposed, re.MULTILINE)
        assert sample, name
        assert set(re.findall(r'(\w+)="', sample[1] or "")) - {"le"} == set(filter(None, labels.split(", "))), name


def test_lag_of_consumers_is_measured(log, patches):
    log.append(patches.one("a"))
    log.append(patches.one("b"))

    log.client.put(f"{log.path}/consumers/me", json={"version": 1})

    exposed = log.client.get("/metrics").text
    assert re.search(
        rf'^patchlog_consumer_lag_versions{{(?=.*log="{log.name}")(?=.*consumer="me").*}} 1\.0$', exposed, re.MULTILINE
    )
    assert re.search(r"^patchlog_consumer_lag_seconds{.*consumer=\"me\".*} ", exposed, re.MULTILINE)


def lines_of(service, request_id):
    """The lines of the log about a request. They are written soon after its answer."""
    found = wait_until(lambda: [line for line in service.log_text.splitlines() if f'"{request_id}"' in line])
    return [json.loads(line) for line in found]


def test_line_of_a_request_is_as_the_page_has_it(log):
    log.client.get(f"{log.path}?x", headers={"X-Request-Id": f"id-of-{log.name}"})

    shown = json.loads(re.search(r"```json\n(.*?)```", PAGE, re.DOTALL)[1])
    (line,) = lines_of(log.service, f"id-of-{log.name}")
    assert line.keys() == shown.keys()
    assert (line["method"], line["path"], line["status"]) == ("GET", log.path, 200)


def test_health_is_not_logged(service):
    service.client.get("/healthz", headers={"X-Request-Id": "from-the-balancer"})
    service.client.get("/logs", headers={"X-Request-Id": "from-a-person"})

    assert lines_of(service, "from-a-person")
    assert "from-the-balancer" not in service.log_text


def test_log_is_for_people_where_it_goes_to_a_terminal(tmp_path):
    terminal, theirs = os.openpty()
    asked = [sys.executable, "-m", "api", "--port", "0", "--database", f"sqlite:///{tmp_path}/log.db"]
    with subprocess.Popen(asked, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(HOUSE)}, stderr=theirs) as process:
        os.close(theirs)
        with os.fdopen(terminal, encoding="utf-8", errors="replace") as lines:
            pages = next(found[0] for line in lines if (found := re.search(r"http://127.0.0.1:\d+(?=/ui)", line)))
            httpx.get(f"{pages}/logs/%1b%5b31m", timeout=60)
            told = next(line for line in lines if "GET" in line)
            process.terminate()
            process.wait(60)

    assert re.fullmatch(r"\d\d:\d\d:\d\d  GET /logs/\\x1b\[31m 400, [\d.]+ ms\n", told)
