"""Small appends go a shorter way through the service than others: what they are answered must not show it."""

import json
import re
import sqlite3
import threading
import time
from contextlib import closing
from random import Random

import httptools
import httpx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from api.small_appends import small_append_in
from patchlog.model import Punctuation
from tests.waiting import wait_until


@pytest.fixture
def ways(log):
    """Append a body by the short way, and by the long way of a body whose length is not said."""

    def append_both(body, **headers):
        path, media_type = f"{log.path}/patches", headers.pop("content_type", "application/x-jelly-rdf-patch")
        named = {"Content-Type": media_type} | {name.replace("_", "-"): value for name, value in headers.items()}
        return [
            log.client.post(path, content=body, headers=named),
            log.client.post(path, content=iter([body]), headers=named),
        ]

    return append_both


def alike(answer):
    ignored = ("date", "x-request-id", "connection")
    return answer.status_code, answer.text, {n: v for n, v in answer.headers.items() if n not in ignored}


def test_appends_differ_in_nothing_but_their_versions(ways, patches, operations, log):
    short, long = ways(b"".join(patches.one("a")))

    assert (short.status_code, long.status_code) == (201, 201)
    assert (short.json()["version"], long.json()["version"]) == (1, 2)
    assert short.json().keys() == long.json().keys()
    assert short.headers["location"] == f"{log.path}/patches/1"
    assert short.headers["etag"] == f'"{short.json()["id"]}"'
    assert set(short.headers) == set(long.headers)
    assert sum(isinstance(operation, Punctuation) for operation in operations(log.get("/patches").content)) == 2


def test_retries_are_answered_alike(ways, patches, log):
    body = b"".join(patches.one("a", id=patches.A))
    log.append([body])

    short, long = ways(body)

    assert short.status_code == 200
    assert alike(short) == alike(long)


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"", {}),
        (b"\x05abc", {}),
        (b"nonsense", {"content_type": "application/rdf-patch"}),
        (b"TX .\nTX .\n", {"content_type": "application/rdf-patch"}),
        (b"TX .\nTC .\n", {"content_type": "text/html"}),
        (
            b"TX .\nTC .\n",
            {"content_type": "application/rdf-patch", "if_match": '"cccccccc-0000-4000-8000-000000000000"'},
        ),
        (b"TX .\nTC .\n", {"content_type": "application/rdf-patch", "if_match": "no tag"}),
        (b"TX .\nTC .\n", {"content_type": "application/rdf-patch", "if_none_match": "*"}),
    ],
)
def test_refusals_are_alike_and_append_nothing(ways, patches, log, body, headers):
    log.append(patches.one("a", id=patches.A))

    short, long = ways(body, **headers)

    assert 400 <= short.status_code < 500
    assert alike(short) == alike(long)
    assert log.get().json()["head"]["version"] == 1


def test_id_that_is_taken_is_refused_alike(ways, patches, log):
    log.append(patches.one("a", id=patches.A))

    short, long = ways(b"".join(patches.one("b", id=patches.A)))

    assert short.status_code == 409
    assert alike(short) == alike(long)


def test_head_that_is_named_must_be_the_head(ways, patches, log):
    first = log.append(patches.one("a")).json()["id"]

    short, long = ways(b"".join(patches.one("b")), if_match=f'"{first}"')

    assert short.status_code == 201
    assert (long.status_code, long.json()["head"]["id"]) == (412, short.json()["id"])


def test_log_that_was_deleted_and_made_anew_begins_anew(log, patches):
    log.append(patches.one("a"))
    log.delete()

    gone = log.append(patches.one("b"))
    log.client.put(log.path, json={"rdf_star": False})
    anew = log.append(patches.one("c"))

    assert (gone.status_code, anew.status_code, anew.json()["version"]) == (404, 201, 1)


@pytest.fixture
def connection(log):
    with log.service.connect() as connection:
        yield connection


@pytest.fixture
def request_of(log, patches):
    """The bytes of an append."""

    ordinary = b"".join(patches.one("a"))

    def request(*headers, body=ordinary):
        lines = [
            f"POST {log.path}/patches HTTP/1.1",
            "Host: localhost",
            f"Content-Length: {len(body)}",
            "Content-Type: application/x-jelly-rdf-patch",
            *headers,
        ]
        return "\r\n".join([*lines, "", ""]).encode() + body

    return request


def answers_from(connection, count):
    """The status and the location of each answer."""
    received = b""
    while len(found := re.findall(rb"HTTP/1\.1 (\d+) (?s:.+?)\r\nlocation: (\S+)(?s:.+?)}", received)) < count:
        data = connection.recv(1 << 16)
        assert data, received
        received += data
    return [(int(status), location.decode()) for status, location in found]


@pytest.mark.parametrize("pause", [0.1, 1.3])
def test_body_in_two_pieces_is_appended(connection, request_of, log, pause):
    request = request_of()
    connection.sendall(request[:-20])
    time.sleep(pause)
    connection.sendall(request[-20:])

    assert answers_from(connection, 1) == [(201, f"{log.path}/patches/1")]


