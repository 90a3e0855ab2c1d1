"""What goes with the tables: verify, versions of the past, maintenance, other readers, snapshots to begin from."""

import duckdb
import pytest
from delta.exceptions import ConcurrentDeleteReadException

from patchlog.errors import UsageError
from patchlog.model import Add, Delete, NamespaceAdd
from spark.decoding import decoded
from spark.looking_back import moment_at, quads_at
from spark.metrics import write_metrics
from spark.origin import Origin
from spark.verification import verify

Q = ("<http://example.org/s>", "<http://example.org/p>", '"o"', "")


def check(session, history, tables):
    return verify(session, Origin.of(history.url, history.name), tables)


def test_verify_finds_nothing_in_sound_tables_and_names_what_is_wrong_in_others(session, history, apply, warehouse):
    history.append([Add(*Q)])
    history.grow(3)
    tables = apply(history)
    sound = check(session, history, tables)

    session.sql(f"DELETE FROM delta.`{warehouse.folder}/changes` WHERE version = 1")
    session.sql(f"UPDATE delta.`{warehouse.folder}/quads` SET since = 9 WHERE object = '\"o\"'")
    report = check(session, history, tables)

    assert sound.differences == ()
    assert sound.quads == len(history.model.quads)
    assert str(report.differences[0]) == "changes: version 1 has 0 operations in the table, 1 in the log"
    assert any("since version 9" in str(difference) for difference in report.differences)


def test_every_version_of_the_log_is_found_again_also_where_delta_has_forgotten_it(
    history, apply, warehouse, in_process, tmp_path
):
    states = {0: {}}
    for patches in (1, 2):
        for _ in range(patches):
            history.grow(1)
            states[history.model.version] = history.model.quads
        tables = apply(history)
    place = ["--source", history.url, "--log", history.name, "--warehouse", warehouse.folder]

    for version, wanted in states.items():
        assert quads_of(quads_at(tables, version)) == wanted
    [delta_version] = [found for found, said in tables.quads.said() if said["to"] == 1]
    code, said, _ = in_process("at", *place, "--version", 2)
    assert (code, said) == (0, f"Delta version {delta_version} of quads, and the changes of version 2\n")

    assert in_process("optimize", *place, "--keep-hours", 0, "--allow-unsafe-retention")[0] == 0
    for version, wanted in states.items():
        assert quads_of(quads_at(tables, version)) == wanted
    assert moment_at(tables, 3).is_exact
    code, said, _ = in_process("at", *place, "--version", 2, "--to", tmp_path / "then")
    assert (code, said) == (0, "nothing, and the changes of versions 1 to 2\n")
    assert quads_of(warehouse.session.read.format("delta").load(str(tmp_path / "then"))) == states[2]
    code, _, said = in_process("at", *place, "--version", 4)
    assert (code, said) == (1, "error: version 4 is not in the tables, which are at version 3\n")


def test_files_that_running_jobs_may_need_are_deleted_by_a_flag_only(history, apply, warehouse, in_process):
    history.grow(2)
    tables = apply(history)
    place = ["--source", history.url, "--log", history.name, "--warehouse", warehouse.folder]

    short = in_process("optimize", *place, "--keep-hours", 167)
    safe = in_process("optimize", *place, "--keep-hours", 168)
    tables.quads.set_properties({"delta.deletedFileRetentionDuration": "interval 1 days 2 hours"})
    kept_short = in_process("optimize", *place)
    allowed = in_process("optimize", *place, "--allow-unsafe-retention")

    assert (short[0], safe[0], kept_short[0], allowed[0]) == (1, 0, 1, 0)
    assert "would keep files for 167 hours, and Delta's safe age is 168" in short[2]
    assert "would keep files for 26 hours" in kept_short[2]
    assert "--allow-unsafe-retention" in short[2]


def quads_of(rows):
    return {(row.subject, row.predicate, row.object, row.graph): row.since for row in rows.collect()}


def test_optimized_tables_say_the_same_and_grow_on(session, history, apply, warehouse, in_process, monkeypatch):
    for _ in range(2):
        history.grow(2)
        apply(history)
    sql, refused = type(session).sql, []

    def refuse_once(self, statement, *more, **options):
        if statement.startswith("OPTIMIZE") and not refused:
            refused.append(statement)
            raise ConcurrentDeleteReadException("a job was quicker")
        return sql(self, statement, *more, **options)

    monkeypatch.setattr(type(session), "sql", refuse_once)
    place = ["--source", history.url, "--log", history.name, "--warehouse", warehouse.folder]
    code, said, told = in_process("optimize", *place)
    history.grow(2)
    apply(history)

    assert code == 0
    assert said.splitlines()[0] == "changes: 1 files, before 2"
    assert told == "changes: a job has changed it meanwhile, try 2 follows\n"
    warehouse.check(history.model)


