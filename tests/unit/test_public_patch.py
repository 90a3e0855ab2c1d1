import io
import socket

import pytest

from patchlog import patch
from patchlog.errors import TransactionError, UnexpectedRow, UsageError
from patchlog.patch import (
    Add,
    Delete,
    Header,
    NamespaceAdd,
    NamespaceDelete,
    Punctuation,
    TransactionAbort,
    TransactionCommit,
    TransactionStart,
)

A, B, C, G = "<http://ex.org/a>", "<http://ex.org/b>", "<http://ex.org/c>", "<http://ex.org/g>"
PATCH = [
    Header("id", "<urn:uuid:1>"),
    TransactionStart(),
    NamespaceAdd("ex", "<http://ex.org/>", ""),
    Add(A, B, C, G),
    Delete(A, B, '"01"^^<http://ex.org/t>', ""),
    TransactionCommit(),
    Punctuation(),
]
TEXT = """\
H id <urn:uuid:1> .
TX .
PA "ex" "http://ex.org/" .
A <http://ex.org/a> <http://ex.org/b> <http://ex.org/c> <http://ex.org/g> .
D <http://ex.org/a> <http://ex.org/b> "01"^^<http://ex.org/t> .
TC .
Z .
"""


def jelly(operations, **options):
    out = io.BytesIO()
    patch.write(out, operations, **options)
    return out.getvalue()


def test_operations_are_read_as_they_were_written():
    assert list(patch.read(jelly(PATCH * 3))) == PATCH * 3


def test_operations_are_written_as_text(tmp_path):
    path = tmp_path / "log.rdfp"

    patch.write(path, PATCH)

    assert path.read_text() == TEXT
    assert [type(operation) for operation in patch.read(path)] == [type(operation) for operation in PATCH]


@pytest.mark.parametrize("name", ["log.jellyp", "log.jellyp.gz", "log.rdfp", "log.rdfp.gz"])
def test_file_name_says_the_format(tmp_path, name):
    patch.write(tmp_path / name, PATCH)

    assert len(list(patch.read(tmp_path / name))) == len(PATCH)


def test_options_are_those_that_were_given():
    options = patch.PatchOptions(
        statement_type=patch.StatementType.TRIPLES, stream_type=patch.StreamType.FLAT, max_name_table_size=16
    )

    data = jelly([Add(A, B, C)], options=options)

    assert patch.read_options(data) == options
    assert list(patch.read(data)) == [Add(A, B, C)]


def test_patch_goes_out_with_its_punctuation():
    ours, theirs = socket.socketpair()
    seen = []

    def operations():
        for _ in range(3):
            yield from PATCH
            seen.extend(next(received) for _ in PATCH)

    with ours, theirs:
        received = patch.read(theirs)
        patch.write(ours, operations())

    assert seen == PATCH * 3


def test_canonical_bytes_can_be_laid_end_to_end():
    one, other = patch.canonical(PATCH), patch.canonical([Delete(A, B, C, G), Punctuation()])

    assert patch.canonical(PATCH) == one
    assert list(patch.read(one + other + one)) == [*PATCH, Delete(A, B, C, G), Punctuation(), *PATCH]


def test_canonical_bytes_of_nothing_are_an_empty_patch_that_is_read_back():
    nothing = patch.canonical([])

    assert list(patch.read(nothing)) == [Punctuation()]
    assert patch.canonical(patch.read(nothing)) == nothing
    assert list(patch.read(nothing + patch.canonical(PATCH))) == [Punctuation(), *PATCH]


@pytest.mark.parametrize("call", [patch.effect, patch.squash, lambda things: list(patch.apply(things, []))])
def test_what_is_no_operation_has_no_effect_but_an_error(call):
    with pytest.raises(UsageError, match="5 is not an operation"):
        call([5])


def test_canonical_flags_are_those_of_the_log():
    options = patch.read_options(patch.canonical(PATCH, rdf_star=False))

    assert (options.rdf_star, options.generalized_statements) == (False, True)


@pytest.mark.parametrize(
    ("source", "sink"), [("a.rdfp", "b.jellyp"), ("a.jellyp", "b.rdfp.gz"), ("a.jellyp", "b.jellyp")]
)
def test_one_format_is_converted_to_another(tmp_path, source, sink):
    patch.write(tmp_path / source, PATCH)

    patch.convert(tmp_path / source, tmp_path / sink)

    assert len(list(patch.read(tmp_path / sink))) == len(PATCH)


