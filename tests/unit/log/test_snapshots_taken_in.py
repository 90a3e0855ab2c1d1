"""A dataset that is given to a log: taken in as it comes, where no quad comes twice."""

import errno
import gc
import io
import random

import pytest

from patchlog.codec.options import LogicalType, PhysicalType, RdfOptions
from patchlog.engine import RdfEncoder
from patchlog.errors import InvalidTerm, MalformedFrame, StorageFull
from patchlog.log.memory import MemoryLogStore
from patchlog.log.records import LogOptions
from patchlog.log.snapshots.distinct import Distinct
from patchlog.log.snapshots.reading import namespaces_of, quads_of
from patchlog.log.snapshots.replay import Replay

TRIPLE = '<<( <a:s> <a:p> "o" )>>'


def quad(number):
    return f"<a:{number}>", "<a:p>", f'"{number}"', "<a:g>" if number % 2 else ""


def as_jelly(quads, **flags):
    options = RdfOptions(physical_type=PhysicalType.QUADS, logical_type=LogicalType.FLAT_QUADS, **flags)
    encoder = RdfEncoder(options, rows_per_frame=7, namespace_declarations=True)
    encoder.namespace("a", "<a:>")
    encoder.statements(quads)
    return encoder.finish()


def pieces(data, size=100):
    return (data[start : start + size] for start in range(0, len(data), size))


def lines(quads):
    return [" ".join((*filter(None, quad), ".")).encode() for quad in quads]


def stored(log):
    namespaces, chunks = namespaces_of(log.snapshots.read(0))
    return namespaces, [line for block in quads_of(chunks) for line in block]


@pytest.fixture
def store():
    return MemoryLogStore()


def created(store, name, *options):
    store.create(name, *options)
    return store.log(name)


def test_quads_keep_their_order(store):
    quads = [quad(number) for number in random.Random(5).sample(range(1000), 1000)]

    snapshot = created(store, "order").snapshots.put(0, pieces(as_jelly(quads)))

    assert snapshot.quads == 1000
    assert stored(store.log("order")) == ({("", "a"): "<a:>"}, lines(quads))


@pytest.mark.parametrize("format", ["jelly", "nquads"])
def test_quad_that_comes_twice_is_there_once(store, format):
    quads = [quad(number % 700) for number in range(1000)]
    data = as_jelly(quads) if format == "jelly" else b"\n".join([*lines(quads), b""])

    snapshot = created(store, "twice").snapshots.put(0, pieces(data), format)

    assert snapshot.quads == 700
    assert sorted(stored(store.log("twice"))[1]) == sorted(lines(map(quad, range(700))))


@pytest.mark.parametrize(
    "text", [rb'"\u00E9"', '"é"'.encode(), b'"\xc3\xa9"^^<http://www.w3.org/2001/XMLSchema#string>']
)
def test_term_that_is_written_otherwise_is_the_same(store, text):
    data = b'<a:s> <a:p> "\xc3\xa9" .\n<a:s> <a:p> ' + text + b" .\n"

    assert created(store, "written").snapshots.put(0, [data], "nquads").quads == 1


def test_triple_that_comes_late_is_taken_in_where_the_log_allows_it(store):
    quads = [*map(quad, range(500)), (TRIPLE, "<a:p>", "<a:o>", ""), *map(quad, range(500, 900))]
    data = as_jelly(quads, rdf_star=True)

    assert created(store, "star").snapshots.put(0, pieces(data)).quads == 901
    assert stored(store.log("star"))[1] == lines(quads)

    strict = created(store, "plain", LogOptions(rdf_star=False, generalized_statements=False))
    with pytest.raises(InvalidTerm):
        strict.snapshots.put(0, pieces(data))
    assert strict.snapshots.list() == []


def test_dataset_that_ends_early_leaves_nothing(store):
    log = created(store, "early")

    with pytest.raises(MalformedFrame):
        log.snapshots.put(0, pieces(as_jelly(map(quad, range(500)))[:-3]))

    assert log.snapshots.list() == []
    assert log.snapshots.put(0, [as_jelly([quad(1)])]).quads == 1


@pytest.mark.parametrize("memory", [1 << 20, 100])
def test_lines_are_told_apart_in_memory_and_on_disk(tmp_path, memory):
    distinct = Distinct(memory, tmp_path)
    for start in range(0, 3000, 50):
        distinct.add(b"".join(b"%d\n" % number for number in range(start, start + 50)))

    assert distinct.are_all()
    distinct.add(b"3000\n2999\n")
    assert not distinct.are_all()


def test_chunks_are_read_again_from_the_first_on(tmp_path):
    replay = Replay(iter([b"a", b"b", b"c"]), tmp_path)
    first = iter(replay)

    assert (next(first), next(first)) == (b"a", b"b")
    assert b"".join(replay) == b"abc"
    assert b"".join(replay) == b"abc"


def test_hashes_of_lines(codec):
    hashes = codec.hashes_of_lines(b"a\nb\n\na\n")
    parts = codec.hashes_by_part(hashes)

    assert [hashes[start : start + 8] == hashes[:8] for start in (8, 16, 24)] == [False, False, True]
    assert sum(map(len, parts)) == 32
    assert [codec.hashes_are_distinct(part) for part in parts].count(False) == 1
    assert not codec.hashes_are_distinct(hashes)
    assert codec.hashes_are_distinct(hashes[:24])
    assert codec.hashes_are_distinct(b"")


def test_text_is_written_as_its_statements_are(codec):
    options = RdfOptions(physical_type=PhysicalType.QUADS)
    quads = [*map(quad, range(300)), ("_:b", "<a:p>", '"x\\ny"@en', "_:g")]
    by_text, by_terms = codec.RdfEncoder(options), codec.RdfEncoder(options)

    for start in range(0, 301, 50):
        by_text.nquads(b"\n".join([*lines(quads[start : start + 50]), b""]))
    by_terms.statements(quads)

    assert by_text.finish() == by_terms.finish()


def test_text_that_cannot_be_written_spends_the_encoder(codec):
    encoder = codec.RdfEncoder(RdfOptions(physical_type=PhysicalType.QUADS))

    with pytest.raises(InvalidTerm) as caught:
        encoder.nquads(b"<a:s> <a:p> <a:o> .\n" + lines([(TRIPLE, "<a:p>", "<a:o>", "")])[0] + b"\n")

    assert caught.value.line is None


class FullDisk(io.FileIO):
    def write(self, _):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_file_on_a_full_disk_is_told_and_let_go_of_without_a_word(tmp_path, monkeypatch):
    full = io.BufferedRandom(FullDisk(tmp_path / "full", "w+"))
    monkeypatch.setattr("patchlog.log.snapshots.files.TemporaryFile", lambda **_: full)
    replay = Replay([b"x" * 100_000], None)

    with pytest.raises(StorageFull):
        list(replay)
    del replay
    gc.collect()  # what is raised here, the tests take for an error
