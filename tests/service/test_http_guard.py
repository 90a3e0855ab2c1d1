"""Slow and malformed HTTP, over a bare socket."""

import contextlib
import json
import re
import signal
import time

import pytest

from api import http_guard
from api.keys import create_key
from api.settings import Settings
from patchlog.log.database import Database
from tests.waiting import wait_until

BODY = b"TX .\nA <http://example.org/s> <http://example.org/p> <http://example.org/o> .\nTC .\n"


def talk(service, *parts):
    """Send the parts, and return all that comes until the connection is closed."""
    received = b""
    with service.connect() as connection, contextlib.suppress(ConnectionError):
        for part in parts:
            connection.sendall(part)
            time.sleep(0.05)
        while data := connection.recv(1 << 16):
            received += data
        received += b"<closed>"
    return received


def head(*lines):
    return "\r\n".join([*lines, "", ""]).encode()


LENGTH = len(BODY)


def post(log, *headers, length=LENGTH):
    return head(
        f"POST {log.path}/patches HTTP/1.1",
        "Host: localhost",
        "Content-Type: application/rdf-patch",
        *([f"Content-Length: {length}"] if length is not None else []),
        *headers,
    )


GET = head("GET /healthz HTTP/1.1", "Host: localhost")
LAST = head("GET /healthz HTTP/1.1", "Host: localhost", "Connection: close")


def statuses(received):
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d+) ", received)]


@pytest.mark.parametrize("is_split", [False, True])
def test_wish_for_another_protocol_is_passed_over(sqlite_log, is_split):
    """The Java client of RDF Delta sends `Upgrade: h2c` with each body; some servers then read none."""
    request = post(
        sqlite_log, "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABk"
    )
    parts = [request, BODY, LAST] if is_split else [request + BODY + LAST]

    received = talk(sqlite_log.service, *parts)

    assert statuses(received) == [201, 200]
    assert sqlite_log.get().json()["head"]["version"] == 1


def test_both_framing_headers_are_refused(sqlite_log):
    smuggled = head(f"DELETE {sqlite_log.path} HTTP/1.1", "Host: localhost")

    received = talk(
        sqlite_log.service,
        post(sqlite_log, "Transfer-Encoding: chunked", length=5) + b"0\r\n\r\n" + smuggled,
    )

    assert statuses(received) == [400]
    assert received.endswith(b"<closed>")
    assert sqlite_log.get().status_code == 200


@pytest.mark.parametrize(
    "request_bytes",
    [
        head("GET /healthz HTTP/1.1", "Host: localhost", "Content-Length: 1", "Content-Length: 2"),
        b"GET /healthz HTTP/1.1\nHost: localhost\n\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\n\n",
        b"GET /healthz HTTP/1.1\r\nHost : here\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n folded\r\n\r\n",
        b"GET /healthz HTTP/9.9\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03\r\n\r\n",
        b"nonsense\r\n\r\n",
        head("GET /healthz HTTP/1.1", "Host: localhost", "Content-Length: -1"),
        head("GET /healthz HTTP/1.1", "Host: localhost", "Transfer-Encoding: chunked, identity"),
    ],
    ids=["two lengths", "bare LF", "a bare LF", "space", "folded", "version", "TLS", "nonsense", "negative", "coding"],
)
def test_malformed_requests_are_refused(sqlite_service, request_bytes):
    received = talk(sqlite_service, request_bytes + GET)

    assert statuses(received) == [400]
    assert received.endswith(b"<closed>")


@pytest.mark.parametrize("blank", [b"\r\n", b"\r\n\r\n", b"\n\n", b"\r\n" * 100], ids=["one", "two", "LF", "many"])
def test_blank_lines_before_a_request_are_passed_over(sqlite_log, blank):
    """Also where two of them look like the end of a head. Some clients send one behind a body."""
    request = post(sqlite_log) + BODY

    at_once = talk(sqlite_log.service, blank + GET + blank + request + blank + LAST)
    in_parts = talk(sqlite_log.service, blank, blank + GET, blank, request, blank + LAST)

    assert statuses(at_once) == statuses(in_parts) == [200, 201, 200]


