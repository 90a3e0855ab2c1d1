"""The headers of a patch are read without what stands behind them, wherever its bytes are cut."""

import uuid
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchlog.log.history import headers_of
from patchlog.log.records import LoggedPatch
from patchlog.model import Add, Header, NamespaceAdd, Punctuation, TransactionCommit, TransactionStart
from patchlog.patch import canonical

QUAD = ("<http://example.org/s>", "<http://example.org/p>", '"v"', "")
VALUES = st.sampled_from(["<http://example.org/o>", '"v"', '"w"@de', '"1"^^<http://www.w3.org/2001/XMLSchema#int>'])
HEADERS = st.lists(st.tuples(st.sampled_from(["who", "why", "when", "note"]), VALUES), max_size=12)
BODIES = st.sampled_from(
    [
        [],
        [TransactionStart(), TransactionCommit()],
        [TransactionStart(), *[Add(*QUAD)] * 50, TransactionCommit()],
        [NamespaceAdd("e", "<http://example.org/>", "")],
        [Add(*QUAD), Header("late", '"not one of those that it begins with"')],
    ]
)


def logged(headers, body, cuts=()):
    ids = [Header("id", f"<urn:uuid:{uuid.uuid4()}>"), Header("prev", f"<urn:uuid:{uuid.uuid4()}>")]
    data = canonical([*ids, *(Header(key, value) for key, value in headers), *body, Punctuation()])
    ends = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    chunks = [data[start:end] for start, end in pairwise(ends)]
    return LoggedPatch(None, chunks)


@given(HEADERS, BODIES, st.lists(st.integers(1, 2000), max_size=4))
def test_headers_are_those_that_a_patch_begins_with(headers, body, cuts):
    assert headers_of(logged(headers, body, cuts)) == dict(headers)


@pytest.mark.parametrize("size", [1 << 20, 6 << 20])
def test_header_may_be_larger_than_a_chunk(size):
    headers = [("who", '"a"'), ("note", f'"{"x" * size}"'), ("why", '"b"')]

    assert headers_of(logged(headers, [Add(*QUAD)], range(1 << 20, size, 1 << 20))) == dict(headers)


def test_nothing_is_read_behind_them():
    patch = logged([("who", '"a"')], [Add(*QUAD)])

    def chunks():
        yield from patch.chunks
        raise AssertionError("more was read")

    assert headers_of(LoggedPatch(None, chunks())) == {"who": '"a"'}
