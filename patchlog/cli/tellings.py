"""What commands tell of logs and patches: lines for people, and JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import click

from patchlog.cli.checks import counted
from patchlog.log.documents import Document
from patchlog.log.records import Appended, LogDescription

__all__ = ["as_json", "json_line", "lines_of_log", "table_of_logs", "where_appended"]

Command = TypeVar("Command", bound=Callable[..., Any])


def as_json(command: Command) -> Any:
    """`--json`: tell it to programs."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, with the names that the service uses.")(
        command
    )


def json_line(document: Document | Sequence[Document]) -> str:
    """A JSON document on a line of its own."""
    return json.dumps(document, ensure_ascii=False)


def lines_of_log(log: LogDescription) -> Iterable[str]:
    """Yield what there is to say of a log."""
    yield f"name: {log.name}"
    yield f"id: {log.id}"
    yield f"created: {log.created}"
    if log.head.id is None:
        yield "head: none, the log is empty"
    else:
        yield f"head: version {log.head.version}, {log.head.id}, {log.head.time}"
        yield f"hash: {log.head.hash.hex()}"
    yield f"kept: {_kept(log)}"
    yield f"rdf_star: {str(log.options.rdf_star).lower()}"
    yield f"generalized_statements: {str(log.options.generalized_statements).lower()}"


def table_of_logs(logs: Iterable[LogDescription]) -> Iterable[str]:
    """Yield a line for each log, in columns."""
    rows = [("NAME", "HEAD", "PATCHES", "OPERATIONS", "BYTES", "CHANGED")]
    rows += (
        (
            log.name,
            str(log.head.version),
            f"{log.patches:,}",
            f"{log.operations:,}",
            f"{log.bytes:,}",
            log.head.time or "never",
        )
        for log in logs
    )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *numbers, changed in rows:
        columns = [
            name.ljust(widths[0]),
            *(text.rjust(width) for text, width in zip(numbers, widths[1:-1], strict=True)),
        ]
        yield "  ".join([*columns, changed])


def where_appended(appended: Appended) -> str:
    """Where the patches of an upload are."""
    versions = (
        f"version {appended.version}"
        if appended.first_version == appended.version
        else f"versions {appended.first_version} to {appended.version}"
    )
    told = f"{versions}, {appended.id}: {_amount(appended.operations, appended.bytes)}"
    return f"{told}, there already" if appended.is_retry else told


def _kept(log: LogDescription) -> str:
    if not log.patches:
        return "no patches"
    return (
        f"versions {log.first_version} to {log.head.version}: {counted(log.patches, 'patch')}, "
        f"{_amount(log.operations, log.bytes)}"
    )


def _amount(operations: int, size: int) -> str:
    return f"{counted(operations, 'operation')}, {counted(size, 'byte')}"
