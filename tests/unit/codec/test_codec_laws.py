"""What holds for every stream: reading gives back what was written, whatever the options, the tables and the chunks."""

import os
from dataclasses import replace
from itertools import chain

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from patchlog.codec.options import PatchOptions, PhysicalType, RdfOptions, StatementType, StreamType, Tables
from patchlog.errors import PatchLogError, UnsupportedOption
from patchlog.model import (
    DEFAULT_GRAPH,
    Add,
    Delete,
    Header,
    NamespaceAdd,
    NamespaceDelete,
    Punctuation,
    TransactionAbort,
    TransactionCommit,
    TransactionStart,
)
from patchlog.text.terms import blank_node_term, iri_term, literal_term, quoted_triple_term

examples = settings(max_examples=int(os.environ.get("PATCHLOG_FUZZ_EXAMPLES", "40")))

# So few that terms, prefixes and names come again; with all separators, what is escaped somewhere, and UTF-8 of two to
# four bytes.
TEXTS = [
    "",
    *'abc#/:.-"\\\x7f\0é',
    "a/a",
    "a/b",
    "b/a",
    "a#b",
    "a/b#c",
    "a:b",
    "a.",
    "<>",
    "a b",
    "\n\t",
    "中/é",
    "😀#😀",
]
texts = st.sampled_from(TEXTS)

iris = texts.map(iri_term)
blank_nodes = texts.map(blank_node_term)
literals = st.one_of(
    st.builds(literal_term, texts),
    st.builds(literal_term, texts, language=texts.filter(bool)),
    st.builds(literal_term, texts, datatype=texts),
)
resources = iris | blank_nodes
graphs = st.just(DEFAULT_GRAPH) | resources
quoted_triples = st.recursive(
    st.builds(quoted_triple_term, resources, iris, resources | literals),
    lambda quoted: st.builds(quoted_triple_term, resources | quoted, iris, resources | literals | quoted),
    max_leaves=3,
)
any_terms = resources | literals | quoted_triples

plain_quads = st.tuples(resources, iris, resources | literals, graphs)
all_quads = st.tuples(any_terms, any_terms, any_terms, graphs | literals)

tables = st.builds(
    Tables,
    names=st.sampled_from([8, 9, 4000]),
    prefixes=st.sampled_from([0, 1, 3, 4, 5, 150]),
    datatypes=st.sampled_from([0, 1, 2, 32]),
)
rows_per_frame = st.sampled_from([0, 1, 3, 256])


@st.composite
def kinds_of_terms(draw):
    """Whether a stream declares generalized statements and quoted triples, and quads that keep to it."""
    declares_all = draw(st.booleans())
    return {
        "generalized_statements": declares_all,
        "rdf_star": declares_all,
    }, all_quads if declares_all else plain_quads


@st.composite
def rdf_streams(draw):
    """Options, settings of the encoder, and frames of statements."""
    flags, quads = draw(kinds_of_terms())
    options = RdfOptions(physical_type=draw(st.sampled_from(list(PhysicalType)[1:])), **flags)
    statements = quads.map(lambda quad: quad[:3]) if options.physical_type == PhysicalType.TRIPLES else quads
    frames = draw(st.lists(st.lists(statements, max_size=8), max_size=4))
    return options.with_tables(draw(tables)), frames


@st.composite
def patch_streams(draw):
    """Options and the operations of patches, in an order that strict reading takes."""
    flags, quads = draw(kinds_of_terms())
    options = PatchOptions(
        statement_type=draw(st.sampled_from(list(StatementType)[1:])),
        stream_type=draw(st.sampled_from(list(StreamType)[1:])),
        **flags,
    )
    if options.statement_type == StatementType.TRIPLES:
        quads = quads.map(lambda quad: (*quad[:3], None))
    most_patches = 1 if options.stream_type == StreamType.FLAT else 4
    patches = draw(
        st.lists(operations_of(quads, any_terms if options.rdf_star else resources | literals), max_size=most_patches)
    )
    return options.with_tables(draw(tables)), patches


