"""What a log stores of patches, from both implementations."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchlog.codec.fields import read_varint, varint
from patchlog.codec.ingest import IngestedPatch, header_frame, stored_options
from patchlog.codec.options import PatchOptions
from patchlog.errors import CodecError, TransactionError, UnexpectedRow, UsageError
from patchlog.model import Add, Header, TransactionCommit, TransactionStart

_OPTIONS = stored_options()
_ID = "0a1b2c3d-0000-0000-0000-00000000abcd"

_TERMS = st.sampled_from(["<http://a/s1>", "<http://a/s2>", "<x>", "_:b", '"lit"@en', '"1"^^<http://d#int>'])
_GRAPHS = st.sampled_from(["", "<http://g/1>", "_:g"])
_HEADERS = st.sampled_from(
    [
        f"H id <urn:uuid:{_ID}> .",
        f'H prev "{_ID.upper()}" .',
        "H who <http://a/s1> .",
        "H id <http://no/uuid> .",
        "H id _:b .",
    ]
)
_ROWS = st.one_of(
    st.builds("{} {} <http://a/p> {} {} .".format, st.sampled_from("AD"), _TERMS, _TERMS, _GRAPHS),
    st.builds('PA "ex" <http://a/> {} .'.format, _GRAPHS),
    st.sampled_from(["TX .", "TC .", "TA .", "Z ."]),
    _HEADERS,
)


def _taken_in(codec, source: str, data: bytes, size: int) -> tuple[list[tuple[IngestedPatch, str]], type | None]:
    """Each patch with the hash of its body, and the error that ended the reading."""
    pieces: list[bytes | IngestedPatch] = []
    try:
        intake = codec.PatchIntake(source, _OPTIONS)
        for start in range(0, len(data), size):
            pieces += intake.feed(data[start : start + size])
        pieces += intake.finish()
    except (CodecError, TransactionError) as error:
        return _with_hashes(pieces), type(error)
    return _with_hashes(pieces), None


def _with_hashes(pieces: Iterable[bytes | IngestedPatch]) -> list[tuple[IngestedPatch, str]]:
    patches, body = [], b""
    for piece in pieces:
        if isinstance(piece, bytes):
            body += piece
        else:
            patches.append((piece, sha256(body).hexdigest()))
            body = b""
    return patches


@given(rows=st.lists(_ROWS, max_size=14), size=st.integers(1, 60))
def test_both_implementations_take_in_the_same(both_codecs, rows, size):
    pure, native = both_codecs
    data = "\n".join([*rows, ""]).encode()

    taken, error = _taken_in(native, "rdf-patch", data, len(data) + 1)
    expected, expected_error = _taken_in(pure, "rdf-patch", data, size)

    assert error == expected_error
    assert error is not None or taken == expected


@given(inputs=st.lists(st.lists(_ROWS, max_size=14), max_size=3))
def test_whole_inputs_are_taken_in_as_those_that_come_in_pieces(both_codecs, inputs):
    for codec in both_codecs:
        intakes = {source: codec.WholeIntake(source, _OPTIONS) for source in ("rdf-patch", "jelly-patch")}
        for rows in inputs:
            text = "\n".join([*rows, ""]).encode()
            for source, data in (("rdf-patch", text), ("jelly-patch", _as_jelly(codec, text))):
                expected, error = _taken_in(codec, source, data, len(data) + 1)
                if error is None:
                    assert _with_hashes(intakes[source].take(data)) == expected
                else:
                    with pytest.raises(error):
                        intakes[source].take(data)


def _as_jelly(codec, text: bytes) -> bytes:
    """A patch as Jelly-Patch; as far as it is well formed."""
    converter = codec.Converter("rdf-patch", "jelly-patch", patch_options=_OPTIONS)
    written = b""
    with suppress(CodecError, TransactionError):
        for line in text.splitlines(keepends=True):
            written += converter.feed(line)
        written += converter.finish()
    return written


def test_stored_patches_laid_end_to_end_are_one_stream(codec):
    text = b"H who <http://a/s1> .\nTX .\nA <http://a/s1> <http://a/p> <x> <http://g/1> .\nTC .\nZ .\n" * 3
    pieces = list(codec.PatchIntake("rdf-patch", _OPTIONS).feed(text))
    bodies = [piece for piece in pieces if isinstance(piece, bytes)]

    stream = b"".join(header_frame(_ID, _ID if i else None, _OPTIONS) + body for i, body in enumerate(bodies))
    decoder = codec.PatchDecoder()
    operations = [*decoder.feed(stream), *decoder.finish()]

    one = [*codec.RdfPatchReader().feed(text)][:5]
    assert [o for o in operations if getattr(o, "key", "") not in ("id", "prev")] == one * 3


@pytest.mark.parametrize("rows_per_frame", [1, 100])
@pytest.mark.parametrize("header", [[], [Header("id", f"<urn:uuid:{_ID}>")]], ids=["", "with an id"])
def test_the_last_punctuation_of_a_whole_stream_may_be_missing(codec, header, rows_per_frame):
    """As Jelly-JVM's writer leaves it out. What is stored has it."""
    operations = [*header, TransactionStart(), Add("<s>", "<p>", "<o>"), TransactionCommit()]
    if rows_per_frame == 1:
        operations = operations[len(header) :]
    encoder = codec.PatchEncoder(PatchOptions(), rows_per_frame=rows_per_frame)
    for operation in operations:
        encoder.accept(operation)
    punctuated = encoder.finish()
    without_punctuation = _without_punctuation(punctuated)

    for size in (1, 5, 1000):
        assert _taken_in(codec, "jelly-patch", without_punctuation, size) == _taken_in(
            codec, "jelly-patch", punctuated, size
        )
    whole = codec.WholeIntake("jelly-patch", _OPTIONS)
    assert whole.take(without_punctuation) == whole.take(punctuated)


