"""`patchlog apply`: the process becomes `python -m spark apply`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import click

from patchlog.cli.becoming import become
from patchlog.cli.options import common
from patchlog.cli.outcome import Session

__all__ = ["apply_to_tables"]

_NEEDED: Final = ("pyspark", "delta", "pyarrow", "numpy")


@click.command(
    "apply",
    short_help="Apply a log to Delta tables, with Spark.",
    context_settings={"ignore_unknown_options": True},
    epilog="All options: `python -m spark apply --help`. `patchlog-apply` is the same command.",
)
@click.option("--source", required=True, metavar="PLACE", help="The service, database or file of the log.")
@click.option("--log", metavar="NAME", help="The name of the log.")
@click.option("--warehouse", required=True, metavar="DIR|schema:NAME", help="The folder of the tables, or a schema.")
@click.option(
    "--available-now/--continuous",
    default=True,
    help="Apply what is in the log, or go on with what comes.  [default: now]",
)
@click.argument("others", metavar="[FURTHER OPTIONS]...", nargs=-1, type=click.UNPROCESSED)
@common
def apply_to_tables(
    session: Session, *, source: str, log: str | None, warehouse: str, available_now: bool, others: Sequence[str]
) -> None:
    """Bring Delta tables of changes, quads and namespaces up to date with a log, each patch exactly once."""
    arguments = ["--source", source, "--warehouse", warehouse]
    arguments += ["--log", log] if log is not None else []
    arguments += ["--available-now" if available_now else "--continuous"]
    arguments += ["--quiet"] if session.is_quiet else []
    arguments += ["--debug"] if session.is_debug else []
    become("spark", ["apply", *arguments, *others], needs=_NEEDED)
