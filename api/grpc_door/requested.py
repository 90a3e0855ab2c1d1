"""Which options a stream has that a subscriber gets: compatible with those that it asks for.

    physical_type                             the same; without a wish QUADS
    generalized_statements, rdf_star          true only where the subscriber and the log both allow it
    max_…_table_size                          at most what is asked for, and at most 4000, 150 and 32
    version                                   at most what is asked for; 2 where namespaces are declared
    logical_type                              the same where it goes with the physical type
    stream_name                               the same

What a message leaves out is 0 on the wire. A message without any option has no wishes. In one with options a version of
0, and a name table of 0, are no wish either, as no stream has them; a prefix or datatype table of 0 is a table that the
stream must not use, unless the name table is 0 too. Without a physical type it is one that the logical type goes with.
"""

from __future__ import annotations

from typing import Any, Final

from patchlog.codec.options import BIG, LogicalType, PhysicalType, RdfOptions
from patchlog.errors import UnsupportedOption
from patchlog.log.records import LogOptions

__all__ = ["stream_options"]

_NEWEST: Final = 2
_LEAST_NAMES: Final = 8


def stream_options(requested: Any, log: LogOptions) -> RdfOptions:
    """The options of the stream. Raises UnsupportedOption, which names the option that cannot be."""
    if not requested.ByteSize():
        return RdfOptions(
            logical_type=LogicalType.FLAT_QUADS,
            generalized_statements=log.generalized_statements,
            rdf_star=log.rdf_star,
            version=_NEWEST,
        )
    logical = _known(LogicalType, "logical_type", requested.logical_type)
    physical = _known(PhysicalType, "physical_type", requested.physical_type) or _physical_type_for(logical)
    has_tables = requested.max_name_table_size > 0
    if has_tables and requested.max_name_table_size < _LEAST_NAMES:
        raise UnsupportedOption(
            f"max_name_table_size is {requested.max_name_table_size}: no stream does with fewer than {_LEAST_NAMES}"
        )
    options = RdfOptions(
        physical_type=physical,
        logical_type=logical,
        stream_name=requested.stream_name,
        generalized_statements=requested.generalized_statements and log.generalized_statements,
        rdf_star=requested.rdf_star and log.rdf_star,
        max_name_table_size=min(requested.max_name_table_size, BIG.names) if has_tables else BIG.names,
        max_prefix_table_size=_size(requested.max_prefix_table_size, BIG.prefixes, is_wish=has_tables),
        max_datatype_table_size=_size(requested.max_datatype_table_size, BIG.datatypes, is_wish=has_tables),
        version=min(requested.version or _NEWEST, _NEWEST),
    )
    try:
        options.check_consistent()
    except UnsupportedOption as error:
        raise UnsupportedOption(f"logical_type: {error}") from error
    return options


def _size(wanted: int, most: int, *, is_wish: bool) -> int:
    """The size of a table, of which none at all may be a wish."""
    return min(wanted, most) if wanted or is_wish else most


def _physical_type_for(logical: LogicalType) -> PhysicalType:
    is_of_triples = logical.base in (LogicalType.FLAT_TRIPLES, LogicalType.GRAPHS)
    return PhysicalType.TRIPLES if is_of_triples else PhysicalType.QUADS


def _known(kind: Any, name: str, number: int) -> Any:
    try:
        return kind(number)
    except ValueError:
        raise UnsupportedOption(f"{name} is {number}, which stands for nothing here") from None
