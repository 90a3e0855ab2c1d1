"""`patchlog patch inspect` and `validate`."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import repeat, zip_longest

import click

from patchlog import patch
from patchlog.cli.checks import Delimiting, check_stream, counted
from patchlog.cli.files import STANDARD, file_name, reading, source_of
from patchlog.cli.options import (
    FILE,
    common,
    concatenated_input,
    delimiting,
    format_option,
    input_file,
    inspection,
    output,
    reading_options,
)
from patchlog.cli.outcome import CheckFailed, Session, about, label, naming
from patchlog.cli.seams import minding_seams
from patchlog.codec.options import Limits
from patchlog.engine import PatchDecoder
from patchlog.errors import TransactionError
from patchlog.formats import JELLY_PATCH, PATCH_FORMATS, RDF_PATCH, choose_format
from patchlog.inspection import Detail
from patchlog.model import (
    DEFAULT_GRAPH,
    Add,
    Delete,
    NamespaceAdd,
    NamespaceDelete,
    Operation,
    Punctuation,
    TransactionAbort,
    TransactionCommit,
    TransactionStart,
)
from patchlog.pipes import drain

__all__ = ["inspect", "validate"]


@click.command("inspect", short_help="Count what is in Jelly-Patch.")
@input_file
@output
@inspection
@reading_options
@common
def inspect(
    session: Session,
    *,
    path: str,
    to: str,
    per_frame: bool,
    detail: Detail | None,
    sizes: bool,
    strict: bool,
    limits: Limits,
) -> None:
    """Print the options of a Jelly-Patch stream, and how many rows of each kind it has, as YAML.

    Rows are counted as they stand in the bytes. A stream that breaks the rules can be looked at, as long as its
    frames are protobuf messages that begin with options.
    """
    from patchlog.cli.reports import Report, inspect_stream

    inspect_stream(path, session, JELLY_PATCH, Report(per_frame, detail, sizes), to=to, limits=limits, strict=strict)


@click.command("validate", short_help="Check that Jelly-Patch keeps the rules.")
@input_file
@click.option(
    "--compare-to-patch-file", type=FILE, metavar="FILE", help="A patch file that has to hold the same operations."
)
@format_option("--compare-to-format", PATCH_FORMATS, "Its format, where its name does not say it.")
@click.option("--options-file", type=FILE, metavar="FILE", help="A Jelly-Patch file that has to have the same options.")
@delimiting
@concatenated_input
@reading_options
@common
def validate(
    session: Session,
    *,
    path: str,
    compare_to_patch_file: str | None,
    compare_to_format: str | None,
    options_file: str | None,
    delimited: Delimiting,
    concatenated: bool,
    strict: bool,
    limits: Limits,
) -> None:
    """Read Jelly-Patch to its end and check every rule, the order of transactions included."""
    compare_to = compare_to_patch_file and choose_format(
        compare_to_format,
        file_name(compare_to_patch_file),
        PATCH_FORMATS,
        default=RDF_PATCH if compare_to_patch_file == STANDARD else None,
    )
    decoder = PatchDecoder(limits=limits, strict=strict, concatenated=concatenated)
    seen = _Seen()
    with minding_seams(path, session, JELLY_PATCH, concatenated=concatenated) as seams, about(path, JELLY_PATCH):
        operations = seen.count(drain(decoder, seams.watch(reading(path, session))))
        if not compare_to_patch_file or not compare_to:
            deque(operations, maxlen=0)
        else:
            source = source_of(compare_to_patch_file, session)
            expected = naming(compare_to_patch_file, patch.read(source, compare_to.name))
            _compare(operations, expected, label(compare_to_patch_file))
        if strict and seen.is_in_transaction:
            raise TransactionError("the input ends inside a transaction: commit or abort it")
        check_stream(
            decoder,
            delimited=delimited,
            options_file=options_file,
            read_options=patch.read_options,
            read_as=JELLY_PATCH,
            session=session,
        )
    if not session.is_quiet:
        click.echo(
            f"{label(path)} is valid: {counted(seen.operations, 'operation')} in {counted(seen.patches, 'patch')}"
        )


@dataclass(slots=True)
class _Seen:
    """How much a stream has, counted while it goes by."""

    operations: int = 0
    patches: int = 0
    is_in_transaction: bool = False

    def count(self, operations: Iterable[Operation]) -> Iterator[Operation]:
        is_in_patch = False
        for operation in operations:
            is_in_patch = not isinstance(operation, Punctuation)
            if isinstance(operation, TransactionStart):
                self.is_in_transaction = True
            elif isinstance(operation, TransactionCommit | TransactionAbort | Punctuation):
                self.is_in_transaction = False
            if is_in_patch:
                self.operations += 1
            else:
                self.patches += 1
            yield operation
        self.patches += is_in_patch


def _compare(operations: Iterable[Operation], expected: Iterable[Operation], source: str) -> None:
    pairs = zip_longest(_comparable(operations), _comparable(expected))
    for number, (found, wanted) in enumerate(pairs):
        if found != wanted:
            raise CheckFailed(
                f"the operations are not those of {source}: operation {number}: "
                f"expected {wanted or 'the end'}, found {found or 'the end'}"
            )


def _comparable(operations: Iterable[Operation]) -> Iterator[Operation]:
    """Operations without what RDF Patch text leaves out: the default graph, a deleted namespace's IRI, the last end."""
    ends = 0
    for operation in operations:
        if isinstance(operation, Punctuation):
            ends += 1
            continue
        yield from repeat(Punctuation(), ends)
        ends = 0
        match operation:
            case NamespaceDelete(name, _, graph):
                yield NamespaceDelete(name, None, graph or DEFAULT_GRAPH)
            case Add() | Delete() | NamespaceAdd():
                yield replace(operation, graph=operation.graph or DEFAULT_GRAPH)
            case _:
                yield operation