def test_merge_that_meets_a_compaction_is_done_again(session, history, apply, warehouse, monkeypatch):
    """Delta itself refuses it: the files that it has read are gone when it commits."""
    for number in range(2):
        history.append([Add(*Q[:2], f'"{number}"', "")])
        apply(history)
    other, tried, compacted = session.newSession(), [], []

    def compact(_, point):
        if point == "adds-written" and not compacted:
            compacted.append(point)
            other.sql(f"OPTIMIZE delta.`{warehouse.folder}/quads` FULL")

    monkeypatch.setattr("spark.merging.may_die", compact)
    monkeypatch.setattr("spark.job.ApplyJob._tell_conflict", lambda _, times: tried.append(times))
    history.append([Delete(*Q[:2], '"0"', ""), Add(*Q[:2], '"2"', "")])
    apply(history)

    assert tried == [1]
    warehouse.check(history.model)


def test_tables_that_are_compacted_between_any_two_steps_are_right(session, history, apply, warehouse, monkeypatch):
    history.append([Add(*Q), Add("<a:s>", "<a:p>", "<a:o>", "")])
    apply(history)
    other, steps = session.newSession(), ["changes-read", "looking-up", "deletes-written", "adds-written"]

    def compact(_, point):
        if point in steps:
            steps.remove(point)
            for table in ("changes", "quads"):
                other.sql(f"OPTIMIZE delta.`{warehouse.folder}/{table}` FULL")

    for module in ("spark.job", "spark.merging"):
        monkeypatch.setattr(f"{module}.may_die", compact)
    history.append([Delete(*Q), Add("<b:s>", "<b:p>", "<b:o>", "")])
    apply(history)

    warehouse.check(history.model)
    assert not steps


def test_change_feeds_of_the_tables_say_what_the_patches_did(session, history, apply, warehouse):
    history.append([Add(*Q), NamespaceAdd("ex", "<a:>", "")])
    apply(history)
    history.append([Delete(*Q), Add("<a:s>", "<a:p>", "<a:o>", ""), NamespaceAdd("ex", "<b:>", "")])
    apply(history)

    def feed(table, *columns):
        changes = session.read.format("delta").options(readChangeFeed="true", startingVersion="0")
        changes = changes.load(f"{warehouse.folder}/{table}").orderBy("_commit_version", "_change_type")
        return [tuple(row) for row in changes.select("_change_type", *columns).collect()]

    assert feed("quads", "object", "since") == [("insert", '"o"', 1), ("delete", '"o"', 1), ("insert", "<a:o>", 2)]
    assert feed("namespaces", "iri") == [
        ("insert", "<a:>"),
        ("update_postimage", "<b:>"),
        ("update_preimage", "<a:>"),
    ]


def test_terms_are_taken_apart_into_columns(session):
    terms = [
        "<http://example.org/a\\u0020b>",
        "_:b",
        '"a\\"\\n\\\\n"',
        '"x"@en-GB',
        '"1"^^<a:int>',
        "<<( <a:s> <a:p> _:o )>>",
        "",
    ]
    rows = session.createDataFrame([(term,) for term in terms], "object STRING")

    found = decoded(rows, "object").collect()

    string, language = (
        "http://www.w3.org/2001/XMLSchema#string",
        "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString",
    )
    assert [tuple(row)[1:] for row in found] == [
        ("iri", "http://example.org/a b", None, None),
        ("blank node", "b", None, None),
        ("literal", 'a"\n\\n', string, None),
        ("literal", "x", language, "en-GB"),
        ("literal", "1", "a:int", None),
        ("triple", "<<( <a:s> <a:p> _:o )>>", None, None),
        ("default graph", None, None, None),
    ]
    assert [row.object for row in found] == terms


@pytest.mark.parametrize("deletion_vectors", [None, False], ids=["small", "never"])
def test_deltalake_reads_tables_and_quads_too_where_they_have_no_deletion_vectors(
    history, apply, warehouse, monkeypatch, deletion_vectors
):
    deltalake = pytest.importorskip("deltalake")
    if deletion_vectors is False:
        monkeypatch.setattr("spark.tables.LARGE_BYTES", 0)
    history.append([Add(*Q), Add("<a:s>", "<a:p>", "<a:o>", ""), NamespaceAdd("ex", "<http://example.org/#>", "")])
    apply(history, deletion_vectors=deletion_vectors)
    history.append([Delete(*Q)])
    apply(history, deletion_vectors=deletion_vectors)

    tables = {
        name: deltalake.DeltaTable(f"{warehouse.folder}/{name}").to_pyarrow_table().to_pylist()
        for name in ("changes", "quads", "namespaces")
    }

    assert sorted((row["version"], row["operation"]) for row in tables["changes"]) == [(1, "+"), (1, "+"), (2, "-")]
    assert [(row["subject"], row["since"]) for row in tables["quads"]] == [("<a:s>", 1)]
    assert [row["iri"] for row in tables["namespaces"]] == ["<http://example.org/#>"]


