"""`patchlog diff`, `revert` and `log blame`: what changed between versions, taking it back, and who it was."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing

import click

from patchlog.cli.files import STANDARD, file_name, writing
from patchlog.cli.options import VERSION, common, output
from patchlog.cli.outcome import Session
from patchlog.cli.places import Wanted, place_options, reading_log, wanted_place, writing_log
from patchlog.cli.tellings import as_json, json_line, where_appended
from patchlog.codec.faces import OperationEncoderFace
from patchlog.codec.patch_ids import parse_patch_id
from patchlog.engine import CanonicalPatchEncoder, RdfPatchWriter
from patchlog.errors import UsageError
from patchlog.formats import JELLY_PATCH, RDF_PATCH, choose_format
from patchlog.log.blame import LastChange, term_of
from patchlog.log.blame import blame as blame_of
from patchlog.log.diff import diff as diff_of
from patchlog.log.documents import appended_document
from patchlog.log.records import ANY_HEAD
from patchlog.log.revert import revert as revert_of
from patchlog.pipes import batches

__all__ = ["blame", "diff", "revert"]

_log = click.argument("location", metavar="[LOG]", required=False)


@click.command("diff", short_help="Make the patch between two versions of a log.")
@_log
@place_options
@output
@click.option("--from", "from_version", type=VERSION, required=True, help="The version that the patch begins at.")
@click.option(
    "--until",
    "to_version",
    type=VERSION,
    help="The version that it leads to; --to VERSION says it too.  [default: the head]",
)
@click.option(
    "--format",
    "--out-format",
    "out_format",
    metavar="FORMAT",
    help="rdf-patch or jelly-patch.  [default: what the output is named, else rdf-patch]",
)
@common
def diff(
    session: Session,
    *,
    wanted: Wanted,
    to: str,
    from_version: int,
    to_version: int | None,
    out_format: str | None,
) -> None:
    """Make the one patch that leads from a version of a log to another.

    Where --until is below --from, it takes back what was changed between them, and nothing else.
    """
    if to_version is None and to.isdecimal():
        # As the service has it: ?from=1&to=5. Nobody means a file of that name.
        to_version, to = VERSION.convert(to, None, None), STANDARD
    chosen = choose_format(out_format, file_name(to), (RDF_PATCH, JELLY_PATCH), default=RDF_PATCH)
    encoder: OperationEncoderFace = RdfPatchWriter() if chosen is RDF_PATCH else CanonicalPatchEncoder()
    place = wanted_place(wanted)
    if place.file == STANDARD:
        raise UsageError("a pipe can be read once, and this reads a log several times: write it to a file")
    with reading_log(place, session) as log:
        until = log.head().version if to_version is None else to_version
        with (
            closing(diff_of(log, from_version, until)) as operations,
            writing(to, session, is_text=chosen is RDF_PATCH) as write,
        ):
            for batch in batches(operations):
                for operation in batch:
                    encoder.accept(operation)
                write(encoder.take())
            write(encoder.finish())


@click.command("revert", short_help="Take patches of a log back.")
@_log
@place_options
@click.option("--version", type=VERSION, help="The patch to take back; or a range, by --from and --until.")
@click.option("--from", "from_version", type=VERSION, help="The version behind which all patches are taken back.")
@click.option("--until", "--to", "to_version", type=VERSION, help="The last version to take back.  [default: the head]")
@click.option(
    "--header", "headers", metavar="KEY=VALUE", multiple=True, help="What the new patch says, such as who=Ada."
)
@click.option("--id", metavar="ID", help="The id of the new patch, so that the command may be repeated.")
@click.option("--expected-head", metavar="ID", help="The patch that the log has to end with.")
@as_json
@common
def revert(
    session: Session,
    *,
    wanted: Wanted,
    version: int | None,
    from_version: int | None,
    to_version: int | None,
    headers: Sequence[str],
    id: str | None,
    expected_head: str | None,
    as_json: bool,
) -> None:
    """Append a patch to a log that takes back what patches have changed. They themselves stay.

    What they added though it was there stays. Where a later patch says the opposite of what would be done, it is not.
    """
    if (version is None) == (from_version is None) or (version is not None and to_version is not None):
        raise click.UsageError("give either --version, or --from and perhaps --until")
    with writing_log(wanted_place(wanted)) as log:
        if version is not None:
            from_version, to_version = version - 1, version
        assert from_version is not None
        appended = revert_of(
            log,
            from_version,
            log.head().version if to_version is None else to_version,
            headers=dict(map(_header, headers)),
            id=id,
            expected_head=ANY_HEAD if expected_head is None else parse_patch_id(expected_head),
        )
        if as_json:
            click.echo(json_line(appended_document(appended)))
        elif not session.is_quiet:
            session.progress.pause()
            click.echo(f"{log.name}: {where_appended(appended)}")


@click.command("blame", short_help="Say by which patch each quad of a subject came.")
@_log
@place_options
@click.option("--subject", metavar="TERM", required=True, help="An IRI, or a term as in N-Triples.")
@click.option("--predicate", metavar="TERM", help="Only quads of this predicate.")
@click.option("--graph", metavar="TERM", help="Only quads of this graph; empty for the default graph.")
@as_json
@common
def blame(
    session: Session,
    *,
    wanted: Wanted,
    subject: str,
    predicate: str | None,
    graph: str | None,
    as_json: bool,
) -> None:
    """Say of each quad of a subject that is there by which patch it came: version, time, and who it was.

    Who it was is what the header `who` of the patch says. The whole log is read.
    """
    others = [None if text is None else term_of(text) for text in (predicate, graph)]
    with reading_log(wanted_place(wanted), session) as log:
        found = blame_of(log, term_of(subject), *others)
    session.progress.pause()
    for line in (json_line(change.document()) for change in found) if as_json else _lines(found):
        click.echo(line)


def _header(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise click.UsageError(f"--header takes KEY=VALUE, not {text!r}")
    return key, value


def _lines(found: Sequence[LastChange]) -> Iterable[str]:
    for change in found:
        who = change.headers.get("who", "-")
        yield f"{change.version_text}  {change.time}  {who}  {' '.join(filter(None, change.quad))}"
