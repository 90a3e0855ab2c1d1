"""The conformance data through the commands, as a user would check them."""

import os
from itertools import pairwise
from pathlib import Path

import pytest

from patchlog.cli import main

SHARED = Path(os.environ.get("PATCHLOG_SHARED", Path(__file__).parents[3] / "shared")) / "conformance"
FROM_JELLY = sorted(SHARED.glob("jelly-rdf/from_jelly/*/*/"))
TO_JELLY = sorted(SHARED.glob("jelly-rdf/to_jelly/*/*/"))
PATCHES = sorted(path for path in SHARED.glob("jelly-patch/*.jellyp") if not path.name.startswith(("neg_", "lax_")))


def cases(found, names):
    chosen = [path for path in found if path.name.startswith(names)]
    return pytest.mark.parametrize(
        "case", [pytest.param(path, id=f"{path.parent.name}-{path.stem}") for path in chosen] or [None]
    )


@pytest.fixture(autouse=True)
def data_is_there(tmp_path, monkeypatch):
    if not SHARED.exists():
        if os.environ.get("CI"):
            pytest.fail("the conformance data is missing")
        pytest.skip("the conformance data is not here: set PATCHLOG_SHARED")
    monkeypatch.chdir(tmp_path)


@cases(FROM_JELLY, "pos")
def test_positive_stream_holds_the_statements_of_each_frame(case):
    for index, expected in enumerate(sorted(case.glob("out_*"))):
        compared = ["--compare-to-rdf-file", str(expected), "--compare-frame-indices", str(index)]
        assert main(["rdf", "validate", str(case / "in.jelly"), *compared, "--compare-ordered"]) == 0
        assert main(["rdf", "validate", str(case / "in.jelly"), *compared]) == 0


@cases(FROM_JELLY, "neg")
def test_negative_stream_is_not_valid(case, capsys):
    assert main(["rdf", "validate", str(case / "in.jelly")]) == 1

    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert "should not happen" not in said


@cases(TO_JELLY, "pos")
def test_inputs_become_frames_with_the_wanted_options(case):
    inputs = sorted(map(str, case.glob("in_*")))
    options = str(case / "stream_options.jelly")

    assert main(["rdf", "to-jelly", *inputs, "--frame-per-input", "--options-from", options, "--to", "out.jelly"]) == 0

    assert main(["rdf", "validate", "out.jelly", "--options-file", options]) == 0
    for index, expected in enumerate(inputs):
        compared = ["--compare-to-rdf-file", expected, "--compare-frame-indices", str(index), "--compare-ordered"]
        assert main(["rdf", "validate", "out.jelly", *compared]) == 0


@cases(TO_JELLY, "neg")
def test_inputs_that_the_options_do_not_allow_are_refused(case, tmp_path):
    inputs = sorted(map(str, case.glob("in_*")))
    options = str(case / "stream_options.jelly")

    assert main(["rdf", "to-jelly", *inputs, "--frame-per-input", "--options-from", options, "--to", "out.jelly"]) == 1

    assert list(tmp_path.iterdir()) == []


@cases(PATCHES, "")
def test_patches_are_those_of_their_text(case):
    assert main(["patch", "from-jelly", str(case), "--to", "out.rdfp"]) == 0
    assert main(["patch", "to-jelly", "out.rdfp", "--to", "out.jellyp"]) == 0

    assert main(["patch", "validate", "out.jellyp", "--compare-to-patch-file", "out.rdfp"]) == 0


@cases(PATCHES, "")
def test_patches_stay_the_same_through_every_type_of_stream(case):
    chain = [str(case), "canonical.jellyp", "frame.jellyp", "punctuated.jellyp"]
    choices = [["--canonical"], ["--stream-type", "frame"], ["--stream-type", "punctuated"]]

    for (source, sink), choice in zip(pairwise(chain), choices, strict=True):
        assert main(["patch", "transcode", source, *choice, "--to", sink]) == 0

    assert main(["patch", "from-jelly", "canonical.jellyp", "--to", "one.rdfp"]) == 0
    assert main(["patch", "from-jelly", "punctuated.jellyp", "--to", "other.rdfp"]) == 0
    assert Path("one.rdfp").read_bytes() == Path("other.rdfp").read_bytes()
