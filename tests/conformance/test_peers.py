"""What we write, read by others: by pyjelly, and by protobuf's own runtime."""

import io
import os
from importlib import import_module

import pytest

from patchlog.codec.fields import read_varint
from patchlog.codec.options import LogicalType, PatchOptions, PhysicalType, RdfOptions, StreamType, Tables
from patchlog.model import Add, Delete, Header, NamespaceAdd, NamespaceDelete, TransactionCommit, TransactionStart
from patchlog.text.terms import blank_node_term, iri_term, literal_term, quoted_triple_term
from patchlog.wire import RdfPatchFrame, RdfStreamFrame

QUADS = [
    ("<http://a/s>", "<http://b#p>", "<http://a/o>", ""),
    ("<http://a/s>", "<http://b#p>", '"tab\\t é 😀"', ""),
    ("_:b", "<http://b#q>", '"hej"@sv', "<http://a/g>"),
    ("_:b", "<http://b#q>", '"01"^^<http://www.w3.org/2001/XMLSchema#int>', "_:g"),
    ("_:b", "<http://b#q>", '"1"^^<http://d>', "_:g"),
    ("<urn:a>", "<none>", "<urn:>", "<#>"),
    *((f"<http://many/{i}>", f"<http://of/{i % 7}#them>", f'"{i}"^^<http://d{i % 5}>', "_:g") for i in range(100)),
]
STAR = [('<<( _:a <http://b#p> <<( <http://a/s> <p> "x"@en )>> )>>', "<p>", "<<( <a> <b> _:c )>>", "_:g")]
TABLES = [Tables(8, 0, 8), Tables(9, 5, 5), Tables(4000, 150, 32)]


def encoded(codec, options, statements, **settings):
    encoder = codec.RdfEncoder(options, **settings)
    if options.physical_type == PhysicalType.TRIPLES:
        statements = [statement[:3] for statement in statements]
    encoder.statements(statements)
    return statements, encoder.finish()


@pytest.fixture(scope="session")
def parse_jelly_flat():
    """pyjelly's parser for terms without rdflib."""
    if not os.environ.get("CI"):
        pytest.importorskip("pyjelly")
    return import_module("pyjelly.integrations.generic.parse").parse_jelly_flat


def term_of(node):
    """The term of what pyjelly makes of one."""
    generic_sink = import_module("pyjelly.integrations.generic.generic_sink")
    match node:
        case generic_sink.IRI():
            return iri_term(node._iri)
        case generic_sink.BlankNode():
            return blank_node_term(node._identifier)
        case generic_sink.Literal():
            return literal_term(node._lex, language=node._langtag, datatype=node._datatype)
        case generic_sink.Triple():
            return quoted_triple_term(*map(term_of, node))
        case _:
            assert node is generic_sink.DefaultGraph
            return ""


@pytest.mark.peer
@pytest.mark.parametrize("tables", TABLES, ids=str)
@pytest.mark.parametrize(
    ("physical_type", "logical_type"),
    [
        (PhysicalType.TRIPLES, LogicalType.FLAT_TRIPLES),
        (PhysicalType.QUADS, LogicalType.FLAT_QUADS),
        (PhysicalType.GRAPHS, LogicalType.FLAT_QUADS),
    ],
)
@pytest.mark.parametrize("delimited", [True, False], ids=["delimited", "bare"])
def test_pyjelly_reads_what_we_write(codec, parse_jelly_flat, tables, physical_type, logical_type, delimited):
    options = RdfOptions(physical_type=physical_type, logical_type=logical_type, rdf_star=True).with_tables(tables)
    statements, written = encoded(codec, options, QUADS + STAR, rows_per_frame=20, delimited=delimited)

    read = [tuple(map(term_of, statement)) for statement in parse_jelly_flat(io.BytesIO(written))]

    assert read == statements


def frames_of(stream):
    position = 0
    while position < len(stream):
        size, start = read_varint(stream, position, len(stream))
        position = start + size
        yield stream[start:position]


@pytest.mark.parametrize("tables", TABLES, ids=str)
@pytest.mark.parametrize("physical_type", list(PhysicalType)[1:])
def test_protobuf_writes_jelly_rdf_with_the_same_bytes(codec, tables, physical_type):
    options = RdfOptions(physical_type=physical_type, stream_name="name", rdf_star=True).with_tables(tables)
    _, written = encoded(codec, options, QUADS + STAR, rows_per_frame=20, namespace_declarations=True)

    for frame in frames_of(written):
        assert RdfStreamFrame.FromString(frame).SerializeToString() == frame


@pytest.mark.parametrize("tables", TABLES, ids=str)
@pytest.mark.parametrize("stream_type", list(StreamType)[1:])
def test_protobuf_writes_jelly_patch_with_the_same_bytes(codec, tables, stream_type):
    encoder = codec.PatchEncoder(PatchOptions(stream_type=stream_type, rdf_star=True).with_tables(tables))
    operations = [
        Header("id", "<urn:uuid:1>"),
        TransactionStart(),
        NamespaceAdd("a", "<http://a/>", ""),
        NamespaceDelete("a", None, "_:g"),
        *(Add(*quad) for quad in QUADS + STAR),
        *(Delete(*quad) for quad in QUADS + STAR),
        TransactionCommit(),
    ]

    for operation in operations:
        encoder.accept(operation)
    written = encoder.finish()

    for frame in frames_of(written):
        assert RdfPatchFrame.FromString(frame).SerializeToString() == frame


def test_protobuf_reads_the_metadata_that_we_write(codec):
    encoder = codec.RdfEncoder(RdfOptions())
    metadata = {"": b"", "key": b"\xff\x00", "é": b"value"}

    encoder.end_frame(metadata)
    [frame] = frames_of(encoder.finish())

    assert dict(RdfStreamFrame.FromString(frame).metadata) == metadata
