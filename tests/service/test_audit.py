"""The audit log: each change by each door, by whom, from where, with what result; and nothing that is secret."""

import json
import subprocess
import sys
import uuid
from contextlib import suppress

import grpc
import pytest

from api.keys import create_key
from patchlog.log.database import Database
from patchlog.log.migration import migrate
from tests.service.conftest import HOUSE
from tests.service.grpc_calls import RDF, frames_of, grpc_address
from tests.waiting import wait_until

PATCH = b'TX .\nA <http://example.org/s> <http://example.org/p> "confidential" .\nTC .\n'
TEXT = {"Content-Type": "application/rdf-patch"}


class Audited:
    """A service that asks for keys, and its audit log."""

    def __init__(self, service, file, keys):
        self.service = service
        self.file = file
        self.keys = keys
        self.ids = {name: f"key:{text.split('_')[1]}" for name, text in keys.items()}

    def ask(self, name, method, path, **more):
        headers = {"Authorization": f"Bearer {self.keys[name]}"} if name in self.keys else {}
        return self.service.client.request(method, path, **more | {"headers": headers | more.pop("headers", {})})

    def lines(self):
        return [json.loads(line) for line in self.file.read_text().splitlines()]

    def last(self, count=1):
        lines = self.lines()[-count:]
        return lines[0] if count == 1 else lines


@pytest.fixture
def audited(start, tmp_path):
    url = f"sqlite:///{tmp_path}/log.db"
    database = Database(url)
    migrate(database)
    scopes = {"admin": "log:*:admin", "writer": "log:people:append", "reader": "log:people:read"}
    keys = {name: create_key(database, [scope], name=name)[1] for name, scope in scopes.items()}
    database.close()
    file = tmp_path / "audit" / "audit.log"
    return Audited(start(url, keys="required", audit_log=file, grpc_port=0), file, keys)


def test_each_change_says_who_made_it_and_what_became_of_it(audited):
    audited.ask("admin", "PUT", "/logs/people").raise_for_status()
    created = audited.last()
    appended = audited.ask("writer", "POST", "/logs/people/patches", content=PATCH, headers=TEXT)
    appended.raise_for_status()
    short = audited.last()
    audited.ask("writer", "POST", "/logs/people/patches", content=PATCH * 2000, headers=TEXT).raise_for_status()
    long = audited.last()
    refused = audited.ask("reader", "POST", "/logs/people/patches", content=PATCH, headers=TEXT)
    denied = audited.last()
    stale = audited.ask(
        "writer", "POST", "/logs/people/patches", content=PATCH, headers=TEXT | {"If-Match": f'"{uuid.uuid4()}"'}
    )
    conflict = audited.last()
    audited.ask("nobody", "DELETE", "/logs/people", json={"delete": "people"})
    unknown = audited.last()
    audited.ask("admin", "DELETE", "/logs/people", json={"delete": "people"}).raise_for_status()
    deleted = audited.last()

    assert created.items() >= {
        "principal": audited.ids["admin"], "name": "admin", "door": "http", "address": "127.0.0.1",
        "action": "create_log", "log": "people", "outcome": "done", "status": 201,
    }.items()  # fmt: skip
    assert created["time"].endswith("Z")
    assert short.items() >= {
        "principal": audited.ids["writer"], "action": "append_patches", "log": "people",
        "first_version": 1, "version": 1, "outcome": "done", "request": appended.headers["x-request-id"],
    }.items()  # fmt: skip
    assert (long["action"], long["first_version"], long["status"]) == ("append_patches", 2, 201)
    assert (refused.status_code, denied["principal"], denied["outcome"], denied["problem"]) == (
        403, audited.ids["reader"], "refused", "forbidden",
    )  # fmt: skip
    assert (stale.status_code, conflict["status"], conflict["problem"]) == (412, 412, "head-mismatch")
    assert (unknown["principal"], unknown["status"], unknown["outcome"]) == (None, 401, "refused")
    assert (deleted["action"], deleted["outcome"]) == ("delete_log", "done")