def operations_of(quads, header_values):
    changes = st.one_of(
        quads.map(lambda quad: Add(*quad)),
        quads.map(lambda quad: Delete(*quad)),
        st.builds(Header, texts, header_values),
        st.builds(lambda name, iri, quad: NamespaceAdd(name, iri, quad[3]), texts, iris, quads),
        st.builds(lambda name, iri, quad: NamespaceDelete(name, iri, quad[3]), texts, st.none() | iris, quads),
    )
    transactions = st.tuples(
        st.just([TransactionStart()]),
        st.lists(changes, max_size=4),
        st.sampled_from([[TransactionCommit()], [TransactionAbort()]]),
    ).map(flattened)
    return st.lists(transactions | changes.map(lambda change: [change]), max_size=5).map(flattened)


def flattened(lists):
    return list(chain.from_iterable(lists))


def chunked(data, chunk_size):
    return [data[start : start + chunk_size] for start in range(0, len(data), chunk_size)]


def decoded(decoder, data, chunk_size=1 << 20):
    results = [result for chunk in chunked(data, chunk_size) for result in decoder.feed(chunk)]
    return [*results, *decoder.finish()]


def encoded_rdf(codec, options, frames, **settings):
    encoder = codec.RdfEncoder(options, **settings)
    for frame in frames:
        encoder.statements(frame)
        encoder.end_frame()
    return encoder.finish()


def encoded_patches(encoder, patches):
    for operations in patches:
        for operation in operations:
            encoder.accept(operation)
        encoder.accept(Punctuation())
    return encoder.finish()


def or_refusal(encode, *arguments, **settings):
    """What was encoded, or the class of the error."""
    try:
        return encode(*arguments, **settings)
    except PatchLogError as error:
        return type(error)


def unless_too_small(encode, *arguments, **settings):
    """What was encoded, where the tables have room for it."""
    try:
        return encode(*arguments, **settings)
    except UnsupportedOption:
        assume(False)


@examples
@given(rdf_streams())
def test_frames_survive_a_round_trip(codec, stream):
    options, frames = stream

    written = unless_too_small(encoded_rdf, codec, options, frames, rows_per_frame=0)

    decoder = codec.RdfDecoder()
    read = decoded(decoder, written)
    assert [frame.statements for frame in read] == (frames or [[]])
    assert [frame.index for frame in read] == list(range(len(read)))
    assert decoder.options == options


@examples
@given(rdf_streams(), rows_per_frame, st.booleans())
def test_statements_survive_a_round_trip_however_they_are_cut(codec, stream, rows_per_frame, delimited):
    options, frames = stream
    settings = {"rows_per_frame": rows_per_frame, "delimited": delimited}

    written = unless_too_small(encoded_rdf, codec, options, frames, **settings)

    decoder = codec.RdfDecoder()
    read = decoded(decoder, written)
    assert [statement for frame in read for statement in frame.statements] == flattened(frames)
    assert decoder.delimited == delimited


@examples
@given(st.lists(st.tuples(texts, iris, st.dictionaries(texts, st.binary(max_size=3), max_size=3)), max_size=4))
def test_namespaces_and_metadata_survive_a_round_trip(codec, declarations):
    encoder = codec.RdfEncoder(RdfOptions(), namespace_declarations=True)

    for name, iri, metadata in declarations:
        encoder.namespace(name, iri)
        encoder.end_frame(metadata)
    written = encoder.finish()

    decoder = codec.RdfDecoder()
    read = [(frame.namespaces, frame.metadata) for frame in decoded(decoder, written)]
    assert read == ([([(name, iri)], metadata) for name, iri, metadata in declarations] or [([], {})])
    assert decoder.options == RdfOptions(version=2)


@examples
@given(patch_streams(), rows_per_frame, st.booleans())
def test_operations_survive_a_round_trip(codec, stream, rows_per_frame, delimited):
    options, patches = stream
    assume(delimited or options.stream_type != StreamType.FRAME or len(patches) == 1)
    encoder = codec.PatchEncoder(options, rows_per_frame=rows_per_frame, delimited=delimited)

    written = unless_too_small(encoded_patches, encoder, patches)

    decoder = codec.PatchDecoder()
    read = decoded(decoder, written)
    assert read == as_read(options, patches)
    assert decoder.options == options


def as_read(options, patches):
    if options.stream_type == StreamType.FLAT:
        return flattened(patches)
    if options.stream_type == StreamType.FRAME and not patches:
        return [Punctuation()]
    return [operation for operations in patches for operation in [*operations, Punctuation()]]


