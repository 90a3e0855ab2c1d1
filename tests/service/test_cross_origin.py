"""Web pages of others: what their browsers send on their behalf changes nothing, and reads nothing by DNS rebinding."""

import json
import re
import socket

import pytest

from api.keys import create_key
from patchlog.log.database import Database
from tests.waiting import wait_until

PATCH = b"TX .\nA <http://example.org/s> <http://example.org/p> <http://example.org/o> .\nTC .\n"
TEXT = {"Content-Type": "application/rdf-patch"}
EVIL = {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"}
RPC = {"opid": "", "operation": "create_datasource", "arg": {"name": "made-by-evil"}}

# What browsers say of a request by a page of another site. Old ones do not know Sec-Fetch-Site, and where the service
# is reached by plain HTTP new ones do not send it. A sandboxed frame has the origin null; a page of another port of
# this machine is of the same site, and not of the same origin.
FOREIGN = {
    "cross-site": EVIL,
    "without Sec-Fetch-Site": {"Origin": "http://evil.example"},
    "sandboxed": {"Origin": "null"},
    "without Origin": {"Sec-Fetch-Site": "cross-site"},
    "other port": {"Origin": "http://localhost:3000", "Sec-Fetch-Site": "same-site"},
    "other port, old browser": {"Origin": "http://127.0.0.1:3000"},
}


@pytest.fixture(scope="module")
def open_service(sqlite_service, tmp_path_factory):
    """A service on loopback that asks for no keys, with a port for RDF Delta's clients."""
    folder = tmp_path_factory.mktemp("open")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    one = type(sqlite_service)(folder, f"sqlite:///{folder}/log.db", rdf_delta_port=port)
    one.rdf_delta_url = f"http://127.0.0.1:{port}"
    yield one
    one.end()


@pytest.fixture
def three(open_service):
    """A log with three versions."""
    client = open_service.client
    client.put("/logs/people").raise_for_status()
    head = client.get("/logs/people").json()["head"]["version"]
    for _ in range(max(0, 3 - head)):
        client.post("/logs/people/patches", content=PATCH, headers=TEXT).raise_for_status()
    return client


def described(client):
    log = client.get("/logs/people").json()
    return log["head"], log["first_version"], client.get("/logs/people/snapshots").json()


@pytest.mark.parametrize("kind", FOREIGN)
def test_page_of_another_site_makes_no_service_forget_its_history(three, kind):
    """Both of these were answered 200: any page could have a service on one's own machine drop its patches."""
    before = described(three)

    snapshot = three.post("/logs/people/snapshots", headers=FOREIGN[kind])
    truncated = three.post("/logs/people/truncate", headers=FOREIGN[kind])

    assert (snapshot.status_code, truncated.status_code) == (403, 403)
    assert snapshot.headers["content-type"] == "application/problem+json"
    assert described(three) == before


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize(
    ("method", "path", "body", "headers"),
    [
        ("POST", "/logs/people/patches", PATCH, TEXT),
        ("PUT", "/logs/evil", b"", {}),
        ("DELETE", "/logs/people", b'{"delete": "people"}', {"Content-Type": "application/json"}),
        ("POST", "/logs/people/revert", b'{"from": 0}', {"Content-Type": "application/json"}),
        ("PUT", "/logs/people/consumers/evil", b'{"version": 0}', {"Content-Type": "application/json"}),
        ("POST", "/rdf-delta/$/rpc", json.dumps(RPC).encode(), {"Content-Type": "text/plain"}),
        ("POST", "/rdf-delta/people", PATCH, {"Content-Type": "text/plain"}),
        ("POST", "{rdf_delta}/$/rpc", json.dumps(RPC).encode(), {"Content-Type": "text/plain"}),
        ("PATCH", "{rdf_delta}/people", PATCH, {"Content-Type": "text/plain"}),
        ("POST", "/ui/login", b"key=mine", {"Content-Type": "application/x-www-form-urlencoded"}),
        ("POST", "/ui/logout", b"", {}),
    ],
)
def test_no_door_lets_a_page_of_another_site_change_anything(open_service, three, method, path, body, headers, kind):
    before = described(three), three.get("/logs").json()

    path = path.format(rdf_delta=open_service.rdf_delta_url)
    refused = three.request(method, path, content=body, headers=headers | FOREIGN[kind])

    assert (refused.status_code, refused.json()["type"]) == (403, "urn:patchlog:problem:foreign-origin")
    assert (described(three), three.get("/logs").json()) == before


def raw(port, text):
    """Send the bytes of a request and return those of the answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(text)
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += connection.recv(65536)
        return answer


def append_of(host, *more):
    lines = ["POST /logs/people/patches HTTP/1.1", f"Host: {host}", *more, "Content-Type: application/rdf-patch"]
    return "\r\n".join([*lines, f"Content-Length: {len(PATCH)}", "", ""]).encode() + PATCH


@pytest.mark.parametrize(
    ("host", "more", "status"),
    [
        ("localhost:{port}", [], 201),
        ("127.0.0.1", [], 201),
        ("[::1]:{port}", [], 201),
        ("LOCALHOST", ["Origin: http://localhost", "Sec-Fetch-Site: same-origin"], 201),
        ("localhost:{port}", ["Origin: http://localhost:{port}"], 201),
        ("evil.example:{port}", [], 403),
        ("localhost.evil.example", [], 403),
        ("127.0.0.1.evil.example", [], 403),
        ("evil.example", ["Origin: http://evil.example", "Sec-Fetch-Site: same-origin"], 403),
        ("localhost:{port}", ["Origin: http://evil.example"], 403),
        ("localhost:{port}", ["Sec-Fetch-Site: cross-site"], 403),
        ("localhost:{port}", ["Origin: null"], 403),
        ("localhost:{port}", ["Host: evil.example"], 400),
        ("", [], 403),
    ],
)
def test_small_appends_are_checked_on_their_fast_path_too(open_service, three, host, more, status):
    before = three.get("/logs/people").json()["head"]["version"]
    port = open_service.port
    request = append_of(host.format(port=port), *(line.format(port=port) for line in more))

    answers = [raw(port, request), raw(port, request)]  # the second time the head is known

    assert [int(re.match(rb"HTTP/1.1 (\d+)", answer)[1]) for answer in answers] == [status] * 2
    appended = three.get("/logs/people").json()["head"]["version"] - before
    assert appended == (2 if status == 201 else 0)


@pytest.mark.parametrize(
    "path",
    [
        "/logs",
        "/logs/people/patches",
        "/metrics",
        "/ui",
        "/ui/logs/people",
        "/rdf-delta/people/1",
        "{rdf_delta}/people/1",
        "/docs",
        "/nothing",
    ],
)
def test_dns_rebinding_reads_nothing(open_service, three, path):
    """A page of evil.example:8080, of which the name now leads to 127.0.0.1, is of the same origin for its browser."""
    path = path.format(rdf_delta=open_service.rdf_delta_url)
    refused = three.get(path, headers={"Host": "evil.example:8080", "Sec-Fetch-Site": "same-origin"})
    mine = three.get(path, headers={"Host": f"localhost:{open_service.port}"})

    assert (refused.status_code, refused.json()["type"]) == (403, "urn:patchlog:problem:foreign-host")
    assert mine.status_code in (200, 404)


def of_page(mode, destination, site="cross-site"):
    return {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": destination}


@pytest.mark.parametrize("place", ["{main}/rdf-delta/people/{version}", "{rdf_delta}/people/{version}"])
@pytest.mark.parametrize(
    "headers",
    [of_page("no-cors", "image"), of_page("navigate", "document", "same-site"), {"Origin": "http://evil.example"}],
    ids=["image", "link", "old browser"],
)
def test_page_of_another_site_is_no_client_of_rdf_delta(start, headers, place):
    """An image was: its consumer held truncation up for two weeks, and nobody knew whose it was."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    service = start(rdf_delta_port=port)
    client = service.client
    client.put("/logs/people").raise_for_status()
    for _ in range(3):
        client.post("/logs/people/patches", content=PATCH, headers=TEXT).raise_for_status()
    place = place.replace("{main}", service.url).replace("{rdf_delta}", f"http://127.0.0.1:{port}")

    refused = [client.get(place.format(version=version), headers=headers) for version in (1, 2)]
    mine = client.get(place.format(version=3))

    assert [(one.status_code, one.json()["type"]) for one in refused] == [
        (403, "urn:patchlog:problem:foreign-origin")
    ] * 2
    assert mine.status_code == 200

    def consumers():
        return client.get("/logs/people/consumers").json()["consumers"]

    assert [one["version"] for one in wait_until(consumers)] == [2]


@pytest.mark.parametrize("path", ["/logs/people", "/logs/people/verify", "/logs/people/stream", "/ui", "/nothing"])
@pytest.mark.parametrize(
    "headers",
    [
        of_page("no-cors", "image"),
        of_page("no-cors", "script"),
        of_page("navigate", "iframe"),
        of_page("cors", "empty"),
        of_page("cors", "empty", "same-site"),
    ],
    ids=["image", "script", "frame", "fetch", "other port"],
)
def test_page_of_another_site_loads_nothing_and_learns_nothing(three, path, headers):
    """A script's `onload` and `onerror` said whether there is such a log; a frame made the service verify one."""
    refused = three.get(path, headers=headers)

    assert (refused.status_code, refused.json()["type"]) == (403, "urn:patchlog:problem:foreign-origin")


def test_link_on_a_page_of_another_site_leads_here(three):
    for path in ("/ui/logs/people", "/logs/people"):
        assert three.get(path, headers=of_page("navigate", "document")).status_code == 200


def test_own_pages_and_programs_work_as_before(open_service, three):
    own = f"http://localhost:{open_service.port}"
    for headers in (
        {},
        {"Host": f"localhost:{open_service.port}", "Origin": own, "Sec-Fetch-Site": "same-origin"},
        {"Host": f"localhost:{open_service.port}", "Origin": own},
        {"Sec-Fetch-Site": "none"},
    ):
        made = three.put("/logs/people/consumers/mine", json={"version": 1, "force": True}, headers=headers)
        assert made.status_code == 200, headers
        assert three.get("/logs", headers=headers | {"Sec-Fetch-Site": "cross-site"}).status_code == 200


def test_request_without_a_host_is_of_no_browser(open_service):
    assert raw(open_service.port, b"GET /logs HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200")


def test_answers_are_not_for_pages_of_others(three):
    answer = three.get("/logs", headers=EVIL)
    preflight = three.options("/logs/people", headers=EVIL | {"Access-Control-Request-Method": "DELETE"})

    for one in (answer, preflight):
        assert not [name for name in one.headers if name.startswith("access-control-")]


def test_keys_do_not_make_a_page_of_another_site_welcome(start):
    """The browser of an administrator has their key; and a proxy may add one to whatever comes."""
    service = start(keys="required")
    database = Database(service.database)
    _, text = create_key(database, ["log:*:admin"])
    database.close()
    key = {"Authorization": f"Bearer {text}"}

    assert service.client.put("/logs/people", headers=key | EVIL).status_code == 403
    assert service.client.put("/logs/people", headers=key).status_code == 201
    # A name that does not lead here has no keys in any browser, and a proxy may call the service by any name.
    assert service.client.get("/logs", headers=key | {"Host": "patchlog.example.org"}).status_code == 200


def test_service_for_others_takes_any_host_and_no_page_of_another_site(start):
    service = start(host="0.0.0.0", keys="off")
    host = {"Host": "patchlog.example.org"}

    assert service.client.put("/logs/people", headers=host | {"Origin": "https://patchlog.example.org"}).is_success
    assert service.client.put("/logs/people", headers=host | EVIL).status_code == 403
    assert service.client.get("/logs", headers=host).status_code == 200


def test_allowed_hosts_and_origins_are_settings(start):
    service = start(
        host="0.0.0.0",
        keys="off",
        allowed_hosts="patchlog.example.org, *.internal, other.example:8443",
        allowed_origins="https://app.example.org",
    )
    client = service.client

    def status(host, **headers):
        return client.put("/logs/people", headers={"Host": host} | headers).status_code

    for host in ("patchlog.example.org", "PATCHLOG.example.org:80", "a.b.internal", "other.example:8443", "localhost"):
        assert status(host) in (200, 201), host
    for host in ("other.example", "internal", "evil.example", "evil-patchlog.example.org"):
        assert status(host) == 403, host
    # Those who look whether a container lives call it by its address.
    assert client.get("/readyz", headers={"Host": "10.0.0.7:8080"}).status_code == 200
    assert client.get("/logs", headers={"Host": "10.0.0.7:8080"}).status_code == 403

    app = {"Origin": "https://app.example.org"} | of_page("cors", "empty")
    assert client.get("/logs/people", headers={"Host": "localhost"} | app).status_code == 200
    allowed = client.put("/logs/people", headers=app)
    preflight = client.options(
        "/logs/people",
        headers=app | {"Access-Control-Request-Method": "DELETE", "Access-Control-Request-Headers": "authorization"},
    )
    assert (allowed.status_code, preflight.status_code) == (200, 204)
    for answer in (allowed, preflight):
        assert answer.headers["access-control-allow-origin"] == "https://app.example.org"
        assert "Origin" in answer.headers["vary"]
    assert "DELETE" in preflight.headers["access-control-allow-methods"]
    assert preflight.headers["access-control-allow-headers"] == "authorization"
    assert status("localhost", Origin="https://evil.example") == 403


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("allowed_origins", "app.example.org"),
        ("allowed_origins", "https://app.example.org/"),
        ("allowed_hosts", "http://a.example"),
        ("allowed_hosts", "a b"),
    ],
)
def test_setting_that_would_never_match_is_refused(start, setting, value):
    with pytest.raises(AssertionError, match=f"error: {setting}"):
        start(**{setting: value})