def test_what_only_reads_is_not_in_it(audited):
    audited.ask("admin", "PUT", "/logs/people")
    before = audited.lines()

    for path in ("/logs", "/logs/people", "/logs/people/patches", "/ui", "/rdf-delta/$/ping", "/metrics"):
        audited.ask("admin", "GET", path)
    audited.ask("admin", "POST", "/rdf-delta/$/ping")
    for operation in ("list_log_info", "ping"):
        call = {"opid": "", "operation": operation, "arg": {}}
        audited.ask("admin", "POST", "/rdf-delta/$/rpc", json=call)

    assert audited.lines() == before


def test_all_doors_write_to_it(audited):
    audited.ask("admin", "PUT", "/logs/people")
    call = {"opid": "", "operation": "create_datasource", "arg": {"name": "made"}}
    id = audited.ask("admin", "POST", "/rdf-delta/$/rpc", json=call).json()["id"]
    first = b"H id <uuid:%b> .\n" % str(uuid.uuid4()).encode()
    audited.ask("admin", "POST", "/rdf-delta/made", content=first + PATCH).raise_for_status()
    call = {"opid": "", "operation": "remove_datasource", "arg": {"datasource": id}}
    audited.ask("admin", "POST", "/rdf-delta/$/rpc", json=call).raise_for_status()
    audited.ask("nobody", "POST", "/ui/login", data={"key": audited.keys["admin"]})
    with grpc.insecure_channel(grpc_address(audited.service)) as channel:
        publish = channel.stream_unary(f"{RDF}/PublishRdf")
        for name in ("writer", "reader"):
            metadata = [("authorization", f"Bearer {audited.keys[name]}"), ("topic", "people")]
            with suppress(grpc.RpcError):
                publish(iter(frames_of([['"1"']])), metadata=metadata, timeout=60)

    lines = wait_until(lambda: (found := audited.lines()) and len(found) >= 7 and found)
    assert [(line["door"], line["action"], line.get("log"), line["outcome"]) for line in lines] == [
        ("http", "create_log", "people", "done"),
        ("rdf-delta", "create_datasource", "made", "done"),
        ("rdf-delta", "append_patches", "made", "done"),
        ("rdf-delta", "remove_datasource", "made", "done"),
        ("ui", "login", None, "done"),
        ("grpc", "PublishRdf", "people", "done"),
        ("grpc", "PublishRdf", "people", "refused"),
    ]
    assert [lines[2]["version"], lines[5]["version"]] == [1, 1]
    assert {line["address"] for line in lines} == {"127.0.0.1"}
    assert lines[6]["principal"] == audited.ids["reader"]


def test_nothing_secret_is_in_it_or_in_the_log_of_the_service(audited):
    audited.ask("admin", "PUT", "/logs/people", params={"token": "sesame"}, headers={"X-Secret": "sesame"})
    audited.ask("writer", "POST", "/logs/people/patches", content=PATCH, headers=TEXT)
    for key in ("pl_sesame", audited.keys["writer"][:-4] + "AAAA"):
        headers = {"Authorization": f"Bearer {key}"}
        audited.service.client.post("/logs/people/patches?key=sesame", content=PATCH, headers=TEXT | headers)

    for text in (audited.file.read_text(), audited.service.log_text):
        for secret in ("sesame", "confidential", *[key.split("_", 2)[2][:12] for key in audited.keys.values()]):
            assert secret not in text
    assert audited.file.stat().st_mode & 0o777 == 0o600
    assert f'"principal": "{audited.ids["writer"]}"' in audited.service.log_text