@examples
@given(patch_streams(), st.integers(1, 40))
def test_the_chunks_do_not_matter(codec, stream, chunk_size):
    options, patches = stream
    written = unless_too_small(encoded_patches, codec.PatchEncoder(options, rows_per_frame=3), patches)

    read = decoded(codec.PatchDecoder(), written, chunk_size)

    assert read == decoded(codec.PatchDecoder(), written)


@examples
@given(rdf_streams(), st.integers(1, 40), st.booleans())
def test_the_chunks_of_frames_do_not_matter(codec, stream, chunk_size, delimited):
    options, frames = stream
    written = unless_too_small(encoded_rdf, codec, options, frames, rows_per_frame=3, delimited=delimited)

    read = decoded(codec.RdfDecoder(), written, chunk_size)

    assert read == decoded(codec.RdfDecoder(), written)


canonical_patches = st.lists(operations_of(all_quads, any_terms), max_size=4)


@examples
@given(canonical_patches)
def test_canonical_patches_laid_end_to_end_are_one_stream(codec, patches):
    written = [encoded_patches(codec.CanonicalPatchEncoder(), [operations]) for operations in patches]
    assume(written)

    read = decoded(codec.PatchDecoder(), b"".join(written))

    assert read == [operation for operations in patches for operation in [*operations, Punctuation()]]
    assert b"".join(written) == encoded_patches(codec.CanonicalPatchEncoder(), patches)


@examples
@given(canonical_patches, st.randoms(use_true_random=False))
def test_the_order_of_canonical_patches_does_not_change_what_they_say(codec, patches, random):
    written = [encoded_patches(codec.CanonicalPatchEncoder(), [operations]) for operations in patches]
    assume(written)
    order = random.sample(range(len(patches)), len(patches))

    read = decoded(codec.PatchDecoder(), b"".join(written[i] for i in order))

    assert read == [operation for i in order for operation in [*patches[i], Punctuation()]]


@examples
@given(rdf_streams(), rows_per_frame, st.booleans())
def test_both_implementations_write_the_same_jelly_rdf(both_codecs, stream, rows_per_frame, delimited):
    options, frames = stream
    settings = {"rows_per_frame": rows_per_frame, "delimited": delimited}

    pure, native = (or_refusal(encoded_rdf, codec, options, frames, **settings) for codec in both_codecs)

    assert native == pure


@examples
@given(patch_streams(), rows_per_frame, st.booleans())
def test_both_implementations_write_the_same_jelly_patch(both_codecs, stream, rows_per_frame, delimited):
    options, patches = stream
    settings = {"rows_per_frame": rows_per_frame, "delimited": delimited}

    pure, native = (
        or_refusal(encoded_patches, codec.PatchEncoder(options, **settings), patches) for codec in both_codecs
    )

    assert native == pure


@examples
@given(patch_streams())
def test_both_implementations_write_the_same_canonical_patches(both_codecs, stream):
    options, patches = stream
    flags = {"rdf_star": options.rdf_star, "generalized_statements": options.generalized_statements}

    pure, native = (encoded_patches(codec.CanonicalPatchEncoder(**flags), patches) for codec in both_codecs)

    assert native == pure


@examples
@given(patch_streams(), st.sampled_from(["rdf_star", "generalized_statements"]))
def test_both_implementations_refuse_the_same_undeclared_terms(both_codecs, stream, flag):
    options, patches = stream
    options = replace(options, **{flag: False})

    pure, native = (or_refusal(encoded_patches, codec.PatchEncoder(options), patches) for codec in both_codecs)

    assert native == pure


@pytest.mark.parametrize(
    "term", ["", "a", "<a b>", "<a", '"a', '"a"@', '"a"^^<b', "_:a b", "_:-", "<<( <a> <b> )>>", '"\ud800"']
)
def test_both_implementations_refuse_the_same_terms(both_codecs, term):
    options = PatchOptions(rdf_star=True, generalized_statements=True)
    operation = Header("key", term)

    pure, native = (or_refusal(encoded_patches, codec.PatchEncoder(options), [[operation]]) for codec in both_codecs)

    assert isinstance(pure, type)
    assert native == pure
