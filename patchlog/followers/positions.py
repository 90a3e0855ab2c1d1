"""How a position is written into a dataset: a few quads a log, in a graph of their own.

    GRAPH <urn:patchlog:positions> {
        <urn:uuid:LOG-ID> <urn:patchlog:position> 5 ;
                          <urn:patchlog:history> "5:CHAIN-HASH" ;
                          <urn:patchlog:name> "people" ;
                          <urn:patchlog:part> "everything" .
    }

The first alone is what earlier versions wrote. The version stands in two of them, so that the parts of two records
that a restarted store has got mixed are told apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from patchlog.errors import UsageError
from patchlog.log.position import Position, least_position
from patchlog.log.records import LogDescription
from patchlog.model import Quad, Term
from patchlog.text.terms import Literal, iri_term, literal_term, parse_term, unescape

__all__ = ["GRAPH", "LOADS", "PREDICATE", "DamagedRecord", "OtherPart", "Positions", "position_quad", "values_of"]

GRAPH: Final = "urn:patchlog:positions"
PREDICATE: Final = "urn:patchlog:position"
LOADS: Final = "urn:patchlog:loads"
"""In the place of a position while a snapshot is on its way in."""
_HISTORY: Final = "urn:patchlog:history"
_NAME: Final = "urn:patchlog:name"
_PART: Final = "urn:patchlog:part"
_RECORD: Final = (PREDICATE, _HISTORY, _NAME, _PART)
_INTEGER: Final = "http://www.w3.org/2001/XMLSchema#integer"
_URN: Final = "urn:uuid:"


class OtherPart(UsageError):
    """The target has another part of the log than the one that is followed now."""


class DamagedRecord(UsageError):
    """What the target keeps of its position cannot be read."""


class Positions:
    """The record of one log in the graph of positions, as it was read and as it is written.

    `log_id` is the subject of the record, under which the target knows the log. `kept` is what the target has.
    """

    def __init__(self, log: LogDescription, part: str) -> None:
        self._log = log
        self._part = part
        self.log_id = log.id
        self.kept: Position | None = None
        self.stored: list[Quad] = []
        self.others: list[Quad] = []
        """Records of other logs of the same name, which this log replaces where it is followed from its start again."""

    def read(self, rows: Iterable[tuple[str, str, str]]) -> Position | None:
        """Return the position in the triples of the graph, whose terms come as IRIs and lexical forms; None for none.

        It is that of another log where the target has a log of this name that is not this one. Of several versions the
        least is the position: a store that was restarted, or restored, between two writes has got the later one
        without what came before, and effects may be applied again.

        Raises DamagedRecord, OtherPart.
        """
        records: defaultdict[str, defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        for subject, predicate, object in rows:
            if subject.startswith(_URN) and predicate in _RECORD:
                records[subject.removeprefix(_URN)][predicate].add(object)
        others = [id for id, record in records.items() if id != self._log.id and self._log.name in record[_NAME]]
        self.others = [quad for id in others for quad in _as_quads(id, records[id])]
        own = self._log.id if records[self._log.id][PREDICATE] or not others else min(others)
        record, self.log_id = records[own], own
        self.stored = _as_quads(own, record)
        self.kept = _position(own, record)
        if self.kept is not None and record[_PART] and self._part not in record[_PART]:
            raise OtherPart(
                f"the target has another part of the log {self._log.name!r} than is asked for now: it has "
                f"{min(record[_PART])}, and this is {self._part}. Follow into a new target, or start this one again "
                "from the log with --replace (replace=True)"
            )
        return self.kept

    def record(self, position: Position) -> list[Quad]:
        """Return all quads of the record at a position."""
        record = {
            PREDICATE: {str(position.version)},
            _HISTORY: set() if position.hash is None else {f"{position.version}:{position.hash.hex()}"},
            _NAME: {self._log.name},
            _PART: {self._part},
        }
        return _as_quads(self.log_id, record)

    def move(self, position: Position, *, replaces: bool = False) -> tuple[list[Quad], list[Quad]]:
        """Return what to delete and what to add so that the record is that of a position.

        What stays is in neither. So a store that was emptied in between lacks it afterwards, and shows that.
        """
        before = {*self.stored, *(self.others if replaces else ())}
        after = set(self.record(position))
        return sorted(before - after), sorted(after - before)

    def moved(self, position: Position) -> None:
        """Note that the record in the target is that of a position."""
        self.stored = self.record(position)
        self.kept = Position(self.log_id, position.version, position.hash)

    @property
    def ids(self) -> set[str]:
        """The logs that this one is, or takes the place of."""
        return {self._log.id, *(quad[0][len(f"<{_URN}") : -1] for quad in (*self.stored, *self.others))}

    def start_again(self) -> None:
        """Let the record be that of this log, whatever was read, which a load replaces."""
        self.others = [*self.others, *self.stored]
        self.log_id, self.kept, self.stored = self._log.id, None, []


def position_quad(log_id: str, version: int) -> Quad:
    """The quad that says how far a log was followed."""
    return _quad(log_id, PREDICATE, str(version), _INTEGER)


def values_of(quads: Iterable[Quad]) -> Iterator[tuple[str, str, str]]:
    """The quads of records as `Positions.read` takes them."""
    for subject, predicate, object, _ in quads:
        value = parse_term(object)
        if isinstance(value, Literal):
            yield unescape(subject[1:-1]), unescape(predicate[1:-1]), value.lexical


def _position(log_id: str, record: dict[str, set[str]]) -> Position | None:
    if not record[PREDICATE] or (record[_HISTORY] and not record[_NAME]):
        return None
    try:
        return least_position(log_id, record[PREDICATE], record[_HISTORY])
    except UsageError as error:
        raise DamagedRecord(
            f"in the graph <{GRAPH}> of the target, of the log {log_id}, {error}. Start the target again from the log "
            "with --replace (replace=True), or put right what is there"
        ) from None


def _as_quads(log_id: str, record: dict[str, set[str]]) -> list[Quad]:
    return [
        _quad(log_id, predicate, value, _INTEGER if predicate == PREDICATE else None)
        for predicate in _RECORD
        for value in sorted(record[predicate])
    ]


def _quad(log_id: str, predicate: str, value: Term, datatype: str | None = None) -> Quad:
    return iri_term(f"{_URN}{log_id}"), iri_term(predicate), literal_term(value, datatype=datatype), iri_term(GRAPH)
