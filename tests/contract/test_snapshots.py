"""The whole dataset at a version, wherever the log is."""

import gc
from hashlib import sha256

import pytest

from patchlog.codec.options import LogicalType, PatchOptions, PhysicalType
from patchlog.effect import apply_effect, effect
from patchlog.engine import Converter, PatchDecoder, RdfDecoder
from patchlog.errors import (
    CodecError,
    LogNotFound,
    PositionGone,
    SnapshotNotFound,
    SnapshotRefused,
    TruncationRefused,
    UsageError,
)
from patchlog.log.position import Position
from patchlog.log.records import LogOptions
from patchlog.model import (
    Add,
    Delete,
    NamespaceAdd,
    NamespaceDelete,
    TransactionAbort,
    TransactionCommit,
    TransactionStart,
)

QUOTED = "<<( <http://example.org/s> <http://example.org/p> _:q )>>"
EVERYTHING = PatchOptions(rdf_star=True, generalized_statements=True)
TX, TC, TA = TransactionStart(), TransactionCommit(), TransactionAbort()


def quad(subject, object='"v"', graph=""):
    return f"<http://example.org/{subject}>", "<http://example.org/p>", object, graph


def data_of(log, version):
    return b"".join(log.snapshots.read(version))


def frames(data):
    decoder = RdfDecoder()
    found = [*decoder.feed(data), *decoder.finish()]
    return decoder.options, found


def quads(data):
    _, found = frames(data)
    statements = [statement for frame in found for statement in frame.statements]
    assert len(statements) == len(set(statements))
    return {statement if len(statement) == 4 else (*statement, "") for statement in statements}


def namespaces(data):
    return dict(pair for frame in frames(data)[1] for pair in frame.namespaces)


def replayed(log, until=None):
    """What the library's own definition of effects says."""
    dataset, names = set(), {}
    for logged in log.read(until=until):
        decoder = PatchDecoder()
        operations = [operation for chunk in logged.chunks for operation in decoder.feed(chunk)]
        apply_effect(dataset, names, effect(operations))
    return dataset, names


@pytest.fixture
def three(patch_log, patches):
    for subject in "abc":
        patch_log.append(patches.one(subject))
    return patch_log


# Positions


def test_snapshot_has_the_position_that_a_reader_goes_on_from(three):
    made = three.snapshots.build(2)

    assert Position.of(made) == Position.of(three.snapshots.find(2)) == three.position(2)
    assert [logged.record.version for logged in three.read(Position.of(made))] == [3]


def test_snapshot_of_a_truncated_version_keeps_its_position(three):
    three.snapshots.build()
    position = three.position(3)

    three.truncate_before(4, force=True)

    assert Position.of(three.snapshots.find(3)) == position


def test_dataset_that_a_log_starts_with_is_at_position_0(patch_log):
    snapshot = patch_log.snapshots.put(0, [b"<http://e/s> <http://e/p> <http://e/o> .\n"], "nquads")

    assert Position.of(snapshot) == patch_log.position(0)
    assert snapshot.hash == bytes(32)


def test_snapshot_that_is_put_where_the_log_says_otherwise_is_refused(three):
    three.snapshots.build(2)
    data = data_of(three, 2)

    with pytest.raises(SnapshotRefused):
        three.snapshots.put(3, [data])
    assert Position.of(three.snapshots.put(2, [data])) == three.position(2)


# Building


def test_log_has_no_snapshots_at_first(patch_log):
    assert patch_log.snapshots.list() == []
    assert patch_log.snapshots.find(1) is None
    assert patch_log.snapshots.pending() is None


def test_snapshot_is_the_dataset_at_the_head(three):
    snapshot = three.snapshots.build()

    data = data_of(three, 3)
    assert quads(data) == {quad("a"), quad("b"), quad("c")}
    assert (snapshot.version, snapshot.id, snapshot.quads, snapshot.namespaces) == (3, three.head().id, 3, 0)
    assert (snapshot.bytes, snapshot.sha256) == (len(data), sha256(data).digest())
    assert three.snapshots.list() == [snapshot]
    assert three.snapshots.find(3) == snapshot
    assert three.snapshots.verify(3)
    assert three.snapshots.pending() is None


