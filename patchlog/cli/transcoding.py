"""Converters for commands: from text of any lines, and what `transcode` has to know before it writes.

That is the options of its inputs, and options that are enough for all.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from patchlog.cli.files import STANDARD, reading
from patchlog.cli.options import NO_LIMITS
from patchlog.cli.outcome import Session, about
from patchlog.codec.faces import ConverterFace, SinkFormat, SourceFormat
from patchlog.codec.options import (
    MIN_NAME_TABLE_SIZE,
    Limits,
    LogicalType,
    PatchOptions,
    PhysicalType,
    RdfOptions,
    StatementType,
    StreamType,
)
from patchlog.engine import Converter
from patchlog.formats import Format
from patchlog.streams import chunks_of

__all__ = ["enough_for_all_patches", "enough_for_all_rdf", "look_ahead", "text_converter"]

Options = TypeVar("Options", RdfOptions, PatchOptions)
Probed = TypeVar("Probed")


def text_converter(source: SourceFormat, sink: SinkFormat, *, limits: Limits, **settings: Any) -> ConverterFace:
    """A converter from text. Without limits that is the pure one: the native one reads no line of more than 64 MiB."""
    if limits is not NO_LIMITS:
        return Converter(source, sink, limits=limits, **settings)
    from patchlog.pure import Converter as PureConverter

    return PureConverter(source, sink, limits=limits, max_line_bytes=sys.maxsize, **settings)


def look_ahead(
    path: str, session: Session, read_as: Format, probe: Callable[[Iterable[bytes]], Probed]
) -> tuple[Probed, Iterable[bytes]]:
    """What a probe says of the beginning of an input, and all of its bytes."""
    chunks = reading(path, session)
    with about(path, read_as):
        if path != STANDARD and Path(path).is_file():
            return probe(chunks_of(path)), chunks
        # What can be read only once is kept as far as it was looked at.
        seen: list[bytes] = []

        def kept() -> Iterator[bytes]:
            for chunk in chunks:
                seen.append(chunk)
                yield chunk

        return probe(kept()), chain(seen, chunks)


def enough_for_all_rdf(known: Sequence[RdfOptions], chosen: Mapping[str, Any]) -> RdfOptions:
    """The types of the inputs where they agree, else quads; tables and features that are enough for all."""
    first = known[0]
    same_layout = all(options.physical_type == first.physical_type for options in known)
    physical_type = chosen.get("physical_type", first.physical_type if same_layout else PhysicalType.QUADS)
    keeps_meaning = same_layout and physical_type == first.physical_type
    same_meaning = keeps_meaning and all(options.logical_type == first.logical_type for options in known)
    types = {
        "physical_type": physical_type,
        "logical_type": first.logical_type if same_meaning else LogicalType.UNSPECIFIED,
    }
    return replace(_widened(known), **{**types, **chosen})


def enough_for_all_patches(
    known: Sequence[PatchOptions], chosen: Mapping[str, Any], *, concatenated: bool
) -> PatchOptions:
    """The types of the inputs where they agree, else those that hold anything; tables and features enough for all.

    A FLAT stream is one patch, so several of them are PUNCTUATED together.
    """
    first = known[0]
    same_division = all(options.stream_type == first.stream_type for options in known)
    same_statements = all(options.statement_type == first.statement_type for options in known)
    if (len(known) > 1 or concatenated) and first.stream_type == StreamType.FLAT:
        same_division = False
    types = {
        "stream_type": first.stream_type if same_division else StreamType.PUNCTUATED,
        "statement_type": first.statement_type if same_statements else StatementType.QUADS,
    }
    return replace(_widened(known), **{**types, **chosen})


def _widened(known: Sequence[Options]) -> Options:
    return replace(
        known[0],
        generalized_statements=any(options.generalized_statements for options in known),
        rdf_star=any(options.rdf_star for options in known),
        # The alpha layout allowed smaller ones.
        max_name_table_size=max(MIN_NAME_TABLE_SIZE, *(options.max_name_table_size for options in known)),
        max_prefix_table_size=max(options.max_prefix_table_size for options in known),
        max_datatype_table_size=max(options.max_datatype_table_size for options in known),
        version=max(options.version or 1 for options in known),
    )
