"""More than a service can take at once: large patches, clients that do not read, bodies that explode, many tails.

PATCHLOG_SOAK_MEGABYTES says how large the large patch is; `make soak` sends a gigabyte.
"""

import contextlib
import gzip
import http.client
import os
import random
import threading
import time
import zlib

import pytest
import zstandard

from patchlog.codec.options import PatchOptions
from patchlog.engine import Converter, PatchDecoder
from patchlog.log.database import Database
from patchlog.log.migration import migrate
from patchlog.model import Add, Punctuation
from tests.waiting import wait_until

MOST_BYTES = 200 << 20
MEGABYTES = int(os.environ.get("PATCHLOG_SOAK_MEGABYTES", "128"))
JELLY = "application/x-jelly-rdf-patch"
TEXT = "application/rdf-patch"


def large_patch(megabytes):
    """The text of one patch, a megabyte at a time."""
    words = random.Random(4)
    yield b"TX .\n"
    for part in range(megabytes):
        yield b"".join(
            b'A <http://example.org/subject/%d> <http://example.org/p> "%0200x" .\n'
            % (part * 4096 + i, words.getrandbits(800))
            for i in range(4096)
        )
    yield b"TC .\n"


def as_jelly(chunks):
    converter = Converter("rdf-patch", "jelly-patch", patch_options=PatchOptions())
    for chunk in chunks:
        yield converter.feed(chunk)
    yield converter.finish()


@pytest.mark.slow
@pytest.mark.parametrize("media_type", [TEXT, JELLY])
def test_large_patch_goes_up_and_down_in_bounded_memory(service, new_log, media_type, record_property):
    log = new_log(service)
    service.forget_peak()
    chunks = large_patch(MEGABYTES) if media_type == TEXT else as_jelly(large_patch(MEGABYTES))

    answer = log.client.post(f"{log.path}/patches", content=chunks, headers={"Content-Type": media_type}, timeout=600)
    up = service.peak_bytes
    service.forget_peak()
    size = 0
    with log.client.stream("GET", f"{log.path}/patches/1", timeout=600) as read:
        for chunk in read.iter_raw():
            size += len(chunk)
    down = service.peak_bytes
    log.delete(timeout=600)

    record_property("megabytes up and down", (up >> 20, down >> 20))
    assert answer.status_code == 201, answer.text
    assert answer.json()["operations"] == MEGABYTES * 4096 + 2
    assert size == answer.json()["bytes"] > MEGABYTES * 800_000
    assert max(up, down) < MOST_BYTES


def compressed(coding, data):
    return gzip.compress(data, 9) if coding == "gzip" else zstandard.ZstdCompressor(19).compress(data)


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_bodies_that_explode_are_refused_in_little_memory(sqlite_service, sqlite_log, coding):
    line = b'A <http://example.org/s> <http://example.org/p> "%b" .\n' % (b"x" * 1000)
    bomb = compressed(coding, b"TX .\n" + line * 300_000)
    twice = compressed(coding, bomb)
    sqlite_service.forget_peak()
    before = sqlite_service.resident_bytes

    answers = [
        sqlite_log.client.post(
            f"{sqlite_log.path}/patches", content=body, headers={"Content-Type": TEXT, "Content-Encoding": coding}
        )
        for body in (bomb, twice)
    ]

    assert [answer.status_code for answer in answers] == [413, 400]
    assert sqlite_service.peak_bytes - before < 64 << 20
    assert sqlite_log.get().json()["head"]["version"] == 0


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"\xff\xff\xff\xff\x07", 413),  # a frame of 2 GiB is announced
        (b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 413),  # and one of 2^63 bytes
        (b"\x80\x80\x80\x01" + b"\x0a\x00" * (1 << 20), 400),  # a million empty rows
    ],
)
def test_frames_that_would_grow_are_refused_in_little_memory(sqlite_service, sqlite_log, body, status):
    sqlite_service.forget_peak()
    before = sqlite_service.resident_bytes

    answer = sqlite_log.append([body])

    assert answer.status_code == status
    assert sqlite_service.peak_bytes - before < 32 << 20