def test_flat_stream_refuses_a_second_patch(tmp_path):
    options = patch.PatchOptions(stream_type=patch.StreamType.FLAT)

    with pytest.raises(UnexpectedRow):
        patch.write(tmp_path / "log.jellyp", PATCH * 2, options=options)
    assert list(tmp_path.iterdir()) == []


def test_transactions_out_of_order_are_read_only_leniently():
    text = b"TC ."

    with pytest.raises(TransactionError):
        list(patch.read(text, "rdf-patch"))
    assert list(patch.read(text, "rdf-patch", strict=False)) == [TransactionCommit()]


def test_effect_is_what_is_left_in_the_end():
    change = patch.effect(
        [Add(A, B, C), TransactionStart(), Delete(A, B, C), TransactionAbort(), Delete(B, B, C), NamespaceDelete("x")]
    )

    assert (change.adds, change.deletes) == ({(A, B, C, "")}, {(B, B, C, "")})
    assert change.namespaces == {("", "x"): None}


def test_patch_is_applied_to_a_dataset_that_goes_by():
    before = [(A, B, C), (B, B, C, G), (C, B, C)]
    operations = [Delete(A, B, C), Add(B, B, C, G), Add(A, A, A), Delete(B, B, B)]

    assert list(patch.apply(operations, iter(before))) == [(C, B, C), (A, A, A, ""), (B, B, C, G)]


def test_difference_leads_from_one_dataset_to_the_other():
    before, after = [(A, B, C), (B, B, C, G)], [(B, B, C, G), (C, C, C)]

    operations = patch.diff(before, after)

    assert operations == [TransactionStart(), Delete(A, B, C, ""), Add(C, C, C, ""), TransactionCommit()]
    assert set(patch.apply(operations, before)) == {(B, B, C, G), (C, C, C, "")}


def test_difference_of_namespaces_is_made_where_they_are_given():
    operations = patch.diff([], [], {("", "a"): A}, {("", "b"): B})

    assert operations[1:-1] == [NamespaceDelete("a", None, ""), NamespaceAdd("b", B, "")]


def test_inverse_takes_back_only_what_was_changed():
    before = [(A, B, C, ""), (B, B, C, "")]
    operations = [Add(A, B, C, ""), Add(C, B, C, ""), Delete(B, B, C, ""), Delete(G, B, C, "")]

    undo = patch.invert(operations, iter(before))

    assert undo == [TransactionStart(), Delete(C, B, C, ""), Add(B, B, C, ""), TransactionCommit()]
    assert set(patch.apply(undo, patch.apply(operations, before))) == set(before)


def test_squashed_patches_are_one_with_the_same_effect():
    operations = [Add(A, B, C, G), Punctuation(), Delete(A, B, C, G), Add(B, B, C, G), Punctuation()]

    assert patch.squash(operations) == [
        TransactionStart(),
        Delete(A, B, C, G),
        Add(B, B, C, G),
        TransactionCommit(),
    ]


def test_operations_go_to_arrow_and_back():
    pa = pytest.importorskip("pyarrow")

    table = pa.table(patch.to_arrow(jelly(PATCH)))

    assert table["operation"].to_pylist() == ["H", "TX", "PA", "A", "D", "TC", "Z"]
    out = io.BytesIO()
    patch.from_arrow(out, table)
    assert list(patch.read(out.getvalue())) == PATCH


def test_text_of_frames_is_read(tmp_path):
    path = tmp_path / "a.jellyp.txt"
    path.write_text("""\
rows { options { statement_type: PATCH_STATEMENT_TYPE_QUADS stream_type: PATCH_STREAM_TYPE_FLAT
                 max_name_table_size: 8 version: 1 } }
rows { transaction_start {} }
rows { transaction_abort {} }
""")

    assert list(patch.read(path)) == [TransactionStart(), TransactionAbort()]


def test_statement_formats_are_no_patches(tmp_path):
    with pytest.raises(UsageError, match="is N-Quads by its name"):
        patch.read(tmp_path / "data.nq")


def test_public_names_are_there():
    assert set(patch.__all__) <= set(dir(patch))
