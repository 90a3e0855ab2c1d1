"""Streams that are changed at random: whatever comes, only documented errors, and the same from both implementations.

`PATCHLOG_FUZZ_EXAMPLES` says how many streams are tried; the default takes seconds.
"""

import os
from contextlib import suppress
from dataclasses import replace
from functools import cache
from random import Random

import pytest

from patchlog.codec.fields import length_tag, read_field, read_varint, varint
from patchlog.codec.options import Limits, PatchOptions, PhysicalType, RdfOptions, StatementType, StreamType, Tables
from patchlog.errors import CodecError, InvalidTerm, MalformedFrame, TransactionError
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
from patchlog.pure import PatchEncoder, RdfEncoder

EXAMPLES = int(os.environ.get("PATCHLOG_FUZZ_EXAMPLES", "2000"))
BATCHES = 10

QUADS = [
    ("<http://a/s>", "<http://b#p>", "<http://a/o>", "<http://a/g>"),
    ("<http://a/s>", "<http://b#q>", '"plain \\n é"', "<http://a/g>"),
    ("_:b", "<http://b#p>", '"hej"@sv', ""),
    ("_:b", "<http://b#p>", '"1"^^<http://d#int>', "_:g"),
    ("_:b", "<http://b#p>", '"2"^^<http://d#byte>', "_:g"),
    ('<<( _:b <p> <<( <s> <p> "x"@en )>> )>>', '"generalized"', "_:c", '"graph"'),
    ("<http://c/1>", "<http://c/2>", "<http://c/3>", "<http://d/4>"),
]
PATCH = [
    Header("id", "<urn:uuid:1>"),
    TransactionStart(),
    NamespaceAdd("ns", "<http://a/>", "_:g"),
    *(Add(*quad) for quad in QUADS),
    NamespaceDelete("ns", None, "_:g"),
    TransactionCommit(),
    TransactionStart(),
    *(Delete(*quad) for quad in QUADS),
    TransactionAbort(),
]
FLAGS = {"rdf_star": True, "generalized_statements": True}


@cache
def corpus():
    """Streams of all types by the decoder that reads them, each a list of frames, and those as trees of fields."""
    streams = {"RdfDecoder": [], "PatchDecoder": []}
    for tables in (Tables(8, 0, 2), Tables(9, 5, 3), Tables(4000, 150, 32)):
        for physical_type in list(PhysicalType)[1:]:
            options = RdfOptions(physical_type=physical_type, **FLAGS).with_tables(tables)
            streams["RdfDecoder"].append(frames_of(rdf_stream(options)))
        for stream_type in list(StreamType)[1:]:
            for statement_type in list(StatementType)[1:]:
                options = PatchOptions(statement_type=statement_type, stream_type=stream_type, **FLAGS)
                streams["PatchDecoder"].append(frames_of(patch_stream(options.with_tables(tables))))
    return streams


def rdf_stream(options):
    encoder = RdfEncoder(options, rows_per_frame=9, namespace_declarations=True)
    encoder.namespace("ns", "<http://a/>")
    encoder.statements(quad[:3] if options.physical_type == PhysicalType.TRIPLES else quad for quad in QUADS * 2)
    encoder.end_frame({"key": b"value"})
    return encoder.finish()


def patch_stream(options):
    encoder = PatchEncoder(options, rows_per_frame=9)
    patches = [*PATCH] if options.stream_type == StreamType.FLAT else [*PATCH, Punctuation(), *PATCH, Punctuation()]
    for operation in patches:
        is_triple = options.statement_type == StatementType.TRIPLES and hasattr(operation, "graph")
        encoder.accept(replace(operation, graph=None) if is_triple else operation)
    return encoder.finish()


def frames_of(stream):
    frames = []
    position = 0
    while position < len(stream):
        size, start = read_varint(stream, position, len(stream))
        position = start + size
        frames.append(tree_of(stream[start:position]))
    return frames


