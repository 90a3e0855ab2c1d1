"""The options messages of both formats, between wire and values."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final, TypeVar

from patchlog.codec.fields import Message, string_field, uint_field
from patchlog.codec.options import LogicalType, PatchOptions, PhysicalType, RdfOptions, StatementType, StreamType
from patchlog.errors import UnsupportedOption

__all__ = ["read_patch_options", "read_rdf_options", "write_patch_options", "write_rdf_options"]

_WORDS: Final[Mapping[type[IntEnum], str]] = {
    PhysicalType: "physical type",
    LogicalType: "logical type",
    StatementType: "statement type",
    StreamType: "stream type",
}
_Enum = TypeVar("_Enum", bound=IntEnum)


def _known(kind: type[_Enum], number: int) -> _Enum:
    try:
        return kind(number)
    except ValueError:
        raise UnsupportedOption(f"{_WORDS[kind]} {number} is not known") from None


def read_rdf_options(data: bytes, position: int, end: int, *, strict: bool) -> RdfOptions:
    """Read an RdfStreamOptions message. Whether its values go together is not looked at."""
    message = Message(data, position, end)
    stream_name = str(message.content(1), "utf-8", "strict" if strict else "replace")
    physical_type = _known(PhysicalType, message.number(2))
    try:
        logical_type = _known(LogicalType, message.number(14))
    except UnsupportedOption:
        if strict:
            raise
        logical_type = LogicalType.UNSPECIFIED
    return RdfOptions(
        physical_type=physical_type,
        logical_type=logical_type,
        stream_name=stream_name,
        generalized_statements=message.claim(3),
        rdf_star=message.claim(4),
        max_name_table_size=message.number(9),
        max_prefix_table_size=message.number(10),
        max_datatype_table_size=message.number(11),
        version=message.number(15),
    )


def read_patch_options(data: bytes, position: int, end: int) -> PatchOptions:
    """Read an RdfPatchOptions message. Whether its values go together is not looked at."""
    message = Message(data, position, end)
    return PatchOptions(
        statement_type=_known(StatementType, message.number(1)),
        stream_type=_known(StreamType, message.number(2)),
        generalized_statements=message.claim(3),
        rdf_star=message.claim(4),
        max_name_table_size=message.number(9),
        max_prefix_table_size=message.number(10),
        max_datatype_table_size=message.number(11),
        version=message.number(15),
    )


def _flags_and_tables(options: RdfOptions | PatchOptions) -> bytes:
    return (
        uint_field(3, options.generalized_statements)
        + uint_field(4, options.rdf_star)
        + uint_field(9, options.max_name_table_size)
        + uint_field(10, options.max_prefix_table_size)
        + uint_field(11, options.max_datatype_table_size)
    )


def write_rdf_options(options: RdfOptions) -> bytes:
    """Write an RdfStreamOptions message."""
    return (
        string_field(1, options.stream_name)
        + uint_field(2, options.physical_type)
        + _flags_and_tables(options)
        + uint_field(14, options.logical_type)
        + uint_field(15, options.version)
    )


def write_patch_options(options: PatchOptions) -> bytes:
    """Write an RdfPatchOptions message."""
    return (
        uint_field(1, options.statement_type)
        + uint_field(2, options.stream_type)
        + _flags_and_tables(options)
        + uint_field(15, options.version)
    )
