"""What patches do to a dataset."""

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchlog.effect import Effect, apply_effect, diff, effect, invert, squash
from patchlog.errors import TransactionError
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

Q1 = ("<s>", "<p>", "<o1>", "<g>")
Q2 = ("<s>", "<p>", "<o2>", "<g>")
TX, TC, TA, Z = TransactionStart(), TransactionCommit(), TransactionAbort(), Punctuation()

quads = st.tuples(
    st.just("<s>"), st.just("<p>"), st.sampled_from(["<o1>", "<o2>", '"o"']), st.sampled_from(["", "<g>"])
)
graphs = st.sampled_from([None, "", "<g>"])
changes = st.one_of(
    st.builds(lambda quad, kind: kind(*quad), quads, st.sampled_from([Add, Delete])),
    st.builds(lambda quad, kind: kind(*quad[:3]), quads, st.sampled_from([Add, Delete])),
    st.builds(NamespaceAdd, st.sampled_from("ab"), st.sampled_from(["<x>", "<y>"]), graphs),
    st.builds(NamespaceDelete, st.sampled_from("ab"), st.sampled_from([None, "<x>"]), graphs),
    st.builds(Header, st.just("id"), st.just("<id>")),
)
transactions = st.builds(
    lambda body, end: [TX, *body, end], st.lists(changes, max_size=4), st.sampled_from([TC, TC, TA])
)
patches = st.builds(
    lambda parts, tail: [*chain.from_iterable(parts), *tail],
    st.lists(transactions | st.lists(changes, max_size=3), max_size=4),
    st.sampled_from([[], [], [TX], [TX, Add(*Q1)]]),
)
datasets = st.sets(quads)
namespace_maps = st.dictionaries(
    st.tuples(st.sampled_from(["", "<g>"]), st.sampled_from("ab")), st.sampled_from(["<x>", "<y>"])
)


def applied(change, dataset, namespaces):
    dataset, namespaces = set(dataset), dict(namespaces)
    apply_effect(dataset, namespaces, change)
    return dataset, namespaces


def test_last_operation_on_a_quad_wins():
    found = effect([Add(*Q1), Delete(*Q1), Delete(*Q2), Add(*Q2)])

    assert found == Effect(frozenset([Q2]), frozenset([Q1]), {})


def test_aborted_and_unfinished_transactions_have_no_effect():
    found = effect([TX, Add(*Q1), NamespaceAdd("ex", "<a>"), TA, TX, Delete(*Q2)])

    assert found == Effect()


def test_operations_outside_of_transactions_take_effect_in_their_place():
    found = effect([Add(*Q1), Add(*Q2), TX, Delete(*Q1), TC, TX, Delete(*Q2), TA])

    assert found == Effect(frozenset([Q2]), frozenset([Q1]), {})


def test_transaction_that_is_open_at_the_end_of_its_patch_is_aborted():
    found = effect([TX, Add(*Q1), Z, TX, Add(*Q2), TC, Z])

    assert found.adds == {Q2}


@pytest.mark.parametrize("operations", [[TX, TX], [TC], [TA], [TX, TC, TC], [TX, Z, TC]])
def test_transactions_out_of_order_are_refused(operations):
    with pytest.raises(TransactionError):
        effect(operations)


def test_triple_stands_in_the_default_graph():
    found = effect([Add("<s>", "<p>", "<o>"), Delete("<s>", "<p>", "<o>", ""), NamespaceAdd("ex", "<a>")])

    assert found == Effect(frozenset(), frozenset([("<s>", "<p>", "<o>", "")]), {("", "ex"): "<a>"})


def test_namespaces_of_one_name_in_two_graphs_are_two():
    found = effect([NamespaceAdd("ex", "<a>", "<g>"), NamespaceAdd("ex", "<b>"), NamespaceDelete("ex", "<a>", "<g>")])

    assert found.namespaces == {("<g>", "ex"): None, ("", "ex"): "<b>"}


def test_squash_is_one_transaction_in_a_fixed_order():
    found = squash(
        [
            *(Header("id", "<1>"), NamespaceAdd("b", "<b>"), Add(*Q2), Z),
            *(TX, Add(*Q1), NamespaceDelete("a"), TC, TX, Delete("<s>", "<p>", "<o>"), TC, Z),
        ]
    )

    assert found == [
        TX,
        NamespaceDelete("a", None, ""),
        NamespaceAdd("b", "<b>", ""),
        Delete("<s>", "<p>", "<o>", ""),
        Add(*Q1),
        Add(*Q2),
        TC,
    ]


def test_inverse_takes_back_only_what_was_changed():
    change = effect(
        [Add(*Q1), Add(*Q2), Delete("<s>", "<p>", "<o>"), NamespaceAdd("a", "<x>"), NamespaceAdd("b", "<x>")]
    )

    found = invert(change, {Q1}, {("", "a"): "<x>", ("", "b"): "<y>"})

    assert found == [TX, NamespaceAdd("b", "<y>", ""), Delete(*Q2), TC]


def test_diff_of_equal_datasets_is_an_empty_transaction():
    assert diff({Q1}, {Q1}) == [TX, TC]


@given(patches, datasets, namespace_maps)
def test_applying_twice_is_applying_once(patch, dataset, namespaces):
    change = effect(patch)

    once = applied(change, dataset, namespaces)

    assert applied(change, *once) == once


@given(st.lists(patches, max_size=4), datasets, namespace_maps)
def test_squash_does_what_the_patches_do_one_after_the_other(sequence, dataset, namespaces):
    one_by_one = (dataset, namespaces)
    for patch in sequence:
        one_by_one = applied(effect(patch), *one_by_one)

    squashed = squash(chain.from_iterable([*patch, Z] for patch in sequence))

    assert applied(effect(squashed), dataset, namespaces) == one_by_one


@given(patches)
def test_squash_of_what_was_squashed_is_the_same(patch):
    assert squash(squash(patch)) == squash(patch)


@given(patches, datasets, namespace_maps)
def test_inverse_after_a_patch_restores(patch, dataset, namespaces):
    change = effect(patch)

    inverse = invert(change, dataset, namespaces)

    assert applied(effect(inverse), *applied(change, dataset, namespaces)) == (dataset, namespaces)


@given(datasets, datasets, namespace_maps, namespace_maps)
def test_diff_makes_the_second_dataset_out_of_the_first(before, after, namespaces_before, namespaces_after):
    patch = diff(before, after, namespaces_before, namespaces_after)

    assert applied(effect(patch), before, namespaces_before) == (after, namespaces_after)
