"""A stream that repeats its options is one stream: `transcode` reads it as every other reader does.

Lookups go on across a repeated options row. Only `--concatenated` says that each file starts its own.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from patchlog.cli import main
from patchlog.codec.fields import length_field, read_field, read_varint, varint
from patchlog.codec.options import PatchOptions, PhysicalType, RdfOptions, StreamType
from patchlog.model import Add, Delete, Header, NamespaceAdd, Punctuation, TransactionCommit, TransactionStart
from patchlog.pipes import drain
from patchlog.pure import PatchDecoder, PatchEncoder, RdfDecoder, RdfEncoder

_IRIS = st.builds("<http://{}/{}>".format, st.sampled_from("abc"), st.sampled_from("stuvwxyz"))
_LITERALS = st.builds('"x"^^{}'.format, _IRIS)
_GRAPHS = st.one_of(st.just(""), _IRIS)
_QUADS = st.tuples(_IRIS, _IRIS, st.one_of(_IRIS, _LITERALS), _GRAPHS)
_CHANGES = st.one_of(
    st.builds(lambda quad: [Add(*quad)], _QUADS),
    st.builds(lambda quad: [Delete(*quad)], _QUADS),
    st.builds(lambda iri: [Header("x", iri)], _IRIS),
    st.builds(lambda iri, graph: [NamespaceAdd("p", iri, graph)], _IRIS, _GRAPHS),
    st.builds(lambda quad: [TransactionStart(), Add(*quad), TransactionCommit()], _QUADS),
    st.just([Punctuation()]),
)
_TABLES = {"max_name_table_size": 8, "max_prefix_table_size": 4, "max_datatype_table_size": 8}


def _frames(data: bytes) -> list[list[bytes]]:
    """The rows of each frame."""
    frames, position = [], 0
    while position < len(data):
        size, position = read_varint(data, position, len(data))
        end, rows = position + size, []
        while position < end:
            _, start, position = read_field(data, position, end)
            rows.append(data[start:position])
        frames.append(rows)
    return frames


def _repeating(data: bytes, draw) -> bytes:
    """The stream with its options row repeated here and there, nearly always where a frame begins."""
    first, *rest = _frames(data)
    options = first[0]
    frames = [first]
    for rows in rest:
        at = draw(st.sampled_from([None, 0, 0, len(rows) // 2]))
        frames.append(rows if at is None else [*rows[:at], options, *rows[at:]])
    encoded = [b"".join(length_field(1, row) for row in rows) for rows in frames]
    return b"".join(varint(len(frame)) + frame for frame in encoded)


@st.composite
def _patch_streams(draw):
    groups = draw(st.lists(_CHANGES, min_size=1, max_size=30))
    encoder = PatchEncoder(PatchOptions(stream_type=StreamType.PUNCTUATED, **_TABLES), rows_per_frame=3)
    for operation in (operation for group in groups for operation in group):
        encoder.accept(operation)
    return _repeating(encoder.finish(), draw)


@st.composite
def _rdf_streams(draw):
    physical_type = draw(st.sampled_from([PhysicalType.QUADS, PhysicalType.GRAPHS]))
    encoder = RdfEncoder(RdfOptions(physical_type=physical_type, **_TABLES), rows_per_frame=5)
    encoder.statements(draw(st.lists(_QUADS, min_size=1, max_size=30)))
    return _repeating(encoder.finish(), draw)


@pytest.fixture
def transcode(codec, tmp_path, monkeypatch):
    """What `transcode` of a group writes for these bytes, with each implementation of the codec."""
    for module in ("rdf_convert", "patch_convert"):
        monkeypatch.setattr(f"patchlog.cli.{module}.Converter", codec.Converter)

    def transcode(group: str, data: bytes, *options: str) -> bytes:
        source, target = tmp_path / "in", tmp_path / "out"
        source.write_bytes(data)
        assert main([group, "transcode", str(source), "--to", str(target), "--quiet", *options]) == 0
        return target.read_bytes()

    return transcode


_MANY = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@_MANY
@given(data=_patch_streams())
def test_transcoded_patches_are_those_that_every_reader_reads(transcode, data):
    expected = list(drain(PatchDecoder(), [data]))

    for options in ([], ["--canonical"], ["--opt.max-name-table-size", "64"]):
        read = list(drain(PatchDecoder(), [transcode("patch", data, *options)]))
        assert _without_end(read) == _without_end(expected)


@_MANY
@given(data=_rdf_streams())
def test_transcoded_statements_are_those_that_every_reader_reads(transcode, data):
    expected = [statement for frame in drain(RdfDecoder(), [data]) for statement in frame.statements]

    for options in ([], ["--rows-per-frame", "2"], ["--wire", "alpha"]):
        out = transcode("rdf", data, *options)
        if "alpha" in options:
            out = transcode("rdf", out)
        assert [one for frame in drain(RdfDecoder(), [out]) for one in frame.statements] == expected


def _without_end(operations):
    """An empty patch at the end is not kept by a canonical stream of others."""
    while operations and operations[-1] == Punctuation():
        operations.pop()
    return operations


def test_options_that_are_repeated_do_not_reset_the_lookups(transcode, patch):
    """As Jelly-JVM writes it: options again, a new name, and the second name by its id."""
    statement = {"s_bnode": "x", "o_bnode": "b"}
    data = patch.stream(
        [patch.options(patch.QUADS), patch.name("a"), patch.add(p_iri=patch.iri(), g_default={}, **statement)],
        [patch.options(patch.QUADS), patch.name("b"), patch.add(p_iri=patch.iri(name=1), **statement)],
    )

    for options in ([], ["--canonical"]):
        operations = list(drain(PatchDecoder(), [transcode("patch", data, *options)]))
        assert [one.predicate for one in operations if isinstance(one, Add)] == ["<a>", "<a>"]


@pytest.mark.parametrize("stream_type", [StreamType.FLAT, StreamType.PUNCTUATED])
def test_concatenated_patches_stay_apart(transcode, patch, stream_type):
    add = patch.add(s_bnode="s", p_iri=patch.iri(name=1), o_bnode="o", g_default={})
    unfinished = patch.stream([patch.options(patch.QUADS, stream=stream_type), patch.name("a"), patch.start(), add])
    flat = patch.stream([patch.options(patch.QUADS, stream=stream_type), patch.name("b"), add])

    data = transcode("patch", unfinished + flat, "--concatenated", "--canonical")

    [*_, last] = " ".join(type(one).__name__ for one in drain(PatchDecoder(), [data])).split("Punctuation ")
    assert last == "Add Punctuation"
    kinds = [type(one).__name__ for one in drain(PatchDecoder(), [transcode("patch", flat * 2, "--concatenated")])]
    assert kinds == ["Add", "Punctuation", "Add", "Punctuation"]


@pytest.mark.parametrize("group", ["patch", "rdf"])
def test_concatenated_files_are_transcoded_where_that_is_said(transcode, capsys, group, patch, rdf):
    def file(name):
        if group == "patch":
            add = patch.add(s_bnode="s", p_iri=patch.iri(name=1), o_bnode="o", g_default={})
            return patch.stream([patch.options(patch.QUADS), patch.name(name), add])
        quad = rdf.quad(s_bnode="s", p_iri=rdf.iri(name=1), o_bnode="o", g_default={})
        return rdf.stream([rdf.options(rdf.QUADS), rdf.name(name), quad])

    def predicates(data):
        if group == "patch":
            return [one.predicate for one in drain(PatchDecoder(), [data]) if isinstance(one, Add)]
        return [one[1] for frame in drain(RdfDecoder(), [data]) for one in frame.statements]

    data = file("a") + file("b")

    assert predicates(transcode(group, data, "--concatenated")) == ["<a>", "<b>"]
    assert predicates(transcode(group, data)) == ["<a>", "<a>"]
    assert capsys.readouterr().err == ""
