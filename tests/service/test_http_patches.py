"""Patches, read over HTTP."""

import gzip
import hashlib
import random

import pytest
import zstandard

from patchlog.model import Add, Header, Punctuation

OTHER_HEAD = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def five(log, patches):
    for i in range(5):
        log.append(patches.one(f"s{i}"))
    return log


def subjects(decoded):
    return [operation.subject[-3:-1] for operation in decoded if isinstance(operation, Add)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", "s0 s1 s2 s3 s4"),
        ("?after=2", "s2 s3 s4"),
        ("?after=1&until=3", "s1 s2"),
        ("?limit=2", "s0 s1"),
        ("?after=5", ""),
        ("?after=99", ""),
        ("?limit=0", ""),
        ("?after=4&until=2", ""),
    ],
)
def test_range_is_one_stream(five, operations, query, expected):
    read = five.get(f"/patches{query}")

    assert read.status_code == 200
    assert subjects(operations(read.content) if read.content else []) == expected.split()


def test_range_is_the_patches_laid_end_to_end(five):
    one_by_one = b"".join(five.get(f"/patches/{version}").content for version in range(1, 6))

    assert five.get("/patches").content == one_by_one
    assert hashlib.sha256(five.get("/patches/3").content).hexdigest() in five.get("/patches/3").headers["etag"]


def test_range_as_text(five):
    text = five.get("/patches?format=rdf-patch").content

    again = five.append_text(text)

    assert text.count(b"\nTC .\n") == 5
    assert again.status_code == 200, "it is a retry of all of them"


def test_range_as_descriptions_a_page_at_a_time(five):
    found = []
    path = f"{five.path}/patches?limit=2"
    while path:
        page = five.client.get(path, headers={"Accept": "application/json"})
        found += page.json()["patches"]
        path = page.json()["next"]

    assert [patch["version"] for patch in found] == [1, 2, 3, 4, 5]
    assert [patch["id"] for patch in found[:-1]] == [patch["prev"] for patch in found[1:]]
    assert found[-1]["chain_hash"] == five.get().json()["head"]["hash"]
    assert found[2] == five.get("/patches/3?format=json").json()


def test_link_leads_through_a_range(five):
    data = b""
    path = f"{five.path}/patches?limit=2"
    while path:
        page = five.client.get(path)
        data += page.content
        path = page.links.get("next", {}).get("url")

    assert data == five.get("/patches").content


@pytest.mark.parametrize("accept", ["application/x-jelly-rdf-patch", "application/json"])
def test_page_of_nothing_leads_nowhere(five, accept):
    """Who follows its link would ask for it for ever."""
    page = five.get("/patches?limit=0", headers={"Accept": accept})

    assert (page.status_code, page.links) == (200, {})


@pytest.mark.parametrize(
    "query",
    ["after=-1", "after=x", "limit=-1", f"after={1 << 63}", "until=-1", "stream-type=round", "stream-type=flat"],
)
def test_ranges_that_are_none_are_refused(five, query):
    assert five.get(f"/patches?{query}").status_code == 400


@pytest.mark.parametrize("patch", ["0", "6", str(10**18 - 1), OTHER_HEAD])
def test_patch_that_is_not_there_is_not_found(five, patch):
    assert five.get(f"/patches/{patch}").status_code == 404


@pytest.mark.parametrize("patch", ["x", "-1", "1.0", "%00", "%C2%B2", "9" * 100])
def test_what_is_no_patch_is_refused(five, patch):
    assert five.get(f"/patches/{patch}").status_code in (400, 404)


@pytest.mark.parametrize(
    ("route", "stream_type", "accept"),
    [
        ("/stream?wait=1", "frame", "application/x-jelly-rdf-patch"),
        ("/stream", "flat", "application/x-jelly-rdf-patch"),
        ("/stream?wait=1", "punctuated", "application/rdf-patch"),
        ("/stream", "punctuated", "text/event-stream"),
        ("/patches?after=1", "frame", "application/rdf-patch"),
        ("/patches?after=1", "frame", "application/json"),
        ("/patches/2", "flat", "application/rdf-patch"),
        ("/patches/2", "flat", "application/json"),
        ("/diff?from=0", "frame", "application/rdf-patch"),
    ],
)
def test_stream_type_that_an_answer_cannot_have_is_refused(five, route, stream_type, accept):
    joint = "&" if "?" in route else "?"

    refused = five.get(f"{route}{joint}stream-type={stream_type}", headers={"Accept": accept})

    assert refused.status_code == 400
    assert "stream-type" in refused.json()["detail"]


def test_live_stream_may_be_asked_to_be_punctuated(five):
    as_asked = five.get("/stream?wait=1&stream-type=punctuated")

    assert as_asked.status_code == 200
    assert as_asked.content == five.get("/stream?wait=1").content


def test_frames_hold_a_patch_each(five, operations):
    data = five.get("/patches?stream-type=frame").content

    decoded = operations(data)

    assert subjects(decoded) == ["s0", "s1", "s2", "s3", "s4"]
    assert sum(isinstance(operation, Punctuation) for operation in decoded) == 5


