"""A dataset into empty tables, by files that are written beside Delta: a table is as if Delta had written it."""

import json
from datetime import UTC, datetime, timedelta

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F  # noqa: N812  as everybody has it

from patchlog.model import Add, Delete
from patchlog.rdf import write
from spark import data_files
from spark.data_files import DataFiles

QUADS = 70_000
"""More than one block of what tasks share."""

LAST = "\U0010ffff"


def quad(number):
    return f"<a:{number}>", "<a:p>", f'"{number} of many"@en', "<a:g>" if number % 3 else ""


@pytest.fixture
def imported(history, warehouse, in_process, tmp_path):
    """A dataset in the log and in its tables; returns how the commands are told of both."""
    write(tmp_path / "all.nq", map(quad, range(QUADS)))
    place = ["--source", history.url, "--log", history.name, "--warehouse", warehouse.folder]
    assert in_process("snapshot", "import", tmp_path / "all.nq", *place)[0] == 0
    return place


def test_dataset_is_loaded_and_goes_on_as_any_other(history, apply, warehouse, in_process, imported):
    changes = warehouse.read("changes")
    assert warehouse.quads() == dict.fromkeys(map(quad, range(QUADS)), 0)
    assert changes.agg(F.count("*"), F.min("position"), F.max("position")).first()[:3] == (QUADS, 0, QUADS - 1)
    assert changes.select("version", "operation", "patch_id", "time").distinct().count() == 1
    assert warehouse.read("quads").where("subject = '<a:777>'").count() == 1
    time = changes.first().time.astimezone(UTC)
    assert changes.where(F.col("time") == F.lit(time)).count() == QUADS, "skipped by what the files say"
    assert changes.where(F.col("time") > F.lit(time)).count() == 0
    assert len(warehouse.read("quads").inputFiles()) > 1

    history.append([Delete(*quad(7)), Add(*quad(8)), Add(*quad(QUADS))])
    apply(history)

    assert warehouse.quads() == dict.fromkeys(map(quad, {*range(QUADS)} - {7}), 0) | {quad(QUADS): 1}
    code, said, _ = in_process("verify", *imported)
    assert (code, said.split(" ")[0]) == (0, f"{QUADS:,}")
    assert in_process("at", *imported, "--version", 0)[1].startswith("Delta version ")


@pytest.mark.parametrize("point", ["changes-read", "changes-committed", "quads-committed"])
def test_load_that_died_is_taken_up_where_the_tables_are(
    history, apply, warehouse, in_process, tmp_path, monkeypatch, point
):
    quads = {quad(number) for number in range(50)}
    write(tmp_path / "few.nq", quads)
    place = ["--source", history.url, "--log", history.name, "--warehouse", warehouse.folder]

    def die(_, passed):
        if passed == point:
            raise KeyboardInterrupt

    for module in ("spark.job", "spark.merging"):
        monkeypatch.setattr(f"{module}.may_die", die)
    assert in_process("snapshot", "import", tmp_path / "few.nq", *place)[0] != 0
    monkeypatch.undo()
    apply(history)

    assert warehouse.quads() == dict.fromkeys(quads, 0)
    assert {change[2:] for change in warehouse.changes()} == quads


def test_folder_with_blanks_and_percent_signs_is_loaded(history, session, warehouse, in_process, tmp_path):
    other = type(warehouse)(session, tmp_path / "a b%20c")
    write(tmp_path / "one.nq", [quad(1)])
    place = ["--source", history.url, "--log", history.name, "--warehouse", other.folder]

    assert in_process("snapshot", "import", tmp_path / "one.nq", *place)[0] == 0

    assert other.quads() == {quad(1): 0}


MOMENT = datetime(2026, 11, 19, 10, 20, 30, 123_456, UTC)


def batch(texts, numbers):
    columns = {"text": pa.string(), "number": pa.int64(), "time": pa.timestamp("us", "UTC")}
    schema = pa.schema([pa.field(name, type_, nullable=False) for name, type_ in columns.items()])
    times = [MOMENT + timedelta(days=number) for number in numbers]
    return pa.record_batch([pa.array(texts), pa.array(numbers), pa.array(times, columns["time"])], schema=schema)


def adds_of(files):
    files.finish()
    adds = [json.loads(add)["add"] for add in files.adds]
    return adds, [json.loads(add["stats"]) for add in adds]


def test_files_say_what_is_in_them(tmp_path):
    files = DataFiles(str(tmp_path), frozenset(["text"]))
    files.write(batch(["b", "a" * 40], [5, 3]))
    files.write(batch(["c" * 31 + LAST + LAST + "x"], [4]))

    [add], [statistics] = adds_of(files)

    assert (add["size"], add["partitionValues"], add["dataChange"]) == (
        (tmp_path / add["path"]).stat().st_size,
        {},
        True,
    )
    assert statistics == {
        "numRecords": 3,
        "minValues": {"text": "a" * 32, "number": 3, "time": "2026-11-22T10:20:30.123Z"},
        # Not less than any text that begins so, however that goes on; nor than the part of a millisecond.
        "maxValues": {"text": "c" * 31 + LAST + LAST + LAST, "number": 5, "time": "2026-11-24T10:20:30.124Z"},
        "nullCount": {"text": 0, "number": 0, "time": 0},
    }
    assert pq.read_table(tmp_path / add["path"])["number"].to_pylist() == [5, 3, 4]


def test_texts_that_are_too_long_for_the_file_are_left_out_of_what_it_says(tmp_path):
    files = DataFiles(str(tmp_path), frozenset())
    files.write(batch(["x" * 100_000], [1]))

    [statistics] = adds_of(files)[1]

    assert statistics["minValues"].keys() == statistics["maxValues"].keys() == {"number", "time"}
    assert statistics["numRecords"] == 1


def test_many_rows_become_several_files(tmp_path, monkeypatch):
    monkeypatch.setattr(data_files, "_ROWS_PER_FILE", 10)
    files = DataFiles(str(tmp_path), frozenset())
    for begin in range(0, 25, 5):
        files.write(batch([str(n) for n in range(begin, begin + 5)], list(range(begin, begin + 5))))

    adds, statistics = adds_of(files)

    assert [one["numRecords"] for one in statistics] == [10, 10, 5]
    assert files.rows == 25
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(add["path"] for add in adds)


@pytest.mark.parametrize("rows", [[5], [10, 5]])
def test_files_that_an_error_leaves_are_taken_away(tmp_path, monkeypatch, rows):
    monkeypatch.setattr(data_files, "_ROWS_PER_FILE", 10)

    def fill_the_disk():
        with DataFiles(str(tmp_path), frozenset()) as files:
            for number in rows:
                files.write(batch(["x"] * number, list(range(number))))
            raise OSError("The disk is full.")

    with pytest.raises(OSError, match="full"):
        fill_the_disk()

    assert list(tmp_path.iterdir()) == []
