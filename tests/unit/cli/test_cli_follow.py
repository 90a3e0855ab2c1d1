"""`patchlog follow`: logs into logs and standard output."""

import pytest

PEOPLE = "sqlite:///people.db"
FIRST = 'TX .\nA <http://e/s> <http://e/p> "1" .\nA <http://e/s> <http://e/p> "2" <http://e/g> .\nTC .\n'
SECOND = 'TX .\nD <http://e/s> <http://e/p> "1" .\nTC .\n'


@pytest.fixture
def log(done, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "first.rdfp").write_text(FIRST)
    (tmp_path / "second.rdfp").write_text(SECOND)
    done("log", "create", "people", "--database", PEOPLE)
    done("push", "first.rdfp", "--log", "people", "--database", PEOPLE)
    return f"{PEOPLE}#people"


def test_added_quads_go_to_standard_output(done, log):
    assert done("follow", log, "--once").text == (
        '<http://e/s> <http://e/p> "1" .\n<http://e/s> <http://e/p> "2" <http://e/g> .\n'
    )


def test_part_of_a_log_goes_out(done, log):
    assert done("follow", log, "--once", "--graph", "").text == '<http://e/s> <http://e/p> "1" .\n'
    assert done("follow", log, "--once", "--graph", "http://e/g").text.count("\n") == 1


def test_delete_ends_nquads_with_an_error(done, call, log):
    done("push", "second.rdfp", "--log", "people", "--database", PEOPLE)

    ended = call("follow", log, "--once")

    assert ended.code == 1
    assert ended.err.startswith("error: version 2 deletes")


def test_changes_go_out_as_patches(done, log):
    done("push", "second.rdfp", "--log", "people", "--database", PEOPLE)

    text = done("follow", log, "--once", "--after", "1", "--format", "rdf-patch").text

    assert [line for line in text.splitlines() if line[0] != "H"] == [*SECOND.splitlines(), "Z ."]


@pytest.mark.parametrize("copy", ["copy.jellyp", "sqlite:///copy.db#people"])
def test_copy_of_a_log_has_the_same_head(done, log, copy):
    done("follow", log, "--into", copy, "--once")
    done("push", "second.rdfp", "--log", "people", "--database", PEOPLE)

    told = done("follow", log, "--into", copy, "--once").text

    assert told == f"{copy} has version 2 of people\n"
    hashes = [line for line in done("log", "show", log).text.splitlines() if line.startswith("hash")]
    assert hashes[0] in done("log", "show", copy).text


def test_place_that_may_be_anything_is_refused(call, log):
    ended = call("follow", log, "--into", "http://127.0.0.1:1/store", "--once")

    assert ended.code == 1
    assert "write sparql:" in ended.err


def test_format_that_there_is_not_is_wrong_usage(call, log):
    assert call("follow", log, "--format", "turtle").code == 2


def test_consumer_is_told_to_the_log(done, log):
    done("follow", log, "--once", "--consumer", "printer")

    from patchlog.places import open_log

    with open_log(log) as people:
        assert [(one.name, one.version) for one in people.consumers.list()] == [("printer", 1)]


@pytest.mark.parametrize("into", ["other.jellyp", "sqlite:///other.db#people"])
def test_log_that_would_be_replaced_is_asked_about_and_kept(call, done, log, into):
    done("log", "create", into)
    done("push", "second.rdfp", "--log", into)
    before = done("log", "show", into).text

    refused = call("follow", log, "--into", into, "--once", "--replace")

    assert refused.code == 1
    assert f"to delete all patches of {into}" in refused.err
    assert "first patches differ" in refused.err
    assert refused.err.endswith("say --yes\n")
    assert done("log", "show", into).text == before
    done("follow", log, "--into", into, "--once", "--replace", "--yes")
    assert "head: version 1," in done("log", "show", into).text


def test_source_and_copy_that_were_swapped_lose_nothing(call, done, log):
    done("follow", log, "--into", "copy.jellyp", "--once")
    done("push", "second.rdfp", "--log", "people", "--database", PEOPLE)

    refused = call("follow", "copy.jellyp", "--into", log, "--once", "--replace")

    assert (refused.code, "has version 2" in refused.err, "--yes" in refused.err) == (1, True, True)
    assert "head: version 2," in done("log", "show", log).text


def test_target_is_kept_where_the_log_cannot_give_it_all(call, done, log):
    done("push", "second.rdfp", "--log", "people", "--database", PEOPLE)
    done("push", "second.rdfp", "--log", "other.jellyp")
    before = done("log", "show", "other.jellyp").text
    replacing = ("follow", log, "--into", "other.jellyp", "--replace", "--yes")

    beyond = call(*replacing, "--until", "99")
    done("snapshot", "build", log, "--version", "1")
    done("log", "truncate", log, "--before", "2", "--yes")
    truncated = call(*replacing, "--once")

    assert (beyond.code, "no version 99" in beyond.err) == (1, True)
    assert (truncated.code, "version 1 was truncated away" in truncated.err) == (1, True)
    assert done("log", "show", "other.jellyp").text == before
