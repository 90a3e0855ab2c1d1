import gzip
from pathlib import Path

import pytest
import yaml

from patchlog import patch, rdf
from patchlog.codec.options import CANONICAL_PATCH, StatementType, StreamType
from patchlog.patch import Add, Delete, Punctuation

EX = "http://ex.org/"
A, B, C, G = (f"<{EX}{name}>" for name in "abcg")
TEXT = f"""\
H id <urn:uuid:1> .
TX .
PA "ex" "{EX}" .
A {A} {B} {C} {G} .
D {A} {B} "01"^^<{EX}t> .
TC .
Z .
A <_:x> {B} <_:y> .
"""
STAR = f"A <<( {A} {B} {C} )>> {B} {C} .\nZ .\n"


@pytest.fixture
def files(folder, done):
    (folder / "a.rdfp").write_text(TEXT)
    done("patch", "to-jelly", "a.rdfp", "--to", "a.jellyp")
    return folder


def test_text_goes_to_jelly_and_back(done, files):
    done("patch", "from-jelly", "a.jellyp", "--to", "b.rdfp")

    assert (files / "b.rdfp").read_text() == f"{TEXT}Z .\n"


def test_pipes_are_the_default(done):
    jelly = done("patch", "to-jelly", stdin=TEXT.encode()).out

    assert done("patch", "from-jelly", stdin=jelly).text == f"{TEXT}Z .\n"


@pytest.mark.usefixtures("files")
def test_stream_may_hold_anything_by_default(done):
    assert patch.read_options("a.jellyp") == CANONICAL_PATCH
    assert done("patch", "from-jelly", stdin=done("patch", "to-jelly", stdin=STAR.encode()).out).text == STAR


@pytest.mark.parametrize("stream_type", ["punctuated", "FRAME"])
def test_types_of_the_stream_can_be_chosen(done, files, stream_type):
    (files / "t.rdfp").write_text(f"A {A} {B} {C} .\nZ .\nD {A} {B} {C} .\nZ .\n")

    done("patch", "to-jelly", "t.rdfp", "--stream-type", stream_type, "--statement-type", "triples", "--to", "o.jellyp")

    options = patch.read_options("o.jellyp")
    assert (options.stream_type, options.statement_type) == (StreamType[stream_type.upper()], StatementType.TRIPLES)
    assert list(patch.read("o.jellyp")) == [Add(A, B, C), Punctuation(), Delete(A, B, C), Punctuation()]


def test_other_options_can_be_chosen(done, files):
    done(
        "patch",
        "to-jelly",
        "a.rdfp",
        "--to",
        "o.jellyp",
        *("--opt.stream-type", "PUNCTUATED"),
        *("--opt.statement-type", "QUADS"),
        *("--opt.rdf-star", "false"),
        *("--opt.generalized-statements", "false"),
        *("--opt.max-name-table-size", "16"),
        *("--opt.max-prefix-table-size", "8"),
        *("--opt.max-datatype-table-size", "4"),
        *("--rows-per-frame", "4"),
    )

    assert patch.read_options("o.jellyp") == patch.PatchOptions(
        max_name_table_size=16, max_prefix_table_size=8, max_datatype_table_size=4
    )
    assert yaml.safe_load(done("patch", "inspect", "o.jellyp").out)["frames"]["frame_count"] > 2
    done("patch", "to-jelly", "a.rdfp", "--options-from", "o.jellyp", "--opt.rdf-star", "true", "--to", "p.jellyp")
    assert patch.read_options("p.jellyp").max_name_table_size == 16
    assert patch.read_options("p.jellyp").rdf_star
    assert files


def test_flat_stream_refuses_several_patches(failed, files):
    assert "a.rdfp: " in failed("patch", "to-jelly", "a.rdfp", "--stream-type", "flat", "--to", "o.jellyp")
    assert not (files / "o.jellyp").exists()


def test_canonical_patches_are_the_same_bytes(done, files):
    done("patch", "to-jelly", "a.rdfp", "--canonical", "--to", "o.jellyp")
    done("patch", "transcode", "a.jellyp", "--canonical", "--to", "p.jellyp")

    assert (files / "o.jellyp").read_bytes() == (files / "p.jellyp").read_bytes()
    assert (files / "o.jellyp").read_bytes() == patch.canonical(patch.read(files / "a.rdfp"))


@pytest.mark.parametrize("arguments", [("--stream-type", "FLAT"), ("--rows-per-frame", "1"), ("--delimited", "false")])
@pytest.mark.usefixtures("files")
def test_canonical_fixes_the_other_options(call, arguments):
    assert call("patch", "to-jelly", "a.rdfp", "--canonical", *arguments).code == 2


