"""Rounds of appends: each is told what came of it, whatever comes of the others."""

import asyncio
import sqlite3
from contextlib import closing

import pytest

from api.rounds import Rounds
from patchlog.errors import StorageError
from patchlog.log.records import Appended
from patchlog.log.sql import SqlLogStore


@pytest.fixture
def store(tmp_path):
    one = SqlLogStore(f"sqlite:///{tmp_path}/log.db")
    one.create("people")
    one.options("people")
    yield one
    one.close()


@pytest.fixture
def database(store):
    """A connection of somebody else, who can lock the database."""
    with closing(sqlite3.connect(store.database.url.database, isolation_level=None)) as connection:
        yield connection


@pytest.fixture
def prepared(store, patches):
    def prepare(value):
        return store.log("people").prepare(*patches.one(value))

    return prepare


def test_appends_wait_for_the_round_that_is_with_the_writer_and_hold_nobody_up(store, database, prepared):
    async def run():
        loop, rounds = asyncio.get_running_loop(), Rounds(store.submit)
        first, second = loop.create_future(), loop.create_future()

        def lock(outcome):
            database.execute("BEGIN IMMEDIATE")
            first.set_result(outcome)

        rounds.submit(prepared("a"), lock)
        rounds.submit(prepared("b"), second.set_result)
        await first
        await asyncio.sleep(0.3)
        was_told = second.done()
        database.execute("ROLLBACK")
        return was_told, await first, await second

    was_told, first, second = asyncio.run(asyncio.wait_for(run(), 60))

    assert not was_told
    assert (first.version, second.version) == (1, 2)


@pytest.mark.parametrize(("count", "size", "most"), [(1100, 10, 512), (20, 900 << 10, 10)])
def test_rounds_are_no_larger_than_one_transaction_is_to_be(store, count, size, most):
    rounds_of, told = [], []

    def submit(appends, told):
        rounds_of.append(len(appends))
        store.submit(appends, told)

    async def run():
        rounds = Rounds(submit)
        text = 'A <s> <p> "{}" .\n'
        appends = [
            store.log("people").prepare(text.format(str(number).ljust(size, "v")).encode(), "rdf-patch")
            for number in range(count)
        ]
        told.extend(await asyncio.gather(*map(rounds.append, appends)))

    asyncio.run(asyncio.wait_for(run(), 60))

    assert [outcome.version for outcome in told] == [*range(1, count + 1)]
    assert sum(rounds_of) == count
    assert max(rounds_of) == most
    assert len(rounds_of) <= 2 + count // most


def test_writer_that_takes_nothing_is_told_to_all(store, prepared):
    async def run():
        rounds = Rounds(store.submit)
        appends = [prepared("a"), prepared("b")]
        store.close()
        return await asyncio.gather(*map(rounds.append, appends), return_exceptions=True)

    outcomes = asyncio.run(asyncio.wait_for(run(), 60))

    assert [type(outcome) for outcome in outcomes] == [StorageError] * 2


def test_answer_that_fails_leaves_the_others_theirs(store, prepared):
    told, failures = [], []

    def fail(_):
        raise ZeroDivisionError

    async def run():
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context["exception"]))
        rounds = Rounds(store.submit)
        rounds.submit(prepared("a"), told.append)
        rounds.submit(prepared("b"), fail)
        rounds.submit(prepared("c"), told.append)
        told.append(await rounds.append(prepared("d")))

    asyncio.run(asyncio.wait_for(run(), 60))

    assert [type(outcome) for outcome in told] == [Appended] * 3
    assert sorted(outcome.version for outcome in told) == [1, 3, 4]
    assert [type(failure) for failure in failures] == [ZeroDivisionError]
