"""Patches, appended over HTTP."""

import gzip
import http.client
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import httpx
import pytest
import zstandard
from sqlalchemy import update

from patchlog.codec.fields import read_varint, varint
from patchlog.codec.options import PatchOptions
from patchlog.engine import PatchEncoder
from patchlog.log.database import Database
from patchlog.log.rows import now_ms
from patchlog.log.tables import LOG
from patchlog.model import Add, Punctuation, TransactionCommit, TransactionStart
from tests.service.conftest import JELLY

OTHER_HEAD = "00000000-0000-4000-8000-000000000000"


def test_appended_patch_is_read_back(log, patches, operations):
    sent = patches.one(id=patches.A)

    answer = log.append(sent)
    read = log.get("/patches/1")

    assert answer.status_code == 201
    assert answer.headers["location"] == f"{log.path}/patches/1"
    assert answer.headers["etag"] == f'"{patches.A}"'
    document = answer.json()
    assert document == {
        "first_version": 1, "version": 1, "id": patches.A, "operations": 3, "bytes": len(read.content),
    }  # fmt: skip
    assert read.headers["content-type"] == "application/x-jelly-rdf-patch"
    assert operations(read.content) == operations(b"".join(sent))
    assert log.get(f"/patches/{patches.A}").content == read.content


@pytest.mark.parametrize("media_type", ["application/rdf-patch", "text/rdf-patch", "text/rdf-patch; charset=utf-8"])
def test_text_is_read_and_written(log, media_type):
    text = (
        b'TX .\nA <http://example.org/s> <http://example.org/p> "01"^^<http://www.w3.org/2001/XMLSchema#int> .\nTC .\n'
    )

    answer = log.append_text(text, headers={"Content-Type": media_type})
    read = log.get("/patches/1", headers={"Accept": "text/rdf-patch"})

    assert answer.status_code == 201
    assert read.content == b"H id <urn:uuid:%b> .\n%b" % (answer.json()["id"].encode(), text)


@pytest.mark.parametrize("media_type", ["", "text/plain", "application/octet-stream", "application/n-quads"])
def test_other_formats_are_refused(log, patches, media_type):
    refused = log.append(patches.one(), headers={"Content-Type": media_type})

    assert refused.status_code == 415
    assert "application/x-jelly-rdf-patch" in refused.json()["detail"]
    assert log.get().json()["head"]["version"] == 0


def test_text_in_another_encoding_is_refused(log):
    text = 'TX .\nA <http://example.org/s> <http://example.org/p> "\u00e9" .\nTC .\n'
    answers = [
        log.append_text(text.encode(charset), headers={"Content-Type": f"text/rdf-patch; charset={charset}"})
        for charset in ("UTF-8", "utf-16", "latin-1")
    ]

    assert [answer.status_code for answer in answers] == [201, 415, 415]


def test_stream_of_several_patches_is_appended_whole(log, patches):
    several = [patches.operations(subject) for subject in "abc"]

    answer = log.append(patches.stream(*several)).json()

    assert (answer["first_version"], answer["version"], answer["operations"]) == (1, 3, 9)
    assert log.get().json()["head"]["id"] == answer["id"]


def test_retry_gets_its_version_again(log, patches):
    first = log.append(patches.one(id=patches.A))
    log.append(patches.one("later"))

    again = log.append(patches.one(id=patches.A))

    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == first.json()
    assert log.get().json()["head"]["version"] == 2


def test_id_of_another_patch_is_refused(log, patches):
    log.append(patches.one("a", id=patches.A))

    refused = log.append(patches.one("b", id=patches.A))

    assert refused.status_code == 409
    assert refused.json()["version"] == 1


def test_writer_may_name_the_head(log, patches):
    head = log.append(patches.one("a")).headers["etag"]

    built_on_it = log.append(patches.one("b"), headers={"If-Match": head})
    too_late = log.append(patches.one("c"), headers={"If-Match": head})

    assert built_on_it.status_code == 201
    assert too_late.status_code == 412
    assert too_late.headers["content-type"] == "application/problem+json"
    assert too_late.json()["head"] == log.get().json()["head"]
    assert too_late.headers["etag"] == built_on_it.headers["etag"]


