"""docs/protocol.md, "Lookups": what ids stand for."""

import pytest

from patchlog.errors import UnknownLookupEntry


@pytest.fixture
def objects(rdf, statements):
    """The objects of triples that are written after some rows."""

    def read_objects(decoder, *rows):
        first = {"names": 8, "prefixes": 4, "datatypes": 4, "generalized": 1}
        return [triple[2] for triple in statements(decoder, rdf.stream([rdf.options(**first), *rows]))]

    return read_objects


@pytest.fixture
def object_iri(rdf):
    def triple(prefix=0, name=0):
        return rdf.triple(s_bnode="s", p_bnode="p", o_iri=rdf.iri(prefix, name))

    return triple


@pytest.fixture
def object_literal(rdf):
    def triple(datatype):
        return rdf.triple(s_bnode="s", p_bnode="p", o_literal=rdf.literal("x", datatype=datatype))

    return triple


def test_entry_id_0_is_1_for_the_first_and_else_the_next(codec, rdf, objects, object_iri):
    rows = [rdf.name("a"), rdf.name("b"), rdf.name("e", entry_id=5), rdf.name("f")]

    found = objects(codec.RdfDecoder(), *rows, *(object_iri(name=i) for i in (1, 2, 5, 6)))

    assert found == ["<a>", "<b>", "<e>", "<f>"]


def test_each_table_counts_its_own_entries(codec, rdf, objects, object_iri, object_literal):
    rows = [
        rdf.name("n1"),
        rdf.prefix("p1:"),
        rdf.datatype("d1"),
        rdf.prefix("p2:"),
        rdf.name("n2"),
        rdf.datatype("d2"),
    ]

    found = objects(codec.RdfDecoder(), *rows, object_iri(2, 1), object_iri(1, 2), object_literal(2))

    assert found == ["<p2:n1>", "<p1:n2>", '"x"^^<d2>']


@pytest.mark.parametrize(("table", "size"), [("name", 8), ("prefix", 4), ("datatype", 4)])
def test_an_entry_id_above_the_size_of_its_table_is_refused(codec, rdf, refusal, table, size):
    entry = getattr(rdf, table)

    assert refusal(codec.RdfDecoder(), rdf.stream([rdf.options(), entry("a", size), entry("b")])) == (
        UnknownLookupEntry,
        0,
        2,
    )
    assert refusal(codec.RdfDecoder(), rdf.stream([rdf.options(), entry("a", size + 1)])) == (UnknownLookupEntry, 0, 1)


@pytest.mark.parametrize("table", ["prefix", "datatype"])
def test_a_table_of_size_0_takes_no_entry(codec, rdf, refusal, table):
    stream = rdf.stream([rdf.options(prefixes=0, datatypes=0), getattr(rdf, table)("a")])

    assert refusal(codec.RdfDecoder(), stream) == (UnknownLookupEntry, 0, 1)


def test_name_id_0_is_the_name_after_the_previous_iri(codec, rdf, objects, object_iri):
    rows = [rdf.name("a"), rdf.name("b"), rdf.name("c")]

    found = objects(
        codec.RdfDecoder(), *rows, object_iri(), object_iri(), object_iri(name=1), object_iri(), object_iri()
    )

    assert found == ["<a>", "<b>", "<a>", "<b>", "<c>"]


def test_prefix_id_0_is_the_previous_prefix(codec, rdf, objects, object_iri):
    rows = [rdf.name("a"), rdf.prefix("p:"), rdf.prefix("q:")]

    found = objects(codec.RdfDecoder(), *rows, *(object_iri(prefix, name=1) for prefix in (0, 2, 0, 1, 0)))

    assert found == ["<a>", "<q:a>", "<q:a>", "<p:a>", "<p:a>"]


