"""Logs opened by where they are."""

import pytest

from patchlog.client import HttpPatchLog
from patchlog.errors import LogNotFound, UsageError
from patchlog.log.records import LogOptions
from patchlog.places import open_log, place_of


@pytest.mark.parametrize(
    ("where", "store_url", "name"),
    [
        ("http://localhost:8080/logs/people", "http://localhost:8080", "people"),
        ("https://example.org/data/logs/people/", "https://example.org/data", "people"),
        ("http://localhost/logs/a%2Db", "http://localhost", "a-b"),
        ("sqlite:///people.db#people", "sqlite:///people.db", "people"),
        ("sqlite:///people.db", "sqlite:///people.db", None),
        ("postgresql://me@host/db?sslmode=require#people", "postgresql://me@host/db?sslmode=require", "people"),
    ],
)
def test_url_says_store_and_name(where, store_url, name):
    place = place_of(where)

    assert (place.store_url, place.name, place.file) == (store_url, name, None)


@pytest.mark.parametrize("where", ["people.jellyp", "some/people.rdfp", "people.jellyp.gz"])
def test_name_of_a_file_is_a_place(where):
    assert place_of(where).file == where


@pytest.mark.parametrize("where", ["people", "people.nq", "", "http://localhost:8080", "http://localhost:8080/"])
def test_what_is_no_place_of_a_log_is_refused(where):
    with pytest.raises(UsageError, match="logs/NAME"):
        open_log(where)


def test_log_of_a_database_is_opened_and_made(tmp_path, patches):
    where = f"sqlite:///{tmp_path}/people.db#people"

    with open_log(where, creates=LogOptions(rdf_star=False)) as log:
        log.append(patches.one())
    with open_log(where, creates=True) as again:
        assert again.head().version == 1
        assert again.describe().options == LogOptions(rdf_star=False)


def test_only_log_of_a_database_needs_no_name(tmp_path):
    database = f"sqlite:///{tmp_path}/people.db"
    open_log(f"{database}#people", creates=True).close()

    with open_log(database) as log:
        assert log.name == "people"

    open_log(f"{database}#pets", creates=True).close()
    with pytest.raises(UsageError, match="several logs"):
        open_log(database)


def test_database_without_logs_wants_a_name(tmp_path):
    with pytest.raises(LogNotFound, match="#NAME"):
        open_log(f"sqlite:///{tmp_path}/people.db", creates=True)


def test_database_that_is_not_there_is_not_made(tmp_path):
    with pytest.raises(UsageError, match="no database"):
        open_log(f"sqlite:///{tmp_path}/people.db#people")

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("as_path", [True, False])
def test_file_is_opened_and_made(tmp_path, patches, as_path):
    where = tmp_path / "people.jellyp"

    with open_log(where if as_path else str(where)) as log, pytest.raises(LogNotFound):
        log.head()
    for version in (1, 2):
        with open_log(where if as_path else str(where), creates=True) as log:
            assert log.append(patches.one()).version == version


def test_log_of_a_service_is_opened_without_asking():
    with open_log("http://127.0.0.1:1/logs/people", token="key") as log:
        assert isinstance(log, HttpPatchLog)
        assert log.name == "people"


def test_open_log_is_closed_once(tmp_path):
    opened = open_log(f"sqlite:///{tmp_path}/people.db#people", creates=True)

    assert opened.log.head().version == 0
    opened.close()
    opened.close()
