"""The commands of logs on all places where a log can be: SQLite, PostgreSQL, a service, and files."""

import json
import os
import pty
import re
import sqlite3
import subprocess
import sys

import pytest

from patchlog.log.database import Database
from patchlog.log.file import FilePatchLog
from patchlog.patch import write

FIRST = "aaaaaaaa-0000-4000-8000-000000000000"
SECOND = "bbbbbbbb-0000-4000-8000-000000000000"
OTHER = "cccccccc-0000-4000-8000-000000000000"

MONDAY = f"""\
H id <urn:uuid:{FIRST}> .
TX .
A <http://ex.org/ada> <http://ex.org/name> "Ada" .
TC .
Z .
"""
TUESDAY = f"""\
H id <urn:uuid:{SECOND}> .
H prev <urn:uuid:{FIRST}> .
TX .
D <http://ex.org/ada> <http://ex.org/name> "Ada" .
TC .
Z .
"""


class Place:
    """A log, as it stands on the command line behind a command."""

    def __init__(self, *words):
        self.words = words
        self.is_file = words[0].endswith((".jellyp", ".rdfp"))


@pytest.fixture(params=["sqlite", "postgresql", "service", "jellyp", "rdfp"])
def place(request, folder):
    match request.param:
        case "sqlite":
            return Place("people", "--database", f"sqlite:///{folder}/people.db")
        case "postgresql":
            return Place("people", "--database", request.getfixturevalue("postgresql_url"))
        case "service":
            return Place("people", "--url", request.getfixturevalue("service_url"))
    return Place(f"people.{request.param}")


@pytest.fixture
def log(place, done, folder):
    """A log with two patches."""
    (folder / "monday.rdfp").write_text(MONDAY)
    (folder / "tuesday.rdfp").write_text(TUESDAY)
    name, *rest = place.words
    done("log", "create", *place.words)
    done("push", "monday.rdfp", "tuesday.rdfp", "--log", name, *rest)
    return place


def pushed(call, place, *files, stdin=b""):
    name, *rest = place.words
    return call("push", *files, "--log", name, *rest, stdin=stdin)


def failed(ended, *said):
    """The line of a command that failed."""
    assert (ended.code, ended.out) == (1, b"")
    assert ended.err.startswith("error: ")
    assert ended.err.count("\n") == 1
    for words in said:
        assert words in ended.err
    return ended.err


# What is done on all places


def test_new_log_is_empty(done, place):
    created = done("log", "create", *place.words)

    shown = done("log", "show", *place.words)

    assert created.text == f"created {place.words[0]}\n"
    assert "head: none, the log is empty\nkept: no patches\n" in shown.text


def test_description_is_that_of_the_service(done, log):
    document = json.loads(done("log", "show", *log.words, "--json").text)

    assert document.keys() == {
        *("name", "id", "head", "first_version", "patches", "operations", "bytes", "created", "options")
    }
    assert (document["head"]["version"], document["head"]["id"], document["patches"]) == (2, SECOND, 2)


def test_push_says_where_the_patches_are(done, place, folder):
    (folder / "both.rdfp").write_text(MONDAY + TUESDAY)
    done("log", "create", *place.words)

    first = pushed(done, place, "both.rdfp", "--json")
    again = pushed(done, place, "both.rdfp")
    quiet = pushed(done, place, "both.rdfp", "--quiet")

    document = json.loads(first.text)
    assert (document["first_version"], document["version"], document["id"]) == (1, 2, SECOND)
    assert re.fullmatch(rf"people\S*: versions 1 to 2, {SECOND}: 6 operations, \d+ bytes, there already\n", again.text)
    assert quiet.text == ""


def test_what_is_pulled_is_what_was_pushed(done, log, folder):
    text = done("pull", *log.words, "--format", "rdf-patch").text
    done("pull", *log.words, "--to", "all.jellyp")
    last = done("pull", *log.words, "--after", "1", "--until", "2", "--limit", "1", "--format", "rdf-patch").text
    described = done("pull", *log.words, "--json").text

    assert text == MONDAY + TUESDAY
    assert last == TUESDAY
    assert FilePatchLog(folder / "all.jellyp").head().id == SECOND
    assert [json.loads(line)["version"] for line in described.splitlines()] == [1, 2]


