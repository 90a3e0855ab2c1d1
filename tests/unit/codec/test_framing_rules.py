"""docs/protocol.md, "Framing": frames out of bytes."""

import pytest

from patchlog.codec.fields import varint
from patchlog.codec.options import Limits
from patchlog.errors import LimitExceeded, MalformedFrame, UnexpectedRow
from patchlog.model import RdfFrame


@pytest.fixture
def triple_frame(rdf):
    """A frame of options, a name, and a triple."""
    return rdf.frame(rdf.options(), rdf.name("p"), rdf.triple(s_bnode="s", p_iri=rdf.iri(), o_bnode="o"))


TRIPLE = ("_:s", "<p>", "_:o")


def test_a_delimited_stream_is_recognised(codec, rdf, statements, triple_frame):
    decoder = codec.RdfDecoder()

    assert statements(decoder, rdf.stream(triple_frame)) == [TRIPLE]
    assert decoder.delimited is True


def test_a_bare_frame_is_recognised(codec, statements, triple_frame):
    decoder = codec.RdfDecoder()

    assert statements(decoder, triple_frame) == [TRIPLE]
    assert decoder.delimited is False


def test_a_delimited_stream_may_begin_with_a_frame_of_ten_bytes(codec, rdf, read):
    ten_bytes = rdf.frame({1: {2: 1, 9: 8, 15: 1}})
    assert len(ten_bytes) == 10
    decoder = codec.RdfDecoder()

    frames = read(decoder, rdf.stream(ten_bytes, b""))

    assert [frame.index for frame in frames] == [0, 1]
    assert decoder.delimited is True


@pytest.mark.parametrize("chunk_size", [1, 2, 3])
@pytest.mark.parametrize("is_delimited", [True, False])
def test_the_first_bytes_may_come_one_by_one(codec, rdf, triple_frame, chunk_size, is_delimited):
    data = rdf.stream(triple_frame) if is_delimited else triple_frame
    decoder = codec.RdfDecoder()
    frames = []

    for start in range(0, len(data), chunk_size):
        frames += decoder.feed(data[start : start + chunk_size])
    frames += decoder.finish()

    assert [frame.statements for frame in frames] == [[TRIPLE]]
    assert decoder.delimited is is_delimited


def test_the_caller_may_say_that_a_stream_is_delimited(codec, rdf, statements, refusal, triple_frame):
    ten_bytes_that_begin_with_no_row = b"\x78\x00" * 5
    data = rdf.stream(ten_bytes_that_begin_with_no_row, triple_frame)

    assert refusal(codec.RdfDecoder(), data) == (MalformedFrame, 0, None)
    assert statements(codec.RdfDecoder(delimited=True), data) == [TRIPLE]


def test_the_caller_may_say_that_a_stream_is_one_bare_frame(codec, statements, triple_frame):
    unknown_field_first = b"\x78\x00" + triple_frame

    assert statements(codec.RdfDecoder(delimited=False), unknown_field_first) == [TRIPLE]


def test_frames_may_be_empty(codec, rdf, read, triple_frame):
    frames = read(codec.RdfDecoder(), rdf.stream(b"", triple_frame, b"", b""))

    assert [frame.statements for frame in frames] == [[], [TRIPLE], [], []]


def test_frames_are_given_as_soon_as_they_are_complete(codec, rdf, triple_frame):
    decoder = codec.RdfDecoder()
    data = rdf.stream(triple_frame, b"")

    assert list(decoder.feed(data[:-2])) == []
    assert [frame.statements for frame in decoder.feed(data[-2:-1])] == [[TRIPLE]]
    assert [frame.statements for frame in decoder.feed(data[-1:])] == [[]]


def test_frames_before_an_error_are_given(codec, rdf, triple_frame):
    frames = codec.RdfDecoder().feed(rdf.stream(triple_frame, [{}]))

    assert next(frames).statements == [TRIPLE]
    with pytest.raises(UnexpectedRow):
        next(frames)


@pytest.mark.parametrize("data", [b"\x80", b"\x05\x80\x80", b"\x0a", b"\x0a\x0a", b"\x05\x0a\x03\x0a"])
def test_a_stream_that_ends_inside_a_length_or_a_frame_is_refused(codec, refusal, data):
    assert refusal(codec.RdfDecoder(), data) == (MalformedFrame, 0, None)


def test_the_place_of_a_cut_is_the_frame_that_was_cut(codec, rdf, refusal, triple_frame):
    data = rdf.stream(triple_frame, triple_frame)

    assert refusal(codec.RdfDecoder(), data[:-1]) == (MalformedFrame, 1, None)
    assert refusal(codec.RdfDecoder(), data[: len(data) // 2] + b"\xff") == (MalformedFrame, 1, None)


def test_lenient_reading_takes_what_is_there_of_the_last_frame(codec, rdf, statements, refusal, triple_frame):
    repeat = rdf.row(rdf.triple())
    whole = rdf.stream(triple_frame + repeat + repeat)

    assert statements(codec.RdfDecoder(strict=False), whole[: -len(repeat)]) == [TRIPLE] * 2
    assert refusal(codec.RdfDecoder(strict=False), whole[:-1]) == (MalformedFrame, 0, None)
    assert refusal(codec.RdfDecoder(strict=False), whole + b"\x80") == (MalformedFrame, 1, None)


def test_a_length_of_more_than_ten_bytes_is_refused(codec, refusal):
    assert refusal(codec.RdfDecoder(), b"\xff" * 10 + b"\x01") == (MalformedFrame, 0, None)


def test_a_length_may_take_more_bytes_than_it_needs(codec, statements, triple_frame):
    size = len(triple_frame)

    assert statements(codec.RdfDecoder(), bytes([size | 0x80, 0x80, 0x00]) + triple_frame) == [TRIPLE]


@pytest.mark.parametrize("size", [1 << 26 | 1, 1 << 31, 1 << 40, 1 << 63, (1 << 64) - 1])
def test_a_frame_above_the_limit_is_refused_by_its_length_alone(codec, size):
    decoder = codec.RdfDecoder()

    with pytest.raises(LimitExceeded) as refusal:
        list(decoder.feed(varint(size)))

    assert (refusal.value.frame, refusal.value.row) == (0, None)


def test_a_bare_frame_is_refused_when_it_grows_beyond_the_limit(codec, triple_frame):
    decoder = codec.RdfDecoder(limits=Limits(max_frame_bytes=len(triple_frame)))
    assert list(decoder.feed(triple_frame)) == []

    with pytest.raises(LimitExceeded) as refusal:
        list(decoder.feed(b"\x78"))

    assert (refusal.value.frame, refusal.value.row) == (0, None)


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x00\x00"])
@pytest.mark.parametrize("decoder", ["RdfDecoder", "PatchDecoder"])
def test_a_stream_without_options_is_refused_unless_lenient(codec, read, refusal, data, decoder):
    new_decoder = getattr(codec, decoder)

    assert refusal(new_decoder(), data) == (UnexpectedRow, None, None)
    assert read(new_decoder(strict=False), data) == [RdfFrame(i) for i in range(len(data)) if decoder == "RdfDecoder"]
