"""`patchlog patch diff`, `apply`, `squash` and `invert`: what patches do to datasets, and patches made of that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

import click

from patchlog import effect as effects
from patchlog.cli.datasets import DATASET_FORMATS, Files, applied
from patchlog.cli.files import file_name, writing
from patchlog.cli.options import FILE, common, format_option, output, reading_options
from patchlog.cli.outcome import Session
from patchlog.codec.faces import OperationEncoderFace
from patchlog.codec.options import Limits, LogicalType, PhysicalType
from patchlog.effect import Effect, NamespaceKey
from patchlog.engine import CanonicalPatchEncoder, RdfEncoder, RdfPatchWriter
from patchlog.formats import JELLY, JELLY_PATCH, PATCH_FORMATS, RDF_FORMATS, RDF_PATCH, choose_format
from patchlog.model import DEFAULT_GRAPH, Operation, Quad, RdfFrame, Term, as_quad
from patchlog.pipes import batches
from patchlog.rdf import WRITABLE_FORMATS, encode_frames, suitable_options
from patchlog.streams import Write
from patchlog.syntaxes import write_syntax

__all__ = ["apply", "diff", "invert", "squash"]

_WRITTEN: Final = (RDF_PATCH, JELLY_PATCH)

_patch_format = format_option("--patch-format", PATCH_FORMATS, "The format of patches whose names do not say it.")
_in_format = format_option("--in-format", RDF_FORMATS, "The format of datasets whose names do not say it.")
_out_format = format_option(
    "--out-format",
    _WRITTEN,
    "rdf-patch or jelly-patch (canonical).  [default: what the output is named, else rdf-patch]",
)


@click.command("diff", short_help="Make the patch between two datasets.")
@click.argument("before", type=FILE, metavar="BEFORE")
@click.argument("after", type=FILE, metavar="AFTER")
@output
@format_option("--in-format", DATASET_FORMATS, "The format of files whose names do not say it.")
@_out_format
@click.option(
    "--enable-namespace-declarations",
    is_flag=True,
    help="Compare the prefixes that datasets declare. Those of patch files are always compared.",
)
@reading_options
@common
def diff(
    session: Session,
    *,
    before: str,
    after: str,
    to: str,
    in_format: str | None,
    out_format: str | None,
    enable_namespace_declarations: bool,
    strict: bool,
    limits: Limits,
) -> None:
    """Make the patch that turns BEFORE into AFTER.

    Both are datasets of any RDF format, or files of patches, which stand for what they leave behind. Blank nodes are
    the same where their labels are the same. Both are held in memory.
    """
    files = Files(session, limits, strict)
    old, new = files.contents(before, in_format), files.contents(after, in_format)
    if not (enable_namespace_declarations or (old.is_log and new.is_log)):
        old.namespaces.clear()
        new.namespaces.clear()
    _write_patch(effects.diff(old.quads, new.quads, old.namespaces, new.namespaces), to, out_format, session)


@click.command("squash", short_help="Make one patch of many.")
@click.argument("paths", type=FILE, metavar="PATCH...", nargs=-1, required=True)
@output
@_patch_format
@_out_format
@reading_options
@common
def squash(
    session: Session,
    *,
    paths: Sequence[str],
    to: str,
    patch_format: str | None,
    out_format: str | None,
    strict: bool,
    limits: Limits,
) -> None:
    """Make one patch with the net effect of many, in their order.

    Aborted transactions are gone, of several operations on a quad the last one is left, and headers are left out. The
    changed quads are held in memory.
    """
    operations = Files(session, limits, strict).operations(paths, patch_format)
    _write_patch(effects.squash(operations), to, out_format, session)


@click.command("invert", short_help="Make the patch that undoes others.")
@click.argument("paths", type=FILE, metavar="PATCH...", nargs=-1, required=True)
@click.option("--dataset", type=FILE, metavar="FILE", required=True, help="The dataset as it was before the patches.")
@output
@_patch_format
@_in_format
@_out_format
@reading_options
@common
def invert(
    session: Session,
    *,
    paths: Sequence[str],
    dataset: str,
    to: str,
    patch_format: str | None,
    in_format: str | None,
    out_format: str | None,
    strict: bool,
    limits: Limits,
) -> None:
    """Make the patch that undoes patches on a dataset.

    It takes back what they changed there: what was there already and is added stays. The dataset goes by as a stream.
    """
    files = Files(session, limits, strict)
    change = effects.effect(files.operations(paths, patch_format))
    changed = change.adds | change.deletes
    quads: set[Quad] = set()
    namespaces: dict[NamespaceKey, Term] = {}
    for frame in files.frames(dataset, in_format):
        quads.update(quad for statement in frame.statements if (quad := as_quad(statement)) in changed)
        namespaces.update(((DEFAULT_GRAPH, name), iri) for name, iri in frame.namespaces)
    _write_patch(effects.invert(change, quads, namespaces), to, out_format, session)


def _write_patch(operations: Iterable[Operation], to: str, out_format: str | None, session: Session) -> None:
    chosen = choose_format(out_format, file_name(to), _WRITTEN, default=RDF_PATCH)
    encoder: OperationEncoderFace = RdfPatchWriter() if chosen is RDF_PATCH else CanonicalPatchEncoder()
    with writing(to, session, is_text=chosen is RDF_PATCH) as write:
        for batch in batches(operations):
            for operation in batch:
                encoder.accept(operation)
            write(encoder.take())
        write(encoder.finish())


@click.command("apply", short_help="Apply patches to a dataset.")
@click.argument("patches", type=FILE, metavar="PATCH...", nargs=-1, required=True)
@click.argument("dataset", type=FILE, metavar="DATASET")
@output
@_patch_format
@_in_format
@format_option(
    "--out-format",
    WRITABLE_FORMATS,
    "The format of the result.  [default: what the output is named, else that of the dataset]",
)
@reading_options
@common
def apply(
    session: Session,
    *,
    patches: Sequence[str],
    dataset: str,
    to: str,
    patch_format: str | None,
    in_format: str | None,
    out_format: str | None,
    strict: bool,
    limits: Limits,
) -> None:
    """Apply patches to a dataset, in their order, and write what is then there.

    A patch takes effect whole: what an aborted or unfinished transaction holds does not. The dataset goes by as a
    stream; the changed quads are held in memory. `--to` may name the dataset itself.
    """
    files = Files(session, limits, strict)
    source = files.dataset_format(dataset, in_format)
    chosen = choose_format(
        out_format, file_name(to), WRITABLE_FORMATS, default=source if source in WRITABLE_FORMATS else JELLY
    )
    change = effects.effect(files.operations(patches, patch_format))
    frames = applied(files.frames(dataset, source.name), change)
    with writing(to, session, is_text=chosen is not JELLY) as write:
        if chosen is JELLY:
            _write_jelly(frames, change, write)
        else:
            write_syntax(write, frames, chosen)


def _write_jelly(frames: Iterator[RdfFrame], change: Effect, write: Write) -> None:
    first = next(frames)
    options, frames = suitable_options(chain([first], frames), is_grouped=False)
    if any(graph for *_, graph in change.adds):
        options = replace(options, physical_type=PhysicalType.QUADS, logical_type=LogicalType.FLAT_QUADS)
    encoder = RdfEncoder(
        replace(options, rdf_star=True, generalized_statements=True), namespace_declarations=bool(first.namespaces)
    )
    encode_frames(encoder, frames, write)
    write(encoder.finish())
