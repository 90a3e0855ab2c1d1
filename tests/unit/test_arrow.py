"""Arrow record batches from and to the formats."""

import sys

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchlog import pure
from patchlog.codec.options import PatchOptions, RdfOptions, Tables
from patchlog.errors import InvalidSyntax, InvalidTerm, MissingExtra, UnexpectedRow, UsageError

STAR = RdfOptions(rdf_star=True, generalized_statements=True)
STATEMENTS = b'<s> <p> "o"@en .\n_:s <p> << <a> <b> <c> >> <g> .\n<s> <p> <o> _:g .\n'
STATEMENT_ROWS = [
    {"subject": "<s>", "predicate": "<p>", "object": '"o"@en', "graph": None},
    {"subject": "_:s", "predicate": "<p>", "object": "<<( <a> <b> <c> )>>", "graph": "<g>"},
    {"subject": "<s>", "predicate": "<p>", "object": "<o>", "graph": "_:g"},
]
PATCH = b"""H id <urn:uuid:1> .
TX .
PA "ex" "http://example.org/" <g> .
PD "ex" .
A <s> <p> <o> .
D <s> <p> "o" <g> .
TC .
TX .
TA .
Z .
"""
COLUMNS = ["operation", "name", "subject", "predicate", "object", "graph"]
PATCH_ROWS = [
    ("H", "id", None, None, "<urn:uuid:1>", None),
    ("TX", None, None, None, None, None),
    ("PA", "ex", None, None, "<http://example.org/>", "<g>"),
    ("PD", "ex", None, None, None, None),
    ("A", None, "<s>", "<p>", "<o>", None),
    ("D", None, "<s>", "<p>", '"o"', "<g>"),
    ("TC", None, None, None, None, None),
    ("TX", None, None, None, None, None),
    ("TA", None, None, None, None, None),
    ("Z", None, None, None, None, None),
]

BOTH_LAYOUTS = pytest.mark.parametrize("dictionary", [True, False])

terms = st.sampled_from(["<http://example.org/a>", "_:b", '"a\\nb"', '"1"^^<d>', "<<( <a> <b> _:c )>>"])
iris = st.sampled_from(
    ["<http://example.org/a>", "<http://example.org/a#b/c>", "<urn:x:1>", "<a>", "<a/\\u0020#>", "<>"]
)
statements = st.tuples(terms, terms, terms, st.sampled_from(["", "<g>", "_:g"]))


def decode(codec, source, data, chunk_bytes=1 << 20, **options):
    decoder = codec.ArrowDecoder(source, **options)
    batches = []
    for start in range(0, len(data), chunk_bytes):
        batches += decoder.feed(data[start : start + chunk_bytes])
    return [pa.record_batch(batch) for batch in [*batches, *decoder.finish()]]


def rows(batches):
    return [row for batch in batches for row in batch.to_pylist()]


def encode(codec, sink, *batches, **options):
    encoder = codec.ArrowEncoder(sink, **options)
    data = b"".join(encoder.encode(batch) for batch in batches)
    return data + encoder.finish()


def batch_of(table_rows, columns=("subject", "predicate", "object", "graph")):
    arrays = [pa.array([row[i] for row in table_rows], pa.string()) for i in range(len(columns))]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


@BOTH_LAYOUTS
def test_statements_are_rows(codec, dictionary):
    (batch,) = decode(codec, "nquads", STATEMENTS, dictionary=dictionary)

    assert batch.schema.names == ["subject", "predicate", "object", "graph"]
    assert batch.to_pylist() == STATEMENT_ROWS


@BOTH_LAYOUTS
def test_operations_are_rows(codec, dictionary):
    (batch,) = decode(codec, "rdf-patch", PATCH, dictionary=dictionary)

    assert batch.schema.names == COLUMNS
    assert [tuple(row.values()) for row in batch.to_pylist()] == PATCH_ROWS


def test_columns_are_dictionaries_or_plain_strings(codec):
    is_dictionary = pa.dictionary(pa.int32(), pa.string())

    with_dictionaries = codec.ArrowDecoder("jelly")
    plain = codec.ArrowDecoder("jelly", dictionary=False)

    assert pa.schema(with_dictionaries).types == [is_dictionary] * 4
    assert pa.schema(plain).types == [pa.string()] * 4
    assert pa.schema(codec.ArrowDecoder("jelly-patch")).names == COLUMNS


