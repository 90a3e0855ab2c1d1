"""What stands in a stream, counted straight from the wire: rows by kind, terms by place and kind, bytes.

The names in the reports are those of jelly-cli where it has one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from google.protobuf.unknown_fields import UnknownFieldSet

__all__ = ["Counts", "Detail", "count_frames", "describe_options", "other_format"]

Detail: TypeAlias = Literal["flat", "node", "term", "all"]

_NUMBER: Final = 0
_STRING: Final = 2
_POSITIONS: Final = ("subject", "predicate", "object", "graph")
_NODES: Final = ("iri", "bnode", "literal", "triple", "default_graph", "repeated")
_STATEMENT_ROWS: Final = {"triple": 3, "quad": 4, "statement_add": 4, "statement_delete": 4}
# Where a report has another name for a kind of row than the message.
_ROW_NAMES: Final = {"options": "option", "statement_add": "add", "statement_delete": "delete"}


@dataclass(slots=True)
class Counts:
    """What one frame holds, or several together. Rows are counted by the names that their message gives them."""

    row_kinds: tuple[str, ...]
    frames: int = 0
    frame_bytes: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    row_bytes: Counter[str] = field(default_factory=Counter)
    nodes: Counter[tuple[str, str]] = field(default_factory=Counter)
    metadata: Mapping[str, bytes] = field(default_factory=dict)

    def add(self, other: Counts) -> None:
        """Count what the other holds too. Metadata is that of one frame, and is not added up."""
        self.frames += other.frames
        self.frame_bytes += other.frame_bytes
        self.rows.update(other.rows)
        self.row_bytes.update(other.row_bytes)
        self.nodes.update(other.nodes)

    def report(self, *, detail: Detail | None = None, sizes: bool = False) -> dict[str, Any]:
        """The counts under the names of the report, in its order."""
        names = {kind: _ROW_NAMES.get(kind, kind) for kind in self.row_kinds}
        report: dict[str, Any] = {f"{name}_count": self.rows[kind] for kind, name in names.items()}
        if sizes:
            report |= {f"{name}_size": self.row_bytes[kind] for kind, name in names.items()}
            report["frame_size"] = self.frame_bytes
        if detail in {"flat", "all"}:
            report |= {f"{at}_{node}_count": self.nodes[at, node] for at in _POSITIONS for node in _NODES}
        if detail in {"node", "all"}:
            report["node_details"] = {
                f"{node}_count": sum(self.nodes[at, node] for at in _POSITIONS) for node in _NODES
            }
        if detail in {"term", "all"}:
            # Terms that are written: a repeated one is not in the stream.
            written = _NODES[:-1]
            report["term_details"] = {f"{at}_count": sum(self.nodes[at, node] for node in written) for at in _POSITIONS}
        return report


def count_frames(frames: Iterable[tuple[Any, int]], *, detailed: bool = False) -> Iterator[tuple[Any, Counts]]:
    """Yield each frame's message and counts, from messages and their sizes. Kinds of terms only when `detailed`."""
    for frame, size in frames:
        kinds = tuple(one.name for one in frame.DESCRIPTOR.fields_by_name["rows"].message_type.fields)
        counts = Counts(kinds, frames=1, frame_bytes=size)
        for row in frame.rows:
            kind = row.WhichOneof("row")
            if kind is None:
                continue  # a row with nothing set
            value = getattr(row, kind)
            counts.rows[kind] += 1
            counts.row_bytes[kind] += value.ByteSize()
            if detailed and (terms := _STATEMENT_ROWS.get(kind)):
                for position in _POSITIONS[:terms]:
                    counts.nodes[position, _node(value.WhichOneof(position))] += 1
        if "metadata" in frame.DESCRIPTOR.fields_by_name:
            counts.metadata = dict(frame.metadata)
        yield frame, counts


def _node(member: str | None) -> str:
    """The kind of a term, from the name of the oneof's member: `o_triple_term` is a triple."""
    return "repeated" if member is None else member[2:].removesuffix("_term")


def other_format(options: Any) -> str | None:
    """The format that an options row is one of beyond doubt, where that is not the one that it was read as."""
    fields: Any = UnknownFieldSet(options)
    unknown = {(one.field_number, one.wire_type) for one in fields}
    if options.DESCRIPTOR.name == "RdfStreamOptions":
        return "Jelly-Patch" if (1, _NUMBER) in unknown else None  # the statement type, where the name should be
    return "Jelly-RDF" if {(1, _STRING), (14, _NUMBER)} & unknown else None  # the name, the logical type


def describe_options(options: Any) -> dict[str, Any]:
    """The fields of an options row, enumerations by name and number."""
    return {one.name: _option(getattr(options, one.name), one.enum_type) for one in options.DESCRIPTOR.fields}


def _option(value: Any, enum: Any) -> Any:
    if enum is None:
        return value
    known = enum.values_by_number.get(value)
    return f"{known.name if known else 'UNRECOGNIZED'} ({value})"
