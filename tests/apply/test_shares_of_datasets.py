"""A dataset that several readers share: each quad is read by one of them. No session of Spark is needed."""

from itertools import chain

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa

from patchlog import rdf
from spark import effective
from spark.effective import Share, dataset_batches

ROWS = 1000


@pytest.fixture
def dataset(tmp_path, monkeypatch):
    monkeypatch.setattr(effective, "_BATCH_ROWS", 64)
    file = tmp_path / "dataset.jelly"
    rdf.write(file, [(f"<a:{row}>", "<a:p>", f'"{row}"', "<a:g>") for row in range(ROWS)], rows_per_frame=50)
    return file.read_bytes()


def subjects(batches):
    return pa.Table.from_batches(batches, effective.DATASET_COLUMNS)["subject"].to_pylist()


@pytest.mark.parametrize("parts", [1, 2, 3, 8, 40])
def test_shares_are_the_dataset_wherever_its_bytes_are_cut(dataset, parts):
    found = []
    for part in range(parts):
        size = 100 + 977 * part  # each reader gets the bytes in other pieces
        chunks = [dataset[begin : begin + size] for begin in range(0, len(dataset), size)]
        found.append(subjects(dataset_batches(chunks, Share(part, parts))))

    assert sorted(chain.from_iterable(found)) == sorted(f"<a:{row}>" for row in range(ROWS))
    assert min(map(len, found[: ROWS // 64])) > 0