def test_standard_input_is_pushed(done, place, folder):
    done("log", "create", *place.words)
    (folder / "monday.rdfp").write_text(MONDAY)
    binary = done("patch", "to-jelly", "monday.rdfp").out

    assert json.loads(pushed(done, place, "--json", stdin=binary).text)["version"] == 1
    assert pushed(done, place, "-", "--format", "rdf-patch", stdin=TUESDAY.encode()).text.startswith("people")
    assert "kept: versions 1 to 2" in done("log", "show", *place.words).text


def test_statements_become_a_patch(done, place, folder):
    (folder / "people.nq").write_text('<http://ex.org/a> <http://ex.org/p> "1" <http://ex.org/g> .\n')
    (folder / "people.nt").write_text('<http://ex.org/a> <http://ex.org/p> "2" .\n')
    done("log", "create", *place.words)

    pushed(done, place, "people.nq", "people.nt")

    text = done("pull", *place.words, "--format", "rdf-patch").text
    assert 'A <http://ex.org/a> <http://ex.org/p> "1" <http://ex.org/g> .\n' in text
    assert 'A <http://ex.org/a> <http://ex.org/p> "2" .\n' in text


def test_tail_begins_where_it_is_told(done, log):
    assert done("tail", *log.words, "--after", "0", "--limit", "2").text == MONDAY + TUESDAY
    assert json.loads(done("tail", *log.words, "--after", "1", "--limit", "1", "--json").text)["id"] == SECOND


def test_sound_log_is_sound(done, log):
    assert re.fullmatch(rf".*people\S* is sound: 2 patches, head {SECOND}\n", done("log", "verify", *log.words).text)
    assert json.loads(done("log", "verify", *log.words, "--json").text)["sound"] is True


def test_change_between_versions_is_made_and_taken_back(done, log):
    there = 'A <http://ex.org/ada> <http://ex.org/name> "Ada" .\n'

    assert there in done("diff", *log.words, "--from", "0", "--until", "1").text
    assert "A <" not in done("diff", *log.words, "--from", "0").text
    assert "version 3" in done("revert", *log.words, "--version", "2").text
    assert there in done("diff", *log.words, "--from", "2").text


def test_snapshot_is_the_dataset_at_a_version(done, log, folder):
    if not log.is_file:
        assert done("snapshot", "build", *log.words, "--version", "1").text.startswith("version 1: 1 quad")

    text = done("snapshot", "get", *log.words, "--version", "1", "--format", "nq").text
    done("snapshot", "get", *log.words, "--version", "1", "--to", "people.jelly")

    assert text == '<http://ex.org/ada> <http://ex.org/name> "Ada" .\n'
    assert done("rdf", "from-jelly", "people.jelly").text == text
    assert folder.joinpath("people.jelly").stat().st_size


# What is refused on all places


def test_head_that_moved_is_named(call, log, folder):
    (folder / "other.rdfp").write_text(MONDAY.replace(FIRST, OTHER))

    for expected in ("none", FIRST):
        failed(pushed(call, log, "other.rdfp", "--expected-head", expected), SECOND, "the head is")

    assert pushed(call, log, "other.rdfp", "--expected-head", SECOND).code == 0


def test_id_of_another_patch_is_refused(call, log, folder):
    (folder / "other.rdfp").write_text(MONDAY.replace("Ada", "Eva"))

    failed(pushed(call, log, "other.rdfp"), "version 1 has the id", FIRST)


def test_bad_text_is_named_with_its_line(call, log, folder):
    (folder / "bad.rdfp").write_text(f"{MONDAY}A <http://ex.org/a .\n")

    failed(pushed(call, log, "bad.rdfp"), "bad.rdfp: line 6: ")


def test_bad_frame_is_named_with_its_place(call, log, folder, patches):
    [data] = patches.one()
    (folder / "bad.jellyp").write_bytes(data + b"\x05\xff\xff\xff\xff\xff")

    failed(pushed(call, log, "bad.jellyp"), "bad.jellyp: frame 1")


def test_file_that_ends_early_is_refused_and_leaves_nothing(call, done, log, folder, patches):
    [data] = patches.one()
    (folder / "cut.jellyp").write_bytes(data[:-3])

    failed(pushed(call, log, "cut.jellyp"), "cut.jellyp: ", "ends")

    assert "kept: versions 1 to 2" in done("log", "show", *log.words).text


def test_nothing_is_no_patch(call, log):
    failed(pushed(call, log, "-", "--format", "rdf-patch"), "no patch")


