import pytest
import yaml

from patchlog import rdf
from patchlog.codec.options import PhysicalType

EX = "http://ex.org/"
QUADS = f"""\
<{EX}a> <{EX}b> "1" <{EX}g> .
<{EX}a> <{EX}b> _:x .
_:x <{EX}b> _:y .
"""
RELABELLED = f"""\
_:one <{EX}b> _:two .
<{EX}a> <{EX}b> _:one .
<{EX}a> <{EX}b> "1" <{EX}g> .
"""


@pytest.fixture
def files(folder, done):
    (folder / "a.nq").write_text(QUADS)
    (folder / "same.nq").write_text(RELABELLED)
    (folder / "other.nq").write_text(QUADS.replace('"1"', '"2"'))
    done("rdf", "to-jelly", "a.nq", "--to", "a.jelly", "--opt.rdf-star", "false")
    return folder


@pytest.mark.usefixtures("files")
def test_inspection_is_yaml(done):
    report = yaml.safe_load(done("rdf", "inspect", "a.jelly").out)

    assert report["stream_options"]["physical_type"] == "PHYSICAL_STREAM_TYPE_QUADS (2)"
    assert (report["frames"]["frame_count"], report["frames"]["quad_count"]) == (1, 3)


def test_inspection_goes_to_a_file(done, files):
    done("rdf", "inspect", "a.jelly", "--per-frame", "--detail", "node", "--size", "--to", "report.yaml")

    frame = yaml.safe_load((files / "report.yaml").read_text())["frames"][0]
    assert frame["frame_index"] == 0
    assert frame["node_details"]["bnode_count"] == 3
    assert frame["frame_size"] > frame["quad_size"] > 0


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(("command", "path"), [("rdf", "a.jelly"), ("patch", "a.jellyp")])
def test_inspection_counts_terms_in_all_ways(done, command, path):
    done("patch", "to-jelly", "a.nq", "--to", "a.jellyp")

    def counted(detail):
        return yaml.safe_load(done(command, "inspect", path, "--detail", detail).out)["frames"]

    assert counted("all") == counted("flat") | counted("node") | counted("term")


def test_inspection_shows_what_validation_refuses(done, failed, files):
    bad = (files / "a.jelly").read_bytes() + b"\x04\x0a\x02\x12\x00"

    assert yaml.safe_load(done("rdf", "inspect", stdin=bad).out)["frames"]["triple_count"] == 1
    assert "frame 1, row 0" in failed("rdf", "validate", stdin=bad)


def test_inspection_of_another_format_is_an_error(failed):
    assert failed("rdf", "inspect", stdin=b"<html>").startswith("standard input: frame 0: ")


def test_inspection_of_the_other_kind_of_jelly_says_which_it_is(done, failed, folder):
    done("patch", "to-jelly", "--to", "p.jellyp", stdin=b"A <a> <b> <c> .")
    done("rdf", "to-jelly", "--to", "a.jelly", stdin=b"<a> <b> <c> .")

    assert failed("rdf", "inspect", "p.jellyp") == ("p.jellyp is Jelly-Patch by its name; what can stand here is jelly")
    assert failed("patch", "inspect", "a.jelly") == (
        "a.jelly is Jelly-RDF by its name; what can stand here is jelly-patch"
    )
    assert failed("rdf", "inspect", stdin=(folder / "p.jellyp").read_bytes()) == (
        "standard input: the options are those of Jelly-Patch: inspect it as that"
    )
    assert failed("patch", "inspect", stdin=(folder / "a.jelly").read_bytes()) == (
        "standard input: the options are those of Jelly-RDF: inspect it as that"
    )


@pytest.mark.usefixtures("files")
def test_valid_stream_is_said_to_be(done):
    assert done("rdf", "validate", "a.jelly").text == "a.jelly is valid: 3 statements in 1 frame\n"
    assert done("rdf", "validate", "a.jelly", "--quiet").text == ""


@pytest.mark.parametrize("name", ["a.nq", "same.nq", "a.jelly"])
@pytest.mark.usefixtures("files")
def test_same_dataset_is_found_to_be_the_same(done, name):
    done("rdf", "validate", "a.jelly", "--compare-to-rdf-file", name)


@pytest.mark.usefixtures("files")
def test_order_is_compared_where_asked_for(done, failed):
    done("rdf", "validate", "a.jelly", "--compare-to-rdf-file", "a.nq", "--compare-ordered")

    message = failed("rdf", "validate", "a.jelly", "--compare-to-rdf-file", "same.nq", "--compare-ordered")
    assert message.startswith("a.jelly: the statements are not those of same.nq: statement 0: expected _:one")


@pytest.mark.usefixtures("files")
def test_other_dataset_is_found_to_be_another(failed):
    message = failed("rdf", "validate", "a.jelly", "--compare-to-rdf-file", "other.nq")

    assert "the statements are not those of other.nq: 1 statement missing" in message


def test_format_of_the_other_file_can_be_named(done, files):
    (files / "a.nq").rename(files / "a.data")

    done("rdf", "validate", "a.jelly", "--compare-to-rdf-file", "a.data", "--compare-to-format", "nq")


def test_error_in_the_other_file_names_it(failed, files):
    (files / "bad.nq").write_text("<a> .")

    message = failed("rdf", "validate", "a.jelly", "--compare-to-rdf-file", "bad.nq")

    assert message.startswith("bad.nq: line 1: ")


