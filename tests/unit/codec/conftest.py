"""Messages made by hand, so that a test can say what no writer would write, and what a reader makes of them."""

import pytest

from patchlog.codec.fields import length_field, varint, varint_tag
from patchlog.errors import PatchLogError


def message(fields):
    """A message with its fields in the given order: numbers, strings, bytes, or messages as dictionaries or pairs."""
    if isinstance(fields, bytes):
        return fields
    encoded = b""
    for field, value in fields.items() if isinstance(fields, dict) else fields:
        match value:
            case int():
                encoded += varint(varint_tag(field)) + varint(value)
            case str():
                encoded += length_field(field, value.encode())
            case bytes():
                encoded += length_field(field, value)
            case _:
                encoded += length_field(field, message(value))
    return encoded


class Rows:
    """What both formats have in common. A row is a dictionary of one field; bytes are taken as they are."""

    TRIPLES, QUADS = 1, 2

    message = staticmethod(message)

    def __init__(self, behind=b""):
        self._behind = behind

    def frame(self, *rows):
        """A frame's message."""
        return b"".join(row if isinstance(row, bytes) else self.row(row) for row in rows) + self._behind

    def row(self, fields):
        """A row as it stands in a frame, to put together what the methods below do not."""
        return length_field(1, message(fields))

    def stream(self, *frames):
        """A delimited stream of frames, each a list of rows or its bytes."""
        encoded = [frame if isinstance(frame, bytes) else self.frame(*frame) for frame in frames]
        return b"".join(varint(len(data)) + data for data in encoded)

    def iri(self, prefix=0, name=0):
        return {field: number for field, number in ((1, prefix), (2, name)) if number}

    def literal(self, lexical, *, language=None, datatype=None):
        given = {1: lexical, 2: language, 3: datatype}
        return {field: value for field, value in given.items() if value is not None}

    def terms(self, **terms):
        """The fields of a statement: s_iri, s_bnode … o_triple, g_iri, g_bnode, g_default, g_literal."""
        return {_TERM_FIELDS[name]: value for name, value in terms.items()}

    def _options(self, numbers, values):
        values = {"names": 8, "prefixes": 4, "datatypes": 4, "version": 1} | values
        return {1: dict(sorted((numbers[name], value) for name, value in values.items() if value))}


_NODES = ("iri", "bnode", "literal", "triple")
_TERM_FIELDS = {f"{place}_{kind}": 4 * i + j + 1 for i, place in enumerate("spo") for j, kind in enumerate(_NODES)} | {
    f"g_{kind}": 13 + j for j, kind in enumerate(("iri", "bnode", "default", "literal"))
}
_OPTIONS = {"generalized": 3, "rdf_star": 4, "names": 9, "prefixes": 10, "datatypes": 11, "version": 15}


class RdfRows(Rows):
    """Rows of Jelly-RDF."""

    GRAPHS = 3

    def options(self, physical=Rows.TRIPLES, **values):
        return self._options(
            {"stream_name": 1, "physical": 2, "logical": 14} | _OPTIONS, {"physical": physical} | values
        )

    def triple(self, **terms):
        return {2: self.terms(**terms)}

    def quad(self, **terms):
        return {3: self.terms(**terms)}

    def graph_start(self, **graph):
        return {4: {field - 12: value for field, value in self.terms(**graph).items()}}

    def graph_end(self):
        return {5: {}}

    def namespace(self, name, value=None):
        return {6: {1: name} if value is None else {1: name, 2: value}}

    def name(self, text, entry_id=0):
        return {9: {1: entry_id, 2: text}}

    def prefix(self, text, entry_id=0):
        return {10: {1: entry_id, 2: text}}

    def datatype(self, text, entry_id=0):
        return {11: {1: entry_id, 2: text}}

    def metadata(self, entry):
        """An entry of the metadata as it stands in a frame."""
        return message({15: entry})


class PatchRows(Rows):
    """Rows of Jelly-Patch."""

    FRAME, FLAT, PUNCTUATED = 1, 2, 3

    def options(self, statements=Rows.TRIPLES, stream=PUNCTUATED, **values):
        return self._options(
            {"statements": 1, "stream": 2} | _OPTIONS, {"statements": statements, "stream": stream} | values
        )

    def add(self, **terms):
        return {2: self.terms(**terms)}

    def delete(self, **terms):
        return {3: self.terms(**terms)}

    def namespace_add(self, name, value=None, **graph):
        graph = {field - 10: term for field, term in self.terms(**graph).items()}
        return {4: ({1: name} if value is None else {1: name, 2: value}) | graph}

    def namespace_delete(self, name, value=None, **graph):
        return {5: self.namespace_add(name, value, **graph)[4]}

    def start(self):
        return {6: {}}

    def commit(self):
        return {7: {}}

    def abort(self):
        return {8: {}}

    def name(self, text, entry_id=0):
        return {11: {1: entry_id, 2: text}}

    def prefix(self, text, entry_id=0):
        return {12: {1: entry_id, 2: text}}

    def datatype(self, text, entry_id=0):
        return {13: {1: entry_id, 2: text}}

    def header(self, key, **value):
        [(field, term)] = self.terms(**value).items() or [(1, None)]
        return {14: {1: key} if term is None else {1: key, field + 1: term}}

    def punctuation(self):
        return {15: {}}


_RULES_OF_READING = {
    f"test_{name}"
    for name in ("jelly_patch_rules", "jelly_rdf_rules", "lookup_rules", "message_rules", "reader_limits", "term_rules")
}


def pytest_generate_tests(metafunc):
    """Rules hold at the end of a frame and in front of more: a reader may take another way where it can look ahead."""
    if "behind" in metafunc.fixturenames and metafunc.module.__name__.rpartition(".")[2] in _RULES_OF_READING:
        unknown_field = length_field(100, b"o" * 16)
        ids = ["at the end", "in front of more"]
        metafunc.parametrize("behind", [b"", unknown_field], ids=ids, indirect=True, scope="session")


@pytest.fixture(scope="session")
def behind(request):
    """What stands behind the rows of a frame."""
    return getattr(request, "param", b"")


@pytest.fixture(scope="session")
def rdf(behind):
    return RdfRows(behind)


@pytest.fixture(scope="session")
def patch(behind):
    return PatchRows(behind)


@pytest.fixture(scope="session")
def read():
    """All that a decoder makes of a stream."""

    def read_all(decoder, data):
        return [*decoder.feed(data), *decoder.finish()]

    return read_all


@pytest.fixture(scope="session")
def statements(read):
    """The statements that a decoder of Jelly-RDF finds, whatever the frames."""

    def read_statements(decoder, data):
        return [statement for frame in read(decoder, data) for statement in frame.statements]

    return read_statements


@pytest.fixture(scope="session")
def refusal(read):
    """The error that a decoder raises: its class and its place."""

    def refuse(decoder, data):
        with pytest.raises(PatchLogError) as raised:
            read(decoder, data)
        return type(raised.value), raised.value.frame, raised.value.row

    return refuse