def test_file_that_is_not_there_is_named(call, log):
    failed(pushed(call, log, "missing.rdfp"), "missing.rdfp: No such file")


@pytest.mark.parametrize("command", [("log", "show"), ("pull",), ("tail",), ("log", "verify")])
def test_log_that_is_not_there_is_not_found(call, done, place, command):
    name, *rest = place.words
    if rest[:1] == ["--database"]:
        done("log", "create", "another", *rest)

    failed(call(*command, name, *rest), "people", "No such file" if place.is_file else "there is no log")


def test_log_is_created_once(call, log):
    failed(call("log", "create", *log.words), "there is a ", "already")


def test_versions_that_are_no_versions_are_wrong_usage(call, log):
    assert call("pull", *log.words, "--after", "-1").code == 2
    assert call("pull", *log.words, "--after", "x").code == 2


# Stores


@pytest.fixture
def store(place):
    if place.is_file:
        pytest.skip("a file is no store")
    return place.words[1:]


def test_logs_are_listed(done, store):
    for name in ("people", "pets"):
        done("log", "create", name, *store)

    lines = done("log", "list", *store).text.splitlines()

    assert [line.split()[0] for line in lines] == ["NAME", "people", "pets"]
    assert [log["name"] for log in json.loads(done("log", "list", *store, "--json").text)] == ["people", "pets"]


@pytest.mark.usefixtures("store")
def test_deleted_log_is_gone(done, call, log):
    assert done("log", "delete", *log.words, "--yes").text == "deleted people\n"

    failed(call("log", "show", *log.words), "people")


@pytest.mark.usefixtures("log")
def test_log_is_found_by_its_place_alone(done, store):
    kind, url = store
    where = f"{url}/logs/people" if kind == "--url" else f"{url}#people"

    assert "versions 1 to 2" in done("log", "show", where).text
    assert "is sound" in done("log", "verify", where).text
    assert "there already" in done("push", "monday.rdfp", "--log", where).text
    assert "versions 1 to 2" in done("log", "show", url, "--log", "people").text


@pytest.mark.usefixtures("log")
def test_environment_says_the_store(done, store, monkeypatch):
    kind, url = store
    monkeypatch.setenv("PATCHLOG_URL" if kind == "--url" else "PATCHLOG_DATABASE", url)

    assert "versions 1 to 2" in done("log", "show", "people").text


def test_hostile_name_is_refused(call, store):
    failed(call("log", "create", "a b", *store), "not the name of a log")


def test_options_are_fixed_when_the_log_is_created(done, call, store, folder):
    done("log", "create", "plain", *store, "--rdf-star", "false", "--generalized-statements", "false")
    (folder / "star.rdfp").write_text("A <a> <p> <<( <a> <b> <c> )>> .\n")

    failed(call("push", "star.rdfp", "--log", "plain", *store), "star.rdfp: ")

    assert "rdf_star: false\ngeneralized_statements: false\n" in done("log", "show", "plain", *store).text


def test_log_starts_with_a_dataset(done, call, store, folder):
    (folder / "people.nq").write_text('<http://ex.org/a> <http://ex.org/p> "1" <http://ex.org/g> .\n')
    done("log", "create", "people", *store)

    done("snapshot", "put", "people.nq", "people", *store)

    text = done("snapshot", "get", "people", *store, "--format", "nq").text
    assert text == (folder / "people.nq").read_text()
    failed(call("snapshot", "get", "people", *store, "--version", "7"), "no snapshot")


# Databases


def test_database_that_is_not_there_is_not_made(call, folder):
    for command in (("log", "list"), ("log", "show", "people"), ("pull", "people"), ("log", "delete", "people")):
        failed(call(*command, "--database", "sqlite:///none.db"), "there is no database none.db")

    assert list(folder.iterdir()) == []


def test_database_without_tables_is_told_to_be_migrated(call, done, postgresql_server):
    url = postgresql_server.new_database()

    failed(call("log", "list", "--database", url), "migrate")

    assert "is at migration" in done("migrate", "--database", url).text
    assert done("log", "list", "--database", url).text == ""


def test_database_that_cannot_be_reached_is_one_line(call, folder):
    failed(call("log", "list", "--database", f"postgresql://nobody@/none?host={folder}"), "cannot be reached")


