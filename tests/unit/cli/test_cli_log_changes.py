"""`patchlog diff`, `revert` and `log blame`, on a database and on a file alike."""

import json

import pytest

ADA = "<http://example.org/ada>"
NAME = "<http://example.org/name>"
FIRST = f'H who "Eve" .\nTX .\nA {ADA} {NAME} "A" .\nA {ADA} {NAME} "B" .\nTC .\n'
SECOND = f'TX .\nD {ADA} {NAME} "A" .\nA {ADA} {NAME} "B" .\nA {ADA} {NAME} "C" <http://example.org/g> .\nTC .\n'


@pytest.fixture(params=["database", "file", "text"])
def place(request, folder, done):
    """Words that say where a log of two patches is."""
    (folder / "patches.rdfp").write_text(f"{FIRST}Z .\n{SECOND}Z .\n")
    if request.param == "text":
        return ["patches.rdfp"]
    if request.param == "file":
        done("push", "patches.rdfp", "--log", "patches.jellyp")
        return ["patches.jellyp"]
    done("log", "create", "people", "--database", "sqlite:///log.db")
    done("push", "patches.rdfp", "--log", "people", "--database", "sqlite:///log.db")
    return ["people", "--database", "sqlite:///log.db"]


def test_diff_forth_and_back(done, place):
    forth = done("diff", *place, "--from", 0)
    back = done("diff", *place, "--from", 2, "--until", 1)

    assert forth.text == (
        f'TX .\nD {ADA} {NAME} "A" .\nA {ADA} {NAME} "B" .\nA {ADA} {NAME} "C" <http://example.org/g> .\nTC .\n'
    )
    assert back.text == f'TX .\nD {ADA} {NAME} "C" <http://example.org/g> .\nA {ADA} {NAME} "A" .\nTC .\n'


def test_versions_may_be_said_as_the_service_has_them(done, place, folder):
    """As ?from=2&to=1: no file gets a number for its name by mistake."""
    back = done("diff", *place, "--from", 2, "--to", 1)

    assert back.text == done("diff", *place, "--from", 2, "--until", 1).text
    assert not (folder / "1").exists()
    assert "version 3" in done("revert", *place, "--from", 1, "--to", 2).text


def test_diff_in_binary(done, place, folder):
    done("diff", *place, "--from", 1, "--until", 1, "--to", "out.jellyp")

    assert (folder / "out.jellyp").read_bytes()
    assert done("patch", "from-jelly", "out.jellyp").text == "TX .\nTC .\nZ .\n"


def test_revert_is_told_and_done(done, place):
    told = done("revert", *place, "--version", 2, "--header", "who=Ada")

    assert "version 3" in told.text
    assert done("diff", *place, "--from", 2).text == (
        f'TX .\nD {ADA} {NAME} "C" <http://example.org/g> .\nA {ADA} {NAME} "A" .\nTC .\n'
    )
    written = done("pull", *place, "--after", 2, "--format", "rdf-patch").text
    assert 'H who "Ada" .\n' in written
    assert 'H why "takes back version 2" .\n' in written


def test_revert_with_an_id_is_done_once(done, place):
    id = "aaaaaaaa-0000-4000-8000-000000000000"

    first, again = (
        json.loads(done("revert", *place, "--from", 0, "--until", 2, "--id", id, "--json").out) for _ in range(2)
    )

    assert first == again
    assert (first["version"], first["id"]) == (3, id)


def test_blame_names_version_time_and_who(done, place):
    lines = [
        line.split("  ")
        for line in done("log", "blame", *place, "--subject", "http://example.org/ada").text.splitlines()
    ]
    found = [
        json.loads(line)
        for line in done("log", "blame", *place, "--subject", ADA, "--graph", "", "--json").out.splitlines()
    ]

    assert [(version, who, quad) for version, _, who, quad in lines] == [
        ("1", '"Eve"', f'{ADA} {NAME} "B"'),
        ("2", "-", f'{ADA} {NAME} "C" <http://example.org/g>'),
    ]
    assert [(quad["version"], quad["object"], quad["headers"]) for quad in found] == [(1, '"B"', {"who": '"Eve"'})]


@pytest.mark.parametrize(
    "words",
    [
        ["diff"],
        ["diff", "--from", "-1"],
        ["revert"],
        ["revert", "--version", "1", "--from", "0"],
        ["revert", "--version", "1", "--until", "2"],
        ["revert", "--version", "1", "--header", "who"],
        ["log", "blame"],
    ],
    ids=" ".join,
)
def test_wrong_usage(call, place, words):
    assert call(*words, *place).code == 2


@pytest.mark.parametrize(
    "words",
    [
        ["diff", "--from", "3"],
        ["diff", "--from", "0", "--until", "3"],
        ["revert", "--version", "3"],
        ["revert", "--version", "0"],
        ["revert", "--from", "2"],
        ["revert", "--version", "1"],
        ["revert", "--version", "2", "--header", "id=x"],
        ["revert", "--version", "2", "--expected-head", "aaaaaaaa-0000-4000-8000-000000000000"],
        ["log", "blame", "--subject", "<a b>"],
    ],
    ids=" ".join,
)
def test_mistakes_are_one_line(failed, place, words):
    assert failed(*words, *place)


def test_pipe_cannot_be_compared_with_itself(failed):
    assert "pipe" in failed("diff", "-", "--from", "0")


def test_what_truncation_took_is_refused_or_said_to_be_unknown(done, failed, folder):
    place = ["people", "--database", "sqlite:///log.db"]
    (folder / "patches.rdfp").write_text(f"{FIRST}Z .\n{SECOND}Z .\n")
    done("log", "create", *place)
    done("push", "patches.rdfp", "--log", *place)
    done("snapshot", "build", *place)
    done("log", "truncate", *place, "--before", 3, "--force", "--yes")

    blamed = done("log", "blame", *place, "--subject", ADA).text.splitlines()

    assert [line.split("  ")[0] for line in blamed] == ["2 or before", "2 or before"]
    for command in (["diff", *place, "--from", 0], ["revert", *place, "--version", 1], ["pull", *place]):
        assert "truncated away" in failed(*command)
