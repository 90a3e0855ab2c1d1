"""What a stream says of itself (options) and what a reader allows (limits).

Options are checked in two steps: an options value checks itself (a writer's mistake), `check_readable` checks what came
off the wire against the reader's limits (a peer's mistake). Knows no bytes.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from enum import IntEnum
from typing import Final

from patchlog.errors import UnsupportedOption, UsageError

__all__ = [
    "BIG",
    "CANONICAL_PATCH",
    "SMALL",
    "Limits",
    "LogicalType",
    "PatchOptions",
    "PhysicalType",
    "RdfOptions",
    "StatementType",
    "StreamType",
    "Tables",
]

MIN_NAME_TABLE_SIZE: Final = 8
MAX_RDF_VERSION: Final = 2
MAX_PATCH_VERSION: Final = 1


class PhysicalType(IntEnum):
    """How a Jelly-RDF stream lays out its statements."""

    UNSPECIFIED = 0
    TRIPLES = 1
    QUADS = 2
    GRAPHS = 3


class LogicalType(IntEnum):
    """What a Jelly-RDF stream means (RDF-STaX)."""

    UNSPECIFIED = 0
    FLAT_TRIPLES = 1
    FLAT_QUADS = 2
    GRAPHS = 3
    DATASETS = 4
    SUBJECT_GRAPHS = 13
    NAMED_GRAPHS = 14
    TIMESTAMPED_NAMED_GRAPHS = 114

    @property
    def base(self) -> LogicalType:
        """The base type that this is a subtype of."""
        return LogicalType(self % 10)

    @property
    def is_grouped(self) -> bool:
        """Whether each frame is an element of the stream (a graph or a dataset)."""
        return self.base in (LogicalType.GRAPHS, LogicalType.DATASETS)


class StatementType(IntEnum):
    """Whether the statements of a Jelly-Patch stream are triples or quads."""

    UNSPECIFIED = 0
    TRIPLES = 1
    QUADS = 2


class StreamType(IntEnum):
    """How a Jelly-Patch stream is divided into patches."""

    UNSPECIFIED = 0
    FRAME = 1
    FLAT = 2
    PUNCTUATED = 3


@dataclass(frozen=True, slots=True)
class Tables:
    """Sizes of the three lookup tables. `BIG` and `SMALL` are the presets that all implementations share."""

    names: int
    prefixes: int
    datatypes: int


BIG: Final = Tables(4000, 150, 32)
SMALL: Final = Tables(128, 32, 32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a reader allows before it refuses. The defaults are safe for input from strangers; raise what you must.

    `max_decoded_frame_bytes` counts the terms of each statement as if repeats were written out: it is what stops a
    small frame from growing into gigabytes.
    """

    max_name_table_size: int = 4096
    max_prefix_table_size: int = 1024
    max_datatype_table_size: int = 256
    max_frame_bytes: int = 64 << 20
    max_rows_per_frame: int = 2 << 20
    max_nesting_depth: int = 64
    max_decoded_frame_bytes: int = 256 << 20

    def __post_init__(self) -> None:
        for name, limit in asdict(self).items():
            if not 0 <= limit < 1 << 63:
                raise UsageError(f"{name} is {limit}; a limit is a number from 0 to 2^63 - 1")


_CONSISTENT_PHYSICAL_TYPES: Final = {
    LogicalType.UNSPECIFIED: {PhysicalType.TRIPLES, PhysicalType.QUADS, PhysicalType.GRAPHS},
    LogicalType.FLAT_TRIPLES: {PhysicalType.TRIPLES},
    LogicalType.GRAPHS: {PhysicalType.TRIPLES},
    LogicalType.FLAT_QUADS: {PhysicalType.QUADS, PhysicalType.GRAPHS},
    LogicalType.DATASETS: {PhysicalType.QUADS, PhysicalType.GRAPHS},
}


def _check_table_sizes(names: int, prefixes: int, datatypes: int, limits: Limits | None) -> None:
    if names < MIN_NAME_TABLE_SIZE:
        raise UnsupportedOption(f"the name table holds {names} entries; at least {MIN_NAME_TABLE_SIZE} are needed")
    if limits is None:
        return
    for what, size, limit in (
        ("name", names, limits.max_name_table_size),
        ("prefix", prefixes, limits.max_prefix_table_size),
        ("datatype", datatypes, limits.max_datatype_table_size),
    ):
        if size > limit:
            raise UnsupportedOption(
                f"the stream asks for a {what} table of {size} entries; this reader allows {limit} "
                f"(Limits.max_{what}_table_size)"
            )


def _check_numbers(**numbers: int) -> None:
    """Raise UnsupportedOption for what the wire has no room for."""
    for name, number in numbers.items():
        if not 0 <= number < 1 << 32:
            raise UnsupportedOption(f"{name} is {number}; it is a number from 0 to 2^32 - 1")


def _check_version(version: int, newest: int, *, strict: bool) -> None:
    if version > newest:
        raise UnsupportedOption(f"the stream has version {version}; this reader knows versions up to {newest}")
    if version == 0 and strict:
        raise UnsupportedOption("the stream has no version; version 0 is not allowed")