@pytest.mark.parametrize("length", [10**18, 2**64 - 1, 10**20, f"{0:030}{LENGTH}"])
def test_lengths_of_many_digits_are_read_as_the_parser_reads_them(sqlite_log, length):
    """A length that only one of guard and parser can read would leave them at odds on where the next request begins."""
    expected = [201, 200] if isinstance(length, str) else [413] if length < 2**64 else [400]

    received = talk(sqlite_log.service, post(sqlite_log, length=length) + BODY + LAST)

    assert statuses(received) == expected
    assert received.endswith(b"<closed>")


def test_what_is_refused_before_the_app_is_a_problem_too(sqlite_service):
    malformed = talk(sqlite_service, b"nonsense\r\n\r\n")
    large = talk(sqlite_service, head("GET /healthz HTTP/1.1", "Host: localhost", f"X-Long: {'x' * 70_000}"))

    for answer, status in ((malformed, 400), (large, 431)):
        answered, _, body = answer.removesuffix(b"<closed>").partition(b"\r\n\r\n")
        assert b"content-type: application/problem+json" in answered
        assert json.loads(body)["status"] == status


@pytest.mark.parametrize("length", ["\r\n 5", "5\r\nContent-Length: 5", "5\x0b"])
def test_body_whose_length_is_written_in_another_way_does_not_hold_up_the_service(sqlite_service, length):
    received = talk(
        sqlite_service, head("POST /healthz HTTP/1.1", "Host: localhost", f"Content-Length: {length}") + b"body." + GET
    )

    assert statuses(received)[0] in (400, 405)
    assert sqlite_service.client.get("/healthz", timeout=20).status_code == 200


@pytest.mark.parametrize("chunk", [b"zz\r\nTX .\r\n", b"5\r\nTX .\nxx", b"-5\r\nTX .\n\r\n"])
def test_malformed_chunks_leave_nothing(sqlite_log, chunk):
    received = talk(sqlite_log.service, post(sqlite_log, "Transfer-Encoding: chunked", length=None) + chunk)

    assert statuses(received) in ([400], [])
    assert sqlite_log.get().json()["head"]["version"] == 0


def test_chunk_that_does_not_begin_is_given_up(start, new_log):
    """An extension of a chunk may be long, and is no part of the body."""
    log = new_log(start(body_seconds=1))

    received = talk(log.service, post(log, "Transfer-Encoding: chunked", length=None) + b"5;" + b"x" * 20_000_000)

    assert statuses(received) in ([408], [])
    assert log.get().json()["head"]["version"] == 0


@pytest.mark.parametrize("framing", ["Content-Length: 1000000", "Transfer-Encoding: chunked"])
def test_body_that_is_cut_off_leaves_nothing_and_is_no_failure_of_the_service(start, new_log, framing):
    log = new_log(start())
    bodies = {
        "POST /patches": ("application/rdf-patch", BODY),
        "PUT /snapshots/0": ("application/n-quads", b"<urn:s> <urn:p> <urn:o> .\n"),
        "POST /revert": ("application/json", b'{"from": 0}'),
    }

    for route, (kind, body) in bodies.items():
        method, _, path = route.partition(" ")
        cut_off = head(f"{method} {log.path}{path} HTTP/1.1", "Host: localhost", f"Content-Type: {kind}", framing)
        with log.service.connect() as connection:
            connection.sendall(cut_off + (b"%x\r\n%b\r\n" % (len(body), body) if "chunked" in framing else body))
        wait_until(lambda path=log.path + path: path in log.service.log_text)

    assert log.get().json()["head"]["version"] == 0
    assert [one["state"] for one in log.get("/snapshots").json()["snapshots"]] == ["failed"]
    assert '"level": "error"' not in log.service.log_text
    assert 'status="500"' not in log.client.get("/metrics").text


