"""A dataset that is given to a log: taken in as it comes, where no quad comes twice."""

import errno
import gc
import io
import random
from array import array

import pytest

from patchlog.codec.options import LogicalType, PhysicalType, RdfOptions
from patchlog.engine import RdfEncoder
from patchlog.errors import InvalidTerm, MalformedFrame, StorageFull, UsageError
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
def test_hashes_are_told_apart_in_memory_and_on_disk(tmp_path, memory):
    distinct = Distinct(memory, tmp_path)
    numbers = random.Random(1).sample(range(1 << 62), 3001)
    for start in range(0, 3000, 50):
        distinct.add(array("q", numbers[start : start + 50]).tobytes())

    assert distinct.are_all()
    distinct.add(array("q", [numbers[3000], numbers[2999]]).tobytes())
    assert not distinct.are_all()


def test_chunks_are_read_again_from_the_first_on(tmp_path):
    replay = Replay(iter([b"a", b"b", b"c"]), tmp_path)
    first = iter(replay)

    assert (next(first), next(first)) == (b"a", b"b")
    assert b"".join(replay) == b"abc"
    assert b"".join(replay) == b"abc"


def hashes_of(encoder, data):
    encoder.feed(data)
    encoder.finish()
    hashes = array("q")
    hashes.frombytes(encoder.take_hashes())
    assert encoder.statements == len(hashes)
    return list(hashes)


ALIKE = [
    ("<a:s>", "<a:p>", "<a:o>", ""),
    ("<a:s>", "<a:o>", "<a:p>", ""),
    ("<a:o>", "<a:p>", "<a:s>", ""),
    ("<a:s>", "<a:p>", "<a:o>", "<a:s>"),
    *(("<a:s>", "<a:p>", term, "") for term in ["<a>", "_:a", '"a"', '"a"@a', '"a"^^<a>', '"a"^^<a:a>', '"a"@en']),
    ("_:a", "<a:p>", "_:a", "_:a"),
    ("<a:s>", "<a:p>", TRIPLE, ""),
    ("<a:s>", "<a:p>", TRIPLE.replace("a:p", "a:q"), ""),
]


def test_hashes_are_those_of_statements_however_these_are_written(codec):
    quads = [*ALIKE, *(("<http://e.org/x/#1>", f"<http://e.org/{n}/y#z>", f"<urn:{n}>", "_:g") for n in range(100))]
    options = RdfOptions(physical_type=PhysicalType.QUADS, rdf_star=True)
    text = b"\n".join([*lines(quads), b""])

    of_text = hashes_of(codec.DatasetEncoder("nquads", options), text)
    no_prefixes = as_jelly(quads, rdf_star=True, max_prefix_table_size=0)
    other_names = as_jelly(quads, rdf_star=True, max_name_table_size=8, max_prefix_table_size=2)

    assert len(set(of_text)) == len(quads)
    for jelly in (no_prefixes, other_names):
        assert hashes_of(codec.DatasetEncoder("jelly", options), jelly) == of_text
    assert codec.hashes_are_distinct(array("q", of_text).tobytes())


def test_hashes_of_one_statement_that_is_written_in_two_ways_are_equal(codec):
    string = '"a"^^<http://www.w3.org/2001/XMLSchema#string>'
    text = f'<a:s> <a:p> "\\u0061" .\n<a:s>  <a:p>\t"a".\n<a:s> <a:p> {string} .\n<a:s> <a:p> "b" .\n'.encode()

    first, *same, other = hashes_of(codec.DatasetEncoder("nquads", RdfOptions(physical_type=PhysicalType.QUADS)), text)

    assert same == [first, first]
    assert other != first
    hashes = array("q", [first, other, first, 1]).tobytes()
    parts = codec.hashes_by_part(hashes)
    assert sum(map(len, parts)) == 32
    assert [codec.hashes_are_distinct(part) for part in parts].count(False) == 1
    assert not codec.hashes_are_distinct(hashes)
    assert codec.hashes_are_distinct(b"")
    for refuses in (codec.hashes_are_distinct, codec.hashes_by_part):
        with pytest.raises(UsageError, match="8 bytes each"):
            refuses(hashes[:-1])


@pytest.mark.parametrize("source", ["nquads", "jelly"])
def test_dataset_is_written_as_its_statements_are(codec, source):
    options = RdfOptions(physical_type=PhysicalType.QUADS)
    quads = [*map(quad, range(300)), ("_:b", "<a:p>", '"x\\ny"@en', "_:g")]
    data = b"\n".join([*lines(quads), b""]) if source == "nquads" else as_jelly(quads)
    dataset, by_terms = codec.DatasetEncoder(source, options), codec.RdfEncoder(options, namespace_declarations=True)

    for encoder in (dataset, by_terms):
        encoder.namespace("b", "<b:>")
        encoder.end_frame({"key": b"value"})
    written = b"".join(map(dataset.feed, pieces(data))) + dataset.finish()
    by_terms.statements(quads)

    assert written == by_terms.finish()


def test_dataset_that_cannot_be_written_is_refused(codec):
    encoder = codec.DatasetEncoder("nquads", RdfOptions(physical_type=PhysicalType.QUADS))

    with pytest.raises(InvalidTerm) as caught:
        encoder.feed(b"<a:s> <a:p> <a:o> .\n" + lines([(TRIPLE, "<a:p>", "<a:o>", "")])[0] + b"\n")

    assert caught.value.line == (None if codec.__name__ == "patchlog.pure" else 2)
    with pytest.raises(UsageError, match="changes of a dataset"):
        codec.DatasetEncoder("jelly-patch", RdfOptions(physical_type=PhysicalType.QUADS))
    with pytest.raises(UsageError, match="unknown source format"):
        codec.DatasetEncoder("turtle", RdfOptions(physical_type=PhysicalType.QUADS))


def test_nothing_is_an_empty_dataset(codec):
    encoder = codec.DatasetEncoder("jelly", RdfOptions(physical_type=PhysicalType.QUADS))

    [frame] = codec.RdfDecoder().feed(encoder.finish())
    assert list(frame.statements) == []


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
