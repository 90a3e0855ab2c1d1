"""The command line of patchlog: `main` is what the installed command and `python -m patchlog` run.

Each command parses, calls and prints. How they end, and what an error looks like, is `patchlog.cli.outcome`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click
from click.shell_completion import shell_complete

from patchlog import __version__
from patchlog.cli import (
    about,
    follow,
    import_rdf_delta,
    log_admin,
    log_changes,
    log_snapshots,
    log_transfer,
    outbox,
    patch_algebra,
    patch_check,
    patch_convert,
    rdf_check,
    rdf_convert,
    service,
    spark_job,
)
from patchlog.cli.demo import demo
from patchlog.cli.examples import show_examples
from patchlog.cli.outcome import run, tidy_up_when_terminated

__all__ = ["main", "root"]

_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 120}


@click.group(
    context_settings=_SETTINGS,
    epilog="New here? `patchlog demo` shows what it does; `patchlog serve` starts the service. "
    "Each command has an example: patchlog COMMAND --help",
)
@click.version_option(__version__, "--version", prog_name="patchlog", message="%(prog)s %(version)s")
def root() -> None:
    """Record the changes of RDF datasets in logs; read and write Jelly-RDF, Jelly-Patch and RDF Patch."""


@root.group(short_help="Jelly-RDF: convert, inspect, validate.")
def rdf() -> None:
    """Convert, inspect and validate Jelly-RDF."""


@root.group(short_help="Jelly-Patch and RDF Patch: convert, inspect, validate, diff, apply, squash, invert.")
def patch() -> None:
    """Convert, inspect and validate Jelly-Patch; make patches, apply them, and make one of many."""


@root.group(short_help="Logs of patches: create, list, show, delete, verify, truncate, blame.")
def log() -> None:
    """Create, describe, verify, truncate and delete logs, in a database or of a service."""


@root.group(short_help="Snapshots of a log: build, list, get, put.")
def snapshot() -> None:
    """Make, list and write snapshots of a log, and start a log with a dataset."""


@root.group(short_help="API keys of the service: create, list, revoke.")
def key() -> None:
    """Create, list and revoke the API keys of the service."""


@root.group("outbox", short_help="The patches that wait for a service: list, show, deliver, drop.")
def waiting() -> None:
    """List, show, deliver and drop the patches of captured datasets that wait for a service."""


for command in (
    rdf_convert.to_jelly,
    rdf_convert.from_jelly,
    rdf_convert.transcode,
    rdf_check.inspect,
    rdf_check.validate,
):
    rdf.add_command(command)

for command in (
    patch_convert.to_jelly,
    patch_convert.from_jelly,
    patch_convert.transcode,
    patch_check.inspect,
    patch_check.validate,
    patch_algebra.diff,
    patch_algebra.apply,
    patch_algebra.squash,
    patch_algebra.invert,
):
    patch.add_command(command)

for command in (
    log_admin.create,
    log_admin.list_logs,
    log_admin.show,
    log_admin.delete,
    log_admin.verify,
    log_admin.truncate,
    log_changes.blame,
):
    log.add_command(command)

for command in (log_snapshots.build, log_snapshots.list_snapshots, log_snapshots.get, log_snapshots.put):
    snapshot.add_command(command)

for command in service.KEY_COMMANDS:
    key.add_command(command)

for command in outbox.OUTBOX_COMMANDS:
    waiting.add_command(command)

for command in (
    log_transfer.push,
    log_transfer.pull,
    log_transfer.tail,
    log_changes.diff,
    log_changes.revert,
    service.serve,
    spark_job.apply_to_tables,
    log_admin.migrate,
):
    root.add_command(command)

root.add_command(follow.follow)
root.add_command(import_rdf_delta.import_rdf_delta)

for command in (about.version, about.completions, demo):
    root.add_command(command)

show_examples(root)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit code: 0 done, 1 a user's error or a check that failed, 2 wrong usage."""
    if asked := os.environ.get(about.COMPLETION_VARIABLE):
        return shell_complete(root, {}, "patchlog", about.COMPLETION_VARIABLE, asked)
    if arguments is None:
        tidy_up_when_terminated()
        arguments = sys.argv[1:]
    return run(root, arguments)
