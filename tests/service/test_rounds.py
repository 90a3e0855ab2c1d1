"""Rounds of appends: each is told what came of it, whatever comes of the others."""

import asyncio
import sqlite3
from contextlib import closing

import pytest

from api.rounds import Rounds
from patchlog.errors import UsageError
from patchlog.log.records import ANY_HEAD, Appended
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
def upload(store, patches):
    def uploaded(*values):
        one = store.log("people").stage_at_once()
        for value in values:
            one.write(*patches.one(value))
        return one

    return uploaded


def test_append_that_never_reaches_the_writer_waits_for_its_round_and_holds_nobody_up(database, store, upload):
    async def run():
        loop, rounds = asyncio.get_running_loop(), Rounds()
        first, good, empty = loop.create_future(), loop.create_future(), loop.create_future()

        def lock(outcome):
            database.execute("BEGIN IMMEDIATE")
            first.set_result(outcome)

        rounds.submit(upload("a"), ANY_HEAD, lock)
        rounds.submit(upload("b"), ANY_HEAD, good.set_result)
        rounds.submit(store.log("people").stage_at_once("rdf-patch"), ANY_HEAD, empty.set_result)
        await first
        await asyncio.sleep(0.3)
        were_told = good.done(), empty.done()
        database.execute("ROLLBACK")
        return were_told, await first, await good, await empty

    were_told, first, good, empty = asyncio.run(asyncio.wait_for(run(), 60))

    assert were_told == (False, False)
    assert (first.version, good.version) == (1, 2)
    assert isinstance(empty, UsageError)


def test_answer_that_fails_leaves_the_others_theirs(upload):
    told, failures = [], []

    def fail(_):
        raise ZeroDivisionError

    async def run():
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context["exception"]))
        rounds = Rounds()
        rounds.submit(upload("a"), ANY_HEAD, told.append)
        rounds.submit(upload("b"), ANY_HEAD, fail)
        rounds.submit(upload("c"), ANY_HEAD, told.append)
        told.append(await rounds.append(upload("d"), ANY_HEAD))

    asyncio.run(asyncio.wait_for(run(), 60))

    assert [type(outcome) for outcome in told] == [Appended] * 3
    assert sorted(outcome.version for outcome in told) == [1, 3, 4]
    assert [type(failure) for failure in failures] == [ZeroDivisionError]