def test_several_files_are_one_stream(done, files):
    (files / "b.rdfp").write_text(f"D {A} {B} {C} .\n")

    done("patch", "to-jelly", "a.rdfp", "b.rdfp", "--to", "o.jellyp")

    operations = list(patch.read("o.jellyp"))
    assert operations[-4:] == [Add("_:x", B, "_:y", ""), Punctuation(), Delete(A, B, C, ""), Punctuation()]


def test_statements_become_additions(done, folder):
    rdf.write(folder / "a.nq", [(A, B, C), (A, B, C, G)])

    done("patch", "to-jelly", "a.nq", "--to", "o.jellyp")

    assert list(patch.read("o.jellyp")) == [Add(A, B, C, ""), Add(A, B, C, G), Punctuation()]


def test_statements_and_patches_are_not_mixed(failed, files):
    rdf.write(files / "a.nq", [(A, B, C)])

    assert "cannot be mixed" in failed("patch", "to-jelly", "a.nq", "a.rdfp", "--to", "o")


def test_jelly_text_goes_out_and_in_unchanged(done, files):
    done("patch", "from-jelly", "a.jellyp", "--to", "a.jellyp.txt")
    done("patch", "to-jelly", "a.jellyp.txt", "--to", "b.jellyp")

    assert (files / "b.jellyp").read_bytes() == (files / "a.jellyp").read_bytes()


@pytest.mark.usefixtures("files")
def test_frames_are_taken_as_text(done, call):
    done("patch", "to-jelly", "a.rdfp", "--stream-type", "frame", "--to", "f.jellyp")

    text = done("patch", "from-jelly", "f.jellyp", "--out-format", "jelly-text", "--take-frames", "1..").text

    assert [line for line in text.splitlines() if line.startswith("#")] == ["# Frame 1"]
    assert call("patch", "from-jelly", "f.jellyp", "--take-frames", "0").code == 2


@pytest.mark.usefixtures("files")
def test_transcoding_changes_the_type(done):
    done("patch", "transcode", "a.jellyp", "--stream-type", "frame", "--to", "o.jellyp")

    assert patch.read_options("o.jellyp").stream_type is StreamType.FRAME
    assert list(patch.read("o.jellyp")) == list(patch.read("a.jellyp"))


@pytest.mark.usefixtures("files")
def test_transcoding_joins_patches_of_different_types(done):
    flat = patch.PatchOptions(
        statement_type=StatementType.TRIPLES, stream_type=StreamType.FLAT, max_name_table_size=5000
    )
    patch.write("flat.jellyp", [Add(A, B, C)], options=flat)

    done("patch", "transcode", "flat.jellyp", "flat.jellyp", "--no-limits", "--to", "two.jellyp")
    done("patch", "transcode", "flat.jellyp", "a.jellyp", "--no-limits", "--to", "mixed.jellyp")

    two = patch.read_options("two.jellyp", limits=patch.Limits(max_name_table_size=5000))
    assert (two.stream_type, two.statement_type) == (StreamType.PUNCTUATED, StatementType.TRIPLES)
    mixed = patch.read_options("mixed.jellyp", limits=patch.Limits(max_name_table_size=5000))
    assert (mixed.stream_type, mixed.statement_type, mixed.rdf_star) == (
        StreamType.PUNCTUATED,
        StatementType.QUADS,
        True,
    )


def test_transactions_out_of_order_are_refused_unless_lax(done, failed):
    text = b"TC .\n"

    assert failed("patch", "to-jelly", "--to", "o", stdin=text).startswith("standard input: line 1: ")
    jelly = done("patch", "to-jelly", "--lax", stdin=text).out
    assert failed("patch", "from-jelly", "--to", "o", stdin=jelly).startswith("standard input: frame 0, row 1: ")
    assert failed("patch", "validate", stdin=jelly)
    assert done("patch", "from-jelly", "--lax", stdin=jelly).text == "TC .\nZ .\n"


@pytest.mark.usefixtures("files")
def test_inspection_counts_rows_of_patches(done):
    report = yaml.safe_load(done("patch", "inspect", "a.jellyp", "--detail", "flat").out)

    assert report["stream_options"]["statement_type"] == "PATCH_STATEMENT_TYPE_QUADS (2)"
    assert (report["frames"]["add_count"], report["frames"]["delete_count"]) == (2, 1)
    assert report["frames"]["object_literal_count"] == 1


