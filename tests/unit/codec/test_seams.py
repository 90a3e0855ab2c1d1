"""Where files may have been laid end to end, told from the beginnings of frames."""

import pytest

from patchlog.codec.options import PhysicalType, RdfOptions
from patchlog.codec.seams import RDF_LOOKUP_ROWS, SeamFinder
from patchlog.pure import RdfEncoder

SMALL_FRAMES = [("<http://a/s>", "<http://a/p>", f'"{number}"') for number in range(20)]


def stream(stream_name="", **settings):
    options = RdfOptions(physical_type=PhysicalType.TRIPLES, stream_name=stream_name)
    encoder = RdfEncoder(options, rows_per_frame=5, **settings)
    encoder.statements(SMALL_FRAMES)
    return encoder.finish()


def found(data, size):
    finder = SeamFinder(RDF_LOOKUP_ROWS)
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    assert b"".join(finder.watch(chunks)) == data
    return finder.frame


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_frame_that_begins_another_file_is_found_in_chunks_of_any_size(size):
    assert found(stream() + stream(), size) == 5


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_one_file_has_no_seam(size):
    assert found(stream(), size) is None
    assert found(stream(delimited=False), size) is None


def test_long_stream_names_hide_no_seam():
    named = stream("n" * 300)

    assert found(named + named, 1000) == 5


def test_options_that_are_repeated_before_a_statement_are_no_seam(rdf):
    statement = rdf.triple(s_bnode="s", p_iri=rdf.iri(), o_bnode="o")
    first = [rdf.options(), rdf.name("p"), statement]

    assert found(rdf.stream(first, [rdf.options(), rdf.triple(o_bnode="p"), rdf.name("q")]), 1000) is None


def test_entry_with_its_id_is_no_seam(rdf):
    entry = [rdf.options(), rdf.name("p", 1)]

    assert found(rdf.stream(entry, entry), 1000) is None


@pytest.mark.parametrize("data", [b"", b"\xff" * 20, b"\x0b" + b"\x0a\x7f" * 40])
def test_what_is_no_stream_is_left_to_the_decoder(data):
    assert found(data, 3) is None
