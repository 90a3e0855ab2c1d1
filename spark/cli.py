"""The commands of `python -m spark`. Each parses, calls and prints."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click
from pyspark.sql import SparkSession

from patchlog.cli.options import common
from patchlog.cli.outcome import Session
from spark import jars
from spark.faults import may_die
from spark.job import ApplyJob, Done, Sizes
from spark.metrics import write_metrics
from spark.origin import Origin
from spark.session import opened_session
from spark.tables import Tables

__all__ = ["root"]

Command = TypeVar("Command", bound=Callable[..., Any])


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
def root() -> None:
    """Patch logs as Delta tables: apply, verify, look back, maintain; snapshots out of them and into them."""


def of_log(command: Command) -> Any:
    """`--source`, `--log`, `--token`: the log, which the command gets as `origin`."""

    @wraps(command)
    def with_origin(*args: Any, source: str, log: str | None, token: str | None, **values: Any) -> Any:
        return command(*args, origin=Origin.of(source, log, token), **values)

    source = click.option(
        "--source",
        required=True,
        metavar="PLACE",
        help="The service, database or file: http://…, sqlite:///…, *.jellyp.",
    )
    log = click.option("--log", metavar="NAME", help="The name of the log.")
    token = click.option("--token", metavar="KEY", help="The key for the service.  [default: PATCHLOG_TOKEN]")
    return source(log(token(with_origin)))


def on_spark(command: Command) -> Any:
    """`--warehouse`, and how Spark is started."""

    @wraps(command)
    def with_spark(*args: Any, master: str | None, memory: str, conf: tuple[str, ...], **values: Any) -> Any:
        settings = dict(_setting(one) for one in conf)
        return command(*args, spark=lambda: opened_session(master, memory=memory, settings=settings), **values)

    warehouse = click.option(
        "--warehouse",
        required=True,
        metavar="DIR|schema:NAME",
        help="The folder of the tables, or a schema of the catalog.",
    )
    master = click.option("--master", metavar="URL", help="The Spark cluster.  [default: all cores of this machine]")
    memory = click.option(
        "--memory", default="2g", show_default=True, metavar="SIZE", help="What Spark may take on this machine."
    )
    conf = click.option("--conf", multiple=True, metavar="NAME=VALUE", help="A setting of Spark; may be repeated.")
    return warehouse(master(memory(conf(with_spark))))


def _setting(text: str) -> tuple[str, str]:
    name, found, value = text.partition("=")
    if not found:
        raise click.UsageError(f"--conf {text}: write NAME=VALUE")
    return name, value


@contextmanager
def _tables(spark: Any, origin: Origin, warehouse: str) -> Iterator[tuple[SparkSession, Tables]]:
    with origin.opened() as log:
        identity = origin.identity(log)
    with spark() as session:
        yield session, Tables(session, warehouse, identity)


@root.command(short_help="Fetch Delta's JARs, once.")
@click.option("--repository", metavar="URL", help="A mirror of Maven Central.")
@common
def setup(_session: Session, *, repository: str | None) -> None:
    """Fetch Delta's JARs into a folder of patchlog's own, so that no later session needs a registry."""
    found = jars.fetch(repository)
    click.echo(f"{len(found)} JARs are in {jars.folder()}")


@root.command(short_help="Apply the patches of a log to its tables.")
@of_log
@on_spark
@click.option(
    "--available-now/--continuous",
    default=True,
    help="Apply what is in the log, or go on with what comes.  [default: now]",
)
@click.option(
    "--max-versions-per-batch",
    type=click.IntRange(1),
    default=Sizes().versions_per_batch,
    show_default=True,
    help="How many patches go into one commit of `changes`, at most.",
)
@click.option(
    "--max-operations-per-batch",
    type=click.IntRange(1),
    default=Sizes().operations_per_batch,
    show_default=True,
    help="The same in operations; a patch is never divided.",
)
@click.option(
    "--max-operations-per-merge",
    type=click.IntRange(1),
    default=Sizes().operations_per_merge,
    show_default=True,
    help="How many operations `quads` may be behind `changes` while there is more to do.",
)
@click.option(
    "--deletion-vectors/--no-deletion-vectors",
    default=True,
    show_default=True,
    help="Whether new tables have deletion vectors, which some readers cannot read.",
)
@click.option(
    "--consumer",
    metavar="NAME",
    default="spark",
    show_default=True,
    help="The name by which the log knows how far this warehouse is; none where it is empty.",
)
@click.option("--metrics", type=click.Path(dir_okay=False, path_type=Path), help="A file of metrics for Prometheus.")
@common
def apply(
    cli: Session,
    *,
    origin: Origin,
    warehouse: str,
    spark: Any,
    available_now: bool,
    max_versions_per_batch: int,
    max_operations_per_batch: int,
    max_operations_per_merge: int,
    deletion_vectors: bool,
    consumer: str,
    metrics: Path | None,
) -> None:
    """Bring the tables of a log to where the log is: changes, quads and namespaces.

    What was applied is read back from the tables, so that the job may die at any moment and be started again.
    """

    def tell(done: Done) -> None:
        if not cli.is_quiet:
            click.echo(_line(done), err=True)
        if metrics is not None:
            write_metrics(metrics, done)

    with _tables(spark, origin, warehouse) as (session, tables):
        may_die(session, "started")
        tables.create(deletion_vectors=deletion_vectors)
        may_die(session, "tables-created")
        sizes = Sizes(max_versions_per_batch, max_operations_per_batch, max_operations_per_merge)
        job = ApplyJob(session, origin, tables, sizes, consumer or None, tell)
        if available_now:
            job.run_available()
        else:
            job.run_forever()


def _line(done: Done) -> str:
    first, last = done.versions.after + 1, done.versions.until
    versions = f"version {last}" if first == last else f"versions {first:,} to {last:,}"
    work = f"{done.operations:,} operations in {done.seconds:.1f} s"
    return f"{done.table}: {versions}, {work}; {done.lag_versions:,} behind"
