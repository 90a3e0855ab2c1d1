"""Whether two sets of statements say the same: in order, or as sets. Blank nodes may have other labels.

In order, both sides are streamed. As sets, both are held in memory; blank nodes are told apart by their neighbourhoods
(colour refinement), and what is still alike is tried out, one connected group of blank nodes at a time.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import Final, TypeAlias

from patchlog.model import Quad, Statement, Term, as_quad

__all__ = ["first_difference", "set_difference"]

_Colours: TypeAlias = dict[Term, int]

# A blank node on its own or in a quoted triple; what looks like one inside a literal or an IRI is stepped over.
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|<[^<>( ]*>|(?P<blank>_:[^ ]+)')


def first_difference(expected: Iterable[Statement], actual: Iterable[Statement]) -> str | None:
    """Compare statement by statement; say where they first differ, or None."""
    there: dict[Term, Term] = {}
    back: dict[Term, Term] = {}
    for number, pair in enumerate(zip_longest(map(as_quad, expected), map(as_quad, actual))):
        wanted, found = pair
        if wanted is None or found is None:
            return f"statement {number}: expected {_text(wanted)}, found {_text(found)}"
        wanted_nodes, found_nodes = list(_blank_nodes(wanted)), list(_blank_nodes(found))
        same = _relabelled(wanted, dict.fromkeys(wanted_nodes, "_:")) == _relabelled(
            found, dict.fromkeys(found_nodes, "_:")
        )
        same = same and all(
            there.setdefault(one, other) == other and back.setdefault(other, one) == one
            for one, other in zip(wanted_nodes, found_nodes, strict=True)
        )
        if not same:
            return f"statement {number}: expected {_text(wanted)}, found {_text(found)}"
    return None


def set_difference(expected: Iterable[Statement], actual: Iterable[Statement]) -> str | None:
    """Compare two datasets up to the labels of their blank nodes; say what differs, or None."""
    wanted, found = set(map(as_quad, expected)), set(map(as_quad, actual))
    if wanted == found:
        return None
    wanted_blank = {quad for quad in wanted if any(_blank_nodes(quad))}
    found_blank = {quad for quad in found if any(_blank_nodes(quad))}
    missing, surplus = wanted - found - wanted_blank, found - wanted - found_blank
    if missing or surplus:
        return _describe(missing, surplus)
    if len(wanted_blank) != len(found_blank):
        return (
            f"the datasets have other numbers of statements with blank nodes: "
            f"expected {len(wanted_blank)}, found {len(found_blank)}"
        )
    if not _is_isomorphic(wanted_blank, found_blank):
        return "the datasets differ in their blank nodes"
    return None


def _describe(missing: set[Quad], surplus: set[Quad]) -> str:
    said = [
        f"{len(some)} statement{'s' if len(some) > 1 else ''} {what}, such as {_text(min(some))}"
        for some, what in ((missing, "missing"), (surplus, "too many"))
        if some
    ]
    return "; ".join(said)


def _text(quad: Quad | None) -> str:
    return "the end" if quad is None else " ".join(quad).rstrip()


def _blank_nodes(quad: Quad) -> Iterator[Term]:
    for term in quad:
        if term.startswith("_:"):
            yield term
        elif term.startswith("<<"):
            yield from (match["blank"] for match in _TOKEN.finditer(term) if match["blank"])


def _relabelled(quad: Quad, labels: Mapping[Term, object]) -> tuple[str, ...]:
    return tuple(
        str(labels[term])
        if term.startswith("_:")
        else _TOKEN.sub(lambda match: str(labels[match[0]]) if match["blank"] else match[0], term)
        if term.startswith("<<")
        else term
        for term in quad
    )


class _Nodes:
    """The blank nodes of a dataset and the statements that each stands in."""

    def __init__(self, quads: Iterable[Quad]) -> None:
        self.quads_of: dict[Term, set[Quad]] = defaultdict(set)
        for quad in quads:
            for node in _blank_nodes(quad):
                self.quads_of[node].add(quad)

    def refine(self, colours: _Colours) -> _Colours:
        """Colour each node by its statements and their colours, until that tells no more nodes apart."""
        while True:
            refined = {node: hash((colours[node], self._signature(node, colours))) for node in colours}
            if len(set(refined.values())) == len(set(colours.values())):
                return refined
            colours = refined

    def _signature(self, node: Term, colours: _Colours) -> tuple[tuple[str, ...], ...]:
        labels = {**colours, node: "self"}
        return tuple(sorted(_relabelled(quad, labels) for quad in self.quads_of[node]))

    def groups(self) -> Iterator[list[Term]]:
        """Yield the nodes in connected groups."""
        unseen = set(self.quads_of)
        while unseen:
            group, frontier = [], [unseen.pop()]
            while frontier:
                node = frontier.pop()
                group.append(node)
                neighbours = {other for quad in self.quads_of[node] for other in _blank_nodes(quad)} & unseen
                unseen -= neighbours
                frontier.extend(neighbours)
            yield group


def _is_isomorphic(wanted: set[Quad], found: set[Quad]) -> bool:
    """Match the groups of one side with those of the other.

    Being isomorphic is an equivalence, so a group may take the first partner that fits.
    """
    wanted_nodes, found_nodes = _Nodes(wanted), _Nodes(found)
    candidates = defaultdict(list)
    for group in found_nodes.groups():
        colours = found_nodes.refine(dict.fromkeys(group, 0))
        candidates[_palette(colours)].append(colours)
    for group in wanted_nodes.groups():
        colours = wanted_nodes.refine(dict.fromkeys(group, 0))
        partners = candidates[_palette(colours)]
        match = next((one for one in partners if _match(wanted_nodes, colours, found_nodes, one)), None)
        if match is None:
            return False
        partners.remove(match)
    return not any(candidates.values())


def _palette(colours: _Colours) -> frozenset[tuple[int, int]]:
    return frozenset(Counter(colours.values()).items())


def _match(wanted: _Nodes, wanted_colours: _Colours, found: _Nodes, found_colours: _Colours) -> bool:
    if _palette(wanted_colours) != _palette(found_colours):
        return False
    colour, count = min(Counter(wanted_colours.values()).items(), key=lambda item: (item[1] == 1, item[1]))
    if count == 1:
        by_colour = {colour: node for node, colour in found_colours.items()}
        labels = {node: by_colour[colour] for node, colour in wanted_colours.items()}
        return all(
            {_relabelled(quad, labels) for quad in wanted.quads_of[node]} == found.quads_of[labels[node]]
            for node in labels
        )
    # Several nodes look alike: give one of them a colour of its own, and try each that it may stand for.
    node = next(one for one, its in wanted_colours.items() if its == colour)
    mine = wanted.refine({**wanted_colours, node: 1})
    return any(
        _match(wanted, mine, found, found.refine({**found_colours, other: 1}))
        for other, its in found_colours.items()
        if its == colour
    )