def test_patch_may_name_the_one_before(log, patches):
    head = log.append(patches.one("a")).json()["id"]

    right = log.append(patches.one("b", id=patches.B, prev=head))
    wrong = log.append(patches.one("c", id=patches.C, prev=head))

    assert (right.status_code, wrong.status_code) == (201, 412)
    assert wrong.json()["head"]["id"] == patches.B


@pytest.mark.parametrize(
    ("headers", "on_empty", "on_other"),
    [
        ({"If-Match": "*"}, 412, 201),
        ({"If-None-Match": "*"}, 201, 412),
        ({"If-Match": f'"{OTHER_HEAD}"'}, 412, 412),
        ({"If-Match": f'"{OTHER_HEAD}", "{{head}}"'}, 412, 201),
        ({"If-Match": "nonsense"}, 400, 400),
        ({"If-Match": '"nonsense"'}, 400, 400),
        ({"If-Match": 'W/"{head}"'}, 400, 400),
        ({"If-Match": ""}, 400, 400),
        ({"If-None-Match": '"{head}"'}, 400, 400),
        ({"If-Match": "*", "If-None-Match": "*"}, 400, 400),
    ],
    ids=str,
)
def test_preconditions(service, new_log, patches, headers, on_empty, on_other):
    empty, other = new_log(service), new_log(service)
    head = other.append(patches.one("a")).json()["id"]
    named = {name: value.replace("{head}", head) for name, value in headers.items()}

    statuses = [log.append(patches.one("b"), headers=named).status_code for log in (empty, other)]

    assert statuses == [on_empty, on_other]


@pytest.mark.parametrize(
    ("text", "line"), [(b"A <x .\n", 1), (b"TX .\n# fine\nA <s> <p> .\n", 3), (b"TX .\nTX .\n", 2), (b"nonsense", 1)]
)
def test_broken_text_says_where(log, text, line):
    refused = log.append_text(text)

    assert refused.status_code == 400
    assert refused.json()["line"] == line
    assert log.get().json()["head"]["version"] == 0


def test_broken_jelly_says_where(log, patches):
    good = b"".join(patches.stream(patches.operations("a"), patches.operations("b")))

    refused = log.append([good, b"\x03\x0a\x01\x7a"])

    assert refused.status_code == 400
    assert isinstance(refused.json()["frame"], int)
    assert log.get().json()["head"]["version"] == 0


@pytest.mark.parametrize("body", [b"", b"# nothing\n"])
def test_upload_without_a_patch_is_refused(log, body):
    assert log.append_text(body).status_code == 400


@pytest.mark.parametrize("declared", [2**31, 2**40, 2**63 - 1])
def test_giant_frame_is_refused_at_once(log, declared):
    length = bytearray()
    while declared > 127:
        length.append(declared & 127 | 128)
        declared >>= 7
    length.append(declared)
    head = f"POST {log.path}/patches HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-jelly-rdf-patch\r\n"

    with log.service.connect() as connection:
        connection.sendall(f"{head}Content-Length: {1 << 30}\r\n\r\n".encode() + length + bytes(1 << 20))
        refused = connection.recv(1000)  # the rest of the body is not waited for

    assert refused.startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_body_that_ends_early_leaves_nothing(log, patches, framing):
    body = b"".join(patches.one())
    request = f"POST {log.path}/patches HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-jelly-rdf-patch\r\n"
    if framing == "length":
        request += f"Content-Length: {len(body) + 10}\r\n\r\n"
        sent = request.encode() + body
    else:
        request += "Transfer-Encoding: chunked\r\n\r\n"
        sent = request.encode() + b"%x\r\n%b\r\n" % (len(body), body)

    with log.service.connect() as connection:
        connection.sendall(sent)
        time.sleep(0.1)
    time.sleep(0.2)

    assert log.get().json()["head"]["version"] == 0
    assert log.append([body]).json()["version"] == 1


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_compressed_uploads_are_read(log, patches, coding):
    compress = {"gzip": gzip.compress, "zstd": zstandard.compress}[coding]
    data = b"".join(patches.stream(*[patches.operations(f"s{i}") for i in range(50)]))
    half = len(data) // 2

    whole = log.append([compress(data)], headers={"Content-Encoding": coding})
    members = log.append([compress(data[:half]), compress(data[half:])], headers={"Content-Encoding": coding})
    cut = log.append([compress(data)[:-5]], headers={"Content-Encoding": coding})
    damaged = log.append([b"nonsense"], headers={"Content-Encoding": coding})

    assert [answer.status_code for answer in (whole, members, cut, damaged)] == [201, 201, 400, 400]
    assert log.get().json()["head"]["version"] == 100


