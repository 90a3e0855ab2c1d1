"""What is handed over and cannot be meant: refused by both implementations, with the same error and the same words."""

import threading

import pytest

from patchlog import pure
from patchlog.codec.options import Limits, LogicalType, PatchOptions, PhysicalType, RdfOptions
from patchlog.errors import CodecError, InvalidSyntax, InvalidTerm, PatchLogError, UnsupportedOption, UsageError
from patchlog.model import Add, Delete, Header, NamespaceAdd, NamespaceDelete, Punctuation
from patchlog.pure import PatchEncoder, RdfEncoder

TRIPLE = ("<http://a>", "<http://b>", "<http://c>")
LINE = b"<http://a> <http://b> <http://c> .\n"
SPENT = "this object met an error before and cannot go on: make a new one"


def rdf_stream():
    encoder = RdfEncoder(RdfOptions())
    encoder.statements([TRIPLE])
    return encoder.finish()


def patch_stream():
    encoder = PatchEncoder(PatchOptions())
    encoder.accept(Add(*TRIPLE))
    return encoder.finish()


DECODERS = {
    "RdfDecoder": (lambda codec: codec.RdfDecoder(), rdf_stream()),
    "PatchDecoder": (lambda codec: codec.PatchDecoder(), patch_stream()),
    "RdfPatchReader": (lambda codec: codec.RdfPatchReader(), b"A " + LINE),
    "NQuadsReader": (lambda codec: codec.NQuadsReader(), LINE),
    "Converter": (lambda codec: codec.Converter("nquads", "ntriples"), LINE),
    "ArrowDecoder": (lambda codec: codec.ArrowDecoder("nquads"), LINE),
    "PatchIntake": (lambda codec: codec.PatchIntake("rdf-patch", PatchOptions()), b"A " + LINE),
}
ENCODERS = {
    "PatchEncoder": lambda codec: codec.PatchEncoder(PatchOptions()),
    "CanonicalPatchEncoder": lambda codec: codec.CanonicalPatchEncoder(),
    "RdfPatchWriter": lambda codec: codec.RdfPatchWriter(),
}


@pytest.fixture(params=DECODERS)
def decoder(request, codec):
    """A decoder, and input for it."""
    make, data = DECODERS[request.param]
    return make(codec), data


@pytest.fixture(params=ENCODERS)
def encoder(request, codec):
    return ENCODERS[request.param](codec)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda data: memoryview(bytearray(data))])
def test_bytes_of_any_kind_are_read(decoder, kind):
    decoder, data = decoder

    list(decoder.feed(kind(data)))

    list(decoder.finish())


def test_bytes_that_change_after_they_were_fed_are_read_as_they_were(codec):
    decoder = codec.NQuadsReader()
    data = bytearray(LINE[:10])
    decoder.feed(data)
    data[:] = b"x" * 10

    assert decoder.feed(LINE[10:]) == [TRIPLE]


def test_decoder_that_met_an_error_says_so(decoder):
    decoder, _ = decoder
    with pytest.raises(CodecError):
        list(decoder.feed(b"\x03\x01\x02\x03\n"))

    for call in (lambda: decoder.feed(b""), decoder.finish):
        with pytest.raises(UsageError, match=SPENT):
            list(call())


@pytest.mark.parametrize("asked", ["results", "options"])
@pytest.mark.parametrize("in_other_thread", [True, False])
@pytest.mark.parametrize(
    ("name", "made", "module", "data"),
    [
        ("PatchDecoder", "Add", "patch_decoder", patch_stream()),
        ("RdfDecoder", "RdfFrame", "rdf_decoder", rdf_stream()),
    ],
    ids=["patch", "rdf"],
)
def test_iterator_that_is_in_use_does_not_seem_to_be_at_its_end(
    codec, monkeypatch, name, made, module, data, in_other_thread, asked
):
    """Two threads may share an iterator; the one that comes while the other is in it must not take that for the end."""
    met = []

    def ask():
        try:
            met.append(next(results) if asked == "results" else decoder.options)
        except Exception as error:  # noqa: BLE001  it is looked at below
            met.append(error)

    def make(*given):
        if in_other_thread:
            other = threading.Thread(target=ask)
            other.start()
            other.join()
        else:
            ask()
        return given

    monkeypatch.setattr(f"patchlog.model.{made}", make)
    monkeypatch.setattr(f"patchlog.codec.{module}.{made}", make)
    decoder = getattr(codec, name)()
    results = iter(decoder.feed(data))

    assert list(results)
    [error] = met
    if codec is pure and asked == "options":
        return  # which it knows then
    # Python itself says so of the generators of the pure codec.
    assert isinstance(error, ValueError if codec is pure else UsageError)
    assert "in use" in str(error) or "already executing" in str(error)


def test_encoder_of_operations_that_met_an_error_says_so(encoder):
    with pytest.raises(InvalidTerm):
        encoder.accept(Add("a", "b", "c"))

    for call in (lambda: encoder.accept(Punctuation()), encoder.take, encoder.finish):
        with pytest.raises(UsageError, match=SPENT):
            call()


def test_encoder_of_statements_that_met_an_error_says_so(codec):
    encoder = codec.RdfEncoder(RdfOptions())
    with pytest.raises(InvalidTerm):
        encoder.statements([TRIPLE, ("a", "b", "c")])

    for call in (
        lambda: encoder.statement(*TRIPLE),
        lambda: encoder.statements([]),
        lambda: encoder.namespace("", "<http://a>"),
        encoder.end_frame,
        encoder.take,
        encoder.finish,
    ):
        with pytest.raises(UsageError, match=SPENT):
            call()