def test_what_is_no_database_is_one_line(call, folder):
    (folder / "not.db").write_bytes(b"x" * 4096)

    failed(call("log", "list", "--database", "sqlite:///not.db"), "damaged")
    failed(call("log", "list", "--database", "mysql://me@host/db"), "mysql")
    failed(call("log", "list", "--database", "nonsense"), "not the URL of a database")


def test_migration_keeps_what_is_there(done, folder):
    database = f"sqlite:///{folder}/people.db"
    done("log", "create", "people", "--database", database)

    done("migrate", "--database", database)

    opened = Database(database)
    opened.close()
    assert "people" in done("log", "list", "--database", database).text


@pytest.mark.usefixtures("folder")
def test_database_goes_down_to_what_an_older_release_knows_and_up_again(call, done):
    done("log", "create", "people", "--database", "sqlite:///people.db")

    assert done("migrate", "--down-to", "0002", "--yes", "--database", "sqlite:///people.db").text.endswith(
        "migration 0002\n"
    )
    failed(call("migrate", "--down-to", "0003", "--yes", "--database", "sqlite:///people.db"), "below are 0001")
    assert "people" in done("log", "list", "--database", "sqlite:///people.db").text


def test_going_down_names_what_is_lost_and_never_takes_what_a_log_begins_with(call, done, folder):
    (folder / "monday.rdfp").write_text(MONDAY)
    place = ("people", "--database", "sqlite:///people.db")
    down = ("migrate", "--down-to", "0002", "--database", "sqlite:///people.db")
    done("log", "create", *place)
    done("push", "monday.rdfp", "--log", *place)
    (folder / "tuesday.rdfp").write_text(TUESDAY)
    done("push", "tuesday.rdfp", "--log", *place)
    done("snapshot", "build", *place)

    failed(call(*down), "back to migration 0002, which deletes 1 snapshot, cannot be undone")
    done("log", "truncate", *place, "--before", "2", "--yes")
    failed(call(*down, "--yes"), "what people begins with is a snapshot")

    assert "version 2" in done("snapshot", "list", *place).text
    failed(
        call("migrate", "--down-to", "0002", "--yes", "--database", "sqlite:///typo.db"), "there is no database typo.db"
    )
    assert not (folder / "typo.db").exists()


def test_database_of_another_program_is_left_alone(call, folder):
    with sqlite3.connect(folder / "browser.db") as browser:
        browser.execute("CREATE TABLE visits (url TEXT)")
    browser.close()
    before = (folder / "browser.db").read_bytes()

    for command in (["log", "list"], ["log", "create", "people"], ["migrate"]):
        failed(call(*command, "--database", "sqlite:///browser.db"), "of another program (it has a table visits)")
    failed(call("outbox", "list", "--outbox", "browser.db"), "and no outbox")

    assert (folder / "browser.db").read_bytes() == before


def test_output_does_not_overwrite_a_database(call, done):
    place = ("people", "--database", "sqlite:///people.db")
    done("log", "create", *place)

    failed(call("pull", *place, "--to", "people.db", "--format", "jelly-patch"), "people.db is a database of SQLite")

    assert "people" in done("log", "list", "--database", "sqlite:///people.db").text


# Services


def test_service_that_cannot_be_reached_is_one_line(call):
    failed(call("log", "list", "--url", "http://127.0.0.1:1"), "http://127.0.0.1:1 cannot be reached")


def test_what_is_no_service_is_one_line(call, service_url):
    failed(call("log", "list", "--url", f"{service_url}/docs"), "Is this the URL of a patchlog service?")
    failed(call("log", "list", "--url", "localhost:8080"), "write http://HOST:PORT")


# Files


def test_push_makes_the_file(done, folder):
    (folder / "monday.rdfp").write_text(MONDAY)

    done("push", "monday.rdfp", "--log", "changes.jellyp")

    assert "is sound: 1 patch" in done("log", "verify", "changes.jellyp").text


def test_file_has_no_store_commands(call, done):
    done("log", "create", "people.jellyp")

    failed(call("log", "list", "people.jellyp"), "people.jellyp is a file")
    failed(call("log", "delete", "people.jellyp"), "people.jellyp is a file")
    failed(call("log", "create", "other.jellyp", "--rdf-star", "false"), "a file takes all patches")
    failed(call("snapshot", "build", "people.jellyp"), "people.jellyp is a file")
    failed(call("snapshot", "get", "people.jellyp"), "empty")