def tree_of(data):
    """The fields of a message as [tag, value]; bytes that can be a message are one, too."""
    tree = []
    position = 0
    while position < len(data):
        tag, value, position = read_field(data, position, len(data))
        if tag & 7 == 2:
            value = data[value:position]
            with suppress(MalformedFrame):
                value = tree_of(value) if value else value
        elif tag & 7:
            raise MalformedFrame("a string, since no message has fields of fixed size")
        tree.append([tag, value])
    return tree


def bytes_of(tree):
    encoded = bytearray()
    for tag, value in tree:
        encoded += varint(tag)
        if isinstance(value, int):
            encoded += varint(value)
        else:
            content = value if isinstance(value, bytes) else bytes_of(value)
            encoded += varint(len(content)) + content
    return bytes(encoded)


def stream_of(frames):
    encoded = [bytes_of(frame) for frame in frames]
    return b"".join(varint(len(frame)) + frame for frame in encoded)


def copied(tree):
    return [[tag, copied(value) if isinstance(value, list) else value] for tag, value in tree]


def messages_in(tree):
    return [tree, *(message for _, value in tree if isinstance(value, list) for message in messages_in(value))]


NUMBERS = [0, 1, 2, 3, 4, 8, 9, 17, 127, 128, 4000, 1 << 32, (1 << 32) + 1, 1 << 63]
STRINGS = [b"", b"a", b"\xff", b"\xc3", b"http://www.w3.org/2001/XMLSchema#string", b"\x08\x01", b"\x10\x01", b"\x00"]


def with_changed_fields(random, frames, others):
    """Change, move, repeat, drop and add fields, on any level."""
    frames = [copied(frame) for frame in frames]
    for _ in range(random.choice((1, 1, 2, 4))):
        fields = random.choice(messages_in(random.choice(frames)))
        at = random.randrange(len(fields) + 1)
        foreign = random.choice(messages_in(random.choice(random.choice(others))))
        match random.randrange(9):
            case 0:
                del fields[at : at + 1]
            case 1:
                fields[at:at] = copied(fields[at : at + 1])
            case 2:
                fields[at : at + 2] = reversed(fields[at : at + 2])
            case 3:
                fields.insert(at, [length_tag(random.randrange(1, 17)), random.choice(STRINGS)])
            case 4:
                fields.insert(at, [8 * random.randrange(1, 17), random.choice(NUMBERS)])
            case 5:
                fields[at:at] = copied(foreign[: random.randrange(3)])
            case 6:
                frames.insert(random.randrange(len(frames)), copied(random.choice(frames)))
            case _ if at < len(fields):
                field = fields[at]
                field[1] = random.choice(NUMBERS) if isinstance(field[1], int) else random.choice(STRINGS)
    return stream_of(frames)


def with_changed_bytes(random, stream):
    """Change, drop, and repeat bytes."""
    data = bytearray(stream)
    for _ in range(random.choice((1, 1, 2, 4))):
        at = random.randrange(len(data) + 1)
        match random.randrange(5):
            case 0:
                data[at : at + 1] = random.randbytes(1)
            case 1:
                data[at : at + 1] = bytes([data[at] ^ 1 << random.randrange(8)]) if at < len(data) else b""
            case 2:
                del data[at : at + random.randrange(1, 4)]
            case 3:
                data[at:at] = data[at : at + random.randrange(1, 20)]
            case 4:
                del data[at:]
    return bytes(data)


