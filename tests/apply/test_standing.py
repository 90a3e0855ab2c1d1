"""Where quads stand in a table: found beside Spark as Spark finds it, whatever vectors and files there are."""

from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest

pytest.importorskip("pyspark")

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PythonException
from pyspark.sql import functions as F  # noqa: N812  as everybody has it

from patchlog.engine import KnownQuads
from patchlog.errors import UsageError
from patchlog.model import Add, Delete
from patchlog.rdf import write
from spark import standing
from spark.data_files import DataFile
from spark.row_commit import ROW

QUADS = 70_000
"""More than one container of a Roaring bitmap."""

COLUMNS = ["graph", "subject", "predicate", "object"]


def quad(number):
    return f"<a:{number}>", "<a:p>", f'"{number}"', "<a:g>" if number % 3 else ""


def random_text(random):
    return "".join(random.choice('ab<>"\0 é漢𝄞') for _ in range(random.choice([0, 1, 3, 4, 5, 8, 12, 31, 32, 33, 100])))


KINDS = pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int16(), pa.string())],
    ids=["string", "large", "view", "dictionary"],
)


@KINDS
def test_hashes_are_those_of_spark(session, codec, kind):
    random = Random(1)
    table = pa.table({name: [random_text(random) for _ in range(300)] for name in COLUMNS})
    hashes = spark_hashes(session, table)
    batch = pa.table({name: table[name].cast(kind) for name in reversed(COLUMNS)} | {"n": list(range(300))})

    [whole] = batch.combine_chunks().to_batches()
    assert rows(codec.KnownQuads(hashes[::2].tobytes()).rows(whole)) == list(range(0, 300, 2))
    assert rows(codec.KnownQuads(hashes[5:].tobytes()).rows(whole.slice(4, 3))) == [1, 2]
    assert rows(codec.KnownQuads(hashes[290:].tobytes()).rows(pa.table(batch))) == list(range(290, 300))
    assert codec.KnownQuads(b"").rows(whole) == b""


def rows(numbers):
    return memoryview(numbers).cast("I").tolist()


def test_what_is_no_batch_of_quads_is_refused(codec):
    known = codec.KnownQuads(bytes(8))

    with pytest.raises(UsageError, match="predicate"):
        known.rows(pa.table({"graph": [""], "subject": ["<a:>"], "object": ["<a:>"]}))
    with pytest.raises(UsageError, match="does not hold strings"):
        known.rows(pa.table({name: [1] for name in COLUMNS}))
    for no_batch in (
        pa.array([[]] * 100_000, pa.list_(pa.field("graph", pa.string()))),
        pa.UnionArray.from_dense(
            pa.array([0] * 5, pa.int8()), pa.array([0] * 5, pa.int32()), [pa.array(["a"])] * 4, COLUMNS
        ),
    ):
        with pytest.raises(UsageError, match="not made of record batches"):
            known.rows(no_batch)
    with pytest.raises(UsageError, match="8 bytes each, which 7 are no multiple of"):
        codec.KnownQuads(bytes(7))


def spark_hashes(session, table):
    return session.createDataFrame(table).select(F.xxhash64(*COLUMNS).alias("hash")).toArrow()["hash"].to_numpy()


@KINDS
@pytest.mark.parametrize("parts", [1, 3, 20])
def test_parts_of_a_file_are_all_of_it(session, tmp_path, kind, parts):
    """Row groups of 100, and rows on both sides of their ends that a vector takes out."""
    table = pa.table(
        {
            name: [f"{name} {row % 9 if name in ('graph', 'predicate') else row}" for row in range(1050)]
            for name in COLUMNS
        }
    )
    typed = pa.table({name: table[name].cast(kind) for name in COLUMNS} | {"since": [1] * 1050})
    pq.write_table(typed, tmp_path / "file", row_group_size=100)
    wanted = [0, 98, 99, 100, 101, 199, 200, 555, 1000, 1049]
    known = KnownQuads(spark_hashes(session, table.take(wanted)).tobytes())
    vector = SimpleNamespace(rows=lambda: np.array([99, 100, 199, 300, 1049]))

    for gone in (None, vector):
        file = DataFile("file:/name", str(tmp_path / "file"), 1, gone)
        found = [
            (row[ROW], *(row[name] for name in COLUMNS))
            for number in range(parts)
            for batch in standing.FilePart(file, number, parts).find(known)
            for row in batch.to_pylist()
        ]
        there = [row for row in wanted if gone is None or row not in gone.rows()]
        assert found == [(row, *table.slice(row, 1).to_pylist()[0].values()) for row in there]


