"""Bytes of one format to bytes of another."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchlog.codec.options import (
    Limits,
    LogicalType,
    PatchOptions,
    PhysicalType,
    RdfOptions,
    StatementType,
    StreamType,
)
from patchlog.errors import (
    InvalidSyntax,
    InvalidTerm,
    LimitExceeded,
    MalformedFrame,
    TransactionError,
    UnexpectedRow,
    UnsupportedOption,
    UsageError,
)
from patchlog.model import (
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

TRIPLES = RdfOptions(physical_type=PhysicalType.TRIPLES, logical_type=LogicalType.FLAT_TRIPLES)
STAR = RdfOptions(rdf_star=True, generalized_statements=True)

terms = st.sampled_from(["<http://example.org/a>", "<http://example.org/b#c>", "_:b", "_:c.d"])
objects = terms | st.sampled_from(['"a\\n\\"b\\""', '"a"@en', '"1"^^<http://example.org/d>', "<<( <a> <b> _:c )>>"])
graphs = st.sampled_from(["", "<http://example.org/g>", "_:g"])
iris = st.sampled_from(["<http://example.org/>", "<a>"])
quads = st.tuples(terms, iris, objects, graphs)
changes = st.one_of(
    st.builds(Header, st.sampled_from(["id", "a key"]), objects),
    st.builds(Add, terms, iris, objects, graphs),
    st.builds(Delete, terms, iris, objects, graphs),
    st.builds(NamespaceAdd, st.sampled_from(["", "ex"]), iris, graphs),
    st.builds(NamespaceDelete, st.sampled_from(["", "ex"]), st.none(), graphs),
)
transactions = st.tuples(changes, st.sampled_from([TransactionCommit(), TransactionAbort()])).map(
    lambda pair: [TransactionStart(), pair[0], pair[1]]
)
patches = st.lists(transactions | st.lists(changes | st.just(Punctuation()), max_size=2), max_size=6).map(
    lambda parts: [operation for part in parts for operation in part]
)


def convert(codec, source, sink, *inputs, chunk_bytes=1 << 20, **options):
    converter = codec.Converter(source, sink, **options)
    out = bytearray()
    for data in inputs:
        for start in range(0, len(data), chunk_bytes):
            out += converter.feed(data[start : start + chunk_bytes])
        out += converter.end_input()
    out += converter.finish()
    return bytes(out)


def encode_rdf(codec, *frames, options=STAR, namespaces=(), metadata=None):
    encoder = codec.RdfEncoder(options, rows_per_frame=0, namespace_declarations=bool(namespaces))
    for name, iri in namespaces:
        encoder.namespace(name, iri)
    for statements in frames:
        encoder.statements(statements)
        encoder.end_frame(metadata)
    return encoder.finish() if not frames else encoder.take()


def decode_rdf(codec, data):
    decoder = codec.RdfDecoder()
    return [*decoder.feed(data), *decoder.finish()], decoder.options


def encode_patch(codec, operations, options=None):
    encoder = codec.PatchEncoder(options or PatchOptions(rdf_star=True, generalized_statements=True))
    for operation in operations:
        encoder.accept(operation)
    return encoder.finish()


def decode_patch(codec, data):
    decoder = codec.PatchDecoder()
    return [*decoder.feed(data), *decoder.finish()]


def read_text_patch(codec, data):
    reader = codec.RdfPatchReader()
    return [*reader.feed(data), *reader.finish()]


def statements_of(frames):
    return [statement for frame in frames for statement in frame.statements]


@given(found=st.lists(quads, max_size=6), chunk_bytes=st.integers(1, 50))
def test_jelly_becomes_text_and_text_becomes_jelly(codec, found, chunk_bytes):
    text = convert(codec, "jelly", "nquads", encode_rdf(codec, found), chunk_bytes=chunk_bytes)

    data = convert(codec, "nquads", "jelly", text, chunk_bytes=chunk_bytes, rdf_options=STAR)

    assert statements_of(decode_rdf(codec, data)[0]) == found
    assert text.count(b"\n") == len(found)


@given(found=patches, chunk_bytes=st.integers(1, 50))
def test_jelly_patch_becomes_text_and_text_becomes_jelly_patch(codec, found, chunk_bytes):
    options = PatchOptions(rdf_star=True, generalized_statements=True)
    data = encode_patch(codec, found)

    text = convert(codec, "jelly-patch", "rdf-patch", data, chunk_bytes=chunk_bytes)
    back = convert(codec, "rdf-patch", "jelly-patch", text, chunk_bytes=chunk_bytes, patch_options=options)

    assert decode_patch(codec, back) == decode_patch(codec, data)


@given(found=patches, chunk_bytes=st.integers(1, 50))
def test_canonical_patch_holds_the_same_operations(codec, found, chunk_bytes):
    data = convert(codec, "jelly-patch", "canonical-patch", encode_patch(codec, found), chunk_bytes=chunk_bytes)

    encoder = codec.CanonicalPatchEncoder()
    for operation in decode_patch(codec, encode_patch(codec, found)):
        encoder.accept(operation)
    assert data == encoder.finish()


def test_text_is_made_canonical(codec):
    data = convert(codec, "nquads", "nquads", b'<s>\t<p> "\\u00e9" . # comment\n\n<s> <p> <<( <a> <b> <c> )>> <g>.')

    assert data == '<s> <p> "é" .\n<s> <p> << <a> <b> <c> >> <g> .\n'.encode()


def test_patch_text_is_written_in_our_style(codec):
    data = convert(codec, "rdf-patch", "rdf-patch", b"TX . A _:a <p> 42 .\nTC\n.")

    assert data == b'TX .\nA <_:a> <p> "42"^^<http://www.w3.org/2001/XMLSchema#integer> .\nTC .\n'


def test_options_of_the_input_are_kept(codec):
    options = RdfOptions(
        physical_type=PhysicalType.GRAPHS, logical_type=LogicalType.DATASETS, stream_name="a name", rdf_star=True
    )

    data = convert(codec, "jelly", "jelly", encode_rdf(codec, [("<s>", "<p>", "<o>", "<g>")], options=options))

    frames, found = decode_rdf(codec, data)
    assert found == options
    assert statements_of(frames) == [("<s>", "<p>", "<o>", "<g>")]


def test_options_of_the_output_can_be_chosen(codec):
    options = TRIPLES.with_tables(RdfOptions(max_name_table_size=16, max_prefix_table_size=0).tables)

    data = convert(codec, "jelly", "jelly", encode_rdf(codec, [("<s>", "<p>", "<o>", "")]), rdf_options=options)

    frames, found = decode_rdf(codec, data)
    assert found == options
    assert statements_of(frames) == [("<s>", "<p>", "<o>")]


def test_patch_options_of_the_input_are_kept(codec):
    options = PatchOptions(statement_type=StatementType.TRIPLES, stream_type=StreamType.FRAME, rdf_star=True)

    data = convert(codec, "jelly-patch", "jelly-patch", encode_patch(codec, [Add("<s>", "<p>", "<o>")], options))

    decoder = codec.PatchDecoder()
    assert [*decoder.feed(data), *decoder.finish()] == [Add("<s>", "<p>", "<o>"), Punctuation()]
    assert decoder.options == options


def test_statements_become_adds(codec):
    data = convert(codec, "nquads", "rdf-patch", b"<s> <p> <o> .\n<s> <p> <o> <g> .\n")

    assert read_text_patch(codec, data) == [Add("<s>", "<p>", "<o>"), Add("<s>", "<p>", "<o>", "<g>")]


@pytest.mark.parametrize("sink", ["jelly-patch", "canonical-patch"])
def test_statements_become_one_patch(codec, sink):
    data = convert(codec, "nquads", sink, b"<s> <p> <o> .\n", b"<s> <p> <o> <g> .\n")

    assert decode_patch(codec, data) == [
        Add("<s>", "<p>", "<o>", ""),
        Add("<s>", "<p>", "<o>", "<g>"),
        Punctuation(),
    ]


@pytest.mark.parametrize("sink", ["jelly", "nquads", "ntriples"])
@pytest.mark.parametrize("source", ["jelly-patch", "rdf-patch"])
def test_patch_is_not_converted_to_statements(codec, source, sink):
    with pytest.raises(UsageError):
        codec.Converter(source, sink)


@pytest.mark.parametrize(("source", "sink"), [("turtle", "jelly"), ("jelly", "turtle"), ("ntriples", "jelly")])
def test_unknown_formats_are_refused(codec, source, sink):
    with pytest.raises(UsageError):
        codec.Converter(source, sink)


@pytest.mark.parametrize("source", ["nquads", "rdf-patch", "jelly-patch"])
def test_frames_can_be_chosen_from_jelly_only(codec, source):
    with pytest.raises(UsageError):
        codec.Converter(source, "jelly-patch", frames=(0, 1))


def test_ntriples_refuses_a_named_graph(codec):
    assert convert(codec, "nquads", "ntriples", b"<s> <p> <o> .\n") == b"<s> <p> <o> .\n"
    with pytest.raises(InvalidTerm):
        convert(codec, "nquads", "ntriples", b"<s> <p> <o> <g> .\n")


def test_namespaces_are_written_where_they_are_asked_for(codec):
    data = encode_rdf(codec, [("<s>", "<p>", "<o>", "")], namespaces=[("ex", "<http://example.org/>")])

    with_namespaces = convert(codec, "jelly", "jelly", data, namespace_declarations=True)
    without = convert(codec, "jelly", "jelly", data)

    assert decode_rdf(codec, with_namespaces)[0][0].namespaces == [("ex", "<http://example.org/>")]
    assert decode_rdf(codec, without)[0][0].namespaces == []
    assert convert(codec, "jelly", "nquads", data, namespace_declarations=True) == b"<s> <p> <o> .\n"


def test_namespaces_become_namespace_adds_where_they_are_asked_for(codec):
    data = encode_rdf(codec, [("<s>", "<p>", "<o>", "")], namespaces=[("ex", "<http://example.org/>")])

    with_namespaces = convert(codec, "jelly", "rdf-patch", data, namespace_declarations=True)
    without = convert(codec, "jelly", "rdf-patch", data)

    assert with_namespaces == b'PA "ex" "http://example.org/" .\nA <s> <p> <o> .\n'
    assert without == b"A <s> <p> <o> .\n"


FRAMES = [[("<s>", "<p>", "<o0>", "")], [], [("<s>", "<p>", "<o2>", ""), ("<s>", "<p>", "<o3>", "<g>")]]


def test_frames_and_their_metadata_can_be_kept(codec):
    data = encode_rdf(codec, *FRAMES, metadata={"key": b"\x00\xff", "": b""})

    frames, _ = decode_rdf(codec, convert(codec, "jelly", "jelly", data, keep_frames=True, rows_per_frame=1))

    assert [frame.statements for frame in frames] == FRAMES
    assert [dict(frame.metadata) for frame in frames] == [{"key": b"\x00\xff", "": b""}] * 3


def test_frames_are_cut_anew_where_they_are_not_kept(codec):
    data = encode_rdf(codec, *FRAMES, metadata={"key": b""})

    frames, _ = decode_rdf(codec, convert(codec, "jelly", "jelly", data, rows_per_frame=1))

    assert [len(frame.statements) for frame in frames] == [1, 1, 1]
    assert all(not frame.metadata for frame in frames)


@pytest.mark.parametrize(
    ("frames", "objects"),
    [
        ((0, 0), ["<o0>"]),
        ((0, 1), ["<o0>"]),
        ((1, None), ["<o2>", "<o3>"]),
        ((2, 2), ["<o2>", "<o3>"]),
        ((3, None), []),
        ((0, None), ["<o0>", "<o2>", "<o3>"]),
    ],
)
@pytest.mark.parametrize("sink", ["jelly", "nquads"])
def test_only_chosen_frames_are_written(codec, sink, frames, objects):
    data = convert(codec, "jelly", sink, encode_rdf(codec, *FRAMES), frames=frames)

    found = statements_of(decode_rdf(codec, data)[0]) if sink == "jelly" else codec.NQuadsReader().feed(data)
    assert [statement[2] for statement in found] == objects


def test_frames_that_are_not_chosen_are_still_checked(codec):
    with pytest.raises(MalformedFrame):
        convert(codec, "jelly", "nquads", encode_rdf(codec, *FRAMES)[:-1], frames=(0, 0))


def test_no_statements_of_the_frames_that_are_taken_are_an_empty_patch(codec):
    empty = encode_rdf(codec, [], options=TRIPLES)

    assert convert(codec, "jelly", "canonical-patch", empty, frames=(0, 0)) == convert(
        codec, "jelly", "canonical-patch", empty
    )


def test_each_input_can_become_a_frame(codec):
    converter = codec.Converter("nquads", "jelly", keep_frames=True)
    data = b""
    for text in (b"<s> <p> <o0> .", b"", b"<s> <p> <o2> .\n<s> <p> <o3> ."):
        data += converter.feed(text) + converter.end_input()
        converter.end_frame()
    data += converter.finish()

    frames, _ = decode_rdf(codec, data)
    assert [[statement[2] for statement in frame.statements] for frame in frames] == [["<o0>"], [], ["<o2>", "<o3>"]]


def test_inputs_of_jelly_follow_each_other_with_options_of_the_first(codec):
    first = encode_rdf(codec, [("<s>", "<p>", "<o>")], options=TRIPLES)
    second = encode_rdf(codec, [("<s>", "<p>", "<q>", "")], options=STAR)

    frames, options = decode_rdf(codec, convert(codec, "jelly", "jelly", first, second))

    assert statements_of(frames) == [("<s>", "<p>", "<o>"), ("<s>", "<p>", "<q>")]
    assert options == TRIPLES


def test_end_of_an_input_ends_its_patch(codec):
    data = convert(codec, "rdf-patch", "rdf-patch", b"TX .\nTC .\n", b"TX .\nTC .\nZ .\n", b"", b"TX .\nTC .\n")

    assert data == b"TX .\nTC .\nZ .\nTX .\nTC .\nZ .\nTX .\nTC .\n"


def test_each_input_is_checked_on_its_own(codec):
    with pytest.raises(TransactionError) as caught:
        convert(codec, "rdf-patch", "rdf-patch", b"TX .\n", b"TC .\n")

    assert caught.value.line == 1


def test_output_can_be_one_bare_frame(codec):
    data = convert(codec, "nquads", "jelly", b"<s> <p> <o> .\n" * 600, output_delimited=False)

    decoder = codec.RdfDecoder()
    frames = [*decoder.feed(data), *decoder.finish()]
    assert decoder.delimited is False
    assert [len(frame.statements) for frame in frames] == [600]


def test_statements_are_counted(codec):
    converter = codec.Converter("nquads", "jelly")
    converter.feed(b"<s> <p> <o> .\n<s> <p> <o>")
    before = converter.statements
    converter.feed(b" .\n")
    converter.finish()

    assert (before, converter.statements) == (1, 2)


def test_frames_that_are_not_written_are_not_counted(codec):
    converter = codec.Converter("jelly", "nquads", frames=(1, None))
    converter.feed(encode_rdf(codec, *FRAMES))
    converter.finish()

    assert converter.statements == 2


def test_operations_but_punctuations_are_counted(codec):
    converter = codec.Converter("rdf-patch", "canonical-patch")
    converter.feed(b"H id <a> .\nTX .\nA <s> <p> <o> .\nPA 'ex' 'a' .\nTC .\nZ .\n")
    converter.finish()

    assert converter.statements == 5


def test_output_comes_as_soon_as_it_is_complete(codec):
    converter = codec.Converter("nquads", "nquads")

    assert converter.feed(b"<s> <p> <o> .\n<s> ") == b"<s> <p> <o> .\n"
    assert converter.feed(b"<p> <q> .") == b""
    assert converter.end_input() == b"<s> <p> <q> .\n"
    assert converter.feed(b"<a> <b> <c> .") == b""
    assert converter.finish() == b"<a> <b> <c> .\n"


@pytest.mark.parametrize("sink", ["nquads", "ntriples", "rdf-patch"])
def test_empty_text_is_empty_output(codec, sink):
    assert convert(codec, "nquads", sink, b"") == b""
    assert codec.Converter("nquads", sink).finish() == b""


def test_empty_text_is_jelly_of_options_only(codec):
    frames, options = decode_rdf(codec, convert(codec, "nquads", "jelly"))

    assert statements_of(frames) == []
    assert options == RdfOptions()


def test_empty_jelly_is_refused_when_strict(codec):
    with pytest.raises(UnexpectedRow):
        codec.Converter("jelly", "nquads").finish()
    with pytest.raises(UnexpectedRow):
        codec.Converter("jelly-patch", "rdf-patch").end_input()
    assert codec.Converter("jelly", "nquads", strict=False).finish() == b""


def test_limits_of_the_reader_hold(codec):
    data = encode_rdf(codec, [("<s>", "<p>", "<o>", "")])

    with pytest.raises(LimitExceeded):
        convert(codec, "jelly", "nquads", data, limits=Limits(max_frame_bytes=8))


def test_errors_of_the_input_carry_their_place(codec):
    with pytest.raises(InvalidSyntax) as caught:
        convert(codec, "nquads", "jelly", b"<s> <p> <o> .\n<s> .\n", chunk_bytes=3)

    assert caught.value.line == 2


@pytest.mark.parametrize("row", ['D <s> "p" <o> <g> .\n', 'D <s>\n"p" <o> <g> .\n'], ids=["one line", "two lines"])
def test_errors_of_the_writer_carry_the_right_place_or_none(codec, row):
    data = "TX .\nA <s> <p> <o> <g> .\nA <s> <p> <o> <h> .\n" + row + "TC .\n"

    with pytest.raises(InvalidTerm) as caught:
        convert(codec, "rdf-patch", "jelly-patch", data.encode(), patch_options=PatchOptions())

    assert caught.value.line in {None, 3 + row.count("\n")}


def test_undeclared_rdf_star_is_refused(codec):
    with pytest.raises(InvalidTerm):
        convert(codec, "nquads", "jelly", b"<< <a> <b> <c> >> <p> <o> .\n")


def test_flat_output_holds_one_patch(codec):
    options = PatchOptions(stream_type=StreamType.FLAT)

    with pytest.raises(UnexpectedRow):
        convert(codec, "rdf-patch", "jelly-patch", b"TX . TC .", b"TX . TC .", patch_options=options)


def test_options_that_cannot_be_written_are_refused(codec):
    with pytest.raises(UnsupportedOption):
        convert(codec, "nquads", "jelly", b"", rdf_options=RdfOptions(physical_type=PhysicalType.UNSPECIFIED))


def test_concatenated_streams_are_read_where_that_is_said(codec):
    data = encode_rdf(codec, [("<s>", "<p>", "<o>", "")]) + encode_rdf(codec, [("<s>", "<p>", "<o>")], options=TRIPLES)

    assert convert(codec, "jelly", "nquads", data, concatenated=True) == b"<s> <p> <o> .\n" * 2
    with pytest.raises(UnsupportedOption):
        convert(codec, "jelly", "nquads", data)