@pytest.mark.usefixtures("files")
def test_valid_patches_are_said_to_be(done):
    assert done("patch", "validate", "a.jellyp").text == "a.jellyp is valid: 7 operations in 2 patches\n"


@pytest.mark.usefixtures("files")
def test_patches_are_compared_with_their_text(done):
    done("patch", "validate", "a.jellyp", "--compare-to-patch-file", "a.rdfp", "--options-file", "a.jellyp")


def test_patches_that_differ_are_found_to(failed, done, files):
    (files / "b.rdfp").write_text(TEXT.replace("01", "1"))
    done("patch", "to-jelly", "a.rdfp", "--opt.rdf-star", "false", "--to", "b.jellyp")

    message = failed("patch", "validate", "a.jellyp", "--compare-to-patch-file", "b.rdfp")
    assert message.startswith("a.jellyp: the operations are not those of b.rdfp: operation 4: expected Delete(")
    assert "rdf_star is True instead of False" in failed("patch", "validate", "a.jellyp", "--options-file", "b.jellyp")
    assert "not delimited" not in failed("patch", "validate", "a.jellyp", "--delimited", "false")


def test_concatenated_patches_are_read_where_asked_for(done, failed):
    one = done("patch", "to-jelly", "--statement-type", "triples", stdin=b"A <a> <b> <c> .").out
    other = done("patch", "to-jelly", stdin=b"A <a> <b> <c> <d> .").out

    failed("patch", "from-jelly", "--to", "o", stdin=one + other)
    text = done("patch", "from-jelly", "--concatenated", stdin=one + other).text
    assert text == "A <a> <b> <c> .\nZ .\nA <a> <b> <c> <d> .\nZ .\n"


@pytest.mark.parametrize("command", ["from-jelly", "validate", "inspect"])
def test_patches_laid_end_to_end_are_remarked_on_unless_canonical(call, done, command):
    one, canonical = (
        done("patch", "to-jelly", *options, stdin=b"TX .\nA <a> <b> <c> .\nTC .").out
        for options in ([], ["--canonical"])
    )

    assert "--concatenated" in call("patch", command, stdin=one + one).err
    done("patch", command, stdin=one + canonical + canonical)


def test_stream_that_ends_inside_a_transaction_is_not_valid(done, failed, folder):
    """As `push` refuses it."""
    whole = done("patch", "to-jelly", "--stream-type", "flat", stdin=b"TX .\nA <a> <b> <c> .\nTC .").out
    (folder / "open.jellyp").write_bytes(
        done("patch", "to-jelly", "--stream-type", "flat", stdin=b"TX .\nA <a> <b> <c> .").out
    )

    assert "inside a transaction" in failed("patch", "validate", "open.jellyp")
    done("log", "create", "people", "--database", "sqlite:///log.db")
    assert "inside a transaction" in failed("push", "open.jellyp", "--log", "people", "--database", "sqlite:///log.db")
    assert done("patch", "validate", "--lax", "open.jellyp").text.startswith("open.jellyp is valid")
    assert "3 operations" in done("patch", "validate", stdin=whole).text


@pytest.fixture
def datasets(folder):
    rdf.write("before.nq", [(A, B, C), (B, B, C, G), ("_:x", B, C)])
    rdf.write("after.nq", [(A, B, '"new"'), (B, B, C, G), ("_:x", B, C)])
    return folder


DIFFERENCE = f'TX .\nD {A} {B} {C} .\nA {A} {B} "new" .\nTC .\n'


@pytest.mark.usefixtures("datasets")
def test_difference_of_datasets_is_a_patch(done):
    assert done("patch", "diff", "before.nq", "after.nq").text == DIFFERENCE


@pytest.mark.parametrize("name", ["x.jelly", "x.jelly.gz", "x.trig", "x.nq.gz"])
def test_datasets_may_be_of_any_format(done, datasets, name):
    rdf.convert("after.nq", name)

    text = done("patch", "diff", "before.nq", name).text

    assert sorted(line for line in text.splitlines() if "_:" not in line) == sorted(DIFFERENCE.splitlines())
    assert datasets


@pytest.mark.usefixtures("datasets")
def test_difference_is_canonical_as_jelly(done):
    done("patch", "diff", "before.nq", "after.nq", "--to", "d.jellyp")

    operations = patch.diff(rdf.read("before.nq"), rdf.read("after.nq"))
    assert list(patch.read("d.jellyp")) == [*operations, Punctuation()]
    assert Path("d.jellyp").read_bytes() == patch.canonical(operations)


