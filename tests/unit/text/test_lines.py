"""Bytes in any chunks to lines."""

import pytest

from patchlog.errors import InvalidSyntax, LimitExceeded
from patchlog.text.lines import LineReader


def read(data: bytes, chunk_bytes: int, **options):
    reader = LineReader(**options)
    lines = []
    error = None
    try:
        for start in range(0, len(data), chunk_bytes):
            lines.extend(reader.feed(data[start : start + chunk_bytes]))
        lines.extend(reader.finish())
    except (InvalidSyntax, LimitExceeded) as caught:
        error = type(caught), caught.line
    return lines, error


CHUNKS = pytest.mark.parametrize("chunk_bytes", [1, 2, 3, 7, 100])


@CHUNKS
def test_lines_do_not_depend_on_the_chunks(chunk_bytes):
    lines, error = read("a\n\nåäö😀\r\nlast".encode(), chunk_bytes)

    assert lines == ["a", "", "åäö😀\r", "last"]
    assert error is None


@CHUNKS
def test_byte_order_mark_is_skipped_at_the_start_only(chunk_bytes):
    lines, _ = read("\ufeffa\n\ufeffb\n".encode(), chunk_bytes)

    assert lines == ["a", "\ufeffb"]


@CHUNKS
def test_line_that_is_not_utf8_is_an_error_after_the_lines_before_it(chunk_bytes):
    lines, error = read(b"a\nb\nc\xff\nd\n", chunk_bytes)

    assert lines == ["a", "b"]
    assert error == (InvalidSyntax, 3)


@CHUNKS
def test_character_that_is_cut_short_at_the_end_is_an_error(chunk_bytes):
    lines, error = read("a\nå".encode()[:-1], chunk_bytes)

    assert lines == ["a"]
    assert error == (InvalidSyntax, 2)


@CHUNKS
def test_line_may_be_as_long_as_the_limit(chunk_bytes):
    lines, error = read(b"a\n12345\nb\n", chunk_bytes, max_line_bytes=5)

    assert lines == ["a", "12345", "b"]
    assert error is None


@CHUNKS
@pytest.mark.parametrize("end", [b"\nb\n", b""])
def test_line_that_is_longer_is_refused_with_or_without_its_end(chunk_bytes, end):
    lines, error = read(b"a\n123456" + end, chunk_bytes, max_line_bytes=5)

    assert lines == ["a"]
    assert error == (LimitExceeded, 2)
