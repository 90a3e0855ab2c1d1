"""The data source `patchlog`: what is read is what took effect, and what is written is a patch."""

import pytest
from pyspark.errors import AnalysisException

from api.keys import create_key
from patchlog.client import HttpLogStore
from patchlog.log.database import Database
from patchlog.model import (
    Add,
    Delete,
    NamespaceAdd,
    TransactionAbort,
    TransactionCommit,
    TransactionStart,
)
from patchlog.patch import write
from patchlog.places import open_log
from tests.apply.conftest import running_service

G = "<http://example.org/g>"


@pytest.fixture
def source(session, history):
    def load(**options):
        return session.read.format("patchlog").options(url=history.url, log=history.name, **options).load()

    return load


def quad(number, graph=""):
    return (f"<http://example.org/{number}>", "<http://example.org/p>", f'"{number}"', graph)


def test_only_what_took_effect_is_read_and_raw_has_the_rest(source, history):
    history.append([Add(*quad(1)), TransactionStart(), Add(*quad(2)), TransactionAbort(), Delete(*quad(1))])

    rows, raw = source().collect(), source(raw="true").collect()

    assert [(row.position, row.operation, row.object) for row in rows] == [(5, "-", '"1"')]
    assert [(row.operation, row.object) for row in raw] == [("+", '"1"'), ("+", '"2"'), ("-", '"1"')]


def test_random_history_is_read_as_its_effect(source, history):
    history.grow(40)

    rows = source(partitions="3").collect()

    found = {(row.version, row.operation, row.subject, row.predicate, row.object, row.graph) for row in rows}
    assert found == history.model.changes
    assert len(rows) == len(found)


def test_bounds_on_version_and_graph_are_kept_before_rows_reach_spark(source, history):
    for number in range(1, 7):
        history.append([Add(*quad(number)), Add(*quad(number, G))])

    rows = source(after="1").where(f"version > 2 AND version <= 4 AND graph = '{G}' AND object != '\"9\"'")

    assert [(row.version, row.graph) for row in rows.collect()] == [(3, G), (4, G)]


def test_namespaces_are_a_view_of_their_own(source, history):
    history.append([NamespaceAdd("ex", "<http://example.org/#>", ""), Add(*quad(1))])

    [row] = source(view="namespaces").collect()

    assert (row.version, row.operation, row.graph, row.name, row.iri) == (1, "+", "", "ex", "<http://example.org/#>")


def test_stream_goes_on_from_its_checkpoint_with_a_limit_on_versions(session, history, tmp_path):
    def run():
        stream = session.readStream.format("patchlog").options(url=history.url, log=history.name)
        query = (
            stream.option("maxVersionsPerTrigger", 2)
            .load()
            .writeStream.trigger(availableNow=True)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .format("delta")
            .start(str(tmp_path / "table"))
        )
        query.awaitTermination()
        return len([progress for progress in query.recentProgress if progress["numInputRows"]])

    for number in range(3):
        history.append([Add(*quad(number))])
    batches = run()
    history.append([Add(*quad(3))])
    run()

    found = session.read.format("delta").load(str(tmp_path / "table"))
    assert batches == 2
    assert sorted(row.version for row in found.collect()) == [1, 2, 3, 4]


def test_rows_are_appended_as_a_patch_of_one_transaction(session, history, source):
    rows = session.createDataFrame(
        [("+", *quad(1)), ("-", *quad(2))],
        "operation STRING, subject STRING, predicate STRING, object STRING, graph STRING",
    )

    rows.write.format("patchlog").mode("append").options(url=history.url, log=history.name).save()

    assert history.log.head().version == 1
    assert history.log.find(1).transactions == 1
    assert {(row.operation, row.object) for row in source().collect()} == {("+", '"1"'), ("-", '"2"')}


def test_rows_become_a_patch_for_each_group(session, history, source):
    rows = session.createDataFrame(
        [(day, "+", *quad(day)[:3]) for day in (2, 1, 2)],
        "day INT, operation STRING, subject STRING, predicate STRING, object STRING",
    )

    options = {"url": history.url, "log": history.name, "group": "day"}
    rows.write.format("patchlog").mode("append").options(**options).save()

    assert [(row.version, row.object) for row in source().orderBy("version").collect()] == [(1, '"1"'), (2, '"2"')]


def test_rows_without_a_group_become_the_first_patch(session, history, source):
    rows = session.createDataFrame(
        [(day, "+", *quad(day or 0)[:3]) for day in ("1", None)],
        "day STRING, operation STRING, subject STRING, predicate STRING, object STRING",
    )

    options = {"url": history.url, "log": history.name, "group": "day"}
    rows.write.format("patchlog").mode("append").options(**options).save()

    assert [(row.version, row.object) for row in source().orderBy("version").collect()] == [(1, '"0"'), (2, '"1"')]


@pytest.mark.parametrize(
    ("option", "said"),
    [({"afer": "1"}, "afer is no option"), ({"after": "x"}, "option after"), ({"raw": "yes"}, "option raw")],
)
def test_option_that_is_none_is_refused(session, history, option, said):
    reader = session.read.format("patchlog").options(url=history.url, log=history.name, **option)

    with pytest.raises(Exception, match=said):
        reader.load().count()


def test_service_that_asks_for_keys_is_read_and_written_with_the_option_token(session, tmp_path):
    database = f"sqlite:///{tmp_path}/log.db"
    open_log(f"{database}#people", creates=True).close()
    opened = Database(database)
    _, key = create_key(opened, ["log:people:append"], name="Spark")
    opened.close()
    rows = session.createDataFrame(
        [("+", *quad(1)[:3])], "operation STRING, subject STRING, predicate STRING, object STRING"
    )

    with running_service(tmp_path, database, "--keys", "required") as url:
        right, wrong = ({"url": url, "log": "people", "token": text} for text in (key, f"{key[:-4]}AAAA"))
        rows.write.format("patchlog").mode("append").options(**right).save()
        [row] = session.read.format("patchlog").options(**right).load().collect()
        with pytest.raises(AnalysisException) as reading:
            session.read.format("patchlog").options(**wrong).load().collect()
        with pytest.raises(AnalysisException) as writing:
            rows.write.format("patchlog").mode("append").options(**wrong).save()
        assert HttpLogStore(url, key).log("people").head().version == 1

    assert (row.version, row.subject) == (1, "<http://example.org/1>")
    for error in (reading, writing):
        assert "UsageError: this service has no such key" in str(error.value)
        assert ".java:" not in str(error.value)
        assert ".scala:" not in str(error.value)
        assert key[:-4] not in str(error.value)


def test_file_is_a_log_too(session, tmp_path):
    path = tmp_path / "some.rdfp"
    write(path, [TransactionStart(), Add(*quad(1)), TransactionCommit()])

    def load():
        return session.read.format("patchlog").option("file", str(path)).load()

    rows = load().selectExpr("'-' AS operation", "subject", "predicate", "object", "graph")
    rows.write.format("patchlog").mode("append").option("file", str(path)).save()

    found = {(row.version, row.operation, row.subject) for row in load().collect()}
    assert found == {(1, "+", "<http://example.org/1>"), (2, "-", "<http://example.org/1>")}
