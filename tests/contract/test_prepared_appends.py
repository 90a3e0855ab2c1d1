"""Appends that are checked first and have their place in the log later, several at once."""

from queue import SimpleQueue

import pytest

from patchlog.errors import CodecError, HeadMismatch, LogNotFound, StorageError, TransactionError, UsageError
from patchlog.log.records import Appended, LogOptions


@pytest.fixture
def submit(store):
    def outcomes_of(*appends):
        told = SimpleQueue()
        store.submit(appends, told.put)
        return told.get(timeout=60)

    return outcomes_of


@pytest.fixture
def known_log(staging_log):
    """A log of which the options are known."""
    staging_log.stage().discard()
    return staging_log


def test_are_told_of_together_and_in_their_order(known_log, patches, submit):
    appends = [known_log.prepare(*patches.one(subject, id=id)) for subject, id in (("a", patches.A), ("b", patches.B))]

    outcomes = submit(*appends)

    assert [(answer.first_version, answer.version, answer.id) for answer in outcomes] == [
        (1, 1, patches.A),
        (2, 2, patches.B),
    ]
    assert known_log.head().id == patches.B
    assert known_log.verify().is_sound


def test_are_stored_as_other_appends_are(store, known_log, patches, submit):
    store.create("other")
    data = b"".join(patches.one("a", id=patches.A)), b"".join(patches.one("b", id=patches.B))
    for body in data:
        store.log("other").append([body])

    submit(*map(known_log.prepare, data))

    assert b"".join(known_log.read_stored()) == b"".join(store.log("other").read_stored())


def test_one_that_is_refused_leaves_the_others_theirs(known_log, patches, submit):
    appends = [known_log.prepare(*patches.one(subject)) for subject in "abc"]
    appends[1].expected_head = patches.C

    first, second, third = submit(*appends)

    assert (first.version, third.version) == (1, 2)
    assert isinstance(second, HeadMismatch)


def test_goes_on_the_head_that_is_expected(known_log, patches, submit):
    known_log.append(patches.one("a", id=patches.A))
    append = known_log.prepare(*patches.one("b"))
    append.expected_head = patches.A

    [outcome] = submit(append)

    assert outcome.version == 2


def test_retry_is_told_the_version_that_there_is(known_log, patches, submit):
    data = b"".join(patches.one("a", id=patches.A))

    first, again = submit(known_log.prepare(data), known_log.prepare(data))

    assert not first.is_retry
    assert again == Appended(1, 1, patches.A, first.operations, first.bytes, is_retry=True)


def test_says_what_it_knows_of_its_patches(known_log, patches):
    data = b"".join((*patches.one("a", id=patches.A, prev=patches.B), *patches.one("b", id=patches.C)))

    prepared = known_log.prepare(data)

    assert [(patch.id, patch.prev) for patch in prepared.patches] == [(patches.A, patches.B), (patches.C, None)]


@pytest.mark.parametrize(
    ("text", "error"),
    [("", UsageError), ("TX .\nA <s> <p> <o> .\n", TransactionError), ("A <s> .\n", CodecError)],
)
def test_what_is_not_well_formed_is_refused_at_once(known_log, text, error):
    with pytest.raises(error):
        known_log.prepare(text.encode(), "rdf-patch")


def test_what_has_grown_too_much_to_wait_in_memory_is_not_prepared(known_log):
    rows = [f'A <s> <p> "{letter * (400 << 10)}" .\n'.encode() for letter in "abc"]

    assert known_log.prepare(b"".join(rows[:2]), "rdf-patch") is not None
    assert known_log.prepare(b"".join(rows), "rdf-patch") is None


def test_log_that_nobody_has_asked_for_is_not_waited_for(sql_log, patches):
    assert sql_log.prepare(*patches.one("a")) is None


def test_log_that_was_replaced_meanwhile_gets_nothing(store, known_log, patches, submit):
    prepared = known_log.prepare(*patches.one("a"))
    store.delete("people")
    store.create("people", LogOptions(rdf_star=False))

    [outcome] = submit(prepared)

    assert isinstance(outcome, LogNotFound)
    assert store.log("people").head().version == 0


def test_closed_store_takes_none(sql_store, sql_log, patches):
    sql_log.stage().discard()
    prepared = sql_log.prepare(*patches.one("a"))
    sql_store.close()

    with pytest.raises(StorageError):
        sql_store.submit([prepared], lambda _: None)


def test_who_cannot_be_told_leaves_the_others_theirs(sql_store, sql_log, patches):
    sql_log.stage().discard()
    told = SimpleQueue()

    def fail(_):
        raise ZeroDivisionError

    sql_store.submit([sql_log.prepare(*patches.one("a"))], fail)
    sql_store.submit([sql_log.prepare(*patches.one("b"))], told.put)

    assert [outcome.version for outcome in told.get(timeout=60)] == [2]