@BOTH_LAYOUTS
def test_batches_have_the_schema_of_the_decoder(codec, dictionary):
    decoder = codec.ArrowDecoder("rdf-patch", dictionary=dictionary)

    batches = [*decoder.feed(PATCH), *decoder.finish()]

    assert [pa.record_batch(batch).schema for batch in batches] == [pa.schema(decoder)]


@given(found=st.lists(st.tuples(iris, iris, st.one_of(iris, terms)), max_size=12), batch_rows=st.integers(1, 9))
def test_dictionaries_hold_each_text_once_however_it_came(codec, found, batch_rows):
    data = b""
    for prefixes in (150, 0):
        encoder = codec.RdfEncoder(STAR.with_tables(Tables(4000, prefixes, 32)))
        encoder.statements(found)
        data += encoder.finish()

    batches = decode(codec, "jelly", data, concatenated=True, batch_rows=batch_rows)

    assert [tuple(row.values())[:3] for row in rows(batches)] == found * 2
    for batch in batches:
        for column in batch.columns[:3]:
            texts = column.dictionary.to_pylist()
            assert len(set(texts)) == len(texts)


@BOTH_LAYOUTS
def test_iris_are_those_of_their_rows_however_many_there_are(codec, dictionary):
    """More than a decoder keeps: some are met once, some all the time, and in more than one place."""
    names = [f"{number:x}{'x' * 60}" for number in range(20_000)]
    found = [
        (f"<http://example.org/{name}>", f"<http://example.org/{names[i % 50]}>", "<o>") for i, name in enumerate(names)
    ]
    found += [(predicate, subject, "<o>") for subject, predicate, _ in found]
    encoder = codec.RdfEncoder(STAR)
    encoder.statements(found)

    batches = decode(codec, "jelly", encoder.finish(), dictionary=dictionary)

    columns = pa.Table.from_batches(batches).select(["subject", "predicate", "object"])
    assert list(zip(*(column.to_pylist() for column in columns), strict=True)) == found


def test_values_of_headers_are_in_the_dictionary_of_the_objects(codec):
    values = ["<http://example.org/a>", '"a\\nb"', '"a"@en', '"1"^^<http://example.org/d>', "_:b"]
    patch = "".join(f"H h {value} .\nA <s> <p> {value} .\n" for value in values)

    for source in ("rdf-patch", "jelly-patch"):
        converter = codec.Converter("rdf-patch", source)
        data = converter.feed(patch.encode()) + converter.finish()
        (batch,) = decode(codec, source, data)

        assert batch["object"].dictionary.to_pylist() == values


def test_batches_end_at_their_number_of_rows(codec):
    decoder = codec.ArrowDecoder("nquads", batch_rows=2)

    first = decoder.feed(STATEMENTS * 2)[:]
    rest = decoder.finish()

    assert [pa.record_batch(batch).num_rows for batch in first] == [2, 2, 2]
    assert rest == []


@BOTH_LAYOUTS
def test_batches_end_before_their_strings_are_too_long(codec, dictionary):
    """Offsets of Arrow have 32 bits; what makes long terms of short messages is a long prefix."""
    prefix = "http://example.org/" + "x" * (40 << 20) + "/"
    found = [(f"<{prefix}{number}>", "<p>", "<o>") for number in range(9)]
    encoder = codec.RdfEncoder(STAR)
    data = b""
    for statement in found:
        encoder.statements([statement])
        encoder.end_frame({})
    data += encoder.finish()

    batches = decode(codec, "jelly", data, dictionary=dictionary)

    assert [batch.num_rows for batch in batches] == [7, 2]
    assert batches[1].column("subject").to_pylist()[1] == found[8][0]


@BOTH_LAYOUTS
@given(chunk_bytes=st.integers(1, 40), batch_rows=st.integers(1, 4))
def test_rows_do_not_depend_on_chunks_and_batches(codec, dictionary, chunk_bytes, batch_rows):
    batches = decode(codec, "nquads", STATEMENTS, chunk_bytes, batch_rows=batch_rows, dictionary=dictionary)

    assert rows(batches) == STATEMENT_ROWS


def test_no_rows_are_no_batch(codec):
    assert decode(codec, "nquads", b"# nothing\n") == []