def test_patch_files_stand_for_what_they_leave_behind(done, datasets):
    (datasets / "one.rdfp").write_text(f'PA "ex" <{EX}> .\nA {A} {B} {C} .\nZ .\nTX .\nD {A} {B} {C} .\nTA .\n')
    (datasets / "two.rdfp").write_text(f"A {A} {B} {C} .\nA {B} {B} {C} .\nD {A} {B} {C} .\n")

    assert done("patch", "diff", "one.rdfp", "two.rdfp").text == (
        f'TX .\nPD "ex" .\nD {A} {B} {C} .\nA {B} {B} {C} .\nTC .\n'
    )
    assert done("patch", "diff", "one.rdfp", "before.nq").text == (
        f"TX .\nA {B} {B} {C} {G} .\nA <_:x> {B} {C} .\nTC .\n"
    )


def test_prefixes_of_datasets_are_compared_where_asked_for(done, folder):
    (folder / "a.ttl").write_text(f"@prefix a: <{EX}> . a:a a:b a:c .")
    (folder / "b.ttl").write_text(f"@prefix b: <{EX}> . b:a b:b b:c .")

    assert done("patch", "diff", "a.ttl", "b.ttl").text == "TX .\nTC .\n"
    assert done("patch", "diff", "a.ttl", "b.ttl", "--enable-namespace-declarations").text == (
        f'TX .\nPD "a" .\nPA "b" "{EX}" .\nTC .\n'
    )


def test_difference_with_a_pipe_names_its_format(done, datasets):
    jelly = done("rdf", "to-jelly", "after.nq").out

    assert done("patch", "diff", "before.nq", "-", stdin=(datasets / "after.nq").read_bytes()).text == DIFFERENCE
    (datasets / "b.data").write_bytes(done("rdf", "to-jelly", "before.nq").out)
    assert done("patch", "diff", "b.data", "-", "--in-format", "jelly", stdin=jelly).text == DIFFERENCE


@pytest.mark.parametrize(
    ("dataset", "to"),
    [("before.nq", "o.nq"), ("before.jelly", "o.jelly"), ("before.nq", "o.jelly.gz"), ("before.jelly", "o.trig")],
)
def test_patches_are_applied_in_their_order(done, datasets, dataset, to):
    rdf.convert("before.nq", "before.jelly")
    (datasets / "one.rdfp").write_text(DIFFERENCE)
    (datasets / "two.rdfp").write_text(f'D {A} {B} "new" .\nA {A} {B} "newer" .\n')

    done("patch", "apply", "one.rdfp", "two.rdfp", dataset, "--to", to)

    found = {(*statement, "")[:4] for statement in rdf.read(to)}
    blank = next(subject for subject, *_ in found if subject.startswith("_:"))
    assert found == {(A, B, '"newer"', ""), (B, B, C, G), (blank, B, C, "")}


def test_patch_goes_onto_the_dataset_itself(done, datasets):
    (datasets / "one.rdfp").write_text(DIFFERENCE)

    done("patch", "apply", "one.rdfp", "before.nq", "--to", "before.nq")

    assert set(rdf.read("before.nq")) == set(rdf.read("after.nq"))


def test_result_is_of_the_format_of_the_dataset(done, folder):
    (folder / "p.rdfp").write_text(f'PA "new" <{EX}new/> .\nPD "old" .\nA {A} {B} <{EX}new/x> .\n')
    dataset = f"@prefix old: <{EX}> . @prefix kept: <{EX}kept/> . old:a old:b old:c .".encode()

    text = done("patch", "apply", "p.rdfp", "-", "--in-format", "ttl", stdin=dataset).text

    assert text == (f"@prefix new: <{EX}new/> .\n@prefix kept: <{EX}kept/> .\n{A} {B} {C}, new:x .\n")


def test_triples_stay_triples_as_jelly(done, folder):
    rdf.write("t.jelly", [(A, B, C)])
    (folder / "p.rdfp").write_text(f"A {B} {B} {C} .\n")
    (folder / "g.rdfp").write_text(f"A {B} {B} {C} {G} .\n")

    triples = done("patch", "apply", "p.rdfp", "t.jelly").out
    quads = done("patch", "apply", "g.rdfp", "t.jelly").out

    assert list(rdf.read(triples)) == [(A, B, C), (B, B, C)]
    assert list(rdf.read(quads)) == [(A, B, C, ""), (B, B, C, G)]


def test_patch_that_a_format_cannot_hold_leaves_the_dataset(failed, folder):
    rdf.write("t.nt", [(A, B, C)])
    (folder / "g.rdfp").write_text(f"A {B} {B} {C} {G} .\n")

    failed("patch", "apply", "g.rdfp", "t.nt", "--to", "t.nt")

    assert list(rdf.read("t.nt")) == [(A, B, C)]