def test_snapshot_is_made_at_any_version_and_from_the_one_before(three):
    first = three.snapshots.build(1)
    third = three.snapshots.build(3)
    second = three.snapshots.build(2)

    assert [quads(data_of(three, version)) for version in (1, 2)] == [{quad("a")}, {quad("a"), quad("b")}]
    assert three.snapshots.list() == [first, second, third]


def test_snapshot_that_is_there_is_not_made_again(three):
    assert three.snapshots.build() == three.snapshots.build(3)
    assert len(three.snapshots.list()) == 1


def test_snapshot_is_flat_quads_with_big_tables_and_declares_namespaces(patch_log, patches):
    patch_log.append(patches.stream([NamespaceAdd("ex", "<http://example.org/>", ""), Add(*quad("a"))]))

    patch_log.snapshots.build()

    options, found = frames(data_of(patch_log, 1))
    assert (options.physical_type, options.logical_type) == (PhysicalType.QUADS, LogicalType.FLAT_QUADS)
    assert (options.max_name_table_size, options.max_prefix_table_size) == (4000, 150)
    assert (options.rdf_star, options.generalized_statements) == (False, False)
    assert found[0].namespaces == [("ex", "<http://example.org/>")]


@pytest.mark.parametrize(
    "steps",
    [
        [[Add(*quad("a")), Delete(*quad("a"))]],
        [[Delete(*quad("a")), Add(*quad("a"))]],
        [[Add(*quad("a")), Add(*quad("a"))], [Delete(*quad("b")), Delete(*quad("a"))]],
        [[TX, Add(*quad("a")), TA, TX, Add(*quad("b")), TC]],
        [[Add(*quad("a")), TX, Delete(*quad("a")), TA]],
        [[Add(*quad("a"))], [TX, Delete(*quad("a")), Add(*quad("b")), TC], [Add(*quad("a"))]],
        [[Add(*quad("a", graph="<http://example.org/g>")), Add(*quad("a")), Delete(*quad("a"))]],
        [[TX, TC], [TX, TA]],
    ],
)
def test_effects_are_those_of_the_library(patch_log, patches, steps):
    for step in steps:
        patch_log.append(patches.stream(step))

    snapshot = patch_log.snapshots.build()

    dataset, _ = replayed(patch_log)
    assert quads(data_of(patch_log, len(steps))) == dataset
    assert snapshot.quads == len(dataset)


TERMS = [
    ("<http://example.org/s>", "<http://example.org/p>", '"line\\nnext \\"quoted\\" \\\\u005F: <_:x>"', ""),
    ("_:b1", "<http://example.org/p>", "_:b2", "_:g"),
    ("_:é", "<http://example.org/p>", '"<_:no> <\\\\u005F:no>"@en-GB', "<http://example.org/g>"),
    ("<_:x>", "<http://example.org/p>", "<a\\u0020b>", ""),
    ("<relative>", "<>", '"01"^^<http://www.w3.org/2001/XMLSchema#integer>', ""),
    ("_:s", "<http://example.org/p>", '"A . D <_:y> TX ."', ""),
]


def test_terms_are_kept_character_by_character(patch_log, patches):
    patch_log.append(patches.stream([Add(*term) for term in TERMS]))

    patch_log.snapshots.build()

    assert quads(data_of(patch_log, 1)) == set(TERMS) == replayed(patch_log)[0]
    patch_log.append(patches.stream([Delete(*term) for term in TERMS]))
    assert patch_log.snapshots.build().quads == 0


def test_quoted_triples_and_generalized_statements_are_declared_where_they_are(patch_log, patches):
    strange = {('"s"', "_:p", QUOTED, '"g"'), (QUOTED, "<http://example.org/p>", "_:q", "")}
    patch_log.append(patches.stream([Add(*quad("a"))]))
    patch_log.append(patches.stream([Add(*one) for one in strange], options=EVERYTHING))

    patch_log.snapshots.build(1)
    patch_log.snapshots.build(2)

    assert quads(data_of(patch_log, 2)) == strange | {quad("a")}
    assert [frames(data_of(patch_log, version))[0].rdf_star for version in (1, 2)] == [False, True]