def test_default_graph_is_the_empty_string_in_quads_and_null_in_triples(codec):
    quads = codec.Converter("nquads", "jelly")
    data = quads.feed(b"<s> <p> <o> .\n") + quads.finish()

    assert rows(decode(codec, "jelly", data)) == [
        {"subject": "<s>", "predicate": "<p>", "object": "<o>", "graph": ""},
    ]
    assert rows(decode(codec, "nquads", b"<s> <p> <o> .\n"))[0]["graph"] is None


def test_errors_of_the_input_come_through(codec):
    with pytest.raises(InvalidSyntax) as caught:
        decode(codec, "nquads", b"<s> <p> <o> .\n<s>\n")
    with pytest.raises(UnexpectedRow):
        decode(codec, "jelly", b"")

    assert caught.value.line == 2


@BOTH_LAYOUTS
@given(found=st.lists(statements, max_size=6))
def test_encoding_what_was_decoded_is_the_identity(codec, dictionary, found):
    encoder = codec.RdfEncoder(STAR)
    encoder.statements(found)
    batches = decode(codec, "jelly", encoder.finish(), dictionary=dictionary, batch_rows=4)

    data = encode(codec, "jelly", *batches, rdf_options=STAR)

    decoder = codec.RdfDecoder()
    frames = [*decoder.feed(data), *decoder.finish()]
    assert [statement for frame in frames for statement in frame.statements] == found


@BOTH_LAYOUTS
@pytest.mark.parametrize("sink", ["rdf-patch", "jelly-patch", "canonical-patch"])
def test_operations_are_encoded(codec, dictionary, sink):
    batches = decode(codec, "rdf-patch", PATCH, dictionary=dictionary, batch_rows=3)

    data = encode(codec, sink, *batches)

    if sink == "rdf-patch":
        assert data.replace(b" .\n", b".").replace(b" ", b"") == PATCH.replace(b" .\n", b".").replace(b" ", b"")
    else:
        found = [tuple(row.values()) for row in rows(decode(codec, "jelly-patch", data))]
        # A stream of quads has a default graph where the text has none.
        assert [row[:5] for row in found] == [row[:5] for row in PATCH_ROWS]


@pytest.mark.parametrize(
    "string_type",
    [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int8(), pa.string()),
        pa.dictionary(pa.uint16(), pa.large_string()),
        pa.dictionary(pa.int64(), pa.string()),
    ],
    ids=str,
)
def test_strings_of_all_layouts_are_encoded(codec, string_type):
    columns = {
        name: pa.array([row[name] for row in STATEMENT_ROWS], pa.string())
        for name in ("graph", "object", "predicate", "subject")
    }
    batch = pa.record_batch({name: column.cast(string_type) for name, column in columns.items()})

    assert encode(codec, "nquads", batch) == STATEMENTS
    assert encode(codec, "nquads", batch.slice(1)) == STATEMENTS.split(b"\n", 1)[1]


TEXTS = ["<http://a/é>", "<s>", "_:b", "<s>", "<http://a/日本>"]


@pytest.mark.parametrize("sink", ["nquads", "jelly"])
@pytest.mark.parametrize("index_type", [pa.int8(), pa.int32(), pa.uint32()], ids=str)
@given(
    values=st.permutations(TEXTS),
    picks=st.lists(st.tuples(*[st.integers(0, len(TEXTS) - 1)] * 3, st.none() | st.integers(0, len(TEXTS) - 1))),
    cut=st.integers(0, 3),
)
def test_dictionaries_are_encoded_like_their_strings(codec, sink, index_type, values, picks, cut):
    """Of any index type, with values that come twice, nulls, and rows that are left out at the front."""
    columns = zip(("subject", "predicate", "object", "graph"), zip(*picks, strict=True), strict=False)
    options = RdfOptions(generalized_statements=True)
    dictionaries, strings = {}, {}
    for name, column in columns:
        values_of_place = ["<p>"] if name == "predicate" else values
        indexes = [None if pick is None else pick % len(values_of_place) for pick in column]
        dictionaries[name] = pa.DictionaryArray.from_arrays(pa.array(indexes, index_type), values_of_place)
        strings[name] = pa.array([None if at is None else values_of_place[at] for at in indexes], pa.string())
    if not picks:
        return

    found = [
        encode(codec, sink, pa.record_batch(made).slice(cut), rdf_options=options) for made in (dictionaries, strings)
    ]

    assert found[0] == found[1]


def test_null_in_a_dictionary_is_a_null(codec):
    graphs = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["<g>", None]))
    batch = batch_of([("<s>", "<p>", "<o>")] * 2, ("subject", "predicate", "object")).append_column("graph", graphs)

    assert encode(codec, "nquads", batch) == b"<s> <p> <o> <g> .\n<s> <p> <o> .\n"