@pytest.mark.slow
def test_clients_that_do_not_read_hold_nobody_up(start, new_log, patches, record_property):
    """200 tails that read nothing, and one that reads, while 20 MB are appended.

    Who waited for one of the 200 would wait for an hour.
    """
    service = start(send_seconds=3600)
    log = new_log(service)
    values = [f'"{zlib.crc32(b"%d" % i):08x}{"x" * 1000}"' for i in range(100)]
    idle = [service.connect() for _ in range(200)]
    for connection in idle:
        connection.sendall(f"GET {log.path}/stream HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert connection.recv(20)
    before = service.resident_bytes
    delays = []

    with log.client.stream("GET", f"{log.path}/stream") as tail:
        decoder = PatchDecoder()
        pieces = tail.iter_raw()
        for number in range(200):
            begun = time.monotonic()
            assert log.append(patches.one(f"s{number}", values=values)).status_code == 201
            while not any(isinstance(operation, Punctuation) for operation in decoder.feed(next(pieces))):
                pass
            delays.append(time.monotonic() - begun)
    grown = service.resident_bytes - before
    for connection in idle:
        connection.close()

    record_property("milliseconds until a patch was read, of a hundred the slowest", sorted(delays)[-2] * 1000)
    assert grown < 100 << 20


@pytest.mark.slow
def test_client_that_was_dropped_goes_on_where_it_was(start, new_log, patches):
    """What it has is whole patches and the beginning of another; the position is that of the last whole one."""
    service = start(send_seconds=1)
    log = new_log(service)
    for number in range(30):
        log.append(patches.one(f"s{number}", values=[f'"{number}-{"x" * 100_000}-{i}"' for i in range(10)]))
    connection = http.client.HTTPConnection("127.0.0.1", service.port)
    got = []

    connection.request("GET", f"{log.path}/stream")
    answer = connection.getresponse()
    wait_until(lambda: f"{log.path}/stream" in service.log_text)  # which has requests that are over
    with contextlib.suppress(OSError, http.client.HTTPException):
        follow(answer, got, 30)
    connection.close()
    before_the_drop = len(got)
    connection.request("GET", f"{log.path}/stream?after={len(got)}")
    follow(connection.getresponse(), got, 30)
    connection.close()

    assert before_the_drop < 30
    assert got == [f"<http://example.org/s{number}>" for number in range(30)]


def follow(answer, got, count):
    """Add the subject of each whole patch, until there are so many."""
    decoder, subject = PatchDecoder(), None
    while len(got) < count:
        piece = answer.read1(1 << 16)
        assert piece
        for operation in decoder.feed(piece):
            if isinstance(operation, Add):
                subject = operation.subject
            elif isinstance(operation, Punctuation):
                got.append(subject)


@pytest.mark.slow
def test_tails_of_two_services_on_one_database_miss_and_repeat_nothing(
    postgresql_server, start, patches, soak_seconds, record_property
):
    url = postgresql_server.new_database()
    database = Database(url)
    migrate(database)
    database.close()
    services = [start(url, heartbeat_seconds=0.5), start(url, heartbeat_seconds=0.5)]
    services[0].client.put("/logs/people")
    is_enough, is_written = threading.Event(), threading.Event()
    tails, written = [[] for _ in range(8)], [0] * 16

    def write(who):
        connection = http.client.HTTPConnection("127.0.0.1", services[who % 2].port)
        while not is_enough.is_set():
            body = b"".join(patches.one(f"{who}-{written[who]}"))
            connection.request("POST", "/logs/people/patches", body, {"Content-Type": JELLY})
            assert connection.getresponse().read()
            written[who] += 1
        connection.close()

    def follow(who):
        connection = http.client.HTTPConnection("127.0.0.1", services[who % 2].port, timeout=60)
        connection.request("GET", "/logs/people/stream")
        answer, decoder = connection.getresponse(), PatchDecoder()
        while not is_written.is_set() or len(tails[who]) < sum(written):
            decoded = decoder.feed(answer.read1(1 << 16))
            tails[who] += (operation.subject for operation in decoded if isinstance(operation, Add))
        answer.close()
        connection.close()

    writers = [threading.Thread(target=write, args=(who,)) for who in range(len(written))]
    followers = [threading.Thread(target=follow, args=(who,)) for who in range(len(tails))]
    for thread in (*followers, *writers):
        thread.start()
    time.sleep(soak_seconds)
    is_enough.set()
    for thread in writers:
        thread.join(120)
    is_written.set()
    for thread in followers:
        thread.join(120)

    logged = services[1].client.get("/logs/people/patches", timeout=120).content
    subjects = [operation.subject for operation in PatchDecoder().feed(logged) if isinstance(operation, Add)]
    record_property("patches", len(subjects))
    assert len(subjects) == len(set(subjects)) == sum(written)
    assert all(tail == subjects for tail in tails)