def test_long_texts_are_read_a_few_rows_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(standing, "_BYTES_AT_ONCE", 10_000)
    pq.write_table(pa.table({name: [f"{row} " * 100 for row in range(1000)] for name in COLUMNS}), tmp_path / "file")
    sizes = []
    known = SimpleNamespace(rows=lambda batch: (sizes.append(batch.num_rows), b"")[1])

    list(standing.FilePart(DataFile("file:/name", str(tmp_path / "file"), 1, None), 0, 1).find(known))

    assert sum(sizes) == 1000
    assert max(sizes) < 100


@pytest.fixture
def loaded(history, tmp_path):
    """A dataset in tables with deletion vectors."""
    write(tmp_path / "all.nq", map(quad, range(QUADS)))
    with (tmp_path / "all.nq").open("rb") as file:
        history.log.snapshots.put(0, [file.read()], "nquads")
    return dict.fromkeys(map(quad, range(QUADS)), 0)


def change(deletes, adds):
    return [*(Delete(*quad(number)) for number in deletes), *(Add(*quad(number)) for number in adds)]


def test_vectors_of_all_kinds_are_read(history, apply, warehouse, loaded, tmp_path):
    """Runs, bitmaps and arrays; each merge meets what those before it took out, and puts some of it in again."""
    random = Random(1)
    steps = [
        (range(1000, 40_000), [5, QUADS]),
        (range(40_000, QUADS, 2), [1000, 1001, 65_537]),
        (random.sample(range(40_001, QUADS, 2), 50), [*range(30_000, 40_000, 7)]),
        ([1000, 30_007, 0], [40_000, 30_014, 2]),
    ]
    other = type(warehouse)(warehouse.session, tmp_path / "a b%20c")
    wanted = loaded
    for version, (deletes, adds) in enumerate(steps, 1):
        history.append(change(deletes, adds))
        for number in deletes:
            wanted.pop(quad(number), None)
        for number in adds:
            wanted.setdefault(quad(number), version)
        tables = apply(history, into=other)
        assert other.quads() == wanted

    noted = (tables.quads.files(), tables.quads.number())
    forget_what_was_noted(warehouse.session, Path(other.folder, "quads"))
    again = apply(history, into=other)
    assert (again.quads.files(), again.quads.number()) == noted
    assert other.quads() == wanted

    commit = again.quads.begin_row_commit()
    standing_rows = commit.rows().groupBy("in_file").count().collect()
    of_files = {
        file.name: pq.read_metadata(file.path).num_rows - (len(file.vector.rows()) if file.vector else 0)
        for file in commit.data_files()
    }
    assert {row.in_file: row["count"] for row in standing_rows} == {name: n for name, n in of_files.items() if n}


def forget_what_was_noted(session, table):
    """Have Delta reckon a table up from its log: what commits have noted beside it is not looked at any more."""
    notes = list(table.glob("_delta_log/*.crc"))
    assert notes
    for note in notes:
        note.unlink()
    session._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


@pytest.mark.parametrize(("name", "value"), [("IMPLEMENTATION", "pure"), ("_MOST_HASHES", 0)])
def test_jvm_looks_where_python_would_take_longer(history, apply, warehouse, monkeypatch, name, value):
    monkeypatch.setattr(standing, name, value)
    for _ in range(2):
        history.grow(8)
        apply(history)

    warehouse.check(history.model)


@pytest.mark.usefixtures("loaded")
def test_damaged_vector_is_named(history, apply, warehouse):
    history.append(change([1, 2], []))
    apply(history)
    [vectors] = Path(warehouse.folder, "quads").glob("deletion_vector_*.bin")
    damaged = bytearray(vectors.read_bytes())
    damaged[20] ^= 1
    vectors.write_bytes(damaged)
    # Hadoop's own checksum would be told first.
    vectors.with_name(f".{vectors.name}.crc").unlink()
    history.append(change([1, 3], []))

    with pytest.raises(PythonException, match=r"the deletion vector at byte 1 of .* is damaged"):
        apply(history)