@pytest.mark.parametrize("has_dictionary", [False, True])
def test_part_of_a_struct_array_is_a_batch(codec, has_dictionary):
    columns = [pa.array([f"<{name}{row}>" for row in range(5)]) for name in "spo"]
    if has_dictionary:
        columns = [column.dictionary_encode() for column in columns]
    whole = pa.StructArray.from_arrays([column.slice(1) for column in columns], ["subject", "predicate", "object"])

    assert encode(codec, "ntriples", whole.slice(1, 2)) == b"<s2> <p2> <o2> .\n<s3> <p3> <o3> .\n"
    assert encode(codec, "ntriples", whole.slice(4)) == b""


def test_errors_count_the_rows_of_a_part(codec):
    columns = [pa.array(["<s>", "<s>", None]), pa.array(["<p>"] * 3), pa.array(["<o>"] * 3)]
    whole = pa.StructArray.from_arrays(columns, ["subject", "predicate", "object"])

    with pytest.raises(InvalidTerm, match="row 1"):
        encode(codec, "ntriples", whole.slice(1))


def test_row_that_is_null_as_a_whole_is_refused(codec):
    columns = [pa.array(["<a>", "<b>", "<c>"])] * 3
    names = ["subject", "predicate", "object"]
    whole = pa.StructArray.from_arrays(columns, names, mask=pa.array([True, False, True]))

    with pytest.raises(UsageError, match="row 1 is null as a whole"):
        encode(codec, "ntriples", whole.slice(1))
    assert encode(codec, "ntriples", whole.slice(1, 1)) == b"<b> <b> <b> .\n"


def test_streams_of_batches_are_encoded(codec):
    table = pa.Table.from_batches([batch_of([("<s>", "<p>", "<o>", None)]), batch_of([("<s>", "<p>", "<q>", "")])])

    assert encode(codec, "nquads", table) == b"<s> <p> <o> .\n<s> <p> <q> .\n"


def test_graph_and_operation_may_be_missing(codec):
    batch = batch_of([("<s>", "<p>", "<o>")], ("subject", "predicate", "object"))

    assert encode(codec, "ntriples", batch) == b"<s> <p> <o> .\n"
    assert encode(codec, "rdf-patch", batch) == b"A <s> <p> <o> .\n"


def test_column_of_nulls_is_a_column_without_values(codec):
    batch = batch_of([("<s>", "<p>", "<o>")], ("subject", "predicate", "object")).append_column("graph", pa.nulls(1))

    assert encode(codec, "nquads", batch) == b"<s> <p> <o> .\n"


def test_plus_and_minus_are_add_and_delete(codec):
    batch = batch_of([("+", "<s>", "<p>", "<o>"), ("-", "<s>", "<p>", "<q>")], ("operation", *COLUMNS[2:5]))

    assert encode(codec, "rdf-patch", batch) == b"A <s> <p> <o> .\nD <s> <p> <q> .\n"


def test_statement_sinks_leave_namespaces_out_and_take_adds(codec):
    batch = batch_of([PATCH_ROWS[2], PATCH_ROWS[3], PATCH_ROWS[4]], COLUMNS)

    assert encode(codec, "nquads", batch) == b"<s> <p> <o> .\n"


@pytest.mark.parametrize("sink", ["nquads", "jelly"])
@pytest.mark.parametrize("row", [PATCH_ROWS[0], PATCH_ROWS[1], PATCH_ROWS[5], PATCH_ROWS[9]])
def test_statement_sinks_refuse_other_operations(codec, sink, row):
    with pytest.raises(UsageError):
        encode(codec, sink, batch_of([row], COLUMNS))


@pytest.mark.parametrize(
    "row",
    [
        ("X", None, "<s>", "<p>", "<o>", None),
        (None, None, "<s>", "<p>", "<o>", None),
        ("H", None, None, None, "<v>", None),
        ("PA", None, None, None, "<v>", None),
        ("PD", None, None, None, None, None),
    ],
)
def test_rows_that_are_no_operation_are_refused(codec, row):
    with pytest.raises(UsageError):
        encode(codec, "rdf-patch", batch_of([row], COLUMNS))