def test_unknown_coding_is_refused(log, patches):
    assert log.append(patches.one(), headers={"Content-Encoding": "br"}).status_code == 415


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_bombs_are_refused_within_bounded_memory(sqlite_log, coding):
    """The text is well formed, so that nothing else stops it."""
    line = b'A <http://example.org/s> <http://example.org/p> "' + b"v" * 60_000 + b'" .\n'
    bomb = {"gzip": gzip.compress, "zstd": zstandard.compress}[coding](line * 3000)
    before = sqlite_log.service.resident_bytes

    refused = sqlite_log.append_text(bomb, headers={"Content-Encoding": coding})

    assert refused.status_code == 413
    assert sqlite_log.service.resident_bytes - before < 100 << 20
    assert sqlite_log.get().json()["head"]["version"] == 0


def test_upload_over_the_limit_is_refused(start, new_log, patches):
    log = new_log(start(max_body_bytes=10_000))
    large = patches.stream(patches.operations(values=[f'"{i:08}"' for i in range(2000)]))

    announced = log.append(large)
    unannounced = log.client.post(
        f"{log.path}/patches", content=iter(large), headers={"Content-Type": "application/x-jelly-rdf-patch"}
    )
    unpacked = log.append([gzip.compress(b"".join(large))], headers={"Content-Encoding": "gzip"})

    assert [answer.status_code for answer in (announced, unannounced, unpacked)] == [413, 413, 413]
    assert log.append(patches.one()).status_code == 201


@pytest.mark.parametrize("is_text", [False, True])
@pytest.mark.parametrize("is_small", [False, True])
def test_what_is_over_the_limits_of_the_codec_is_too_large(log, patches, is_text, is_small):
    """A frame is refused by the length that it says, so it need not come. Nesting is limited in small bodies too."""
    if not is_small:
        data, media_type = varint((16 << 20) + 1) + b"x" * (32 << 10), "application/x-jelly-rdf-patch"
    elif is_text:
        nested = "<< " * 600 + "<a> <b> <c>" + " >> <b> <c>" * 600
        data, media_type = f"A {nested} .\n".encode(), "application/rdf-patch"
    else:
        data, media_type = varint((16 << 20) + 1) + b"x", "application/x-jelly-rdf-patch"

    refused = log.append([data], headers={"Content-Type": media_type})

    assert (refused.status_code, refused.json()["type"]) == (413, "urn:patchlog:problem:limit-exceeded")
    assert log.get().json()["head"]["version"] == 0
    assert log.append(patches.one()).status_code == 201


def unpunctuated(*operations, rows_per_frame=100):
    """A stream as Jelly-JVM's writer ends it: PUNCTUATED, and without the last punctuation."""
    encoder = PatchEncoder(PatchOptions(), rows_per_frame=rows_per_frame)
    for operation in operations:
        encoder.accept(operation)
    whole = encoder.finish()
    size, start = read_varint(whole, 0, len(whole))
    assert start + size == len(whole)
    assert whole.endswith(b"\x0a\x02\x7a\x00")
    return varint(size - 4) + whole[start:-4]


STATEMENT = Add("<http://example.org/s>", "<http://example.org/p>", '"o"')


@pytest.mark.parametrize("coding", [None, "gzip"])
@pytest.mark.parametrize("is_chunked", [False, True])
@pytest.mark.parametrize("many", [1, 2000])
def test_last_punctuation_may_be_missing_where_the_body_is_whole(log, operations, coding, is_chunked, many):
    """So that Jelly-JVM's writer can be posted. What is stored has the punctuation."""
    added = [replace(STATEMENT, object=f'"{i}"') for i in range(many)]
    body = unpunctuated(TransactionStart(), *added, TransactionCommit(), rows_per_frame=1 << 20)
    headers = {"Content-Type": "application/x-jelly-rdf-patch"}
    if coding:
        body, headers["Content-Encoding"] = gzip.compress(body), coding

    answer = log.client.post(
        f"{log.path}/patches", content=iter([body[:40], body[40:]]) if is_chunked else body, headers=headers
    )

    assert answer.status_code == 201
    stored = operations(log.get("/patches/1").content)
    assert stored[-1] == Punctuation()
    assert [one for one in stored if isinstance(one, Add)] == [replace(one, graph="") for one in added]


