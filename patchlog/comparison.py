"""Whether two sets of statements say the same: in order, or as sets. Blank nodes may have other labels.

In order, both sides are streamed. As sets, both are held in memory; blank nodes are told apart by their neighbourhoods
(colour refinement), and what is still alike is tried out, one connected group of blank nodes at a time.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import Final, TypeAlias, cast

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

    def coloured(self, group: Iterable[Term]) -> _Colours:
        """Colour nodes by their statements and the colours there, until that tells no more nodes apart.

        Datasets that are the same but for their labels get the same colours. The largest part of a colour keeps it, and
        only what has a neighbour of a new colour is looked at again: a long list would take long otherwise.
        """
        colours = dict.fromkeys(group, 0)
        colours = {node: self._signature(node, colours) for node in colours}
        signatures = {node: self._signature(node, colours) for node in colours}
        members: dict[int, set[Term]] = defaultdict(set)
        for node, colour in colours.items():
            members[colour].add(node)
        touched = set(colours)
        while touched:
            touched_colours = {colours[node] for node in touched}
            changed: dict[Term, int] = {}
            for colour in touched_colours:
                parts: dict[int, list[Term]] = defaultdict(list)
                for node in members[colour] & touched if len(members[colour]) > 1 else ():
                    parts[signatures[node]].append(node)
                untouched = members[colour] - touched
                if untouched:
                    parts[signatures[next(iter(untouched))]].extend(untouched)
                largest = max(map(len, parts.values()), default=0)
                keeps = [part for part in parts.values() if len(part) == largest]
                for signature, part in parts.items():
                    if len(keeps) > 1 or part is not keeps[0]:
                        changed |= dict.fromkeys(part, hash((colour, signature)))
            for node, colour in changed.items():
                members[colours[node]].discard(node)
                members[colour].add(node)
            colours |= changed
            touched = {other for node in changed for other in self._neighbours(node)}
            signatures |= {node: self._signature(node, colours) for node in touched}
        return colours

    def _signature(self, node: Term, colours: _Colours) -> int:
        return hash(
            tuple(
                sorted(
                    _relabelled(quad, {one: "self" if one == node else colours[one] for one in _blank_nodes(quad)})
                    for quad in self.quads_of[node]
                )
            )
        )

    def _neighbours(self, node: Term) -> set[Term]:
        return {other for quad in self.quads_of[node] for other in _blank_nodes(quad)}

    def groups(self) -> Iterator[list[Term]]:
        """Yield the nodes in connected groups."""
        unseen = set(self.quads_of)
        while unseen:
            group, frontier = [], [unseen.pop()]
            while frontier:
                node = frontier.pop()
                group.append(node)
                neighbours = self._neighbours(node) & unseen
                unseen -= neighbours
                frontier.extend(neighbours)
            yield group

    def with_names(self, group: Iterable[Term], names: Mapping[Term, str]) -> tuple[set[Quad], set[Quad]]:
        """The statements of a group with names for some nodes: those that have other nodes still, and the rest."""
        open_quads: set[Quad] = set()
        closed_quads: set[Quad] = set()
        for quad in {quad for node in group for quad in self.quads_of[node]}:
            labels = {node: names.get(node, node) for node in _blank_nodes(quad)}
            named = cast("Quad", _relabelled(quad, labels))
            (open_quads if any(_blank_nodes(named)) else closed_quads).add(named)
        return open_quads, closed_quads


def _is_isomorphic(wanted: set[Quad], found: set[Quad], depth: int = 0) -> bool:
    """Match the groups of one side with those of the other.

    Being isomorphic is an equivalence, so a group may take the first partner that fits.
    """
    wanted_nodes, found_nodes = _Nodes(wanted), _Nodes(found)
    candidates = defaultdict(list)
    for group in found_nodes.groups():
        colours = found_nodes.coloured(group)
        candidates[_palette(colours)].append(colours)
    for group in wanted_nodes.groups():
        colours = wanted_nodes.coloured(group)
        partners = candidates[_palette(colours)]
        for index, partner in enumerate(partners):
            if _match(wanted_nodes, colours, found_nodes, partner, depth):
                del partners[index]
                break
        else:
            return False
    return not any(candidates.values())


def _palette(colours: _Colours) -> frozenset[tuple[int, int]]:
    return frozenset(Counter(colours.values()).items())


def _match(wanted: _Nodes, wanted_colours: _Colours, found: _Nodes, found_colours: _Colours, depth: int) -> bool:
    """Whether two groups of the same palette are the same.

    The nodes that have a colour to themselves are named after it. What is left falls apart into smaller groups.
    """
    counts = Counter(wanted_colours.values())

    def is_same(wanted_names: Mapping[Term, str], found_names: Mapping[Term, str]) -> bool:
        wanted_open, wanted_closed = wanted.with_names(wanted_colours, wanted_names)
        found_open, found_closed = found.with_names(found_colours, found_names)
        return wanted_closed == found_closed and _is_isomorphic(wanted_open, found_open, depth + 1)

    def names(colours: _Colours) -> dict[Term, str]:
        return {node: f"={depth}:{colour}" for node, colour in colours.items() if counts[colour] == 1}

    if 1 in counts.values():
        return is_same(names(wanted_colours), names(found_colours))
    # All look like others: name one of them, and try each that it may stand for.
    colour = min(counts, key=lambda one: (counts[one], one))
    node = next(one for one, its in wanted_colours.items() if its == colour)
    return any(
        is_same({node: f"={depth}"}, {other: f"={depth}"}) for other, its in found_colours.items() if its == colour
    )
