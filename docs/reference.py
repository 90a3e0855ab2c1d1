"""Writes the pages of docs/reference from the code: `make reference`. A test holds the pages to what this would write.

What a person has to say is elsewhere: in the code's own descriptions, and in the column "what to do" of docs/errors.md.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import click
from prometheus_client.parser import text_string_to_metric_families
from pydantic_core import PydanticUndefined

from api.app import create_app
from api.errors import PROBLEMS
from api.metrics import Metrics
from api.settings import Settings
from patchlog import errors
from patchlog.cli import root
from patchlog.cli.examples import EXAMPLES
from patchlog.log.memory import MemoryLogStore
from spark.cli import root as spark_root

DOCS: Final = Path(__file__).parent
FOLDER: Final = DOCS / "reference"

_NOTE: Final = "Written by `make reference` from the code; do not edit."
_MODULES: Final = {
    "patchlog": "The library, in its newcomers' names.",
    "patchlog.rdf": "Streams of statements.",
    "patchlog.patch": "Streams of operations.",
    "patchlog.places": "Logs by where they are.",
    "patchlog.log.contract": "What every log can do, wherever it is.",
    "patchlog.log.stores": "Logs of a database, or in memory.",
    "patchlog.client": "Logs of a service.",
    "patchlog.followers.follower": "Copies that follow a log.",
}


def pages() -> dict[str, str]:
    """The text of each page, by its file's name."""
    return {
        "settings.md": "".join(_settings()),
        "metrics.md": "".join(_metrics()),
        "errors.md": "".join(_errors()),
        "http.md": "".join(_http()),
        "command-line.md": "".join(_command_line()),
        "python.md": "".join(_python()),
    }


def _settings() -> Iterator[str]:
    yield _head("Settings", "Of the service. [Running the service](../operations.md) says how they are given.")
    rows = []
    for name, field in Settings.model_fields.items():
        default = "" if field.default in (None, PydanticUndefined) else f"`{field.default}`"
        option = f"--{name.replace('_', '-')}"
        rows.append([f"`{name}`", f"`{option}`", f"`PATCHLOG_{name.upper()}`", default, field.description or ""])
    yield _table(["setting", "option", "environment", "default", "what"], rows)


def _metrics() -> Iterator[str]:
    yield _head(
        "Metrics",
        "Of `GET /metrics`; besides, `process_…` as every Prometheus client has them. "
        "[Running the service](../operations.md#metrics) says what they are good for.",
    )
    metrics, store = Metrics(), MemoryLogStore()
    metrics.count_requests(("GET", 200), "/logs", [0.1], 1)
    store.create("people")
    store.log("people").consumers.advance("spark", 0)
    rows = []
    for family in text_string_to_metric_families(metrics.text(store).decode()):
        if family.name.startswith("process_") or family.name.endswith("_created"):
            continue
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        name = {"counter": f"{family.name}_total", "info": f"{family.name}_info"}.get(family.type, family.name)
        rows.append([f"`{name}`", family.type, ", ".join(sorted(labels)), family.documentation])
    yield _table(["metric", "type", "labels", "what"], rows)


def _errors() -> Iterator[str]:
    yield _head(
        "Errors",
        "The tree of `patchlog.errors`, and how the service answers each: a status, and `urn:patchlog:problem:` with "
        "the name. [Errors](../errors.md) says when they are raised.",
    )
    remedies = dict(re.findall(r"^\| `(\w+)` \| .* \| ([^|]*) \|$", (DOCS / "errors.md").read_text(), re.MULTILINE))
    rows = []
    for kind, depth in _tree(errors.PatchLogError, 0):
        problem = next((PROBLEMS[one] for one in kind.__mro__ if one in PROBLEMS), None)
        status, name = (str(problem.status), f"`{problem.name}`") if problem else ("", "")
        remedy = remedies.get(kind.__name__, "").replace("](", "](../")
        rows.append([f"{'· ' * depth}`{kind.__name__}`", status, name, _first_sentence(kind), remedy])
    yield _table(["error", "status", "problem", "what", "what to do"], rows)


def _tree(kind: type[errors.PatchLogError], depth: int) -> Iterator[tuple[type[errors.PatchLogError], int]]:
    is_public = not kind.__name__.startswith("_")
    if is_public:
        yield kind, depth
    for child in kind.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from _tree(child, depth + is_public)