def test_strangers_cannot_have_it_rotated_away(start, tmp_path):
    """Some requests without a key, and nobody could say who deleted a log."""
    url = f"sqlite:///{tmp_path}/log.db"
    database = Database(url)
    migrate(database)
    _, key = create_key(database, ["log:*:admin"])
    database.close()
    file = tmp_path / "audit.log"
    service = start(url, keys="required", audit_log=file, audit_log_bytes=4096, audit_log_files=1)
    headers = {"Authorization": f"Bearer {key}"}
    service.client.put("/logs/people", headers=headers).raise_for_status()
    service.client.request("DELETE", "/logs/people", json={"delete": "people"}, headers=headers).raise_for_status()

    for _ in range(60):
        assert service.client.put("/logs/people").status_code == 401
    service.end()

    lines = [json.loads(line) for path in tmp_path.glob("audit.log*") for line in path.read_text().splitlines()]
    assert [line for line in lines if line["action"] == "delete_log" and line["outcome"] == "done"]
    assert 0 < len([line for line in lines if line.get("status") == 401]) < 20
    assert sum(line.get("requests", 1) for line in lines if line["principal"] is None) == 60


def test_nobody_writes_lines_or_commands_into_it(audited):
    """Some readers end lines at U+2028 and U+0085, and U+009B begins a command of terminals."""
    for name in ("%e2%80%a8x", "x%c2%85y", "%c2%9b31m", "%0ax", "%1b[31m"):
        assert audited.ask("reader", "PUT", f"/logs/{name}").status_code == 403
    audited.service.end()

    for text in (audited.file.read_text(), audited.service.log_text):
        assert text.isascii()
        assert all(json.loads(line) for line in text.splitlines())


def test_it_is_rotated_by_size(start, tmp_path):
    file = tmp_path / "audit.log"
    service = start(audit_log=file, audit_log_bytes=2048, audit_log_files=2)

    for number in range(40):
        service.client.put(f"/logs/log-{number}").raise_for_status()

    files = sorted(path.name for path in tmp_path.glob("audit.log*"))
    assert files == ["audit.log", "audit.log.1", "audit.log.2"]
    assert all(path.stat().st_size <= 2048 for path in tmp_path.glob("audit.log*"))
    assert json.loads(file.read_text().splitlines()[-1]).items() >= {"principal": "open", "log": "log-39"}.items()


def test_it_goes_to_the_log_of_the_service_where_keys_are_asked_for(start):
    guarded = start(keys="required")
    opened = start(database="memory:")

    for service in (guarded, opened):
        service.client.put("/logs/people")

    changes = [json.loads(line) for line in guarded.log_text.splitlines() if '"message": "change"' in line]
    assert [(line["action"], line["status"], line["logger"]) for line in changes] == [
        ("PUT /logs/people", 401, "patchlog.audit")
    ]
    assert '"message": "change"' not in opened.log_text


def test_file_that_cannot_be_written_ends_the_start(start, tmp_path):
    with pytest.raises(AssertionError, match=r"error: the audit log .* cannot be opened"):
        start(audit_log=tmp_path)


def test_keys_that_are_made_and_revoked_by_command_are_in_it(tmp_path):
    def key(*words):
        place = ["--database", f"sqlite:///{tmp_path}/log.db"]
        environment = {"PATCHLOG_AUDIT_LOG": str(tmp_path / "audit.log"), "PYTHONPATH": str(HOUSE)}
        done = subprocess.run(
            [sys.executable, "-m", "api", "key", *words, *place],
            env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip
        return done.stdout.strip()

    text = key("create", "--scope", "log:*:read", "--name", "mine")
    key("revoke", text)

    lines = [json.loads(line) for line in (tmp_path / "audit.log").read_text().splitlines()]
    assert [(line["action"], line["key"], line["door"]) for line in lines] == [
        ("create_key", text.split("_")[1], "command"),
        ("revoke_key", text.split("_")[1], "command"),
    ]
    assert lines[0]["scopes"] == "log:*:read"
    assert all(line["principal"].startswith("local:") for line in lines)
    assert text.split("_", 2)[2] not in (tmp_path / "audit.log").read_text()
