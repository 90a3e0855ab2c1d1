"""Input that asks for much more than it sends is refused before it costs much."""

import time
import tracemalloc

import pytest

from patchlog.codec.fields import varint
from patchlog.codec.options import Limits
from patchlog.errors import LimitExceeded, UnexpectedRow, UnsupportedOption
from patchlog.pure import RdfDecoder

MIB = 1 << 20


@pytest.fixture
def cheap():
    """Runs something and says what it took: refuses more than a second or two dozen megabytes."""

    class Cheap:
        def __enter__(self):
            tracemalloc.start()
            self.began = time.process_time()

        def __exit__(self, *error):
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert time.process_time() - self.began < 2
            assert peak < 24 * MIB

    return Cheap


@pytest.mark.parametrize("size", [1 << 31, 1 << 40, 1 << 63])
def test_a_giant_frame_costs_nothing(codec, refusal, cheap, size):
    data = varint(size) + bytes(1000)

    with cheap():
        assert refusal(codec.RdfDecoder(), data) == (LimitExceeded, 0, None)


@pytest.mark.parametrize("size", [10**9, (1 << 32) - 1])
@pytest.mark.parametrize("table", ["names", "prefixes", "datatypes"])
def test_giant_tables_are_refused_before_they_are_made(codec, rdf, refusal, cheap, table, size):
    with cheap():
        assert refusal(codec.RdfDecoder(), rdf.stream([rdf.options(**{table: size})])) == (UnsupportedOption, 0, 0)


def test_a_long_prefix_in_many_rows_is_refused_at_the_limit(codec, rdf, refusal, cheap):
    """One megabyte of input would be two gigabytes of text."""
    names = [rdf.name(str(i)) for i in range(2000)]
    triples = [rdf.triple(s_iri=rdf.iri(1, i + 1), p_bnode="p", o_bnode="o") for i in range(2000)]
    options = rdf.options(names=4000, generalized=1)
    stream = rdf.stream([options, rdf.prefix("p" * MIB), *names, *triples])

    with cheap():
        place = refusal(codec.RdfDecoder(limits=Limits(max_decoded_frame_bytes=10 * MIB)), stream)

    assert place == (LimitExceeded, 0, 2 + 2000 + 9)


def test_graphs_that_no_statement_follows_are_refused_at_the_limit(codec, rdf, refusal, cheap):
    graph = [rdf.graph_start(g_iri=rdf.iri(1, 1)), rdf.graph_end()]
    stream = rdf.stream([rdf.options(rdf.GRAPHS), rdf.prefix("p" * MIB), rdf.name("n"), *graph * 2000])

    with cheap():
        place = refusal(codec.RdfDecoder(limits=Limits(max_decoded_frame_bytes=10 * MIB)), stream)

    assert place == (LimitExceeded, 0, 3 + 2 * 9)


def test_a_long_prefix_is_not_kept_with_every_name(codec, rdf, cheap):
    """Frame after frame within the limit, and still no more memory than one frame takes."""
    first = [rdf.options(names=4000, generalized=1), rdf.prefix("p" * MIB), *(rdf.name(str(i)) for i in range(60))]
    frames = [[rdf.triple(s_iri=rdf.iri(1, i + 1), p_bnode="p", o_bnode="o")] for i in range(60)]
    decoder = codec.RdfDecoder()

    with cheap():
        found = sum(len(frame.statements) for frame in decoder.feed(rdf.stream(first, *frames)))

    assert found == 60


def test_millions_of_empty_rows_are_refused_at_the_first(codec, rdf, refusal, cheap):
    stream = rdf.stream(rdf.frame(rdf.options()) + b"\x0a\x00" * (2 << 20))

    with cheap():
        assert refusal(codec.RdfDecoder(), stream) == (UnexpectedRow, 0, 1)


@pytest.mark.parametrize("depth", [65, 200, 5000])
def test_deep_nesting_is_refused(codec, patch, refusal, cheap, depth):
    quoted = b""
    for _ in range(depth):
        quoted = b"\x62" + varint(len(quoted)) + quoted  # an object that is a quoted triple
    stream = patch.stream([patch.options(rdf_star=1, generalized=1), {2: quoted}])

    with cheap():
        assert refusal(codec.PatchDecoder(), stream)[1:] == (0, 1)