@pytest.mark.parametrize("size", [1, 700])
def test_body_that_comes_in_crumbs_is_appended(connection, request_of, log, size):
    request = request_of()
    for start in range(0, len(request), size):
        connection.sendall(request[start : start + size])

    assert answers_from(connection, 1) == [(201, f"{log.path}/patches/1")]


@pytest.mark.parametrize("sent_at_once", [1, 2, 5])
def test_requests_that_do_not_wait_are_answered_in_their_order(connection, request_of, log, sent_at_once):
    for _ in range(20 // sent_at_once):
        connection.sendall(request_of() * sent_at_once)

    assert answers_from(connection, 20) == [(201, f"{log.path}/patches/{version}") for version in range(1, 21)]


def test_another_request_behind_an_append_is_answered(connection, request_of, log):
    connection.sendall(request_of())
    connection.sendall(f"GET {log.path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())

    received = b""
    while data := connection.recv(1 << 16):
        received += data
    assert re.findall(rb"HTTP/1\.1 (\d+) ", received) == [b"201", b"200"]


@pytest.mark.parametrize("gap", [0, 0.1])
def test_refused_append_leaves_the_connection_as_it_was(connection, request_of, log, gap):
    requests = [request_of(body=b"\x05abc"), request_of(), request_of('If-Match: "no such"'), request_of()]
    received = b""
    for request in requests:
        connection.sendall(request)
        time.sleep(gap)
    while len(statuses := re.findall(rb"HTTP/1\.1 (\d+) ", received)) < len(requests):
        received += connection.recv(1 << 16)

    assert statuses == [b"400", b"201", b"400", b"201"]
    assert log.get().json()["head"]["version"] == 2


def test_connection_is_closed_when_the_client_asks_for_it(connection, request_of):
    connection.sendall(request_of("Connection: close"))

    received = b""
    while data := connection.recv(1 << 16):
        received += data
    assert received.startswith(b"HTTP/1.1 201 ")
    assert b"\r\nconnection: close\r\n" in received


def test_client_that_went_away_in_the_middle_leaves_nothing(request_of, log):
    for length in (10, 150, -1):
        with log.service.connect() as connection:
            connection.sendall(request_of()[:length])

    assert log.append([request_of().partition(b"\r\n\r\n")[2]]).json()["version"] == 1


def lines_of(log, request_id):
    """What the service has logged of a request."""
    found = wait_until(lambda: [line for line in log.service.log_text.splitlines() if f'"{request_id}"' in line])
    return [json.loads(line) for line in found]


UNSEEN_SECONDS = 0.4
"""In which a service on a busy machine sees what was sent."""


@pytest.mark.parametrize("pause", [0, 1.3])
def test_append_that_is_cut_off_is_told_of(request_of, log, pause):
    name = f"{log.name}-{pause}"
    with log.service.connect() as connection:
        connection.sendall(request_of(f"X-Request-Id: {name}")[:-20])
        time.sleep(pause and pause + UNSEEN_SECONDS)

    [told] = lines_of(log, name)

    assert (told["status"], told["milliseconds"] >= pause * 1000) == (400, True)


@pytest.mark.parametrize("pause", [0.3, 1.3])
def test_time_of_a_slow_body_is_told(connection, request_of, log, pause):
    request = request_of(f"X-Request-Id: {log.name}")
    begun = time.monotonic()
    connection.sendall(request[:-20])
    time.sleep(pause + UNSEEN_SECONDS)
    connection.sendall(request[-20:])
    answers_from(connection, 1)

    [told] = lines_of(log, log.name)

    assert pause <= told["milliseconds"] / 1000 <= time.monotonic() - begun


@pytest.mark.parametrize(
    "headers", [["X-Request-Id: good \t"], ["X-Request-Id: @bad", "X-Request-Id: good"], ["x-request-id: good"]]
)
def test_id_of_a_request_is_taken_alike(connection, request_of, headers):
    for more in [[], ["Content-Encoding: identity"]]:
        connection.sendall(request_of(*headers, *more))
        received = b""
        while not received.endswith(b"}"):
            received += connection.recv(1 << 16)

        assert b"\r\nx-request-id: good\r\n" in received


def test_body_that_is_large_once_it_is_decoded_holds_nobody_up(sqlite_log, patches):
    """Of a prefix of eight thousand bytes, sixteen kilobytes make three megabytes of names that are to be stored."""
    rows = "".join(f"A p:{number} p:p p:o .\n" for number in range(400))
    body = f'TX .\nPA "p" <urn:{"a" * 8000}> .\n{rows}TC .\n'.encode()
    path = sqlite_log.service.database.removeprefix("sqlite:///")
    sqlite_log.append(patches.one("a", id=patches.A))
    answers = []

    def append(**headers):
        named = {"Content-Type": "application/rdf-patch"} | {n.replace("_", "-"): v for n, v in headers.items()}
        answers.append(httpx.post(f"{sqlite_log.service.url}{sqlite_log.path}/patches", content=body, headers=named))

    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("BEGIN IMMEDIATE")
        appending = threading.Thread(target=append)
        appending.start()
        time.sleep(0.3)
        assert sqlite_log.client.get("/healthz").status_code == 200
        assert appending.is_alive(), "it waits for the database, and nobody waits for it"
        database.execute("ROLLBACK")
        appending.join()
        append(if_match=f'"{patches.A}"')
        of_log = "SELECT count(*) FROM stage JOIN log ON log.key = stage.log WHERE log.name = ?"
        [stages] = database.execute(of_log, [sqlite_log.name]).fetchone()
        # Of other tests too: what they cut off is taken away in a moment.
        wait_until(lambda: database.execute("SELECT count(*) FROM stage").fetchone() == (0,))

    assert [answer.status_code for answer in answers] == [201, 412]
    assert stages == 0


def test_appends_are_counted_and_logged_as_all_requests(connection, request_of, log):
    connection.sendall(request_of(f"X-Request-Id: of-{log.name}"))
    answers_from(connection, 1)

    [told] = lines_of(log, f"of-{log.name}")
    assert (told["method"], told["path"], told["status"]) == ("POST", f"{log.path}/patches", 201)
    assert (told["client"], told["bytes"] > 0, told["milliseconds"] > 0) == ("127.0.0.1", True, True)
    metrics = log.client.get("/metrics").text
    assert re.search(r'requests_total{method="POST",route="/logs/{log}/patches",status="201"} [1-9]', metrics)


ORDINARY = [
    "Host: localhost",
    "Accept:*/*",
    'If-Match: "x"',
    "Authorization: \t Bearer a ",
    "connection: Keep-Alive",
    "X-Any:",
]
NAMES = ["Host", "Content-Length", "content-length", "Connection", "If-Match", "Expect", "TE", "X_Y", " Content-Length"]
NAMES += ["Transfer-Encoding", "Content-Encoding", "Upgrade", "Content-Type "]
VALUES = ["5", "05", "+5", "5, 5", "application/rdf-patch", "close", "chunked", "100-continue", "x\rContent-Length: 1"]
ODD = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(NAMES) | st.text("Xé-\t ", max_size=3),
    st.sampled_from([":", ": ", " : ", ":\t", ""]),
    st.sampled_from(VALUES) | st.text("5 \t\r\n\0\x7fé:", max_size=4),
    st.sampled_from(["", "", "\n", "\r\n ", "\r\nTransfer-Encoding: chunked"]),
)
FIRST = "POST /logs/a/patches HTTP/1.1"
ODD_FIRST = ["PUT /logs/a/patches HTTP/1.1", "POST  /logs/a/patches HTTP/1.1", "POST /logs/a%20b/patches HTTP/1.1"]
ODD_FIRST += ["POST //logs/a/patches HTTP/1.1", "POST /logs/a/patches?x HTTP/1.1", "POST /logs/a/patches HTTP/1.0"]


@given(
    st.lists(st.sampled_from(ORDINARY), unique=True),
    st.none() | ODD,
    st.just(FIRST) | st.sampled_from(ODD_FIRST),
    st.sampled_from(["5", "05", "0005", "5 "]),
    st.randoms(use_true_random=False),
)
@example([], None, FIRST, "5", Random(0))
def test_what_is_ordinary_the_parser_reads_alike(ordinary, odd, first, length, random):
    lines = [*ordinary, *([odd] if odd is not None else [])]
    lines += [f"Content-Length: {length}", "Content-Type:application/rdf-patch"]
    random.shuffle(lines)
    head = "\r\n".join([first, *lines, "", ""]).encode("latin-1")
    small = small_append_in(head)
    if small is None:
        return

    seen = Seen()
    parser = httptools.HttpRequestParser(seen)
    parser.feed_data(head[: small.head_size] + b"12345")
    fields = {name.lower(): value.strip() for name, value in seen.headers}
    assert (seen.url, seen.body, seen.is_whole, parser.should_keep_alive()) == (
        small.path.encode(),
        b"12345",
        True,
        True,
    )
    assert len(fields) == len(seen.headers)
    assert not fields.keys() & {b"transfer-encoding", b"expect", b"upgrade", b"content-encoding"}
    assert small.if_match == (fields[b"if-match"].decode() if b"if-match" in fields else None)
    assert list(small.request_ids) == [value for name, value in fields.items() if name == b"x-request-id"]
    assert small.authorization == fields.get(b"authorization", b"").decode()


class Seen:
    """What the parser says of a request."""

    def __init__(self):
        self.url, self.headers, self.body, self.is_whole = b"", [], b"", False

    def on_url(self, url):
        self.url += url

    def on_header(self, name, value):
        self.headers.append((name, value))

    def on_body(self, body):
        self.body += body

    def on_message_complete(self):
        self.is_whole = True
