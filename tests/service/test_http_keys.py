"""API keys: every route with every kind of key, and where keys are asked for."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from api.app import create_app
from api.keys import Scope, create_key, find_key, list_keys, revoke_key
from api.settings import Settings
from patchlog.errors import UsageError
from patchlog.log.database import Database
from patchlog.log.memory import MemoryLogStore
from patchlog.log.migration import migrate
from tests.waiting import wait_until

PATCH = b"TX .\nA <http://example.org/s> <http://example.org/p> <http://example.org/o> .\nTC .\n"
TEXT = {"Content-Type": "application/rdf-patch"}
QUAD = b"<http://example.org/s> <http://example.org/p> <http://example.org/o> .\n"
QUADS = {"Content-Type": "application/n-quads"}

# Each route: how it is called, and the right that it needs. None: no key at all. Any: every key, which sees its own.
ROUTES = {
    ("GET", "/healthz"): ({}, None),
    ("GET", "/readyz"): ({}, None),
    ("GET", "/openapi.json"): ({}, None),
    ("GET", "/docs"): ({}, None),
    ("GET", "/metrics"): ({}, "read all"),
    ("GET", "/logs"): ({}, "any"),
    ("GET", "/logs/{log}"): ({}, "read"),
    ("GET", "/logs/{log}/patches"): ({}, "read"),
    ("GET", "/logs/{log}/patches/{patch}"): ({}, "read"),
    ("GET", "/logs/{log}/stream"): ({"params": {"wait": "0"}}, "read"),
    ("GET", "/logs/{log}/diff"): ({"params": {"from": "0"}}, "read"),
    ("GET", "/logs/{log}/history"): ({"params": {"subject": "http://example.org/s"}}, "read"),
    ("GET", "/logs/{log}/verify"): ({}, "read"),
    ("POST", "/logs/{log}/patches"): ({"content": PATCH, "headers": TEXT}, "append"),
    ("GET", "/logs/{log}/consumers"): ({}, "read"),
    ("GET", "/logs/{log}/position"): ({}, "read"),
    ("PUT", "/logs/{log}/consumers/{consumer}"): ({"json": {"version": 0, "force": True}}, "read"),
    ("GET", "/logs/{log}/consumers/{consumer}"): ({}, "read"),
    ("DELETE", "/logs/{log}/consumers/{consumer}"): ({}, "admin"),
    ("GET", "/logs/{log}/lock"): ({}, "read"),
    ("DELETE", "/logs/{log}/lock"): ({}, "admin"),
    ("POST", "/logs/{log}/revert"): ({"json": {"from": 0}}, "append"),
    ("GET", "/jobs"): ({}, "any"),
    ("GET", "/jobs/{job}"): ({}, "read"),
    ("DELETE", "/jobs/{job}"): ({}, "admin"),
    ("GET", "/logs/{log}/snapshots"): ({}, "read"),
    ("POST", "/logs/{log}/snapshots"): ({}, "append"),
    ("GET", "/logs/{log}/snapshots/{snapshot}"): ({}, "read"),
    ("GET", "/logs/{log}/snapshots/{snapshot}/verify"): ({}, "read"),
    ("PUT", "/logs/{log}/snapshots/{snapshot}"): ({"content": QUAD, "headers": QUADS}, "admin"),
    ("DELETE", "/logs/{log}/snapshots/{snapshot}"): ({"json": {"delete": "VERSION"}}, "admin"),
    ("PUT", "/logs/{log}"): ({}, "admin"),
    ("POST", "/logs/{log}/truncate"): ({"json": {"before": 1}}, "admin"),
    ("DELETE", "/logs/{log}"): ({"json": {"delete": "people"}}, "admin"),
}

# Each kind of key: its scopes, and what it is allowed on the log `people`.
KINDS = {
    "none": ([], set()),
    "nonsense": ([], set()),
    "unknown": ([], set()),
    "wrong secret": (["log:*:admin"], set()),
    "expired": (["log:*:admin"], set()),
    "revoked": (["log:*:admin"], set()),
    "other log": (["log:other:admin"], {"any"}),
    "other prefix": (["log:pet*:admin"], {"any"}),
    "read": (["log:people:read"], {"any", "read"}),
    "read by prefix": (["log:peo*:read"], {"any", "read"}),
    "read all": (["log:*:read"], {"any", "read", "read all"}),
    "append": (["log:people:append"], {"any", "read", "append"}),
    "admin": (["log:people:admin"], {"any", "read", "append", "admin"}),
    "two scopes": (["log:other:admin", "log:people:append"], {"any", "read", "append"}),
    "admin of all": (["log:*:admin"], {"any", "read", "append", "admin", "read all"}),
}
NOT_A_KEY = {"none", "nonsense", "unknown", "wrong secret", "expired", "revoked"}


@pytest.fixture(scope="module")
def guarded(service, tmp_path_factory):
    """A service that asks for keys, on the database of another that does not."""
    folder = tmp_path_factory.mktemp("guarded")
    guarded = type(service)(folder, service.database, keys="required")
    yield guarded
    guarded.end()


@pytest.fixture(scope="module")
def keys(service):
    database = Database(service.database)
    texts = {}
    for kind, (scopes, _) in KINDS.items():
        if scopes:
            key, texts[kind] = create_key(
                database, scopes, name=kind, expires_seconds=-1 if kind == "expired" else 3600
            )
            if kind == "revoked":
                revoke_key(database, key.id)
    texts["wrong secret"] = texts["wrong secret"][:-4] + "AAAA"
    texts |= {"nonsense": "nonsense", "unknown": f"pl_{'0' * 16}_{'a' * 43}"}
    database.close()
    return texts


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_every_route_with_every_kind_of_key(service, guarded, keys, method, path, kind):
    call, right = ROUTES[method, path]
    service.client.put("/logs/people")
    version = service.client.post("/logs/people/patches", content=PATCH, headers=TEXT).json()["version"]
    service.client.put("/logs/people/consumers/me", json={"version": 0, "force": True})
    service.client.post("/logs/people/snapshots", params={"wait": "60"}, json={"version": version})
    headers = dict(call.get("headers", {}))
    if kind != "none":
        headers["Authorization"] = f"Bearer {keys[kind]}"

    is_hidden = "{job}" in path  # and not only forbidden
    path = path.format(log="people", patch=version, consumer="me", snapshot=version, job=a_job(guarded, keys))
    if call.get("json") == {"delete": "VERSION"}:
        call = {"json": {"delete": version}}
    answer = guarded.client.request(method, path, **{**call, "headers": headers})

    if right is None or right in KINDS[kind][1]:
        assert answer.status_code < 300, answer.text
    elif kind in NOT_A_KEY:
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    else:
        assert answer.status_code == (404 if is_hidden and "read" not in KINDS[kind][1] else 403)
    if right is not None and right not in KINDS[kind][1]:
        assert answer.headers["content-type"] == "application/problem+json"
        assert service.client.get("/logs/people").json()["head"]["version"] == version


def a_job(guarded, keys):
    """The id of a job on the log `people`."""
    headers = {"Authorization": f"Bearer {keys['admin of all']}"}
    if not (jobs := guarded.client.get("/jobs", headers=headers).json()["jobs"]):
        assert guarded.client.get("/logs/people/verify", headers=headers).status_code == 200
        return a_job(guarded, keys)
    return next(job["id"] for job in jobs if job["log"] == "people")


def test_table_names_every_route():
    """A route that is added has to be added here."""
    app = create_app(Settings(), MemoryLogStore())
    schema = app.openapi()["paths"]
    routes = {(method.upper(), path) for path, operations in schema.items() for method in operations}

    assert routes | {("GET", "/openapi.json"), ("GET", "/docs")} == set(ROUTES)


def test_list_shows_the_logs_of_the_key(service, guarded, keys):
    for name in ("people", "other", "pets", "things"):
        service.client.put(f"/logs/{name}")

    def listed(kind):
        answer = guarded.client.get("/logs?limit=1000", headers={"Authorization": f"Bearer {keys[kind]}"})
        return [log["name"] for log in answer.json()["logs"]]

    assert listed("read") == ["people"]
    assert listed("other prefix") == ["pets"]
    assert listed("two scopes") == ["other", "people"]
    assert {"people", "other", "pets", "things"} <= set(listed("read all"))


def test_revoked_key_is_refused_soon(service, guarded):
    database = Database(service.database)
    key, text = create_key(database, ["log:*:read"])
    headers = {"Authorization": f"Bearer {text}"}
    service.client.put("/logs/people")
    assert guarded.client.get("/logs", headers=headers).status_code == 200

    revoke_key(database, key.id)

    wait_until(lambda: guarded.client.get("/logs", headers=headers).status_code == 401)
    database.close()


@pytest.fixture
def database(tmp_path):
    database = Database(f"sqlite:///{tmp_path}/keys.db")
    migrate(database)
    yield database
    database.close()


def test_database_holds_no_secret(database, tmp_path):
    key, text = create_key(database, ["log:*:read"], name="mine")

    assert re.fullmatch(r"pl_[0-9a-f]{16}_[A-Za-z0-9_-]{43}", text)
    database.close()
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("keys.db*"))
    assert text.split("_", 2)[2].encode() not in stored
    assert key.is_opened_by(text)
    assert not key.is_opened_by(text[:-1] + ("A" if text[-1] != "A" else "B"))


def test_keys_are_listed_and_revoked(database):
    first, _ = create_key(database, ["log:a:read", "log:b*:append"], name="first")
    second, _ = create_key(database, ["log:*:admin"], expires_seconds=60)

    assert list_keys(database) == [first, second]
    assert find_key(database, first.id) == first
    revoke_key(database, first.id)
    assert list_keys(database) == [second]
    with pytest.raises(UsageError, match="no key"):
        revoke_key(database, first.id)


@pytest.mark.parametrize(
    "scope",
    ["", "read", "log:a", "log:a:write", "log::read", "log:a b:read", "log:*a:read", "logs:a:read", "log:a:read "],
)
def test_scopes_that_are_none_are_refused(database, scope):
    with pytest.raises(UsageError, match="not a scope"):
        create_key(database, [scope])
    with pytest.raises(UsageError, match="without a scope"):
        create_key(database, [])


@pytest.mark.parametrize(
    ("scope", "right", "log", "allowed"),
    [
        ("log:a:read", "read", "a", True),
        ("log:a:read", "read", "ab", False),
        ("log:a:read", "append", "a", False),
        ("log:a*:append", "read", "ab", True),
        ("log:a*:append", "append", "b", False),
        ("log:*:admin", "admin", "*", True),
        ("log:a*:admin", "read", "*", False),
    ],
)
def test_scope_allows(scope, right, log, allowed):
    assert Scope.parse(scope).allows(right, log) is allowed
    assert str(Scope.parse(scope)) == scope


def run(folder, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "api", *arguments], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture
def checkout_on_path(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))


@pytest.mark.usefixtures("checkout_on_path")
@pytest.mark.parametrize("database", ["sqlite:///empty.db", "memory:"])
def test_service_does_not_listen_to_strangers_without_keys(tmp_path, database):
    refused = run(tmp_path, "--host", "0.0.0.0", "--port", "0", "--database", database)

    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1].startswith("error: ")
    assert "PATCHLOG_KEYS=off" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_service_listens_to_strangers_where_it_is_told_to(start):
    service = start(host="0.0.0.0", keys="off")

    assert service.client.get("/logs").status_code == 200


@pytest.mark.usefixtures("checkout_on_path")
def test_service_listens_to_strangers_where_there_are_keys(start, tmp_path):
    made = run(tmp_path, "key", "create", "--scope", "log:*:read", "--days", "1", "--database", "sqlite:///log.db")
    service = start(host="0.0.0.0")

    assert service.client.get("/logs").status_code == 401
    assert service.client.get("/logs", headers={"Authorization": f"Bearer {made.stdout.strip()}"}).status_code == 200


@pytest.mark.usefixtures("checkout_on_path")
@pytest.mark.parametrize("days", ["0", "-1", "nan", "inf"])
def test_key_that_would_be_dead_at_once_is_refused(tmp_path, days):
    refused = run(tmp_path, "key", "create", "--scope", "log:a:read", f"--days={days}")

    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("error: a key is good for some days")
    assert list(tmp_path.iterdir()) == []


def test_key_is_revoked_by_all_of_it_and_an_error_does_not_repeat_it(database):
    _, text = create_key(database, ["log:a:read"])

    with pytest.raises(UsageError) as caught:
        revoke_key(database, f"{text}x")
    assert text.split("_", 2)[2][:10] not in str(caught.value)
    revoke_key(database, text)
    assert list_keys(database) == []


@pytest.mark.usefixtures("checkout_on_path")
def test_slip_in_the_name_of_a_database_makes_none(tmp_path):
    for words in (["list"], ["revoke", "0" * 16]):
        refused = run(tmp_path, "key", *words, "--database", "sqlite:///slip.db")
        assert (refused.returncode, refused.stderr.partition(" slip.db")[0]) == (1, "error: there is no database")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("checkout_on_path")
def test_setting_that_is_none_is_named(tmp_path):
    (tmp_path / "patchlog.toml").write_text("prot = 8080\n")

    assert run(tmp_path).stderr.startswith("error: prot is no setting")


@pytest.mark.usefixtures("checkout_on_path")
def test_keys_are_made_listed_and_revoked_by_command(tmp_path):
    text = run(tmp_path, "key", "create", "--scope", "log:a:read", "--name", "mine").stdout.strip()
    key_id = text.split("_")[1]

    listed = run(tmp_path, "key", "list")
    revoked = run(tmp_path, "key", "revoke", key_id)
    again = run(tmp_path, "key", "revoke", key_id)

    assert listed.stdout.split("\t")[0] == key_id
    assert text not in listed.stdout
    assert (revoked.returncode, again.returncode) == (0, 1)
    assert again.stderr.startswith("error: ")
    assert run(tmp_path, "key", "create", "--scope", "nonsense").returncode == 1