def test_quoted_triples_of_the_snapshot_before_are_taken_away_and_found_again(patch_log, patches):
    inner = '<<( _:s <http://example.org/p> "<< a >> \\" <<( " )>>'
    quoted = [(QUOTED, "<p>", '"<< >>"', ""), (f"<<( {inner} <p> {QUOTED} )>>", "<p>", inner, "_:g")]
    patch_log.append(patches.stream([Add(*one) for one in quoted], options=EVERYTHING))
    patch_log.append(patches.stream([Add(*quad("a")), Delete(*quoted[0])], options=EVERYTHING))
    patch_log.append(patches.stream([Delete(*quoted[1])], options=EVERYTHING))

    kept = [patch_log.snapshots.build(version) for version in (1, 2, 3)]

    assert [quads(data_of(patch_log, version)) for version in (1, 2, 3)] == [
        set(quoted),
        {quoted[1], quad("a")},
        {quad("a")},
    ]
    for version, snapshot in enumerate(kept, start=1):
        assert patch_log.snapshots.put(version, [data_of(patch_log, version)]) == snapshot


def test_namespaces_are_those_at_the_version(patch_log, patches):
    graph = "<http://example.org/g>"
    patch_log.append(
        patches.stream(
            [
                NamespaceAdd("ex", "<http://example.org/>", ""),
                NamespaceAdd("old", "<http://example.org/old>", ""),
                NamespaceAdd("ex", "<http://example.org/g#>", graph),
                TX,
                NamespaceAdd("no", "<http://example.org/no>", ""),
                TA,
            ]
        )
    )
    patch_log.append(
        patches.stream([NamespaceDelete("old", None, ""), NamespaceAdd("", "<http://example.org/new>", "")])
    )

    first = patch_log.snapshots.build(1)
    second = patch_log.snapshots.build(2)

    assert namespaces(data_of(patch_log, 1)) == {"ex": "<http://example.org/>", "old": "<http://example.org/old>"}
    assert namespaces(data_of(patch_log, 2)) == {"ex": "<http://example.org/>", "": "<http://example.org/new>"}
    assert (first.namespaces, second.namespaces) == (3, 3)
    metadata = frames(data_of(patch_log, 2))[1][0].metadata
    assert metadata == {"patchlog.namespaces": b'[["<http://example.org/g>", "ex", "<http://example.org/g#>"]]'}


def test_snapshot_beyond_the_head_is_refused(three):
    for version in (4, 1 << 40):
        with pytest.raises(SnapshotRefused, match="head is 3"):
            three.snapshots.build(version)


def test_empty_log_has_nothing_to_make_a_snapshot_of(patch_log):
    with pytest.raises(SnapshotRefused, match="empty"):
        patch_log.snapshots.build()

    assert patch_log.snapshots.list() == []
    assert patch_log.snapshots.pending() is None


def test_snapshots_of_a_log_that_is_not_there_are_not_found(store):
    snapshots = store.log("nobody").snapshots

    for call in (
        snapshots.list,
        snapshots.pending,
        snapshots.build,
        lambda: snapshots.find(1),
        lambda: snapshots.read(1),
        lambda: snapshots.delete(1),
        lambda: snapshots.verify(1),
        lambda: snapshots.put(0, [b""], "nquads"),
    ):
        with pytest.raises(LogNotFound):
            call()


# Reading


def test_snapshot_is_read_from_any_place(three):
    three.snapshots.build()
    data = data_of(three, 3)

    for start in (0, 1, len(data) - 1, len(data), len(data) + 5):
        assert b"".join(three.snapshots.read(3, start=start)) == data[start:]
    three.snapshots.read(3)
    gc.collect()


def test_snapshot_that_is_not_there_is_not_found(three):
    for call in (three.snapshots.read, three.snapshots.verify, three.snapshots.delete):
        with pytest.raises(SnapshotNotFound, match="version 2"):
            call(2)


# Deleting


