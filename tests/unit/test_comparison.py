import random
from itertools import pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchlog.comparison import first_difference, set_difference

P, Q = "<http://ex.org/p>", "<http://ex.org/q>"
NODES = [f"_:n{index}" for index in range(5)]


def relabelled(statements, labels):
    return [tuple(labels.get(term, term) for term in statement) for statement in statements]


def test_same_statements_in_the_same_order_do_not_differ():
    statements = [(P, P, '"x"'), ("_:a", P, "_:b")]

    assert first_difference(statements, relabelled(statements, {"_:a": "_:b", "_:b": "_:a"})) is None


@pytest.mark.parametrize(
    ("expected", "actual", "difference"),
    [
        ([(P, P, P)], [], f"statement 0: expected {P} {P} {P}, found the end"),
        ([], [(P, P, P)], f"statement 0: expected the end, found {P} {P} {P}"),
        ([(P, P, P), (P, P, Q)], [(P, P, P), (P, P, P)], f"statement 1: expected {P} {P} {Q}, found {P} {P} {P}"),
        ([("_:a", P, "_:a")], [("_:a", P, "_:b")], "statement 0: expected _:a <http://ex.org/p> _:a, found"),
        ([("_:a", P, "_:b")], [("_:a", P, "_:a")], "statement 0: expected _:a <http://ex.org/p> _:b, found"),
        ([("_:a", P, P)], [(P, P, P)], "statement 0"),
    ],
)
def test_first_difference_is_said(expected, actual, difference):
    assert first_difference(expected, actual).startswith(difference)


def test_order_matters_only_where_it_is_compared():
    one, other = [(P, P, P), (P, P, Q)], [(P, P, Q), (P, P, P)]

    assert first_difference(one, other) is not None
    assert set_difference(one, other) is None


def test_triple_stands_in_the_default_graph():
    assert first_difference([(P, P, P)], [(P, P, P, "")]) is None
    assert set_difference([(P, P, P)], [(P, P, P, "")]) is None


def test_blank_nodes_in_quoted_triples_and_graphs_have_labels_too():
    one = [(f'<<( _:a {P} "_:a" )>>', P, "_:b", "_:a")]

    assert set_difference(one, [(f'<<( _:x {P} "_:a" )>>', P, "_:y", "_:x")]) is None
    assert set_difference(one, [(f'<<( _:x {P} "_:a" )>>', P, "_:y", "_:y")]) is not None
    assert set_difference(one, [(f'<<( _:x {P} "_:x" )>>', P, "_:y", "_:x")]) is not None


def test_what_is_missing_and_what_is_too_many_is_said():
    difference = set_difference([(P, P, P), (P, P, '"1"')], [(P, P, P), (P, P, '"2"'), (P, P, '"3"')])

    assert difference == (f'1 statement missing, such as {P} {P} "1"; 2 statements too many, such as {P} {P} "2"')


def test_triangles_are_not_a_hexagon():
    """Nodes that all look alike from where they stand."""
    hexagon = [(f"_:{i}", P, f"_:{(i + 1) % 6}") for i in range(6)]
    triangles = [(f"_:{i}", P, f"_:{i // 3 * 3 + (i + 1) % 3}") for i in range(6)]

    assert set_difference(triangles, hexagon) == "the datasets differ in their blank nodes"
    assert set_difference(hexagon, relabelled(hexagon, {f"_:{i}": f"_:{5 - i}" for i in range(6)})) is None


def test_thousands_of_blank_nodes_that_are_alike_are_matched():
    one = [(f"_:a{i}", P, Q) for i in range(3000)]

    assert set_difference(one, [(f"_:b{i}", P, Q) for i in range(3000)]) is None
    assert set_difference(one, [(f"_:b{i}", P, Q) for i in range(2999)]) is not None


def test_long_list_is_matched():
    nodes = [f"_:l{i}" for i in range(300)]
    one = [statement for first, rest in pairwise(nodes) for statement in ((first, P, f'"{first}"'), (first, Q, rest))]
    renamed = {node: f"_:m{i}" for i, node in enumerate(nodes)}

    assert set_difference(one, relabelled(one, renamed)) is None


graphs = st.lists(st.tuples(st.sampled_from(NODES), st.sampled_from([P, Q]), st.sampled_from(NODES)), max_size=12)


@given(graphs, st.permutations(NODES), st.randoms(use_true_random=False))
def test_labels_and_order_do_not_matter_in_sets(statements, labels, shuffler: random.Random):
    other = relabelled(statements, dict(zip(NODES, labels, strict=True)))
    shuffler.shuffle(other)

    assert set_difference(statements, other) is None


@given(graphs, graphs)
def test_sets_are_compared_as_another_library_does(one, other):
    compare = pytest.importorskip("rdflib.compare")
    rdflib = pytest.importorskip("rdflib")

    def graph(statements):
        result = rdflib.Graph()
        for subject, predicate, object_ in statements:
            result.add((rdflib.BNode(subject[2:]), rdflib.URIRef(predicate[1:-1]), rdflib.BNode(object_[2:])))
        return result

    assert (set_difference(one, other) is None) == compare.isomorphic(graph(one), graph(other))


@given(
    edges=st.sets(st.tuples(st.integers(0, 4), st.sampled_from(["p", "q"]), st.integers(0, 4)), max_size=8),
    others=st.sets(st.tuples(st.integers(0, 4), st.sampled_from(["p", "q"]), st.integers(0, 4)), max_size=8),
    permutation=st.permutations(range(5)),
)
def test_small_graphs_are_the_same_where_some_renaming_makes_them_so(edges, others, permutation):
    def graph(edges, names):
        return {(f"_:{names[s]}", f"<{p}>", f"_:{names[o]}", "") for s, p, o in edges}

    expected = any(graph(others, names) == graph(edges, range(5)) for names in permutations(range(5)))

    assert (set_difference(graph(edges, range(5)), graph(others, range(5))) is None) == expected
    assert set_difference(graph(edges, range(5)), graph(edges, permutation)) is None


@pytest.mark.parametrize("length", [3, 6, 7])
def test_rings_are_told_apart_by_their_lengths(length):
    def ring(size, name):
        return {(f"_:{name}{i}", "<p>", f"_:{name}{(i + 1) % size}", "") for i in range(size)}

    assert set_difference(ring(2 * length, "a"), ring(2 * length, "b")) is None
    assert set_difference(ring(2 * length, "a"), ring(length, "b") | ring(length, "c")) is not None


@pytest.mark.parametrize("shape", ["list", "star", "nested star"])
def test_many_blank_nodes_in_one_group_are_compared_soon(shape):
    def graph(name):
        for i in range(2000):
            if shape == "list":
                yield (f"_:{name}{i}", "<rest>", f"_:{name}{i + 1}", "")
            else:
                yield (f"_:{name}", "<p>", f"_:{name}{i}", "")
            if shape == "nested star":
                yield (f"_:{name}{i}", "<p>", f"_:{name}inner{i}", "")

    assert set_difference(graph("a"), graph("b")) is None