def test_large_heads_are_refused(sqlite_service):
    long_header = head("GET /healthz HTTP/1.1", "Host: localhost", f"X-Long: {'x' * 70_000}")
    many_headers = head("GET /healthz HTTP/1.1", *[f"X-{i}: {'y' * 100}" for i in range(1000)])
    long_url = head(f"GET /{'a' * 1_000_000} HTTP/1.1", "Host: localhost")
    large_but_fine = head("GET /healthz HTTP/1.1", "Host: localhost", f"X-Long: {'x' * 60_000}", "Connection: close")

    answers = [statuses(talk(sqlite_service, request)) for request in (long_header, many_headers, large_but_fine)]

    assert answers == [[431], [431], [200]]
    assert statuses(talk(sqlite_service, long_url)) in ([414], [])


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HT", b"GET /healthz HTTP/1.1\r\nHost: he"])
def test_slow_heads_are_closed(start, sent):
    """A byte now and then does not help."""
    service = start(head_seconds=0.5)

    with service.connect() as connection:
        connection.sendall(sent)
        for _ in range(10):
            time.sleep(0.1)
            with contextlib.suppress(ConnectionError):
                connection.sendall(b"x")
        with contextlib.suppress(ConnectionError):
            assert connection.recv(100) == b""


@pytest.mark.parametrize(
    ("path", "media_type", "brings_key"),
    [
        ("/ui/login", "application/x-www-form-urlencoded", False),
        ("/rdf-delta/$/rpc", "application/json", True),
        ("/logs/people", "application/json", True),
    ],
)
def test_documents_that_do_not_come_are_given_up(start, path, media_type, brings_key):
    """The form for a key, which everyone may send, kept its connection for ever."""
    service = start(keys="required", body_seconds=1)
    database = Database(service.database)
    _, key = create_key(database, ["log:*:admin"])
    database.close()
    method = "PUT" if path == "/logs/people" else "POST"
    authorization = [f"Authorization: Bearer {key}"] if brings_key else []
    lines = (
        f"{method} {path} HTTP/1.1",
        "Host: localhost",
        f"Content-Type: {media_type}",
        *authorization,
        "Content-Length: 50",
    )

    received = talk(service, head(*lines), b"k")

    assert (statuses(received), received[-8:]) == ([408], b"<closed>")


@pytest.mark.parametrize("is_split", [False, True])
def test_fields_behind_a_body_are_no_headers(start, is_split):
    """A key there was taken, though no proxy looks there for one to let in or to take away."""
    service = start(keys="required", keep_alive_seconds=1, head_seconds=2)
    database = Database(service.database)
    _, key = create_key(database, ["log:*:admin"])
    database.close()
    authorization = f"Authorization: Bearer {key}"
    service.client.put("/logs/people", headers={"Authorization": f"Bearer {key}"}).raise_for_status()
    lines = "POST /logs/people/patches HTTP/1.1", "Host: localhost", "Content-Type: application/rdf-patch"
    chunks = b"%x\r\n%b\r\n0\r\n" % (LENGTH, BODY)

    def status(headers, trailers):
        parts = head(*lines, "Transfer-Encoding: chunked", *headers), chunks, head(*trailers)
        return statuses(talk(service, *(parts if is_split else [b"".join(parts)])))

    assert status([], [authorization]) == [401]
    assert status([authorization], ["Origin: http://evil.example", "If-None-Match: *", "X-Checksum: 1"]) == [201]


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/docs", 'Cookie: patchlog_key="' + "\\\\" * 30_000 + '"'),
        ("/logs", 'Cookie: other="' + "\\\\" * 30_000 + '"'),
        ("{log}/patches/1", "If-None-Match: x" + " " * 60_000 + "x"),
        ("{log}/patches/1", "If-None-Match: " + '"a" ' * 15_000),
        ("{log}/patches", "If-Match: " + " " * 60_000 + "x"),
        ("{log}/patches", "Accept: " + "a/b;q=" * 10_000),
        ("{log}/patches", "Cookie: " + ";" * 60_000),
        ("{log}/patches", "Range: bytes=" + "0-1," * 15_000),
        ("{log}/snapshots", "Prefer: " + " " * 60_000 + "wait"),
        ("{log}/patches", "Content-Type: application/rdf-patch;" + " " * 60_000 + "x"),
    ],
    ids=lambda value: value[:25],
)
def test_large_fields_are_read_in_one_pass(sqlite_log, path, field):
    """A cookie of 60 KiB, which anybody may send, stopped the service for half a minute."""
    sqlite_log.append_text(BODY).raise_for_status()
    path = path.replace("{log}", sqlite_log.path)
    method = "POST" if "If-Match" in field or "Content-Type" in field else "GET"
    request = head(f"{method} {path} HTTP/1.1", "Host: localhost", "Connection: close", "Content-Length: 0", field)
    before = sqlite_log.service.cpu_seconds

    received = talk(sqlite_log.service, request)

    assert statuses(received)[0] < 500
    assert sqlite_log.service.cpu_seconds - before < 5