def examples(batch):
    """What is tried: the name of a decoder, its settings, the sizes of the chunks, and the stream."""
    random = Random(batch)
    for _ in range(EXAMPLES // BATCHES):
        decoder = random.choice(list(corpus()))
        frames = random.choice(corpus()[decoder])
        stream = with_changed_fields(random, frames, corpus()[decoder])
        if random.random() < 0.4:
            stream = with_changed_bytes(random, stream)
        settings = {
            "strict": random.random() < 0.6,
            "concatenated": random.random() < 0.2,
            "delimited": random.choice((None, None, None, True, False)),
            "limits": some_limits(random),
        }
        yield decoder, settings, [random.randrange(1, 300) for _ in range(random.randrange(3))], stream


def some_limits(random):
    if random.random() < 0.6:
        return Limits()
    return Limits(
        max_frame_bytes=random.choice((1 << 20, 100, 300)),
        max_rows_per_frame=random.choice((1 << 20, 3, 10)),
        max_nesting_depth=random.choice((64, 0, 1)),
        max_decoded_frame_bytes=random.choice((1 << 20, 50, 200)),
    )


def outcome(codec, decoder, settings, chunk_sizes, stream):
    """What a decoder finds, and the error that ends it. Any other exception is a failure."""
    decoder = getattr(codec, decoder)(**settings)
    found = []
    try:
        for size in chunk_sizes:
            found.extend(decoder.feed(stream[:size]))
            stream = stream[size:]
        found.extend(decoder.feed(stream))
        found.extend(decoder.finish())
    except (CodecError, TransactionError) as error:
        # What is wrong with a message is told as each implementation comes to see it, all else in the same words.
        reason = None if isinstance(error, MalformedFrame) else error.reason
        return found, type(error), error.frame, error.row, reason
    return found, decoder.options, decoder.delimited


def test_the_corpus_is_what_its_writers_wrote(codec):
    for decoder, streams in corpus().items():
        for frames in streams:
            _, *end = outcome(codec, decoder, {}, [], stream_of(frames))
            assert len(end) == 2


@pytest.mark.parametrize("batch", range(BATCHES))
def test_changed_streams_raise_documented_errors_only(codec, batch):
    for example in examples(batch):
        outcome(codec, *example)


@pytest.mark.parametrize("batch", range(BATCHES, 2 * BATCHES))
def test_both_implementations_find_the_same_in_changed_streams(both_codecs, batch):
    pure, native = both_codecs

    for example in examples(batch):
        assert (example, outcome(native, *example)) == (example, outcome(pure, *example))


@pytest.mark.parametrize("batch", range(2 * BATCHES, 3 * BATCHES))
def test_both_implementations_find_the_same_rows_for_arrow(both_codecs, batch):
    pa = pytest.importorskip("pyarrow")

    def rows(codec, decoder, settings, chunk_sizes, stream):
        formats = {"RdfDecoder": "jelly", "PatchDecoder": "jelly-patch"}
        layout = {"dictionary": bool(batch % 2), "batch_rows": batch % 7 + 1}
        decoder = codec.ArrowDecoder(formats[decoder], **layout, **settings)
        found = []
        try:
            for size in [*chunk_sizes, len(stream)]:
                found += decoder.feed(stream[:size])
                stream = stream[size:]
            found += decoder.finish()
        except (CodecError, TransactionError) as error:
            return rows_of(found), type(error), error.frame, error.row
        return (rows_of(found),)

    def rows_of(batches):
        return [pa.record_batch(batch).to_pylist() for batch in batches]

    pure, native = both_codecs
    for example in examples(batch):
        assert (example, rows(native, *example)) == (example, rows(pure, *example))


PIECES_OF_TERMS = [
    *("<<( ", "<<(", "<< ", " )>>", ")>>", "<a:a>", "<", ">", " ", '"', '"x"', "_:b"),
    *("^^<d:d>", "@en", "\\u0041", "\\", "é", "."),
]


@pytest.mark.parametrize("batch", range(BATCHES))
def test_text_that_may_be_no_term_is_written_by_both_or_refused_by_both(both_codecs, batch):
    def written(codec, term):
        encoder = codec.CanonicalPatchEncoder()
        try:
            encoder.accept(Add("<a:a>", "<a:p>", term, ""))
            return encoder.finish()
        except InvalidTerm as error:
            return type(error)

    pure, native = both_codecs
    random = Random(batch)
    for _ in range(EXAMPLES // BATCHES):
        term = "".join(random.choices(PIECES_OF_TERMS, k=random.randrange(9)))
        assert (term, written(native, term)) == (term, written(pure, term))
