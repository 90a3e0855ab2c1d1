"""`patchlog demo`: the main job, end to end, on embedded defaults: a service on SQLite, and four copies of one dataset.

Everything that is shown is done, by the commands and calls that a user has. What is not installed is named, with the
remedy, and left out.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, chdir, contextmanager
from pathlib import Path
from typing import Any, Final

import click

from patchlog import rdf
from patchlog.cli.options import common
from patchlog.cli.outcome import DONE, Session, run
from patchlog.errors import MissingExtra, StorageError, UsageError
from patchlog.model import Quad, as_quad

__all__ = ["demo"]

_LOG: Final = "people"
_DATABASE: Final = "patchlog.db"
_FILES: Final = (
    _DATABASE,
    f"{_DATABASE}.snapshots",
    "service.log",
    "record.py",
    "monday.rdfp",
    "tuesday.rdfp",
    "tuesday.jellyp",
    "wednesday.nq",
    "snapshot.jelly",
    "newest.jelly",
    "warehouse",
)
_START_SECONDS: Final = 300
"""A machine that is busy takes a minute and more. A service that fails ends at once, and is not waited for."""

_MONDAY: Final = """\
H who "grace" .
TX .
A <http://example.org/cleo> <http://xmlns.com/foaf/0.1/name> "Cleo" <http://example.org/people> .
D <http://example.org/bob> <http://example.org/age> "042"^^<http://www.w3.org/2001/XMLSchema#integer> .
TC .
"""
_TUESDAY: Final = """\
H who "grace" .
TX .
D <http://example.org/cleo> <http://xmlns.com/foaf/0.1/name> "Cleo" <http://example.org/people> .
A <http://example.org/cleo> <http://xmlns.com/foaf/0.1/name> "Cleopatra" <http://example.org/people> .
TC .
TX .
D <http://example.org/ada> <http://xmlns.com/foaf/0.1/name> "Ada"@en <http://example.org/people> .
TA .
"""
_WEDNESDAY: Final = """\
<http://example.org/dora> <http://xmlns.com/foaf/0.1/name> "Dora" <http://example.org/people> .
"""

_PROGRAM: Final = f"""\
from rdflib import Dataset
import patchlog

