"""The public test suite of Jelly-RDF, both ways."""

import pytest

from patchlog.errors import InvalidTerm, UnexpectedRow, UnknownLookupEntry, UnsupportedOption
from patchlog.model import DEFAULT_GRAPH
from patchlog.text.terms import BlankNode, QuotedTriple, parse_term, quoted_triple_term

REFUSED_STREAMS = {
    "graphs_rdf_1_1/neg_001": UnexpectedRow,
    "graphs_rdf_star/neg_001": InvalidTerm,
    "graphs_rdf_star/neg_003": InvalidTerm,
    "quads_rdf_1_1/neg_001": UnexpectedRow,
    "quads_rdf_1_1/neg_003": UnexpectedRow,
    "quads_rdf_star/neg_001": InvalidTerm,
    "quads_rdf_star/neg_003": InvalidTerm,
    "quads_rdf_star_generalized/neg_001": InvalidTerm,
    "quads_rdf_star_generalized/neg_003": InvalidTerm,
    "triples_rdf_1_1/neg_001": UnsupportedOption,
    "triples_rdf_1_1/neg_003": UnsupportedOption,
    "triples_rdf_1_1/neg_005": UnknownLookupEntry,
    "triples_rdf_1_1/neg_007": UnknownLookupEntry,
    "triples_rdf_1_1/neg_008": UnknownLookupEntry,
    "triples_rdf_1_1/neg_012": InvalidTerm,
    "triples_rdf_1_1/neg_013": UnknownLookupEntry,
    "triples_rdf_star/neg_001": InvalidTerm,
    "triples_rdf_star/neg_003": InvalidTerm,
    "triples_rdf_star_generalized/neg_001": InvalidTerm,
    "triples_rdf_star_generalized/neg_003": InvalidTerm,
}

REFUSED_STATEMENTS = {
    "triples_rdf_1_1/neg_001": UnsupportedOption,
}


class Relabelling:
    """Names blank nodes by the order in which they first come, and leaves out the default graph."""

    def __init__(self):
        self.labels = {}

    def frames(self, frames):
        return [[self.statement(statement) for statement in frame] for frame in frames]

    def statement(self, statement):
        return tuple(self.term(term) for term in statement if term != DEFAULT_GRAPH)

    def term(self, term):
        match parse_term(term):
            case BlankNode(label):
                return f"_:{self.labels.setdefault(label, len(self.labels))}"
            case QuotedTriple(subject, predicate, object):
                return quoted_triple_term(self.term(subject), self.term(predicate), self.term(object))
            case _:
                return term


def same_statements(frames, expected):
    return Relabelling().frames(frames) == Relabelling().frames(expected)


def read_lines(codec, path):
    reader = codec.NQuadsReader()
    return [*reader.feed(path.read_bytes()), *reader.finish()]


def read_stream(codec, data):
    decoder = codec.RdfDecoder()
    frames = [*decoder.feed(data), *decoder.finish()]
    return decoder.options, [frame.statements for frame in frames]


def write_stream(codec, options, frames):
    encoder = codec.RdfEncoder(options, rows_per_frame=0)
    for frame in frames:
        encoder.statements(frame)
        encoder.end_frame()
    return encoder.finish()


def test_a_stream_has_the_statements_of_its_case_frame_by_frame(codec, positive_from_jelly):
    [stream] = positive_from_jelly.inputs
    expected = [read_lines(codec, path) for path in positive_from_jelly.results]

    _, frames = read_stream(codec, stream.read_bytes())

    assert same_statements(frames, expected)


def test_a_stream_that_breaks_the_rules_is_refused(codec, negative_from_jelly):
    [stream] = negative_from_jelly.inputs

    with pytest.raises(REFUSED_STREAMS[negative_from_jelly.name]) as refusal:
        read_stream(codec, stream.read_bytes())

    assert refusal.value.frame == 0
    assert refusal.value.row is not None


def test_what_is_written_has_the_options_and_statements_of_its_case(codec, positive_to_jelly):
    options_of, *inputs = positive_to_jelly.inputs
    [result] = positive_to_jelly.results
    options, _ = read_stream(codec, options_of.read_bytes())
    frames = [read_lines(codec, path) for path in inputs]

    written_options, written = read_stream(codec, write_stream(codec, options, frames))

    assert written_options == options
    assert same_statements(written, frames)
    assert same_statements(written, read_stream(codec, result.read_bytes())[1])


def test_statements_that_the_options_have_no_room_for_are_refused(codec, negative_to_jelly):
    options_of, *inputs = negative_to_jelly.inputs
    options, _ = read_stream(codec, options_of.read_bytes())
    frames = [read_lines(codec, path) for path in inputs]

    with pytest.raises(REFUSED_STATEMENTS[negative_to_jelly.name]):
        write_stream(codec, options, frames)