def test_ids_go_on_over_frames_and_kinds_of_rows(codec, rdf, read):
    stream = rdf.stream(
        [rdf.options(generalized=1, version=2), rdf.prefix("p:"), *(rdf.name(name) for name in "abcd")],
        [rdf.triple(s_iri=rdf.iri(1), p_iri={}, o_bnode="o")],
        [rdf.namespace("ns", rdf.iri()), rdf.triple(o_iri={})],
    )

    frames = read(codec.RdfDecoder(), stream)

    assert frames[1].statements == [("<p:a>", "<p:b>", "_:o")]
    assert frames[2].namespaces == [("ns", "<p:c>")]
    assert frames[2].statements == [("<p:a>", "<p:b>", "<p:d>")]


def test_a_name_that_is_overwritten_changes_what_comes_after(codec, rdf, objects, object_iri):
    found = objects(
        codec.RdfDecoder(),
        rdf.prefix("p:"),
        rdf.name("a"),
        object_iri(1, 1),
        rdf.name("b", entry_id=1),
        object_iri(1, 1),
    )

    assert found == ["<p:a>", "<p:b>"]


def test_a_prefix_that_is_overwritten_changes_what_comes_after(codec, rdf, objects, object_iri):
    found = objects(
        codec.RdfDecoder(),
        rdf.prefix("p:"),
        rdf.name("a"),
        object_iri(1, 1),
        rdf.prefix("q:", entry_id=1),
        object_iri(1, 1),
        object_iri(0, 1),
        rdf.prefix("p:", entry_id=1),
        object_iri(0, 1),
    )

    assert found == ["<p:a>", "<q:a>", "<q:a>", "<p:a>"]


def test_a_name_goes_with_any_number_of_prefixes(codec, rdf, statements):
    prefixes = [f"p{i}:" for i in range(100)]
    stream = rdf.stream(
        [
            rdf.options(prefixes=100, generalized=1),
            rdf.name("n"),
            *(rdf.prefix(prefix) for prefix in prefixes),
            *(rdf.triple(s_bnode="s", p_bnode="p", o_iri=rdf.iri(i + 1, 1)) for i in [*range(100), *range(100)]),
        ]
    )

    found = [triple[2] for triple in statements(codec.RdfDecoder(), stream)]

    assert found == [f"<{prefix}n>" for prefix in prefixes] * 2


def test_a_datatype_that_is_overwritten_changes_what_comes_after(codec, rdf, objects, object_literal):
    found = objects(
        codec.RdfDecoder(),
        rdf.datatype("d"),
        object_literal(1),
        rdf.datatype("e", entry_id=1),
        object_literal(1),
        rdf.datatype("http://www.w3.org/2001/XMLSchema#string", entry_id=1),
        object_literal(1),
    )

    assert found == ['"x"^^<d>', '"x"^^<e>', '"x"']


def test_an_empty_prefix_and_an_empty_name_are_entries(codec, rdf, objects, object_iri):
    found = objects(
        codec.RdfDecoder(),
        rdf.prefix("p:"),
        rdf.prefix(""),
        rdf.name("a"),
        rdf.name(""),
        object_iri(2, 1),
        object_iri(1, 2),
    )

    assert found == ["<a>", "<p:>"]


@pytest.mark.parametrize(
    ("prefix", "name"),
    [(0, 1), (0, 9), (0, (1 << 32) - 1), (0, 0), (1, 2), (4, 2), (5, 2), ((1 << 32) - 1, 2)],
)
def test_an_id_of_no_entry_is_refused(codec, rdf, refusal, object_iri, prefix, name):
    stream = rdf.stream([rdf.options(generalized=1), rdf.name("b", entry_id=2), object_iri(prefix, name)])

    assert refusal(codec.RdfDecoder(), stream) == (UnknownLookupEntry, 0, 2)
    assert refusal(codec.RdfDecoder(strict=False), stream) == (UnknownLookupEntry, 0, 2)