def _http() -> Iterator[str]:
    yield _head(
        "HTTP",
        "The requests of the service, as its `/openapi.json` has them. [http.md](../http.md) explains them with curl; "
        "every other status is a [problem](errors.md). Beside them are [the pages](../ui.md), "
        "[RDF Delta's API](../rdf-delta.md) and [gRPC](../grpc.md).",
    )
    rows = []
    for path, operations in create_app(Settings(database="memory:")).openapi()["paths"].items():
        for method, operation in operations.items():
            parameters = [f"`{one['name']}`" for one in operation.get("parameters", []) if one["in"] != "path"]
            statuses = sorted(status for status in operation["responses"] if status != "default")
            rows.append(
                [
                    f"`{method.upper()} {path}`",
                    operation["summary"],
                    ", ".join(parameters),
                    ", ".join(statuses),
                ]
            )
    yield _table(["request", "what", "parameters", "answers"], rows)


def _command_line() -> Iterator[str]:
    commands = [*_commands(root, "patchlog"), *_commands(spark_root, "python -m spark")]
    leaves = [command for _, command in commands if not isinstance(command, click.Group)]
    shared = set.intersection(*({_spelling(option) for option in _options(command)} for command in leaves))
    yield _head("Command line", "[cli.md](../cli.md) explains the commands with examples.")
    yield "Every command takes:\n\n"
    yield _table(
        ["option", "what"],
        [
            [f"`{_spelling(option)}`", option.help or ""]
            for option in _options(leaves[0])
            if _spelling(option) in shared
        ],
    )
    for name, command in commands:
        if isinstance(command, click.Group):
            continue
        arguments = [
            one.make_metavar(click.Context(command)) for one in command.params if one.param_type_name == "argument"
        ]
        yield f"\n## {name}\n\n`{' '.join([name, *arguments])}`: {command.get_short_help_str(200)}\n"
        if example := EXAMPLES.get(name.removeprefix("patchlog ")):
            yield f"\n```text\n{example}\n```\n"
        own = [option for option in _options(command) if _spelling(option) not in shared]
        if own:
            yield "\n" + _table(["option", "what"], [[f"`{_spelling(option)}`", option.help or ""] for option in own])


def _commands(command: click.Command, *names: str) -> Iterator[tuple[str, click.Command]]:
    yield " ".join(names), command
    if isinstance(command, click.Group):
        for name, child in sorted(command.commands.items()):
            yield from _commands(child, *names, name)


def _options(command: click.Command) -> list[click.Option]:
    return [one for one in command.params if isinstance(one, click.Option) and not one.hidden]


def _spelling(option: click.Option) -> str:
    return ", ".join([*option.opts, *option.secondary_opts])


def _python() -> Iterator[str]:
    yield (
        _head(
            "Python",
            "[python.md](../python.md), [log.md](../log.md) and [client.md](../client.md) show how they are used.",
        ).rstrip("\n")
        + "\n"
    )
    for name, sign in _MODULES.items():
        yield f"\n## {name}\n\n{sign}\n\n"
        yield _table(["name", "what"], _names(import_module(name)))


def _names(module: ModuleType) -> Iterator[list[str]]:
    for name in sorted(module.__all__):
        value = getattr(module, name)
        if not callable(value) or not str(value.__module__).startswith("patchlog"):  # an alias of a type
            continue
        yield [f"`{name}`", _first_sentence(value)]
        if getattr(value, "_is_protocol", False):
            methods = [method for method in sorted(vars(value)) if inspect.isfunction(vars(value)[method])]
            yield from (
                [f"`{name}.{method}`", _first_sentence(vars(value)[method])]
                for method in methods
                if not method.startswith("_")
            )


def _first_sentence(value: Any) -> str:
    paragraph = (inspect.getdoc(value) or "").partition("\n\n")[0]
    return re.split(r"(?<=[.]) (?=[A-Z`])", " ".join(paragraph.split()))[0]


def _head(title: str, lead: str) -> str:
    return f"# {title}\n\n<!-- {_NOTE} -->\n\n{lead}\n\n"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(' '.join(cell.split()) for cell in line)} |\n" for line in lines)


def write() -> None:
    """Write the pages."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text)


if __name__ == "__main__":
    write()
