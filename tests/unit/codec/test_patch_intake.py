"""What a log stores of patches, from both implementations."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchlog.codec.ingest import IngestedPatch, header_frame, stored_options
from patchlog.codec.options import PatchOptions
from patchlog.errors import CodecError, TransactionError, UnexpectedRow, UsageError
from patchlog.model import Add

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


def test_a_punctuated_stream_that_ends_inside_a_patch_is_refused(codec):
    encoder = codec.PatchEncoder(PatchOptions(), rows_per_frame=1)
    encoder.accept(Add("<s>", "<p>", "<o>"))
    without_punctuation = encoder.take()

    _, error = _taken_in(codec, "jelly-patch", without_punctuation, 5)

    assert error is UnexpectedRow


def test_statements_are_not_taken_in(codec):
    with pytest.raises(UsageError, match="jelly-patch and rdf-patch"):
        codec.PatchIntake("nquads", _OPTIONS)
