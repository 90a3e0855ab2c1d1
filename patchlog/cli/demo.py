"""`patchlog demo`: what this release does, shown on a small dataset by the commands themselves."""

from __future__ import annotations

import shlex
import tempfile
from contextlib import chdir
from pathlib import Path
from typing import Final

import click

from patchlog.cli.options import common
from patchlog.cli.outcome import DONE, Session, run

__all__ = ["demo"]

_FILES: Final = {
    "people.nq": """\
<http://example.org/ada> <http://xmlns.com/foaf/0.1/name> "Ada"@en <http://example.org/people> .
<http://example.org/ada> <http://xmlns.com/foaf/0.1/knows> <http://example.org/bob> <http://example.org/people> .
<http://example.org/bob> <http://xmlns.com/foaf/0.1/name> "Bob" <http://example.org/people> .
<http://example.org/bob> <http://xmlns.com/foaf/0.1/age> "042"^^<http://www.w3.org/2001/XMLSchema#integer> .
""",
    "monday.rdfp": """\
H id <urn:uuid:0b7f4f5e-8a3b-4c57-9d7a-1f0d5f1b2a01> .
TX .
A <http://example.org/cleo> <http://xmlns.com/foaf/0.1/name> "Cleo" <http://example.org/people> .
D <http://example.org/bob> <http://xmlns.com/foaf/0.1/age> "042"^^<http://www.w3.org/2001/XMLSchema#integer> .
TC .
""",
    "tuesday.rdfp": """\
H id <urn:uuid:5d3c9a72-6f0e-4b8e-8a41-7c2e9b6d4a02> .
H prev <urn:uuid:0b7f4f5e-8a3b-4c57-9d7a-1f0d5f1b2a01> .
TX .
D <http://example.org/cleo> <http://xmlns.com/foaf/0.1/name> "Cleo" <http://example.org/people> .
A <http://example.org/cleo> <http://xmlns.com/foaf/0.1/name> "Cleopatra" <http://example.org/people> .
TC .
TX .
D <http://example.org/ada> <http://xmlns.com/foaf/0.1/name> "Ada"@en <http://example.org/people> .
TA .
""",
}

# What is done, and the commands that do it. `show` prints a file.
_STEPS: Final = (
    ("Here is a small dataset of people. It has one named graph.", ["show people.nq"]),
    (
        "As Jelly-RDF it is a compact binary stream. This is what went into it:",
        ["rdf to-jelly people.nq --to people.jelly", "rdf inspect people.jelly"],
    ),
    (
        "On Monday Cleo came, and Bob's age went. A patch says so:",
        ["show monday.rdfp"],
    ),
    (
        "On Tuesday Cleo changed her name. A second transaction was aborted, so what it holds never happened:",
        ["show tuesday.rdfp"],
    ),
    (
        "As Jelly-Patch, patches are small and quick to read. Here they go in, and one comes out again as text:",
        [
            "patch to-jelly monday.rdfp --canonical --to monday.jellyp",
            "patch to-jelly tuesday.rdfp --canonical --to tuesday.jellyp",
            "patch from-jelly monday.jellyp",
        ],
    ),
    (
        "Applied to the dataset, both make this of it:",
        ["patch apply monday.jellyp tuesday.jellyp people.jelly --to after.nq", "show after.nq"],
    ),
    ("Squashed, two patches are one with the same effect:", ["patch squash monday.jellyp tuesday.jellyp"]),
    (
        "Inverted, they undo what they did. Applied once more, that leads back to where we began:",
        [
            "patch invert monday.jellyp tuesday.jellyp --dataset people.jelly --to undo.jellyp",
            "patch apply undo.jellyp after.nq --to again.nq",
            "rdf validate people.jelly --compare-to-rdf-file again.nq",
        ],
    ),
)

_NEXT: Final = """\
Try next, in that folder or with files of your own:
  patchlog patch diff people.nq after.nq            the patch between two datasets
  patchlog rdf from-jelly people.jelly --out-format trig
  patchlog rdf inspect --per-frame --detail node people.jelly
  patchlog --help"""


@click.command("demo", short_help="Show what patchlog does, on a small dataset.")
@click.option(
    "--folder", type=click.Path(file_okay=False), help="Where its files go; a new temporary folder by default."
)
@common
def demo(session: Session, *, folder: str | None) -> None:
    """Show what patchlog does: a dataset as Jelly-RDF, patches as Jelly-Patch, and what patches do to a dataset.

    It takes a few seconds, and leaves its files in a folder for you to go on with.
    """
    del session
    place = Path(folder or tempfile.mkdtemp(prefix="patchlog-demo-"))
    place.mkdir(parents=True, exist_ok=True)
    root = click.get_current_context().find_root().command
    with chdir(place):
        for name, text in _FILES.items():
            Path(name).write_text(text)
        for words, lines in _STEPS:
            click.secho(f"\n{words}\n", bold=True)
            for line in lines:
                _run(root, line)
    click.secho(f"\nAll of these files are in {place}", bold=True)
    click.echo(_NEXT)


def _run(root: click.Command, line: str) -> None:
    verb, *arguments = shlex.split(line)
    if verb == "show":
        click.echo(f"$ cat {arguments[0]}")
        click.echo(Path(arguments[0]).read_text(), nl=False)
        return
    click.echo(f"$ patchlog {line}")
    outcome = run(root, [verb, *arguments])
    if outcome != DONE:
        raise click.exceptions.Exit(outcome)
