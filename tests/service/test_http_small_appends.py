"""Small appends go a shorter way through the service than others: what they are answered must not show it."""

import threading

import pytest

from patchlog.model import Punctuation


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
    log.client.delete(log.path)

    gone = log.append(patches.one("b"))
    log.client.put(log.path, json={"rdf_star": False})
    anew = log.append(patches.one("c"))

    assert (gone.status_code, anew.status_code, anew.json()["version"]) == (404, 201, 1)


def test_body_in_two_pieces_is_appended(log, patches):
    body = b"".join(patches.one("a"))
    connection = log.service.connect()
    head = f"POST {log.path}/patches HTTP/1.1\r\nHost: here\r\nContent-Length: {len(body)}\r\n"
    connection.sendall(head.encode() + b"Content-Type: application/x-jelly-rdf-patch\r\n\r\n" + body[:10])

    threading.Timer(0.1, lambda: connection.sendall(body[10:])).start()

    assert connection.recv(1000).startswith(b"HTTP/1.1 201 ")
    connection.close()