def test_file_that_ends_early_is_not_read_past(call, folder, patches):
    [data] = patches.one()
    (folder / "cut.jellyp").write_bytes(data + data[:-9])

    for command in (("pull",), ("log", "show"), ("log", "verify"), ("tail", "--after", "0")):
        failed(call(*command, "cut.jellyp"), "cut.jellyp: ")


def test_append_that_was_cut_off_is_told_and_repaired(call, done, folder):
    (folder / "monday.rdfp").write_text(MONDAY)
    (folder / "tuesday.rdfp").write_text(TUESDAY)
    done("push", "monday.rdfp", "--log", "people.jellyp")
    whole = (folder / "people.jellyp").read_bytes()
    done("push", "tuesday.rdfp", "--log", "people.jellyp")
    data = (folder / "people.jellyp").read_bytes()
    (folder / "people.jellyp").write_bytes(whole + b"\0" + data[len(whole) + 1 : -9])

    failed(call("log", "verify", "people.jellyp"), "version 2 is bad", "the next append takes it away")
    failed(call("pull", "people.jellyp"), "people.jellyp: ")
    done("push", "tuesday.rdfp", "--log", "people.jellyp")

    assert (folder / "people.jellyp").read_bytes() == data


def test_patches_of_any_form_are_read_as_a_log(done, folder, patches):
    write(folder / "flat.jellyp", patches.operations(id=FIRST))
    (folder / "text.rdfp").write_text("A <s> <p> <o> .\n")

    assert FIRST in done("log", "show", "flat.jellyp").text
    assert "1 patch" in done("log", "verify", "text.rdfp").text


def test_standard_input_is_read_as_a_log(done, call, folder):
    (folder / "monday.rdfp").write_text(MONDAY)
    binary = done("patch", "to-jelly", "monday.rdfp").out

    assert done("pull", "-", "--format", "rdf-patch", stdin=binary).text == MONDAY
    assert FIRST in done("log", "show", "-", stdin=binary).text
    failed(call("pull", "-"), "standard input: ")
    failed(call("push", "monday.rdfp", "--log", "x", "--database", "sqlite:///none.db"), "there is no database")


# Which log


def test_place_is_said_once(call):
    for words in (
        ("log", "show", "people", "--database", "sqlite:///a.db", "--url", "http://localhost"),
        ("log", "show", "http://localhost/logs/people", "--url", "http://localhost"),
        ("log", "show", "http://localhost/logs/people", "--log", "people"),
        ("log", "show", "sqlite:///a.db#people", "--log", "people"),
        ("log", "show", "people", "--log", "pets"),
        ("log", "show", "--database", "sqlite:///a.db"),
        ("push", "a.rdfp", "--database", "sqlite:///a.db"),
    ):
        ended = call(*words)

        assert ended.code == 2, words
        assert ended.err.startswith("error: ")


def test_binary_patches_do_not_go_to_a_name_of_another_format(call, log):
    failed(call("pull", *log.words, "--to", "people.nq"), "people.nq is N-Quads by its name")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "words",
    [
        ("log", "delete", "people"),
        ("log", "truncate", "people"),
        ("log", "truncate", "people", "--before", "1", "--force"),
        ("migrate", "--down-to", "0001"),
    ],
)
def test_what_cannot_be_undone_is_asked_about_and_needs_yes_without_a_terminal(call, done, words):
    """Scripts, where nobody sees the question, deleted logs without a word."""
    place = ("--database", "sqlite:///people.db")
    done("log", "create", "people", *place)
    before = done("log", "show", "people", "--json", *place).text

    failed(call(*words, *place), "say --yes")
    refused = on_terminal(b"n\n", *words, *place)
    left = done("log", "show", "people", "--json", *place).text
    agreed = on_terminal(b"y\n", *words, *place)

    assert (refused.returncode != 0, b"[y/N]" in refused.stderr) == (True, True)
    assert left == before
    assert agreed.returncode == 0, agreed.stderr


def on_terminal(answer, *words):
    """Run the command with a terminal as its standard input."""
    terminal, other_end = pty.openpty()
    try:
        os.write(terminal, answer)
        return subprocess.run(
            [sys.executable, "-m", "patchlog", *words], stdin=other_end, capture_output=True, timeout=120, check=False
        )
    finally:
        os.close(terminal)
        os.close(other_end)