def test_converter_that_met_an_error_says_so(codec):
    converter = codec.Converter("nquads", "jelly")
    with pytest.raises(InvalidSyntax):
        converter.feed(b"x\n")

    for call in (lambda: converter.feed(b""), converter.end_frame, converter.end_input, converter.finish):
        with pytest.raises(UsageError, match=SPENT):
            call()


@pytest.mark.parametrize("thing", [5, None, "A", TRIPLE, Add])
def test_what_is_no_operation_is_refused(encoder, thing):
    with pytest.raises(UsageError) as raised:
        encoder.accept(thing)

    assert str(raised.value) == f"{thing} is not an operation"


@pytest.mark.parametrize(
    "operation",
    [
        Add(None, "<http://b>", "<http://c>"),
        Add("<http://a>", None, "<http://c>"),
        Delete("<http://a>", "<http://b>", None),
        Header("key", None),
        Header(None, "<http://a>"),
        NamespaceAdd(None, "<http://a>"),
        NamespaceAdd("name", None),
        NamespaceDelete(None),
    ],
)
def test_operation_that_lacks_something_is_refused(encoder, operation):
    """A writer that has just written another one does not write that one's terms again."""
    encoder.accept(Add(*TRIPLE))
    encoder.accept(Header("key", "<http://value>"))

    with pytest.raises(InvalidTerm):
        encoder.accept(operation)


def test_namespace_without_a_name_is_refused(codec):
    encoder = codec.RdfEncoder(RdfOptions(), namespace_declarations=True)

    with pytest.raises(InvalidTerm, match="a name or a key is not a string"):
        encoder.namespace(None, "<http://a>")


@pytest.mark.parametrize(
    "make",
    [
        lambda codec: codec.Converter("html", "jelly"),
        lambda codec: codec.Converter("jelly", "html"),
        lambda codec: codec.Converter("rdf-patch", "jelly"),
        lambda codec: codec.Converter("nquads", "jelly", frames=(0, 1)),
        lambda codec: codec.ArrowDecoder("html"),
        lambda codec: codec.ArrowEncoder("html"),
        lambda codec: codec.PatchIntake("nquads", PatchOptions()),
        lambda codec: codec.WholeIntake("nquads", PatchOptions()),
    ],
)
def test_formats_that_cannot_stand_there_are_refused_with_the_same_words(both_codecs, make):
    def refusal(codec):
        with pytest.raises(UsageError) as raised:
            make(codec)
        return str(raised.value)

    pure, native = map(refusal, both_codecs)

    assert pure == native


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ((), "a statement has three or four terms, not 0"),
        (TRIPLE[:1], "a statement has three or four terms, not 1"),
        (TRIPLE[:2], "a statement has three or four terms, not 2"),
        ((*TRIPLE, "", ""), "a statement has three or four terms, not 5"),
        (list(TRIPLE), "a statement is a tuple of three or four terms"),
        ("abc", "a statement is a tuple of three or four terms"),
        (5, "a statement is a tuple of three or four terms"),
    ],
)
def test_what_is_no_statement_is_refused(codec, statement, message):
    encoder = codec.RdfEncoder(RdfOptions())

    with pytest.raises(UsageError) as raised:
        encoder.statements([statement])

    assert str(raised.value) == message


@pytest.mark.parametrize(
    "make",
    [
        lambda codec: codec.RdfEncoder(RdfOptions(), rows_per_frame=-1),
        lambda codec: codec.PatchEncoder(PatchOptions(), rows_per_frame=-1),
        lambda codec: codec.Converter("jelly", "jelly", rdf_options=RdfOptions(), frames=(-1, None)),
        lambda codec: codec.Converter("jelly", "jelly", rdf_options=RdfOptions(), frames=(0, -1)),
        lambda codec: codec.ArrowDecoder("nquads", batch_rows=-1),
        lambda codec: codec.ArrowEncoder("jelly", rows_per_frame=-1),
    ],
)
def test_negative_numbers_are_refused(codec, make):
    with pytest.raises(UsageError) as raised:
        make(codec)

    assert str(raised.value) == "-1 is not a number of rows or frames: those begin with 0"


@pytest.mark.parametrize("options", [RdfOptions, PatchOptions])
@pytest.mark.parametrize(
    "field", ["max_name_table_size", "max_prefix_table_size", "max_datatype_table_size", "version"]
)
@pytest.mark.parametrize("number", [-1, 1 << 32])
def test_options_that_the_wire_has_no_room_for_are_refused(options, field, number):
    with pytest.raises(UnsupportedOption, match=f"{field} is {number}; it is a number from 0 to 2\\^32 - 1"):
        options(**{field: number})


def test_negative_limits_are_refused():
    with pytest.raises(UsageError, match="max_frame_bytes is -1"):
        Limits(max_frame_bytes=-1)


@pytest.mark.parametrize(
    "options",
    [
        RdfOptions(logical_type=LogicalType.FLAT_TRIPLES),
        RdfOptions(physical_type=PhysicalType.UNSPECIFIED),
        RdfOptions(logical_type=LogicalType.TIMESTAMPED_NAMED_GRAPHS, physical_type=PhysicalType.TRIPLES),
        RdfOptions(version=3),
        RdfOptions(version=0),
        RdfOptions(max_name_table_size=7),
    ],
)
def test_options_that_cannot_be_written_are_refused_with_the_same_words(both_codecs, options):
    def refusal(codec):
        with pytest.raises(PatchLogError) as raised:
            codec.RdfEncoder(options)
        return type(raised.value), str(raised.value)

    pure, native = map(refusal, both_codecs)

    assert pure == native
    assert pure[0] is UnsupportedOption