def test_strangers_send_no_large_documents(start):
    """To take a form of a megabyte apart stopped the service for half a second."""
    service = start(keys="required")
    form = {"Content-Type": "application/x-www-form-urlencoded"}

    for size in (5_000, 1_000_000):
        assert service.client.post("/ui/login", content=b"a" * size, headers=form).status_code == 413
    assert service.client.post("/ui/login", data={"key": "pl_wrong"}).status_code == 401


def test_answer_before_a_slow_upload_does_not_hurry_it(start, new_log):
    log = new_log(start(head_seconds=0.5))
    body = b"# a comment\n" * 2000 + BODY

    with log.service.connect() as connection:
        connection.sendall(GET + post(log, length=len(body)))
        for begin in range(0, len(body), 2400):
            time.sleep(0.1)
            connection.sendall(body[begin : begin + 2400])
        received = b""
        while b"HTTP/1.1 201 " not in received:
            data = connection.recv(1 << 16)
            assert data, received
            received += data


def test_default_for_slow_heads_is_below_half_a_minute():
    assert Settings().head_seconds <= 30


def test_idle_connections_are_closed(start):
    service = start(keep_alive_seconds=1)

    received = talk(service, GET)

    assert statuses(received) == [200]
    assert received.endswith(b"<closed>")


def test_requests_may_be_pipelined(sqlite_log):
    request = post(sqlite_log) + BODY

    received = talk(sqlite_log.service, GET + request + request + GET + LAST)

    assert statuses(received) == [200, 201, 201, 200, 200]


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_connection_goes_on_after_a_refused_body(sqlite_log, framing):
    refused = head(
        f"POST {sqlite_log.path}/patches HTTP/1.1",
        "Host: localhost",
        "Content-Type: text/plain",
        "Content-Length: 5" if framing == "length" else "Transfer-Encoding: chunked",
    )
    body = b"hello" if framing == "length" else b"5\r\nhello\r\n0\r\n\r\n"

    late = talk(sqlite_log.service, refused, body + GET, LAST)
    at_once = talk(sqlite_log.service, refused + body + LAST)

    assert statuses(late) == [415, 200, 200]
    assert statuses(at_once) == [415, 200]


def test_refused_upload_is_not_read_to_its_end(sqlite_log):
    refused = head(
        f"POST {sqlite_log.path}/patches HTTP/1.1",
        "Host: localhost",
        "Content-Type: text/plain",
        f"Content-Length: {1 << 30}",
    )
    sent = 0

    with sqlite_log.service.connect() as connection:
        connection.sendall(refused)
        answer = connection.recv(10_000)
        with contextlib.suppress(ConnectionError):
            while sent < 1 << 28:
                sent += connection.send(b"x" * 65536)

    assert statuses(answer) == [415]
    assert sent < 1 << 26


