"""Down to what older releases know and up again, with data in all tables: logs stay as they were, byte for byte."""

import pytest

from api.keys import create_key, list_keys
from patchlog.log.database import Database
from patchlog.log.migration import migrate, migrate_down
from patchlog.log.stores import open_store
from patchlog.log.tables import REVISION

REVISIONS = [f"{number:04}" for number in range(1, int(REVISION))]


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/log.db"
    return request.getfixturevalue("postgresql_server").new_database()


@pytest.fixture
def database(url):
    one = Database(url)
    migrate(one)
    yield one
    one.close()


def fill(url, patches, folder):
    store = open_store(url, snapshots=str(folder / "snapshots"))
    for name in ("people", "places"):
        log = store.create(name) and store.log(name)
        for number in range(5):
            log.append(patches.one(f"s{number}"))
    store.log("people").consumers.advance("spark", 3)
    store.log("people").snapshots.build(4)
    store.close()


def contents(url, folder):
    """All that a log has to have after an upgrade."""
    store = open_store(url, snapshots=str(folder / "snapshots"))
    try:
        return {
            log.name: (
                log.describe(),
                [(one.record, b"".join(one.chunks)) for one in log.read()],
                log.verify().first_bad_version,
            )
            for log in (store.log(one.name) for one in store.list())
        }
    finally:
        store.close()


@pytest.mark.parametrize("revision", REVISIONS)
def test_logs_are_the_same_after_a_downgrade_and_an_upgrade(url, database, patches, tmp_path, revision):
    fill(url, patches, tmp_path)
    before = contents(url, tmp_path)
    _, key = create_key(database, ["log:*:read"], name="a follower")

    migrate_down(database, revision)
    migrate(database)

    assert contents(url, tmp_path) == before
    assert all(bad is None for _, _, bad in before.values())
    # What an older release does not know is gone: keys were new in 0002.
    assert [one.name for one in list_keys(database)] == (["a follower"] if revision >= "0002" else [])
    assert key