dataset = Dataset(store=patchlog.capture(log="{{url}}/logs/{_LOG}"))    # the one line that changes
dataset.update('''
    PREFIX ex: <http://example.org/>  PREFIX foaf: <http://xmlns.com/foaf/0.1/>
    INSERT DATA {{{{ ex:bob ex:age "042"^^<http://www.w3.org/2001/XMLSchema#integer>
                  GRAPH ex:people {{{{ ex:ada foaf:name "Ada"@en ; foaf:knows ex:bob . ex:bob foaf:name "Bob" }}}} }}}}
''')
dataset.commit()                                                        # one patch, durable
"""


@click.command("demo", short_help="Show what patchlog does, end to end.")
@click.option(
    "--folder", type=click.Path(file_okay=False), help="Where its files go; a new temporary folder by default."
)
@click.option("--no-spark", is_flag=True, help="Leave out the Delta tables, which take most of the time.")
@click.option("--serve", is_flag=True, help="Leave the service running at the end, to be looked at, until Ctrl-C.")
@common
def demo(session: Session, *, folder: str | None, no_spark: bool, serve: bool) -> None:
    """Show what patchlog does: start a service, record changes, follow them, and compare all copies.

    It takes less than two minutes, and leaves its files in a folder for you to go on with.
    """
    session.progress.is_wanted = False
    place = Path(folder or tempfile.mkdtemp(prefix="patchlog-demo-")).resolve()
    place.mkdir(parents=True, exist_ok=True)
    if missing := _missing("fastapi", "uvicorn", "jinja2"):
        raise MissingExtra(missing, "api")
    if found := next((name for name in _FILES if os.path.lexists(place / name)), None):
        raise UsageError(f"{place} has a {found} already, and nothing is overwritten: name another folder")
    with chdir(place), ExitStack() as running:
        show = _Show(place, running)
        show.play(with_spark=not no_spark)
        if serve:
            show.stay()


class _Show:
    """The steps, one after the other."""

    def __init__(self, place: Path, running: ExitStack) -> None:
        self._place = place
        self._running = running
        self._root = click.get_current_context().find_root().command
        self._copies: dict[str, set[Quad]] = {}
        self._url = ""

    def play(self, *, with_spark: bool) -> None:
        """All steps."""
        begun = time.monotonic()
        self._start()
        self._record()
        self._upload()
        self._look()
        self._snapshot()
        self._replicate()
        if with_spark:
            self._materialise()
        self._compare()
        click.secho(f"\nThat took {time.monotonic() - begun:.0f} seconds. All files are in {self._place}", bold=True)
        click.echo(_next(self._place))

    def stay(self) -> None:
        """Let the service run until somebody ends this process."""
        _say(f"The service goes on until Ctrl-C: {self._url}/ui")
        threading.Event().wait()

    def _start(self) -> None:
        _say("A service starts. Its logs are in a file of SQLite here; PostgreSQL is one option away.")
        click.echo("$ patchlog serve --database sqlite:///patchlog.db")
        self._url = self._running.enter_context(_service(self._place))
        self._command("log", "create", _LOG, "--url", self._url)

    def _record(self) -> None:
        _say("A program that uses rdflib records its changes. This is all of it:")
        program = _PROGRAM.format(url=self._url)
        Path("record.py").write_text(program)
        click.echo(program)
        namespace: dict[str, Any] = {"__name__": "record"}
        exec(compile(program, "record.py", "exec"), namespace)  # noqa: S102  what was just shown
        self._running.callback(namespace["dataset"].close)
        self._dataset = namespace["dataset"]

    def _upload(self) -> None:
        _say(
            "Others send patches: RDF Patch text, Jelly-Patch, or plain N-Quads to add. "
            "Of Tuesday's two transactions one is aborted, so it does nothing:"
        )
        for name, text in (("monday.rdfp", _MONDAY), ("tuesday.rdfp", _TUESDAY), ("wednesday.nq", _WEDNESDAY)):
            Path(name).write_text(text)
        self._command("patch", "to-jelly", "tuesday.rdfp", "--to", "tuesday.jellyp")
        self._command("push", "monday.rdfp", "tuesday.jellyp", "wednesday.nq", "--log", _LOG, "--url", self._url)

    def _look(self) -> None:
        _say("The log has it all, in order. A tail shows each patch as it comes; these are the first two, again:")
        self._command("tail", f"{self._url}/logs/{_LOG}", "--after", "0", "--limit", "2")
        _say("What has changed between two versions, and who made what is there now:")
        self._command("diff", f"{self._url}/logs/{_LOG}", "--from", "1", "--until", "3")
        self._command("log", "blame", f"{self._url}/logs/{_LOG}", "--subject", "http://example.org/cleo")
        _say("Each version has a hash over all before it, so a change of the past is seen:")
        self._command("log", "verify", f"{self._url}/logs/{_LOG}")

    def _snapshot(self) -> None:
        _say("A snapshot is the whole dataset at a version, as Jelly-RDF:")
        self._command("snapshot", "build", f"{self._url}/logs/{_LOG}")
        self._command("snapshot", "get", f"{self._url}/logs/{_LOG}", "--to", "snapshot.jelly")
        self._copies["the snapshot"] = set(map(as_quad, rdf.read("snapshot.jelly")))

    def _replicate(self) -> None:
        from rdflib import Dataset

        from patchlog.followers.follow import follow

        _say("A second replica starts from that snapshot, and follows what comes:")
        click.echo(f'>>> replica = patchlog.follow("{self._url}/logs/{_LOG}", into=Dataset())')
        replica = Dataset()
        follower = self._running.enter_context(follow(f"{self._url}/logs/{_LOG}", replica))
        self._dataset.update('INSERT DATA { <http://example.org/ada> <http://example.org/born> "1815-12-10" }')
        self._dataset.commit()
        follower.catch_up()
        click.echo(f"the replica is at version {follower.position}")
        self._copies["the dataset of the program"] = _quads(self._dataset)
        self._copies["the replica"] = _quads(replica)
        del self._copies["the snapshot"]
        self._command("snapshot", "build", f"{self._url}/logs/{_LOG}", "--quiet")
        self._command("snapshot", "get", f"{self._url}/logs/{_LOG}", "--to", "newest.jelly", "--quiet")
        self._copies["the newest snapshot"] = set(map(as_quad, rdf.read("newest.jelly")))

    def _materialise(self) -> None:
        _say(
            "Spark keeps Delta tables in step: the history in `changes`, what is there now in `quads`. "
            "This takes most of a minute, as two JVMs have to start."
        )
        if lacking := _lacking_for_spark():
            click.secho(f"This is left out: {lacking}", fg="yellow")
            return
        arguments = ["--source", self._url, "--log", _LOG, "--warehouse", "warehouse"]
        self._apply(*arguments)
        click.echo('$ python -c \'…\'    # spark.read.format("delta").load("warehouse/quads")')
        shown = subprocess.run(  # noqa: S603  our own program
            [sys.executable, *_SAFELY, "-c", _READ_TABLES],
            cwd=self._place,
            env=_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if shown.returncode != 0:
            raise StorageError(f"Spark could not read the tables: {shown.stderr.strip().splitlines()[-1]}")
        tables, _, lines = shown.stdout.partition("---\n")
        click.echo(tables, nl=False)
        self._copies["the Delta table"] = {_quad_of(line) for line in lines.splitlines()}

    def _compare(self) -> None:
        _say("Are all copies the same?")
        first, *others = self._copies.values()
        for name, quads in self._copies.items():
            click.echo(f"{name}: {len(quads)} quads")
        if any(other != first for other in others):
            click.secho("No! That should never happen: please report it.", fg="red")
            raise click.exceptions.Exit(1)
        click.secho("Yes, all of them.", fg="green")

    def _command(self, *words: str) -> None:
        if "--quiet" not in words:
            click.echo(f"$ patchlog {' '.join(words)}")
        outcome = run(self._root, words)
        if outcome != DONE:
            raise click.exceptions.Exit(outcome)

    def _apply(self, *words: str) -> None:
        click.echo(f"$ patchlog apply {' '.join(words)}")
        command = [sys.executable, *_SAFELY, "-m", "spark", "apply", *words]
        outcome = subprocess.run(command, cwd=self._place, env=_environment(), check=False)  # noqa: S603  our own
        if outcome.returncode != 0:
            raise click.exceptions.Exit(outcome.returncode)


_HOUSE: Final = Path(__file__).parents[2]
# Without -P a folder `spark` where the user happens to be would be taken for ours.
_SAFELY: Final = ("-P",)

_READ_TABLES: Final = """
import json
from spark.session import opened_session