def test_the_name_after_the_last_of_the_table_is_refused(codec, rdf, refusal, object_iri):
    stream = rdf.stream([rdf.options(generalized=1), rdf.name("h", entry_id=8), object_iri(name=8), object_iri()])

    assert refusal(codec.RdfDecoder(), stream) == (UnknownLookupEntry, 0, 3)


def test_the_name_is_looked_up_before_the_prefix(codec, rdf, object_iri):
    stream = rdf.stream([rdf.options(generalized=1), object_iri(1, 1)])

    with pytest.raises(UnknownLookupEntry, match="name lookup 1"):
        list(codec.RdfDecoder().feed(stream))


@pytest.mark.parametrize("datatype", [0, 5, 1 << 31])
def test_a_datatype_id_that_is_out_of_range_is_refused(codec, rdf, refusal, object_literal, datatype):
    stream = rdf.stream([rdf.options(generalized=1), rdf.datatype("d"), object_literal(datatype)])

    assert refusal(codec.RdfDecoder(), stream) == (UnknownLookupEntry, 0, 2)
    assert refusal(codec.RdfDecoder(strict=False), stream) == (UnknownLookupEntry, 0, 2)


def test_a_datatype_that_was_never_defined_is_refused_or_a_plain_literal(
    codec, rdf, refusal, statements, object_literal
):
    stream = rdf.stream([rdf.options(generalized=1), object_literal(4)])

    assert refusal(codec.RdfDecoder(), stream) == (UnknownLookupEntry, 0, 1)
    assert statements(codec.RdfDecoder(strict=False), stream) == [("_:s", "_:p", '"x"')]


def test_ids_follow_the_order_of_places_and_not_of_bytes(codec, rdf, statements):
    in_order = rdf.triple(s_iri=rdf.iri(1, 1), p_iri={}, o_iri={})
    reversed_order = {2: list(reversed(in_order[2].items()))}
    rows = [rdf.options(), rdf.prefix("p:"), rdf.name("a"), rdf.name("b"), rdf.name("c")]

    assert statements(codec.RdfDecoder(), rdf.stream([*rows, reversed_order])) == [("<p:a>", "<p:b>", "<p:c>")]


def test_ids_of_any_length_are_read(codec, rdf, statements):
    prefixes = [f"p{i}:" for i in range(1, 301)]
    names = [f"n{i}" for i in range(1, 4001)]
    ids = [(p, n) for p in (1, 127, 128, 300) for n in (1, 127, 128, 4000)]
    stream = rdf.stream(
        [
            rdf.options(prefixes=300, names=4000, generalized=1),
            *map(rdf.prefix, prefixes),
            *map(rdf.name, names),
            *(rdf.triple(s_iri=rdf.iri(*of), p_iri=rdf.iri(*of), o_iri=rdf.iri(of[0], of[1] - 1)) for of in ids),
        ]
    )

    found = statements(codec.RdfDecoder(), stream)

    def text(prefix, name):
        return f"<p{prefix}:n{name}>"

    # A name id that is left out is the one after the last: of an object whose name would be 0, that of the predicate.
    assert found == [(text(p, n), text(p, n), text(p, n - 1 or n + 1)) for p, n in ids]


@pytest.mark.parametrize("entry_id", [1, 127, 128, 4000])
def test_an_entry_is_overwritten_whatever_its_length(codec, rdf, statements, entry_id):
    texts = ["short", "a-name-that-is-long-enough-to-stand-elsewhere", "", "n" * 22, "n" * 23, "x" * 200, "é"]
    rows = [
        row
        for text in texts
        for row in (
            rdf.name(text, entry_id=entry_id),
            rdf.triple(s_bnode="s", p_bnode="p", o_iri=rdf.iri(0, entry_id)),
        )
    ]
    stream = rdf.stream([rdf.options(names=4000, generalized=1), *rows])

    found = [triple[2] for triple in statements(codec.RdfDecoder(), stream)]

    assert found == [f"<{text}>" for text in texts]
