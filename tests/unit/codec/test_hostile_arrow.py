"""Arrow data that breaks the rules of its interface: refused with an error, whatever it says of itself.

The producer here is made by hand, field by field of the C data interface, so that it can lie. What the interface does
not say, such as the sizes of buffers, nobody can check.
"""

from __future__ import annotations

import array
import ctypes
from collections.abc import Callable

import pyarrow as pa
import pytest

from patchlog import pure
from patchlog.errors import InvalidTerm, UsageError

POINTER = ctypes.c_void_p
RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Schema(ctypes.Structure):
    _fields_ = [
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", POINTER),
        ("flags", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("children", POINTER),
        ("dictionary", POINTER),
        ("release", POINTER),
        ("private_data", POINTER),
    ]


class Array(ctypes.Structure):
    _fields_ = [
        ("length", ctypes.c_int64),
        ("null_count", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("n_buffers", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("buffers", POINTER),
        ("children", POINTER),
        ("dictionary", POINTER),
        ("release", POINTER),
        ("private_data", POINTER),
    ]


@RELEASE
def release_schema(pointer):
    Schema.from_address(pointer).release = None


@RELEASE
def release_array(pointer):
    Array.from_address(pointer).release = None


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [POINTER, ctypes.c_char_p, POINTER]


class Producer:
    """A batch of two rows: a statement each. Its memory is its own, as long as it lives."""

    def __init__(self, kind: str = "u") -> None:
        self._kept: list[object] = []
        made = [self._column(name, kind) for name in ("subject", "predicate", "object", "graph")]
        self.schemas = [schema for schema, _ in made]
        self.arrays = [array for _, array in made]
        self.schema = self._schema("+s", "", self.schemas)
        self.array = self._array([None], self.arrays)

    def pointers(self, values: list[int | None]) -> int:
        """The address of an array of pointers."""
        return self.memory((POINTER * len(values))(*values))

    def memory(self, data: object) -> int:
        self._kept.append(data)
        return ctypes.addressof(data)  # type: ignore[arg-type]

    def text(self, values: list[int], kind: type = ctypes.c_int32) -> int:
        return self.memory((kind * len(values))(*values))

    def bytes(self, data: bytes) -> int:
        return self.memory(ctypes.create_string_buffer(data, len(data)))

    def _schema(self, format_: str, name: str, children: list[Schema]) -> Schema:
        schema = Schema(format_.encode(), name.encode(), flags=2, n_children=len(children))
        schema.children = self.pointers([ctypes.addressof(child) for child in children])
        schema.release = ctypes.cast(release_schema, POINTER).value
        self._kept.append(schema)
        return schema

    def _array(self, buffers: list[int | None], children: list[Array], length: int = 2) -> Array:
        array = Array(length, 0, 0, len(buffers), len(children))
        array.buffers = self.pointers(buffers)
        array.children = self.pointers([ctypes.addressof(child) for child in children])
        array.release = ctypes.cast(release_array, POINTER).value
        self._kept.append(array)
        return array

    def _strings(self, kind: str) -> Array:
        data = self.bytes(b"<http://example/a><http://example/b>")
        if kind == "vu":
            views = b"".join(
                (18).to_bytes(4, "little") + b"<htt" + (0).to_bytes(4, "little") + at.to_bytes(4, "little")
                for at in (0, 18)
            )
            return self._array([None, self.bytes(views), data, self.text([36], ctypes.c_int64)], [])
        offset = ctypes.c_int64 if kind == "U" else ctypes.c_int32
        return self._array([None, self.text([0, 18, 36], offset), data], [])

    def _column(self, name: str, kind: str) -> tuple[Schema, Array]:
        if kind != "dictionary":
            return self._schema(kind, name, []), self._strings(kind)
        schema, values_schema = self._schema("i", name, []), self._schema("u", "", [])
        schema.dictionary = ctypes.addressof(values_schema)
        array, values = self._array([None, self.text([0, 1])], []), self._strings("u")
        array.dictionary = ctypes.addressof(values)
        return schema, array

    def set_buffer(self, index: int, address: int | None, array: Array | None = None) -> None:
        (POINTER * 8).from_address((array or self.arrays[0]).buffers)[index] = address

    @property
    def values(self) -> Array:
        """The dictionary of the first column."""
        return Array.from_address(self.arrays[0].dictionary)

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        del requested_schema
        return (
            _new_capsule(ctypes.addressof(self.schema), b"arrow_schema", None),
            _new_capsule(ctypes.addressof(self.array), b"arrow_array", None),
        )


def setting(**fields):
    """A lie about the first column."""

    def lie(producer):
        for name, value in fields.items():
            setattr(producer.arrays[0], name, value)

    return lie


def setting_batch(**fields):
    def lie(producer):
        for name, value in fields.items():
            setattr(producer.array, name, value)

    return lie


def offsets(*values, kind=ctypes.c_int32):
    return lambda producer: producer.set_buffer(1, producer.text(list(values), kind))


def view(length, buffer, start):
    data = length.to_bytes(4, "little", signed=True) + b"<htt" + buffer.to_bytes(4, "little", signed=True)
    data += start.to_bytes(4, "little", signed=True)
    return lambda producer: producer.set_buffer(1, producer.bytes(data * 2))


def index(*values):
    return lambda producer: producer.set_buffer(1, producer.text(list(values)))


def no_child(producer):
    producer.array.children = producer.pointers([None] * 4)


def no_child_schema(producer):
    producer.schema.children = producer.pointers([None] * 4)


def of_values(lie):
    """A lie about the dictionary of the first column."""

    def lying(producer):
        first = producer.arrays[0]
        producer.arrays[0] = producer.values
        lie(producer)
        producer.arrays[0] = first

    return lying


LIES: dict[str, tuple[str, Callable[[Producer], object]]] = {
    "negative length of a column": ("u", setting(length=-1)),
    "negative length of the batch": ("u", setting_batch(length=-2)),
    "negative offset of a column": ("u", setting(offset=-1)),
    "negative offset of the batch": ("u", setting_batch(offset=-1)),
    "length that overflows": ("u", setting(length=2**63 - 1)),
    "offset that overflows": ("u", setting(offset=2**63 - 1)),
    "offset of the batch that overflows": ("u", setting_batch(offset=2**63 - 1)),
    "fewer rows than the batch": ("u", setting(length=1)),
    "no buffers": ("u", setting(n_buffers=0)),
    "a buffer too few": ("u", setting(n_buffers=2)),
    "negative number of buffers": ("u", setting(n_buffers=-1)),
    "no pointer to buffers": ("u", setting(buffers=None)),
    "no pointer to buffers of the batch": ("u", setting_batch(buffers=None)),
    "no offsets": ("u", lambda producer: producer.set_buffer(1, None)),
    "no large offsets": ("U", lambda producer: producer.set_buffer(1, None)),
    "no views": ("vu", lambda producer: producer.set_buffer(1, None)),
    "no data": ("u", lambda producer: producer.set_buffer(2, None)),
    "nulls without a bitmap": ("u", setting(null_count=1)),
    "wrong number of nulls": ("u", setting(null_count=-2)),
    "more nulls than rows": ("u", setting(null_count=3)),
    "offsets that fall": ("u", offsets(0, 36, 18)),
    "first offset beyond the last": ("u", offsets(100, 101, 36)),
    "negative first offset": ("u", offsets(-18, 18, 36)),
    "negative offset in between": ("u", offsets(0, -1, 36)),
    "negative last offset": ("u", offsets(0, 18, -1)),
    "large offsets that fall": ("U", offsets(0, 2**62, 36, kind=ctypes.c_int64)),
    "negative large offsets": ("U", offsets(-(2**62), 18, 36, kind=ctypes.c_int64)),
    "negative length of a view": ("vu", view(-1, 0, 0)),
    "view of a buffer that is not there": ("vu", view(18, 1, 0)),
    "view of a negative buffer": ("vu", view(18, -1, 0)),
    "view from a negative place": ("vu", view(18, 0, -1)),
    "view beyond its buffer": ("vu", view(18, 0, 30)),
    "view of a missing buffer": ("vu", lambda producer: producer.set_buffer(2, None)),
    "no lengths of the buffers of views": ("vu", lambda producer: producer.set_buffer(3, None)),
    "index beyond the dictionary": ("dictionary", index(0, 2)),
    "negative index": ("dictionary", index(-1, 0)),
    "no indexes": ("dictionary", lambda producer: producer.set_buffer(1, None)),
    "no dictionary": ("dictionary", setting(dictionary=None)),
    "a buffer too few of indexes": ("dictionary", setting(n_buffers=1)),
    "negative length of a dictionary": ("dictionary", of_values(setting(length=-1))),
    "offsets of a dictionary that fall": ("dictionary", of_values(offsets(0, 36, 18))),
    "no offsets of a dictionary": ("dictionary", of_values(lambda producer: producer.set_buffer(1, None))),
    "negative number of columns": ("u", setting_batch(n_children=-1)),
    "a column less than in the schema": ("u", setting_batch(n_children=3)),
    "a column more than in the schema": ("u", setting_batch(n_children=5)),
    "no pointer to columns": ("u", setting_batch(children=None)),
    "no columns": ("u", no_child),
    "no schemas of columns": ("u", no_child_schema),
    "no format": ("u", lambda producer: setattr(producer.schema, "format", None)),
    "no format of a column": ("u", lambda producer: setattr(producer.schemas[0], "format", None)),
    "no format of indexes": ("dictionary", lambda producer: setattr(producer.schemas[0], "format", None)),
    "released array": ("u", setting_batch(release=None)),
}

# pyarrow, by which the pure codec reads, follows these null pointers.
CRASHES_PYARROW = {
    "no pointer to buffers",
    "no pointer to buffers of the batch",
    "no lengths of the buffers of views",
    "no pointer to columns",
    "no columns",
    "no schemas of columns",
    "no format",
    "no format of a column",
    "no format of indexes",
}
KINDS = pytest.mark.parametrize("kind", ["u", "U", "vu", "dictionary"])


@KINDS
def test_producer_that_does_not_lie_is_read(codec, kind):
    line = b"<http://example/{}> <http://example/{}> <http://example/{}> <http://example/{}> .\n"

    lines = codec.ArrowEncoder("nquads").encode(Producer(kind))

    assert lines == line.replace(b"{}", b"a") + line.replace(b"{}", b"b")


@pytest.mark.parametrize("name", LIES)
def test_data_that_breaks_the_interface_is_refused(codec, name):
    if codec is pure and name in CRASHES_PYARROW:
        pytest.skip("pyarrow itself cannot read it")
    kind, lie = LIES[name]

    for use in (codec.ArrowEncoder("nquads").encode, codec.KnownQuads(b"").rows):
        producer = Producer(kind)
        lie(producer)
        with pytest.raises(UsageError):
            use(producer)


@KINDS
def test_nothing_is_read_of_a_batch_without_rows(codec, kind):
    """Its buffers may be missing then."""
    producer = Producer(kind)
    producer.array.length = 0
    for column in producer.arrays:
        column.length = 0
        if kind in {"u", "U"}:  # of no strings there is one offset
            producer.set_buffer(1, producer.text([0, 0]), column)
            producer.set_buffer(2, None, column)
        else:
            producer.set_buffer(1, None, column)

    assert codec.ArrowEncoder("nquads").encode(producer) == b""


def test_rows_of_a_part_lie_within_the_data(codec):
    """The offsets of the rows are in order; only the last of the column, beyond them, says how far the data reaches."""
    producer = Producer()
    producer.array.length = 1
    producer.set_buffer(1, producer.text([0, 18, -1]))

    with pytest.raises(UsageError):
        codec.ArrowEncoder("nquads").encode(producer)


@pytest.mark.parametrize("offsets", [[0, 3, 1], [0, -1, 3]])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_arrays_that_pyarrow_did_not_validate_are_refused(codec, kind, offsets):
    width = "i" if kind == pa.string() else "q"
    buffers = [None, pa.py_buffer(memoryview(array.array(width, offsets))), pa.py_buffer(b"<a>")]
    column = pa.Array.from_buffers(kind, 2, buffers)
    good = pa.array(["<a>", "<a>"])
    batch = pa.RecordBatch.from_arrays([column, good, good], names=["subject", "predicate", "object"])

    with pytest.raises((UsageError, InvalidTerm)):
        codec.ArrowEncoder("nquads").encode(batch)
    with pytest.raises((UsageError, InvalidTerm)):
        codec.ArrowEncoder("nquads").encode(pa.table(batch.columns, names=batch.schema.names))


@pytest.mark.parametrize("given", [None, (), (1, 2), ("a", "b", "c")], ids=repr)
def test_what_is_no_pair_of_capsules_is_refused(codec, given):
    class Strange:
        def __arrow_c_array__(self, requested_schema=None):
            return given

    with pytest.raises(UsageError):
        codec.ArrowEncoder("nquads").encode(Strange())


def test_capsules_of_something_else_are_refused(codec):
    class Swapped:
        def __arrow_c_array__(self, requested_schema=None):
            return pa.array([{"subject": "<a>"}]).__arrow_c_array__()[::-1]

    class NoStream:
        def __arrow_c_stream__(self, requested_schema=None):
            return pa.schema([]).__arrow_c_schema__()

    for strange in (Swapped(), NoStream()):
        with pytest.raises(UsageError):
            codec.ArrowEncoder("nquads").encode(strange)


def test_struct_that_was_taken_already_is_refused(codec):
    class Twice:
        def __init__(self):
            self.pair = pa.RecordBatch.from_pylist(
                [{"subject": "<a>", "predicate": "<a>", "object": "<a>"}]
            ).__arrow_c_array__()

        def __arrow_c_array__(self, requested_schema=None):
            return self.pair

    twice = Twice()
    assert codec.ArrowEncoder("nquads").encode(twice) == b"<a> <a> <a> .\n"

    with pytest.raises(UsageError):
        codec.ArrowEncoder("nquads").encode(twice)