@pytest.mark.parametrize("ordered", [[], ["--compare-ordered"]])
def test_only_some_frames_are_compared_where_asked_for(done, failed, folder, ordered):
    statements = [(f"<{EX}{index}>", f"<{EX}p>", f"<{EX}o>") for index in range(3)]
    rdf.write_frames("a.jelly", [[one] for one in statements])
    rdf.write("middle.nt", statements[1:2])
    compared = ["--compare-to-rdf-file", "middle.nt", *ordered]

    done("rdf", "validate", "a.jelly", *compared, "--compare-frame-indices", "1")

    failed("rdf", "validate", "a.jelly", *compared)
    failed("rdf", "validate", "a.jelly", *compared, "--compare-frame-indices", "..2")
    assert folder


@pytest.mark.usefixtures("files")
def test_options_are_compared_where_asked_for(done, failed):
    done("rdf", "to-jelly", "a.nq", "--to", "b.jelly", "--opt.stream-name", "b", "--opt.max-name-table-size", 16)

    done("rdf", "validate", "a.jelly", "--options-file", "a.jelly")
    assert failed("rdf", "validate", "a.jelly", "--options-file", "b.jelly") == (
        "a.jelly: the options are not those of b.jelly: stream_name is '' instead of 'b', "
        "rdf_star is False instead of True, "
        "max_name_table_size is 4000 instead of 16"
    )


@pytest.mark.parametrize(("is_delimited", "wanted", "refused"), [("true", "true", "false"), ("false", "false", "true")])
@pytest.mark.usefixtures("files")
def test_delimiting_is_checked_where_asked_for(done, failed, is_delimited, wanted, refused):
    done("rdf", "to-jelly", "a.nq", "--to", "b.jelly", "--delimited", is_delimited)

    done("rdf", "validate", "b.jelly")
    done("rdf", "validate", "b.jelly", "--delimited", "either")
    done("rdf", "validate", "b.jelly", "--delimited", wanted)
    assert "delimited" in failed("rdf", "validate", "b.jelly", "--delimited", refused)


def test_concatenated_files_are_valid_where_asked_for(done, failed, files):
    quads = (files / "a.jelly").read_bytes()
    triples = done("rdf", "to-jelly", "--in-format", "nt", stdin=f"<{EX}a> <{EX}b> <{EX}c> .".encode()).out

    failed("rdf", "validate", stdin=quads + triples)
    assert "4 statements in 2 frames" in done("rdf", "validate", "--concatenated", stdin=quads + triples).text


def test_empty_input_is_not_valid(failed, done):
    assert failed("rdf", "validate") == "standard input: the stream has no options row"
    done("rdf", "validate", "--lax")


def test_lax_validation_accepts_a_broken_promise(done, failed, files):
    rdf_star = rdf.RdfOptions(physical_type=PhysicalType.TRIPLES, rdf_star=True)
    rdf.write("star.jelly", [(f"<<( <{EX}a> <{EX}b> <{EX}c> )>>", f"<{EX}b>", f"<{EX}c>")], options=rdf_star)
    (files / "star.jelly").write_bytes((files / "star.jelly").read_bytes().replace(b"\x20\x01", b"\x20\x00", 1))

    failed("rdf", "validate", "star.jelly")
    done("rdf", "validate", "star.jelly", "--lax")


def test_compares_to_standard_input(done, call, folder):
    text = "<http://a> <http://b> <http://c> .\n"
    (folder / "a.nq").write_text(text)
    done("rdf", "to-jelly", "a.nq", "--to", "a.jelly")

    done("rdf", "validate", "a.jelly", "--compare-to-rdf-file", "-", stdin=text.encode())
    assert call("rdf", "validate", "-", "--compare-to-rdf-file", "-").code == 2


def test_a_file_to_compare_to_of_no_known_format_is_named(done, failed, folder):
    (folder / "a.nq").write_text("")
    done("rdf", "to-jelly", "a.nq", "--to", "a.jelly")

    assert failed("rdf", "validate", "a.jelly", "--compare-to-rdf-file", "b.jellyp").startswith(
        "b.jellyp is Jelly-Patch"
    )


def lines(name):
    return f"<{EX}{name}/s> <{EX}{name}/p> <{EX}{name}/o> .\n".encode()


@pytest.fixture
def end_to_end(done):
    """Two files with the same options, one behind the other: also a valid stream, of other terms."""
    return b"".join(done("rdf", "to-jelly", "--in-format", "nt", stdin=lines(name)).out for name in "ab")


@pytest.mark.parametrize("command", [["from-jelly"], ["validate"], ["inspect"]])
def test_files_that_may_be_laid_end_to_end_are_remarked_on(call, command, end_to_end):
    ended = call("rdf", *command, stdin=end_to_end)

    assert ended.code == 0
    assert ended.err.startswith("remark: standard input: frame 1 begins with options again")
    assert "--concatenated" in ended.err
    assert call("rdf", *command, "--quiet", stdin=end_to_end).err == ""


def test_reader_that_was_told_of_files_laid_end_to_end_says_nothing(done, end_to_end):
    assert done("rdf", "from-jelly", "--concatenated", stdin=end_to_end).out == lines("a") + lines("b")


def test_error_behind_files_laid_end_to_end_names_what_reads_them(done, failed):
    many = b"".join(lines(name) for name in "abcdefgh")
    small = ["--in-format", "nt", "--opt.max-name-table-size", "8", "--opt.max-prefix-table-size", "8"]
    both = done("rdf", "to-jelly", *small, stdin=many).out + done("rdf", "to-jelly", *small, stdin=lines("a")).out

    assert "--concatenated" in failed("rdf", "validate", stdin=both)
