"""What repeats from one statement to the next must be what stood there, whatever came between.

A reader sets only the terms that change, and a writer leaves out those that repeat: both remember. These tests mix
statements with and without graphs, in every kind of term, and compare the two implementations byte for byte.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchlog.codec.options import PatchOptions, RdfOptions
from patchlog.errors import CodecError, TransactionError

_TERMS = st.sampled_from(
    [
        "<http://a/s1>",
        "<http://a/s1x>",
        "<http://a/s2>",
        r"<http://a/\u0041>",
        "_:b",
        '"lit"',
        '<< <http://a/s1> <p> "o" >>',
    ]
)
_PREDICATES = st.sampled_from(["<http://p/0>", "<http://p/1>"])
_GRAPHS = st.sampled_from(["", "", "<http://g/1>", "<http://g/2>", "_:g", "<urn:x-arq:DefaultGraph>", '"g"'])

_LINES = st.builds("{} {} {} {} .".format, _TERMS, _PREDICATES, _TERMS, _GRAPHS)
_ROWS = st.one_of(
    st.builds("{} {}".format, st.sampled_from("AD"), _LINES),
    st.builds("A {} TX . TC .".format, _LINES),
    _LINES.map(lambda line: "A " + line.replace(" .", "\n.")),
    st.builds('PA "ex" <http://a/> {} .'.format, _GRAPHS),
    st.just("H x <http://a/s1> ."),
    st.just("Z ."),
)

_OPTIONS = {
    "rdf_options": RdfOptions(generalized_statements=True, rdf_star=True),
    "patch_options": PatchOptions(generalized_statements=True, rdf_star=True),
}


def _converted(codec, source: str, sink: str, data: bytes, size: int) -> bytes | type:
    converter = codec.Converter(source, sink, **_OPTIONS)
    try:
        parts = [converter.feed(data[i : i + size]) for i in range(0, len(data), size)]
        return b"".join([*parts, converter.finish()])
    except (CodecError, TransactionError) as error:
        return type(error)


@pytest.mark.parametrize("sink", ["jelly", "nquads", "canonical-patch"])
@given(lines=st.lists(_LINES, max_size=12), size=st.integers(1, 80))
def test_statements_with_and_without_graphs_are_written_as_they_stand(both_codecs, sink, lines, size):
    pure, native = both_codecs
    data = "\n".join([*lines, ""]).encode()

    written = _converted(native, "nquads", sink, data, size)

    assert written == _converted(pure, "nquads", sink, data, len(data) + 1)


@pytest.mark.parametrize("sink", ["jelly-patch", "rdf-patch", "canonical-patch"])
@given(rows=st.lists(_ROWS, max_size=12), size=st.integers(1, 80))
def test_rows_of_any_layout_are_written_as_they_stand(both_codecs, sink, rows, size):
    pure, native = both_codecs
    data = "\n".join([*rows, ""]).encode()

    written = _converted(native, "rdf-patch", sink, data, size)

    assert written == _converted(pure, "rdf-patch", sink, data, len(data) + 1)


@pytest.mark.parametrize("is_dictionary", [True, False])
@given(lines=st.lists(_LINES, max_size=12))
def test_a_null_graph_in_arrow_leaves_no_trace(both_codecs, is_dictionary, lines):
    pure, native = both_codecs
    data = "\n".join([*lines, ""]).encode()
    decoder = native.ArrowDecoder("nquads", dictionary=is_dictionary)
    encoder = native.ArrowEncoder("jelly", rdf_options=_OPTIONS["rdf_options"])

    try:
        batches = [*decoder.feed(data), *decoder.finish()]
        written: bytes | type = b"".join([*(encoder.encode(batch) for batch in batches), encoder.finish()])
    except CodecError as error:
        written = type(error)

    assert written == _converted(pure, "nquads", "jelly", data, len(data) + 1)