def test_tables_that_have_become_large_have_deletion_vectors_and_say_the_same(history, apply, warehouse, monkeypatch):
    for number in range(3):
        history.append([Add(f"<a:{number}>", "<a:p>", "<a:o>", ""), Delete(f"<a:{number - 1}>", "<a:p>", "<a:o>", "")])
        tables = apply(history, deletion_vectors=None)
        assert not tables.quads.has_deletion_vectors
    monkeypatch.setattr("spark.tables.LARGE_BYTES", 1)
    for number in range(3, 6):
        history.append([Add(f"<a:{number}>", "<a:p>", "<a:o>", ""), Delete(f"<a:{number - 1}>", "<a:p>", "<a:o>", "")])
        tables = apply(history, deletion_vectors=None)
        assert tables.quads.has_deletion_vectors

    warehouse.check(history.model)


def test_duckdb_reads_what_spark_wrote(history, apply, warehouse):
    history.append([Add(*Q), Add("<a:s>", "<a:p>", "<a:o>", "")])
    history.append([Delete(*Q)])
    apply(history)

    changes = duckdb.sql(
        f"SELECT version, operation FROM read_parquet('{warehouse.folder}/changes/*.parquet') ORDER BY ALL"
    )

    assert changes.fetchall() == [(1, "+"), (1, "+"), (2, "-")]


def test_log_that_has_forgotten_what_comes_next_is_taken_up_from_its_snapshot(history, apply, warehouse):
    history.append([Add(*Q), Add("<a:s>", "<a:p>", "<a:o>", ""), NamespaceAdd("ex", "<http://example.org/#>", "")])
    apply(history)
    history.append([Delete(*Q), NamespaceAdd("ex", "<http://example.org/2#>", "")])
    history.append([Add("<b:s>", "<b:p>", "<b:o>", "")])
    history.log.snapshots.build(3)
    history.log.truncate_before(4, force=True)
    history.append([Add(*Q)])

    apply(history)

    assert warehouse.quads() == {("<a:s>", "<a:p>", "<a:o>", ""): 1, ("<b:s>", "<b:p>", "<b:o>", ""): 3, Q: 4}
    assert warehouse.namespaces() == {("", "ex"): ("<http://example.org/2#>", 3)}
    assert {change[:2] for change in warehouse.changes()} == {(1, "+"), (3, "+"), (3, "-"), (4, "+")}


def test_log_that_was_taken_up_from_a_snapshot_is_verified_by_all_versions_that_it_still_has(session, history, apply):
    history.append([Add(*Q)])
    apply(history)
    for number in range(5):
        history.append([Add("<a:s>", "<a:p>", f'"{number}"', "")])
    for version in (2, 4):
        history.log.snapshots.build(version)
    history.log.truncate_before(3, force=True)

    tables = apply(history)

    assert verify(session, Origin.of(history.url, history.name), tables).differences == ()


def test_log_that_begins_with_a_snapshot_is_applied_with_it(history, apply, warehouse):
    history.log.snapshots.put(0, [b'<http://example.org/s> <http://example.org/p> "o" .\n'], "nquads")
    history.append([Add("<a:s>", "<a:p>", "<a:o>", "")])

    apply(history)

    assert warehouse.quads() == {Q: 0, ("<a:s>", "<a:p>", "<a:o>", ""): 1}


def test_tables_of_another_log_are_refused(history, apply, service):
    history.append([Add(*Q)])
    apply(history)
    other = type(history)(service, f"{history.name}-2", seed=1)

    with pytest.raises(UsageError, match="is of another log"):
        apply(other)


def test_position_is_told_to_the_log_and_to_prometheus(history, apply, tmp_path):
    history.append([Add(*Q)])
    path = tmp_path / "metrics.prom"

    tables = apply(history, tell=lambda done: write_metrics(path, done))

    assert history.log.consumers.find(tables.consumer_name()).version == 1
    assert 'patchlog_spark_version{table="changes"} 1' in path.read_text()
    assert 'patchlog_spark_lag_versions{table="quads"} 0' in path.read_text()
