"""Logs by name: what every store of logs does, whatever keeps it."""

import uuid

import pytest

from patchlog.codec.options import PatchOptions
from patchlog.engine import PatchDecoder
from patchlog.errors import InvalidTerm, LogAlreadyExists, LogNotFound, UsageError
from patchlog.log.records import EMPTY_HEAD, LogOptions
from patchlog.model import Add


def test_new_log_is_empty(store):
    description = store.create("people")

    log = store.log("people")
    assert log.head() == description.head == EMPTY_HEAD
    assert (description.name, description.first_version, description.patches, description.bytes) == ("people", 1, 0, 0)
    assert description == log.describe()
    assert list(log.read()) == []
    assert log.verify().is_sound


def test_log_keeps_its_options(store, patches):
    options = LogOptions(rdf_star=False, generalized_statements=False)

    store.create("plain", options)

    log = store.log("plain")
    assert log.describe().options == options
    with pytest.raises(InvalidTerm):
        log.append(patches.stream([Add("<s>", "<p>", "<<( <a> <b> <c> )>>", "")], options=PatchOptions(rdf_star=True)))
    log.append(patches.one())
    decoder = PatchDecoder()
    list(decoder.feed(b"".join(chunk for logged in log.read() for chunk in logged.chunks)))
    assert decoder.options == options.patch_options


def test_id_of_a_log_is_no_name_of_another(store):
    """RDF Delta's clients name logs by id: their patches went into the log of whoever had taken it as a name."""
    id = store.create("people").id

    for name in (id, id.upper()):
        with pytest.raises(UsageError, match="is the id of another log"):
            store.create(name)
        with pytest.raises(LogNotFound):
            store.log(name).describe()
    assert store.create(str(uuid.uuid4())).patches == 0


def test_name_is_given_once(store):
    store.create("people")

    with pytest.raises(LogAlreadyExists):
        store.create("people")


@pytest.mark.parametrize("name", ["", ".", "..", "-a", "a/b", "a\\b", "a b", "a\0", "é", "a" * 101, "a\n", "%2f"])
def test_hostile_names_are_refused(store, name):
    with pytest.raises(UsageError, match="not the name of a log"):
        store.create(name)
    with pytest.raises(UsageError, match="not the name of a log"):
        store.log(name)


@pytest.mark.parametrize("name", ["a", "_", "A.b-c_1", "0", "a" * 100])
def test_plain_names_are_taken(store, name):
    assert store.create(name).name == name


@pytest.mark.parametrize(
    "call",
    [
        lambda log: log.head(),
        lambda log: log.describe(),
        lambda log: log.append([]),
        lambda log: log.read(),
        lambda log: log.find(1),
        lambda log: log.verify(),
        lambda log: log.truncate_before(1),
        lambda log: log.wait_for(1, 1),
    ],
    ids=["head", "describe", "append", "read", "find", "verify", "truncate_before", "wait_for"],
)
def test_log_that_is_not_there_is_not_found(store, call):
    with pytest.raises(LogNotFound, match="nobody"):
        call(store.log("nobody"))


def test_logs_are_listed_by_name_a_page_at_a_time(store):
    for name in ("b", "B", "a", "a-b", "_"):
        store.create(name)

    names = [log.name for log in store.list()]
    first = store.list(limit=2)
    rest = store.list(after=first[-1].name)

    assert names == ["B", "_", "a", "a-b", "b"]
    assert [log.name for log in first + rest] == names


def test_deleted_log_is_gone_and_its_name_is_free(store, patch_log, patches):
    before = patch_log.describe().id
    patch_log.append(patches.one())

    store.delete("people")

    with pytest.raises(LogNotFound):
        patch_log.head()
    with pytest.raises(LogNotFound):
        store.delete("people")
    again = store.create("people")
    assert (again.head, again.id == before) == (EMPTY_HEAD, False)
    assert list(patch_log.read()) == []
