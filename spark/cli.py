"""The commands of `python -m spark`. Each parses, calls and prints."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from pathlib import Path
from typing import Any, TypeVar

import click
from pyspark.sql import SparkSession

from patchlog.cli.files import writing
from patchlog.cli.log_snapshots import put_file
from patchlog.cli.options import common
from patchlog.cli.outcome import CheckFailed, Session
from spark import jars
from spark.capture import Captured, ReverseCapture
from spark.change_feed import QuadTable
from spark.conflicts import again_after_conflicts
from spark.failures import failures_explained
from spark.faults import may_die
from spark.job import ApplyJob, Done, Sizes
from spark.looking_back import moment_at, namespaces_until, quads_at
from spark.maintenance import optimize
from spark.metrics import write_metrics
from spark.origin import Origin
from spark.session import is_on_this_machine, opened_session
from spark.snapshots import export, joined
from spark.tables import LogTable, Tables
from spark.verification import verify

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
    """How Spark is started."""

    @wraps(command)
    def with_spark(*args: Any, master: str | None, memory: str, conf: tuple[str, ...], **values: Any) -> Any:
        settings = dict(_setting(one) for one in conf)
        if is_on_this_machine(master) and not values.get("warehouse", "schema:").startswith("schema:"):
            # Spark makes a folder for its own schemas, else `spark-warehouse` where one stands. Nothing is put there.
            settings.setdefault("spark.sql.warehouse.dir", str(Path(tempfile.gettempdir()) / "patchlog-no-schemas"))

        @contextmanager
        def started() -> Iterator[SparkSession]:
            with failures_explained(), opened_session(master, memory=memory, settings=settings) as session:
                yield session

        return command(*args, spark=started, **values)

    master = click.option("--master", metavar="URL", help="The Spark cluster.  [default: all cores of this machine]")
    memory = click.option(
        "--memory", default="2g", show_default=True, metavar="SIZE", help="What Spark may take on this machine."
    )
    conf = click.option("--conf", multiple=True, metavar="NAME=VALUE", help="A setting of Spark; may be repeated.")
    return master(memory(conf(with_spark)))


def on_tables(command: Command) -> Any:
    """`--warehouse`, and how Spark is started."""
    warehouse = click.option(
        "--warehouse",
        required=True,
        metavar="DIR|schema:NAME",
        help="The folder of the tables, or a schema of the catalog.",
    )
    return warehouse(on_spark(command))


SHARED = click.option(
    "--shared",
    is_flag=True,
    help="Tables that several logs share, told apart by a column `log`; give it to each run for them.",
)


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
@click.option("--repository", metavar="URL", help="A mirror of Maven Central; the JARs are fetched again.")
@common
def setup(_session: Session, *, repository: str | None) -> None:
    """Fetch Delta's JARs into a folder of patchlog's own, so that no session needs a registry."""
    jars.check_java()
    found = jars.fetch(repository) if repository else jars.installed()
    click.echo(f"{len(found)} JARs are in {jars.folder()}")


@root.command(short_help="Apply the patches of a log to its tables.")
@of_log
@on_tables
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
    default=None,
    help="Whether new tables have deletion vectors, which some readers cannot read.  [default: once they are large]",
)
@SHARED
@click.option(
    "--consumer",
    metavar="NAME",
    help="The name by which the log knows how far this warehouse is; none where it is empty.  [default: a name for the "
    "warehouse]",
)
@click.option(
    "--rebuild",
    is_flag=True,
    help="First take the tables back to the last version that they and the log have in common.",
)
@click.option("--yes", is_flag=True, help="Let --rebuild delete what the log cannot give again.")
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
    deletion_vectors: bool | None,
    shared: bool,
    consumer: str | None,
    rebuild: bool,
    yes: bool,
    metrics: Path | None,
) -> None:
    """Bring the tables of a log to where the log is: changes, quads and namespaces.

    What was applied is read back from the tables, so that the job may die at any moment and be started again. Tables
    that do not agree with the log are left as they are, unless --rebuild says otherwise.
    """
    is_news = False

    def tell(done: Done) -> None:
        nonlocal is_news
        is_news = True
        _tell(cli, done)
        if metrics is not None:
            write_metrics(metrics, done)

    with _tables(spark, origin, warehouse) as (session, tables):
        may_die(session, "started")
        again_after_conflicts(
            lambda: tables.create(deletion_vectors=deletion_vectors, is_shared=shared, is_checked=not rebuild)
        )
        may_die(session, "tables-created")
        sizes = Sizes(max_versions_per_batch, max_operations_per_batch, max_operations_per_merge)
        name = tables.consumer_name() if consumer is None else consumer or None
        job = ApplyJob(session, origin, tables, sizes, name, tell, partial(click.echo, err=True))
        if rebuild:
            job.rebuild(may_lose=yes)
        if available_now:
            job.run_available()
            if not (is_news or cli.is_quiet):
                click.echo("already up to date", err=True)
        else:
            job.run_forever()


@root.command("verify", short_help="Compare the tables with the log.")
@of_log
@on_tables
@common
def verify_tables(_session: Session, *, origin: Origin, warehouse: str, spark: Any) -> None:
    """Compare `changes` with the log, version by version, and `quads` with what the changes come to."""
    with _tables(spark, origin, warehouse) as (session, tables):
        tables.check()
        report = verify(session, origin, tables)
    for difference in report.differences:
        click.echo(difference)
    if report.differences:
        raise CheckFailed(f"the tables are not what the log says: {len(report.differences)} differences are shown")
    click.echo(
        f"{report.quads:,} quads (hash {report.quads_hash}) and {report.changes:,} changes stand for version "
        f"{report.versions:,}, as in the log"
    )


@root.command("optimize", short_help="Compact and cluster the tables.")
@of_log
@on_tables
@click.option(
    "--keep-hours",
    type=click.IntRange(0),
    help="From now on, keep files that only older versions need for so many hours.  [default: a week]",
)
@click.option(
    "--allow-unsafe-retention",
    is_flag=True,
    help="Allow less than 168 hours, Delta's safe age: running jobs and readers may need what is deleted.",
)
@common
def optimize_tables(
    cli: Session,
    *,
    origin: Origin,
    warehouse: str,
    spark: Any,
    keep_hours: int | None,
    allow_unsafe_retention: bool,
) -> None:
    """Compact and cluster the tables, and delete files that time travel needs no more.

    Jobs may be at work then, unless --keep-hours is less than what their commits take: below 168 hours that has to be
    allowed.
    """

    def tell_refused(table: LogTable, tried: int) -> None:
        if not cli.is_quiet:
            click.echo(f"{table.table.name}: a job has changed it meanwhile, try {tried + 1} follows", err=True)

    with _tables(spark, origin, warehouse) as (session, tables):
        tables.check()
        for one in optimize(
            session,
            tables,
            keep_hours=keep_hours,
            allow_unsafe_retention=allow_unsafe_retention,
            tell_refused=tell_refused,
        ):
            click.echo(f"{one.table}: {one.files_after} files, before {one.files_before}")


@root.command(short_help="Say what stands for a version of the log.")
@of_log
@on_tables
@click.option("--version", required=True, type=click.IntRange(0), help="The version of the log.")
@click.option("--to", metavar="DIR", help="Write its quads as a Delta table, which must not be there yet.")
@common
def at(_session: Session, *, origin: Origin, warehouse: str, spark: Any, version: int, to: str | None) -> None:
    """Say which Delta version of `quads` stands for a version of the log, and what of `changes` comes on top."""
    with _tables(spark, origin, warehouse) as (_, tables):
        tables.check()
        moment = moment_at(tables, version)
        begin = "nothing" if moment.delta_version is None else f"Delta version {moment.delta_version} of quads"
        if to is not None:
            quads_at(tables, version).write.format("delta").mode("error").save(to)
        between = _versions(moment.delta_stands_for + 1, version)
        click.echo(begin if moment.is_exact else f"{begin}, and the changes of {between}")


@root.command("capture", short_help="Record what others change in a Delta table.")
@click.option(
    "--table", required=True, metavar="DIR|NAME", help="The Delta table of quads: a folder, or a name of the catalog."
)
@click.option(
    "--to", required=True, metavar="PLACE", help="The service, database or file: http://…, sqlite:///…, *.jellyp."
)
@click.option("--log", metavar="NAME", help="The name of the log, which is made where there is none.")
@click.option("--token", metavar="KEY", help="The key for the service.  [default: PATCHLOG_TOKEN]")
@on_spark
@click.option(
    "--available-now/--continuous",
    default=True,
    help="Capture what is in the table, or go on with what comes.  [default: now]",
)
@click.option(
    "--max-versions-per-batch",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    help="How many commits are read together, at most.",
)
@click.option(
    "--no-duplicates", is_flag=True, help="The table never holds a quad twice, so that deletes are not looked up in it."
)
@click.option("--on-top", is_flag=True, help="Begin in a log that has patches already.")
@common
def capture_table(
    cli: Session,
    *,
    table: str,
    to: str,
    log: str | None,
    token: str | None,
    spark: Any,
    available_now: bool,
    max_versions_per_batch: int,
    no_duplicates: bool,
    on_top: bool,
) -> None:
    """Turn the commits of a Delta table of quads, which others write, into patches of a log, each commit one.

    How far it is stands in the log, so that the job may die at any moment and be started again.
    """
    place = Origin.of(to, log, token).place
    with spark() as session:
        captured = QuadTable(session, table)
        # Only now: what cannot be captured leaves no empty log behind.
        with place.log(token=token, creates=True) as opened:
            capture = ReverseCapture(
                session,
                captured,
                opened,
                versions_per_batch=max_versions_per_batch,
                has_duplicates=not no_duplicates,
                on_top=on_top,
                tell=partial(_tell_captured, cli),
            )
            if available_now:
                capture.run_available()
            else:
                capture.run_forever()


@root.group(short_help="Whole datasets: out of the tables, and into them.")
def snapshot() -> None:
    """Write the dataset of a version as Jelly-RDF, and begin a log and its tables with a dataset."""


@snapshot.command("export", short_help="Write the quads of a version as Jelly-RDF.")
@of_log
@on_tables
@click.option("--version", type=click.IntRange(0), help="The version of the log.  [default: the last that is applied]")
@click.option("--to", required=True, metavar="DIR", help="The folder of the files, which is made.")
@click.option("--joined", "joined_file", metavar="FILE", help="Write all of it into one file, too.")
@click.option("--upload", is_flag=True, help="Let the log have it as its snapshot, which it compares with its patches.")
@common
def export_snapshot(
    cli: Session,
    *,
    origin: Origin,
    warehouse: str,
    spark: Any,
    version: int | None,
    to: str,
    joined_file: str | None,
    upload: bool,
) -> None:
    """Write the quads of a version as Jelly-RDF, a file for each partition: all of them in parallel."""
    with origin.opened() as log, _tables(spark, origin, warehouse) as (session, tables):
        tables.check()
        chosen = tables.quads.number() if version is None else version
        quads = quads_at(tables, chosen).select("subject", "predicate", "object", "graph")
        namespaces = namespaces_until(session, origin, tables, chosen)
        exported = export(quads, namespaces, log.describe().options, Path(to))
        if joined_file is not None:
            with writing(joined_file, cli, is_text=False) as write:
                for chunk in joined(exported.files):
                    write(chunk)
        if upload:
            log.snapshots.put(chosen, joined(exported.files))
    click.echo(f"version {chosen}: {exported.quads:,} quads in {len(exported.files)} files, {exported.bytes:,} bytes")


@snapshot.command("import", short_help="Begin an empty log, and its tables, with a dataset.")
@click.argument("path", metavar="FILE", type=click.Path(exists=True, dir_okay=False))
@of_log
@on_tables
@SHARED
@common
def import_snapshot(cli: Session, *, path: str, origin: Origin, warehouse: str, spark: Any, shared: bool) -> None:
    """Give an empty log a dataset to begin with (Jelly-RDF, N-Quads, TriG …), and load it into its tables."""
    with origin.opened() as log:
        put_file(log.snapshots, path, cli)
    cli.progress.pause()
    with _tables(spark, origin, warehouse) as (session, tables):
        again_after_conflicts(lambda: tables.create(is_shared=shared))
        job = ApplyJob(session, origin, tables, tell=partial(_tell, cli))
        job.run_available()


def _tell(cli: Session, done: Done) -> None:
    if not cli.is_quiet:
        click.echo(f"{done.table}: {_line(done)}", err=True)


def _tell_captured(cli: Session, captured: Captured) -> None:
    if not cli.is_quiet:
        click.echo(_line(captured), err=True)


def _line(done: Done | Captured) -> str:
    work = f"{done.operations:,} operation{'s' * (done.operations != 1)} in {done.seconds:.1f} s"
    versions = _versions(done.versions.after + 1, done.versions.until)
    if isinstance(done, Done) and done.is_snapshot:
        versions = _versions(done.versions.until, done.versions.until)
        before = max(done.versions.after, 0)
        if done.versions.until > before + 1:
            missing = _versions(before + 1, done.versions.until - 1)
            versions += f" from the snapshot of the log, which has forgotten {missing}: they are not in the tables"
    return f"{versions}, {work}; {done.lag_versions:,} behind"


def _versions(first: int, last: int) -> str:
    """Versions in words. Version 0 is what a log begins with, and often nothing."""
    first = min(max(first, 1), last)
    return f"version {last}" if first == last else f"versions {first:,} to {last:,}"
