"""Time travel over what the log had forgotten: refused where nobody knows the answer, exact where it is known."""

import pytest

from patchlog.errors import UsageError
from patchlog.model import Add, Delete
from spark.looking_back import quads_at
from tests.apply.conftest import places_of


def grow(history, until):
    """Return the quads of each version."""
    states = {history.model.version: dict(history.model.quads)}
    for number in range(history.model.version, until):
        history.append([Add("<a:s>", "<a:p>", f'"{number}"', ""), Delete("<a:s>", "<a:p>", f'"{number - 3}"', "")])
        states[number + 1] = dict(history.model.quads)
    return states


def found_at(tables, version):
    rows = quads_at(tables, version).collect()
    return {(row.subject, row.predicate, row.object, row.graph) for row in rows}


@pytest.mark.parametrize("is_noted", [True, False], ids=["noted", "before"])
def test_versions_that_the_log_had_forgotten_are_refused_and_all_others_are_right(
    history, apply, warehouse, in_process, session, is_noted
):
    states = grow(history, 2)
    apply(history)
    states |= grow(history, 6)
    history.log.snapshots.build(5)
    history.log.truncate_before(6, force=True)
    place = places_of(history, warehouse)

    code, _, said = in_process("apply", *place)
    states |= grow(history, 8)
    tables = apply(history)
    if not is_noted:
        session.sql(f"ALTER TABLE delta.`{warehouse.folder}/changes` UNSET TBLPROPERTIES ('patchlog.gaps')")
        tables = apply(history)

    assert code == 0
    assert "changes: version 5 from the snapshot of the log, which has forgotten versions 3 to 4: " in said
    assert "; 1 behind" in said
    for version in (0, 1, 2, 5, 6, 7, 8):
        assert found_at(tables, version) == set(states[version]), version
    for version in (3, 4):
        with pytest.raises(UsageError, match="forgotten the versions 3 to 4"):
            quads_at(tables, version)
    code, out, said = in_process("at", *place, "--version", 4)
    assert (code, out) == (1, "")
    assert "nearest: 2 and 5" in said
    assert in_process("snapshot", "export", *place, "--version", 3, "--to", warehouse.folder + "-parts")[0] == 1


def test_tables_that_begin_with_a_snapshot_have_nothing_from_before_it(history, warehouse, in_process):
    grow(history, 4)
    history.log.snapshots.build(3)
    history.log.truncate_before(4, force=True)
    place = places_of(history, warehouse)

    code, _, said = in_process("apply", *place)

    assert (code, "which has forgotten versions 1 to 2" in said) == (0, True)
    assert in_process("at", *place, "--version", 2)[0] == 1
    assert in_process("at", *place, "--version", 3)[0] == 0
    assert in_process("verify", *place)[0] == 0


def test_columns_that_others_have_added_are_left_alone(history, apply, warehouse, in_process, session):
    grow(history, 2)
    apply(history)
    for table in ("changes", "quads", "namespaces"):
        session.sql(f"ALTER TABLE delta.`{warehouse.folder}/{table}` ADD COLUMNS (note STRING)")
    grow(history, 4)
    place = places_of(history, warehouse)

    assert in_process("apply", *place)[0] == 0
    warehouse.check(history.model)
    code, _, said = in_process("verify", *place)
    assert code == 0, said
    for version in (1, 3, 4):
        assert in_process("at", *place, "--version", version)[0] == 0
    session.sql(f"UPDATE delta.`{warehouse.folder}/quads` SET note = 'mine'")
    grow(history, 5)
    assert in_process("apply", *place)[0] == 0
    warehouse.check(history.model)
    assert in_process("verify", *place)[0] == 0