def test_expectation_is_answered(sqlite_log):
    with sqlite_log.service.connect() as connection:
        connection.sendall(post(sqlite_log, "Expect: 100-continue", "Connection: close"))
        asked = connection.recv(1000)
        connection.sendall(BODY)
        answer = connection.recv(1000)

    assert [statuses(asked), statuses(answer)] == [[100], [201]]


def test_service_that_stops_ends_open_tails(start, new_log, patches):
    """It does not wait for them: its patience with requests is longer than that of this test."""
    service = start(shutdown_seconds=3600)
    log = new_log(service)
    log.append(patches.one())
    tails = [service.connect() for _ in range(50)]
    for i, tail in enumerate(tails):
        accept = ["*/*", "text/event-stream", "application/rdf-patch"][i % 3]
        tail.sendall(head(f"GET {log.path}/stream?after=1 HTTP/1.1", "Host: localhost", f"Accept: {accept}"))
    waiting = service.connect()
    waiting.sendall(head(f"GET {log.path}/stream?after=1&wait=50 HTTP/1.1", "Host: localhost"))
    for tail in tails:
        assert tail.recv(1000).startswith(b"HTTP/1.1 200 ")
    wait_until(lambda: service.open_tails == len(tails) + 1)

    service.process.send_signal(signal.SIGTERM)

    assert service.process.wait(60) == 0
    for tail in tails:
        assert tail.recv(1000) == b"0\r\n\r\n", "the stream has an end"
        tail.close()
    assert statuses(waiting.recv(1000)) == [204]
    waiting.close()


def test_slow_reader_is_dropped_and_costs_little(start, new_log, patches):
    service = start(send_seconds=1)
    log = new_log(service)
    for i in range(20):
        log.append(patches.one(f"s{i}", values=[f'"{i}-{"x" * 100_000}-{j}"' for j in range(20)]))
    before = service.resident_bytes

    with service.connect() as slow:
        slow.sendall(head(f"GET {log.path}/stream?after=0 HTTP/1.1", "Host: localhost"))
        wait_until(lambda: f"{log.path}/stream" in service.log_text)  # which has requests that are over
        grown = service.resident_bytes - before
        size = 0
        with contextlib.suppress(ConnectionError):
            while data := slow.recv(1 << 16):
                size += len(data)

    assert size < 40_000_000, "it was cut off"
    assert grown < 60 << 20
    assert log.append(patches.one()).status_code == 201


class Counting:
    """An expression that counts the bytes that it has looked at."""

    def __init__(self, expression):
        self._expression = expression
        self.looked_at = 0

    def search(self, data, start=0):
        found = self._expression.search(data, start)
        self.looked_at += (found.end() if found else len(data)) - start
        return found


@pytest.mark.parametrize("end", [b"\r\n\r\n", b"\n\n", b"\n\r\n"])
@pytest.mark.parametrize("piece", [1, 3, 1000])
def test_head_that_comes_in_pieces_is_searched_once(monkeypatch, end, piece):
    """Each piece had the whole head searched again: 60 kB byte by byte were 1.8 GB."""
    counting = Counting(http_guard._HEAD_END)
    monkeypatch.setattr(http_guard, "_HEAD_END", counting)
    connection = object.__new__(http_guard.GuardedHttp)
    connection._settings = Settings()
    connection._head = bytearray()
    connection._searched = 0
    connection._head_timer = 1
    connection.stop_timers = lambda: None
    whole = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * 60_000 + end
    taken = []

    for start in range(0, len(whole), piece):
        connection._head += whole[start : start + piece]
        taken.append(connection._taken_head())

    assert taken[:-1] == [None] * (len(taken) - 1)
    assert taken[-1] == whole
    assert counting.looked_at <= len(whole) + 3 * len(taken)
    connection._head += b"GET / HTTP/1.1" + end
    assert connection._taken_head() == b"GET / HTTP/1.1" + end
