import io

import pytest
import yaml

from patchlog import patch, rdf
from patchlog.cli.reports import Report
from patchlog.codec.options import Limits, LogicalType, PhysicalType, RdfOptions
from patchlog.errors import InvalidSyntax, LimitExceeded, MalformedFrame, UnexpectedRow
from patchlog.frames import frames_from_text, frames_to_text, read_frame_messages
from patchlog.model import RdfFrame
from patchlog.wire import RdfPatchFrame, RdfStreamFrame

A, B = "<http://ex.org/a>", "<http://ex.org/b>"
OPTIONS = RdfOptions(
    physical_type=PhysicalType.QUADS, logical_type=LogicalType.DATASETS, stream_name="some: name", rdf_star=True
)
FRAMES = [
    RdfFrame(
        0, [(A, B, '"1"^^<http://ex.org/t>', ""), (A, B, "_:x", A)], [("ex", "<http://ex.org/>")], {"key": b"\x137\xff"}
    ),
    RdfFrame(1, []),
    RdfFrame(2, [(f"<<( {A} {B} {B} )>>", B, B, A)]),
]


def jelly():
    out = io.BytesIO()
    rdf.write_frames(out, FRAMES, options=OPTIONS, namespace_declarations=True)
    return out.getvalue()


def frames_of(data, message=RdfStreamFrame, **options):
    return read_frame_messages([data], message, limits=Limits(), **options)


def report(data, message=RdfStreamFrame, *, per_frame=False, detail=None, sizes=False):
    out = []
    Report(per_frame=per_frame, detail=detail, sizes=sizes).write(frames_of(data, message), out.append)
    return yaml.safe_load(b"".join(out))


def test_text_of_frames_is_put_back_into_the_same_bytes():
    data = jelly()

    text = b"".join(frames_to_text(enumerate(frame for frame, _ in frames_of(data))))

    assert text.startswith(b"# Frame 0\nrows {\n  options {\n")
    assert b"".join(frames_from_text(text.decode().splitlines(), RdfStreamFrame)) == data


def test_frame_without_a_length_is_put_back_too():
    data = b"\x0a\x02\x12\x00"

    text = b"".join(frames_to_text(enumerate(frame for frame, _ in frames_of(data))))

    assert b"".join(frames_from_text(text.decode().splitlines(), RdfStreamFrame, delimited=False)) == data


def test_text_without_separators_is_one_frame():
    assert list(frames_from_text(["rows { triple {} }", "rows {}"], RdfStreamFrame)) == [
        b"\x06\x0a\x02\x12\x00\x0a\x00"
    ]


def test_error_in_text_has_its_line():
    with pytest.raises(InvalidSyntax, match=r'line 4: .*no field named "rose"'):
        list(frames_from_text(["# Frame 0", "rows {}", "# Frame 1", "rose {}"], RdfStreamFrame))


def test_bytes_that_are_no_message_are_an_error_with_the_frame():
    with pytest.raises(MalformedFrame, match="frame 1: "):
        list(frames_of(b"\x02\x0a\x00\x02\xff\xff"))


def test_frame_beyond_the_limit_is_refused():
    with pytest.raises(LimitExceeded):
        list(read_frame_messages([b"\xff\xff\xff\x7f"], RdfStreamFrame, limits=Limits(max_frame_bytes=1000)))


def test_report_shows_options_and_counts():
    found = report(jelly())

    assert found == {
        "stream_options": {
            "stream_name": "some: name",
            "physical_type": "PHYSICAL_STREAM_TYPE_QUADS (2)",
            "generalized_statements": False,
            "rdf_star": True,
            "max_name_table_size": 4000,
            "max_prefix_table_size": 150,
            "max_datatype_table_size": 32,
            "logical_type": "LOGICAL_STREAM_TYPE_DATASETS (4)",
            "version": 2,
        },
        "frames": {
            "frame_count": 3,
            "option_count": 1,
            "triple_count": 0,
            "quad_count": 3,
            "graph_start_count": 0,
            "graph_end_count": 0,
            "namespace_count": 1,
            "name_count": found["frames"]["name_count"],
            "prefix_count": 1,
            "datatype_count": 1,
        },
    }


def test_report_per_frame_shows_metadata_in_hexadecimal():
    frames = report(jelly(), per_frame=True)["frames"]

    assert [frame["frame_index"] for frame in frames] == [0, 1, 2]
    assert [frame["quad_count"] for frame in frames] == [2, 0, 1]
    assert [frame.get("metadata") for frame in frames] == [{"key": "1337ff"}, None, None]


def test_report_counts_terms_by_place_and_kind():
    flat = report(jelly(), detail="flat")["frames"]
    node = report(jelly(), detail="node")["frames"]["node_details"]
    term = report(jelly(), detail="term")["frames"]["term_details"]

    assert {name: count for name, count in flat.items() if name.startswith("object_")} == {
        "object_iri_count": 1,
        "object_bnode_count": 1,
        "object_literal_count": 1,
        "object_triple_count": 0,
        "object_default_graph_count": 0,
        "object_repeated_count": 0,
    }
    assert flat["subject_triple_count"] == 1
    assert flat["subject_repeated_count"] == 1
    assert (node["triple_count"], node["default_graph_count"]) == (1, 1)
    assert term == {"subject_count": 2, "predicate_count": 1, "object_count": 3, "graph_count": 2}


def test_report_of_sizes_adds_up_to_less_than_the_frames():
    frames = report(jelly(), sizes=True)["frames"]

    rows = sum(size for name, size in frames.items() if name.endswith("_size") and name != "frame_size")
    assert 0 < rows < frames["frame_size"] < len(jelly())


def test_report_on_patches_counts_their_rows():
    out = io.BytesIO()
    patch.write(
        out,
        [
            patch.Header("id", A),
            patch.TransactionStart(),
            patch.Add(A, B, B),
            patch.Delete(A, B, B),
            patch.NamespaceAdd("ex", A),
            patch.NamespaceDelete("ex"),
            patch.TransactionCommit(),
            patch.Punctuation(),
        ],
    )

    found = report(out.getvalue(), RdfPatchFrame, detail="term")

    assert found["stream_options"]["stream_type"] == "PATCH_STREAM_TYPE_PUNCTUATED (3)"
    ones = [name for name, count in found["frames"].items() if count == 1]
    assert ones == [
        "frame_count",
        "option_count",
        "add_count",
        "delete_count",
        "namespace_add_count",
        "namespace_delete_count",
        "transaction_start_count",
        "transaction_commit_count",
        "prefix_count",
        "header_count",
        "punctuation_count",
    ]
    assert found["frames"]["term_details"]["graph_count"] == 1


def test_unknown_type_is_shown_by_its_number():
    frame = RdfStreamFrame()
    frame.rows.add().options.logical_type = 99

    assert report(frame.SerializeToString())["stream_options"]["logical_type"] == "UNRECOGNIZED (99)"


@pytest.mark.parametrize("data", [b"", b"\x00\x00", b"\x04\x0a\x02\x12\x00"], ids=["no frames", "no rows", "a triple"])
def test_stream_without_options_has_no_report(data):
    with pytest.raises(UnexpectedRow, match="does not begin with an options row"):
        report(data)


def test_frames_without_rows_may_come_first():
    assert report(b"\x00\x00" + jelly())["frames"]["frame_count"] == 5