def test_no_caller_can_allow_nesting_that_would_exhaust_the_stack(codec, rdf, statements, refusal):
    def stream(depth):
        quoted = b""
        for _ in range(depth):
            quoted = rdf.message({2: "s", 6: "p"}) + (rdf.message({12: quoted}) if quoted else rdf.message({10: "o"}))
        triple = rdf.triple(s_triple=quoted, p_bnode="p", o_bnode="o")
        return rdf.stream([rdf.options(rdf_star=1, generalized=1), triple])

    limits = Limits(max_nesting_depth=1 << 30)

    assert len(statements(codec.RdfDecoder(limits=limits), stream(512))) == 1
    assert refusal(codec.RdfDecoder(limits=limits), stream(513)) == (LimitExceeded, 0, 1)


def test_a_stack_that_is_nearly_used_up_is_a_limit(rdf, refusal):
    """The pure reader goes deeper into Python's stack with each level."""
    quoted = b""
    for _ in range(400):
        quoted = rdf.message({2: "s", 6: "p"}) + (rdf.message({12: quoted}) if quoted else rdf.message({10: "o"}))
    triple = rdf.triple(s_triple=quoted, p_bnode="p", o_bnode="o")
    stream = rdf.stream([rdf.options(rdf_star=1, generalized=1), triple])

    def deep_down(levels):
        if levels:
            return deep_down(levels - 1)
        return refusal(RdfDecoder(limits=Limits(max_nesting_depth=512)), stream)

    assert deep_down(600) == (LimitExceeded, 0, 1)


def test_a_quoted_triple_that_grows_beyond_the_limit_is_refused_while_it_is_read(codec, rdf, refusal, cheap):
    """A long IRI hundreds of times in one row."""
    quoted = rdf.terms(s_iri=rdf.iri(1, 1), p_iri=rdf.iri(1, 1), o_iri=rdf.iri(1, 1))
    for _ in range(60):
        quoted = rdf.terms(s_iri=rdf.iri(1, 1), p_iri=rdf.iri(1, 1), o_triple=quoted)
    stream = rdf.stream(
        [
            rdf.options(rdf_star=1),
            rdf.prefix("p" * MIB),
            rdf.name("n"),
            rdf.triple(s_triple=quoted, p_iri={2: 1}, o_bnode="o"),
        ]
    )

    with cheap():
        place = refusal(codec.RdfDecoder(limits=Limits(max_decoded_frame_bytes=5 * MIB)), stream)

    assert place == (LimitExceeded, 0, 3)


def test_a_frame_that_comes_in_small_chunks_costs_no_more(codec, rdf, cheap):
    stream = rdf.stream([rdf.options(generalized=1), rdf.triple(s_bnode="s" * (4 * MIB), p_bnode="p", o_bnode="o")])
    decoder = codec.RdfDecoder()

    with cheap():
        frames = [
            frame for start in range(0, len(stream), 4096) for frame in decoder.feed(stream[start : start + 4096])
        ]

    assert len(frames) == 1


@pytest.mark.parametrize("dictionary", [True, False])
def test_graphs_that_no_statement_follows_do_not_pile_up(codec, rdf, dictionary):
    """Each is a mebibyte long; what Arrow can hold in a column has 2 GiB."""
    pa = pytest.importorskip("pyarrow")
    a = rdf.iri(2, 1)
    in_long_graphs = [[rdf.graph_start(g_iri=rdf.iri(1, name)), rdf.graph_end()] for name in range(1, 301)]
    in_a_short_graph = [
        rdf.graph_start(g_iri=rdf.iri(2, 301)),
        rdf.triple(s_iri=a, p_iri=a, o_iri=a),
        rdf.graph_end(),
    ]
    stream = rdf.stream(
        [
            rdf.options(rdf.GRAPHS, names=400),
            rdf.prefix("p" * MIB),
            rdf.prefix("http://example.org/"),
            *(rdf.name(str(number)) for number in range(301)),
            *in_a_short_graph,
        ],
        *in_long_graphs,
        in_a_short_graph,
    )
    decoder = codec.ArrowDecoder("jelly", dictionary=dictionary)

    batches = [pa.record_batch(batch) for batch in [*decoder.feed(stream), *decoder.finish()]]

    assert [row["graph"] for batch in batches for row in batch.to_pylist()] == ["<http://example.org/300>"] * 2
    for batch in batches:
        batch.validate(full=True)
        assert batch.get_total_buffer_size() < 258 * MIB