@dataclass(frozen=True, slots=True, kw_only=True)
class RdfOptions:
    """Options of a Jelly-RDF stream. What is not given is chosen as most writers choose it."""

    physical_type: PhysicalType = PhysicalType.QUADS
    logical_type: LogicalType = LogicalType.UNSPECIFIED
    stream_name: str = ""
    generalized_statements: bool = False
    rdf_star: bool = False
    max_name_table_size: int = BIG.names
    max_prefix_table_size: int = BIG.prefixes
    max_datatype_table_size: int = BIG.datatypes
    version: int = 1

    def __post_init__(self) -> None:
        _check_numbers(
            max_name_table_size=self.max_name_table_size,
            max_prefix_table_size=self.max_prefix_table_size,
            max_datatype_table_size=self.max_datatype_table_size,
            version=self.version,
        )

    @property
    def tables(self) -> Tables:
        """The sizes of the lookup tables."""
        return Tables(self.max_name_table_size, self.max_prefix_table_size, self.max_datatype_table_size)

    def with_tables(self, tables: Tables) -> RdfOptions:
        """The same options with other table sizes."""
        return replace(
            self,
            max_name_table_size=tables.names,
            max_prefix_table_size=tables.prefixes,
            max_datatype_table_size=tables.datatypes,
        )

    def check_consistent(self) -> None:
        """Raise UnsupportedOption where the options contradict each other."""
        if self.physical_type == PhysicalType.UNSPECIFIED:
            raise UnsupportedOption("the physical type of the stream is not set")
        if self.physical_type not in _CONSISTENT_PHYSICAL_TYPES[self.logical_type.base]:
            raise UnsupportedOption(
                f"logical type {self.logical_type.name} does not go with physical type {self.physical_type.name}"
            )

    def check_readable(self, limits: Limits, *, strict: bool) -> None:
        """Raise UnsupportedOption where a reader with these limits cannot read such a stream."""
        if self.physical_type == PhysicalType.UNSPECIFIED:
            raise UnsupportedOption("the physical type of the stream is not set")
        _check_version(self.version, MAX_RDF_VERSION, strict=strict)
        _check_table_sizes(self.max_name_table_size, self.max_prefix_table_size, self.max_datatype_table_size, limits)
        if strict:
            self.check_consistent()

    def check_writable(self) -> None:
        """Raise UnsupportedOption where a writer cannot write such a stream."""
        self.check_consistent()
        _check_version(self.version, MAX_RDF_VERSION, strict=True)
        _check_table_sizes(self.max_name_table_size, self.max_prefix_table_size, self.max_datatype_table_size, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchOptions:
    """Options of a Jelly-Patch stream."""

    statement_type: StatementType = StatementType.QUADS
    stream_type: StreamType = StreamType.PUNCTUATED
    generalized_statements: bool = False
    rdf_star: bool = False
    max_name_table_size: int = BIG.names
    max_prefix_table_size: int = BIG.prefixes
    max_datatype_table_size: int = BIG.datatypes
    version: int = 1

    def __post_init__(self) -> None:
        _check_numbers(
            max_name_table_size=self.max_name_table_size,
            max_prefix_table_size=self.max_prefix_table_size,
            max_datatype_table_size=self.max_datatype_table_size,
            version=self.version,
        )

    @property
    def tables(self) -> Tables:
        """The sizes of the lookup tables."""
        return Tables(self.max_name_table_size, self.max_prefix_table_size, self.max_datatype_table_size)

    def with_tables(self, tables: Tables) -> PatchOptions:
        """The same options with other table sizes."""
        return replace(
            self,
            max_name_table_size=tables.names,
            max_prefix_table_size=tables.prefixes,
            max_datatype_table_size=tables.datatypes,
        )

    def check_readable(self, limits: Limits, *, strict: bool) -> None:
        """Raise UnsupportedOption where a reader with these limits cannot read such a stream."""
        if self.statement_type == StatementType.UNSPECIFIED:
            raise UnsupportedOption("the statement type of the patch stream is not set")
        if self.stream_type == StreamType.UNSPECIFIED:
            raise UnsupportedOption("the stream type of the patch stream is not set")
        _check_version(self.version, MAX_PATCH_VERSION, strict=strict)
        _check_table_sizes(self.max_name_table_size, self.max_prefix_table_size, self.max_datatype_table_size, limits)

    def check_writable(self) -> None:
        """Raise UnsupportedOption where a writer cannot write such a stream."""
        if self.statement_type == StatementType.UNSPECIFIED or self.stream_type == StreamType.UNSPECIFIED:
            raise UnsupportedOption("a patch stream needs a statement type and a stream type")
        _check_version(self.version, MAX_PATCH_VERSION, strict=True)
        _check_table_sizes(self.max_name_table_size, self.max_prefix_table_size, self.max_datatype_table_size, None)


CANONICAL_PATCH: Final = PatchOptions(rdf_star=True, generalized_statements=True)