@pytest.mark.parametrize("sink", ["rdf-patch", "jelly-patch"])
@pytest.mark.parametrize(
    "row",
    [
        ("A", None, None, "<p>", "<o>", None),
        ("D", None, "<s>", "<p>", "", None),
        ("A", None, "<s>", "p", "<o>", None),
        ("A", None, "<s>", "<p>", "<o>", "g"),
        ("H", "id", None, None, None, None),
        ("PA", "ex", None, None, None, None),
        ("PA", "ex", None, None, "_:a", None),
    ],
)
def test_missing_and_wrong_terms_of_operations_are_refused(codec, sink, row):
    with pytest.raises(InvalidTerm):
        encode(codec, sink, batch_of([row], COLUMNS))


@pytest.mark.parametrize("sink", ["nquads", "ntriples", "jelly"])
@pytest.mark.parametrize(
    "row",
    [
        (None, "<p>", "<o>", None),
        ("", "<p>", "<o>", None),
        ("<s>", "<p>", '"o', None),
        ("<s>", "<p>", "<o> .\n<s> <p> <q>", None),
        ("<s>", "<p>", "<o>", "<g"),
    ],
)
def test_missing_and_wrong_terms_of_statements_are_refused(codec, sink, row):
    with pytest.raises(InvalidTerm):
        encode(codec, sink, batch_of([row]))


@pytest.mark.parametrize(
    "data",
    [
        pa.record_batch({"subject": ["<s>"], "predicate": ["<p>"]}),
        pa.record_batch({"subject": ["<s>"], "predicate": ["<p>"], "object": [1]}),
        pa.array([1, 2]),
    ],
    ids=["no object", "numbers", "no batch"],
)
def test_data_without_the_columns_is_refused(codec, data):
    with pytest.raises(UsageError):
        encode(codec, "nquads", data)


def test_what_is_no_arrow_data_is_refused(codec):
    with pytest.raises(UsageError):
        encode(codec, "nquads", [1, 2])


def test_string_that_is_not_utf8_is_refused(codec):
    broken = pa.array([b"<\xff>"]).view(pa.string())

    with pytest.raises(InvalidTerm):
        encode(codec, "nquads", pa.record_batch({"subject": broken, "predicate": broken, "object": broken}))


@pytest.mark.parametrize("is_dictionary", [True, False])
def test_strings_that_are_utf8_only_together_are_refused(codec, is_dictionary):
    offsets, text = pa.array([0, 4, 8], pa.int32()).buffers()[1], "<aé><b>".encode()
    assert text[:4] == b"<a\xc3\xa9"
    cut = pa.array([0, 3, 8], pa.int32()).buffers()[1]
    whole, halves = (
        pa.Array.from_buffers(pa.string(), 2, [None, places, pa.py_buffer(text)]) for places in (offsets, cut)
    )
    assert whole.to_pylist() == ["<aé", "><b>"]
    if is_dictionary:
        halves = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), halves)

    with pytest.raises(InvalidTerm, match="UTF-8"):
        encode(codec, "nquads", pa.record_batch(dict.fromkeys(("subject", "predicate", "object"), halves)))


@pytest.mark.parametrize("index", [7, 1, -1])
@pytest.mark.parametrize("index_type", [pa.int8(), pa.int32()], ids=str)
def test_index_that_points_to_nothing_is_refused(codec, index, index_type):
    broken = pa.DictionaryArray.from_arrays(pa.array([0, index], index_type), pa.array(["<a>"]), safe=False)

    with pytest.raises(UsageError, match=f"row 1 .* value {index},"):
        encode(codec, "nquads", pa.record_batch(dict.fromkeys(("subject", "predicate", "object"), broken)))


def test_unknown_formats_are_refused(codec):
    with pytest.raises(UsageError):
        codec.ArrowDecoder("turtle")
    with pytest.raises(UsageError):
        codec.ArrowEncoder("turtle")


def test_options_of_the_output_can_be_chosen(codec):
    options = PatchOptions(max_prefix_table_size=0, max_name_table_size=8)

    data = encode(codec, "jelly-patch", batch_of([PATCH_ROWS[4]], COLUMNS), patch_options=options)

    decoder = codec.PatchDecoder()
    list(decoder.feed(data))
    assert decoder.options == options


def test_pure_implementation_says_how_to_install_pyarrow(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    with pytest.raises(MissingExtra, match=r"patchlog\[arrow\]"):
        pure.ArrowDecoder("jelly")
    with pytest.raises(MissingExtra):
        pure.ArrowEncoder("jelly")
