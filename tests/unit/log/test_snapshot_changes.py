"""Changes that are larger than memory are the same as those that fit."""

import io
import random

import pytest

from patchlog.effect import apply_effect, effect
from patchlog.engine import CanonicalPatchEncoder
from patchlog.log.snapshots.changes import QuadChanges, Spilling, resolved
from patchlog.log.snapshots.reading import changes_of, namespaces_of, quads_of
from patchlog.log.snapshots.writing import PLAIN, texts_of, write_snapshot
from patchlog.model import Add, Delete, Punctuation, TransactionAbort, TransactionCommit, TransactionStart

TINY = Spilling(memory_bytes=2000)


def quad(number):
    return f"<http://example.org/{number}>", "<http://example.org/p>", f'"{number}"', "" if number % 3 else "_:g"


def history(seed, length=3000, quads=400):
    """Patches with transactions of any kind, over a few quads."""
    source = random.Random(seed)
    operations, is_open = [], False
    for _ in range(length):
        match source.randrange(60):
            case 0 | 1:
                operations.append(
                    source.choice([TransactionCommit(), TransactionAbort()]) if is_open else TransactionStart()
                )
                is_open = not is_open
            case 2 if not is_open:
                operations.append(Punctuation())
            case _:
                kind = source.choice([Add, Add, Delete])
                operations.append(kind(*quad(source.randrange(quads))))
    return [*operations, TransactionAbort()] if is_open else operations


def encoded(operations):
    encoder = CanonicalPatchEncoder()
    for operation in operations:
        encoder.accept(operation)
    return encoder.finish()


def line(one):
    return " ".join([*one[:3], *([one[3]] if one[3] else []), "."]).encode()


def flat(blocks):
    lines = [line for block in blocks for line in block]
    assert len(lines) == len(set(lines))
    return set(lines)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("spilling", [TINY, Spilling()], ids=["on disk", "in memory"])
def test_changes_of_any_size_have_the_effect_that_the_library_says(seed, spilling):
    operations = history(seed)
    dataset = {quad(number) for number in range(0, 400, 2)}
    base = [[line(one) for one in sorted(dataset)[start : start + 7]] for start in range(0, 200, 7)]

    changes = changes_of([encoded(operations)], "jelly-patch", spilling)
    found = flat(resolved(base, changes, spilling))

    apply_effect(dataset, {}, effect(operations))
    assert changes.is_spilled is (spilling is TINY)
    assert found == set(map(line, dataset))
    assert flat(resolved(base, changes, spilling)) == found


def test_quad_that_changes_often_takes_the_place_of_one():
    changes = QuadChanges(TINY)

    for number in range(10_000):
        changes.take([b"<a> <b> <c> ."], is_there=number % 2 == 0)

    assert not changes.is_spilled
    assert list(resolved([[b"<a> <b> <c> ."]], changes, TINY)) == []


def test_parts_that_are_too_large_are_parted_again():
    lines = [b"<http://example.org/%d> <b> <c> ." % number for number in range(5000)]
    changes = QuadChanges(TINY)

    for start in range(0, 5000, 100):
        changes.take(lines[start : start + 100], is_there=True)

    assert flat(resolved([], changes, TINY)) == set(lines)


def test_snapshot_that_was_written_is_read():
    blocks = [[line(quad(1)), line(quad(3))], [], [b'_:b <http://example.org/p> "x"@en .']]
    namespaces = {("", "ex"): "<http://example.org/>", ("_:g", "ex"): "<http://example.org/g#>"}
    written = []

    told = write_snapshot(texts_of(blocks), namespaces, PLAIN, written.append)

    found, chunks = namespaces_of(written)
    assert found == namespaces
    assert flat(quads_of(chunks)) == flat(blocks)
    assert (told.quads, told.namespaces, told.bytes) == (3, 2, sum(map(len, written)))


def test_thousands_of_namespaces_are_found_again():
    namespaces = {("", f"n{number}"): f"<http://example.org/{number}#>" for number in range(3000)}
    written = []

    write_snapshot([line(quad(1)) + b"\n"], namespaces, PLAIN, written.append)

    assert namespaces_of(written)[0] == namespaces


@pytest.mark.peer
def test_another_reader_reads_a_snapshot():
    parse = pytest.importorskip("pyjelly.integrations.rdflib.parse")
    blocks = [[line(quad(1)), line(quad(3))]]
    namespaces = {("", "ex"): "<http://example.org/>", ("_:g", "ex"): "<http://example.org/g#>"}
    written = []

    write_snapshot(texts_of(blocks), namespaces, PLAIN, written.append)

    names, first, second = parse.parse_jelly_flat(io.BytesIO(b"".join(written)))
    assert (names.prefix, str(names.iri)) == ("ex", "http://example.org/")
    assert [str(one.s) for one in (first, second)] == ["http://example.org/1", "http://example.org/3"]
    assert str(second.g) == "g"