@pytest.mark.parametrize("framing", ["Content-Length: {more}", "Transfer-Encoding: chunked"])
def test_body_without_its_last_punctuation_that_is_cut_off_leaves_nothing(log, framing):
    body = unpunctuated(STATEMENT)
    framing = framing.format(more=len(body) + 4)
    head = f"POST {log.path}/patches HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-jelly-rdf-patch\r\n"
    with log.service.connect() as connection:
        connection.sendall(f"{head}{framing}\r\n\r\n".encode())
        connection.sendall(b"%x\r\n%b\r\n" % (len(body), body) if "chunked" in framing else body)
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1 << 16)

    assert log.get().json()["head"]["version"] == 0


@pytest.mark.parametrize("many", [1, 2000])
def test_stream_that_ends_inside_a_transaction_or_a_frame_is_refused(log, many):
    added = [replace(STATEMENT, object=f'"{i}"') for i in range(many)]
    body = unpunctuated(TransactionStart(), *added, rows_per_frame=1 << 20)

    inside_transaction = log.append([body])
    inside_frame = log.append([body[:-3]])

    assert [inside_transaction.status_code, inside_frame.status_code] == [400, 400]
    assert inside_transaction.json()["type"] == "urn:patchlog:problem:transaction-order"
    assert log.get().json()["head"]["version"] == 0


def test_slow_body_is_given_up(start, new_log, patches):
    log = new_log(start(body_seconds=0.3))

    with log.service.connect() as connection:
        connection.sendall(
            f"POST {log.path}/patches HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/rdf-patch\r\n"
            "Content-Length: 100\r\n\r\nTX .\n".encode()
        )
        answer = connection.recv(1000)

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert log.append(patches.one()).json()["version"] == 1


def test_many_writers_on_one_head_have_one_winner(service, new_log, patches):
    log = new_log(service)
    head = log.append(patches.one("first")).headers["etag"]
    connections = [http.client.HTTPConnection("127.0.0.1", service.port) for _ in range(16)]
    for i, connection in enumerate(connections):
        connection.request(
            "POST",
            f"{log.path}/patches",
            b"".join(patches.one(f"w{i}")),
            {"Content-Type": "application/x-jelly-rdf-patch", "If-Match": head},
        )

    statuses = sorted(connection.getresponse().status for connection in connections)

    assert statuses == [201] + [412] * 15
    assert log.get().json()["head"]["version"] == 2
    for connection in connections:
        connection.close()


def test_uploads_that_wait_for_another_hold_up_no_other_log_and_no_shutdown(start, patches):
    """They waited in the threads of all uploads, for as long as a large upload to their log took."""
    service = start(append_threads=2, shutdown_seconds=1)
    sent = b"".join(patches.one(values=[f'"{number}{"x" * 100}"' for number in range(300)]))
    for name in ("people", "others"):
        assert service.client.put(f"/logs/{name}").status_code == 201
    database = Database(service.database)
    with database.writing() as connection:
        is_people = LOG.c.name == "people"
        until = {"reserved_by": 10**9, "reserved_until_ms": now_ms() + 60_000}
        connection.execute(update(LOG).where(is_people).values(**until))
    database.close()

    def append(name):
        return httpx.post(f"{service.url}/logs/{name}/patches", content=sent, headers=JELLY, timeout=60)

    with ThreadPoolExecutor(4) as threads:
        waiting = [threads.submit(append, "people") for _ in range(3)]
        time.sleep(1)
        begun = time.monotonic()
        assert append("others").status_code == 201
        assert time.monotonic() - begun < 10
        assert not any(one.done() for one in waiting)
        service.process.terminate()
        assert service.process.wait(20) == 0
        assert {one.result().status_code for one in waiting} == {503}
    assert "Traceback" not in service.log_text