def test_a_stream_that_ends_inside_a_transaction_is_refused(codec):
    encoder = codec.PatchEncoder(PatchOptions(), rows_per_frame=100)
    for operation in (Header("id", f"<urn:uuid:{_ID}>"), TransactionStart(), Add("<s>", "<p>", "<o>")):
        encoder.accept(operation)

    _, error = _taken_in(codec, "jelly-patch", _without_punctuation(encoder.finish()), 5)

    assert error is TransactionError


def test_a_patch_as_logs_store_it_has_to_have_its_punctuation(codec):
    """Its headers have a frame of their own; a stream that ends behind them was cut between frames."""
    [frames, _] = codec.PatchIntake("rdf-patch", _OPTIONS).feed(b"A <http://a/s1> <http://a/p> <x> .\nZ .\n")
    header = header_frame(_ID, None, _OPTIONS)

    for cut in (header, header + _without_punctuation(frames)):
        for intake in (lambda data: _taken_in(codec, "jelly-patch", data, 7), _whole(codec)):
            assert intake(cut)[1] is UnexpectedRow
    assert _taken_in(codec, "jelly-patch", header + frames, 7)[1] is None


def _whole(codec):
    def take(data):
        try:
            return codec.WholeIntake("jelly-patch", _OPTIONS).take(data), None
        except (CodecError, TransactionError) as error:
            return [], type(error)

    return take


def _without_punctuation(stream: bytes) -> bytes:
    """The last row of the last frame is left out, and the frame too where that is all of it."""
    position = 0
    while True:
        size, start = read_varint(stream, position, len(stream))
        if start + size == len(stream):
            break
        position = start + size
    assert stream.endswith(b"\x0a\x02\x7a\x00")
    frame = stream[start:-4]
    return stream[:position] + (varint(len(frame)) + frame if frame else b"")


def test_statements_are_not_taken_in(codec):
    with pytest.raises(UsageError, match="jelly-patch and rdf-patch"):
        codec.PatchIntake("nquads", _OPTIONS)
