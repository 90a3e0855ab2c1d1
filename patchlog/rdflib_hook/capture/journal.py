"""What a transaction has changed so far: real changes only, in their order.

As an add is only noted where the quad was not there, and a delete where it was, the changes of one quad take turns. So
the journal is undone by walking back, and its net effect is what is left when a delete and an add of one quad cancel
each other out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias
from weakref import WeakSet

from rdflib.graph import Graph
from rdflib.term import IdentifiedNode, Literal

__all__ = [
    "ADDED",
    "DELETED",
    "GRAPH_ADDED",
    "GRAPH_REMOVED",
    "Entry",
    "Journal",
    "Net",
    "RdflibQuad",
    "RdflibTriple",
    "Savepoint",
]

RdflibTriple: TypeAlias = tuple[Any, Any, Any]
RdflibQuad: TypeAlias = tuple[Any, Any, Any, IdentifiedNode | None]
"""Subject, predicate, object and the name of the graph: None in a store that has no named graphs."""

ADDED: Final = 0
DELETED: Final = 1
GRAPH_ADDED: Final = 2
GRAPH_REMOVED: Final = 3

Entry: TypeAlias = tuple[int, RdflibTriple, Graph | None, bool]
"""What happened, to which triple, in which graph, and whether the triple is quoted: part of a formula."""


@dataclass(eq=False, slots=True, weakref_slot=True)
class Savepoint:
    """A place in the journal that may be gone back to, and the prefixes that were uncommitted there.

    It stays where it is while what stands before it is committed, taken back, or made again on top of other changes.
    """

    position: int
    names: Mapping[str, str | None]


class Net(NamedTuple):
    """What is different at the end."""

    deletes: list[RdflibQuad]
    adds: list[RdflibQuad]

    def __bool__(self) -> bool:
        return bool(self.deletes or self.adds)


class Journal:
    """The entries of a transaction. `note` is the append of a list: it is called for each change."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self.note: Final = self._entries.append
        self._graphs = 0
        self._savepoints: WeakSet[Savepoint] = WeakSet()

    def __len__(self) -> int:
        """How many changes there are of triples; graphs that came and went are not counted."""
        return len(self._entries) - self._graphs

    @property
    def mark(self) -> int:
        """Where the journal ends now."""
        return len(self._entries)

    def note_graph(self, kind: int, graph: Graph) -> None:
        """Note that a graph came or went."""
        self._graphs += 1
        self.note((kind, (None, None, None), graph, False))

    def savepoint(self, names: Mapping[str, str | None]) -> Savepoint:
        """A savepoint here."""
        here = Savepoint(self.mark, names)
        self._savepoints.add(here)
        return here

    def lift_savepoints(self, mark: int) -> list[Savepoint]:
        """Take out the savepoints behind a mark, whose entries are taken back to be noted again."""
        lifted = [savepoint for savepoint in self._savepoints if savepoint.position > mark]
        self._savepoints.difference_update(lifted)
        return lifted

    def put_savepoints(self, lifted: list[Savepoint], position: int) -> None:
        """Put those here that were lifted from a position."""
        for savepoint in lifted:
            if savepoint.position == position:
                savepoint.position = self.mark
                self._savepoints.add(savepoint)

    def forget_before(self, mark: int) -> None:
        """Forget the entries before a mark: they are committed, and so are the prefixes, or there are none."""
        for savepoint in self._savepoints:
            if savepoint.position <= mark:
                savepoint.names = {}
            savepoint.position = max(0, savepoint.position - mark)
        self._graphs -= sum(entry[0] > DELETED for entry in self._entries[:mark])
        del self._entries[:mark]

    def take_back_to(self, mark: int) -> Iterator[Entry]:
        """Remove the entries behind a mark, the last first."""
        for savepoint in self._savepoints:
            savepoint.position = min(savepoint.position, mark)
        while len(self._entries) > mark:
            entry = self._entries.pop()
            self._graphs -= entry[0] > DELETED
            yield entry

    def net(self) -> Net:
        """The quads that are there at the end and were not at the start, and the other way round."""
        net = Net([], [])
        changes = [entry for entry in self._entries if entry[0] <= DELETED] if self._graphs else self._entries
        kinds = {entry[0] for entry in changes}
        if len(kinds) == 1:  # then no quad is there twice
            (kind,) = kinds
            (net.adds if kind == ADDED else net.deletes).extend(_quad(entry) for entry in changes)
            return net
        left: dict[Any, Entry] = {}
        for entry in changes:
            key = _key(entry)
            if left.pop(key, None) is None:
                left[key] = entry
        for entry in left.values():
            (net.adds if entry[0] == ADDED else net.deletes).append(_quad(entry))
        return net


def _quad(entry: Entry) -> RdflibQuad:
    _, (subject, predicate, object_), graph, _ = entry
    return (
        _node(subject),
        predicate,
        _node(object_),
        None if graph is None else graph.identifier,
    )


def _node(term: Any) -> Any:
    """A formula as a term is its blank node, which names the graph of its triples."""
    return term if isinstance(term, str) else term.identifier


def _key(entry: Entry) -> object:
    quad = _quad(entry)
    object_ = quad[2]
    # rdflib takes "a"@en and "a"@EN for one term. In the log they are two.
    return (quad, object_.language) if isinstance(object_, Literal) and object_.language else quad
