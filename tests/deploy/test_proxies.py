"""The configurations of proxies in docs/guides/secure.md, run by nginx and Caddy where they are installed."""

import getpass
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from api.keys import create_key
from patchlog.log.database import Database
from patchlog.log.migration import migrate
from tests.service.conftest import ServiceProcess
from tests.waiting import wait_until

HOUSE = Path(__file__).parents[2]
PAGE = (HOUSE / "docs" / "guides" / "secure.md").read_text()
TEXT = {"Content-Type": "application/rdf-patch"}
PATCH = 'TX .\nA <http://example.org/s> <http://example.org/p> "{}" .\nTC .\n'
LINE = b'<http://example.org/s> <http://example.org/p> "%d" .\n'

NGINX = """
daemon off;
pid {folder}/nginx.pid;
{user}
events {{ }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path       {folder}/proxy;
    fastcgi_temp_path     {folder}/fastcgi;
    uwsgi_temp_path       {folder}/uwsgi;
    scgi_temp_path        {folder}/scgi;
{page}
}}
"""
CADDY = """
{{
    admin off
    auto_https disable_redirects
    storage file_system {folder}/caddy
}}
{page}
"""


def block_with(word):
    return next(block for block in re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL) if word in block)


def replaced(text, **parts):
    """Put what is here in the place of what the page has."""
    for old, new in parts.values():
        assert old in text, old
        text = text.replace(old, str(new))
    return text


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificate")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
            *("-keyout", folder / "key.pem", "-out", folder / "certificate.pem"),
        ],
        check=True,
        capture_output=True,
    )
    return folder


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A service behind a proxy: it asks for keys."""
    folder = tmp_path_factory.mktemp("service")
    url = f"sqlite:///{folder}/log.db"
    database = Database(url)
    migrate(database)
    _, key = create_key(database, ["log:*:admin"])
    database.close()
    service = ServiceProcess(folder, url, keys="required", heartbeat_seconds=1)
    service.key = key
    service.client.headers["Authorization"] = f"Bearer {key}"
    service.client.put("/logs/people").raise_for_status()
    yield service
    service.end()


@pytest.fixture(scope="module", params=["nginx", "caddy"])
def proxy(request, guarded, certificate, tmp_path_factory):
    """A client of the service that goes through a proxy, which speaks TLS."""
    program = shutil.which(request.param)
    if program is None:
        pytest.skip(f"{request.param} is not on this machine (Debian: apt-get install {request.param})")
    folder = tmp_path_factory.mktemp(request.param)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    file = folder / "configuration"
    if request.param == "nginx":
        page = replaced(
            block_with("proxy_pass"),
            listen=("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
            name=("server_name patchlog.example.org", "server_name localhost"),
            certificate=("/etc/ssl/patchlog.pem", certificate / "certificate.pem"),
            key=("/etc/ssl/patchlog.key", certificate / "key.pem"),
            service=("127.0.0.1:8080", f"127.0.0.1:{guarded.port}"),
        )
        user = f"user {getpass.getuser()};" if os.geteuid() == 0 else ""
        file.write_text(NGINX.format(folder=folder, user=user, page=page))
        command = [program, "-p", folder, "-c", file, "-e", "stderr"]
    else:
        tls = f"tls {certificate}/certificate.pem {certificate}/key.pem"
        here = f"https://localhost:{port} {{\n    bind 127.0.0.1\n    {tls}"
        page = replaced(
            block_with("reverse_proxy"),
            address=("patchlog.example.org {", here),
            service=("127.0.0.1:8080", f"127.0.0.1:{guarded.port}"),
        )
        file.write_text(CADDY.format(folder=folder, page=page))
        command = [program, "run", "--adapter", "caddyfile", "--config", file]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            list(map(str, command)), cwd=folder, env=os.environ | {"HOME": str(folder)}, stdout=log, stderr=log
        )
    trusted = ssl.create_default_context(cafile=certificate / "certificate.pem")
    client = httpx.Client(
        base_url=f"https://localhost:{port}",
        verify=trusted,
        timeout=60,
        headers={"Authorization": f"Bearer {guarded.key}"},
    )

    def is_up():
        assert process.poll() is None, (folder / "log").read_text()
        try:
            return client.get("/readyz").is_success
        except httpx.TransportError:
            return False

    try:
        wait_until(is_up)
        yield client
    finally:
        client.close()
        process.terminate()
        process.wait(60)


def test_upload_is_passed_on_while_it_is_sent(proxy, guarded):
    guarded.client.put("/logs/uploads")

    def chunks():
        yield LINE % 0
        wait_until(lambda: guarded.client.get("/logs/uploads/snapshots").json()["snapshots"])  # it is being made
        yield LINE % 1

    answer = proxy.put("/logs/uploads/snapshots/0", content=chunks(), headers={"Content-Type": "application/n-quads"})

    assert (answer.status_code, answer.json()["quads"]) == (201, 2)
    guarded.client.request("DELETE", "/logs/uploads", json={"delete": "uploads"})


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_large_upload_arrives_whole_and_comes_back(proxy, framing):
    rows = [b'A <http://example.org/%d> <http://example.org/p> "%b" .\n' % (i, b"x" * 1000) for i in range(16_000)]
    text = b"".join([b"TX .\n", *rows, b"TC .\n"])

    answer = proxy.post("/logs/people/patches", content=text if framing == "length" else iter([text]), headers=TEXT)

    assert (answer.status_code, answer.json()["operations"]) == (201, len(rows) + 2)
    path = answer.headers["Location"]
    assert proxy.get(path, headers={"Accept": TEXT["Content-Type"]}).content.endswith(text)


@pytest.mark.parametrize("accept", ["application/rdf-patch", "text/event-stream"])
def test_live_tail_comes_as_it_is_sent_and_ends_with_its_client(proxy, guarded, accept):
    head = guarded.client.get("/logs/people").json()["head"]["version"]

    with proxy.stream("GET", f"/logs/people/stream?after={head}", headers={"Accept": accept}) as tail:
        pieces = tail.iter_text()
        heartbeat = next(pieces)
        guarded.client.post("/logs/people/patches", content=PATCH.format("live"), headers=TEXT).raise_for_status()
        come = next(piece for piece in pieces if '"live"' in piece)

    assert heartbeat.strip() in ("#", ":")
    assert come
    wait_until(lambda: guarded.open_tails == 0)


def test_service_knows_the_request_of_the_proxy_and_that_it_speaks_tls(proxy, guarded):
    answer = proxy.get("/logs/people")
    login = proxy.post("/ui/login", data={"key": guarded.key}, follow_redirects=False)

    id = answer.headers["X-Request-Id"]
    wait_until(lambda: f'"{id}"' in guarded.log_text)
    assert len(id) >= 32  # those that the service makes are shorter
    assert "Secure" in login.headers["Set-Cookie"].split("; ")


def test_command_trusts_a_certificate_that_it_is_told_of(proxy, guarded, certificate):
    done = subprocess.run(
        [sys.executable, "-m", "patchlog", "log", "show", "people", "--url", str(proxy.base_url)],
        env=os.environ
        | {
            "PYTHONPATH": str(HOUSE),
            "PATCHLOG_TOKEN": guarded.key,
            "SSL_CERT_FILE": str(certificate / "certificate.pem"),
        },
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert "people" in done.stdout