def test_deleted_snapshot_is_gone_and_can_be_made_again(three):
    three.snapshots.build(2)

    three.snapshots.delete(2)

    assert three.snapshots.list() == []
    assert three.snapshots.build(2).quads == 2
    assert len(quads(data_of(three, 2))) == 2


def test_snapshots_go_with_their_log(store, three, patches):
    three.snapshots.build()

    store.delete("people")

    store.create("people")
    log = store.log("people")
    assert log.snapshots.list() == []
    log.append(patches.one("new"))
    log.snapshots.build()
    assert quads(data_of(log, 1)) == {quad("new")}


# Starting with a dataset


NQUADS = b"""<http://example.org/a> <http://example.org/p> "v" .
_:b <http://example.org/p> "\\u00e9" <http://example.org/g> .
<http://example.org/a> <http://example.org/p> "v" .
"""
BASE = {quad("a"), ("_:b", "<http://example.org/p>", '"é"', "<http://example.org/g>")}


def jelly(text=NQUADS, **options):
    converter = Converter("nquads", "jelly", **options)
    return converter.feed(text) + converter.finish()


@pytest.mark.parametrize(
    ("chunks", "format"),
    [
        ([NQUADS], "nquads"),
        ([NQUADS[:70], b"", NQUADS[70:]], "nquads"),
        ([jelly()], "jelly"),
        ([jelly(output_delimited=False)], "jelly"),
        ([bytes([byte]) for byte in jelly()], "jelly"),
    ],
    ids=["N-Quads", "chunks", "Jelly", "bare Jelly", "single bytes"],
)
def test_log_starts_with_a_dataset(patch_log, patches, chunks, format):
    snapshot = patch_log.snapshots.put(0, chunks, format)

    assert (snapshot.version, snapshot.id, snapshot.quads) == (0, None, 2)
    assert quads(data_of(patch_log, 0)) == BASE
    patch_log.append(patches.stream([Delete(*quad("a")), Add(*quad("c"))]))
    patch_log.snapshots.build()
    assert quads(data_of(patch_log, 1)) == BASE - {quad("a")} | {quad("c")}


def test_namespaces_of_a_snapshot_survive_its_upload(store, patch_log, patches):
    graph = "<http://example.org/g>"
    patch_log.append(
        patches.stream(
            [NamespaceAdd("ex", "<http://example.org/>", ""), NamespaceAdd("g", "<http://g/>", graph), Add(*quad("a"))]
        )
    )
    patch_log.snapshots.build()
    store.create("copy")

    copied = store.log("copy").snapshots.put(0, patch_log.snapshots.read(1))

    assert copied.sha256 == patch_log.snapshots.find(1).sha256


def test_empty_dataset_is_one(patch_log):
    assert patch_log.snapshots.put(0, [], "nquads").quads == 0
    assert quads(data_of(patch_log, 0)) == set()


def test_the_same_dataset_is_taken_twice(patch_log):
    first = patch_log.snapshots.put(0, [NQUADS], "nquads")

    assert patch_log.snapshots.put(0, [jelly()]) == first
    assert patch_log.snapshots.build(0) == first


@pytest.mark.parametrize("text", [b"", NQUADS + NQUADS.replace(b"/a>", b"/z>"), NQUADS.replace(b"/a>", b"/z>")])
def test_another_dataset_is_refused(patch_log, text):
    first = patch_log.snapshots.put(0, [NQUADS], "nquads")

    with pytest.raises(SnapshotRefused, match="other quads"):
        patch_log.snapshots.put(0, [text], "nquads")

    assert patch_log.snapshots.list() == [first]


def test_log_with_patches_has_started_already(three):
    with pytest.raises(SnapshotRefused, match="patches"):
        three.snapshots.put(0, [NQUADS], "nquads")


def test_dataset_at_a_later_version_has_to_be_what_the_log_says(three):
    text = b"".join(b'<http://example.org/%c> <http://example.org/p> "v" .\n' % subject for subject in b"ab")

    taken = three.snapshots.put(2, [text], "nquads")

    assert taken == three.snapshots.find(2)
    with pytest.raises(SnapshotRefused, match="other quads"):
        three.snapshots.put(3, [text], "nquads")
    with pytest.raises(SnapshotRefused, match="head is 3"):
        three.snapshots.put(4, [text], "nquads")


