"""Patches as a log stores them: header frames and bodies, laid end to end in any order."""

import os
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchlog.codec.ingest import IngestedPatch, PatchIngest, header_frame, stored_options
from patchlog.codec.options import Limits
from patchlog.codec.patch_ids import parse_patch_id, patch_id_of, patch_id_term
from patchlog.engine import PatchDecoder
from patchlog.errors import InvalidTerm, TransactionError, UnexpectedRow
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

ID = "c2b60000-0000-4000-8000-00000000000a"
PREV = "c2b60000-0000-4000-8000-00000000000b"
PATCHES = settings(max_examples=int(os.environ.get("PATCHLOG_FUZZ_EXAMPLES", "60")))

names = st.sampled_from(["", "a", "b", f"urn:uuid:{ID}", "urn:uuid:", "http://e/a", "http://e/b", "http://f#é"])
iris = names.map(lambda text: f"<{text}>")
objects = iris | st.sampled_from(['"a"', '"a"@en', '"1"^^<http://e/a>', '"2"^^<b>', "_:a", "<<( <a> <b> _:c )>>"])
statements = st.tuples(iris, iris, objects, st.just("") | iris)
changes = st.one_of(
    statements.map(lambda quad: Add(*quad)),
    statements.map(lambda quad: Delete(*quad)),
    st.builds(Header, st.sampled_from(["who", "ID"]), objects),
    st.builds(NamespaceAdd, names, iris, st.just("") | iris),
    st.builds(NamespaceDelete, names, st.none() | iris, st.just("") | iris),
)
bodies = st.lists(
    st.one_of(
        changes.map(lambda change: [change]),
        st.tuples(st.lists(changes, max_size=3), st.sampled_from([TransactionCommit(), TransactionAbort()])).map(
            lambda transaction: [TransactionStart(), *transaction[0], transaction[1]]
        ),
    ),
    max_size=4,
).map(lambda parts: list(chain.from_iterable(parts)))
ids = st.uuids().map(str)


def ingested(operations, options=None):
    ingest = PatchIngest(options or stored_options())
    for operation in operations:
        assert ingest.accept(operation) is None
    summary = ingest.accept(Punctuation())
    return summary, ingest.take()


def decoded(data):
    decoder = PatchDecoder()
    return [*decoder.feed(data), *decoder.finish()]


@PATCHES
@given(st.lists(st.tuples(ids, st.none() | ids, bodies), min_size=1, max_size=5))
def test_stored_patches_in_any_order_are_one_strict_stream(patches):
    options = stored_options()

    stream = b"".join(header_frame(id, prev, options) + ingested(body)[1] for id, prev, body in patches)

    expected = []
    for id, prev, body in patches:
        headers = [Header("id", patch_id_term(id))] + ([Header("prev", patch_id_term(prev))] if prev else [])
        expected += [*headers, *body, Punctuation()]
    assert decoded(stream) == expected


@PATCHES
@given(bodies)
def test_body_is_the_same_whatever_its_headers_say(body):
    with_headers = [Header("id", patch_id_term(ID)), *body, Header("prev", f'"{PREV}"')]

    assert ingested(with_headers)[1] == ingested(body)[1]


def test_full_tables_leave_the_entries_of_the_header_frame_alone():
    body = [Add(f"<http://e{i % 200}/{i}>", "<p>", f'"x"^^<d{i % 40}>', "") for i in range(9_000)]

    stream = header_frame(ID, None, stored_options()) + ingested(body)[1]

    assert decoded(stream * 2) == [Header("id", patch_id_term(ID)), *body, Punctuation()] * 2


def test_frames_of_a_body_hold_at_most_a_mebibyte():
    body = [Add("<s>", "<p>", f'"{i}{"x" * 4000}"', "") for i in range(1000)]

    _, data = ingested(body)

    decoder = PatchDecoder(limits=Limits(max_frame_bytes=1 << 20))
    stream = header_frame(ID, None, stored_options()) + data
    assert sum(isinstance(operation, Add) for operation in decoder.feed(stream)) == 1000


def test_what_is_known_of_a_patch_leaves_out_its_own_headers():
    add = Add("<s>", "<p>", "<o>", "")

    summary, _ = ingested(
        [
            Header("id", f"<urn:uuid:{ID}>"),
            Header("prev", f"<uuid:{PREV}>"),
            Header("who", '"me"'),
            TransactionStart(),
            NamespaceAdd("e", "<e>"),
            add,
            add,
            Delete("<s>", "<p>", "<o>", ""),
            TransactionCommit(),
        ]
    )

    assert summary == IngestedPatch(ID, PREV, operations=7, adds=2, deletes=1, namespaces=1, transactions=1)


@pytest.mark.parametrize(
    "value", [f"<urn:uuid:{ID}>", f"<uuid:{ID}>", f'"{ID}"', f'"id:{ID}"', f"<{ID}>", f"<URN:UUID:{ID.upper()}>"]
)
def test_ids_are_read_in_every_form(value):
    assert patch_id_of(value) == ID


@pytest.mark.parametrize("value", ["_:a", '""', '"1"', f"<http://e/{ID}>", f'"{ID}0"', "<<( <a> <b> <c> )>>"])
def test_other_values_are_no_ids(value):
    with pytest.raises(InvalidTerm, match="is not a patch id"):
        patch_id_of(value)


def test_plain_ids_are_lower_case():
    assert parse_patch_id(ID.upper()) == ID


@pytest.mark.parametrize("key", ["id", "prev"])
def test_two_ids_in_a_patch_are_refused(key):
    with pytest.raises(UnexpectedRow, match=f"two headers {key}"):
        ingested([Header(key, f'"{ID}"'), Header(key, f'"{ID}"'), Header(key, f'"{PREV}"')])


def test_input_that_ends_inside_a_transaction_is_refused():
    ingest = PatchIngest()
    ingest.accept(TransactionStart())

    with pytest.raises(TransactionError):
        ingest.finish()


def test_transaction_that_is_open_at_a_punctuation_is_closed_by_an_abort():
    summary, body = ingested([TransactionStart()])

    assert decoded(header_frame(ID, None, stored_options()) + body)[1:] == [
        TransactionStart(),
        TransactionAbort(),
        Punctuation(),
    ]
    assert summary.operations == 2


def test_end_of_the_input_ends_the_last_patch():
    ingest = PatchIngest()

    assert ingest.finish() is None
    ingest.accept(Header("who", '"me"'))
    assert ingest.is_in_patch
    assert ingest.finish().operations == 1
    assert not ingest.is_in_patch


def test_undeclared_terms_are_refused():
    with pytest.raises(InvalidTerm):
        ingested([Add("<s>", "<p>", "<<( <a> <b> <c> )>>", "")], stored_options(rdf_star=False))
