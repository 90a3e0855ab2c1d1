"""What logs hand to those who pass it on: the bytes of patches, which nothing is made of on the way."""

import pytest
from sqlalchemy import text

from patchlog.errors import PositionGone, StorageError
from patchlog.log.memory import MemoryLogStore
from patchlog.log.sql import SqlLogStore


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def store(request, tmp_path):
    if request.param == "memory":
        opened = MemoryLogStore()
    elif request.param == "sqlite":
        opened = SqlLogStore(f"sqlite:///{tmp_path}/log.db")
    else:
        opened = SqlLogStore(request.getfixturevalue("postgresql_url"))
    opened.create("people")
    yield opened
    opened.close()


@pytest.fixture
def sql_store(tmp_path):
    opened = SqlLogStore(f"sqlite:///{tmp_path}/log.db")
    opened.create("people")
    yield opened
    opened.close()


def laid_end_to_end(log, after=0, **bounds):
    return b"".join(chunk for logged in log.read(after, **bounds) for chunk in logged.chunks)


def test_stored_bytes_are_those_of_the_patches(store, patches):
    """Small ones, one that was staged in many chunks, and several of one upload."""
    log = store.log("people")
    log.append(patches.one("a"))
    log.append(patches.one("large", values=[f'"{i}-{"x" * 1000}"' for i in range(3000)]))
    log.append(patches.stream(*(patches.operations(f"s{i}") for i in range(600))))

    whole = list(log.read_stored())

    assert b"".join(whole) == laid_end_to_end(log)
    assert all(len(piece) >= 256 << 10 for piece in whole[:-1])
    assert b"".join(log.read_stored(2, until=300)) == laid_end_to_end(log, 2, until=300)
    assert b"".join(log.read_stored(602)) == b""


def test_stored_bytes_that_were_truncated_away_are_gone(store, patches):
    log = store.log("people")
    for subject in "abc":
        log.append(patches.one(subject))
    log.snapshots.build(2)
    log.truncate_before(3)

    assert b"".join(log.read_stored(2)) == laid_end_to_end(log, 2)
    with pytest.raises(PositionGone):
        log.read_stored(1)


@pytest.mark.parametrize("missing", ["patch WHERE version = 2", "patch_chunk WHERE body = 2"])
def test_stored_bytes_that_are_missing_are_not_passed_over(sql_store, patches, missing):
    log = sql_store.log("people")
    for subject in "abc":
        log.append(patches.one(subject))
    with sql_store.database.writing() as connection:
        connection.execute(text(f"DELETE FROM {missing}"))

    with pytest.raises(StorageError, match="is missing"):
        list(log.read_stored())


def test_deletes_are_found_without_reading_patches(store):
    log = store.log("people")
    for row in ("A", "A", "D", "A"):
        log.append([f'TX .\n{row} <http://e/s> <http://e/p> "o" .\nTC .\n'.encode()], format="rdf-patch")

    found = {(after, until): log.has_deletes(after, until) for after in range(5) for until in range(after, 5)}

    assert found == {(after, until): after < 3 <= until for after, until in found}