@pytest.mark.parametrize(
    ("data", "format"),
    [(NQUADS + b"<a> .\n", "nquads"), (jelly()[:-3], "jelly"), (b"nonsense", "jelly"), (NQUADS, "jelly")],
)
def test_dataset_that_is_not_well_formed_leaves_nothing(patch_log, data, format):
    with pytest.raises(CodecError):
        patch_log.snapshots.put(0, [data], format)

    assert patch_log.snapshots.list() == []
    assert patch_log.snapshots.put(0, [NQUADS], "nquads").quads == 2


def test_format_that_is_none_is_refused(patch_log):
    with pytest.raises(UsageError, match="format"):
        patch_log.snapshots.put(0, [NQUADS], "turtle")


def test_options_of_the_log_hold_for_what_it_starts_with(store):
    store.create("plain", LogOptions(rdf_star=False, generalized_statements=False))

    with pytest.raises(CodecError, match="quoted"):
        store.log("plain").snapshots.put(
            0, [b"<http://s> <http://p> <<( <http://a> <http://b> <http://c> )>> .\n"], "nquads"
        )

    assert store.log("plain").snapshots.list() == []


def test_snapshot_that_the_log_starts_with_is_not_deleted(patch_log, patches):
    patch_log.snapshots.put(0, [NQUADS], "nquads")
    patch_log.append(patches.one("a"))

    with pytest.raises(SnapshotRefused, match="starts with"):
        patch_log.snapshots.delete(0)


# Truncation


def test_truncation_needs_a_snapshot(three):
    for force in (False, True):
        with pytest.raises(TruncationRefused, match="no snapshot") as raised:
            three.truncate_before(2, force=force)
        assert raised.value.consumer is None

    three.snapshots.build(1)
    assert three.truncate_before(2).first_version == 2
    with pytest.raises(TruncationRefused, match="no snapshot"):
        three.truncate_before(3)


def test_later_snapshot_stands_for_earlier_patches(three):
    three.snapshots.build(3)

    assert three.truncate_before(2).first_version == 2


def test_truncation_leaves_what_a_consumer_needs(three):
    three.snapshots.build()
    three.consumers.advance("slow", 1)
    three.consumers.advance("fast", 3)

    with pytest.raises(TruncationRefused, match="slow") as raised:
        three.truncate_before(3)

    assert raised.value.consumer == "slow"
    assert three.truncate_before(2).first_version == 2
    assert three.truncate_before(3, force=True).first_version == 3


def test_truncation_goes_as_far_as_nobody_minds(three):
    assert three.truncate_before().first_version == 1
    three.snapshots.build(1)
    three.snapshots.build(2)
    three.consumers.advance("slow", 1)

    assert three.truncate_before().first_version == 2
    three.consumers.advance("slow", 3)
    assert three.truncate_before().first_version == 3
    assert three.truncate_before().first_version == 3


def test_snapshots_are_made_from_one_another_when_the_patches_are_gone(three, patches):
    three.snapshots.build(2)
    three.truncate_before(3)

    three.append(patches.stream([Delete(*quad("a"))]))
    three.snapshots.build()

    assert quads(data_of(three, 4)) == {quad("b"), quad("c")}
    with pytest.raises(SnapshotRefused, match="gone"):
        three.snapshots.build(1)
    with pytest.raises(PositionGone):
        three.read(0)


def test_snapshot_that_stands_for_what_is_gone_is_not_deleted(three):
    three.snapshots.build(2)
    three.truncate_before(3)

    with pytest.raises(SnapshotRefused, match="stands for"):
        three.snapshots.delete(2)

    three.snapshots.build(3)
    three.snapshots.delete(2)
    with pytest.raises(SnapshotRefused, match="stands for"):
        three.snapshots.delete(3)


def test_snapshots_survive_a_restart(backend, three):
    snapshot = three.snapshots.build()

    again = backend.open().log("people")

    assert again.snapshots.list() == [snapshot]
    assert again.snapshots.verify(3)