def test_one_patch_may_be_flat(five, operations):
    decoded = operations(five.get("/patches/2?stream-type=flat").content)

    assert subjects(decoded) == ["s1"]
    assert [operation.key for operation in decoded if isinstance(operation, Header)] == ["id", "prev"]
    assert not any(isinstance(operation, Punctuation) for operation in decoded)


def test_patch_is_immutable_and_not_sent_twice(five):
    forms = {
        form: five.get(f"/patches/2{form}") for form in ("", "?format=rdf-patch", "?format=json", "?stream-type=frame")
    }
    tags = {answer.headers["etag"] for answer in forms.values()}

    assert len(tags) == len(forms)
    for form, answer in forms.items():
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        again = five.get(f"/patches/2{form}", headers={"If-None-Match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert five.get(f"/patches/2{form}", headers={"If-None-Match": '"other"'}).status_code == 200


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("*/*", "application/x-jelly-rdf-patch"),
        ("application/rdf-patch", "application/rdf-patch"),
        ("text/*", "application/rdf-patch"),
        ("text/html, application/json;q=0.9, */*;q=0.1", "application/json"),
        ("application/json;q=0.2, application/rdf-patch;q=0.4", "application/rdf-patch"),
        ("*/*, application/x-jelly-rdf-patch;q=0", "application/rdf-patch"),
        ("APPLICATION/JSON", "application/json"),
        ("application/json;q=nan, application/rdf-patch;q=0.001", "application/rdf-patch"),
        ("application/json;q=inf", None),
        ("text/turtle", None),
        ("*/*;q=0", None),
    ],
)
def test_representation_is_negotiated(five, accept, expected):
    answer = five.get("/patches/1", headers={"Accept": accept})

    assert answer.status_code == (406 if expected is None else 200)
    if expected:
        assert answer.headers["content-type"] == expected
        assert "Accept" in answer.headers["vary"]


def test_unknown_format_is_refused(five):
    assert five.get("/patches/1?format=turtle").status_code == 406


@pytest.mark.parametrize("form", ["", "?format=rdf-patch"])
@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_answers_are_compressed_where_they_may_be(log, patches, coding, form):
    log.append(patches.stream(patches.operations(values=[f'"{i}"' for i in range(2000)])))
    plain = log.get(f"/patches{form}").content

    for path in (f"/patches{form}", f"/patches/1{form}"):
        with log.client.stream("GET", f"{log.path}{path}", headers={"Accept-Encoding": coding}) as answer:
            raw = b"".join(answer.iter_raw())
        assert answer.headers["content-encoding"] == coding
        unpacked = (
            gzip.decompress(raw) if coding == "gzip" else zstandard.ZstdDecompressor().decompressobj().decompress(raw)
        )
        assert unpacked.rstrip(b"Z .\n") == plain.rstrip(b"Z .\n")


def test_large_patch_passes_in_bounded_memory(service, new_log):
    """A slice of a gigabyte: 64 MB of text, of which the service never holds more than some."""
    log = new_log(service)
    words = random.Random(4)
    lines = 200_000

    def text():
        yield b"TX .\n"
        for start in range(0, lines, 1000):
            yield b"".join(
                b'A <http://example.org/%d> <http://example.org/p> "%032x" .\n' % (i, words.getrandbits(128))
                for i in range(start, start + 1000)
            )
        yield b"TC .\n"

    log.client.get("/readyz")
    before = service.resident_bytes

    answer = log.client.post(
        f"{log.path}/patches", content=text(), headers={"Content-Type": "application/rdf-patch"}, timeout=60
    )
    grown = service.resident_bytes - before
    size = 0
    with log.client.stream("GET", f"{log.path}/patches/1") as read:
        for chunk in read.iter_raw():
            size += len(chunk)

    assert answer.status_code == 201
    assert answer.json()["operations"] == lines + 2
    assert size == answer.json()["bytes"]
    assert max(grown, service.resident_bytes - before) < 150 << 20


def test_headers_of_a_patch_are_kept_and_shown(log, operations):
    """Who, when and why are headers of the patch: the service need not know them."""
    log.append_text(
        b'H who <http://example.org/ada> .\nH when "2026-11-18"^^<http://www.w3.org/2001/XMLSchema#date> .\n'
        b'H why "\xc3\xa9 \\"so\\"" .\nTX .\nA <http://example.org/s> <http://example.org/p> "H" .\nTC .\n'
    )
    log.append_text(b"TX .\nTC .\n")

    listed = log.get("/patches?format=json").json()["patches"]
    one = log.get("/patches/1?format=json").json()

    assert one["headers"] == {
        "who": "<http://example.org/ada>",
        "when": '"2026-11-18"^^<http://www.w3.org/2001/XMLSchema#date>',
        "why": '"\u00e9 \\"so\\""',
    }
    assert [patch["headers"] for patch in listed] == [one["headers"], {}]
    kept = [operation for operation in operations(log.get("/patches/1").content) if isinstance(operation, Header)]
    assert [header.key for header in kept] == ["id", "who", "when", "why"]
    assert b'H why "\xc3\xa9 \\"so\\"" .\n' in log.get("/patches/1?format=text").content