with opened_session(None, memory="1g", settings={}) as session:
    changes = session.read.format("delta").load("warehouse/changes").orderBy("version", "position")
    quads = session.read.format("delta").load("warehouse/quads").orderBy("subject", "predicate")
    columns = ["version", "operation", "subject", "predicate", "object"]
    changes.select(columns).show(20, truncate=40)
    quads.select("graph", "subject", "predicate", "object", "since").show(20, truncate=40)
    print("---")
    for row in quads.collect():
        print(json.dumps([row.subject, row.predicate, row.object, row.graph]))
"""


def _environment() -> dict[str, str]:
    """That of this process; a checkout that is not installed is found as this process has found it."""
    found = [str(_HOUSE), *filter(None, [os.environ.get("PYTHONPATH")])]
    return dict(os.environ) | {"PYTHONPATH": os.pathsep.join(found)}


def _say(words: str) -> None:
    click.secho(f"\n{words}\n", bold=True)


@contextmanager
def _service(place: Path) -> Iterator[str]:
    """A service on a free port, for as long as the block lasts."""
    log = place / "service.log"
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603  our own program
            [sys.executable, *_SAFELY, "-m", "api", "--port", "0", "--database", f"sqlite:///{place / _DATABASE}"],
            cwd=place,
            env=_environment(),
            stdout=output,
            stderr=output,
        )
    try:
        yield _awaited(log, process)
    finally:
        process.terminate()
        process.wait()


def _awaited(log: Path, process: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if found := re.search(r"running on (http://[0-9.]+:\d+)", log.read_text()):
            return found[1]
        time.sleep(0.05)
    raise StorageError(f"the service does not start; {log} says why")


def _quads(dataset: Any) -> set[Quad]:
    from patchlog.rdflib_hook.contents import statements_of
    from patchlog.rdflib_hook.terms import TermFormatter

    return {as_quad(statement) for statement in map(TermFormatter().statement, statements_of(dataset))}


def _quad_of(line: str) -> Quad:
    subject, predicate, object, graph = json.loads(line)
    return subject, predicate, object, graph


def _lacking_for_spark() -> str | None:
    """What Spark lacks here, and the remedy."""
    if missing := _missing("pyspark", "delta"):
        return f"{missing} is not installed; pip install 'patchlog[spark]' brings it"
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        return "there is no Java; install a Java 17 (Debian: openjdk-17-jre-headless)"
    # A Java that is too old, and JARs that are neither here nor to be had, are known by the job itself.
    command = [sys.executable, *_SAFELY, "-m", "spark", "setup"]
    done = subprocess.run(command, env=_environment(), capture_output=True, text=True, check=False)  # noqa: S603  our own
    return done.stderr.strip().removeprefix("error: ").rpartition("\n")[2] if done.returncode != 0 else None


def _missing(*modules: str) -> str | None:
    return next((module for module in modules if importlib.util.find_spec(module) is None), None)


def _next(place: Path) -> str:
    patchlog = _as_typed()
    return f"""
Try next:
  cd {shlex.quote(str(place))}
  {patchlog} serve                       these logs again; http://127.0.0.1:8080/ui shows them in a browser
and, in a second terminal in that folder:
  {patchlog} tail people --after 0       each patch, and each new one as it comes
  {patchlog} revert people --version 4   take Wednesday back
  {patchlog} --help
The tutorial is docs/tutorial.md; your own program is recorded by the one line that record.py shows."""


def _as_typed() -> str:
    """How the user has to call us: an environment that `make` has made is not on the PATH."""
    beside = Path(sys.executable).with_name("patchlog")
    if shutil.which("patchlog") is not None:
        return "patchlog"
    return shlex.quote(str(beside)) if beside.exists() else f"{shlex.quote(sys.executable)} -m patchlog"
