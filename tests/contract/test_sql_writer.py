"""What makes appends to databases fast, as far as it can be told without a clock."""

import pytest
from sqlalchemy import event, text

from patchlog.log.sql import SqlLogStore


@pytest.mark.parametrize("ids", [1, 3, 500])
def test_known_patches_are_looked_up_and_not_searched_for(tmp_path, patches, ids):
    """SQLite walked through the whole log for three ids and more."""
    store = SqlLogStore(f"sqlite:///{tmp_path}/log.db")
    store.create("people")
    asked = []

    @event.listens_for(store.database._writing, "begin")
    def hear(connection):
        connection.connection.dbapi_connection.set_trace_callback(asked.append)

    many = [patches.operations(f"s{i}", id=f"aaaaaaaa-0000-4000-8000-{i:012}") for i in range(ids)]

    store.log("people").append(patches.stream(*many))

    statement = next(text for text in asked if "id IN" in text)
    with store.database.reading() as connection:
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}").all()
        assert connection.execute(text("SELECT count(*) FROM patch")).scalar() == ids
    assert [row.detail for row in plan] == ["SEARCH patch USING INDEX sqlite_autoindex_patch_2 (log=? AND id=?)"]
    store.close()
