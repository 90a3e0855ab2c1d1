"""`patchlog snapshot build|list|get|put` and `patchlog log truncate`, on a database."""

import json
from pathlib import Path

import pytest

from patchlog.engine import NQuadsReader, RdfDecoder
from patchlog.log.sql import SqlLogStore
from patchlog.model import as_quad

PATCHES = b"""TX .
PA "ex" "http://example.org/" .
A <http://example.org/a> <http://example.org/p> "v"@en-GB .
TC .
Z .
TX .
A <http://example.org/b> <http://example.org/p> "v"@en-GB <http://example.org/g> .
TC .
"""
QUADS = b'<http://example.org/a> <http://example.org/p> "v"@en-GB .\n'
AT = ("people", "--database", "sqlite:///log.db")


@pytest.fixture
def people(done):
    """A log of two patches."""
    done("log", "create", *AT)
    done("push", "--log", *AT, "--format", "rdf-patch", "--quiet", stdin=PATCHES)


@pytest.mark.usefixtures("people")
def test_snapshot_is_made_listed_and_got(done):
    built = done("snapshot", "build", *AT)
    done("snapshot", "build", *AT, "--version", "1", "--quiet")

    listed = done("snapshot", "list", *AT)
    text = done("snapshot", "get", *AT, "--format", "nq")

    assert built.text.startswith("version 2: 2 quads, ")
    assert [line.split(",")[0] for line in listed.text.splitlines()] == ["version 1: 1 quad", "version 2: 2 quads"]
    assert text.out.startswith(QUADS)
    assert len(text.out.splitlines()) == 2


@pytest.mark.usefixtures("people")
def test_snapshot_is_got_in_the_format_that_its_file_is_named(done):
    done("snapshot", "build", *AT, "--version", "1", "--quiet")

    for name in ("s.jelly", "s.nq", "s.trig"):
        done("snapshot", "get", *AT, "--version", "1", "--to", name)

    decoder = RdfDecoder()
    frames = [*decoder.feed(Path("s.jelly").read_bytes()), *decoder.finish()]
    assert frames[0].namespaces == [("ex", "<http://example.org/>")]
    assert [as_quad(one) for one in NQuadsReader().feed(Path("s.nq").read_bytes())] == frames[1].statements
    assert '"v"@en-GB' in Path("s.trig").read_text()


@pytest.mark.usefixtures("people")
def test_snapshot_is_described_to_programs(done):
    built = json.loads(done("snapshot", "build", *AT, "--json").text)
    listed = json.loads(done("snapshot", "list", *AT, "--json").text)

    assert (built["version"], built["quads"], built["namespaces"], built["state"]) == (2, 2, 1, "complete")
    assert listed == [built]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("data.nq", QUADS),
        ("data.nt", QUADS),
        ("data.ttl", b'@prefix ex: <http://example.org/> . ex:a ex:p "v" .\n'),
        ("data.trig", b'@prefix ex: <http://example.org/> . ex:a ex:p "v" .\n'),
    ],
)
def test_log_starts_with_a_dataset(done, folder, name, data):
    (folder / name).write_bytes(data)
    done("log", "create", *AT)

    put = done("snapshot", "put", name, *AT)
    again = done("snapshot", "put", name, *AT, "--quiet")

    assert put.text.startswith("version 0: 1 quad, ")
    assert again.text == ""
    assert done("snapshot", "get", *AT, "--format", "nq").out.startswith(
        b"<http://example.org/a> <http://example.org/p> "
    )


def test_snapshot_goes_from_one_log_to_another(done):
    done("log", "create", *AT)
    done("snapshot", "put", "-", *AT, "--format", "nq", stdin=QUADS)
    done("log", "create", "copy", "--database", "sqlite:///log.db")

    done("snapshot", "put", "-", "copy", "--database", "sqlite:///log.db", stdin=done("snapshot", "get", *AT).out)

    assert done("snapshot", "get", "copy", "--database", "sqlite:///log.db", "--format", "nq").out == QUADS


@pytest.mark.usefixtures("people")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("get", *AT), "no snapshots yet"),
        (("get", *AT, "--version", "1"), "no snapshot at version 1"),
        (("get", *AT, "--version", "one"), "'one' is not the version"),
        (("build", *AT, "--version", "3"), "head is 2"),
        (("put", "-", *AT, "--format", "nq"), "has patches"),
        (("put", "-", *AT, "--format", "nq", "--version", "2"), "other quads"),
        (("build", "nobody", "--database", "sqlite:///log.db"), "no log 'nobody'"),
    ],
)
def test_snapshot_that_cannot_be_is_one_line(call, arguments, said):
    ended = call(
        "snapshot", *arguments, stdin=b"<http://example.org/z> <http://example.org/p> 'v' .\n".replace(b"'", b'"')
    )

    assert ended.code == 1
    assert ended.err.startswith("error: ")
    assert said in ended.err
    assert ended.err.count("\n") == 1


def test_dataset_that_is_not_well_formed_is_named_with_its_line(call, done):
    done("log", "create", *AT)
    Path("bad.nq").write_bytes(QUADS + b"nonsense\n")

    ended = call("snapshot", "put", "bad.nq", *AT)

    assert ended.code == 1
    assert ended.err.startswith("error: bad.nq: line 2: ")


@pytest.mark.usefixtures("people")
def test_truncation_by_command_leaves_what_is_needed(call, done):
    unfounded = call("log", "truncate", "--yes", *AT, "--before", "2")
    done("snapshot", "build", *AT, "--quiet")
    store = SqlLogStore("sqlite:///log.db")
    store.log("people").consumers.advance("slow", 0)
    store.close()
    needed = call("log", "truncate", "--yes", *AT, "--before", "3")

    assert (unfounded.code, "no snapshot" in unfounded.err) == (1, True)
    assert (needed.code, "slow" in needed.err) == (1, True)
    assert done("log", "truncate", "--yes", *AT).text == "people begins with version 1\n"
    assert done("log", "truncate", "--yes", *AT, "--before", "3", "--force").text == "people begins with version 3\n"