def test_squashed_patches_are_one(done, files):
    (files / "b.rdfp").write_text(f"D {A} {B} {C} {G} .\nTX .\nA {B} {B} {B} .\n")

    text = done("patch", "squash", "a.jellyp", "b.rdfp").text

    assert (
        text == f'TX .\nPA "ex" "{EX}" .\nD {A} {B} "01"^^<{EX}t> .\nD {A} {B} {C} {G} .\nA <_:x> {B} <_:y> .\nTC .\n'
    )


def test_end_of_a_file_ends_its_patch(done, folder):
    """A transaction that one file leaves open is not committed by the next."""
    (folder / "one.rdfp").write_text(f"TX .\nA {A} {B} {C} .\n")
    (folder / "two.rdfp").write_text(f"TX .\nA {B} {B} {C} .\nTC .\n")

    assert done("patch", "squash", "one.rdfp", "two.rdfp").text == f"TX .\nA {B} {B} {C} .\nTC .\n"


@pytest.mark.usefixtures("datasets")
def test_inverse_leads_back(done):
    done("patch", "diff", "before.nq", "after.nq", "--to", "d.jellyp")

    done("patch", "invert", "d.jellyp", "--dataset", "before.nq", "--to", "undo.rdfp.gz")
    done("patch", "apply", "undo.rdfp.gz", "after.nq", "--to", "again.nq")

    assert set(rdf.read("again.nq")) == set(rdf.read("before.nq"))
    with gzip.open("undo.rdfp.gz", "rt") as file:
        assert file.read() == f'TX .\nD {A} {B} "new" .\nA {A} {B} {C} .\nTC .\n'


def test_inverse_brings_back_prefixes_that_the_dataset_declared(done, folder):
    (folder / "p.rdfp").write_text(f'PA "ex" <{EX}new/> .\nPA "other" <{EX}> .\n')
    (folder / "d.ttl").write_text(f"@prefix ex: <{EX}> . ex:a ex:b ex:c .")

    assert done("patch", "invert", "p.rdfp", "--dataset", "d.ttl").text == (
        f'TX .\nPA "ex" "{EX}" .\nPD "other" .\nTC .\n'
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("squash", "p.data"),
        ("squash", "before.nq"),
        ("diff", "before.nq", "p.data"),
        ("apply", "p.rdfp", "p.data"),
        ("invert", "missing.rdfp", "--dataset", "before.nq"),
        ("invert", "p.rdfp", "--dataset", "missing.nq"),
        ("diff", "before.nq", "after.nq", "--to", "o.nq"),
    ],
)
def test_file_that_cannot_stand_there_is_one_clear_line(failed, datasets, arguments):
    (datasets / "p.rdfp").write_text("")
    (datasets / "p.data").write_text("")

    message = failed("patch", *arguments)

    assert any(argument in message for argument in arguments if "." in argument)


def test_format_of_patches_can_be_named(done, datasets):
    (datasets / "p.data").write_text(DIFFERENCE)

    assert done("patch", "squash", "p.data", "--patch-format", "rdfp").text == DIFFERENCE
    assert done("patch", "squash", "-", stdin=DIFFERENCE.encode()).text == DIFFERENCE
    jelly = patch.canonical(patch.read(DIFFERENCE.encode(), "rdf-patch"))
    assert done("patch", "squash", "-", "--patch-format", "jelly-patch", stdin=jelly).text == DIFFERENCE


@pytest.mark.parametrize("command", [("diff", "-", "-"), ("apply", "-", "-"), ("squash", "-", "-")])
def test_standard_input_stands_for_one_file(call, command):
    ended = call("patch", *command)

    assert (ended.code, ended.out) == (2, b"")
    assert ended.err.startswith("error: standard input can stand for one file only\n")


def test_compares_to_standard_input(done, folder):
    text = "A <http://a> <http://b> <http://c> .\n"
    (folder / "a.rdfp").write_text(text)
    done("patch", "to-jelly", "a.rdfp", "--to", "a.jellyp")

    done("patch", "validate", "a.jellyp", "--compare-to-patch-file", "-", stdin=text.encode())


def test_jelly_patch_is_not_written_to_a_name_of_another_format(failed, folder):
    (folder / "a.rdfp").write_text("TX .\nTC .\n")

    failed("patch", "to-jelly", "a.rdfp", "--to", "a.rdfp")
    assert (folder / "a.rdfp").read_text() == "TX .\nTC .\n"
